//! Messages of two soft-RoCE hosts of Linux 6.1 with librdmacm 44; what they are stands in `testdata/cm/README.md`.

use srdma_capture::Reader;
use srdma_cm::{Answered, DatagramError, Flow, Mad, MadError, Message, PAYLOAD_LEN, Reason, ip};
use srdma_testkit::ipv4_groups;
use srdma_wire::translation::is_icrc_of_any_identification;
use srdma_wire::{Icrc, Ipv4View, Ipv6, PathMtu, Psn, Qpn, Udp, View};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A recorded datagram.
pub(crate) struct Recorded {
    pub(crate) flow: Flow,
    pub(crate) payload: Vec<u8>,
}

impl Recorded {
    pub(crate) fn mad(&self) -> Mad {
        self.flow.parse(&self.payload).expect("a message of Linux")
    }
}

/// All datagrams, in their order.
pub(crate) fn recorded() -> Vec<Recorded> {
    let datagram = |packet: &[u8]| {
        let (ipv6, rest) = Ipv6::parse(packet).expect("IPv6");
        with_payload(ipv6.source, ipv6.destination, rest)
    };
    packets("rxe.pcap").iter().map(|packet| datagram(packet)).collect()
}

/// The same over IPv4, with their Identifications.
pub(crate) fn recorded_over_ipv4() -> Vec<(Recorded, u16)> {
    let datagram = |packet: &[u8]| {
        let (ipv4, rest) = Ipv4View::split(packet).expect("IPv4");
        assert!(ipv4.dont_fragment());
        let mapped = |address: Ipv4Addr| address.to_ipv6_mapped();
        let identification = u16::from_be_bytes([packet[4], packet[5]]);
        (with_payload(mapped(ipv4.source()), mapped(ipv4.destination()), rest), identification)
    };
    packets("rxe_ipv4.pcap").iter().map(|packet| datagram(packet)).collect()
}

fn packets(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cm").join(name);
    let reader = Reader::new(BufReader::new(File::open(path).expect("a capture"))).expect("a capture");
    reader.map(|packet| packet.expect("a packet").octets[14..].to_vec()).collect()
}

fn with_payload(source: Ipv6Addr, destination: Ipv6Addr, rest: &[u8]) -> Recorded {
    let (udp, payload) = Udp::parse(rest).expect("UDP");
    let ports = (udp.source_port, udp.destination_port);
    Recorded { flow: Flow { source, destination, ports }, payload: payload.to_vec() }
}

/// D250: every field of every message of Linux is read, and written as it was; so is the ICRC.
#[test]
fn messages_of_linux_are_written_as_they_were() {
    let recorded = recorded();
    assert_eq!(recorded.len(), 16);
    for (at, datagram) in recorded.iter().enumerate() {
        let mad = datagram.mad();
        let psn = Psn::from_octets([datagram.payload[9], datagram.payload[10], datagram.payload[11]]);
        let mut emitted = datagram.flow.emit(&mad, psn);
        // Linux asks for an acknowledgement, which UD does not have: AckReq, and with it the ICRC.
        assert_eq!((emitted[8], datagram.payload[8]), (0, 0x80));
        emitted[8] = 0x80;
        assert_eq!(emitted[..PAYLOAD_LEN - 4], datagram.payload[..PAYLOAD_LEN - 4], "message {at}");
    }
}

/// The fields that the exchange needs, as tshark prints them.
#[test]
fn fields_of_the_first_connection() {
    let recorded = recorded();
    let Message::Request(request) = recorded[0].mad().message else { panic!("a request") };
    assert_eq!(request.local_id, 0xfefa_1a35);
    assert_eq!(request.service_id, ip::service_id(7471));
    assert_eq!((request.local_qpn, request.starting_psn), (Qpn::new(0x11).expect("24 bits"), Psn::new(0x27_cf70)));
    assert_eq!((request.path_mtu(), request.ack_timeout), (Some(PathMtu::Octets1024), 19));
    assert_eq!((request.remote_response_timeout, request.local_response_timeout, request.max_retries), (20, 20, 15));
    assert_eq!((request.retry_count, request.rnr_retry, request.hop_limit, request.flow_label), (7, 7, 64, 0x4_a82a));
    let addresses = ip::IpRequest::parse(&request.private_data).expect("addresses");
    assert_eq!((addresses.source, addresses.destination), (recorded[0].flow.source, recorded[0].flow.destination));
    assert_eq!((addresses.source_port, &addresses.private_data[..5]), (0xa9a5, &b"file\0"[..]));
    assert_eq!(addresses.emit(), request.private_data);

    let Message::Reply(reply) = recorded[1].mad().message else { panic!("a reply") };
    assert_eq!((reply.ids.local, reply.ids.remote), (0x3af6_7f0b, 0xfefa_1a35));
    assert_eq!((reply.starting_psn, reply.target_ack_delay), (Psn::new(0x48_ada1), 15));
    assert_eq!(&reply.private_data[..6], b"ready\0");
    assert_eq!(recorded[1].mad().transaction_id, recorded[0].mad().transaction_id);
}

