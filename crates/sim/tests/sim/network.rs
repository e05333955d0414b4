//! The engine with elements that only count: time, faults, queues, deadlines, order.

use srdma_dataplane::{Command, DropReason, EgressConfig, NextHop, Node, NodeConfig, PfcConfig, PortConfig};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_random::Probability;
use srdma_sim::{ElementId, LinkModel, Network, SimElement};
use srdma_wire::units::GBIT_PER_S;
use srdma_wire::{EtherType, Ethernet, Instant, Ipv6, MacAddress, NextHeader};
use std::collections::VecDeque;
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;
const PORT: PortId = PortId(0);
/// Sends what it was given and notes what comes.
#[derive(Default)]
struct Talker {
    to_send: VecDeque<Vec<u8>>,
    received: Vec<(u64, Vec<u8>)>,
    batches: usize,
    deadlines: VecDeque<u64>,
    ticks: Vec<u64>,
    /// After a tick the deadline stays where it was.
    stuck: bool,
    /// From a pair of frames to the next, at least.
    gap_ns: u64,
    /// When the next frame may be sent, if not at once.
    due_ns: Option<u64>,
}

enum Member {
    Talker(Talker),
    Node(Box<Node>),
}

impl Member {
    fn talker(&mut self) -> &mut Talker {
        match self {
            Member::Talker(talker) => talker,
            Member::Node(_) => panic!("a node does not talk"),
        }
    }

    fn received(&self) -> &[(u64, Vec<u8>)] {
        match self {
            Member::Talker(talker) => &talker.received,
            Member::Node(_) => panic!("a node does not listen"),
        }
    }
}

impl Element for Talker {
    fn receive(&mut self, now: Instant, _port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        self.batches += 1;
        for frame in frames.drain(..) {
            self.received.push((now.as_ns(), frame.to_vec(pool)));
            frame.release(pool);
        }
    }

    fn tick(&mut self, now: Instant, _pool: &mut Pool) {
        self.ticks.push(now.as_ns());
        if !self.stuck {
            self.deadlines.pop_front();
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.front().copied().into_iter().chain(self.due_ns).min().map(Instant::from_ns)
    }

    fn dequeue(&mut self, now: Instant, _port: PortId, pool: &mut Pool) -> Option<Frame> {
        if self.due_ns.is_some_and(|due_ns| now.as_ns() < due_ns) {
            return None;
        }
        let octets = self.to_send.pop_front()?;
        let waits = self.gap_ns > 0 && !self.to_send.is_empty() && self.to_send.len().is_multiple_of(2);
        self.due_ns = waits.then(|| now.as_ns() + self.gap_ns);
        Frame::from_octets(&octets, pool)
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        if !self.to_send.is_empty() {
            wake.push(PORT);
        }
    }
}

impl Element for Member {
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        match self {
            Member::Talker(talker) => talker.receive(now, port, frames, pool),
            Member::Node(node) => node.receive(now, port, frames, pool),
        }
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        match self {
            Member::Talker(talker) => talker.tick(now, pool),
            Member::Node(node) => node.tick(now, pool),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Member::Talker(talker) => talker.next_deadline(),
            Member::Node(node) => node.next_deadline(),
        }
    }

    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        match self {
            Member::Talker(talker) => talker.dequeue(now, port, pool),
            Member::Node(node) => node.dequeue(now, port, pool),
        }
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        match self {
            Member::Talker(talker) => talker.take_ready(wake),
            Member::Node(node) => node.take_ready(wake),
        }
    }
}

impl SimElement for Member {
    fn wants_driver_layout(&self) -> bool {
        matches!(self, Member::Node(_))
    }
}

fn talker() -> Member {
    Member::Talker(Talker::default())
}

fn run(network: &mut Network<Member>) {
    while network.step(Instant::NEVER).is_some() {}
    assert_eq!(network.chunks_in_use(), 0);
}

/// Frames of 976 octets: 8 µs at 1 Gbit/s with preamble, FCS and gap.
fn numbered(count: usize) -> VecDeque<Vec<u8>> {
    (0..count).map(|number| [&(number as u32).to_be_bytes()[..], &[0; 972]].concat()).collect()
}

fn numbers(received: &[(u64, Vec<u8>)]) -> Vec<u32> {
    received.iter().map(|(_, octets)| u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]])).collect()
}

