//! Whole transfers between two endpoints: each request is carried out once and in order, whatever the link does.
//! `SRDMA_TEST_SEEDS` sets the number of random schedules.

use crate::net::{Event, Faults, Net};
use crate::support::{OURS, PEER, pattern, qpn};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_rc::{
    Access, CompletedOperation, Completion, Endpoint, EndpointConfig, Habits, LocalRange, Memory, MemoryKey, Operation,
    QueuePairConfig, Receive, RemoteAddress, Status, WorkRequest,
};
use srdma_testkit::seeds;
use srdma_wire::{Instant, PathMtu, Psn};
use std::net::Ipv6Addr;

const ADDRESSES: [Ipv6Addr; 2] = [OURS, PEER];
const REGION_OCTETS: usize = 300_000;
const BASE: u64 = 0x7000_0000_0000;

/// The same four regions on either side, in the order of their registration.
#[derive(Clone, Copy)]
struct Regions {
    source: MemoryKey,
    target: MemoryKey,
    library: MemoryKey,
    sink: MemoryKey,
}

/// Two endpoints that are each other's peer.
fn pair<M: Memory>(mut adjust: impl FnMut(usize, &mut QueuePairConfig)) -> [Endpoint<M>; 2] {
    let mut configs = [0, 1].map(|side| {
        let mut config = QueuePairConfig::new(qpn(0x10 + side as u32), ADDRESSES[1 - side], qpn(0x11 - side as u32));
        config.ack_timeout = 5;
        config.min_rnr_timer = 1;
        adjust(side, &mut config);
        config
    });
    configs[1].rq_psn = configs[0].sq_psn;
    configs[0].rq_psn = configs[1].sq_psn;
    let [first, second] = configs;
    [(0, first), (1, second)].map(|(side, config): (usize, _)| {
        let mut endpoint = Endpoint::new(EndpointConfig::new(ADDRESSES[side]));
        endpoint.add_queue_pair(config).expect("a good configuration");
        endpoint
    })
}

fn register(endpoint: &mut Endpoint, side: usize) -> Regions {
    let seed = side as u8;
    Regions {
        source: endpoint.register_memory(pattern(REGION_OCTETS, 10 + seed), 0, Access::LOCAL, 1),
        target: endpoint.register_memory(vec![0; REGION_OCTETS], BASE, Access::REMOTE_WRITE, 2),
        library: endpoint.register_memory(pattern(REGION_OCTETS, 20 + seed), BASE, Access::REMOTE_READ, 3),
        sink: endpoint.register_memory(vec![0; REGION_OCTETS], 0, Access::LOCAL, 4),
    }
}

/// The expected result of one side, computed without any protocol.
#[derive(Default)]
struct Expected {
    target: Vec<u8>,
    sink: Vec<u8>,
    completed: Vec<(u64, CompletedOperation, u32)>,
    received: Vec<(CompletedOperation, u32, Option<[u8; 4]>)>,
}

/// Random messages in both directions, and what should come of them.
struct Schedule {
    net: Net,
    regions: Regions,
    expected: [Expected; 2],
    /// First octet of the target, and of the sink, that no message has used yet.
    used: [[usize; 2]; 2],
}

impl Schedule {
    fn new(net: Net, regions: Regions) -> Self {
        let expected =
            || Expected { target: vec![0; REGION_OCTETS], sink: vec![0; REGION_OCTETS], ..Expected::default() };
        Schedule { net, regions, expected: [expected(), expected()], used: [[0; 2]; 2] }
    }

