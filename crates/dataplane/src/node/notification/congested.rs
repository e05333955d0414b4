//! A queue is too long: the ingress PEs of what comes there are asked for a pause (CN-4.1-2, D67).

use crate::egress::{Backpressure, Egress};
use crate::headers::{IPV6, Place, ipv6};
use crate::node::congestion::Meeting;
use crate::node::state::Target;
use crate::node::{Arrival, Node};
use crate::notification::NotificationCounters;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::notification::{Ask, Notification, NotificationPacket};
use srdma_wire::{Instant, NextHeader};

/// The level at XOFF; at XON it is 0. With an early resume it is the other way round.
const LEVEL_AT_XOFF: usize = 128;

impl Node {
    /// A packet finds more than XOFF waiting in its class. Its ingress PE is asked for a pause, unless it has been, or
    /// is this node: what comes in here is paused by PFC itself.
    #[cold]
    pub(in crate::node) fn press_back(&mut self, meeting: &Meeting, frame: &Frame, pool: &mut Pool) {
        let Some(notifications) = self.notifications.as_deref_mut() else { return };
        let Some(ingress) = tunnel_source(frame.head(pool)) else { return };
        let Some(pe) = self.notification_sids.find_end_c(ingress) else {
            notifications.counters.unknown_ingress += 1;
            return;
        };
        let Some(end_c) = self.notification_sids.end_c(pe) else { return };
        if matches!(self.main.lookup(&end_c.sid), Some(Target::Sid(_))) {
            return;
        }
        let Meeting { now, port, class, .. } = *meeting;
        let waiting = waiting(&self.egress, port, class);
        if !waiting.is_some_and(|(octets, thresholds)| notifications.told.waits(port, class, octets, thresholds)) {
            return;
        }
        if notifications.told.press(now + notifications.config.refresh, pe, port, class) {
            let level = level(&self.egress, port, class).unwrap_or(0);
            if self.notify_pe(now, pe, class, Ask::Pause, level, pool) {
                self.count_notification(|counters| counters.pauses_sent += 1);
            } else if let Some(notifications) = self.notifications.as_deref_mut() {
                notifications.told.forget(pe, class);
            }
        }
    }

    /// A frame has left a class. When that is down at XON, those who were asked may go on.
    #[inline]
    pub(in crate::node) fn ease_back(&mut self, now: Instant, port: PortId, class: usize, pool: &mut Pool) {
        if self.notifications.as_ref().is_some_and(|known| known.told.is_watched(port, class)) {
            self.look_at_queue(now, port, class, pool);
        }
    }

    fn look_at_queue(&mut self, now: Instant, port: PortId, class: usize, pool: &mut Pool) {
        let Some(notifications) = self.notifications.as_deref_mut() else { return };
        let is_reason = match waiting(&self.egress, port, class) {
            Some((octets, thresholds)) => notifications.told.waits(port, class, octets, thresholds),
            None => {
                notifications.told.calm(port, class);
                false
            }
        };
        if !is_reason {
            self.resume_back(now, port, class, pool);
        }
    }

    #[cold]
    fn resume_back(&mut self, now: Instant, port: PortId, class: usize, pool: &mut Pool) {
        let Some(notifications) = self.notifications.as_deref_mut() else { return };
        let mut eased = std::mem::take(&mut notifications.eased);
        notifications.told.ease(port, class, &mut eased);
        for pe in eased.drain(..) {
            self.send_resume(now, pe, class, pool);
        }
        if let Some(notifications) = self.notifications.as_deref_mut() {
            notifications.eased = eased;
        }
    }

    /// Asks again where a queue is still above XON; where none is, for the queue has lost its frames otherwise, the PE
    /// may go on.
    pub(super) fn refresh_back(&mut self, now: Instant, pool: &mut Pool) {
        while let Some(notifications) = self.notifications.as_deref_mut() {
            let Some((pe, class)) = notifications.told.take_due(now) else { return };
            let egress = &self.egress;
            let level = |port| level(egress, port, class);
            match notifications.told.review(pe, class, level) {
                None => self.send_resume(now, pe, class, pool),
                Some((_, level)) => {
                    notifications.told.refresh_at(pe, class, now + notifications.config.refresh);
                    if self.notify_pe(now, pe, class, Ask::Pause, level, pool) {
                        self.count_notification(|counters| counters.refreshes_sent += 1);
                    }
                }
            }
        }
    }

