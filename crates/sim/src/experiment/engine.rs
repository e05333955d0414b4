//! Elements joined by links without faults, in virtual time, many events of one element at a time.
//!
//! A frame that is sent now arrives later by the delay of its link, at least. So what happens to one element within the
//! shortest of all delays cannot depend on what happens to another one meanwhile: time is cut into windows of that
//! length, and in each the elements are worked off one after the other, every one with its own events in their order.
//!
//! ```text
//!   now                 now + shortest delay
//!    ├──── element 1: ×  ×××  × ─┤
//!    ├──── element 2:  ×× ×  ××× ┤      what they send arrives behind the window
//!    ├──── element 3: × ×    ××  ┤
//! ```
//!
//! What comes out is what would come out event by event, but an element's state is fetched once for some dozens of
//! frames rather than for each: in a fabric of a thousand hosts nothing else costs as much.

use crate::link::LinkModel;
use crate::network::{ElementId, Place, Station};
use srdma_dataplane::{Frame, Pool, PortId};
use srdma_wire::Instant;
use std::collections::VecDeque;

const PS_PER_NS: u64 = 1000;

const NEVER_NS: u64 = u64::MAX;

/// Elements, links, and the time.
///
/// At one instant frames arrive first at an element, then its wires become free, then its deadline comes; each in the
/// order of its ports.
pub(super) struct Engine<S> {
    now_ns: u64,
    pool: Pool,
    elements: Vec<Attached<S>>,
    /// When something happens to each element, at the earliest.
    next_ns: Vec<u64>,
    wires: Vec<Wire>,
    /// The shortest delay of a link.
    lookahead_ns: u64,
    hops: u64,
    starved: u64,
    workplace: Workplace,
}

struct Attached<S> {
    station: S,
    ports: Vec<Port>,
    /// When it was last called.
    called_ns: u64,
}

/// A port of an element, as its link sees it.
#[derive(Clone, Copy)]
struct Port {
    /// The wires out and in.
    wires: Option<(u32, u32)>,
    /// When the transmitter has sent what it was given.
    free_at_ps: u64,
    /// When the element is asked for the next frame; never, if it is asked as soon as it has one.
    asks_at_ns: u64,
    /// When the first frame on the wire in arrives: here, so that nobody has to look at the wires that are empty.
    arrives_at_ns: u64,
}

impl Port {
    const NONE: Port = Port { wires: None, free_at_ps: 0, asks_at_ns: NEVER_NS, arrives_at_ns: NEVER_NS };
}

/// One direction of a link.
struct Wire {
    to: (u32, PortId),
    model: LinkModel,
    /// Frames on their way with the times of their arrival.
    frames: VecDeque<(u64, Frame)>,
}

/// What is kept for its memory.
#[derive(Default)]
struct Workplace {
    /// Frames that arrive at an element within the window, by wire.
    arrived: Vec<Option<Frame>>,
    /// In what order: time, port, place in `arrived`.
    order: Vec<(u64, u16, u32)>,
    batch: Vec<Frame>,
    ready: Vec<PortId>,
}

impl<S: Station> Engine<S> {
    /// No elements, at the origin of time. Frames lie in at most `chunks` chunks of each size of the pool.
    pub(super) fn new(chunks: usize) -> Self {
        Engine {
            now_ns: 0,
            pool: Pool::new(chunks),
            elements: Vec::new(),
            next_ns: Vec::new(),
            wires: Vec::new(),
            lookahead_ns: NEVER_NS,
            hops: 0,
            starved: 0,
            workplace: Workplace::default(),
        }
    }

    /// Adds an element.
    pub(super) fn add(&mut self, station: S) -> ElementId {
        self.elements.push(Attached { station, ports: Vec::new(), called_ns: 0 });
        self.next_ns.push(NEVER_NS);
        ElementId::of_position(self.elements.len() - 1)
    }

    /// Joins two ports, each of which has no link yet. The delay is more than 0.
    pub(super) fn connect(&mut self, one: Place, other: Place, model: LinkModel) {
        self.lookahead_ns = self.lookahead_ns.min(model.delay_ns);
        let first = self.wires.len() as u32;
        for (number, from, to) in [(first, one, other), (first + 1, other, one)] {
            let to = (to.0.position() as u32, to.1);
            self.wires.push(Wire { to, model, frames: VecDeque::new() });
            let ports = &mut self.elements[from.0.position()].ports;
            if ports.len() <= from.1.index() {
                ports.resize(from.1.index() + 1, Port::NONE);
            }
            ports[from.1.index()].wires = Some((number, number ^ 1));
        }
    }

