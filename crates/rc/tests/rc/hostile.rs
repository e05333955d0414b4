//! Packets that the endpoint must drop.

use crate::support::{Given, OURS, PEER, Rig, pattern, qpn};
use proptest::prelude::*;
use srdma_rc::{
    Access, DropReason, Endpoint, EndpointConfig, Habits, LocalRange, MemoryKey, Operation, QueuePairConfig,
    QueuePairState, Receive, RemoteAddress, WorkRequest,
};
use srdma_wire::{Aeth, Bth, Opcode, PathMtu, Psn, Syndrome};

const REGION_OCTETS: usize = 2048;

/// An endpoint in the midst of things: requests outstanding, a receive posted.
fn busy(habits: Habits) -> (Rig, MemoryKey) {
    let mut rig = Rig::new(|config| {
        config.path_mtu = PathMtu::Octets256;
        config.habits = habits;
        config.sq_psn = Psn::new(0xFF_FFFE);
        config.rq_psn = Psn::new(0xFF_FFFF);
    });
    let key = rig.endpoint.register_memory(pattern(REGION_OCTETS, 1), 0x1000, Access::REMOTE, 0x42);
    let remote = RemoteAddress { virtual_address: 0x9000, rkey: MemoryKey(0x1234) };
    let local = |length_octets| LocalRange { key, offset: 1024, length_octets };
    for operation in [
        Operation::Send { immediate: None },
        Operation::Read { remote },
        Operation::Write { remote, immediate: Some([1; 4]) },
    ] {
        let request = WorkRequest { wr_id: 1, operation, local: local(700), signalled: true };
        rig.endpoint.post_send(rig.qpn, request).expect("posted");
    }
    rig.endpoint.post_receive(rig.qpn, Receive { wr_id: 2, local: local(512) }).expect("posted");
    rig.sent();
    (rig, key)
}

/// Bits that a router may change without effect at the receiver: traffic class, flow label and hop limit of IPv6, and
/// the fifth octet of the BTH (IBTA annex A17.3.3).
fn is_outside_the_icrc(octet: usize, bit: usize) -> bool {
    match octet {
        0 => bit < 4,
        1..=3 | 7 | 52 => true,
        _ => false,
    }
}

#[test]
fn no_damaged_bit_is_accepted() {
    let whole = Given::new(Opcode::WRITE_ONLY, 0xFF_FFFF, vec![0xAA; 30]);
    let (_, key) = busy(Habits::strict());
    let packet = whole.reth(0x1000, key, 30).ack_request().octets();
    for octet in 0..packet.len() {
        for bit in 0..8 {
            let (mut rig, key) = busy(Habits::strict());
            let before = rig.endpoint.memory(key).expect("region").clone();
            let mut damaged = packet.clone();
            damaged[octet] ^= 1 << bit;
            let outcome = rig.endpoint.receive(rig.now, &[&damaged]);
            let is_changed = rig.endpoint.memory(key) != Some(&before);
            assert_eq!(outcome.is_ok(), is_outside_the_icrc(octet, bit), "octet {octet}, bit {bit}: {outcome:?}");
            assert_eq!(is_changed, outcome.is_ok(), "octet {octet}, bit {bit}");
            assert_eq!(rig.endpoint.drops().total(), u64::from(outcome.is_err()));
        }
    }
}

#[test]
fn every_refusal_has_its_name() {
    let (mut rig, key) = busy(Habits::strict());
    let good = Given::new(Opcode::WRITE_ONLY, 0xFF_FFFF, vec![0xAA; 32]).reth(0x1000, key, 32).octets();
    let with = |offset: usize, octets: &[u8]| {
        let mut packet = good.clone();
        packet[offset..offset + octets.len()].copy_from_slice(octets);
        packet
    };
    let cases: [(&str, Vec<u8>, DropReason); 16] = [
        ("nothing", vec![], DropReason::Truncated),
        ("half an IPv6 header", good[..20].to_vec(), DropReason::Truncated),
        ("cut behind the BTH", good[..60].to_vec(), DropReason::Truncated),
        ("one octet short", good[..good.len() - 1].to_vec(), DropReason::Truncated),
        ("IPv4", with(0, &[0x45]), DropReason::NotIpv6),
        ("TCP", with(6, &[6]), DropReason::NotUdp),
        ("an SRH before UDP", with(6, &[43]), DropReason::NotUdp),
        ("another UDP port", with(42, &[0x12, 0xB8]), DropReason::NotRoce),
        ("UDP length", with(44, &[0, 60]), DropReason::UdpLength),
        ("UDP checksum", with(46, &[1, 2]), DropReason::BadUdpChecksum),
        ("another destination", with(39, &[9]), DropReason::NotOurAddress),
        ("another source (D11)", with(23, &[9]), DropReason::UnexpectedSource),
        ("transport version", with(49, &[1]), DropReason::TransportVersion),
        ("Unreliable Connection", with(48, &[0x2A]), DropReason::UnknownOpcode),
        ("another partition", with(50, &[0xFF, 0xFE]), DropReason::PartitionKey),
        ("another queue pair", with(53, &[0, 0, 0x12]), DropReason::UnknownQueuePair),
    ];
    for (name, packet, reason) in cases {
        let before = rig.endpoint.drops().get(reason);
        assert_eq!(rig.endpoint.receive(rig.now, &[&packet]), Err(reason), "{name}");
        assert_eq!(rig.endpoint.drops().get(reason), before + 1, "{name}");
    }
    assert_eq!(rig.endpoint.receive(rig.now, &[]), Err(DropReason::Truncated));
    let odd = Given::new(Opcode::WRITE_ONLY, 0xFF_FFFF, vec![0xAA; 32]).reth(0x1000, key, 32);
    let mut odd = odd.octets();
    odd.truncate(odd.len() - 1);
    let length = (odd.len() - 40) as u16;
    odd[4..6].copy_from_slice(&length.to_be_bytes());
    odd[44..46].copy_from_slice(&length.to_be_bytes());
    assert_eq!(rig.endpoint.receive(rig.now, &[&odd]), Err(DropReason::PadCount));
    let split = [&good[..70], &good[70..]];
    assert_eq!(rig.endpoint.receive(rig.now, &split), Err(DropReason::HeadersNotContiguous), "inside the RETH");
    rig.endpoint.receive(rig.now, &[&good, &[0; 3]]).expect("the good one, with link-layer padding behind it");
}

