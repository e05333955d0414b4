//! The incremental ICRC against packets that scapy computed in full.

use crate::golden::captures::innermost_of;
use srdma_wire::checksum::Update;
use srdma_wire::icrc::{Delta, Shift};
use srdma_wire::rocev2::{Packet, UdpChecksum};
use srdma_wire::{BthView, Icrc, Ipv6View, Qpn, UdpView, View};

/// End.MT turns the first packet of scapy_02 into both packets of scapy_03, by deltas alone (D5, D10, D11, MT-5.2-3).
#[test]
fn copies_for_both_receivers() {
    for (frame, receiver, qpn) in [(1, "2001:db8:2::1", 0x111), (2, "2001:db8:2::2", 0x222)] {
        let mut octets = innermost_of("scapy_02_endmt_in.pcap", 1);
        rewrite(&mut octets, "2001:db8:ff::100", receiver, qpn);
        octets[7] -= 1;
        assert_eq!(octets, innermost_of("scapy_03_endmt_out.pcap", frame), "receiver {receiver}");
    }
}

/// A damaged packet stays damaged: its ICRC is wrong by the same difference as before (D10).
#[test]
fn a_bad_icrc_stays_bad() {
    let mut octets = innermost_of("scapy_02_endmt_in.pcap", 1);
    octets[90] ^= 0x10;
    rewrite(&mut octets, "2001:db8:ff::100", "2001:db8:2::1", 0x111);
    let check = Packet::parse(&octets, octets.len()).unwrap().icrc([]).unwrap();
    assert!(!check.is_good());
    octets[90] ^= 0x10;
    let check = Packet::parse(&octets, octets.len()).unwrap().icrc([]).unwrap();
    assert!(check.is_good());
}

/// A UDP checksum that is there is kept right for the addresses, the QPN and the ICRC (D10).
#[test]
fn a_udp_checksum_is_kept_right() {
    let mut octets = innermost_of("scapy_01_rocev2_base.pcap", 6);
    rewrite(&mut octets, "2001:db8:ff::100", "2001:db8:4::5", 0xABCDE);
    let packet = Packet::parse(&octets, octets.len()).unwrap();
    assert!(packet.icrc([]).unwrap().is_good());
    assert_eq!(packet.udp_checksum([]), Ok(UdpChecksum::Good));
}

/// Rewrites addresses and Destination QP, and both checksums incrementally.
fn rewrite(octets: &mut [u8], source: &str, destination: &str, qpn: u32) {
    let packet = Packet::parse(octets, octets.len()).unwrap();
    let (bth_offset, icrc_offset) = (packet.bth_offset(), packet.icrc_offset());
    let behind_qpn = Shift::octets((icrc_offset - bth_offset - 8) as u16);
    let mut update = Update::default();

    let (ipv6, rest) = Ipv6View::split_mut(octets).unwrap();
    let old: [u8; 32] = addresses(ipv6);
    ipv6.set_source(source.parse().unwrap());
    ipv6.set_destination(destination.parse().unwrap());
    update.replace(&old, &addresses(ipv6));
    // 16 octets from the addresses to the end of the Destination QP.
    let mut delta = Delta::between(&old, &addresses(ipv6)).then(Shift::octets(16));

    let (udp, rest) = UdpView::split_mut(rest).unwrap();
    let (bth, rest) = BthView::split_mut(rest).unwrap();
    let old = *bth.dest_qpn_octets();
    bth.set_dest_qpn(Qpn::new(qpn).unwrap());
    delta ^= Delta::between(&old, bth.dest_qpn_octets());
    update.replace(&with_zero(old), &with_zero(*bth.dest_qpn_octets()));

    let place = rest.last_chunk_mut::<4>().unwrap();
    let icrc = Icrc(*place).changed_by(delta.then(behind_qpn));
    update.replace(place, &icrc.0);
    *place = icrc.0;
    udp.set_checksum(update.apply_udp(udp.checksum()));
}

fn addresses(ipv6: &Ipv6View) -> [u8; 32] {
    let (source, destination) = (ipv6.source_octets(), ipv6.destination_octets());
    std::array::from_fn(|place| if place < 16 { source[place] } else { destination[place - 16] })
}

/// The Destination QP begins at an odd octet; the one before it does not change.
fn with_zero([a, b, c]: [u8; 3]) -> [u8; 4] {
    [0, a, b, c]
}
