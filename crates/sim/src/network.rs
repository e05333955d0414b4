//! Elements connected by links, in virtual time.

use crate::capture::LinkCapture;
use crate::event_queue::EventQueue;
use crate::impairment;
use crate::in_flight::InFlight;
use crate::link::{Counters, LinkFaults, LinkModel, Transmission, Wire};
use crate::replay_buffer::ReplayBuffer;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::io::{self, Write};

/// An element of a simulated network.
pub trait SimElement: Element {
    /// Whether frames must be laid out as drivers deliver them. An element that accepts any layout, because it only
    /// reads, saves a copy of every frame.
    fn wants_driver_layout(&self) -> bool;

    /// Whether sending a frame at one port may cause another frame at another port; the element is then polled after
    /// each.
    fn reacts_to_departures(&self) -> bool {
        false
    }

    /// Prefetches what processing these frames will read. Changes nothing.
    fn prefetch<'f>(&self, _frames: impl Iterator<Item = &'f Frame>, _pool: &Pool) {}
}

/// An element of a [`Network`], by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId(u32);

impl ElementId {
    /// The element at a position, counted from 0 as they were added.
    pub fn of_position(position: usize) -> Self {
        ElementId(position as u32)
    }

    /// Its position, counted from 0 as elements were added.
    pub fn position(self) -> usize {
        self.0 as usize
    }
}

/// A link of a [`Network`], by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

/// A port of an element.
pub type ElementPort = (ElementId, PortId);

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the upper end to the lower.
    Down,
    /// From the lower end to the upper.
    Up,
}

/// Elements, links, and the event queue.
///
/// A run is determined by the elements, the order in which they and the links were added, and the seed. Among events of
/// one time, arrivals come first, then transmitters that become free, then deadlines; each in the order of the links'
/// and elements' positions.
pub struct Network<S> {
    seed: u64,
    /// Maximum number of chunks of the pool, of each size.
    chunks: usize,
    now: Instant,
    events: EventQueue<Event>,
    pool: Pool,
    elements: Vec<AttachedElement<S>>,
    /// Two for each link: down, then up.
    directions: Vec<DirectedLink>,
    names: Vec<String>,
    in_flight: InFlight,
    frames: Vec<Frame>,
    ready: Vec<PortId>,
    /// Memory for copies of frames.
    copy: Vec<u8>,
    hops: u64,
    dropped_for_memory: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A frame arrives: its slot in `in_flight`.
    Arrival(u32),
    /// The transmitter of a directed link becomes free.
    TransmitterFree(u32),
    /// The deadline of an element.
    Deadline(u32),
}

impl Event {
    /// Order of events at one instant.
    fn rank(self, position: u32) -> u32 {
        match self {
            Event::Arrival(_) => position,
            Event::TransmitterFree(_) => 1 << 22 | position,
            Event::Deadline(_) => 2 << 22 | position,
        }
    }
}

struct AttachedElement<S> {
    element: S,
    /// The outgoing directed link of each port.
    ports: Vec<Option<u32>>,
    /// The earliest scheduled [`Event::Deadline`].
    deadline: Option<Instant>,
}

struct DirectedLink {
    from: ElementPort,
    to: ElementPort,
    wire: Wire,
    sending: bool,
    capture: Option<LinkCapture>,
    replay_buffer: Option<ReplayBuffer>,
}

#[allow(missing_docs, reason = "the names say it")]
impl<S: SimElement> Network<S> {
    /// An empty network at the origin of time, whose frames lie in at most `chunks` chunks of each size of the pool.
    pub fn new(seed: u64, chunks: usize) -> Self {
        Network {
            seed,
            chunks,
            now: Instant::ZERO,
            events: EventQueue::new(),
            pool: Pool::new(chunks),
            elements: Vec::new(),
            directions: Vec::new(),
            names: Vec::new(),
            in_flight: InFlight::default(),
            frames: Vec::new(),
            ready: Vec::new(),
            copy: Vec::new(),
            hops: 0,
            dropped_for_memory: 0,
        }
    }

    /// Empties the network and returns to the origin of time. Its memory is reused.
    pub fn reset(&mut self, seed: u64) {
        for frame in self.in_flight.drain() {
            frame.release(&mut self.pool);
        }
        self.seed = seed;
        self.now = Instant::ZERO;
        self.events.clear();
        self.elements.clear();
        self.directions.clear();
        self.names.clear();
        (self.hops, self.dropped_for_memory) = (0, 0);
        if self.pool.in_use() > 0 {
            self.pool = Pool::new(self.chunks);
        }
    }

