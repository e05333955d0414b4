//! Queue pairs that do not send as fast as they can: pacing, windows, and the CNPs that make rates fall.

use crate::net::{Event, Faults, Net};
use crate::support::{Given, OURS, PEER, Rig, pattern, qpn};
use srdma_rc::rate::{self, DcqcnParameters};
use srdma_rc::{
    Access, CNP_INTERVAL_NS, CompletedOperation, ConfigError, Endpoint, EndpointConfig, LocalRange, MemoryKey,
    Operation, QueuePairConfig, RateAlgorithm, RateControl, RateLimits, Receive, RemoteAddress, Status, WorkRequest,
};
use srdma_wire::units::GBIT_PER_S;
use srdma_wire::{Instant, Opcode};

const REGION_OCTETS: usize = 1 << 20;

/// Octets of a full WRITE Middle on the link: 4,096 of payload, 64 of headers and ICRC, 38 of Ethernet.
const LINK_OCTETS: u64 = 4096 + 64 + 38;

fn fixed(bits_per_s: u64) -> impl FnOnce(&mut QueuePairConfig) {
    move |config| config.rate = Some(RateAlgorithm::Fixed { bits_per_s })
}

fn write(key: MemoryKey, length_octets: u32) -> WorkRequest {
    let remote = RemoteAddress { virtual_address: 0x1000, rkey: key };
    WorkRequest {
        wr_id: 1,
        operation: Operation::Write { remote, immediate: None },
        local: LocalRange { key, offset: 0, length_octets },
        signalled: true,
    }
}

/// Sends everything that a rig has until `end`; returns the time of each packet.
fn departures(rig: &mut Rig, end_ns: u64) -> Vec<(u64, Opcode)> {
    let mut departures = Vec::new();
    loop {
        departures.extend(rig.sent().iter().map(|packet| (rig.now.as_ns(), packet.opcode)));
        let deadline = rig.endpoint.next_deadline().filter(|deadline| deadline.as_ns() <= end_ns);
        let Some(deadline) = deadline else { return departures };
        assert!(deadline > rig.now, "a deadline that does not move");
        assert!(!rig.endpoint.may_transmit(), "nothing is due");
        rig.now = deadline;
        rig.endpoint.tick(rig.now);
    }
}

#[test]
fn packets_leave_when_they_are_due() {
    let mut rig = Rig::new(fixed(8 * GBIT_PER_S));
    let key = rig.region(REGION_OCTETS, Access::LOCAL);
    rig.endpoint.post_send(rig.qpn, write(key, 4 * 4096)).expect("posted");
    let times: Vec<u64> = departures(&mut rig, 1_000_000).into_iter().map(|(at, _)| at).collect();
    // The first has a RETH of 16 octets more; an octet takes a nanosecond.
    assert_eq!(times, [0, LINK_OCTETS + 16, 2 * LINK_OCTETS + 16, 3 * LINK_OCTETS + 16]);
    let limits = RateLimits { rate_bits_per_s: Some(8 * GBIT_PER_S), window_octets: None };
    assert_eq!(rig.endpoint.rate_limits(rig.now, rig.qpn), Some(limits));
}

#[test]
fn a_request_posted_later_is_sent_when_the_rate_allows() {
    let mut rig = Rig::new(fixed(8 * GBIT_PER_S));
    let key = rig.region(REGION_OCTETS, Access::LOCAL);
    rig.endpoint.post_send(rig.qpn, write(key, 4096)).expect("posted");
    assert_eq!(rig.psns(), [0]);
    rig.advance_ns(1_000);
    rig.endpoint.post_send(rig.qpn, write(key, 4096)).expect("posted");
    assert!(!rig.endpoint.may_transmit());
    assert_eq!(rig.endpoint.next_deadline(), Some(Instant::from_ns(LINK_OCTETS + 16)));
    rig.advance_ns(LINK_OCTETS + 16 - 1_000);
    assert_eq!(rig.psns(), [1]);
    rig.advance_ns(1_000_000);
    rig.endpoint.post_send(rig.qpn, write(key, 4096)).expect("posted");
    assert!(rig.endpoint.may_transmit(), "its time is long past");
}