    fn add(&mut self, side: usize, wr_id: u64, kind: u32, length: usize, when: Instant, receive_when: Instant) {
        let peer = 1 - side;
        let immediate = (kind % 2 == 1).then_some((wr_id as u32 ^ 0xABCD_0000).to_be_bytes());
        let [target_at, sink_at] = [self.used[peer][0], self.used[side][1]];
        let far = |rkey, at: usize| RemoteAddress { virtual_address: BASE + at as u64, rkey };
        let range = |key, at: usize| LocalRange { key, offset: at as u64, length_octets: length as u32 };
        let (operation, completed) = match kind {
            0 | 1 => (Operation::Send { immediate }, CompletedOperation::Send),
            2 | 3 => {
                (Operation::Write { remote: far(self.regions.target, target_at), immediate }, CompletedOperation::Write)
            }
            _ => (Operation::Read { remote: far(self.regions.library, sink_at) }, CompletedOperation::Read),
        };
        let local = if completed == CompletedOperation::Read {
            let data = &pattern(REGION_OCTETS, 20 + peer as u8)[sink_at..sink_at + length];
            self.expected[side].sink[sink_at..sink_at + length].copy_from_slice(data);
            self.used[side][1] += length + 3;
            range(self.regions.sink, sink_at)
        } else {
            let data = &pattern(REGION_OCTETS, 10 + side as u8)[sink_at..sink_at + length];
            self.expected[peer].target[target_at..target_at + length].copy_from_slice(data);
            self.used[peer][0] += length + 3;
            range(self.regions.source, sink_at)
        };
        self.expected[side].completed.push((wr_id, completed, length as u32));
        self.net.at(when, side, Event::PostSend(WorkRequest { wr_id, operation, local, signalled: true }));

        let received = match operation {
            Operation::Send { .. } => Some((CompletedOperation::Receive, range(self.regions.target, target_at))),
            Operation::Write { immediate: Some(_), .. } => {
                let nothing = LocalRange { key: self.regions.target, offset: 0, length_octets: 0 };
                Some((CompletedOperation::ReceiveWriteImmediate, nothing))
            }
            Operation::Write { immediate: None, .. } | Operation::Read { .. } => None,
        };
        if let Some((operation, local)) = received {
            self.expected[peer].received.push((operation, length as u32, immediate));
            self.net.at(receive_when, peer, Event::PostReceive(Receive { wr_id, local }));
        }
    }

    fn run_and_check(mut self, name: &str) -> Net {
        self.net.run();
        for side in 0..2 {
            let endpoint = &mut self.net.endpoints[side];
            let completions: Vec<Completion> = std::iter::from_fn(|| endpoint.poll_completion()).collect();
            assert!(completions.iter().all(|done| done.status == Status::Success), "{name}: {completions:?}");
            let is_receive = |done: &&Completion| {
                matches!(done.operation, CompletedOperation::Receive | CompletedOperation::ReceiveWriteImmediate)
            };
            let received: Vec<_> = completions
                .iter()
                .filter(is_receive)
                .map(|done| (done.operation, done.length_octets, done.immediate))
                .collect();
            let completed: Vec<_> = completions
                .iter()
                .filter(|done| !is_receive(done))
                .map(|done| (done.wr_id, done.operation, done.length_octets))
                .collect();
            let expected = &self.expected[side];
            assert_eq!(completed, expected.completed, "{name}, side {side}");
            assert_eq!(received, expected.received, "{name}, side {side}");
            assert!(endpoint.memory(self.regions.target) == Some(&expected.target), "{name}: target of side {side}");
            assert!(endpoint.memory(self.regions.sink) == Some(&expected.sink), "{name}: sink of side {side}");
        }
        self.net
    }
}

fn schedule(faults: Faults, seed: u64, mut adjust: impl FnMut(usize, &mut QueuePairConfig)) -> Schedule {
    let mut endpoints = pair(&mut adjust);
    let regions = register(&mut endpoints[0], 0);
    register(&mut endpoints[1], 1);
    Schedule::new(Net::new(endpoints, [qpn(0x10), qpn(0x11)], faults, seed), regions)
}

#[test]
fn every_operation_at_every_path_mtu() {
    // The first timeouts of adaptive retransmission are below the time that a queue of READs takes.
    let selective = Habits { adapts_timeouts: false, ..Habits::strict().with_selective_repeat() };
    for mtu in PathMtu::ALL {
        for habits in [Habits::strict(), Habits::soft_roce(), selective] {
            let mut schedule = schedule(Faults::default(), 1, |side, config| {
                config.path_mtu = mtu;
                config.habits = habits;
                config.sq_psn = Psn::new(0xFF_FFFD + side as u32);
            });
            let mtu = mtu.octets() as usize;
            let lengths = [0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 2];
            let messages = (0..5).flat_map(|kind| lengths.map(|length| (kind, length)));
            for (wr_id, (kind, length)) in messages.enumerate() {
                for side in 0..2 {
                    schedule.add(side, wr_id as u64, kind, length, Instant::ZERO, Instant::ZERO);
                }
            }
            let net = schedule.run_and_check(&format!("path MTU {mtu}, {habits:?}"));
            for side in 0..2 {
                let counters = net.endpoints[side].counters(net.qpns[side]).expect("queue pair");
                assert_eq!((counters.packets_retransmitted, counters.timeouts, counters.naks_sent), (0, 0, 0));
                assert_eq!(net.endpoints[side].drops().get(srdma_rc::DropReason::BadIcrc), 0);
            }
        }
    }
}

