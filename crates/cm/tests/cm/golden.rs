//! Messages of two soft-RoCE hosts of Linux 6.1 with librdmacm 44; what they are stands in `testdata/cm/README.md`.

use srdma_capture::Reader;
use srdma_cm::{Answered, DatagramError, Flow, Mad, MadError, Message, PAYLOAD_LEN, Reason, ip};
use srdma_wire::{Ipv6, PathMtu, Psn, Qpn, Udp};
use std::fs::File;
use std::io::BufReader;

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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cm/rxe.pcap");
    let reader = Reader::new(BufReader::new(File::open(path).expect("a capture"))).expect("a capture");
    let datagram = |octets: &[u8]| {
        let (ipv6, rest) = Ipv6::parse(&octets[14..]).expect("IPv6");
        let (udp, payload) = Udp::parse(rest).expect("UDP");
        let ports = (udp.source_port, udp.destination_port);
        let flow = Flow { source: ipv6.source, destination: ipv6.destination, ports };
        Recorded { flow, payload: payload.to_vec() }
    };
    reader.map(|packet| datagram(&packet.expect("a packet").octets)).collect()
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
