//! Egress queues. A port has one queue, limited in octets, until traffic classes are configured: then frames are queued
//! by class and marked, and PFC pauses are sent and applied.
//!
//! ```text
//!              no classes: Queue ─────────────────────────────────────────┐
//!   frame ──┤                                                             ├──▶ dequeue
//!              classes: admit ─▶ congestion? ─▶ Class 0…7 ─▶ schedule ────┘
//!                         │                        ▲ account of ingress port and class: XOFF, XON
//!                         └▶ drop                  └ pauses of the neighbour
//! ```
//!
//! A port with classes has a plain queue without room, so that frames for plain ports skip the code of classes.

mod account;
mod config;
mod counters;
mod link;
mod marking;
mod pause;
mod ports;
mod schedule;
mod trim;

pub use config::{
    BackpressureThresholds, CLASSES, ClassConfig, ClassMap, EgressConfig, EgressError, Marking, PfcConfig, Scheduling,
    StormAction, Watchdog,
};
pub use counters::ClassCounters;
pub(crate) use marking::Congestion;
pub use pause::{PauseCounters, Pauses};
pub(crate) use ports::{Ports, Room};

use crate::counters::Traffic;
use crate::drop::DropReason;
use link::{Class, Link, Waiting};
use marking::Chance;
use srdma_frame::{Frame, PortId, Ring};
use srdma_wire::Instant;
use srdma_wire::pfc::Pfc;

/// The queue of one port.
#[derive(Debug)]
struct Queue {
    frames: Ring<Frame>,
    /// Of these the first that went ahead of the others.
    ahead: usize,
    octets: usize,
    limit_octets: usize,
}

/// All queues of an element.
#[derive(Debug)]
pub(crate) struct Egress {
    queues: Vec<Queue>,
    ready: Vec<PortId>,
    /// The ports with classes.
    links: Vec<Option<Box<Link>>>,
    /// When time changes something at a port with classes; it may be too early.
    deadline: Option<Instant>,
    /// Octets in all classes of all ports.
    buffered_octets: usize,
    chance: Chance,
}

/// The queue at which a packet meets congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CongestionPoint {
    pub(crate) now: Instant,
    /// Ingress port; `None` for packets of this node.
    pub(crate) ingress: Option<PortId>,
    pub(crate) port: PortId,
    pub(crate) class: usize,
    pub(crate) congestion: Congestion,
}

/// A frame that leaves a class.
#[derive(Debug)]
pub(crate) struct Departing {
    pub(crate) frame: Frame,
    /// Ingress port; `None` for frames of this node.
    pub(crate) ingress: Option<PortId>,
    pub(crate) class: usize,
    /// When it began to wait.
    pub(crate) entered: Instant,
    /// Octets that wait in its class behind it.
    pub(crate) class_octets: usize,
}

impl Egress {
    /// Queues of no ports; `seed` is for the chance that decides on marks.
    pub(crate) fn new(seed: u64) -> Self {
        Egress {
            queues: Vec::new(),
            ready: Vec::new(),
            links: Vec::new(),
            deadline: None,
            buffered_octets: 0,
            chance: Chance::new(seed),
        }
    }

    /// Adds the next port's queue.
    pub(crate) fn add_port(&mut self, limit_octets: usize) {
        self.queues.push(Queue { frames: Ring::default(), ahead: 0, octets: 0, limit_octets });
        self.links.push(None);
    }

    /// Whether a port exists and its plain queue has room for a frame of `len` octets.
    #[inline]
    pub(crate) fn has_room(&self, port: PortId, len: usize) -> bool {
        self.queues.get(port.index()).is_some_and(|queue| queue.octets + len <= queue.limit_octets)
    }

    /// Queues a frame of `len` octets at a port that [has room](Self::has_room).
    #[inline(always)]
    pub(crate) fn push(&mut self, port: PortId, frame: Frame, len: usize) {
        let queue = &mut self.queues[port.index()];
        Place { queue, ready: &mut self.ready, port, len }.fill(frame);
    }

