//! Simulation engine for links without faults that processes many events of one element at a time.
//!
//! A frame arrives at least the delay of its link after it was sent. Within the shortest delay of all links, events of
//! different elements are therefore independent (conservative lookahead): time is divided into windows of that length,
//! and each window is processed element by element, the events of each element in order.
//!
//! ```text
//!   now                 now + shortest delay
//!    ├──── element 1: ×  ×××  × ─┤
//!    ├──── element 2:  ×× ×  ××× ┤      frames sent within the window arrive after it
//!    ├──── element 3: × ×    ××  ┤
//! ```
//!
//! The result is the same as event by event, but the state of an element is fetched once for some dozens of frames: in
//! a fabric of a thousand hosts these cache misses dominate the run time.

use srdma_frame::{Frame, Pool, PortId};
use srdma_sim::link::{LinkModel, transmission_ps};
use srdma_sim::network::{ElementId, ElementPort, SimElement};
use srdma_wire::Instant;
use srdma_wire::units::PS_PER_NS;

/// The end of time, in nanoseconds.
pub(super) const NEVER_NS: u64 = Instant::NEVER.as_ns();

/// Elements, links, and the clock.
///
/// Among the events of an element at one time, arrivals come first, then transmitters that become free, then its
/// deadline; each in the order of ports.
pub(super) struct Engine<S> {
    now_ns: u64,
    pool: Pool,
    elements: Vec<Attached<S>>,
    /// Earliest event of each element.
    next_ns: Vec<u64>,
    /// Frames in flight to each element.
    arrivals: Vec<Vec<Arrival>>,
    /// The shortest delay of a link.
    lookahead_ns: u64,
    hops: u64,
    dropped_for_memory: u64,
    lost: u64,
    buffers: Buffers,
}

struct Attached<S> {
    element: S,
    ports: Vec<Port>,
    /// Times at which ports that send become free, the latest first: idle ports are not inspected.
    sending: Vec<ArrivalTime>,
    /// Time of the last call.
    called_ns: u64,
}

/// A port of an element, as its link sees it.
#[derive(Clone, Copy)]
struct Port {
    /// The other end; `None` without a link.
    peer: Option<(u32, PortId)>,
    /// The port is in `sending`.
    is_sending: bool,
    /// Time at which the transmitter becomes free.
    free_at_ps: u64,
    rate_bits_per_s: u64,
    delay_ps: u64,
    /// Frames sent here are lost.
    is_down: bool,
}

impl Port {
    const NONE: Port =
        Port { peer: None, is_sending: false, free_at_ps: 0, rate_bits_per_s: 0, delay_ps: 0, is_down: false };
}

/// A frame in flight to a port, with its arrival time.
struct Arrival {
    at: ArrivalTime,
    frame: Frame,
}

/// A time in whole nanoseconds, then a port: the order of events of an element. One word, for fast comparison; the time
/// has 48 bits, three days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ArrivalTime(u64);

impl ArrivalTime {
    const PORT_BITS: u32 = 16;

    const LAST_NS: u64 = u64::MAX >> Self::PORT_BITS;

    fn new(time_ns: u64, port: PortId) -> Self {
        ArrivalTime(time_ns.min(Self::LAST_NS) << Self::PORT_BITS | u64::from(port.0))
    }

    /// Before all events at this time.
    fn before(time_ns: u64) -> Self {
        ArrivalTime::new(time_ns, PortId(0))
    }

    fn time_ns(self) -> u64 {
        self.0 >> Self::PORT_BITS
    }

    fn port(self) -> PortId {
        PortId(self.0 as u16)
    }
}

/// Buffers that are reused.
#[derive(Default)]
struct Buffers {
    /// Frames that arrive at an element within the window.
    arrived: Vec<Option<Frame>>,
    /// Their order: time, and position in `arrived`, where the frames of one link are in order.
    order: Vec<(ArrivalTime, u32)>,
    batch: Vec<Frame>,
    ready: Vec<PortId>,
}

impl<S: SimElement> Engine<S> {
    /// No elements, at the origin of time, with a pool of at most `chunks` chunks of each size.
    pub(super) fn new(chunks: usize) -> Self {
        Engine {
            now_ns: 0,
            pool: Pool::new(chunks),
            elements: Vec::new(),
            next_ns: Vec::new(),
            arrivals: Vec::new(),
            lookahead_ns: NEVER_NS,
            hops: 0,
            dropped_for_memory: 0,
            lost: 0,
            buffers: Buffers::default(),
        }
    }

    /// Adds an element.
    pub(super) fn add(&mut self, element: S) -> ElementId {
        self.elements.push(Attached { element, ports: Vec::new(), sending: Vec::new(), called_ns: 0 });
        self.next_ns.push(NEVER_NS);
        self.arrivals.push(Vec::new());
        ElementId::of_position(self.elements.len() - 1)
    }

