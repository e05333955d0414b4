//! Elements joined by links, in virtual time.

use crate::calendar::Calendar;
use crate::damage;
use crate::link::{Counters, Fate, LinkModel, Trouble, Wire};
use crate::record::Record;
use crate::tap::Tap;
use crate::travelling::Travelling;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::io::{self, Write};

/// An element of a simulated network.
pub trait Station: Element {
    /// Whether frames must lie as a driver hands them over. What takes any layout, because it only reads, saves the
    /// simulator a copy of every frame.
    fn wants_driver_layout(&self) -> bool;

    /// Whether a departing frame may cause another one at another port: then the element is called after each.
    fn answers_departures(&self) -> bool {
        false
    }

    /// Reads what it will take to work off many frames, so that it comes into the caches side by side. Changes nothing.
    fn fetch<'f>(&self, _frames: impl Iterator<Item = &'f Frame>, _pool: &Pool) {}
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
pub type Place = (ElementId, PortId);

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the upper end to the lower.
    Down,
    /// From the lower end to the upper.
    Up,
}

/// Elements, links, and what happens next.
///
/// Everything that happens follows from the elements, the order in which they and the links were added, and the seed.
/// At one instant frames arrive first, then wires become free, then deadlines come; each in the order of the links' and
/// elements' positions.
pub struct Network<S> {
    seed: u64,
    /// Chunks that the pool may have, of each size.
    chunks: usize,
    now: Instant,
    calendar: Calendar<Event>,
    pool: Pool,
    elements: Vec<Attached<S>>,
    /// Two for each link: down, then up.
    directions: Vec<Direction>,
    names: Vec<String>,
    travelling: Travelling,
    frames: Vec<Frame>,
    ready: Vec<PortId>,
    again: Vec<u8>,
    hops: u64,
    starved: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A frame arrives: its place in `travelling`.
    Arrival(u32),
    /// A direction can take the next frame.
    Free(u32),
    /// An element wants to be ticked.
    Deadline(u32),
}

impl Event {
    /// Order of events at one instant.
    fn rank(self, position: u32) -> u32 {
        match self {
            Event::Arrival(_) => position,
            Event::Free(_) => 1 << 22 | position,
            Event::Deadline(_) => 2 << 22 | position,
        }
    }
}

struct Attached<S> {
    station: S,
    /// The outgoing direction of each port.
    ports: Vec<Option<u32>>,
    /// The earliest [`Event::Deadline`] that is on its way.
    deadline: Option<Instant>,
}

struct Direction {
    from: Place,
    to: Place,
    wire: Wire,
    sending: bool,
    tap: Option<Tap>,
    record: Option<Record>,
}

#[allow(missing_docs, reason = "the names say it")]
impl<S: Station> Network<S> {
    /// An empty network at the origin of time, whose frames lie in at most `chunks` chunks of each size of the pool.
    pub fn new(seed: u64, chunks: usize) -> Self {
        Network {
            seed,
            chunks,
            now: Instant::ZERO,
            calendar: Calendar::new(),
            pool: Pool::new(chunks),
            elements: Vec::new(),
            directions: Vec::new(),
            names: Vec::new(),
            travelling: Travelling::default(),
            frames: Vec::new(),
            ready: Vec::new(),
            again: Vec::new(),
            hops: 0,
            starved: 0,
        }
    }

    /// Empties the network and goes back to the origin of time. Memory is kept for what comes next.
    pub fn reset(&mut self, seed: u64) {
        for (frame, _) in self.travelling.frames.drain(..).flatten() {
            frame.release(&mut self.pool);
        }
        self.travelling.free.clear();
        self.seed = seed;
        self.now = Instant::ZERO;
        self.calendar.clear();
        self.elements.clear();
        self.directions.clear();
        self.names.clear();
        (self.hops, self.starved) = (0, 0);
        if self.pool.in_use() > 0 {
            self.pool = Pool::new(self.chunks);
        }
    }

