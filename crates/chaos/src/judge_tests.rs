//! Each check can fail: what must never happen is made to happen behind the world's back.

use crate::address;
use crate::outcome::ComplaintKind;
use crate::schedule::Schedule;
use crate::world::World;
use srdma_frame::Frame;
use srdma_rc::MemoryKey;
use srdma_sim::host::HOST_PORT;
use srdma_sim::network::{Network, Way};
use srdma_sim::plan;
use srdma_sim::replica::Replica;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::icrc::Computation;
use srdma_wire::{Aeth, Bth, EtherType, Ethernet, Instant, Ipv6, NextHeader, Opcode, Psn, Syndrome, Udp};
use std::rc::Rc;
use zerocopy::IntoBytes;

/// One edge, two receivers, one group of 64 packets, no fault.
const CALM: &str = r#"{
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

/// What the run complains of after `action` at 20 µs.
fn complaints(action: impl FnOnce(&mut World<'_>)) -> Vec<ComplaintKind> {
    let schedule: Schedule = serde_json::from_str(CALM).expect("a schedule");
    let mut world = World::new(&schedule, Network::new(1, 1 << 12), false).expect("it can be set up");
    let at = Instant::from_ns(20_000);
    world.run_until(at);
    assert!(!world.is_over() && world.outcome.complaints.is_empty());
    action(&mut world);
    world.run();
    let (outcome, _) = world.finish();
    let mut kinds: Vec<ComplaintKind> = outcome.complaints.iter().map(|complaint| complaint.kind).collect();
    kinds.dedup();
    kinds
}

/// A response in the source's ears.
fn whisper(world: &mut World<'_>, syndrome: Syndrome, psn: Psn) {
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
    let destination = plan::mac(0, HOST_PORT);
    let ethernet = Ethernet { destination, source: destination, ethertype: EtherType::IPV6 }.emit();
    let pieces = [ethernet.as_bytes(), ipv6.as_bytes(), udp.as_bytes(), bth.as_bytes(), aeth.as_bytes(), &icrc.0];
    let element = world.site.sources[0];
    world.network.inject((element, HOST_PORT), &pieces.concat());
    world.look_at(element);
}

/// The PSN of a packet that is on its way.
fn last_sent(world: &World<'_>) -> Psn {
    world.flows[0].next_psn(&world.network).previous()
}

#[test]
fn a_calm_run_has_no_complaints() {
    assert_eq!(complaints(|_| {}), []);
}

/// MT-5.3.1-1, MT-5.3.2-1
#[test]
fn an_untrue_response_is_heard() {
    let untrue = complaints(|world| whisper(world, Syndrome::ACK, last_sent(world)));
    assert_eq!(untrue.first(), Some(&ComplaintKind::Untrue));
    let untrue = complaints(|world| whisper(world, Syndrome::SEQUENCE_ERROR, last_sent(world)));
    assert_eq!(untrue.first(), Some(&ComplaintKind::Untrue));
    assert_eq!(complaints(|world| whisper(world, Syndrome::ACK, Psn::new(4))), [], "what is true may be said");
}

#[test]
fn lost_and_foreign_octets_are_seen() {
    let lost = complaints(|world| {
        let replica = Replica::empty(Rc::new(vec![0; 65536]));
        let receiver = world.site.receivers[1];
        world.network.with_host(receiver, |host| host.replace_region(MemoryKey(1), replica));
    });
    assert!(lost.contains(&ComplaintKind::WrongData), "{lost:?}");
}

#[test]
fn a_group_that_does_not_go_on_is_stuck() {
    let stuck = complaints(|world| world.network.trouble_mut(world.site.receiver_links[0], Way::Up).is_cut = true);
    assert!(stuck.contains(&ComplaintKind::Membership), "evicted, though nothing is known to be wrong: {stuck:?}");
    let stuck = complaints(|world| {
        let link = world.site.link_above(1, 0).expect("there is one");
        world.network.trouble_mut(link, Way::Up).is_cut = true;
    });
    assert!(stuck.contains(&ComplaintKind::Stuck), "{stuck:?}");
}

#[test]
fn a_source_that_fails_for_nothing_is_seen() {
    let failed = complaints(|world| whisper(world, Syndrome::INVALID_REQUEST, last_sent(world)));
    assert!(failed.contains(&ComplaintKind::Failed), "{failed:?}");
}

#[test]
fn frames_that_are_left_are_counted() {
    let left = complaints(|world| {
        let element = world.site.sources[0];
        let frame = world.network.with(element, |_, _, pool| Frame::small(&[0; 60], pool));
        assert!(frame.is_some(), "nobody gives it back");
    });
    assert_eq!(left, [ComplaintKind::Leak]);
}