    /// Connects two ports, which must not have a link yet. The delay must be more than 0.
    pub(super) fn connect(&mut self, one: ElementPort, other: ElementPort, model: LinkModel) {
        self.lookahead_ns = self.lookahead_ns.min(model.delay_ns);
        for (from, to) in [(one, other), (other, one)] {
            let ports = &mut self.elements[from.0.position()].ports;
            if ports.len() <= from.1.index() {
                ports.resize(from.1.index() + 1, Port::NONE);
            }
            ports[from.1.index()] = Port {
                peer: Some((to.0.position() as u32, to.1)),
                rate_bits_per_s: model.rate_bits_per_s,
                delay_ps: model.delay_ns * PS_PER_NS,
                ..Port::NONE
            };
        }
    }

    /// An element.
    pub(super) fn element(&self, id: ElementId) -> &S {
        &self.elements[id.position()].element
    }

    /// Lets `action` change an element, and processes its output.
    pub(super) fn with<R>(&mut self, id: ElementId, action: impl FnOnce(&mut S, Instant, &mut Pool) -> R) -> R {
        let (position, now_ns) = (id.position(), self.now_ns);
        let result = action(&mut self.elements[position].element, Instant::from_ns(now_ns), &mut self.pool);
        self.process_output(position, now_ns);
        let coming_ns = self.arrivals[position].iter().map(|arrivals| arrivals.at.time_ns()).min();
        self.next_ns[position] = self.elements[position].next_ns().min(coming_ns.unwrap_or(NEVER_NS));
        result
    }

    /// Frames received by any element.
    pub(super) fn hops(&self) -> u64 {
        self.hops
    }

    /// Sets whether a port's outgoing direction is down. Frames in flight arrive.
    pub(super) fn set_down(&mut self, (element, port): ElementPort, is_down: bool) {
        if let Some(port) = self.elements[element.position()].ports.get_mut(port.index()) {
            port.is_down = is_down;
        }
    }

    /// Frames sent by ports that were down.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Frames dropped because the pool had no free chunk.
    pub(super) fn dropped_for_memory(&self) -> u64 {
        self.dropped_for_memory
    }