    fn send_resume(&mut self, now: Instant, pe: usize, class: usize, pool: &mut Pool) {
        if self.notify_pe(now, pe, class, Ask::Resume, 0, pool) {
            self.count_notification(|counters| counters.resumes_sent += 1);
        }
    }
}

/// What an ingress PE is told.
impl Node {
    /// Sends a notification to the END.C of a PE; whether it waits in a queue now.
    fn notify_pe(&mut self, now: Instant, pe: usize, class: usize, ask: Ask, level: u8, pool: &mut Pool) -> bool {
        let is_sent = self.transmit_notification(now, pe, class, ask, level, pool).is_some_and(|is_sent| is_sent);
        self.count_notification(|counters| counters.not_sent += u64::from(!is_sent));
        is_sent
    }

    /// A whole packet from the loopback to the SID, in a header of the same addresses.
    fn transmit_notification(
        &mut self,
        now: Instant,
        pe: usize,
        class: usize,
        ask: Ask,
        level: u8,
        pool: &mut Pool,
    ) -> Option<bool> {
        let notifications = self.notifications.as_deref_mut()?;
        let end_c = self.notification_sids.end_c(pe)?;
        let hold_us = match ask {
            Ask::Pause => u32::try_from(notifications.config.hold.as_micros()).unwrap_or(u32::MAX),
            Ask::Resume => 0,
        };
        let notification = Notification {
            ask,
            traffic_class: class as u8,
            level,
            sequence: notifications.told.next_sequence(now),
            hold_us,
            congested: self.config.loopback,
        };
        let mut octets = [0; IPV6 + NotificationPacket::LEN];
        let packet = NotificationPacket { destination: end_c.sid.into(), notification };
        octets[IPV6..].copy_from_slice(&packet.emit());
        let mut frame = Frame::small(&octets, pool)?;
        let pushed = end_c.around.push(&mut frame, pool);
        let arrival = Arrival::own(now);
        match pushed.and_then(|()| self.way_of(&mut frame, pool)) {
            Ok(adjacency) => Some(self.transmitted(arrival, frame, pool, adjacency)),
            Err(reason) => {
                self.drop_frame(arrival, frame, pool, reason);
                None
            }
        }
    }

    fn count_notification(&mut self, count: impl FnOnce(&mut NotificationCounters)) {
        if let Some(notifications) = self.notifications.as_mut() {
            count(&mut notifications.counters);
        }
    }
}

/// How many octets wait in a class, and its thresholds; `None` when it has none.
fn waiting(egress: &Egress, port: PortId, class: usize) -> Option<(usize, Backpressure)> {
    let thresholds = egress.config(port)?.classes.get(class)?.backpressure?;
    Some((egress.class_octets(port, class)?, thresholds))
}

/// How full a queue is: 0 right above the lower of its thresholds, which is XON if there is no early resume, 128 at the
/// other, and no more than 255. `None` when no more than the lower one waits, or nobody is asked for a pause for it.
fn level(egress: &Egress, port: PortId, class: usize) -> Option<u8> {
    let (octets, Backpressure { xoff_octets, xon_octets }) = waiting(egress, port, class)?;
    let above = octets.checked_sub(xoff_octets.min(xon_octets)).filter(|above| *above > 0)?;
    let span = xoff_octets.abs_diff(xon_octets).max(1);
    Some(u8::try_from(above.saturating_mul(LEVEL_AT_XOFF) / span).unwrap_or(u8::MAX))
}

/// Who has put a packet into its outer header, if it has one.
fn tunnel_source(head: &[u8]) -> Option<&[u8; 16]> {
    let outer = ipv6(head).ok()?;
    let mut place = Place::first(outer).behind_options(head).ok()?;
    if place.header == NextHeader::ROUTING {
        place = place.behind_routing_header(head).and_then(|behind| behind.behind_options(head)).ok()?;
    }
    (place.header == NextHeader::IPV6).then(|| outer.source_octets())
}
