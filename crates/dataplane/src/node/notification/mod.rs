//! Notifications across the borders of a WAN (D60–D67): sent when a queue is congested, and taken by END.C and END.E.

mod congested;
mod end_c;
mod end_e;

use super::Node;
use crate::config::ConfigError;
use crate::notification::{Holds, NotificationConfig, NotificationCounters, NotificationSids, Origins, SidTable, Told};
use srdma_frame::Pool;
use srdma_wire::Instant;
use std::net::Ipv6Addr;

/// What a node remembers of the notifications that it sends and takes.
#[derive(Debug)]
pub(super) struct Notifications {
    config: NotificationConfig,
    told: Told,
    holds: Holds,
    /// Who sends to END.C.
    origins: Origins,
    counters: NotificationCounters,
    /// PEs that may go on; kept for its memory.
    eased: Vec<usize>,
}

impl Notifications {
    fn new(config: NotificationConfig) -> Self {
        Notifications {
            told: Told::default(),
            holds: Holds::new(&config),
            origins: Origins::new(config.origins.into(), config.per_second, config.at_once),
            counters: NotificationCounters::default(),
            eased: Vec::new(),
            config,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.told.next_deadline(), self.holds.next_deadline()].into_iter().flatten().min()
    }

    pub(super) fn counters(&self) -> NotificationCounters {
        NotificationCounters { expired: self.holds.expired, barred: self.holds.barred, ..self.counters }
    }
}

/// A pause that a node has been asked for, and keeps up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The congested node.
    pub congested: Ipv6Addr,
    /// The traffic class of its queue.
    pub traffic_class: u8,
    /// When it ends if nothing more is said.
    pub until: Instant,
}

impl Node {
    pub(super) fn set_notifications(&mut self, config: NotificationConfig) -> Result<(), ConfigError> {
        config.check()?;
        config.priorities.iter().flat_map(|mapping| &mapping.ports).try_for_each(|port| self.check_port(*port))?;
        self.limit_end_e(&config);
        let before = self.notifications.take();
        let mut notifications = Box::new(Notifications::new(config));
        if let Some(before) = before {
            before.holds.let_go(|port, class, is_held| self.egress.hold(port, class, is_held));
            let counters = before.counters();
            (notifications.holds.expired, notifications.holds.barred) = (counters.expired, counters.barred);
            (notifications.counters, notifications.told) = (counters, before.told);
        } else {
            notifications.told.renumber(self.notification_sids.end_cs(), |_| None);
        }
        self.notifications = Some(notifications);
        Ok(())
    }

    /// A node without notifications limits who sends to its END.E all the same, as it would by default (D66).
    pub(super) fn limit_end_e(&mut self, config: &NotificationConfig) {
        let origins = Origins::new(config.origins.into(), config.end_e_per_second, config.end_e_at_once);
        self.end_e_origins = Some(Box::new(origins));
    }

    pub(super) fn remove_notifications(&mut self) {
        self.limit_end_e(&NotificationConfig::default());
        if let Some(before) = self.notifications.take() {
            before.holds.let_go(|port, class, is_held| self.egress.hold(port, class, is_held));
        }
    }

    pub(super) fn set_notification_sids(&mut self, sids: &[NotificationSids]) -> Result<(), ConfigError> {
        let table = SidTable::new(self.config.loopback, sids)?;
        let before = std::mem::replace(&mut self.notification_sids, table);
        if let Some(notifications) = self.notifications.as_mut() {
            let now = &self.notification_sids;
            let number = |pe: usize| now.place_of_end_c(&before.end_c(pe)?.sid);
            notifications.told.renumber(now.end_cs(), number);
        }
        Ok(())
    }

    /// Does what was due by now: pauses are asked for again, and those that were taken end.
    pub(super) fn notification_tick(&mut self, now: Instant, pool: &mut Pool) {
        if let Some(notifications) = self.notifications.as_mut() {
            let egress = &mut self.egress;
            notifications.holds.tick(now, |port, class, is_held| egress.hold(port, class, is_held));
            self.refresh_back(now, pool);
        }
    }

    /// How the node notifies, and takes notifications; `None` when it does not.
    pub fn notifications(&self) -> Option<&NotificationConfig> {
        self.notifications.as_ref().map(|notifications| &notifications.config)
    }

    /// The pauses that it has been asked for and keeps up.
    pub fn holds(&self) -> impl Iterator<Item = Hold> {
        self.notifications.iter().flat_map(|notifications| {
            notifications.holds.held().filter_map(|(origin, traffic_class, until)| {
                let congested = notifications.origins.address(origin)?;
                Some(Hold { congested, traffic_class, until })
            })
        })
    }

    /// The pauses that it has asked for: the END.C of each ingress PE, and the class.
    pub fn pauses_asked(&self) -> impl Iterator<Item = (Ipv6Addr, u8)> {
        self.notifications.iter().flat_map(|notifications| {
            notifications.told.asked().filter_map(|(pe, class)| {
                let end_c = self.notification_sids.end_c(pe)?;
                Some((end_c.sid.into(), class as u8))
            })
        })
    }
}