    /// Processes all events before a time and advances the clock to it.
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
                    self.process(position, window_end_ns);
                }
            }
            self.now_ns = window_end_ns;
        }
        self.now_ns = self.now_ns.max(end_ns);
    }

    /// Processes all events of an element before a time.
    fn process(&mut self, position: usize, end_ns: u64) {
        let mut buffers = std::mem::take(&mut self.buffers);
        let later_ns = self.gather(position, end_ns, &mut buffers);
        let mut arrivals = buffers.order.iter().copied().peekable();
        loop {
            let arrival_ns = arrivals.peek().map_or(NEVER_NS, |(at, _)| at.time_ns());
            let attached = &mut self.elements[position];
            let free_ns = attached.next_free_ns();
            let now_ns = arrival_ns.min(free_ns).min(attached.deadline_ns());
            if now_ns >= end_ns {
                break;
            }
            if arrival_ns == now_ns {
                let Some((at, index)) = arrivals.next() else { break };
                buffers.batch.extend(buffers.arrived[index as usize].take());
                while let Some((_, index)) = arrivals.next_if(|(other, _)| *other == at) {
                    buffers.batch.extend(buffers.arrived[index as usize].take());
                }
                attached.element.receive(Instant::from_ns(now_ns), at.port(), &mut buffers.batch, &mut self.pool);
                self.process_output_with(position, now_ns, &mut buffers.ready);
            } else if free_ns == now_ns {
                if let Some(port) = attached.pop_free() {
                    let reacts = attached.element.reacts_to_departures();
                    self.transmit(position, port, now_ns);
                    if reacts {
                        self.process_output_with(position, now_ns, &mut buffers.ready);
                    }
                }
            } else {
                attached.element.tick(Instant::from_ns(now_ns), &mut self.pool);
                self.process_output_with(position, now_ns, &mut buffers.ready);
            }
        }
        self.buffers = buffers;
        self.next_ns[position] = self.elements[position].next_ns().min(later_ns);
    }

    /// Takes the frames that arrive at an element before a time, sorted. Returns the arrival time of the next one.
    fn gather(&mut self, position: usize, end_ns: u64, buffers: &mut Buffers) -> u64 {
        buffers.arrived.clear();
        buffers.order.clear();
        let copies = self.elements[position].element.wants_driver_layout();
        let end = ArrivalTime::before(end_ns);
        let mut later_ns = NEVER_NS;
        let is_due = |arrivals: &mut Arrival| {
            if arrivals.at >= end {
                later_ns = later_ns.min(arrivals.at.time_ns());
            }
            arrivals.at < end
        };
        for Arrival { at, frame } in self.arrivals[position].extract_if(.., is_due) {
            let frame = if copies { frame.across_wire(&mut self.pool) } else { Some(frame) };
            self.dropped_for_memory += u64::from(frame.is_none());
            buffers.order.push((at, buffers.arrived.len() as u32));
            buffers.arrived.push(frame);
        }
        self.hops += buffers.order.len() as u64;
        buffers.order.sort_unstable();
        self.prefetch(position, &buffers.arrived);
        later_ns
    }

    /// Prefetches the memory that the processing of the arrived frames needs, so that cache misses overlap. For few
    /// frames it is not worthwhile.
    fn prefetch(&self, position: usize, arrived: &[Option<Frame>]) {
        let attached = &self.elements[position];
        let mut sum = 0;
        for frame in arrived.iter().flatten() {
            sum ^= frame.head(&self.pool).first().copied().unwrap_or_default();
        }
        std::hint::black_box(sum);
        if 2 * arrived.len() >= attached.ports.len() {
            std::hint::black_box(attached.ports.iter().fold(0, |sum, port| sum ^ port.free_at_ps));
            attached.element.prefetch(arrived.iter().flatten(), &self.pool);
        }
    }

    fn process_output(&mut self, position: usize, now_ns: u64) {
        let mut ready = std::mem::take(&mut self.buffers.ready);
        self.process_output_with(position, now_ns, &mut ready);
        self.buffers.ready = ready;
    }

    /// Transmits on the ports that the previous call has made ready.
    fn process_output_with(&mut self, position: usize, now_ns: u64, ready: &mut Vec<PortId>) {
        let attached = &mut self.elements[position];
        attached.called_ns = now_ns;
        attached.element.take_ready(ready);
        for port in ready.drain(..) {
            let is_idle = |port: &Port| port.peer.is_some() && !port.is_sending;
            if self.elements[position].ports.get(port.index()).is_some_and(is_idle) {
                self.transmit(position, port, now_ns);
            }
        }
    }

    /// Sends the next frame of a port that is idle, if there is one.
    #[inline]
    fn transmit(&mut self, position: usize, number: PortId, now_ns: u64) {
        let attached = &mut self.elements[position];
        let port = &mut attached.ports[number.index()];
        let Some((peer, peer_port)) = port.peer else {
            return;
        };
        let Some(frame) = attached.element.dequeue(Instant::from_ns(now_ns), number, &mut self.pool) else {
            return;
        };
        // Events have whole nanoseconds. A transmitter that became free within the last one continues from the exact
        // time, otherwise each frame would cost a fraction of a nanosecond.
        let now_ps = now_ns * PS_PER_NS;
        let start_ps = if now_ps < port.free_at_ps + PS_PER_NS { port.free_at_ps } else { now_ps };
        port.free_at_ps = start_ps + transmission_ps(frame.len(), port.rate_bits_per_s);
        port.is_sending = true;
        let arrival_ns = (port.free_at_ps + port.delay_ps).div_ceil(PS_PER_NS);
        let free = ArrivalTime::new(port.free_at_ps.div_ceil(PS_PER_NS), number);
        let is_down = port.is_down;
        attached.push_sending(free);
        if is_down {
            self.lost += 1;
            frame.release(&mut self.pool);
            return;
        }
        self.arrivals[peer as usize].push(Arrival { at: ArrivalTime::new(arrival_ns, peer_port), frame });
        let next_ns = &mut self.next_ns[peer as usize];
        *next_ns = (*next_ns).min(arrival_ns);
    }
}

impl<S: SimElement> Attached<S> {
    /// Time at which the first sending port becomes free.
    #[inline]
    fn next_free_ns(&self) -> u64 {
        self.sending.last().map_or(NEVER_NS, |at| at.time_ns())
    }

    /// Removes the first port that becomes free.
    #[inline]
    fn pop_free(&mut self) -> Option<PortId> {
        let port = self.sending.pop()?.port();
        self.ports[port.index()].is_sending = false;
        Some(port)
    }

    /// Adds a sending port.
    #[inline]
    fn push_sending(&mut self, free: ArrivalTime) {
        let place = self.sending.iter().position(|other| *other < free).unwrap_or(self.sending.len());
        self.sending.insert(place, free);
    }

    /// Time of the element's next own event.
    fn next_ns(&self) -> u64 {
        self.next_free_ns().min(self.deadline_ns())
    }

    /// The element's deadline. Time advances even if a tick does not move it.
    #[inline]
    fn deadline_ns(&self) -> u64 {
        self.element.next_deadline().map_or(NEVER_NS, |wanted| wanted.as_ns().max(self.called_ns + 1))
    }
}
