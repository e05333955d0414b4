//! RDMA CM messages against octets of another program, whose fields tshark reads as they stand in the README beside them.

use srdma_capture::Reader;
use srdma_wire::Qpn;
use srdma_wire::cm::{CM_PACKET_LEN, CmMessage, CmPacket};
use std::fs::File;
use std::io::BufReader;

fn packets() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cm/connection.pcap");
    let reader = Reader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    reader.map(|packet| packet.unwrap().octets[14..].to_vec()).collect()
}

/// D48: the facts that an observer learns from an exchange.
#[test]
fn an_exchange_names_the_connected_queue_pairs() {
    let [host, peer] = ["2001:db8:1::1", "2001:db8:2::1"].map(|text| text.parse().unwrap());
    let qpn = |number| Qpn::new(number).unwrap();
    let packet = |source, destination, message| Some(CmPacket { source, destination, message });
    let request = CmMessage::ConnectRequest { local_id: 0xA0A0_A0A0, local_qpn: qpn(0x123) };
    let reply = CmMessage::ConnectReply { remote_id: 0xA0A0_A0A0, local_qpn: qpn(0xABCD) };
    let disconnect = CmMessage::DisconnectRequest { remote_qpn: qpn(0xABCD) };
    let expected =
        [packet(host, peer, request), packet(peer, host, reply), None, packet(host, peer, disconnect), None, None];
    let packets = packets();
    let found: Vec<_> = packets.iter().map(|octets| CmPacket::parse(octets)).collect();
    assert_eq!(found, expected);
    assert!(packets.iter().all(|octets| octets.len() == CM_PACKET_LEN && CmPacket::may_be(octets)));
}

/// Whatever bit is flipped that the ICRC covers: nothing is accepted. It does not cover traffic class, flow label, hop
/// limit, UDP checksum and the congestion bits.
#[test]
fn a_damaged_message_is_refused() {
    const NOT_COVERED: [usize; 8] = [0, 1, 2, 3, 7, 46, 47, 52];
    let whole = &packets()[0];
    for place in (0..whole.len()).filter(|place| !NOT_COVERED.contains(place)) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        assert_eq!(CmPacket::parse(&damaged), None, "octet {place}");
    }
    for len in 0..whole.len() {
        assert_eq!(CmPacket::parse(&whole[..len]), None, "{len} octets");
    }
}