#[test]
fn the_icrc_may_be_left_to_the_link() {
    let mut config = EndpointConfig::new(OURS);
    config.verify_icrc = false;
    let mut endpoint: Endpoint = Endpoint::new(config);
    endpoint.add_queue_pair(QueuePairConfig::new(qpn(0x11), PEER, qpn(0x22))).expect("good");
    let key = endpoint.register_memory(vec![0; 64], 0x1000, Access::REMOTE_WRITE, 0);
    let mut packet = Given::new(Opcode::WRITE_ONLY, 0, vec![0xAA; 32]).reth(0x1000, key, 32).octets();
    let last = packet.len() - 1;
    packet[last] ^= 1;
    endpoint.receive(srdma_wire::Instant::ZERO, &[&packet]).expect("not looked at");
    assert_eq!(endpoint.memory(key).expect("region")[..32], [0xAA; 32]);
}

/// Packets with a right ICRC, everything else as it comes, though near enough to what is expected to get far.
fn given(key: u32) -> impl Strategy<Value = Given> {
    let opcode = prop_oneof![8 => 0u8..0x18, 1 => Just(0x81u8)]
        .prop_filter("has a form", |opcode| !matches!(opcode, 0x12 | 0x15 | 0x16 | 0x17));
    let psn = prop_oneof![4 => 0xFF_FFF8u32..0x100_0008, 1 => 0u32..0x100_0000];
    let rkey = prop_oneof![3 => Just(key), 1 => any::<u32>()];
    let address = prop_oneof![3 => 0x0F00u64..0x1900, 1 => any::<u64>()];
    let dma_length = prop_oneof![3 => 0u32..1200, 1 => any::<u32>()];
    let payload_len = prop_oneof![2 => 0usize..300, 1 => Just(256), 1 => Just(188)];
    (opcode, psn, rkey, address, dma_length, payload_len, any::<u8>(), any::<bool>()).prop_map(
        |(opcode, psn, rkey, address, dma_length, payload_len, syndrome, ack_request)| {
            let aeth = Aeth { syndrome: Syndrome::from_octet(syndrome), msn: 0 };
            Given {
                bth: Bth { ack_request, ..Bth::new(Opcode(opcode), qpn(0x11), Psn::new(psn)) },
                aeth: Some(aeth),
                immediate: Some([syndrome; 4]),
                ..Given::new(Opcode(opcode), 0, vec![0xAA; payload_len]).reth(address, MemoryKey(rkey), dma_length)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_octets_do_nothing(
        octets in prop::collection::vec(any::<u8>(), 0..400),
        header in 0usize..80,
        cut in 0usize..400,
    ) {
        let (mut rig, key) = busy(Habits::soft_roce());
        let before = rig.endpoint.memory(key).expect("region").clone();
        // From some place on, a good packet's octets are replaced.
        let mut packet = Given::new(Opcode::WRITE_ONLY, 0xFF_FFFF, vec![0xAA; 64]).reth(0x1000, key, 64).octets();
        packet.truncate(header);
        packet.extend(&octets);
        let cut = cut.min(packet.len());
        let outcome = rig.endpoint.receive(rig.now, &[&packet[..cut], &packet[cut..]]);
        prop_assert!(outcome.is_err());
        prop_assert_eq!(rig.endpoint.memory(key), Some(&before));
        prop_assert_eq!(rig.endpoint.drops().total(), 1);
        prop_assert_eq!(rig.sent(), vec![]);
    }

    /// Right ICRC, any fields: no panic, no endless answer, no octet changed but where a key, a receive or a READ
    /// allow.
    #[test]
    fn arbitrary_packets_stay_within_bounds(
        packets in prop::collection::vec(given(0x42), 1..12),
        strict in any::<bool>(),
    ) {
        let (mut rig, key) = busy(if strict { Habits::strict() } else { Habits::soft_roce() });
        prop_assert_eq!(key.0, 0x42);
        let bystander = rig.endpoint.register_memory(pattern(512, 3), 0x1000, Access::LOCAL, 0x43);
        for packet in &packets {
            let was_in_error = rig.endpoint.state(rig.qpn) == Some(QueuePairState::Error);
            let before = rig.endpoint.memory(key).expect("region").clone();
            let outcome = rig.give(packet);
            if was_in_error {
                prop_assert_eq!(outcome, Err(DropReason::QueuePairInError));
            }
            let after = rig.endpoint.memory(key).expect("region");
            if outcome.is_err() {
                prop_assert_eq!(after, &before, "a refused packet changes nothing");
            }
            let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
            prop_assert!(changed <= packet.payload.len());
            rig.sent();
            rig.advance_ns(50_000);
        }
        prop_assert_eq!(rig.endpoint.memory(bystander), Some(&pattern(512, 3)));
        let completions = rig.completions();
        prop_assert!(completions.len() <= 4, "three requests and a receive were posted");
    }
}
