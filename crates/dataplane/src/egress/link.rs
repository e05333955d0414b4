//! A port with traffic classes: its queued frames, the pauses that it received, and those that it sends for the frames
//! received by it.

use super::account::Account;
use super::config::{CLASSES, EgressConfig, PfcConfig, StormAction, Watchdog};
use super::counters::ClassCounters;
use super::marking::quiet_octets;
use super::pause::Pauses;
use super::schedule::Schedule;
use crate::counters::Traffic;
use srdma_frame::{Frame, PortId, Ring};
use srdma_wire::Instant;
use srdma_wire::pfc::Pfc;

/// A frame that waits in a class, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Waiting {
    pub(super) entered: Instant,
    pub(super) len: u32,
    /// Ingress port; `None` for frames of this node.
    pub(super) ingress: Option<PortId>,
    /// Whether it is in the account of its ingress port, which has classes.
    pub(super) is_accounted: bool,
    pub(super) frame: Frame,
}

const _: () = assert!(size_of::<Option<Waiting>>() == 64);

/// A class: in its first cache line what changes with every frame that leaves here, in the second what changes with
/// every frame received here.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Class {
    frames: Ring<Waiting>,
    pub(super) octets: usize,
    /// Depth up to which the class needs no check for congestion.
    pub(super) quiet_octets: usize,
    peak_octets: usize,
    sent: Traffic,
    /// As it is configured.
    pub(super) pfc: Option<PfcConfig>,
    pub(super) account: Account,
    /// Further counters: [`Link::counters`] merges them.
    pub(super) counters: ClassCounters,
}

/// A port with classes. The fields that are read for every frame share one cache line: the end of the schedule, the
/// beginning of the pauses, and what is between them.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Link {
    schedule: Schedule,
    /// Classes with frames, bit n being class n.
    waiting: u8,
    /// Accounts with a pause to send, bit n being class n.
    unsent: u8,
    /// Classes in which a frame has ever waited, bit n being class n.
    used: u8,
    /// A storm makes it drop frames.
    drops_in_storms: bool,
    pub(super) sent_octets: u64,
    pub(super) pauses: Pauses,
    pub(super) classes: [Class; CLASSES],
    pub(super) config: EgressConfig,
}

const _: () = assert!(size_of::<Schedule>() % 64 <= 24 && std::mem::offset_of!(Class, pfc) == 64);

impl Link {
    pub(super) fn new(config: EgressConfig) -> Self {
        let mut link = Link {
            pauses: Pauses::new(config.rate_bits_per_s, 0, None),
            config,
            classes: Default::default(),
            waiting: 0,
            schedule: Schedule::default(),
            unsent: 0,
            used: 0,
            drops_in_storms: false,
            sent_octets: 0,
        };
        link.take_up();
        link
    }

    /// Another configuration; frames and accounts stay.
    pub(super) fn set(&mut self, config: EgressConfig) {
        let before = std::mem::replace(&mut self.config, config);
        for (number, class) in self.classes.iter_mut().enumerate() {
            if class.account.change(before.classes[number].pfc.as_ref(), self.config.classes[number].pfc.as_ref()) {
                self.unsent |= 1 << number;
            }
        }
        self.take_up();
    }

    fn take_up(&mut self) {
        let has_pfc = |class: usize| u8::from(self.config.classes[class].pfc.is_some()) << class;
        let honouring = (0..CLASSES).map(has_pfc).sum();
        self.pauses.set(self.config.rate_bits_per_s, honouring, self.config.watchdog);
        self.schedule.set(&self.config.classes);
        self.drops_in_storms = match self.config.watchdog {
            Some(Watchdog { action: StormAction::Drop, .. }) => true,
            Some(Watchdog { action: StormAction::Forward, .. }) | None => false,
        };
        for (class, config) in self.classes.iter_mut().zip(&self.config.classes) {
            class.quiet_octets = quiet_octets(config);
            class.pfc = config.pfc;
        }
    }

    /// Whether there is anything to send by now. Pauses whose time is over have ended then, whatever the answer is.
    pub(super) fn is_ready(&mut self, now: Instant) -> bool {
        let paused = self.pauses.paused(now);
        self.unsent != 0 || self.waiting & !paused != 0
    }