#[test]
fn acknowledgements_and_cnps_are_never_paced() {
    let mut rig = Rig::new(|config| {
        config.rate = Some(RateAlgorithm::Fixed { bits_per_s: 1_000_000 });
        config.cnp_interval_ns = Some(CNP_INTERVAL_NS);
    });
    let key = rig.region(REGION_OCTETS, Access::REMOTE_WRITE);
    rig.endpoint.post_send(rig.qpn, write(key, 2 * 4096)).expect("posted");
    assert_eq!(rig.psns(), [0]);
    for psn in 0..3 {
        let given = Given::new(Opcode::WRITE_ONLY, psn, vec![7; 64]).reth(0x1000, key, 64).ack_request();
        let mut octets = given.octets();
        octets[1] |= 0x30;
        rig.endpoint.receive(rig.now, &[&octets]).expect("good");
    }
    let opcodes: Vec<Opcode> = rig.sent().iter().map(|packet| packet.opcode).collect();
    assert_eq!(opcodes, [Opcode::CNP, Opcode::ACKNOWLEDGE], "one CNP in 50 µs (FC-3-2), and the merged ACKs");
}

#[test]
fn read_responses_are_paced() {
    let mut rig = Rig::new(fixed(8 * GBIT_PER_S));
    let key = rig.region(REGION_OCTETS, Access::REMOTE);
    rig.give(&Given::new(Opcode::READ_REQUEST, 0, vec![]).reth(0x1000, key, 3 * 4096)).expect("good");
    let departures = departures(&mut rig, 1_000_000);
    let times: Vec<u64> = departures.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, LINK_OCTETS + 4, 2 * LINK_OCTETS + 4], "the first has an AETH");
    assert_eq!(departures[1].1, Opcode::READ_RESPONSE_MIDDLE);
}

#[test]
fn a_cnp_cuts_the_rate_of_the_packet_that_waits() {
    let mut parameters = DcqcnParameters::sigcomm_2015(8 * GBIT_PER_S);
    parameters.octets_per_increase = None;
    let mut rig = Rig::new(|config| config.rate = Some(RateAlgorithm::Dcqcn(parameters)));
    let key = rig.region(REGION_OCTETS, Access::LOCAL);
    rig.endpoint.post_send(rig.qpn, write(key, 512 * 1024)).expect("posted");
    assert_eq!(rig.psns().len(), 128, "nothing limits it yet");
    rig.give(&Given::response(99, 0x1F)).expect("acknowledges a hundred");
    rig.give(&Given::new(Opcode::CNP, 0, vec![])).expect("a CNP");
    let limits = rig.endpoint.rate_limits(rig.now, rig.qpn).expect("it has a rate control");
    assert_eq!(limits.rate_bits_per_s, Some(4 * GBIT_PER_S));
    rig.endpoint.post_send(rig.qpn, write(key, 64 * 4096)).expect("posted");
    let times: Vec<u64> = departures(&mut rig, 50_000).into_iter().map(|(at, _)| at).collect();
    assert_eq!(times[..3], [0, 2 * LINK_OCTETS + 32, 4 * LINK_OCTETS + 32], "half the rate");
    assert_eq!(rig.endpoint.counters(rig.qpn).expect("there").cnps_received, 1);
}

/// A window of so many octets, at any rate.
#[derive(Debug)]
struct Window(u64);

