//! A port with traffic classes: the frames that wait there, the pauses that it obeys, and those that it tells for what
//! came in by it.

use super::config::{CLASSES, EgressConfig, StormAction, Watchdog};
use super::counters::ClassCounters;
use super::marking::quiet_octets;
use super::pause::Pauses;
use super::schedule::Schedule;
use super::upstream::Account;
use crate::element::PortId;
use crate::frame::Frame;
use crate::ring::Ring;
use srdma_wire::Instant;
use srdma_wire::pfc::Pfc;

/// A frame that waits in a class.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) entered: Instant,
    pub(super) len: u32,
    /// Where it came in; `None` when the node made it.
    pub(super) ingress: Option<PortId>,
    /// It stands in the account of where it came in: that port has classes.
    pub(super) is_accounted: bool,
    pub(super) frame: Frame,
}

#[derive(Debug, Default)]
pub(super) struct Class {
    frames: Ring<Waiting>,
    pub(super) octets: usize,
    /// Up to so many octets nothing is to be done about its depth.
    pub(super) quiet_octets: usize,
    pub(super) counters: ClassCounters,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) config: EgressConfig,
    pub(super) classes: [Class; CLASSES],
    /// Classes with frames, bit n being class n.
    waiting: u8,
    schedule: Schedule,
    pub(super) pauses: Pauses,
    pub(super) accounts: [Account; CLASSES],
    /// Accounts with something to tell, bit n being class n.
    untold: u8,
    pub(super) sent_octets: u64,
}

impl Link {
    pub(super) fn new(config: EgressConfig) -> Self {
        let mut link = Link {
            pauses: Pauses::new(config.rate_bits_per_s, 0, None),
            config,
            classes: Default::default(),
            waiting: 0,
            schedule: Schedule::default(),
            accounts: Default::default(),
            untold: 0,
            sent_octets: 0,
        };
        link.take_up();
        link
    }

    /// Another configuration; frames and accounts stay.
    pub(super) fn set(&mut self, config: EgressConfig) {
        let before = std::mem::replace(&mut self.config, config);
        for (class, account) in self.accounts.iter_mut().enumerate() {
            if account.change(before.classes[class].pfc.as_ref(), self.config.classes[class].pfc.as_ref()) {
                self.untold |= 1 << class;
            }
        }
        self.take_up();
    }

    fn take_up(&mut self) {
        let has_pfc = |class: usize| u8::from(self.config.classes[class].pfc.is_some()) << class;
        let obeying = (0..CLASSES).map(has_pfc).sum();
        self.pauses.set(self.config.rate_bits_per_s, obeying, self.config.watchdog);
        self.schedule.set(&self.config.classes);
        for (class, config) in self.classes.iter_mut().zip(&self.config.classes) {
            class.quiet_octets = quiet_octets(config);
        }
    }

    /// Whether there is anything to send by now.
    pub(super) fn is_ready(&mut self, now: Instant) -> bool {
        self.untold != 0 || self.waiting & !self.pauses.paused(now) != 0
    }

    /// Adds a frame to a class; returns whether it is the first that waits there.
    #[inline]
    pub(super) fn push(&mut self, class: usize, waiting: Waiting) -> bool {
        let place = &mut self.classes[class];
        place.octets += waiting.len as usize;
        place.counters.peak_octets = place.counters.peak_octets.max(place.octets);
        place.frames.push(waiting);
        let bit = 1 << class;
        let is_first = self.waiting & bit == 0;
        self.waiting |= bit;
        is_first
    }

    /// The next frame that may go by now, and its class.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<(usize, Waiting)> {
        let eligible = self.waiting & !self.pauses.paused(now);
        let classes = &self.classes;
        let first_len = |class: usize| classes[class].frames.first().map_or(0, |waiting| waiting.len as usize);
        let class = self.schedule.choose(eligible, first_len)?;
        let waiting = self.take(class)?;
        self.classes[class].counters.sent.count(waiting.len as usize);
        self.sent_octets += u64::from(waiting.len);
        Some((class, waiting))
    }

    /// The next frame of a class, paused or not.
    pub(super) fn take(&mut self, class: usize) -> Option<Waiting> {
        let place = &mut self.classes[class];
        let waiting = place.frames.pop()?;
        place.octets -= waiting.len as usize;
        if place.frames.is_empty() {
            self.waiting &= !(1 << class);
            self.schedule.is_empty(class);
        }
        Some(waiting)
    }

    /// A port has no accounts any more.
    pub(super) fn close_account(&mut self, ingress: PortId) {
        let of_port = |waiting: &&mut Waiting| waiting.ingress == Some(ingress);
        let waiting = self.classes.iter_mut().flat_map(|class| class.frames.iter_mut());
        waiting.filter(of_port).for_each(|waiting| waiting.is_accounted = false);
    }

    /// The lowest of these classes, bit n being class n, in which a frame waits.
    pub(super) fn first_waiting(&self, classes: u8) -> Option<usize> {
        let waiting = self.waiting & classes;
        (waiting != 0).then(|| waiting.trailing_zeros() as usize)
    }

    /// Notes that an account has something to tell.
    pub(super) fn has_to_tell(&mut self, class: usize) {
        self.untold |= 1 << class;
    }

    /// Whether an account has something to tell.
    #[inline]
    pub(super) fn is_untold(&self) -> bool {
        self.untold != 0
    }

    /// What the neighbour is to be told, all in one.
    pub(super) fn tell(&mut self, now: Instant) -> Pfc {
        let mut pfc = Pfc::default();
        for (class, quanta) in pfc.quanta.iter_mut().enumerate() {
            *quanta = self.accounts[class].tell(now, self.config.rate_bits_per_s);
            let counters = &mut self.classes[class].counters;
            match quanta {
                None => {}
                Some(0) => counters.resumes_sent += 1,
                Some(_) => counters.pauses_sent += 1,
            }
        }
        self.untold = 0;
        pfc
    }

    /// What was to be told has not left: it is told later.
    pub(super) fn take_back(&mut self, now: Instant, pfc: &Pfc) {
        for (class, quanta) in pfc.quanta.into_iter().enumerate() {
            if let Some(quanta) = quanta {
                let counters = &mut self.classes[class].counters;
                let told = if quanta == 0 { &mut counters.resumes_sent } else { &mut counters.pauses_sent };
                *told -= 1;
                self.accounts[class].take_back(now, quanta);
                self.untold |= 1 << class;
            }
        }
    }

    /// The classes whose frames are dropped for a storm, bit n being class n.
    #[inline]
    pub(super) fn drops_for_storm(&self) -> u8 {
        match self.config.watchdog {
            Some(Watchdog { action: StormAction::Drop, .. }) => self.pauses.storming(),
            Some(Watchdog { action: StormAction::Forward, .. }) | None => 0,
        }
    }

    /// Time has come: refreshes what was told.
    pub(super) fn tick(&mut self, now: Instant) {
        for class in 0..CLASSES {
            if let Some(pfc) = self.config.classes[class].pfc
                && self.accounts[class].tick(now, &pfc)
            {
                self.untold |= 1 << class;
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let refresh = self.accounts.iter().filter_map(Account::next_deadline).min();
        [refresh, self.pauses.next_deadline()].into_iter().flatten().min()
    }

    /// The link is gone: neither side knows of a pause.
    pub(super) fn forget(&mut self) {
        self.pauses.forget();
        self.accounts.iter_mut().for_each(Account::forget);
        self.untold = 0;
    }
}