    /// A place for a frame of `len` octets at a port; `None` when its plain queue has no room or there is no such port.
    #[inline]
    pub(crate) fn place(&mut self, port: PortId, len: usize) -> Option<Place<'_>> {
        let queue = self.queues.get_mut(port.index()).filter(|queue| queue.octets + len <= queue.limit_octets)?;
        Some(Place { queue, ready: &mut self.ready, port, len })
    }

    /// The frame that has waited longest in a plain queue.
    #[inline]
    pub(crate) fn dequeue(&mut self, port: PortId) -> Option<Frame> {
        let queue = self.queues.get_mut(port.index())?;
        let frame = queue.frames.pop()?;
        queue.octets -= frame.len();
        queue.ahead = queue.ahead.saturating_sub(1);
        Some(frame)
    }

    /// Queues a frame at a port that [has room](Self::has_room), behind those that went ahead before, and ahead of all
    /// others.
    pub(crate) fn push_ahead(&mut self, port: PortId, frame: Frame, len: usize) {
        debug_assert_eq!(frame.len(), len, "the length that was looked for room for");
        let queue = &mut self.queues[port.index()];
        if queue.frames.is_empty() {
            self.ready.push(port);
        }
        queue.frames.insert(queue.ahead, frame);
        queue.ahead += 1;
        queue.octets += len;
    }

    /// Moves the ports that have got something to send to `wake`. A port may come more than once.
    #[inline]
    pub(crate) fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        wake.append(&mut self.ready);
    }

    /// When time changes something, if it does; never too late.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// Ports with classes.
impl Egress {
    /// Sets the classes of a port. Frames of its plain queue are sent first.
    pub(crate) fn set_classes(&mut self, port: PortId, config: EgressConfig) {
        let Some((link, queue)) = self.links.get_mut(port.index()).zip(self.queues.get_mut(port.index())) else {
            return;
        };
        queue.limit_octets = 0;
        match link {
            Some(link) => link.set(config),
            None => *link = Some(Box::new(Link::new(config))),
        }
        self.ready.push(port);
        self.look_ahead();
    }

    /// Gives a port a single queue again. Queued frames stay, ordered by class, the highest first.
    pub(crate) fn remove_classes(&mut self, port: PortId, limit_octets: usize) {
        for class in (0..CLASSES).rev() {
            while let Some(waiting) = self.link_mut(port).and_then(|link| link.take(class)) {
                self.leave(class, &waiting);
                self.push(port, waiting.frame, waiting.len as usize);
            }
        }
        if let Some(queue) = self.queues.get_mut(port.index()) {
            queue.limit_octets = limit_octets;
        }
        if let Some(link) = self.links.get_mut(port.index()) {
            *link = None;
        }
        self.links.iter_mut().flatten().for_each(|link| link.close_account(port));
        self.look_ahead();
    }

    #[inline]
    pub(crate) fn has_classes(&self, port: PortId) -> bool {
        self.link(port).is_some()
    }

    pub(crate) fn config(&self, port: PortId) -> Option<&EgressConfig> {
        self.link(port).map(|link| &link.config)
    }

    #[inline]
    fn link(&self, port: PortId) -> Option<&Link> {
        self.links.get(port.index())?.as_deref()
    }

    #[inline]
    fn link_mut(&mut self, port: PortId) -> Option<&mut Link> {
        self.links.get_mut(port.index())?.as_deref_mut()
    }

