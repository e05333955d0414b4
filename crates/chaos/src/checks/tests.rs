//! Each check can fail: violations are provoked behind the world's back.

use crate::address;
use crate::outcome::ViolationKind;
use crate::schedule::Schedule;
use crate::world::World;
use srdma_frame::Frame;
use srdma_rc::MemoryKey;
use srdma_sim::addressing;
use srdma_sim::host::HOST_PORT;
use srdma_sim::network::{Direction, Network};
use srdma_sim::replica::Replica;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::icrc::Computation;
use srdma_wire::{Aeth, Bth, EtherType, Ethernet, Instant, Ipv6, NextHeader, Opcode, Psn, Syndrome, Udp};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// One edge, two receivers, one group of 64 packets, no fault.
const WITHOUT_FAULTS: &str = r#"{
    "seed": 1,
    "nodes": [{"parent": null}, {"parent": 0}],
    "receivers": [1, 1],
    "link": {"rate_bits_per_s": 10000000000, "delay_ns": 1000, "loss_ppm": 0, "duplicate_ppm": 0, "reorder_ppm": 0,
        "spike_ppm": 0, "spike_ns": 0, "corrupt_ppm": 0},
    "groups": [{"source": 0, "members": [0, 1], "start_ns": 0, "octets": 65536, "message_octets": 4096, "first_psn": 5,
        "operation": "Send", "unlimited_retries": true,
        "policy": {"literal": false, "evict": true, "prune_retransmit": false, "lists": "Auto", "t_hold_percent": 100,
            "trailing_cnps": false, "min_receivers": 1}}],
    "events": [],
    "faults_end_ns": 0
}"#;

/// Kinds of violations of a run with `action` at 20 µs.
fn violations(action: impl FnOnce(&mut World<'_>)) -> Vec<ViolationKind> {
    let schedule: Schedule = serde_json::from_str(WITHOUT_FAULTS).expect("valid");
    let mut world = World::new(&schedule, Network::new(1, 1 << 12), false).expect("it can be set up");
    let at = Instant::from_ns(20_000);
    world.run_until(at);
    assert!(!world.is_finished() && world.outcome.violations.is_empty());
    action(&mut world);
    world.run();
    let (outcome, _) = world.finish();
    let mut kinds: Vec<ViolationKind> = outcome.violations.iter().map(|violation| violation.kind).collect();
    kinds.dedup();
    kinds
}

/// Injects a response at the source.
fn inject_response(world: &mut World<'_>, syndrome: Syndrome, psn: Psn) {
    let (source, proxy) = (address::source(0), address::proxy(0));
    let aeth = Aeth { syndrome, msn: 0 }.emit();
    let len = Udp::LEN + Bth::LEN + aeth.as_bytes().len() + 4;
    let ipv6 = Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_length: len as u16,
        next_header: NextHeader::UDP,
        hop_limit: 64,
        source: proxy,
        destination: source,
    };
    let udp = Udp { source_port: 0xC000, destination_port: ROCEV2_PORT, length: len as u16, checksum: 0 };
    let bth = Bth::new(Opcode::ACKNOWLEDGE, address::source_qpn(0), psn);
    let (ipv6, udp, bth) = (ipv6.emit(), udp.emit(), bth.emit());
    let mut computation = Computation::begin(&ipv6, 0, &udp, &bth);
    computation.update(aeth.as_bytes());
    let icrc = computation.finish();
    let destination = addressing::mac(0, HOST_PORT);
    let ethernet = Ethernet { destination, source: destination, ethertype: EtherType::IPV6 }.emit();
    let parts = [ethernet.as_bytes(), ipv6.as_bytes(), udp.as_bytes(), bth.as_bytes(), aeth.as_bytes(), &icrc.0];
    let element = world.testbed.sources[0];
    world.network.inject((element, HOST_PORT), &parts.concat());
    world.observe(element);
}

/// The PSN of an outstanding packet.
fn last_sent(world: &World<'_>) -> Psn {
    world.flows[0].next_psn(&world.network).previous()
}

#[test]
fn a_run_without_faults_has_no_violations() {
    assert_eq!(violations(|_| {}), []);
}

/// MT-5.3.1-1, MT-5.3.2-1
#[test]
fn a_false_response_violates_safety() {
    let kinds = violations(|world| inject_response(world, Syndrome::ACK, last_sent(world)));
    assert_eq!(kinds.first(), Some(&ViolationKind::Safety));
    let kinds = violations(|world| inject_response(world, Syndrome::SEQUENCE_ERROR, last_sent(world)));
    assert_eq!(kinds.first(), Some(&ViolationKind::Safety));
    assert_eq!(
        violations(|world| inject_response(world, Syndrome::ACK, Psn::new(4))),
        [],
        "a true response is no violation"
    );
}

#[test]
fn lost_and_foreign_octets_are_reported() {
    let lost = violations(|world| {
        let replica = Replica::empty(Arc::new(vec![0; 65536]));
        let receiver = world.testbed.receivers[1];
        world.network.with_host(receiver, |host| host.replace_region(MemoryKey(1), replica));
    });
    assert!(lost.contains(&ViolationKind::WrongData), "{lost:?}");
}

#[test]
fn a_group_without_progress_violates_liveness() {
    let stuck =
        violations(|world| world.network.faults_mut(world.testbed.receiver_links[0], Direction::Up).is_down = true);
    assert!(stuck.contains(&ViolationKind::Membership), "evicted without a fault: {stuck:?}");
    let stuck = violations(|world| {
        let link = world.testbed.link_above(1, 0).expect("there is one");
        world.network.faults_mut(link, Direction::Up).is_down = true;
    });
    assert!(stuck.contains(&ViolationKind::Liveness), "{stuck:?}");
}

#[test]
fn a_source_that_fails_without_a_fault_is_reported() {
    let failed = violations(|world| inject_response(world, Syndrome::INVALID_REQUEST, last_sent(world)));
    assert!(failed.contains(&ViolationKind::UnexpectedFailure), "{failed:?}");
}

#[test]
fn leaked_frames_are_reported() {
    let left = violations(|world| {
        let element = world.testbed.sources[0];
        let frame = world.network.with(element, |_, _, pool| Frame::small(&[0; 60], pool));
        assert!(frame.is_some(), "the pool has room");
    });
    assert_eq!(left, [ViolationKind::Leak]);
}