#[test]
fn random_schedules_over_bad_wires() {
    let mut retransmitted = 0;
    let schedules = seeds::count(2_000);
    for seed in 0..schedules {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let probability = |rng: &mut Pcg64Mcg| [0.0, 0.01, 0.05][rng.random_range(0..3usize)];
        let faults = Faults {
            loss: probability(&mut rng),
            duplicate: probability(&mut rng),
            reorder: probability(&mut rng),
            corrupt: probability(&mut rng),
        };
        let mtu = PathMtu::ALL[rng.random_range(0..5usize)];
        let kinds = [Habits::strict(), Habits::soft_roce(), Habits::strict().with_selective_repeat()];
        let habits = [0, 1].map(|_| kinds[rng.random_range(0..3usize)]);
        let psns = [rng.random_range(0..0x200), 0xFF_FF00 + rng.random_range(0..0x200)];
        let window = [1, 7, 128][rng.random_range(0..3usize)];
        let mut schedule = schedule(faults, seed, |side, config| {
            config.path_mtu = mtu;
            config.habits = Habits { max_outstanding_psns: window, ..habits[side] };
            config.sq_psn = Psn::new(psns[(side + seed as usize) % 2]);
            config.max_outstanding_reads = 2;
        });
        let mut when = [Instant::ZERO; 2];
        let mut receive_when = [Instant::ZERO; 2];
        for wr_id in 0..rng.random_range(1..8) {
            for side in 0..2 {
                let mtu = mtu.octets() as usize;
                let length = match rng.random_range(0..4) {
                    0 => [0, 1, mtu - 1, mtu, mtu + 1][rng.random_range(0..5usize)],
                    _ => rng.random_range(0..6 * mtu),
                };
                when[side] = when[side].after_ns([0, 0, 5_000][rng.random_range(0..3usize)]);
                // Sometimes the receive is posted late: an RNR NAK.
                receive_when[side] = receive_when[side].after_ns([0, 0, 30_000][rng.random_range(0..3usize)]);
                schedule.add(side, wr_id, rng.random_range(0..5), length, when[side], receive_when[side]);
            }
        }
        let net = schedule.run_and_check(&format!("seed {seed}"));
        for side in 0..2 {
            retransmitted += net.endpoints[side].counters(net.qpns[side]).expect("queue pair").packets_retransmitted;
        }
    }
    assert!(retransmitted > 5 * schedules, "the wires were bad: {retransmitted}");
}

/// A memory that takes octets in order only, and keeps none of them.
struct Stream {
    length: u64,
    next: u64,
    seed: u8,
}

impl Memory for Stream {
    fn len(&self) -> u64 {
        self.length
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        assert_eq!(offset, self.next, "in order, each octet once");
        self.next += octets.len() as u64;
        let expected = (offset as usize..).map(|i| octet(i, self.seed));
        assert!(octets.iter().copied().eq(expected.take(octets.len())), "what was sent, at {offset}");
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        for (i, place) in into.iter_mut().enumerate() {
            *place = octet(offset as usize + i, self.seed);
        }
    }
}