    /// Adds an element.
    pub fn add(&mut self, element: S) -> ElementId {
        self.elements.push(AttachedElement { element, ports: Vec::new(), deadline: None });
        ElementId(self.elements.len() as u32 - 1)
    }

    /// Connects two ports, which must not have a link yet. `name` selects the random stream of the link's faults and
    /// must be unique. The direction from `upper` to `lower` is *down*.
    pub fn connect(&mut self, name: &str, upper: ElementPort, lower: ElementPort, model: LinkModel) -> LinkId {
        for (direction, (from, to)) in [("down", (upper, lower)), ("up", (lower, upper))] {
            let rng = Stream::new(self.seed, &format!("{name} {direction}"));
            let ports = &mut self.elements[from.0.0 as usize].ports;
            if ports.len() <= from.1.index() {
                ports.resize(from.1.index() + 1, None);
            }
            ports[from.1.index()] = Some(self.directions.len() as u32);
            let wire = Wire::new(model, rng);
            self.directions.push(DirectedLink { from, to, wire, sending: false, capture: None, replay_buffer: None });
        }
        self.names.push(name.to_owned());
        LinkId(self.names.len() as u32 - 1)
    }

    /// Captures every frame that enters the link, lost ones included, to `output` as pcapng, with one interface for
    /// each direction, named `down` and `up`.
    ///
    /// # Errors
    ///
    /// Those of `output`.
    pub fn capture(&mut self, link: LinkId, output: Box<dyn Write>, down: &str, up: &str) -> io::Result<()> {
        let [down, up] = LinkCapture::both_directions(output, down, up)?;
        let first = link.0 as usize * 2;
        self.directions[first].capture = Some(down);
        self.directions[first + 1].capture = Some(up);
        Ok(())
    }

    /// Replaces the model of one direction of a link.
    pub fn set_model(&mut self, link: LinkId, direction: Direction, model: LinkModel) {
        self.directed_mut(link, direction).wire.model = model;
    }

    /// Faults of one direction of a link.
    pub fn faults_mut(&mut self, link: LinkId, direction: Direction) -> &mut LinkFaults {
        &mut self.directed_mut(link, direction).wire.faults
    }

    /// Time before which delayed frames keep others from arriving, in either direction of a link.
    pub fn delayed_until(&self, link: LinkId) -> Instant {
        let first = link.0 as usize * 2;
        self.directions[first].wire.delayed_until().max(self.directions[first + 1].wire.delayed_until())
    }

    /// Keeps the latest `frames` frames of one direction of a link for replay.
    pub fn keep_for_replay(&mut self, link: LinkId, direction: Direction, frames: usize) {
        self.directed_mut(link, direction).replay_buffer = Some(ReplayBuffer::with_limit(frames));
    }

    /// Replays up to `frames` kept frames, the newest first, one per nanosecond. Returns their number.
    pub fn replay(&mut self, link: LinkId, direction: Direction, frames: usize) -> usize {
        let number = directed_index(link, direction);
        let direction = &self.directions[number];
        let Some(replay_buffer) = &direction.replay_buffer else {
            return 0;
        };
        let first = self.now.after_ns(1 + direction.wire.model.delay_ns);
        let frames: Vec<Frame> = replay_buffer
            .newest_first()
            .take(frames)
            .filter_map(|octets| Frame::from_octets(octets, &mut self.pool))
            .collect();
        let count = frames.len();
        for (frame, behind) in frames.into_iter().zip(0..) {
            let arrival = Event::Arrival(self.in_flight.insert(frame, number as u32));
            self.schedule(first.after_ns(behind), number as u32, arrival);
        }
        count
    }

    /// The frames kept for replay, the newest first.
    pub fn kept_for_replay(&self, link: LinkId, direction: Direction) -> impl Iterator<Item = &[u8]> {
        let buffer = self.directions[directed_index(link, direction)].replay_buffer.as_ref();
        buffer.into_iter().flat_map(ReplayBuffer::newest_first)
    }

