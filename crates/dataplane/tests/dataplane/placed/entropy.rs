//! Paths with an entropy value (D254): what packets have of it. ICRCs are those of the reference model.

use crate::placed::support::*;
use srdma_dataplane::headend::HeadendPath;
use srdma_testkit::checksums;
use srdma_wire::Entropy;

/// 0x848d1 and 54904, by hand: 0x12345678 is 0x48d1 above 14 bits of 0x1678.
const VALUE: Entropy = Entropy(0x1234_5678);
const LABEL: [u8; 3] = [0x08, 0x48, 0xD1];
const PORT: [u8; 2] = [0xD6, 0x78];

fn nic() -> Nic {
    Nic::with(|_| (), &[HeadendPath { entropy: Some(VALUE), ..path(BY_SPINE5, SPINE5, 0) }])
}

/// The packet as it should be: the flow label, the port, and the checksum over it.
fn expected(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[1] = packet[1] & 0xF0 | LABEL[0];
    packet[2..4].copy_from_slice(&LABEL[1..]);
    packet[40..42].copy_from_slice(&PORT);
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

/// D254, PP-4-3: the destination is that of the path without a value, and the inner packet is whole.
#[test]
fn port_and_flow_label_have_the_value() {
    for octets in [4, 1024, 4096, 8000] {
        let mut nic = nic();
        let packet = rocev2(NIC1, NIC3, 0x04, QPN3, 100, &vec![0xA5; octets]);
        let sent = nic.send(&packet);
        assert_eq!(destination_of(&sent), BY_SPINE5);
        assert_eq!([sent[1] & 0xF, sent[2], sent[3]], LABEL, "the outer flow label");
        assert!(sent[40..] == expected(&packet), "{octets} octets");
        assert_eq!(nic.pool.in_use(), 0);
    }
}

/// D10, D254: what was damaged stays so.
#[test]
fn a_damaged_packet_stays_damaged() {
    let mut packet = data(QPN3, 100);
    packet[64] ^= 1;
    let sent = nic().send(&packet);
    let (inner, icrc) = sent[40..].split_at(sent.len() - 44);
    assert_ne!(checksums::icrc(inner), icrc);
}

/// Other packets have the headers alone.
#[test]
fn what_is_no_rocev2_packet_stays_as_it_is() {
    let mut tcp = data(QPN3, 100);
    tcp[6] = 6;
    let mut other_port = data(QPN3, 100);
    other_port[43] ^= 1;
    let mut long = data(QPN3, 100);
    long.extend([0; 3]);
    let mut short = data(QPN3, 100);
    short.truncate(60);
    for packet in [tcp, other_port, long, short] {
        let sent = nic().send(&packet);
        assert_eq!((destination_of(&sent), &sent[40..]), (BY_SPINE5.to_owned(), &packet[..]));
    }
}
