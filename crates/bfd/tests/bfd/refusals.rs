//! Each reception check of RFC 5880 section 6.8.6, RFC 5881 section 5 and D92, by one change of a packet of scapy's.

use crate::support::{at_ms, packets, payloads};
use srdma_bfd::udp;
use srdma_bfd::{Config, ControlPacket, Diagnostic, Hops, Peer, Refusal, Sessions, State};
use srdma_wire::checksum::Sum;
use srdma_wire::{Instant, NextHeader};

const NOW: Instant = Instant::ZERO;

fn parsed(octets: &[u8]) -> Option<Refusal> {
    ControlPacket::parse(octets).err()
}

#[test]
fn each_field_that_is_checked_has_its_refusal() {
    let up = payloads().remove(2);
    assert_eq!(parsed(&up), None);
    let changed = |at: usize, octets: &[u8]| {
        let mut up = up.clone();
        up[at..at + octets.len()].copy_from_slice(octets);
        parsed(&up)
    };
    for version in (0..8).filter(|version| *version != 1) {
        assert_eq!(changed(0, &[version << 5]), Some(Refusal::Version));
    }
    assert_eq!(changed(3, &[23]), Some(Refusal::LengthTooShort));
    assert_eq!(changed(3, &[0]), Some(Refusal::LengthTooShort));
    assert_eq!(changed(3, &[25]), Some(Refusal::LengthBeyondPayload));
    assert_eq!(changed(2, &[0]), Some(Refusal::DetectMultZero));
    assert_eq!(changed(1, &[0xC1]), Some(Refusal::Multipoint));
    assert_eq!(changed(4, &[0; 4]), Some(Refusal::MyDiscriminatorZero));
    assert_eq!(changed(8, &[0; 4]), Some(Refusal::YourDiscriminatorZero));
    for (state, refusal) in [(0, None), (1, None), (2, Some(Refusal::YourDiscriminatorZero))] {
        assert_eq!(changed(1, &[state << 6, 3, 24, 0, 0, 0, 1, 0, 0, 0, 0]), refusal, "state {state}");
    }
    for len in 0..up.len() {
        assert_eq!(parsed(&up[..len]), Some(Refusal::Truncated), "{len} octets");
    }
    assert_eq!(parsed(&[&up[..], b"padding"].concat()), None);
}

#[test]
fn an_authentication_section_has_its_length() {
    let octets = payloads().remove(10);
    let with = |length: u8, authentication_length: u8| {
        let mut octets = octets.clone();
        (octets[3], octets[25]) = (length, authentication_length);
        parsed(&octets)
    };
    assert_eq!(with(33, 9), None);
    assert_eq!(with(25, 9), Some(Refusal::LengthTooShort));
    assert_eq!(with(26, 2), None);
    for authentication_length in [0, 1, 10] {
        assert_eq!(with(33, authentication_length), Some(Refusal::AuthenticationMalformed));
    }
    assert_eq!(with(34, 9), Some(Refusal::LengthBeyondPayload));
}

/// The system B of `testdata/bfd`, with a session with A; nothing was received.
fn system() -> (Sessions, Peer) {
    let mut sessions = Sessions::new(2, 1);
    let address = |text: &str| text.parse().unwrap();
    let hops = Hops::Single { interface: 3 };
    let peer = Peer { hops, local: address("fe80::b"), remote: address("fe80::a") };
    sessions.add(peer, Config::default(), NOW).unwrap();
    (sessions, peer)
}

/// Sends scapy's packet with its discriminator and some octets changed, and the checksum computed by `fix`; it is
/// refused, counted, and changes nothing.
fn refused(sessions: &mut Sessions, interface: u32, octets: &[u8], expected: Refusal) {
    let state = |sessions: &Sessions| format!("{:?}", sessions.iter().collect::<Vec<_>>());
    let (before, count) = (state(sessions), sessions.refusals().get(expected));
    assert_eq!(sessions.receive_packet(interface, octets, at_ms(5)), Err(expected));
    assert_eq!(state(sessions), before, "{expected}");
    assert_eq!(sessions.refusals().get(expected), count + 1);
}