    /// Whether a frame of `len` octets may wait in a class of a port with classes. The ingress port decides in a class
    /// with PFC, else the class's limit.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        port: PortId,
        ingress: Option<PortId>,
        class: usize,
        len: usize,
    ) -> Result<(), DropReason> {
        if let Some(Class { pfc: Some(pfc), account, counters, .. }) =
            ingress.and_then(|ingress| self.link_mut(ingress)).map(|from| &mut from.classes[class])
        {
            if !account.has_room(len, pfc) {
                counters.headroom_drops += 1;
                return Err(DropReason::HeadroomExceeded);
            }
        } else if let Some(link) = self.link_mut(port)
            && link.classes[class].octets + len > link.config.classes[class].limit_octets
        {
            link.classes[class].counters.full_drops += 1;
            return Err(DropReason::QueueFull);
        }
        match self.link_mut(port) {
            Some(link) if link.drops_for_storm() >> class & 1 == 1 => {
                link.classes[class].counters.storm_drops += 1;
                Err(DropReason::PauseStorm)
            }
            Some(_) => Ok(()),
            None => Err(DropReason::QueueFull),
        }
    }

    /// Reads the fields of all ports that change with each frame, first those that locate the rest, so that the cache
    /// lines are fetched in parallel. The sum has no meaning.
    pub(crate) fn prefetch(&self) -> usize {
        let links = || self.links.iter().flatten();
        let plain: usize = self.queues.iter().map(|queue| queue.octets).sum();
        let heads: usize = links().map(|link| link.prefetch_head()).sum();
        plain + heads + links().map(|link| link.prefetch_classes()).sum::<usize>()
    }

    /// Actions for a frame that is about to be enqueued in a class.
    #[inline]
    pub(crate) fn congestion(&mut self, port: PortId, class: usize) -> Option<Congestion> {
        let link = self.links.get(port.index())?.as_deref()?;
        let depth_octets = link.classes[class].octets;
        if depth_octets <= link.classes[class].quiet_octets {
            return None;
        }
        marking::congestion_at(&link.config.classes[class], depth_octets, &mut self.chance)
    }

    pub(crate) fn count_mark(&mut self, port: PortId, class: usize) {
        if let Some(link) = self.link_mut(port) {
            link.classes[class].counters.marks += 1;
        }
    }

    /// A frame that was refused by a full class is cut instead of dropped.
    pub(crate) fn count_trim(&mut self, port: PortId, class: usize) {
        if let Some(link) = self.link_mut(port) {
            link.classes[class].counters.full_drops -= 1;
            link.classes[class].counters.trimmed += 1;
        }
    }

    /// Lets a frame wait in a class that [admitted](Self::admit) it.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        now: Instant,
        port: PortId,
        ingress: Option<PortId>,
        class: usize,
        frame: Frame,
        len: usize,
    ) {
        let mut is_accounted = false;
        if let Some(ingress) = ingress
            && let Some(from) = self.links.get_mut(ingress.index()).and_then(Option::as_deref_mut)
        {
            is_accounted = true;
            let place = &mut from.classes[class];
            if place.account.enter(len, place.pfc.as_ref()) {
                from.request_message(class);
                self.ready.push(ingress);
            }
        }
        let waiting = Waiting { entered: now, len: len as u32, ingress, is_accounted, frame };
        self.buffered_octets += len;
        if let Some(link) = self.links.get_mut(port.index()).and_then(Option::as_deref_mut)
            && link.push(class, waiting)
        {
            self.ready.push(port);
        }
    }

    /// A frame waits no longer: its octets leave the account of its ingress port.
    fn leave(&mut self, class: usize, waiting: &Waiting) {
        let len = waiting.len as usize;
        self.buffered_octets -= len;
        if let Some(ingress) = waiting.ingress.filter(|_| waiting.is_accounted)
            && let Some(from) = self.links.get_mut(ingress.index()).and_then(Option::as_deref_mut)
        {
            let place = &mut from.classes[class];
            if place.account.leave(len, place.pfc.as_ref()) {
                from.request_message(class);
                self.ready.push(ingress);
            }
        }
    }

    /// The PFC frame that a port with classes sends now, ahead of all queued frames.
    #[inline]
    pub(crate) fn take_pfc(&mut self, now: Instant, port: PortId) -> Option<Pfc> {
        let link = self.links.get_mut(port.index())?.as_deref_mut().filter(|link| link.has_message())?;
        let pfc = link.take_message(now);
        self.deadline = [self.deadline, link.next_deadline()].into_iter().flatten().min();
        Some(pfc)
    }

    /// A PFC frame could not be sent for lack of a chunk: retries later.
    pub(crate) fn return_pfc(&mut self, now: Instant, port: PortId, pfc: &Pfc) {
        if let Some(link) = self.links.get_mut(port.index()).and_then(Option::as_deref_mut) {
            link.take_back(now, pfc);
            self.deadline = [self.deadline, link.next_deadline()].into_iter().flatten().min();
        }
    }

    /// The next frame that may leave a port with classes by now.
    #[inline]
    pub(crate) fn depart(&mut self, now: Instant, port: PortId) -> Option<Departing> {
        let link = self.links.get_mut(port.index())?.as_deref_mut()?;
        let (class, waiting) = link.pop(now)?;
        let class_octets = link.classes[class].octets;
        self.leave(class, &waiting);
        let Waiting { entered, ingress, frame, .. } = waiting;
        Some(Departing { frame, ingress, class, entered, class_octets })
    }

    /// A frame to drop because of a storm, while it lasts.
    pub(crate) fn take_for_storm(&mut self, now: Instant, port: PortId) -> Option<Frame> {
        let link = self.link_mut(port)?;
        link.pauses.paused(now);
        let class = link.first_waiting(link.drops_for_storm())?;
        let waiting = link.take(class)?;
        link.classes[class].counters.storm_drops += 1;
        self.leave(class, &waiting);
        Some(waiting.frame)
    }

    /// A frame of any class, paused or not: the port has lost its link, and with it the pauses of both directions.
    pub(crate) fn take_any(&mut self, port: PortId) -> Option<Frame> {
        let link = self.link_mut(port)?;
        link.forget();
        let class = link.first_waiting(u8::MAX)?;
        let waiting = link.take(class)?;
        self.leave(class, &waiting);
        Some(waiting.frame)
    }

    /// Applies a PFC frame received at a port; `false` when the port honours no pauses.
    pub(crate) fn receive_pfc(&mut self, now: Instant, port: PortId, pfc: &Pfc) -> bool {
        let Some(link) = self.links.get_mut(port.index()).and_then(Option::as_deref_mut) else {
            return false;
        };
        if link.config.classes.iter().all(|class| class.pfc.is_none()) {
            return false;
        }
        link.pauses.receive(now, pfc);
        if link.is_ready(now) {
            self.ready.push(port);
        }
        self.deadline = [self.deadline, link.next_deadline()].into_iter().flatten().min();
        true
    }

    /// Sets or clears a pause of a class of the neighbour at a port, whatever its depth. `false`
    /// when the class has no PFC there.
    pub(crate) fn pause_ingress(&mut self, port: PortId, class: usize, is_held: bool) -> bool {
        let Some(link) = self.links.get_mut(port.index()).and_then(Option::as_deref_mut) else { return false };
        let Some(pfc) = link.classes.get(class).and_then(|class| class.pfc) else { return false };
        if link.classes[class].account.hold(is_held, &pfc) {
            link.request_message(class);
            self.ready.push(port);
        }
        true
    }

    /// Handles due deadlines: pauses that end, and those to be refreshed.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        for (index, link) in self.links.iter_mut().enumerate() {
            if let Some(link) = link
                && link.next_deadline().is_some_and(|deadline| deadline <= now)
            {
                link.tick(now);
                if link.is_ready(now) {
                    self.ready.push(PortId(index as u16));
                }
            }
        }
        self.look_ahead();
    }

    fn look_ahead(&mut self) {
        self.deadline = self.links.iter().flatten().filter_map(|link| link.next_deadline()).min();
    }
}

