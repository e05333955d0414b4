//! Elements that pass frames on, in a ring of rings, on one thread and on several.

use super::Engine;
use super::crossing::Parcel;
use super::port::ArrivalTime;
use srdma_frame::{Element, Frame, Pool, PortId, Segment};
use srdma_random::Stream;
use srdma_sim::link::LinkModel;
use srdma_sim::network::{ElementId, SimElement};
use srdma_wire::Instant;
use srdma_wire::units::GBIT_PER_S;
use std::collections::VecDeque;

const PORTS: u16 = 4;

/// Passes each frame on at a port that its octets and the element's own count choose, and edits it; sends one of its own
/// at each deadline.
struct Relay {
    number: u64,
    queues: [VecDeque<Frame>; PORTS as usize],
    ready: Vec<PortId>,
    received: u64,
    /// A value that depends on everything that it has received, and when.
    digest: u64,
    deadline_ns: Option<u64>,
    random: Stream,
    panics_at: Option<u64>,
}

impl Relay {
    fn new(number: u64) -> Self {
        Relay {
            number,
            queues: Default::default(),
            ready: Vec::new(),
            received: 0,
            digest: 0,
            deadline_ns: Some(1 + number % 7),
            random: Stream::new(number, "relay"),
            panics_at: None,
        }
    }

    fn note(&mut self, value: u64) {
        self.digest = self.digest.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ value;
    }

    fn push(&mut self, port: u16, frame: Frame) {
        let queue = &mut self.queues[usize::from(port)];
        if queue.is_empty() {
            self.ready.push(PortId(port));
        }
        queue.push_back(frame);
    }
}

impl Element for Relay {
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        for mut frame in frames.drain(..) {
            self.received += 1;
            assert_ne!(self.panics_at, Some(self.received), "as the test wants");
            self.note(now.as_ns() << 16 | u64::from(port.0));
            frame
                .to_vec(pool)
                .chunks(8)
                .for_each(|octets| self.note(octets.iter().fold(0, |sum, octet| sum << 8 | u64::from(*octet))));
            let head = frame.head_mut(pool);
            head[0] = head[0].wrapping_add(1);
            if head[0] > 40 {
                frame.release(pool);
                continue;
            }
            let to = (self.digest >> 20) as u16 % PORTS;
            self.push(to, frame);
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        let most = if self.random.below(20) == 0 { 6000 } else { 300 };
        let len = 60 + self.random.below(most) as usize;
        let frame = Frame::from_octets(&vec![self.number as u8 % 20; len], pool).unwrap();
        let port = self.random.below(u64::from(PORTS)) as u16;
        self.push(port, frame);
        self.deadline_ns = Some(now.as_ns() + 200 + self.random.below(400)).filter(|at| *at < 40_000);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline_ns.map(Instant::from_ns)
    }

    fn dequeue(&mut self, _now: Instant, port: PortId, _pool: &mut Pool) -> Option<Frame> {
        self.queues[port.index()].pop_front()
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        wake.append(&mut self.ready);
    }
}

impl SimElement for Relay {
    fn wants_driver_layout(&self) -> bool {
        true
    }
}

/// A ring of so many relays, each with links to the next two, on so many partitions.
fn ring(relays: u64, partitions: u16, delay_ns: u64) -> Engine<Relay> {
    let mut engine = Engine::new(partitions, 1 << 16, &[7; 100]);
    let ids: Vec<ElementId> = (0..relays)
        .map(|number| engine.add((number * u64::from(partitions) / relays) as u16, Relay::new(number)))
        .collect();
    for (position, id) in ids.iter().enumerate() {
        let model = LinkModel::perfect(200 * GBIT_PER_S, delay_ns + position as u64 % 3);
        let [next, second] = [1, 2].map(|step| ids[(position + step) % ids.len()]);
        engine.connect((*id, PortId(0)), (next, PortId(1)), model);
        engine.connect((*id, PortId(2)), (second, PortId(3)), model);
    }
    // An element is looked at for the first time by `with`, or when a frame arrives.
    ids.into_iter().for_each(|id| engine.with(id, |_, _, _| ()));
    engine
}

fn digests(engine: &Engine<Relay>, relays: u64) -> Vec<[u64; 2]> {
    let relay = |number| engine.element(ElementId::of_position(number as usize));
    (0..relays).map(|number| [relay(number).received, relay(number).digest]).collect()
}

