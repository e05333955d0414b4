//! The incremental checksums equal those computed in full (D10).

use proptest::prelude::*;
use srdma_wire::checksum::{Sum, Update};
use srdma_wire::icrc::{Delta, Icrc, Shift};
use srdma_wire::ipv6::{Ipv6, NextHeader};
use srdma_wire::rocev2::{Extended, Packet, PacketValue};
use srdma_wire::{Bth, Opcode, Psn, Qpn, RethView, View};
use std::net::Ipv6Addr;

/// Offsets of the fields that an edge rewrites, in a packet without extension headers.
const ADDRESSES: usize = 8;
const UDP_CHECKSUM: usize = 46;
const QPN_WORD: usize = 52;
const RETH_WORDS: usize = 60;
const BEHIND_ADDRESSES: usize = 40;
const BEHIND_QPN: usize = 56;
const BEHIND_RETH_WORDS: usize = 72;

/// Fields that change at an edge: addresses, QPN, and virtual address and key of the RETH (D11, D27).
#[derive(Clone, Debug)]
struct Change {
    addresses: [u8; 32],
    qpn: [u8; 3],
    reth: [u8; 12],
}

prop_compose! {
    fn change()(addresses: [u8; 32], qpn: [u8; 3], reth: [u8; 12]) -> Change {
        Change { addresses, qpn, reth }
    }
}

fn packet(payload: &[u8], addresses: [u128; 2], psn: u32) -> Vec<u8> {
    let ipv6 = Ipv6 {
        traffic_class: 2,
        flow_label: 0x12345,
        payload_length: 0,
        next_header: NextHeader::UDP,
        hop_limit: 64,
        source: Ipv6Addr::from(addresses[0]),
        destination: Ipv6Addr::from(addresses[1]),
    };
    let bth = Bth::new(Opcode::WRITE_ONLY, Qpn::new(0xABCD).unwrap(), Psn::new(psn));
    let (reth, _) = RethView::split(&[0x55; 16]).unwrap();
    let value = PacketValue { ipv6, source_port: 0xD001, bth, extended: Extended::Reth(reth), payload };
    let mut octets = vec![0; value.len_octets()];
    value.emit(&mut octets).unwrap();
    octets
}

/// The UDP checksum of the whole datagram, whose checksum field counts as zero.
fn full_udp_checksum(packet: &[u8]) -> u16 {
    let (source, destination) = (packet[8..24].as_array().unwrap(), packet[24..40].as_array().unwrap());
    let mut sum = Sum::pseudo_header(source, destination, (packet.len() - 40) as u32, NextHeader::UDP);
    sum.add(&packet[40..UDP_CHECKSUM]);
    sum.add(&packet[UDP_CHECKSUM + 2..]);
    sum.udp_checksum()
}

fn set(octets: &mut [u8], place: usize, new: &[u8]) {
    octets[place..place + new.len()].copy_from_slice(new);
}

fn at<const N: usize>(octets: &[u8], place: usize) -> [u8; N] {
    *octets[place..].first_chunk().unwrap()
}

/// The change of the octets, and the differences they make to ICRC and UDP checksum.
fn apply(octets: &mut [u8], change: &Change) {
    let icrc_place = octets.len() - Icrc::LEN;
    let shift_from = |place: usize| Shift::octets((icrc_place - place) as u16);
    let [a, b, c] = change.qpn;
    let qpn_word = [octets[QPN_WORD], a, b, c];
    let (old_addresses, old_qpn, old_reth) = (at(octets, ADDRESSES), at(octets, QPN_WORD), at(octets, RETH_WORDS));

    let mut update = Update::default();
    update.replace(&old_addresses, &change.addresses);
    update.replace(&old_qpn, &qpn_word);
    update.replace(&old_reth, &change.reth);

    let delta = Delta::between(&old_addresses, &change.addresses).then(shift_from(BEHIND_ADDRESSES))
        ^ Delta::between(&old_qpn, &qpn_word).then(shift_from(BEHIND_QPN))
        ^ Delta::between(&old_reth, &change.reth).then(shift_from(BEHIND_RETH_WORDS));
    let old_icrc = at(octets, icrc_place);
    let icrc = Icrc(old_icrc).changed_by(delta);
    update.replace(&old_icrc, &icrc.0);

    set(octets, ADDRESSES, &change.addresses);
    set(octets, QPN_WORD, &qpn_word);
    set(octets, RETH_WORDS, &change.reth);
    set(octets, icrc_place, &icrc.0);
    let checksum = update.apply_udp(u16::from_be_bytes(at(octets, UDP_CHECKSUM)));
    set(octets, UDP_CHECKSUM, &checksum.to_be_bytes());
}

