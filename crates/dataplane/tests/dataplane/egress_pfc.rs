//! Priority flow control at a node: pauses sent, refreshed, resumed and honoured, and a neighbour that pauses for ever.
//! The frames are from scapy (`scapy_06_pfc.pcap`, which tshark decodes alike).

use crate::common::{Bench, next_hop, port_mac};
use proptest::prelude::*;
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_wire::{Instant, Prefix};

/// The port that data comes in by: its MAC address is the one that scapy's frames come from.
const IN: PortId = PortId(1);
/// The port that data leaves by.
const OUT: PortId = PortId(0);

const PFC: PfcConfig = PfcConfig { xoff_octets: 3000, xon_octets: 1500, headroom_octets: 2000, quanta: 0xFFFF };

/// Half of 65,535 quanta at 100 Gbit/s, in nanoseconds.
const HALF_NS: u64 = 167_769;

/// The frames as scapy made them: pause and resume of class 3, a pause of classes 0, 3 and 7, an 802.3 PAUSE.
fn made() -> Vec<Vec<u8>> {
    let path = format!("{}/../../testdata/golden/scapy_06_pfc.pcap", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(path).unwrap();
    let reader = srdma_capture::Reader::new(std::io::BufReader::new(file)).unwrap();
    reader.map(|packet| packet.unwrap().octets).collect()
}

fn egress(change: impl FnOnce(&mut EgressConfig)) -> EgressConfig {
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[3].pfc = Some(PFC);
    change(&mut egress);
    egress
}

/// A node whose ports have classes by precedence, class 3 with PFC; all goes to port 0.
fn bench(change: impl Fn(&mut EgressConfig)) -> Bench {
    let mut bench = Bench::new("2001:db8:ff::1", 3);
    let prefix = Prefix::new("2001:db8:2::".parse().unwrap(), 64).unwrap();
    let action = RouteAction::Via(vec![next_hop(OUT.0)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    for port in 0..3 {
        bench.apply(Command::SetEgress { port: PortId(port), egress: Box::new(egress(&change)) });
    }
    assert_eq!(bench.ready(), [PortId(0), PortId(1), PortId(2)], "other classes may let go what waits");
    bench
}

/// A frame of so many octets in a class, to be received at a port.
fn data(port: PortId, class: u8, octets: usize) -> Vec<u8> {
    let mut frame = port_mac(port.0).0.to_vec();
    frame.extend([2, 0, 0, 0, 1, 9, 0x86, 0xDD]);
    frame.extend([0x60 | class << 1, 0, 0, 0]);
    frame.extend(((octets - 54) as u16).to_be_bytes());
    frame.extend([59, 64]);
    // Its last octet tells the port.
    frame.extend(format!("2001:db8:1::{:x}", port.0 + 1).parse::<std::net::Ipv6Addr>().unwrap().octets());
    frame.extend("2001:db8:2::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    frame.resize(octets, 0);
    frame
}

impl Bench {
    fn take_frame(&mut self, port: PortId, octets: &[u8]) {
        let frame = Frame::from_octets(octets, &mut self.pool).unwrap();
        self.node.receive(self.now, port, &mut vec![frame], &mut self.pool);
    }

    fn ready(&mut self) -> Vec<PortId> {
        let mut wake = Vec::new();
        self.node.take_ready(&mut wake);
        wake.sort();
        wake.dedup();
        wake
    }

    fn tick_at(&mut self, ns: u64) {
        self.now = Instant::from_ns(ns);
        self.node.tick(self.now, &mut self.pool);
    }

    fn counters(&self, port: PortId) -> ClassCounters {
        self.node.class_counters(port, 3).unwrap()
    }
}

/// XOFF, the refresh at half of the pause, XON: only the neighbour that sends too much is paused.
#[test]
fn pauses_are_sent_refreshed_and_withdrawn() {
    let (mut bench, made) = (bench(|_| ()), made());
    for _ in 0..3 {
        bench.take_frame(IN, &data(IN, 3, 1000));
    }
    assert_eq!((bench.ready(), bench.give_out(IN)), (vec![OUT], None), "XOFF is reached, not passed");
    bench.take_frame(IN, &data(IN, 3, 1000));
    assert_eq!(bench.ready(), [IN]);
    assert_eq!((bench.give_out(IN).as_ref(), bench.node.pausing_classes(IN)), (Some(&made[0]), 0b1000));
    assert_eq!([bench.give_out(IN), bench.give_out(PortId(2))], [None, None]);

    assert_eq!(bench.node.next_deadline(), Some(Instant::from_ns(HALF_NS)));
    bench.tick_at(HALF_NS - 1);
    assert_eq!(bench.ready(), []);
    bench.tick_at(HALF_NS);
    assert_eq!((bench.ready(), bench.give_out(IN).as_ref()), (vec![IN], Some(&made[0])));

    assert_eq!([0; 2].map(|_| bench.give_out(OUT).map(|frame| frame.len())), [Some(1000); 2]);
    assert_eq!((bench.node.ingress_octets(IN, 3), bench.give_out(IN)), (Some(2000), None), "XON is not reached");
    assert!(bench.give_out(OUT).is_some());
    assert_eq!((bench.ready(), bench.give_out(IN).as_ref()), (vec![IN], Some(&made[1])));
    bench.tick_at(3 * HALF_NS);
    assert_eq!((bench.ready(), bench.node.pausing_classes(IN), bench.node.next_deadline()), (vec![], 0, None));
    let counters = bench.counters(IN);
    assert_eq!((counters.pauses_sent, counters.resumes_sent), (2, 1));
    assert_eq!((bench.counters(OUT).sent.frames, bench.counters(OUT).peak_octets), (3, 4000));
}

/// A pause that a port honours and one that it has to refresh are over at once: after that nothing is due any more. A
/// driver that ticks until nothing is due would never end.
#[test]
fn a_handled_deadline_is_not_due_again() {
    let mut bench = bench(|_| {});
    bench.take_frame(OUT, &made()[0]);
    bench.take_frame(IN, &made()[0]);
    for _ in 0..3 {
        bench.take_frame(IN, &data(IN, 3, 1400));
    }
    assert_eq!(bench.give_out(IN).map(|octets| octets.len()), Some(60), "a pause, as all of it waits");
    bench.now = Instant::from_ns(3 * HALF_NS);
    bench.node.tick(bench.now, &mut bench.pool);
    let deadline = bench.node.next_deadline();
    assert!(deadline.is_none_or(|deadline| deadline > bench.now), "{deadline:?} is due at {:?}", bench.now);
}

/// XOFF and XON before the frame has left: only the last state is sent.
#[test]
fn outdated_pauses_are_not_sent() {
    let (mut bench, made) = (bench(|_| ()), made());
    for _ in 0..4 {
        bench.take_frame(IN, &data(IN, 3, 1000));
    }
    while bench.give_out(OUT).is_some() {}
    assert_eq!((bench.give_out(IN).as_ref(), bench.give_out(IN)), (Some(&made[1]), None));
}

/// Frames on the way when XOFF is passed find room in the headroom, whatever the queue's limit; those behind it do not.
#[test]
fn headroom_ends() {
    let mut bench = bench(|egress| egress.classes[3].limit_octets = 10);
    for _ in 0..7 {
        bench.take_frame(IN, &data(IN, 3, 1000));
    }
    assert_eq!(bench.node.ingress_octets(IN, 3), Some(5000));
    assert_eq!((bench.drops(IN.0), bench.counters(IN).headroom_drops), (vec![("headroom_exceeded", 2)], 2));
    bench.take_frame(PortId(2), &data(PortId(2), 3, 1000));
    assert_eq!(bench.drops(2), [], "another port has an account of its own");
    bench.take_frame(IN, &data(IN, 0, 1000));
    assert_eq!(bench.node.class_octets(OUT, 0), Some(1000), "another class has no PFC and a limit of its own");
}

/// A pause stops its class and no other, until it is taken back or over; then the driver is woken.
#[test]
fn pauses_are_honoured() {
    let (mut bench, made) = (bench(|_| ()), made());
    bench.take_frame(IN, &data(IN, 3, 1000));
    bench.take_frame(IN, &data(IN, 2, 200));
    bench.ready();
    bench.take_frame(OUT, &made[0]);
    assert_eq!((bench.ready(), bench.node.paused_classes(OUT)), (vec![OUT], 0b1000));
    assert_eq!(bench.give_out(OUT).map(|frame| frame.len()), Some(200));
    assert_eq!(bench.give_out(OUT), None);
    bench.take_frame(OUT, &made[1]);
    assert_eq!((bench.ready(), bench.give_out(OUT).map(|frame| frame.len())), (vec![OUT], Some(1000)));

    bench.take_frame(OUT, &made[0]);
    bench.take_frame(IN, &data(IN, 3, 1000));
    bench.ready();
    assert_eq!((bench.give_out(OUT), bench.node.next_deadline()), (None, Some(Instant::from_ns(335_539))));
    bench.tick_at(335_538);
    assert_eq!((bench.ready(), bench.give_out(OUT)), (vec![], None));
    bench.tick_at(335_539);
    assert_eq!((bench.ready(), bench.give_out(OUT).map(|frame| frame.len())), (vec![OUT], Some(1000)));
    let counters = bench.counters(OUT).received;
    assert_eq!((counters.pauses, counters.resumes, counters.paused_ns), (2, 1, 335_539));
    assert_eq!((bench.drops(OUT.0), bench.pool.in_use()), (vec![], 0));
}

/// MAC control frames are never forwarded: those other than PFC, or at a port without PFC, are dropped by name.
#[test]
fn mac_control_frames_are_not_forwarded() {
    let (mut bench, made) = (bench(|_| ()), made());
    bench.take_frame(OUT, &made[3]);
    bench.take_frame(OUT, &made[0][..20]);
    bench.take_frame(OUT, &made[0][..33]);
    assert_eq!(bench.drops(OUT.0), [("mac_control", 3)]);
    let mut other = made[0].clone();
    other[5] = 2;
    bench.take_frame(OUT, &other);
    assert_eq!(bench.drops(OUT.0), [("not_for_this_port", 1), ("mac_control", 3)]);
    let mut plain = Bench::new("2001:db8:ff::1", 2);
    plain.take_frame(PortId(0), &made[0]);
    assert_eq!((plain.drops(0), plain.pool.in_use()), (vec![("mac_control", 1)], 0));
    assert_eq!(plain.node.class_counters(PortId(0), 3), None);
}

/// Class 3 is paused for longer than the watchdog bears.
fn storm(action: StormAction) -> Bench {
    let watchdog = Watchdog { bound_ns: 500_000, quiet_ns: 400_000, action };
    let (mut bench, made) = (bench(|egress| egress.watchdog = Some(watchdog)), made());
    bench.take_frame(IN, &data(IN, 3, 1000));
    bench.ready();
    for ns in (0..=400_000).step_by(100_000) {
        bench.tick_at(ns);
        bench.take_frame(OUT, &made[0]);
        assert_eq!(bench.give_out(OUT), None);
    }
    assert_eq!(bench.node.next_deadline(), Some(Instant::from_ns(500_000)));
    bench.ready();
    bench.tick_at(500_000);
    bench.take_frame(OUT, &made[0]);
    assert_eq!((bench.ready(), bench.counters(OUT).received.storms), (vec![OUT], 1));
    bench
}

#[test]
fn a_storm_is_not_honoured() {
    let mut bench = storm(StormAction::Forward);
    assert_eq!(bench.give_out(OUT).map(|frame| frame.len()), Some(1000));
    bench.tick_at(900_000);
    bench.take_frame(OUT, &made()[0]);
    bench.take_frame(IN, &data(IN, 3, 1000));
    assert_eq!(bench.give_out(OUT), None, "after the quiet time pauses count again");
    assert_eq!(bench.counters(OUT).received.ignored, 1);
}

#[test]
fn a_storm_may_cost_the_class_its_frames() {
    let mut bench = storm(StormAction::Drop);
    assert_eq!(bench.give_out(OUT), None);
    bench.take_frame(IN, &data(IN, 3, 1000));
    bench.take_frame(IN, &data(IN, 2, 1000));
    assert_eq!(bench.give_out(OUT).map(|frame| frame[14]), Some(0x64), "other classes go on");
    assert_eq!((bench.drops(OUT.0), bench.drops(IN.0)), (vec![("pause_storm", 1)], vec![("pause_storm", 1)]));
    assert_eq!(bench.counters(OUT).storm_drops, 2);
    assert_eq!((bench.node.ingress_octets(IN, 3), bench.node.buffered_octets()), (Some(0), 0));
    bench.tick_at(900_000);
    bench.take_frame(IN, &data(IN, 3, 1000));
    assert!(bench.give_out(OUT).is_some());
}

/// A port that loses its link gives up what waits, and both sides' pauses.
#[test]
fn a_lost_link_ends_all_pauses() {
    let (mut bench, made) = (bench(|_| ()), made());
    bench.take_frame(OUT, &made[0]);
    for _ in 0..4 {
        bench.take_frame(IN, &data(IN, 3, 1000));
    }
    assert_eq!(bench.node.drop_queue(OUT, &mut bench.pool), 4);
    assert_eq!((bench.node.paused_classes(OUT), bench.node.buffered_octets(), bench.pool.in_use()), (0, 0, 0));
    assert_eq!(bench.drops(OUT.0), [("port_down", 4)]);
    bench.node.drop_queue(IN, &mut bench.pool);
    assert_eq!((bench.node.pausing_classes(IN), bench.give_out(IN)), (0, None));
    bench.tick_at(400_000);
    assert_eq!(bench.node.next_deadline(), None);
}

/// One thing that happens to the node.
#[derive(Clone, Debug)]
enum Step {
    Data { port: u16, class: u8, octets: usize },
    Hear { frame: usize },
    Send { port: u16, frames: usize },
    Wait { ns: u64 },
    Set { port: u16, xoff_octets: Option<usize> },
    Lose { port: u16 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..3_u16, 0..8_u8, 54..2000_usize).prop_map(|(port, class, octets)| Step::Data { port, class, octets }),
        2 => (0..3_usize).prop_map(|frame| Step::Hear { frame }),
        6 => (0..3_u16, 1..4_usize).prop_map(|(port, frames)| Step::Send { port, frames }),
        2 => (0..400_000_u64).prop_map(|ns| Step::Wait { ns }),
        1 => (0..3_u16, prop::option::of(0..6000_usize))
            .prop_map(|(port, xoff_octets)| Step::Set { port, xoff_octets }),
        1 => (0..3_u16).prop_map(|port| Step::Lose { port }),
    ]
}

/// Frames that were received and neither sent nor dropped; sums by port and class, by plain addition.
#[derive(Default)]
struct Buffered {
    /// Port in, class, octets; in the order of arrival.
    waiting: Vec<(u16, u8, usize)>,
}

impl Buffered {
    fn leave(&mut self, sent: &[u8]) {
        let (port, class) = (u16::from(sent[37]) - 1, (sent[14] & 0x0E) >> 1);
        let found = |entry: &(u16, u8, usize)| *entry == (port, class, sent.len());
        let index = self.waiting.iter().position(found).expect("what leaves has come");
        self.waiting.remove(index);
    }

    fn octets(&self, of: impl Fn(u16, u8) -> bool) -> usize {
        self.waiting.iter().filter(|(port, class, _)| of(*port, *class)).map(|(_, _, octets)| octets).sum()
    }
}

proptest! {
    /// In every sequence the accounts equal plain sums, no frame is lost without a drop reason, and when all frames
    /// have left the accounts are zero and the neighbours are resumed.
    #[test]
    fn accounts_are_exact(steps in prop::collection::vec(step(), 1..120), weights: [Option<u8>; 8]) {
        let made = made();
        let watchdog = Watchdog { bound_ns: 600_000, quiet_ns: 300_000, action: StormAction::Drop };
        let mut bench = bench(|egress| {
            egress.watchdog = Some(watchdog);
            for (class, weight) in egress.classes.iter_mut().zip(weights) {
                if let Some(weight) = weight {
                    class.scheduling = Scheduling::Weighted { quantum_octets: 256 + u32::from(weight) };
                }
                class.limit_octets = 8000;
            }
        });
        let mut buffered = Buffered::default();
        for step in steps {
            let before = drops(&bench);
            match step {
                Step::Data { port, class, octets } => {
                    bench.take_frame(PortId(port), &data(PortId(port), class, octets));
                    if drops(&bench) == before {
                        buffered.waiting.push((port, class, octets));
                    }
                }
                Step::Hear { frame } => bench.take_frame(OUT, &made[frame]),
                Step::Send { port, frames } => {
                    for _ in 0..frames {
                        send(&mut bench, port, &mut buffered);
                    }
                }
                Step::Wait { ns } => {
                    let now = bench.now.as_ns() + ns;
                    bench.tick_at(now);
                }
                Step::Set { port, xoff_octets } => {
                    let egress = egress(|egress| {
                        let pfc = |xoff_octets| PfcConfig { xoff_octets, xon_octets: xoff_octets / 2, ..PFC };
                        egress.classes[3].pfc = xoff_octets.map(pfc);
                        egress.watchdog = Some(watchdog);
                    });
                    bench.apply(Command::SetEgress { port: PortId(port), egress: Box::new(egress) });
                }
                Step::Lose { port } => {
                    let dropped = bench.node.drop_queue(PortId(port), &mut bench.pool);
                    if dropped > 0 {
                        assert_eq!(dropped, buffered.waiting.len(), "all wait at one port");
                        buffered.waiting.clear();
                    }
                }
            }
            agrees(&bench, &buffered)?;
        }
        // The neighbour's pauses end, and all leaves.
        let later = bench.now.as_ns() + 10_000_000;
        bench.tick_at(later);
        while send(&mut bench, OUT.0, &mut buffered) {}
        agrees(&bench, &buffered)?;
        prop_assert!(buffered.waiting.is_empty());
        prop_assert_eq!(bench.node.buffered_octets(), 0);
        for port in 0..3 {
            while send(&mut bench, port, &mut buffered) {}
            prop_assert_eq!(bench.node.pausing_classes(PortId(port)), 0);
        }
        bench.tick_at(later + 10_000_000);
        prop_assert_eq!((bench.node.next_deadline(), bench.pool.in_use()), (None, 0));
    }
}

fn drops(bench: &Bench) -> u64 {
    (0..3).flat_map(|port| bench.drops(port)).map(|(_, count)| count).sum()
}

/// One frame leaves a port, unless none may; storms take what waits in class 3 or in others that were paused.
fn send(bench: &mut Bench, port: u16, buffered: &mut Buffered) -> bool {
    let dropped_before = drops(bench);
    let sent = bench.give_out(PortId(port));
    if drops(bench) > dropped_before {
        let gone = |class: u8| bench.node.class_octets(OUT, class.into()) == Some(0);
        let is_sent = |entry: &(u16, u8, usize)| {
            sent.as_ref().is_some_and(|sent| sent.len() == entry.2 && sent[14] & 0x0E == entry.1 << 1)
        };
        buffered.waiting.retain(|entry| is_sent(entry) || !gone(entry.1));
    }
    match sent {
        Some(sent) if sent[12..14] == [0x86, 0xDD] => buffered.leave(&sent),
        Some(_) => {}
        None => return false,
    }
    true
}

fn agrees(bench: &Bench, buffered: &Buffered) -> Result<(), TestCaseError> {
    for class in 0..8 {
        let waiting = buffered.octets(|_, of| of == class);
        prop_assert_eq!(bench.node.class_octets(OUT, class.into()), Some(waiting), "class {}", class);
        for port in 0..3 {
            let from = buffered.octets(|of_port, of| of == class && of_port == port);
            prop_assert_eq!(bench.node.ingress_octets(PortId(port), class.into()), Some(from), "from {}", port);
        }
    }
    prop_assert_eq!(bench.node.buffered_octets(), buffered.octets(|_, _| true));
    Ok(())
}