/// A request to a port where no program listens, a receipt of a repeated one, and one that the program rejects.
#[test]
fn rejections_and_receipts() {
    let recorded = recorded();
    let Message::Reject(reject) = recorded[6].mad().message else { panic!("a rejection") };
    assert_eq!((reject.reason, reject.message), (Reason::INVALID_SERVICE_ID, Answered::REQUEST));
    let Message::Receipt(receipt) = recorded[9].mad().message else { panic!("a receipt") };
    assert_eq!((receipt.message, receipt.service_timeout), (Answered::REQUEST, 24));
    let Message::Reject(reject) = recorded[15].mad().message else { panic!("a rejection") };
    assert_eq!(reject.reason, Reason::CONSUMER);
}

/// D292: messages over IPv4, whose ICRC covers an Identification that a socket does not tell. Addresses of IPv4 are in
/// the GIDs as IPv4-mapped ones, and in the private data in four octets.
#[test]
fn messages_over_ipv4_are_written_as_they_were() {
    let recorded = recorded_over_ipv4();
    assert_eq!(recorded.len(), 7);
    for (at, (datagram, identification)) in recorded.iter().enumerate() {
        assert_ne!(*identification, 0, "Linux numbers its datagrams");
        let mad = datagram.mad();
        let psn = Psn::from_octets([datagram.payload[9], datagram.payload[10], datagram.payload[11]]);
        let mut emitted = datagram.flow.emit(&mad, psn);
        emitted[8] = 0x80;
        assert_eq!(emitted[..PAYLOAD_LEN - 4], datagram.payload[..PAYLOAD_LEN - 4], "message {at}");
    }
    let (first, _) = &recorded[0];
    let Message::Request(request) = first.mad().message else { panic!("a request") };
    assert_eq!((request.local_gid, request.remote_gid), (first.flow.source, first.flow.destination));
    assert_eq!(request.local_gid.to_ipv4_mapped(), Some(Ipv4Addr::new(10, 2, 2, 1)));
    assert_eq!(request.private_data[1] >> 4, 4);
    let addresses = ip::IpRequest::parse(&request.private_data).expect("addresses");
    assert_eq!((addresses.source, addresses.destination), (first.flow.source, first.flow.destination));
    assert_eq!(&addresses.private_data[..5], b"file\0");
    assert_eq!(addresses.emit(), request.private_data);
}