proptest! {
    #[test]
    fn checksums_after_a_rewrite(
        payload in prop::collection::vec(any::<u8>(), 0..4200),
        addresses: [u128; 2],
        psn: u32,
        with_udp_checksum: bool,
        change in change(),
    ) {
        let mut octets = packet(&payload, addresses, psn);
        if with_udp_checksum {
            let checksum = full_udp_checksum(&octets);
            set(&mut octets, UDP_CHECKSUM, &checksum.to_be_bytes());
        }
        apply(&mut octets, &change);
        let rewritten = Packet::parse(&octets, octets.len()).unwrap();
        prop_assert!(rewritten.icrc([]).unwrap().is_good());
        let expected = if with_udp_checksum { full_udp_checksum(&octets) } else { 0 };
        prop_assert_eq!(rewritten.udp.checksum(), expected);
    }

    /// Damage before the rewrite is the same damage after it.
    #[test]
    fn damage_stays(
        payload in prop::collection::vec(any::<u8>(), 1..4200),
        damaged: prop::sample::Index,
        bits in 1..=u8::MAX,
        change in change(),
    ) {
        let mut octets = packet(&payload, [1, 2], 3);
        let place = BEHIND_RETH_WORDS + 4 + damaged.index(payload.len());
        octets[place] ^= bits;
        apply(&mut octets, &change);
        prop_assert!(!Packet::parse(&octets, octets.len()).unwrap().icrc([]).unwrap().is_good());
        octets[place] ^= bits;
        prop_assert!(Packet::parse(&octets, octets.len()).unwrap().icrc([]).unwrap().is_good());
    }

    /// One delta made ahead for a receiver serves packets of every length.
    #[test]
    fn a_prepared_delta_serves_every_length(change in change(), lengths: [u8; 4]) {
        let first = packet(&[], [1, 2], 3);
        let [a, b, c] = change.qpn;
        let prepared = Delta::between(&at(&first, ADDRESSES), &change.addresses)
            .then(Shift::octets((BEHIND_QPN - BEHIND_ADDRESSES) as u16))
            ^ Delta::between(&at(&first, QPN_WORD + 1), &[a, b, c]);
        for len in lengths {
            let mut octets = packet(&vec![len; usize::from(len) * 16], [1, 2], 4);
            let icrc_place = octets.len() - Icrc::LEN;
            let shift = Shift::octets((icrc_place - BEHIND_QPN) as u16);
            let icrc = Icrc(at(&octets, icrc_place)).changed_by(prepared.then(shift));
            set(&mut octets, ADDRESSES, &change.addresses);
            set(&mut octets, QPN_WORD + 1, &change.qpn);
            set(&mut octets, icrc_place, &icrc.0);
            prop_assert!(Packet::parse(&octets, octets.len()).unwrap().icrc([]).unwrap().is_good());
        }
    }
}

/// A change after which the sum is zero: UDP sends 0xFFFF, not 0, which would mean that there is no checksum.
#[test]
fn a_udp_checksum_of_zero_is_sent_as_ffff() {
    let mut octets = packet(b"0123", [1, 2], 3);
    let checksum = full_udp_checksum(&octets);
    set(&mut octets, UDP_CHECKSUM, &checksum.to_be_bytes());
    let word = u16::from_be_bytes(at(&octets, ADDRESSES));
    // One's complement: the checksum is the difference of the sum to all ones, so that adding it gives zero. The
    // changed octets are those of the source address, and the ICRC stays unchanged to control the sum.
    let sum = u32::from(word) + u32::from(checksum);
    let new = ((sum & 0xFFFF) + (sum >> 16)) as u16;
    let mut update = Update::default();
    update.replace(&word.to_be_bytes(), &new.to_be_bytes());
    set(&mut octets, ADDRESSES, &new.to_be_bytes());
    assert_eq!(update.apply_udp(checksum), 0xFFFF);
    assert_eq!(full_udp_checksum(&octets), 0xFFFF);
}
