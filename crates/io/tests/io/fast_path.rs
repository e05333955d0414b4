//! The fast path in the kernel, without an interface: what its program does with single frames.

use srdma_io::Match;
use srdma_io::fast_path::{Counted, Entry, Hop, Maps, Port, TestProgram};
use std::collections::{BTreeMap, BTreeSet};

/// The loopback interface, which is there in every namespace.
const LOOPBACK_INDEX: u32 = 1;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x81];

fn port(number: u16) -> Port {
    Port { number, mac: MAC, sources: None, salt: 0 }
}

/// An IPv6 packet with a payload of so many octets.
fn packet(hop_limit: u8, payload: u16) -> Vec<u8> {
    let mut frame = [&MAC[..], &[2, 0, 0, 0, 9, 9, 0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend_from_slice(&payload.to_be_bytes());
    frame.extend_from_slice(&[59, hop_limit]);
    for last in [1, 2] {
        frame.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    frame.resize(frame.len() + usize::from(payload), 0xa5);
    frame
}

#[test]
#[ignore = "needs root"]
fn a_packet_is_forwarded_counted_and_left_alone_when_it_is_unusual() {
    let mut maps = Maps::new().unwrap();
    let hop = Hop { port: 1, addresses: [7; 12], link_mtu: 1500 };
    let entries = BTreeMap::from([((0, "2001:db8::/32".parse().unwrap()), Entry::Via(vec![hop]))]);
    let interest = [("2001:db8::/32".parse().unwrap(), Match::All)];
    maps.set_entries(&entries, &BTreeSet::new(), &interest).unwrap();
    let program = TestProgram::load(&maps, &port(0)).unwrap_or_else(|error| panic!("{error}"));
    let run = |sent: &[u8]| {
        let mut frame = sent.to_vec();
        program.forwards(&mut frame).unwrap().then_some(frame)
    };
    // A port without an interface.
    let sent = packet(64, 20);
    assert_eq!(run(&sent), None);
    maps.set_interface(1, Some(LOOPBACK_INDEX)).unwrap();
    let mut expected = sent.clone();
    expected[..12].fill(7);
    expected[21] = 63;
    assert_eq!(run(&sent), Some(expected));
    let counted = Counted { frames: 1, octets: 74 };
    assert_eq!((maps.received(0).unwrap(), maps.sent(1).unwrap()), (counted, counted));
    // Hop limit, MTU, padding, another MAC address, no entry, an 802.1Q tag.
    let padded = [&sent[..], &[0]].concat();
    let mut other = sent.clone();
    other[5] = 0;
    let mut elsewhere = sent.clone();
    elsewhere[38] = 0x30;
    let tagged = [&sent[..12], &[0x81, 0, 0, 7], &sent[12..]].concat();
    for unusual in [packet(1, 20), packet(64, 1461), padded, other, elsewhere, tagged] {
        assert_eq!(run(&unusual), None);
    }
    assert!(run(&packet(2, 1460)).is_some());
    assert_eq!(maps.sent(1).unwrap().frames, 2);
    maps.set_interface(1, None).unwrap();
    maps.set_interface(1, None).unwrap();
    assert_eq!(run(&sent), None);
    assert_eq!(maps.received(1).unwrap(), Counted::default());
}