#[test]
fn frames_keep_the_rate_in_both_directions_at_once() {
    let mut network = Network::new(1, 64);
    let (a, b) = (network.add(talker()), network.add(talker()));
    let link = network.connect("A-B", (a, PORT), (b, PORT), LinkModel::perfect(GBIT_PER_S, 500));
    for element in [a, b] {
        network.with(element, |member, _, _| member.talker().to_send = numbered(3));
    }
    run(&mut network);
    for element in [a, b] {
        let times: Vec<u64> = network.element(element).received().iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [8_500, 16_500, 24_500]);
        assert_eq!(numbers(network.element(element).received()), [0, 1, 2]);
    }
    let [down, up] = network.counters(link);
    assert_eq!((down, down.frames, down.octets, down.lost), (up, 3, 3 * 976, 0));
    assert_eq!(network.hops(), 6);
}

/// A sender that waits after each pair of frames has a new deadline when the wire has taken the second one: it is
/// woken.
#[test]
fn a_sender_that_paces_itself_is_woken() {
    let mut network = Network::new(1, 64);
    let (a, b) = (network.add(talker()), network.add(talker()));
    network.connect("A-B", (a, PORT), (b, PORT), LinkModel::perfect(GBIT_PER_S, 500));
    network.with(a, |member, _, _| (member.talker().to_send, member.talker().gap_ns) = (numbered(4), 20_000));
    run(&mut network);
    let times: Vec<u64> = network.element(b).received().iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [8_500, 16_500, 36_500, 44_500]);
}

#[test]
fn faults_are_as_frequent_as_their_probabilities() {
    let (count, probability) = (50_000, 0.02);
    let chance = Probability::new(probability).unwrap();
    let model = LinkModel { loss: chance, duplicate: chance, reorder: chance, ..LinkModel::perfect(GBIT_PER_S, 500) };
    let mut network = Network::new(5, 4096);
    let (a, b) = (network.add(talker()), network.add(talker()));
    let link = network.connect("A-B", (a, PORT), (b, PORT), model);
    network.with(a, |member, _, _| member.talker().to_send = numbered(count));
    run(&mut network);
    let [down, _] = network.counters(link);
    let expected = count as f64 * probability;
    for (name, number) in [("lost", down.lost), ("repeated", down.duplicated), ("late", down.reordered)] {
        let deviation = (number as f64 - expected).abs() / expected.sqrt();
        assert!(deviation < 5.0, "{number} of {count} frames {name}, expected {expected}");
    }
    let received = network.element(b).received();
    assert_eq!(received.len() as u64, count as u64 - down.lost + down.duplicated);
    let numbers = numbers(received);
    let overtaken = numbers.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64;
    assert!(overtaken > down.reordered / 2, "{overtaken} of {} late frames were overtaken", down.reordered);
}

#[test]
fn a_link_more_changes_nothing_on_the_others() {
    let chance = Probability::new(0.1).unwrap();
    let model = LinkModel { loss: chance, reorder: chance, ..LinkModel::perfect(GBIT_PER_S, 500) };
    let run_with = |others: bool| {
        let mut network = Network::new(3, 4096);
        if others {
            let (c, d) = (network.add(talker()), network.add(talker()));
            network.connect("C-D", (c, PORT), (d, PORT), model);
            network.with(c, |member, _, _| member.talker().to_send = numbered(777));
        }
        let (a, b) = (network.add(talker()), network.add(talker()));
        network.connect("A-B", (a, PORT), (b, PORT), model);
        network.with(a, |member, _, _| member.talker().to_send = numbered(1000));
        run(&mut network);
        network.element(b).received().to_vec()
    };
    assert_eq!(run_with(false), run_with(true));
}