    /// Makes a frame of these octets arrive at a port.
    pub fn inject(&mut self, to: ElementPort, octets: &[u8]) {
        let (id, port) = to;
        match Frame::from_octets(octets, &mut self.pool) {
            Some(frame) => {
                let mut frames = std::mem::take(&mut self.frames);
                frames.push(frame);
                self.elements[id.0 as usize].element.receive(self.now, port, &mut frames, &mut self.pool);
                self.frames = frames;
                self.process_output(id);
            }
            None => self.dropped_for_memory += 1,
        }
    }

    fn directed_mut(&mut self, link: LinkId, direction: Direction) -> &mut DirectedLink {
        &mut self.directions[directed_index(link, direction)]
    }

    /// Advances the clock; no event before `time` may be pending.
    pub fn advance_to(&mut self, time: Instant) {
        self.now = self.now.max(time);
    }

    /// Ends all captures.
    ///
    /// # Errors
    ///
    /// The first error that any output had since its capture began.
    pub fn finish_captures(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for direction in &mut self.directions {
            if let Some(capture) = direction.capture.take() {
                result = result.and(capture.finish());
            }
        }
        result
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// An element.
    pub fn element(&self, id: ElementId) -> &S {
        &self.elements[id.0 as usize].element
    }

    /// Lets `action` change an element, and processes its output.
    pub fn with<R>(&mut self, id: ElementId, action: impl FnOnce(&mut S, Instant, &mut Pool) -> R) -> R {
        let result = action(&mut self.elements[id.0 as usize].element, self.now, &mut self.pool);
        self.process_output(id);
        result
    }

    /// Counters of a link: down, and up.
    pub fn counters(&self, link: LinkId) -> [Counters; 2] {
        let first = link.0 as usize * 2;
        [self.directions[first].wire.counters, self.directions[first + 1].wire.counters]
    }

    pub fn name(&self, link: LinkId) -> &str {
        &self.names[link.0 as usize]
    }

    /// Frames received by any element.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Frames dropped because the pool had no free chunk.
    pub fn dropped_for_memory(&self) -> u64 {
        self.dropped_for_memory
    }

    /// Chunks of the pool in use.
    pub fn chunks_in_use(&self) -> usize {
        self.pool.in_use()
    }

    /// Processes events up to the first that concerns an element, unless it lies after `limit`. Returns the element;
    /// `None` if there is no such event.
    #[inline]
    pub fn step(&mut self, limit: Instant) -> Option<ElementId> {
        loop {
            let (time, event) = self.events.pop_until(limit)?;
            self.now = self.now.max(time);
            match event {
                Event::Arrival(slot) => return Some(self.arrive(slot)),
                Event::TransmitterFree(direction) => {
                    self.directions[direction as usize].sending = false;
                    if self.transmit(direction) {
                        self.process_output(self.directions[direction as usize].from.0);
                    }
                }
                Event::Deadline(element) => {
                    if let Some(element) = self.handle_deadline(ElementId(element), time) {
                        return Some(element);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, slot: u32) -> ElementId {
        let mut frames = std::mem::take(&mut self.frames);
        let (frame, direction) = self.in_flight.remove(slot);
        let (element, port) = self.directions[direction as usize].to;
        let copies = self.elements[element.0 as usize].element.wants_driver_layout();
        self.collect(frame, copies, &mut frames);
        while let Some(frame) = self.next_of_batch(direction) {
            self.collect(frame, copies, &mut frames);
        }
        self.elements[element.0 as usize].element.receive(self.now, port, &mut frames, &mut self.pool);
        self.frames = frames;
        self.process_output(element);
        element
    }

    /// Another frame that arrives over this directed link now, if that is the next event.
    fn next_of_batch(&mut self, direction: u32) -> Option<Frame> {
        let (now, in_flight) = (self.now, &self.in_flight);
        let event = self.events.pop_if(|time, event| match event {
            Event::Arrival(slot) => time == now && in_flight.direction(slot) == Some(direction),
            Event::TransmitterFree(_) | Event::Deadline(_) => false,
        });
        match event {
            Some(Event::Arrival(slot)) => Some(self.in_flight.remove(slot).0),
            Some(Event::TransmitterFree(_) | Event::Deadline(_)) | None => None,
        }
    }

    fn collect(&mut self, frame: Frame, copies: bool, frames: &mut Vec<Frame>) {
        self.hops += 1;
        let laid_out = if copies { frame.across_wire(&mut self.pool) } else { Some(frame) };
        match laid_out {
            Some(frame) => frames.push(frame),
            None => self.dropped_for_memory += 1,
        }
    }

    /// Ticks an element at its deadline; `None` if the deadline has moved since.
    fn handle_deadline(&mut self, id: ElementId, time: Instant) -> Option<ElementId> {
        let attached = &mut self.elements[id.0 as usize];
        if attached.deadline != Some(time) {
            return None;
        }
        attached.deadline = None;
        let due = attached.element.next_deadline().is_some_and(|deadline| deadline <= time);
        if due {
            attached.element.tick(time, &mut self.pool);
        }
        self.process_output(id);
        due.then_some(id)
    }

    /// Processes the output of an element after a call: frames to send, a deadline.
    #[inline]
    fn process_output(&mut self, id: ElementId) {
        let mut ready = std::mem::take(&mut self.ready);
        let mut has_sent = true;
        // Sending a frame may make another port ready.
        while std::mem::take(&mut has_sent) {
            self.elements[id.0 as usize].element.take_ready(&mut ready);
            for port in ready.drain(..) {
                let direction = self.elements[id.position()].ports.get(port.index()).copied().flatten();
                has_sent |= direction.is_some_and(|direction| self.transmit(direction));
            }
        }
        self.ready = ready;
        let attached = &mut self.elements[id.0 as usize];
        if let Some(wanted) = attached.element.next_deadline() {
            // Time advances even if a tick does not move the deadline of an element.
            let time = wanted.max(self.now.after_ns(1));
            if attached.deadline.is_none_or(|deadline| time < deadline) {
                attached.deadline = Some(time);
                self.schedule(time, id.0, Event::Deadline(id.0));
            }
        }
    }

    /// Sends the next frame over a directed link if its transmitter is free; returns whether it did.
    #[inline]
    fn transmit(&mut self, number: u32) -> bool {
        let direction = &mut self.directions[number as usize];
        let (element, port) = direction.from;
        let source = &mut self.elements[element.0 as usize].element;
        let next = if direction.sending { None } else { source.dequeue(self.now, port, &mut self.pool) };
        let Some(frame) = next else {
            return false;
        };
        if let Some(capture) = &mut direction.capture {
            capture.write(self.now, &frame, &self.pool);
        }
        if let Some(replay_buffer) = &mut direction.replay_buffer {
            replay_buffer.push(frame.pieces(&self.pool));
        }
        let transmission = direction.wire.send(self.now, frame.len());
        direction.sending = true;
        self.schedule(transmission.free_at, number, Event::TransmitterFree(number));
        self.deliver(frame, number, transmission);
        true
    }

    #[inline]
    fn schedule(&mut self, time: Instant, position: u32, event: Event) {
        self.events.push(time, event.rank(position), event);
    }

    fn deliver(&mut self, frame: Frame, direction: u32, transmission: Transmission) {
        let Some(frame) = self.impair(frame, transmission) else {
            return;
        };
        if let Some(time) = transmission.duplicate_arrival {
            self.copy.clear();
            frame.pieces(&self.pool).for_each(|piece| self.copy.extend_from_slice(piece));
            match Frame::from_octets(&self.copy, &mut self.pool) {
                Some(copy) => {
                    let arrival = Event::Arrival(self.in_flight.insert(copy, direction));
                    self.schedule(time, direction, arrival);
                }
                None => self.dropped_for_memory += 1,
            }
        }
        match transmission.arrival {
            Some(time) => {
                let arrival = Event::Arrival(self.in_flight.insert(frame, direction));
                self.schedule(time, direction, arrival);
            }
            None => frame.release(&mut self.pool),
        }
    }

    /// The frame as it arrives; `None` if the pool has no free chunk for its copy.
    #[inline]
    fn impair(&mut self, frame: Frame, transmission: Transmission) -> Option<Frame> {
        if transmission.flipped_bit.is_none() && !transmission.is_marked {
            return Some(frame);
        }
        self.copy.clear();
        frame.pieces(&self.pool).for_each(|piece| self.copy.extend_from_slice(piece));
        frame.release(&mut self.pool);
        if transmission.is_marked {
            impairment::mark_ce(&mut self.copy);
        }
        if let Some(number) = transmission.flipped_bit {
            impairment::flip_bit(&mut self.copy, number);
        }
        let copy = Frame::from_octets(&self.copy, &mut self.pool);
        self.dropped_for_memory += u64::from(copy.is_none());
        copy
    }
}

fn directed_index(link: LinkId, direction: Direction) -> usize {
    link.0 as usize * 2 + usize::from(direction == Direction::Up)
}
