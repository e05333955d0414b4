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
//! The result is the same as event by event, but the state of an element is fetched once for some dozens of frames: in
//! a fabric of a thousand hosts these cache misses dominate the run time.

use srdma_frame::{Frame, Pool, PortId};
use srdma_sim::link::{LinkModel, transmission_ps};
use srdma_sim::network::{ElementId, Place, Station};
use srdma_wire::Instant;
use srdma_wire::units::PS_PER_NS;

const NEVER_NS: u64 = u64::MAX;

/// Elements, links, and the time.
///
/// At one instant frames arrive first at an element, then its wires become free, then its deadline comes; each in the
/// order of its ports.
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
    starved: u64,
    lost: u64,
    buffers: Buffers,
}

struct Attached<S> {
    station: S,
    ports: Vec<Port>,
    /// Times at which ports that send become free, the latest first: idle ports are not inspected.
    sending: Vec<Moment>,
    /// Time of the last call.
    called_ns: u64,
}

/// A port of an element, as its link sees it.
#[derive(Clone, Copy)]
struct Port {
    /// The other end; none, if it has no link.
    peer: Option<(u32, PortId)>,
    /// It is in the list of those that send.
    is_sending: bool,
    /// Time at which the transmitter has sent what it was given.
    free_at_ps: u64,
    rate_bits_per_s: u64,
    delay_ps: u64,
    /// Frames sent here are lost.
    is_cut: bool,
}

impl Port {
    const NONE: Port =
        Port { peer: None, is_sending: false, free_at_ps: 0, rate_bits_per_s: 0, delay_ps: 0, is_cut: false };
}

/// A frame in flight to a port, with its arrival time.
struct Arrival {
    moment: Moment,
    frame: Frame,
}

/// A time in whole nanoseconds, then a port: in the order in which the ports of an element have their failure_schedule.
/// One word, so that moments are compared at once; the time has 48 bits, three days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u64);

impl Moment {
    const PORT_BITS: u32 = 16;

    const LAST_NS: u64 = u64::MAX >> Self::PORT_BITS;

    fn new(time_ns: u64, port: PortId) -> Self {
        Moment(time_ns.min(Self::LAST_NS) << Self::PORT_BITS | u64::from(port.0))
    }