/// Reports.
impl Egress {
    /// Frames and octets that wait at a port, with classes or without.
    pub(crate) fn waiting(&self, port: PortId) -> Traffic {
        let plain = self.queues.get(port.index()).map_or((0, 0), |queue| (queue.frames.len(), queue.octets));
        let (frames, octets) = self.link(port).map_or((0, 0), |link| link.frames_and_octets());
        Traffic { frames: (plain.0 + frames) as u64, octets: (plain.1 + octets) as u64 }
    }

    /// The counters of a class.
    pub(crate) fn counters(&self, port: PortId, class: usize) -> Option<ClassCounters> {
        self.link(port)?.counters(class)
    }

    /// The length from which on the senders of a class are notified.
    pub(crate) fn notify_octets(&self, port: PortId, class: usize) -> Option<usize> {
        self.config(port)?.classes.get(class)?.notify_octets
    }

    /// Octets that wait in a class of a port.
    pub(crate) fn class_octets(&self, port: PortId, class: usize) -> Option<usize> {
        Some(self.link(port)?.classes.get(class)?.octets)
    }

    /// Octets received by a port in a class that wait at any port.
    pub(crate) fn ingress_octets(&self, port: PortId, class: usize) -> Option<usize> {
        Some(self.link(port)?.classes.get(class)?.account.octets())
    }

    /// Octets that wait in all classes of all ports.
    pub(crate) fn buffered_octets(&self) -> usize {
        self.buffered_octets
    }

    /// Octets that a port with classes has sent.
    pub(crate) fn sent_octets(&self, port: PortId) -> u64 {
        self.link(port).map_or(0, |link| link.sent_octets)
    }

    /// The classes that a port's neighbour has paused, when that was last looked at; bit n is class n.
    pub(crate) fn paused_classes(&self, port: PortId) -> u8 {
        self.link(port).map_or(0, |link| link.pauses.classes())
    }

    /// The classes for which XOFF was sent to a port's neighbour, bit n being class n.
    pub(crate) fn closed_classes(&self, port: PortId) -> u8 {
        let closed = |link: &Link| {
            (0..).zip(&link.classes).map(|(number, class)| u8::from(class.account.is_closed()) << number).sum()
        };
        self.link(port).map_or(0, closed)
    }
}

/// Room for one frame in a plain queue.
#[derive(Debug)]
pub(crate) struct Place<'e> {
    queue: &'e mut Queue,
    ready: &'e mut Vec<PortId>,
    port: PortId,
    len: usize,
}

impl Place<'_> {
    /// Queues the frame. In line, so that a frame is made where it waits.
    #[inline(always)]
    pub(crate) fn fill(self, frame: Frame) {
        debug_assert_eq!(frame.len(), self.len, "the length that was looked for room for");
        if self.queue.frames.is_empty() {
            self.ready.push(self.port);
        }
        self.queue.octets += self.len;
        self.queue.frames.push(frame);
    }
}