#[test]
fn frames_of_one_instant_make_one_batch() {
    // Each frame comes twice, the second time when the next one comes for the first time.
    let model = LinkModel { duplicate: Probability::new(1.0).unwrap(), ..LinkModel::perfect(GBIT_PER_S, 0) };
    let mut network = Network::new(1, 64);
    let (a, b) = (network.add(talker()), network.add(talker()));
    network.connect("A-B", (a, PORT), (b, PORT), model);
    network.with(a, |member, _, _| member.talker().to_send = numbered(5));
    run(&mut network);
    assert_eq!(numbers(network.element(b).received()), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    network.with(b, |member, _, _| assert_eq!(member.talker().batches, 6));
}

#[test]
fn elements_are_ticked_at_their_deadlines() {
    let mut network = Network::new(1, 64);
    let a = network.add(talker());
    network.with(a, |member, _, _| member.talker().deadlines = VecDeque::from([900, 100_000, 5_000_000]));
    assert_eq!(network.step(Instant::from_ns(899)), None);
    // Cancelled in time: the event is scheduled, but has no effect.
    assert_eq!(network.step(Instant::from_ns(900)), Some(a));
    network.with(a, |member, _, _| member.talker().deadlines = VecDeque::from([200_000]));
    run(&mut network);
    network.with(a, |member, _, _| assert_eq!(member.talker().ticks, [900, 200_000]));
}

#[test]
fn a_deadline_that_does_not_move_does_not_stop_time() {
    let mut network = Network::new(1, 64);
    let a = network.add(talker());
    network.with(a, |member, _, _| {
        *member.talker() = Talker { stuck: true, deadlines: VecDeque::from([10]), ..Talker::default() };
    });
    while network.step(Instant::from_ns(15)).is_some() {}
    network.with(a, |member, _, _| assert_eq!(member.talker().ticks, [10, 11, 12, 13, 14, 15]));
}

/// A node between two talkers, with what the first sends: frames come ten times faster than they leave.
fn squeezed(frames: usize, commands: impl IntoIterator<Item = Command>) -> (Network<Member>, [ElementId; 3]) {
    let (mac, upper_mac, lower_mac) =
        (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]), MacAddress([2, 0, 0, 0, 0, 3]));
    let destination: Ipv6Addr = "2001:db8::2".parse().unwrap();
    let port = |name: &str| PortConfig {
        name: name.to_owned(),
        mac,
        addresses: Vec::new(),
        link_mtu: 1500,
        queue_limit_octets: 10 * 976,
        ..PortConfig::default()
    };
    let mut node = Node::new(NodeConfig::new("2001:db8::f".parse().unwrap(), vec![port("upper"), port("lower")]));
    let next_hop = NextHop { port: PortId(1), address: destination };
    node.apply(Command::AddNeighbour { next_hop, mac: lower_mac }).unwrap();
    commands.into_iter().for_each(|command| node.apply(command).unwrap());
    let ethernet = Ethernet { destination: mac, source: upper_mac, ethertype: EtherType::IPV6 };
    let ipv6 = Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 976 - 54,
        next_header: NextHeader::NONE,
        hop_limit: 64,
        source: "2001:db8::1".parse().unwrap(),
        destination,
    };
    let frame = [ethernet.emit().as_bytes(), ipv6.emit().as_bytes(), &[0; 976 - 54]].concat();
    let mut network = Network::new(1, 4096);
    let (a, n, b) = (network.add(talker()), network.add(Member::Node(Box::new(node))), network.add(talker()));
    network.connect("A-N", (a, PORT), (n, PORT), LinkModel::perfect(10 * GBIT_PER_S, 0));
    network.connect("N-B", (n, PortId(1)), (b, PORT), LinkModel::perfect(GBIT_PER_S, 0));
    network.with(a, |member, _, _| member.talker().to_send = vec![frame; frames].into());
    (network, [a, n, b])
}

/// What enters a node ten times faster than it leaves waits in its queue, and is dropped and counted where that ends.
#[test]
fn a_queue_limit_drops_further_frames() {
    let (mut network, [_, n, b]) = squeezed(100, []);
    run(&mut network);
    let received = network.element(b).received().len() as u64;
    // 80 µs of arrivals: 10 leave meanwhile, one is being sent, 10 wait.
    assert!((20..=21).contains(&received), "{received} frames passed");
    let Member::Node(node) = network.element(n) else { panic!("the node is a node") };
    let drops = &node.port_counters(PORT).unwrap().drops;
    assert_eq!(drops.get(DropReason::QueueFull), 100 - received);
}

/// Nothing comes in any more when the queue falls to XON: the resume leaves with the frame that makes it fall.
#[test]
fn a_resume_does_not_wait_for_the_next_arrival() {
    let pfc = PfcConfig { xoff_octets: 5 * 976, xon_octets: 2 * 976, headroom_octets: 30 * 976, quanta: 0xFFFF };
    let mut egress = EgressConfig::new(GBIT_PER_S, 100 * 976);
    egress.classes[0].pfc = Some(pfc);
    let commands = [PORT, PortId(1)].map(|port| Command::SetEgress { port, egress: Box::new(egress.clone()) });
    let (mut network, [a, _, b]) = squeezed(20, commands);
    while network.step(Instant::from_ns(200_000)).is_some() {}
    let data: Vec<u64> = network.element(b).received().iter().map(|(time, _)| *time).collect();
    assert_eq!(data.len(), 20);
    // Of priority 0: how long, behind opcode and vector.
    let told = network.element(a).received().iter().map(|(time, octets)| (*time, octets[18..20] == [0, 0]));
    let told: Vec<(u64, bool)> = told.collect();
    assert_eq!(told.iter().map(|(_, is_resume)| *is_resume).collect::<Vec<_>>(), [false, true]);
    // Two wait when the last but two has begun to leave.
    let (resumed_ns, begun_ns) = (told[1].0, data[16]);
    assert!((begun_ns..begun_ns + 1_000).contains(&resumed_ns), "{resumed_ns} {begun_ns}");
}