    /// Before everything at this time.
    fn before(time_ns: u64) -> Self {
        Moment::new(time_ns, PortId(0))
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
    /// In what order: when, and place in `arrived`, where those of one wire are in theirs.
    order: Vec<(Moment, u32)>,
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
            arrivals: Vec::new(),
            lookahead_ns: NEVER_NS,
            hops: 0,
            starved: 0,
            lost: 0,
            buffers: Buffers::default(),
        }
    }

    pub(super) fn add(&mut self, station: S) -> ElementId {
        self.elements.push(Attached { station, ports: Vec::new(), sending: Vec::new(), called_ns: 0 });
        self.next_ns.push(NEVER_NS);
        self.arrivals.push(Vec::new());
        ElementId::of_position(self.elements.len() - 1)
    }

    /// Joins two ports, each of which has no link yet. The delay is more than 0.
    pub(super) fn connect(&mut self, one: Place, other: Place, model: LinkModel) {
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

    /// An element, to look at.
    pub(super) fn element(&self, id: ElementId) -> &S {
        &self.elements[id.position()].station
    }

    /// Lets `action` change an element, and does what follows from it.
    pub(super) fn with<R>(&mut self, id: ElementId, action: impl FnOnce(&mut S, Instant, &mut Pool) -> R) -> R {
        let (position, now_ns) = (id.position(), self.now_ns);
        let result = action(&mut self.elements[position].station, Instant::from_ns(now_ns), &mut self.pool);
        self.serve(position, now_ns);
        let coming_ns = self.arrivals[position].iter().map(|arrivals| arrivals.moment.time_ns()).min();
        self.next_ns[position] = self.elements[position].next_ns().min(coming_ns.unwrap_or(NEVER_NS));
        result
    }

    /// Frames that have arrived anywhere.
    pub(super) fn hops(&self) -> u64 {
        self.hops
    }

    /// Fails or repairs a port's outgoing direction. Frames in flight arrive.
    pub(super) fn set_cut(&mut self, (element, port): Place, is_cut: bool) {
        if let Some(port) = self.elements[element.position()].ports.get_mut(port.index()) {
            port.is_cut = is_cut;
        }
    }

    /// Frames that were sent by ports that are cut.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Frames that were thrown away because the pool had no chunk left for them.
    pub(super) fn starved(&self) -> u64 {
        self.starved
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
            let arrival_ns = arrivals.peek().map_or(NEVER_NS, |(moment, _)| moment.time_ns());
            let attached = &mut self.elements[position];
            let free_ns = attached.next_free_ns();
            let now_ns = arrival_ns.min(free_ns).min(attached.deadline_ns());
            if now_ns >= end_ns {
                break;
            }
            if arrival_ns == now_ns {
                let Some((moment, place)) = arrivals.next() else { break };
                buffers.batch.extend(buffers.arrived[place as usize].take());
                while let Some((_, place)) = arrivals.next_if(|(other, _)| *other == moment) {
                    buffers.batch.extend(buffers.arrived[place as usize].take());
                }
                attached.station.receive(Instant::from_ns(now_ns), moment.port(), &mut buffers.batch, &mut self.pool);
                self.serve_with(position, now_ns, &mut buffers.ready);
            } else if free_ns == now_ns {
                if let Some(port) = attached.pop_free() {
                    let answers = attached.station.answers_departures();
                    self.transmit(position, port, now_ns);
                    if answers {
                        self.serve_with(position, now_ns, &mut buffers.ready);
                    }
                }
            } else {
                attached.station.tick(Instant::from_ns(now_ns), &mut self.pool);
                self.serve_with(position, now_ns, &mut buffers.ready);
            }
        }
        self.buffers = buffers;
        self.next_ns[position] = self.elements[position].next_ns().min(later_ns);
    }

    /// Takes the frames that arrive at an element before a time, sorted. Returns the arrival time of the next one.
    fn gather(&mut self, position: usize, end_ns: u64, buffers: &mut Buffers) -> u64 {
        buffers.arrived.clear();
        buffers.order.clear();
        let copy = self.elements[position].station.wants_driver_layout();
        let end = Moment::before(end_ns);
        let mut later_ns = NEVER_NS;
        let is_due = |arrivals: &mut Arrival| {
            if arrivals.moment >= end {
                later_ns = later_ns.min(arrivals.moment.time_ns());
            }
            arrivals.moment < end
        };
        for Arrival { moment, frame } in self.arrivals[position].extract_if(.., is_due) {
            let frame = if copy { frame.across_wire(&mut self.pool) } else { Some(frame) };
            self.starved += u64::from(frame.is_none());
            buffers.order.push((moment, buffers.arrived.len() as u32));
            buffers.arrived.push(frame);
        }
        self.hops += buffers.order.len() as u64;
        buffers.order.sort_unstable();
        self.fetch(position, &buffers.arrived);
        later_ns
    }

    /// Prefetches the memory that the processing of the arrived frames needs, so that cache misses overlap. For few
    /// frames it is not worthwhile.
    fn fetch(&self, position: usize, arrived: &[Option<Frame>]) {
        let attached = &self.elements[position];
        let mut sum = 0;
        for frame in arrived.iter().flatten() {
            sum ^= frame.head(&self.pool).first().copied().unwrap_or_default();
        }
        std::hint::black_box(sum);
        if 2 * arrived.len() >= attached.ports.len() {
            std::hint::black_box(attached.ports.iter().fold(0, |sum, port| sum ^ port.free_at_ps));
            attached.station.fetch(arrived.iter().flatten(), &self.pool);
        }
    }

    fn serve(&mut self, position: usize, now_ns: u64) {
        let mut ready = std::mem::take(&mut self.buffers.ready);
        self.serve_with(position, now_ns, &mut ready);
        self.buffers.ready = ready;
    }

    /// Transmits on the ports that the previous call has made ready.
    fn serve_with(&mut self, position: usize, now_ns: u64, ready: &mut Vec<PortId>) {
        let attached = &mut self.elements[position];
        attached.called_ns = now_ns;
        attached.station.take_ready(ready);
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
        let Some(frame) = attached.station.dequeue(Instant::from_ns(now_ns), number, &mut self.pool) else {
            return;
        };
        // Events happen at whole nanoseconds. A transmitter that became free within the last one goes on from where it
        // was, or the rate would lose a fraction of a nanosecond with each frame.
        let now_ps = now_ns * PS_PER_NS;
        let start_ps = if now_ps < port.free_at_ps + PS_PER_NS { port.free_at_ps } else { now_ps };
        port.free_at_ps = start_ps + transmission_ps(frame.len(), port.rate_bits_per_s);
        port.is_sending = true;
        let arrival_ns = (port.free_at_ps + port.delay_ps).div_ceil(PS_PER_NS);
        let free = Moment::new(port.free_at_ps.div_ceil(PS_PER_NS), number);
        let is_cut = port.is_cut;
        attached.push_sending(free);
        if is_cut {
            self.lost += 1;
            frame.release(&mut self.pool);
            return;
        }
        self.arrivals[peer as usize].push(Arrival { moment: Moment::new(arrival_ns, peer_port), frame });
        let next_ns = &mut self.next_ns[peer as usize];
        *next_ns = (*next_ns).min(arrival_ns);
    }
}

impl<S: Station> Attached<S> {
    /// When the first port that sends becomes free.
    #[inline]
    fn next_free_ns(&self) -> u64 {
        self.sending.last().map_or(NEVER_NS, |moment| moment.time_ns())
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
    fn push_sending(&mut self, free: Moment) {
        let place = self.sending.iter().position(|other| *other < free).unwrap_or(self.sending.len());
        self.sending.insert(place, free);
    }

    /// When something happens to it of itself.
    fn next_ns(&self) -> u64 {
        self.next_free_ns().min(self.deadline_ns())
    }

    /// When the element wants to be ticked. One whose deadline does not move when it is ticked must not stop time.
    #[inline]
    fn deadline_ns(&self) -> u64 {
        self.station.next_deadline().map_or(NEVER_NS, |wanted| wanted.as_ns().max(self.called_ns + 1))
    }
}