    /// An element, to look at.
    pub(super) fn element(&self, id: ElementId) -> &S {
        &self.elements[id.position()].station
    }

    /// Lets `action` change an element, and does what follows from it.
    pub(super) fn with<R>(&mut self, id: ElementId, action: impl FnOnce(&mut S, Instant, &mut Pool) -> R) -> R {
        let (position, now_ns) = (id.position(), self.now_ns);
        let result = action(&mut self.elements[position].station, Instant::from_ns(now_ns), &mut self.pool);
        self.serve(position, now_ns);
        self.next_ns[position] = self.next_of(position);
        result
    }

    /// Frames that have arrived anywhere.
    pub(super) fn hops(&self) -> u64 {
        self.hops
    }

    /// Frames that were thrown away because the pool had no chunk left for them.
    pub(super) fn starved(&self) -> u64 {
        self.starved
    }

    /// Lets everything happen that happens before a time, which then has come.
    pub(super) fn proceed_until(&mut self, end: Instant) {
        let end_ns = end.as_ns();
        loop {
            let next_ns = self.next_ns.iter().copied().min().unwrap_or(NEVER_NS);
            if next_ns >= end_ns {
                break;
            }
            self.now_ns = self.now_ns.max(next_ns);
            let window_end_ns = self.now_ns.saturating_add(self.lookahead_ns.max(1)).min(end_ns);
            for position in 0..self.elements.len() {
                if self.next_ns[position] < window_end_ns {
                    self.work_off(position, window_end_ns);
                }
            }
            self.now_ns = window_end_ns;
        }
        self.now_ns = self.now_ns.max(end_ns);
    }

    /// Lets everything happen to an element that happens to it before a time.
    fn work_off(&mut self, position: usize, end_ns: u64) {
        let mut workplace = std::mem::take(&mut self.workplace);
        self.gather(position, end_ns, &mut workplace);
        let mut coming = workplace.order.iter().copied().peekable();
        loop {
            let arrival_ns = coming.peek().map_or(NEVER_NS, |(time, _, _)| *time);
            let attached = &self.elements[position];
            let (asks_ns, port) = attached.next_free_port();
            let deadline_ns = attached.deadline_ns();
            let now_ns = arrival_ns.min(asks_ns).min(deadline_ns);
            if now_ns >= end_ns {
                break;
            }
            if arrival_ns == now_ns {
                let Some((_, port, place)) = coming.next() else { break };
                workplace.batch.extend(workplace.arrived[place as usize].take());
                while let Some((_, _, place)) = coming.next_if(|(time, at, _)| (*time, *at) == (now_ns, port)) {
                    workplace.batch.extend(workplace.arrived[place as usize].take());
                }
                let station = &mut self.elements[position].station;
                station.receive(Instant::from_ns(now_ns), PortId(port), &mut workplace.batch, &mut self.pool);
                self.serve_with(position, now_ns, &mut workplace.ready);
            } else if asks_ns == now_ns {
                self.elements[position].ports[port].asks_at_ns = NEVER_NS;
                self.transmit(position, port, now_ns);
            } else {
                self.elements[position].station.tick(Instant::from_ns(now_ns), &mut self.pool);
                self.serve_with(position, now_ns, &mut workplace.ready);
            }
        }
        self.workplace = workplace;
        self.next_ns[position] = self.next_of(position);
    }

    /// Takes the frames off an element's wires that arrive before a time, and sorts them.
    fn gather(&mut self, position: usize, end_ns: u64, workplace: &mut Workplace) {
        workplace.arrived.clear();
        workplace.order.clear();
        let attached = &mut self.elements[position];
        let copy = attached.station.wants_driver_layout();
        // Looked at before they are taken, so that they are fetched side by side.
        let fronts = attached.ports.iter().filter(|port| port.arrives_at_ns < end_ns).filter_map(|port| port.wires);
        let fronts = fronts.filter_map(|(_, wire)| self.wires[wire as usize].frames.front());
        std::hint::black_box(fronts.fold(0, |sum, (time_ns, _)| sum ^ *time_ns));
        let coming = attached.ports.iter_mut().enumerate().filter(|(_, port)| port.arrives_at_ns < end_ns);
        for (number, port) in coming {
            let Some((_, wire)) = port.wires else { continue };
            let frames = &mut self.wires[wire as usize].frames;
            while let Some((time_ns, frame)) = frames.pop_front_if(|(time_ns, _)| *time_ns < end_ns) {
                self.hops += 1;
                let frame = if copy { frame.across_wire(&mut self.pool) } else { Some(frame) };
                self.starved += u64::from(frame.is_none());
                workplace.order.push((time_ns, number as u16, workplace.arrived.len() as u32));
                workplace.arrived.push(frame);
            }
            port.arrives_at_ns = frames.front().map_or(NEVER_NS, |(time_ns, _)| *time_ns);
        }
        workplace.order.sort_unstable();
        fetch_headers(&workplace.arrived, &self.pool);
    }