    /// Adds a frame to a class; returns whether it is the first that waits there.
    #[inline]
    pub(super) fn push(&mut self, class: usize, waiting: Waiting) -> bool {
        let place = &mut self.classes[class];
        place.octets += waiting.len as usize;
        place.peak_octets = place.peak_octets.max(place.octets);
        place.frames.push(waiting);
        let bit = 1 << class;
        let is_first = self.waiting & bit == 0;
        self.waiting |= bit;
        self.used |= bit;
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
        self.classes[class].sent.count(waiting.len as usize);
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

    /// Marks an account that has a pause to send.
    pub(super) fn request_message(&mut self, class: usize) {
        self.unsent |= 1 << class;
    }

    /// Whether an account has a pause to send.
    #[inline]
    pub(super) fn has_message(&self) -> bool {
        self.unsent != 0
    }

    /// All pauses and resumes that are to be sent, in one frame.
    pub(super) fn take_message(&mut self, now: Instant) -> Pfc {
        let mut pfc = Pfc::default();
        for (class, quanta) in pfc.quanta.iter_mut().enumerate() {
            *quanta = self.classes[class].account.take_message(now, self.config.rate_bits_per_s);
            let counters = &mut self.classes[class].counters;
            match quanta {
                None => {}
                Some(0) => counters.resumes_sent += 1,
                Some(_) => counters.pauses_sent += 1,
            }
        }
        self.unsent = 0;
        pfc
    }

    /// The frame could not be sent: retries later.
    pub(super) fn take_back(&mut self, now: Instant, pfc: &Pfc) {
        for (class, quanta) in pfc.quanta.into_iter().enumerate() {
            if let Some(quanta) = quanta {
                let counters = &mut self.classes[class].counters;
                let counter = if quanta == 0 { &mut counters.resumes_sent } else { &mut counters.pauses_sent };
                *counter -= 1;
                self.classes[class].account.take_back(now, quanta);
                self.unsent |= 1 << class;
            }
        }
    }

    /// The classes whose frames are dropped for a storm, bit n being class n.
    #[inline]
    pub(super) fn drops_for_storm(&self) -> u8 {
        if self.drops_in_storms { self.pauses.storming() } else { 0 }
    }

    /// Frames and octets that wait in all classes.
    pub(super) fn frames_and_octets(&self) -> (usize, usize) {
        let add = |(frames, octets), class: &Class| (frames + class.frames.len(), octets + class.octets);
        self.classes.iter().fold((0, 0), add)
    }

    /// The counters of a class; `None` when there is no such class.
    pub(super) fn counters(&self, class: usize) -> Option<ClassCounters> {
        let Class { sent, peak_octets, counters, .. } = self.classes.get(class)?;
        let received = self.pauses.counters(class)?;
        Some(ClassCounters { sent: *sent, peak_octets: *peak_octets, received, ..*counters })
    }

    /// Reads the fields that locate the rest, to prefetch them; the sum has no meaning.
    #[inline]
    pub(super) fn prefetch_head(&self) -> usize {
        usize::from(self.waiting) + usize::from(self.pauses.classes())
    }

    /// Reads of the classes in use what frames that come and go change: a sum that means nothing.
    #[inline]
    pub(super) fn prefetch_classes(&self) -> usize {
        let mut sum = 0;
        let mut left = self.used;
        while left != 0 {
            let class = &self.classes[left.trailing_zeros() as usize];
            sum += class.frames.prefetch() + class.account.octets();
            left &= left - 1;
        }
        sum
    }

    /// Handles a due deadline: refreshes the pauses that were sent.
    pub(super) fn tick(&mut self, now: Instant) {
        for class in 0..CLASSES {
            let Class { pfc, account, .. } = &mut self.classes[class];
            if pfc.as_ref().is_some_and(|pfc| account.tick(now, pfc)) {
                self.unsent |= 1 << class;
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let refresh = self.classes.iter().filter_map(|class| class.account.next_deadline()).min();
        [refresh, self.pauses.next_deadline()].into_iter().flatten().min()
    }

    /// The link is down: discards the pauses of both directions.
    pub(super) fn forget(&mut self) {
        self.pauses.forget();
        self.classes.iter_mut().for_each(|class| class.account.forget());
        self.unsent = 0;
    }
}
