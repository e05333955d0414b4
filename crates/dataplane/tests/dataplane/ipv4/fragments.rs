//! Datagrams that are longer than the next link's MTU and may be fragmented (RFC 791 section 3.2, RFC 1812 section
//! 5.2.6; D261).

use super::*;
use crate::common::{frame_in_two, ipv6, port_mac};
use proptest::prelude::*;
use srdma_frame::Pool;

fn with_mtu(mtu: u16) -> Bench {
    with_sids(node_with(|config| {
        config.ports[1].link_mtu = mtu;
        config.ports[2].link_mtu = mtu;
    }))
}

/// Options that are not copied stand in the first fragment alone.
#[test]
fn a_datagram_is_fragmented() {
    let captured = captured();
    let fragments = FRAGMENTS.map(|number| (1, captured[number].clone()));
    let mut bench = with_mtu(1280);
    route(&mut bench, "10.2.0.0/16", via(1));
    assert_eq!(bench.send(0, &captured[DATAGRAM]), fragments);
    assert_eq!(bench.drops(0), []);
    // The frame of a driver that leaves the data in another segment.
    let frame = [&port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x08, 0x00], &captured[DATAGRAM]].concat();
    for cut in [54, 100, 1000, 2000] {
        let frame = frame_in_two(&frame, cut, &mut bench.pool);
        assert_eq!(bench.receive(0, frame), fragments);
    }
    // Out of a tunnel, to a table's or the SID's neighbour.
    for sid in [END_DT4, END_DX4] {
        let sent = bench.send(1, &ipv6("2001:db8:5::5", sid, 0, 4, &captured[DATAGRAM]));
        assert_eq!(sent, FRAGMENTS.map(|number| (2, captured[number].clone())));
    }
}

/// The data of fragments, put together; every header is checked.
fn reassembled(fragments: &[Vec<u8>], mtu: usize) -> Vec<u8> {
    let mut data = Vec::new();
    for (number, fragment) in fragments.iter().enumerate() {
        let header = usize::from(fragment[0] & 0xF) * 4;
        let field = u16::from_be_bytes([fragment[6], fragment[7]]);
        assert!(fragment.len() <= mtu);
        assert_eq!(usize::from(u16::from_be_bytes([fragment[2], fragment[3]])), fragment.len());
        assert_eq!(sealed(fragment.clone()), *fragment, "checksum");
        assert_eq!(usize::from(field & 0x1FFF) * 8, data.len(), "in their order");
        assert_eq!(field & 0x2000 != 0, number + 1 < fragments.len(), "more fragments");
        data.extend(&fragment[header..]);
    }
    data
}

/// Before a tunnel, so that hosts put them together and not the tunnel's end (D261): each in headers of its own.
#[test]
fn a_datagram_is_fragmented_before_its_tunnel() {
    let datagram =
        changed(&packet("10.1.0.2", "10.2.0.2", 17, &(0..4000).map(|n| n as u8).collect::<Vec<_>>()), &[(6, 0)]);
    let mut bench = with_mtu(1280);
    for (action, octets) in
        [(segments(&[FAR_SID], EncapsMode::Reduced), 40), (segments(&[VIA, FAR_SID], EncapsMode::Encaps), 40 + 8 + 32)]
    {
        route(&mut bench, "10.2.0.0/16", action);
        let sent = bench.send(0, &datagram);
        assert!(sent.len() > 3);
        let inner: Vec<Vec<u8>> = sent.iter().map(|(_, packet)| packet[octets..].to_vec()).collect();
        assert_eq!(reassembled(&inner, 1280 - octets), datagram[20..]);
        assert!(inner.iter().all(|fragment| fragment[8] == 63), "one hop for the node");
    }
    assert_eq!(bench.drops(0), []);
}

proptest! {
    /// Any length, any MTU that a link may have.
    #[test]
    fn fragments_are_the_datagram(octets in 0usize..4500, mtu in 1280u16..4000, layers in 0usize..3) {
        let data: Vec<u8> = (0..octets).map(|number| (number * 7) as u8).collect();
        let datagram = changed(&packet("10.1.0.2", "10.2.0.2", 253, &data), &[(6, 0)]);
        let mut bench = with_mtu(mtu);
        let list = [VIA, FAR_SID, "2001:db8:2::d5"];
        let action = if layers == 0 { via(1) } else { segments(&list[..layers], EncapsMode::Encaps) };
        route(&mut bench, "10.2.0.0/16", action);
        let outer = if layers == 0 { 0 } else { 48 + 16 * layers };
        let sent = bench.send(0, &datagram);
        let inner: Vec<Vec<u8>> = sent.iter().map(|(_, packet)| packet[outer..].to_vec()).collect();
        prop_assert_eq!(reassembled(&inner, usize::from(mtu) - outer), data);
        prop_assert_eq!(inner.len() == 1, outer + 20 + octets <= usize::from(mtu));
    }
}

/// A fragment that is fragmented again: offsets and More Fragments are those of the datagram.
#[test]
fn a_fragment_is_fragmented_again() {
    let mut bench = with_mtu(1280);
    route(&mut bench, "10.2.0.0/16", via(1));
    let fragment = changed(&packet("10.1.0.2", "10.2.0.2", 17, &[9; 2000]), &[(6, 0x20), (7, 100)]);
    let sent = bench.send(0, &fragment);
    let fields: Vec<u16> = sent.iter().map(|(_, packet)| u16::from_be_bytes([packet[6], packet[7]])).collect();
    assert_eq!(fields, [0x2000 | 100, 0x2000 | (100 + 157)]);
}

/// Without chunks the fragments are dropped and counted, as other packets are.
#[test]
fn fragments_need_buffers() {
    let mut bench = with_mtu(1280);
    route(&mut bench, "10.2.0.0/16", via(1));
    bench.pool = Pool::new(1);
    assert_eq!(bench.send(0, &captured()[DATAGRAM]), []);
    assert_eq!(bench.drops(0), [("no_buffer", 3)]);
}