    pub fn add(&mut self, station: S) -> ElementId {
        self.elements.push(Attached { station, ports: Vec::new(), deadline: None });
        ElementId(self.elements.len() as u32 - 1)
    }

    /// Joins two ports, each of which has no link yet. `name` names the chances of the link's faults: use each once.
    /// The direction from `upper` to `lower` is *down*.
    pub fn connect(&mut self, name: &str, upper: Place, lower: Place, model: LinkModel) -> LinkId {
        for (direction, (from, to)) in [("down", (upper, lower)), ("up", (lower, upper))] {
            let chance = Stream::new(self.seed, &format!("{name} {direction}"));
            let ports = &mut self.elements[from.0.0 as usize].ports;
            if ports.len() <= from.1.index() {
                ports.resize(from.1.index() + 1, None);
            }
            ports[from.1.index()] = Some(self.directions.len() as u32);
            let wire = Wire::new(model, chance);
            self.directions.push(Direction { from, to, wire, sending: false, tap: None, record: None });
        }
        self.names.push(name.to_owned());
        LinkId(self.names.len() as u32 - 1)
    }

    /// Writes every frame that enters the link, lost ones included, to `output` as pcapng, with an interface for each
    /// direction: `down` and `up` are their names.
    ///
    /// # Errors
    ///
    /// Those of `output`.
    pub fn capture(&mut self, link: LinkId, output: Box<dyn Write>, down: &str, up: &str) -> io::Result<()> {
        let [down, up] = Tap::both_directions(output, down, up)?;
        let first = link.0 as usize * 2;
        self.directions[first].tap = Some(down);
        self.directions[first + 1].tap = Some(up);
        Ok(())
    }

    /// Sets the model of one direction of a link from now on.
    pub fn set_model(&mut self, link: LinkId, way: Way, model: LinkModel) {
        self.direction_mut(link, way).wire.model = model;
    }

    /// Faults of one direction of a link, to be changed from now on.
    pub fn trouble_mut(&mut self, link: LinkId, way: Way) -> &mut Trouble {
        &mut self.direction_mut(link, way).wire.trouble
    }

    /// Until when frames that were held back keep others from arriving, in either direction of a link.
    pub fn held_back_until(&self, link: LinkId) -> Instant {
        let first = link.0 as usize * 2;
        self.directions[first].wire.held_back_until().max(self.directions[first + 1].wire.held_back_until())
    }

    /// Keeps the newest `frames` frames that one direction of a link has carried.
    pub fn record(&mut self, link: LinkId, way: Way, frames: usize) {
        self.direction_mut(link, way).record = Some(Record::of_newest(frames));
    }

    /// Sends at most `frames` recorded frames over the link once more, the newest first, one each nanosecond. Returns
    /// how many.
    pub fn replay(&mut self, link: LinkId, way: Way, frames: usize) -> usize {
        let number = direction_of(link, way);
        let direction = &self.directions[number];
        let Some(record) = &direction.record else {
            return 0;
        };
        let first = self.now.after_ns(1 + direction.wire.model.delay_ns);
        let again: Vec<Frame> = record
            .newest_first()
            .take(frames)
            .filter_map(|octets| Frame::from_octets(octets, &mut self.pool))
            .collect();
        let count = again.len();
        for (frame, behind) in again.into_iter().zip(0..) {
            let arrival = Event::Arrival(self.travelling.put(frame, number as u32));
            self.schedule(first.after_ns(behind), number as u32, arrival);
        }
        count
    }

    /// Hands a frame of these octets to an element, as if it had come in at a port.
    pub fn inject(&mut self, to: Place, octets: &[u8]) {
        let (id, port) = to;
        match Frame::from_octets(octets, &mut self.pool) {
            Some(frame) => {
                let mut frames = std::mem::take(&mut self.frames);
                frames.push(frame);
                self.elements[id.0 as usize].station.receive(self.now, port, &mut frames, &mut self.pool);
                self.frames = frames;
                self.serve(id);
            }
            None => self.starved += 1,
        }
    }