#[test]
fn every_frame_arrives_at_the_same_time_on_any_number_of_threads() {
    let outcome = |partitions, step_ns: u64| {
        let mut engine = ring(60, partitions, 150);
        let mut now_ns = 0;
        while now_ns < 60_000 {
            now_ns += step_ns;
            engine.proceed_until(Instant::from_ns(now_ns));
            let extra = ElementId::of_position((now_ns / step_ns % 60) as usize);
            engine.with(extra, |relay, now, pool| relay.tick(now, pool));
        }
        assert_eq!(engine.workers.is_some(), partitions > 1, "threads are in use");
        assert_eq!(engine.dropped_for_memory(), 0);
        (digests(&engine, 60), engine.hops())
    };
    for step_ns in [2_000, 30_000] {
        let one = outcome(1, step_ns);
        assert!(one.1 > 20_000, "{} frames", one.1);
        for partitions in [2, 3, 7] {
            assert_eq!(outcome(partitions, step_ns), one, "{partitions} partitions");
        }
    }
}

#[test]
#[should_panic(expected = "panicked")]
fn a_panic_on_a_thread_ends_the_others() {
    let mut engine = ring(60, 3, 150);
    engine.with(ElementId::of_position(59), |relay, _, _| relay.panics_at = Some(100));
    engine.proceed_until(Instant::from_ns(60_000));
}

#[test]
fn frames_of_any_layout_cross_unchanged() {
    let (mut from, mut to) = (Pool::new(64), Pool::new(64));
    let pages = [&mut from, &mut to].map(|pool| {
        let chunk = pool.allocate_large().unwrap();
        pool.octets_mut(chunk)[..100].fill(7);
        chunk
    });
    let octets: Vec<u8> = (0..9000).map(|index| (index % 251) as u8).collect();
    let of_page = |pool: &mut Pool, tail: usize| {
        let head = Frame::small(&octets[..54], pool).unwrap();
        let mut frame = Frame::of_segment(head.first());
        pool.share(pages[0], 1);
        frame.append(Segment::new(pages[0], 10, 90));
        let mut frame = frame.with_tail([1, 2, 3, 4]);
        frame.truncate(frame.len() - 4 + tail, pool);
        frame
    };
    let mut frames: Vec<Frame> = (0..=4).map(|tail| of_page(&mut from, tail)).collect();
    for len in [1, 60, 3840, 9000] {
        frames.push(Frame::from_octets(&octets[..len], &mut from).unwrap());
    }
    let mut parcel = Parcel::default();
    for (number, frame) in frames.iter().enumerate() {
        parcel.pack(number as u32, ArrivalTime::new(1000 - number as u64, PortId(3)), frame, &from, Some(pages[0]));
    }
    assert_eq!(parcel.first_ns(), 1000 - 8);
    let mut arrived = Vec::new();
    parcel.unpack(&mut to, Some(pages[1]), |element, at, frame| arrived.push((element, at, frame.unwrap())));
    assert_eq!(arrived.len(), frames.len());
    for (number, (element, at, frame)) in arrived.into_iter().enumerate() {
        let sent = &frames[number];
        assert_eq!((element, at.time_ns(), at.port()), (number, 1000 - number as u64, PortId(3)));
        assert_eq!(frame.to_vec(&to), sent.to_vec(&from));
        assert_eq!((frame.first().start(), frame.body().len()), (sent.first().start(), sent.body().len()));
        assert_eq!(
            frame.body().first().map(|segment| segment.chunk() == pages[1]),
            sent.body().first().map(|_| number < 5)
        );
        frame.release(&mut to);
    }
    assert_eq!(to.in_use(), 1, "the page");
}

#[test]
fn a_frame_without_room_is_counted_and_holds_nothing() {
    let (mut from, mut to) = (Pool::new(8), Pool::new(1));
    let frame = Frame::from_octets(&[1; 9000], &mut from).unwrap();
    let mut parcel = Parcel::default();
    parcel.pack(0, ArrivalTime::new(1, PortId(0)), &frame, &from, None);
    parcel.pack(0, ArrivalTime::new(1, PortId(0)), &Frame::small(&[5; 60], &mut from).unwrap(), &from, None);
    let mut arrived: Vec<Option<Frame>> = Vec::new();
    parcel.unpack(&mut to, None, |_, _, frame| arrived.push(frame));
    let [None, Some(small)] = <[Option<Frame>; 2]>::try_from(arrived).unwrap() else {
        panic!("the long frame does not fit")
    };
    assert_eq!(small.to_vec(&to), [5; 60]);
    assert_eq!(to.in_use(), 1);
}
