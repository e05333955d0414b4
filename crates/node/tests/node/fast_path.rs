//! The fast path against the element, packet by packet: the kernel runs the program for random packets, a node
//! processes all of them, and another one those that the program leaves to it. What leaves is the same, octet by octet,
//! and so are all counters.

mod nodes;
mod packets;

use nodes::{PORTS, mac, node};
use packets::frame;
use srdma_dataplane::{DropReason, Node, Traffic};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_io::Match;
use srdma_io::fast_path::{Counted, Maps, TestProgram};
use srdma_node::daemon::{fast_path_entries, fast_path_port};
use srdma_testkit::random::Random;
use srdma_testkit::seeds;
use srdma_wire::{Instant, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Packets of a seed; ten seeds make a million.
const PACKETS: u64 = 100_000;

/// The loopback interface: what is redirected does not leave when the kernel only runs the program.
const LOOPBACK_INDEX: u32 = 1;

/// A node and its pool.
struct Device {
    node: Node,
    pool: Pool,
}

impl Device {
    fn new(seed: u64) -> Self {
        Device { node: node(seed), pool: Pool::new(4096) }
    }

    /// The frames that leave for one that comes in, with their ports.
    fn process(&mut self, now: Instant, port: PortId, octets: &[u8]) -> Vec<(PortId, Vec<u8>)> {
        let Device { node, pool } = self;
        let mut frames = vec![Frame::from_octets(octets, pool).expect("the pool has room")];
        node.receive(now, port, &mut frames, pool);
        let mut left = Vec::new();
        for port in (0..PORTS).map(PortId) {
            while let Some(frame) = node.dequeue(now, port, pool) {
                left.push((port, frame.to_vec(pool)));
                frame.release(pool);
            }
        }
        left
    }
}

/// The program of a node's ports.
struct Fast {
    maps: Maps,
    programs: Vec<TestProgram>,
}

impl Fast {
    fn new(node: &Node) -> Self {
        let plan = node.fast_path(|_| true);
        let mut maps = Maps::new().expect("maps");
        let sids: BTreeSet<Prefix> = node.sid_counters().map(|(sid, _)| sid).collect();
        maps.set_entries(&fast_path_entries(&plan), &sids, &[("::/0".parse().expect("a prefix"), Match::All)])
            .expect("entries");
        for port in 0..PORTS {
            maps.set_interface(port, Some(LOOPBACK_INDEX)).expect("an interface");
        }
        let program = |port: u16| {
            let port = fast_path_port(&plan, PortId(port), mac(port));
            TestProgram::load(&maps, &port).unwrap_or_else(|error| panic!("{error}"))
        };
        let programs = (0..PORTS).map(program).collect();
        Fast { maps, programs }
    }
}

fn sum(element: Traffic, program: Counted) -> Traffic {
    Traffic { frames: element.frames + program.frames, octets: element.octets + program.octets }
}

fn drops(node: &Node, port: PortId) -> BTreeMap<DropReason, u64> {
    node.port_counters(port).expect("the port").drops.iter().collect()
}

/// Runs the packets of a seed; returns how many the program has forwarded, and how many of them met each SID.
fn run(seed: u64) -> (u64, BTreeMap<Prefix, u64>) {
    let (mut all, mut rest) = (Device::new(seed), Device::new(seed));
    let fast = Fast::new(&all.node);
    let mut random = Random::new(seed);
    let mut forwarded = 0;
    for number in 0..PACKETS {
        let now = Instant::ZERO + Duration::from_micros(number);
        let port = PortId(random.below(PORTS.into()) as u16);
        let sent = frame(&mut random, port.0);
        let expected = all.process(now, port, &sent);
        let mut octets = sent.clone();
        let is_forwarded = fast.programs[port.index()].forwards(&mut octets).unwrap_or_else(|error| {
            panic!("seed {seed}, packet {number}: {error}: {sent:02x?}");
        });
        let left = if is_forwarded {
            forwarded += 1;
            let by = (0..PORTS).find(|port| octets[6..12] == mac(*port).0).expect("the source is a port's");
            vec![(PortId(by), octets)]
        } else {
            assert!(octets == sent, "seed {seed}, packet {number} was changed for the element: {sent:02x?}");
            rest.process(now, port, &sent)
        };
        assert!(
            left == expected,
            "seed {seed}, packet {number}\n{sent:02x?} became\n{left:02x?}, not\n{expected:02x?}"
        );
    }
    for port in (0..PORTS).map(PortId) {
        let counters = |device: &Device| device.node.port_counters(port).expect("the port").clone();
        let (all_counters, rest_counters) = (counters(&all), counters(&rest));
        let received = sum(rest_counters.received, fast.maps.received(port.0).expect("readable"));
        let sent = sum(rest_counters.enqueued, fast.maps.sent(port.0).expect("readable"));
        assert_eq!((received, sent), (all_counters.received, all_counters.enqueued), "seed {seed}, {port:?}");
        assert_eq!(drops(&rest.node, port), drops(&all.node, port), "seed {seed}, {port:?}");
    }
    let own_drops = |device: &Device| device.node.own_drops().iter().collect::<Vec<_>>();
    assert_eq!(own_drops(&rest), own_drops(&all), "seed {seed}");
    let mut by_sid = BTreeMap::new();
    for ((sid, of_all), (_, of_rest)) in all.node.sid_counters().zip(rest.node.sid_counters()) {
        let processed = fast.maps.processed(sid).expect("readable");
        assert_eq!(sum(of_rest, processed), of_all, "seed {seed}, SID {sid}");
        by_sid.insert(sid, processed.frames);
    }
    (forwarded, by_sid)
}

/// D235, D221.
#[test]
#[ignore = "needs root"]
fn the_program_forwards_as_the_element_does() {
    let mut processed: BTreeMap<Prefix, u64> = BTreeMap::new();
    let seeds = seeds::count(10);
    for seed in 0..seeds {
        let (forwarded, by_sid) = run(seed);
        // Neither of them has nothing to do.
        assert!((PACKETS / 10..PACKETS * 9 / 10).contains(&forwarded), "seed {seed}: {forwarded} forwarded");
        by_sid.into_iter().for_each(|(sid, frames)| *processed.entry(sid).or_default() += frames);
    }
    // Every SID that the program may have has been met often enough.
    for (sid, frames) in processed {
        assert_eq!(frames > 10 * seeds, nodes::is_programs(sid), "SID {sid}: {frames} frames");
    }
}