fn octet(i: usize, seed: u8) -> u8 {
    (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed
}

#[test]
fn a_streaming_region_sees_each_octet_once_and_in_order() {
    const MESSAGE: u32 = 100_000;
    const MESSAGES: u64 = 20;
    for habits in [Habits::strict(), Habits::soft_roce(), Habits::strict().with_selective_repeat()] {
        let mut endpoints = pair::<Stream>(|_, config| {
            config.path_mtu = PathMtu::Octets1024;
            config.habits = habits;
            config.sq_psn = Psn::new(0xFF_FF80);
            config.ack_timeout = 6;
        });
        let length = u64::from(MESSAGE) * MESSAGES;
        let stream = || Stream { length, next: 0, seed: 5 };
        let source = endpoints[0].register_memory(stream(), 0, Access::LOCAL, 1);
        let target = endpoints[1].register_memory(stream(), BASE, Access::REMOTE_WRITE, 2);
        let faults = Faults { loss: 0.01, duplicate: 0.01, reorder: 0.01, corrupt: 0.01 };
        let mut net = Net::new(endpoints, [qpn(0x10), qpn(0x11)], faults, 3);
        for wr_id in 0..MESSAGES {
            let offset = wr_id * u64::from(MESSAGE);
            let remote = RemoteAddress { virtual_address: BASE + offset, rkey: target };
            let request = WorkRequest {
                wr_id,
                operation: Operation::Write { remote, immediate: None },
                local: LocalRange { key: source, offset, length_octets: MESSAGE },
                signalled: true,
            };
            net.at(Instant::ZERO, 0, Event::PostSend(request));
        }
        net.run();
        let done = std::iter::from_fn(|| net.endpoints[0].poll_completion());
        assert_eq!(done.filter(|done| done.status == Status::Success).count() as u64, MESSAGES);
        assert_eq!(net.endpoints[1].memory(target).expect("region").next, length);
        let received = net.endpoints[1].counters(net.qpns[1]).expect("queue pair").payload_octets_received;
        assert_eq!(received, length);
        let (sent, packets) = {
            let counters = net.endpoints[0].counters(net.qpns[0]).expect("queue pair");
            (counters.payload_octets_sent, net.packets_carried)
        };
        assert!(sent > length && packets > 2_000, "there were losses to make good: {sent} octets");
    }
}

#[test]
fn queue_pairs_take_turns() {
    let mut endpoint: Endpoint = Endpoint::new(EndpointConfig::new(OURS));
    let key = endpoint.register_memory(vec![0; 100_000], 0, Access::LOCAL, 1);
    for number in 0x10..0x13 {
        endpoint.add_queue_pair(QueuePairConfig::new(qpn(number), PEER, qpn(0x100 + number))).expect("good");
        let request = WorkRequest {
            wr_id: 0,
            operation: Operation::Send { immediate: None },
            local: LocalRange { key, offset: 0, length_octets: 3 * 4096 },
            signalled: true,
        };
        endpoint.post_send(qpn(number), request).expect("posted");
    }
    let mut buffer = vec![0; endpoint.max_packet_octets()];
    let mut turns = Vec::new();
    while endpoint.poll_transmit(Instant::ZERO, &mut buffer).is_some() {
        turns.push(buffer[55]); // low octet of the Destination QP
    }
    assert_eq!(turns, [0x10, 0x11, 0x12, 0x10, 0x11, 0x12, 0x10, 0x11, 0x12]);
}

#[test]
fn responses_go_before_requests() {
    let mut endpoints: [Endpoint; 2] = pair(|_, config| config.path_mtu = PathMtu::Octets256);
    let keys = endpoints.each_mut().map(|endpoint| endpoint.register_memory(vec![0; 4096], BASE, Access::REMOTE, 1));
    for side in 0..2 {
        let remote = RemoteAddress { virtual_address: BASE, rkey: keys[1 - side] };
        let request = WorkRequest {
            wr_id: 0,
            operation: Operation::Write { remote, immediate: None },
            local: LocalRange { key: keys[side], offset: 0, length_octets: 256 },
            signalled: true,
        };
        endpoints[side].post_send(qpn(0x10 + side as u32), request).expect("posted");
    }
    let [near, far] = &mut endpoints;
    let mut buffer = vec![0; far.max_packet_octets()];
    let length = far.poll_transmit(Instant::ZERO, &mut buffer).expect("a WRITE");
    near.receive(Instant::ZERO, &[&buffer[..length]]).expect("taken");
    let mut opcodes = Vec::new();
    while near.poll_transmit(Instant::ZERO, &mut buffer).is_some() {
        opcodes.push(srdma_wire::Opcode(buffer[48]));
    }
    assert_eq!(opcodes, [srdma_wire::Opcode::ACKNOWLEDGE, srdma_wire::Opcode::WRITE_ONLY]);
}