impl RateControl for Window {
    fn on(&mut self, _now: Instant, _event: rate::Event<'_>) {}

    fn rate_bits_per_s(&self) -> Option<u64> {
        None
    }

    fn window_octets(&self) -> Option<u64> {
        Some(self.0)
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_window_bounds_unacknowledged_octets() {
    let mut rig = Rig::new(|_| {});
    rig.endpoint.set_rate_control(rig.qpn, Box::new(Window(40_000))).expect("there");
    let key = rig.region(REGION_OCTETS, Access::LOCAL);
    rig.endpoint.post_send(rig.qpn, write(key, 50 * 4096)).expect("posted");
    let sent = rig.sent();
    assert_eq!(sent.len(), 10, "the tenth packet begins inside the window");
    assert!(
        sent.last().is_some_and(|packet| packet.ack_request),
        "the packet that fills it requests an acknowledgement"
    );
    rig.give(&Given::response(3, 0x1F)).expect("an ACK of four");
    assert_eq!(rig.psns(), [10, 11, 12, 13]);
    rig.endpoint.set_rate_control(rig.qpn, Box::new(Window(1))).expect("there");
    assert_eq!(rig.psns(), [], "nothing more until all are acknowledged");
    rig.give(&Given::response(13, 0x1F)).expect("an ACK");
    assert_eq!(rig.psns(), [14], "one may always be in flight");
    assert!(rig.endpoint.set_rate_control(qpn(0x99), Box::new(Window(1))).is_err());
}

#[test]
fn parameters_out_of_range_make_no_queue_pair() {
    let mut endpoint: Endpoint = Endpoint::new(EndpointConfig::new(OURS));
    let mut config = QueuePairConfig::new(qpn(0x11), PEER, qpn(0x22));
    config.rate = Some(RateAlgorithm::Fixed { bits_per_s: 0 });
    let error = endpoint.add_queue_pair(config).expect_err("no rate");
    assert!(matches!(error, ConfigError::Rate { .. }));
    assert_eq!(error.to_string(), "queue pair 0x11: rate control: bits_per_s must be at least 1, found 0");
    assert_eq!(endpoint.state(qpn(0x11)), None);
}

/// Two endpoints over a wire that loses and reorders: every octet arrives, at no more than the rate.
#[test]
fn paced_transfers_arrive_over_a_bad_wire() {
    for seed in 0..40 {
        let numbers = [qpn(0x100), qpn(0x200)];
        let mut keys = Vec::new();
        let endpoints = [0, 1].map(|side: usize| {
            let mut endpoint = Endpoint::new(EndpointConfig::new([OURS, PEER][side]));
            let rate = match (side + seed) % 3 {
                0 => Some(RateAlgorithm::Fixed { bits_per_s: 5 * GBIT_PER_S }),
                1 => Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(20 * GBIT_PER_S))),
                _ => None,
            };
            let config = QueuePairConfig::new(numbers[side], [PEER, OURS][side], numbers[1 - side]);
            endpoint
                .add_queue_pair(QueuePairConfig { rate, cnp_interval_ns: Some(CNP_INTERVAL_NS), ..config })
                .expect("a good configuration");
            keys.push(endpoint.register_memory(pattern(REGION_OCTETS, side as u8), 0x1000, Access::REMOTE, 0x42));
            endpoint
        });
        let faults = Faults { loss: 0.01, duplicate: 0.01, reorder: 0.01, corrupt: 0.01 };
        let mut net = Net::new(endpoints, numbers, faults, seed as u64);
        for side in 0..2 {
            let half = REGION_OCTETS as u32 / 2;
            let local = LocalRange { key: keys[side], offset: 0, length_octets: half };
            let remote = RemoteAddress { virtual_address: 0x1000 + u64::from(half), rkey: keys[1 - side] };
            let operation = Operation::Write { remote, immediate: Some([1; 4]) };
            let request = WorkRequest { wr_id: 9, operation, local, signalled: true };
            net.at(Instant::ZERO, side, Event::PostSend(request));
            let nothing = LocalRange { key: keys[side], offset: 0, length_octets: 0 };
            net.at(Instant::ZERO, side, Event::PostReceive(Receive { wr_id: 8, local: nothing }));
        }
        net.run();
        let half = REGION_OCTETS / 2;
        for (side, key) in keys.iter().enumerate() {
            let completions: Vec<_> = std::iter::from_fn(|| net.endpoints[side].poll_completion()).collect();
            assert!(completions.iter().all(|done| done.status == Status::Success), "seed {seed}: {completions:?}");
            assert!(completions.iter().any(|done| done.operation == CompletedOperation::Write), "seed {seed}");
            let memory = net.endpoints[side].memory(*key).expect("a region");
            assert!(memory[half..] == pattern(REGION_OCTETS, 1 - side as u8)[..half], "seed {seed}");
            if (side + seed) % 3 == 0 {
                assert!(net.now.as_ns() >= half as u64 * 8 / 5, "seed {seed}: 5 Gbit/s and no more");
            }
        }
    }
}