/// What is sent over IPv4 is an atomic datagram: the ICRC of a program that computes it apart from ours, over a header
/// with Identification 0 and DF.
#[test]
fn messages_over_ipv4_have_the_icrc_of_an_atomic_datagram() {
    for (datagram, _) in recorded_over_ipv4() {
        let payload = datagram.flow.emit(&datagram.mad(), Psn::new(7));
        let ipv4 = |address: Ipv6Addr| address.to_ipv4_mapped().expect("of IPv4").octets();
        let length = |octets: usize| (octets as u16).to_be_bytes();
        let mut packet = [&[0x45, 0][..], &length(20 + 8 + PAYLOAD_LEN), &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
        packet.extend([ipv4(datagram.flow.source), ipv4(datagram.flow.destination)].concat());
        packet.extend([datagram.flow.ports.0.to_be_bytes(), datagram.flow.ports.1.to_be_bytes()].concat());
        packet.extend([length(8 + PAYLOAD_LEN), [0, 0]].concat());
        packet.extend(&payload[..PAYLOAD_LEN - 4]);
        assert_eq!(ipv4_groups::icrc(&packet)[..], payload[PAYLOAD_LEN - 4..]);
    }
}

/// Of all ICRCs those are accepted that a datagram has with some Identification, by a program that computes them apart
/// from ours.
#[test]
fn an_icrc_is_that_of_some_identification() {
    let mut packet = packets("rxe_ipv4.pcap").remove(0);
    let udp_length = (packet.len() - Ipv4View::LEN) as u16;
    let mut with = |identification: u16| {
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        ipv4_groups::icrc(&packet[..packet.len() - 4])
    };
    let without = with(0);
    let all: BTreeSet<[u8; 4]> = (0..=u16::MAX).step_by(5).map(&mut with).collect();
    let is_accepted = |icrc: [u8; 4]| is_icrc_of_any_identification(udp_length, Icrc(without), Icrc(icrc));
    assert!(all.len() == 13_108 && all.iter().all(|icrc| is_accepted(*icrc)));
    let others = (0..200_000_u32).map(|number| number.wrapping_mul(0x9E37_79B9).to_be_bytes());
    let accepted = others.filter(|icrc| is_accepted(*icrc)).count();
    // Three by chance.
    assert!((1..12).contains(&accepted), "{accepted}");
    for bit in 0..32 {
        let damaged = (u32::from_be_bytes(without) ^ 1 << bit).to_be_bytes();
        assert!(!is_accepted(damaged), "bit {bit}");
    }
}

/// Whatever bit is flipped, also over IPv4, where 16 bits of the ICRC stand for the Identification.
#[test]
fn damaged_datagrams_over_ipv4_are_refused() {
    let (Recorded { flow, payload }, _) = recorded_over_ipv4().remove(0);
    for place in (0..payload.len()).filter(|place| *place != 4) {
        for bit in 0..8 {
            let mut damaged = payload.clone();
            damaged[place] ^= 1 << bit;
            assert!(flow.parse(&damaged).is_err(), "octet {place}, bit {bit}");
        }
    }
    for other in [
        Flow { destination: Ipv4Addr::new(10, 2, 1, 2).to_ipv6_mapped(), ..flow },
        Flow { source: Ipv4Addr::new(10, 2, 2, 2).to_ipv6_mapped(), ..flow },
        Flow { ports: (flow.ports.0 ^ 1, flow.ports.1), ..flow },
    ] {
        assert_eq!(other.parse(&payload), Err(DatagramError::Icrc), "{other:?}");
    }
}

/// Whatever bit is flipped, the ICRC finds it, but for what it does not cover; and no part of a datagram is one.
#[test]
fn damaged_datagrams_are_refused() {
    let Recorded { flow, payload } = recorded().remove(0);
    // The octet of the congestion bits is masked.
    for place in (0..payload.len()).filter(|place| *place != 4) {
        let mut damaged = payload.clone();
        damaged[place] ^= 0x04;
        assert!(flow.parse(&damaged).is_err(), "octet {place}");
    }
    for len in 0..payload.len() {
        assert_eq!(flow.parse(&payload[..len]), Err(DatagramError::Length(len)));
    }
    let swapped = Flow { source: flow.destination, destination: "2001:db8::9".parse().expect("an address"), ..flow };
    assert_eq!(swapped.parse(&payload), Err(DatagramError::Icrc));
}

/// MADs of other classes, versions and attributes are none of these, nor are connections of reserved queue pairs.
#[test]
fn other_mads_are_refused() {
    let mad = recorded()[0].mad().emit();
    let with = |at: usize, octet: u8| {
        let mut mad = mad;
        mad[at] = octet;
        Mad::parse(&mad)
    };
    for (at, octet) in [(0, 2), (1, 3), (2, 1), (3, 0x81)] {
        let mut expected = [1, 7, 2, 3];
        expected[at] = octet;
        assert_eq!(with(at, octet), Err(MadError::Class(expected)));
    }
    assert_eq!(with(17, 0x19), Err(MadError::Attribute(0x19)));
    assert_eq!(with(24 + 34, 1), Err(MadError::ReservedQpn(1)));
    assert_eq!(Mad::parse(&mad[1..]), Err(MadError::Length(255)));
    assert_eq!(Mad::parse(&mad).map(|mad| mad.emit()), Ok(mad));
}
