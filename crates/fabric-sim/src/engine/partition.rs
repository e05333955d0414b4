//! A part of a fabric that one thread simulates: elements, the links between them, and the pool of their frames.
//!
//! A frame arrives at least the delay of its link after it was sent. Within the shortest delay of a partition's links,
//! events of different elements are therefore independent: time is divided into windows of that length, and each
//! window is processed element by element, the events of each element in order.
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

use super::NEVER_NS;
use super::crossing::Parcel;
use super::port::{ArrivalTime, Port};
use srdma_frame::{Chunk, Frame, Pool, PortId};
use srdma_sim::link::transmission_ps;
use srdma_sim::network::SimElement;
use srdma_wire::Instant;
use srdma_wire::units::PS_PER_NS;

/// Elements, the ends of their links, and the clock.
///
/// Among the events of an element at one time, arrivals come first, then transmitters that become free, then its
/// deadline; each in the order of ports.
pub(super) struct Partition<S> {
    /// Its position among the partitions.
    number: u16,
    now_ns: u64,
    pool: Pool,
    /// A chunk with octets that every partition has, which frames share.
    page: Option<Chunk>,
    elements: Vec<Attached<S>>,
    /// Earliest event of each element.
    next_ns: Vec<u64>,
    /// Frames in flight to each element.
    arrivals: Vec<Vec<Arrival>>,
    /// The shortest delay of a link between its elements.
    lookahead_ns: u64,
    /// Frames to other partitions, by partition.
    outgoing: Vec<Parcel>,
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

/// A frame in flight to a port, with its arrival time.
struct Arrival {
    at: ArrivalTime,
    frame: Frame,
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

impl<S: SimElement> Partition<S> {
    /// The partition with a number of `partitions`, at the origin of time, with a pool of at most `chunks` chunks of
    /// each size, one of which begins with `page`.
    pub(super) fn new(number: u16, partitions: usize, chunks: usize, page: &[u8]) -> Self {
        let mut pool = Pool::new(chunks);
        let page_chunk = pool.allocate_large();
        if let Some(chunk) = page_chunk {
            pool.octets_mut(chunk)[..page.len()].copy_from_slice(page);
        }
        Partition {
            number,
            now_ns: 0,
            pool,
            page: page_chunk,
            elements: Vec::new(),
            next_ns: Vec::new(),
            arrivals: Vec::new(),
            lookahead_ns: NEVER_NS,
            outgoing: (0..partitions).map(|_| Parcel::default()).collect(),
            hops: 0,
            dropped_for_memory: 0,
            lost: 0,
            buffers: Buffers::default(),
        }
    }

    /// The chunk of the page.
    pub(super) fn page(&self) -> Option<Chunk> {
        self.page
    }

    /// Adds an element; returns its position. Its deadline counts from the first call of [`Partition::with`], or the
    /// first frame.
    pub(super) fn add(&mut self, element: S) -> usize {
        self.elements.push(Attached { element, ports: Vec::new(), sending: Vec::new(), called_ns: 0 });
        self.next_ns.push(NEVER_NS);
        self.arrivals.push(Vec::new());
        self.elements.len() - 1
    }

    /// Connects a port of an element, which must not have a link yet. `is_inner`: the peer is in this partition.
    pub(super) fn connect(&mut self, element: usize, number: PortId, port: Port, is_inner: bool) {
        if is_inner {
            self.lookahead_ns = self.lookahead_ns.min(port.delay_ps / PS_PER_NS);
        }
        let ports = &mut self.elements[element].ports;
        if ports.len() <= number.index() {
            ports.resize(number.index() + 1, Port::NONE);
        }
        ports[number.index()] = port;
    }

    /// An element.
    pub(super) fn element(&self, position: usize) -> &S {
        &self.elements[position].element
    }

    /// Lets `action` change an element, and processes its output.
    pub(super) fn with<R>(&mut self, position: usize, action: impl FnOnce(&mut S, Instant, &mut Pool) -> R) -> R {
        let now_ns = self.now_ns;
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
    pub(super) fn set_down(&mut self, element: usize, port: PortId, is_down: bool) {
        if let Some(port) = self.elements[element].ports.get_mut(port.index()) {
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

    /// Time of the earliest event, without frames to other partitions.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns.iter().copied().min().unwrap_or(NEVER_NS)
    }

    /// Frames to another partition.
    pub(super) fn outgoing(&mut self, partition: usize) -> &mut Parcel {
        &mut self.outgoing[partition]
    }

    /// Takes in frames from another partition, and empties the parcel.
    pub(super) fn take_in(&mut self, parcel: &mut Parcel) {
        let Partition { pool, page, arrivals, next_ns, dropped_for_memory, .. } = self;
        parcel.unpack(pool, *page, |element, at, frame| match frame {
            Some(frame) => {
                arrivals[element].push(Arrival { at, frame });
                next_ns[element] = next_ns[element].min(at.time_ns());
            }
            None => *dropped_for_memory += 1,
        });
    }

    /// Processes all events before a time and advances the clock to it. No frame of another partition may arrive
    /// before that time, except those that were taken in.
    pub(super) fn proceed_until(&mut self, end_ns: u64) {
        loop {
            let next_ns = self.next_ns();
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
        let Some(peer) = port.peer else {
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
        let at = ArrivalTime::new(arrival_ns, peer.port);
        if peer.partition == self.number {
            self.arrivals[peer.element as usize].push(Arrival { at, frame });
            let next_ns = &mut self.next_ns[peer.element as usize];
            *next_ns = (*next_ns).min(arrival_ns);
        } else {
            self.outgoing[usize::from(peer.partition)].pack(peer.element, at, &frame, &self.pool, self.page);
            frame.release(&mut self.pool);
        }
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