    fn serve(&mut self, position: usize, now_ns: u64) {
        let mut ready = std::mem::take(&mut self.workplace.ready);
        self.serve_with(position, now_ns, &mut ready);
        self.workplace.ready = ready;
    }

    /// Sends what an element has become ready to send by the call that was just made.
    fn serve_with(&mut self, position: usize, now_ns: u64, ready: &mut Vec<PortId>) {
        let attached = &mut self.elements[position];
        attached.called_ns = now_ns;
        attached.station.take_ready(ready);
        for port in ready.drain(..) {
            let is_idle = |port: &Port| port.wires.is_some() && port.asks_at_ns == NEVER_NS;
            if self.elements[position].ports.get(port.index()).is_some_and(is_idle) {
                self.transmit(position, port.index(), now_ns);
            }
        }
    }

    /// Sends the next frame of a port that is idle, if there is one.
    #[inline]
    fn transmit(&mut self, position: usize, port: usize, now_ns: u64) {
        let attached = &mut self.elements[position];
        let own = &mut attached.ports[port];
        let Some((wire, _)) = own.wires else {
            return;
        };
        let now = Instant::from_ns(now_ns);
        let Some(frame) = attached.station.dequeue(now, PortId(port as u16), &mut self.pool) else {
            return;
        };
        let wire = &mut self.wires[wire as usize];
        let octets = frame.len();
        // Events happen at whole nanoseconds. A transmitter that became free within the last one goes on from where it
        // was, or the rate would lose a fraction of a nanosecond with each frame.
        let now_ps = now_ns * PS_PER_NS;
        let start_ps = if now_ps < own.free_at_ps + PS_PER_NS { own.free_at_ps } else { now_ps };
        own.free_at_ps = start_ps + wire.model.transmission_ps(octets);
        own.asks_at_ns = own.free_at_ps.div_ceil(PS_PER_NS);
        let arrival_ns = (own.free_at_ps + wire.model.delay_ns * PS_PER_NS).div_ceil(PS_PER_NS);
        let ((element, port), is_first) = (wire.to, wire.frames.is_empty());
        wire.frames.push_back((arrival_ns, frame));
        if is_first {
            self.elements[element as usize].ports[port.index()].arrives_at_ns = arrival_ns;
            let next_ns = &mut self.next_ns[element as usize];
            *next_ns = (*next_ns).min(arrival_ns);
        }
    }

    /// When something happens to an element next.
    fn next_of(&self, position: usize) -> u64 {
        let attached = &self.elements[position];
        let port = attached.ports.iter().map(|port| port.arrives_at_ns.min(port.asks_at_ns)).min();
        port.unwrap_or(NEVER_NS).min(attached.deadline_ns())
    }
}

impl<S: Station> Attached<S> {
    /// When a port becomes free, and which.
    #[inline]
    fn next_free_port(&self) -> (u64, usize) {
        let mut earliest = (NEVER_NS, 0);
        for (number, port) in self.ports.iter().enumerate() {
            if port.asks_at_ns < earliest.0 {
                earliest = (port.asks_at_ns, number);
            }
        }
        earliest
    }

    /// When the element wants to be ticked. One whose deadline does not move when it is ticked must not stop time.
    #[inline]
    fn deadline_ns(&self) -> u64 {
        self.station.next_deadline().map_or(NEVER_NS, |wanted| wanted.as_ns().max(self.called_ns + 1))
    }
}

/// Reads from the cache lines that the headers of frames lie in, so that they are fetched side by side rather than one
/// after the other.
#[inline]
fn fetch_headers(frames: &[Option<Frame>], pool: &Pool) {
    let mut sum = 0;
    for frame in frames.iter().flatten() {
        let head = frame.head(pool);
        sum ^= head.first().copied().unwrap_or_default() ^ head.get(64).copied().unwrap_or_default();
    }
    std::hint::black_box(sum);
}