fn fixed(mut octets: Vec<u8>) -> Vec<u8> {
    octets[46..48].fill(0);
    let address = |at: usize| *octets[at..].first_chunk().unwrap();
    let mut sum = Sum::pseudo_header(&address(8), &address(24), octets.len() as u32 - 40, NextHeader::UDP);
    sum.add(&octets[40..]);
    let checksum = sum.udp_checksum();
    octets[46..48].copy_from_slice(&checksum.to_be_bytes());
    octets
}

#[test]
fn datagrams_that_are_not_for_a_session_are_refused() {
    let (mut sessions, _) = system();
    let first = packets().remove(0);
    let changed = |at: usize, new: &[u8]| {
        let mut octets = first.clone();
        octets[at..at + new.len()].copy_from_slice(new);
        octets
    };
    let mut refused = |octets: &[u8], expected| refused(&mut sessions, 3, octets, expected);
    refused(&changed(0, &[0x4C]), Refusal::NotIpv6);
    refused(&first[..39], Refusal::NotIpv6);
    refused(&first[..71], Refusal::NotIpv6);
    refused(&changed(6, &[6]), Refusal::NotUdp);
    refused(&changed(6, &[0]), Refusal::NotUdp);
    refused(&changed(42, &[0x0E, 0xC9]), Refusal::OtherPort);
    refused(&changed(44, &[0, 31]), Refusal::DatagramLength);
    refused(&changed(5, &[7]), Refusal::DatagramLength);
    refused(&changed(46, &[0, 0]), Refusal::Checksum);
    refused(&changed(70, &[1]), Refusal::Checksum);
    refused(&changed(7, &[254]), Refusal::HopLimit);
    refused(&packets()[9], Refusal::HopLimit);
    refused(&packets()[2], Refusal::UnknownDiscriminator);
    refused(&fixed(changed(23, &[0x0C])), Refusal::UnknownPeer);
    refused(&fixed(changed(42, &udp::MULTI_HOP_PORT.to_be_bytes())), Refusal::UnknownPeer);
    let names: Vec<_> = sessions.refusals().iter().map(|(reason, count)| (reason.name(), count)).collect();
    assert_eq!(names.iter().map(|(_, count)| count).sum::<u64>(), 15);
    assert!(names.contains(&("hop_limit", 2)));
}

/// D91, D92.
#[test]
fn a_session_refuses_other_peers_interfaces_and_authentication() {
    let (mut sessions, _) = system();
    let discriminator = sessions.iter().next().unwrap().1.discriminator();
    let mut init = packets().remove(1);
    init[56..60].copy_from_slice(&discriminator.get().to_be_bytes());
    let init = fixed(init);
    refused(&mut sessions, 4, &init, Refusal::OtherPeer);
    let mut other = init.clone();
    other[23] = 0x0C;
    refused(&mut sessions, 3, &fixed(other), Refusal::OtherPeer);
    let mut authenticated = packets().remove(11);
    authenticated[56..60].copy_from_slice(&discriminator.get().to_be_bytes());
    refused(&mut sessions, 3, &fixed(authenticated), Refusal::Authenticated);
    assert!(sessions.receive_packet(3, &init, NOW).is_ok());
    assert_eq!(sessions.get(discriminator).unwrap().state(), State::Up);
    assert!(sessions.disable(discriminator, Diagnostic::ADMINISTRATIVELY_DOWN).is_some());
    assert_eq!(sessions.receive_packet(3, &init, NOW), Err(Refusal::AdministrativelyDown));
    assert_eq!(sessions.get(discriminator).unwrap().state(), State::AdminDown);
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = Refusal::ALL.iter().map(|reason| reason.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Refusal::ALL.len());
    assert_eq!(Refusal::HopLimit.to_string(), "hop_limit");
}