    fn direction_mut(&mut self, link: LinkId, way: Way) -> &mut Direction {
        &mut self.directions[direction_of(link, way)]
    }

    /// Lets time pass until `time`, before which nothing happens any more.
    pub fn wait_until(&mut self, time: Instant) {
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
            if let Some(tap) = direction.tap.take() {
                result = result.and(tap.finish());
            }
        }
        result
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// An element, to look at.
    pub fn element(&self, id: ElementId) -> &S {
        &self.elements[id.0 as usize].station
    }

    /// Lets `action` change an element, and does what follows from it.
    pub fn with<R>(&mut self, id: ElementId, action: impl FnOnce(&mut S, Instant, &mut Pool) -> R) -> R {
        let result = action(&mut self.elements[id.0 as usize].station, self.now, &mut self.pool);
        self.serve(id);
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

    /// Frames that have arrived anywhere.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Frames that were thrown away because the pool had no chunk left for them.
    pub fn starved(&self) -> u64 {
        self.starved
    }

    /// Chunks that some frame holds.
    pub fn chunks_in_use(&self) -> usize {
        self.pool.in_use()
    }

    /// Lets the next thing happen, unless it lies after `limit`. Returns the element that it happened to; `None` when
    /// nothing is left until then.
    #[inline]
    pub fn step(&mut self, limit: Instant) -> Option<ElementId> {
        loop {
            let (time, event) = self.calendar.pop_until(limit)?;
            self.now = self.now.max(time);
            match event {
                Event::Arrival(place) => return Some(self.arrive(place)),
                Event::Free(direction) => {
                    self.directions[direction as usize].sending = false;
                    if self.transmit(direction) {
                        self.serve(self.directions[direction as usize].from.0);
                    }
                }
                Event::Deadline(element) => {
                    if let Some(element) = self.come_due(ElementId(element), time) {
                        return Some(element);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, place: u32) -> ElementId {
        let mut frames = std::mem::take(&mut self.frames);
        let (frame, direction) = self.travelling.take(place);
        let (element, port) = self.directions[direction as usize].to;
        let copy = self.elements[element.0 as usize].station.wants_driver_layout();
        self.collect(frame, copy, &mut frames);
        while let Some(frame) = self.next_of_batch(direction) {
            self.collect(frame, copy, &mut frames);
        }
        self.elements[element.0 as usize].station.receive(self.now, port, &mut frames, &mut self.pool);
        self.frames = frames;
        self.serve(element);
        element
    }

    /// A further frame that arrives by this direction at this instant, if that is what happens next.
    fn next_of_batch(&mut self, direction: u32) -> Option<Frame> {
        let (now, travelling) = (self.now, &self.travelling);
        let event = self.calendar.pop_if(|time, event| match event {
            Event::Arrival(place) => time == now && travelling.direction(place) == Some(direction),
            Event::Free(_) | Event::Deadline(_) => false,
        });
        match event {
            Some(Event::Arrival(place)) => Some(self.travelling.take(place).0),
            Some(Event::Free(_) | Event::Deadline(_)) | None => None,
        }
    }

    fn collect(&mut self, frame: Frame, copy: bool, frames: &mut Vec<Frame>) {
        self.hops += 1;
        let laid_out = if copy { frame.across_wire(&mut self.pool) } else { Some(frame) };
        match laid_out {
            Some(frame) => frames.push(frame),
            None => self.starved += 1,
        }
    }

    /// Ticks an element whose deadline has come; `None` when the deadline has moved since.
    fn come_due(&mut self, id: ElementId, time: Instant) -> Option<ElementId> {
        let attached = &mut self.elements[id.0 as usize];
        if attached.deadline != Some(time) {
            return None;
        }
        attached.deadline = None;
        let due = attached.station.next_deadline().is_some_and(|deadline| deadline <= time);
        if due {
            attached.station.tick(time, &mut self.pool);
        }
        self.serve(id);
        due.then_some(id)
    }

    /// Applies the output of an element after a call: frames to send, a deadline.
    #[inline]
    fn serve(&mut self, id: ElementId) {
        let mut ready = std::mem::take(&mut self.ready);
        let mut has_sent = true;
        // A frame that leaves may be a reason to send another one by another port.
        while std::mem::take(&mut has_sent) {
            self.elements[id.0 as usize].station.take_ready(&mut ready);
            for port in ready.drain(..) {
                let direction = self.elements[id.position()].ports.get(port.index()).copied().flatten();
                has_sent |= direction.is_some_and(|direction| self.transmit(direction));
            }
        }
        self.ready = ready;
        let attached = &mut self.elements[id.0 as usize];
        if let Some(wanted) = attached.station.next_deadline() {
            // An element whose deadline does not move when it is ticked must not stop time.
            let time = wanted.max(self.now.after_ns(1));
            if attached.deadline.is_none_or(|deadline| time < deadline) {
                attached.deadline = Some(time);
                self.schedule(time, id.0, Event::Deadline(id.0));
            }
        }
    }

    /// Sends the next frame of a direction, if it is free and there is one; whether that was so.
    #[inline]
    fn transmit(&mut self, number: u32) -> bool {
        let direction = &mut self.directions[number as usize];
        let (element, port) = direction.from;
        let station = &mut self.elements[element.0 as usize].station;
        let next = if direction.sending { None } else { station.dequeue(self.now, port, &mut self.pool) };
        let Some(frame) = next else {
            return false;
        };
        if let Some(tap) = &mut direction.tap {
            tap.write(self.now, &frame, &self.pool);
        }
        if let Some(record) = &mut direction.record {
            record.keep(frame.pieces(&self.pool));
        }
        let fate = direction.wire.send(self.now, frame.len());
        direction.sending = true;
        self.schedule(fate.free_at, number, Event::Free(number));
        self.deliver(frame, number, fate);
        true
    }

    #[inline]
    fn schedule(&mut self, time: Instant, position: u32, event: Event) {
        self.calendar.push(time, event.rank(position), event);
    }

    fn deliver(&mut self, frame: Frame, direction: u32, fate: Fate) {
        let Some(frame) = self.damage(frame, fate) else {
            return;
        };
        if let Some(time) = fate.again {
            self.again.clear();
            frame.pieces(&self.pool).for_each(|piece| self.again.extend_from_slice(piece));
            match Frame::from_octets(&self.again, &mut self.pool) {
                Some(copy) => {
                    let arrival = Event::Arrival(self.travelling.put(copy, direction));
                    self.schedule(time, direction, arrival);
                }
                None => self.starved += 1,
            }
        }
        match fate.arrival {
            Some(time) => {
                let arrival = Event::Arrival(self.travelling.put(frame, direction));
                self.schedule(time, direction, arrival);
            }
            None => frame.release(&mut self.pool),
        }
    }

    /// The frame as it arrives; `None` when no chunk was left for its copy.
    #[inline]
    fn damage(&mut self, frame: Frame, fate: Fate) -> Option<Frame> {
        if fate.changed_bit.is_none() && !fate.is_marked {
            return Some(frame);
        }
        self.again.clear();
        frame.pieces(&self.pool).for_each(|piece| self.again.extend_from_slice(piece));
        frame.release(&mut self.pool);
        if fate.is_marked {
            damage::mark_congestion(&mut self.again);
        }
        if let Some(number) = fate.changed_bit {
            damage::change_bit(&mut self.again, number);
        }
        let copy = Frame::from_octets(&self.again, &mut self.pool);
        self.starved += u64::from(copy.is_none());
        copy
    }
}

fn direction_of(link: LinkId, way: Way) -> usize {
    link.0 as usize * 2 + usize::from(way == Way::Up)
}
