//! The first hop of hosts without Fast CNP support (FC-O-1, D48).

use crate::common::Bench;
use crate::fast_cnp::packets::*;
use srdma_dataplane::{Command, ConfigError, Connection, FastCnpConfig, Notified};
use srdma_frame::{Element, PortId};
use srdma_wire::Qpn;

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).unwrap()
}

/// A first hop that translates for 2001:db8:1::/48 behind port 0, and watches connections being made.
fn first_hop() -> Bench {
    let mut bench = switch();
    let translated = vec![prefix("2001:db8:1::/48")];
    turn_on(&mut bench, FastCnpConfig { translated, learn_connections: true, ..config() });
    bench
}

fn with_connection() -> Bench {
    let mut bench = first_hop();
    let (host, peer) = (address(SENDER), address(RECEIVER));
    bench.apply(Command::AddConnection(Connection { host, host_qpn: qpn(0x77), peer, peer_qpn: qpn(0xABCD) }));
    bench
}

/// The messages of the capture: host and peer are sender and receiver of these tests.
fn messages() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cm/connection.pcap");
    let reader = srdma_capture::Reader::new(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap();
    reader.map(|packet| packet.unwrap().octets[14..].to_vec()).collect()
}

const OTHER: &str = "2001:db8:53::2";

/// From the receiver's address, to the host's own queue pair, under a good ICRC; whatever option the Fast CNP had.
#[test]
fn a_host_gets_a_standard_cnp() {
    let mut bench = with_connection();
    let expected = vec![(0, forwarded(cnp(RECEIVER, SENDER, 0x77)))];
    assert_eq!(bench.send(1, &fast_cnp(OTHER, SENDER, RECEIVER, 0xABCD)), expected);
    let trace = [&[0, 0, 0, 1, 8, 0, 2, 0, 0, 0][..], &[7; 4]].concat();
    let option = [&[1, 0, 0x9E, 30][..], &trace, &address(RECEIVER).octets(), &[1, 2, 0, 0]].concat();
    assert_eq!(bench.send(1, &with_options(cnp(OTHER, SENDER, 0xABCD), &option)), expected);
    assert_eq!(bench.send(1, &fast_cnp(RECEIVER, SENDER, RECEIVER, 0xABCD)), expected, "the receiver's own");
    assert_eq!((bench.drops(1), bench.node.fast_cnp_counters().translated), (vec![], 3));
}

/// A returned trace reports no congestion, and a host without Fast CNP support cannot use it: it is dropped here,
/// counted, and the host gets no CNP. The receiver's Fast CNP without a trace is a CNP.
#[test]
fn a_trace_that_a_receiver_returns_ends_at_the_first_hop() {
    let mut bench = with_connection();
    assert!(bench.send(1, &returned_trace(RECEIVER, SENDER, 0xABCD)).is_empty());
    assert_eq!(bench.drops(1), [("fast_cnp_returned_trace", 1)]);
    assert_eq!(bench.node.fast_cnp_counters(), Default::default());
    assert_eq!(bench.node.next_deadline(), None, "no state is left");
    let expected = vec![(0, forwarded(cnp(RECEIVER, SENDER, 0x77)))];
    assert_eq!(bench.send(1, &fast_cnp(RECEIVER, SENDER, RECEIVER, 0xABCD)), expected);
}

/// D43, D10: damage stays damage, for the host to find.
#[test]
fn a_bad_icrc_stays_bad() {
    let mut bench = with_connection();
    let mut packet = fast_cnp(OTHER, SENDER, RECEIVER, 0xABCD);
    packet[90] ^= 4;
    let mut expected = forwarded(cnp(RECEIVER, SENDER, 0x77));
    expected[66] ^= 4;
    assert_eq!(bench.send(1, &packet), [(0, expected)]);
}

/// D48: no entry, no CNP; a host that is not translated for gets what was sent.
#[test]
fn notifications_of_unknown_connections_are_dropped() {
    let mut bench = with_connection();
    assert!(bench.send(1, &fast_cnp(OTHER, SENDER, RECEIVER, 0xABCE)).is_empty());
    assert!(bench.send(1, &fast_cnp(OTHER, SENDER, "2001:db8:2::2", 0xABCD)).is_empty());
    assert_eq!(bench.drops(1), [("fast_cnp_no_connection", 2)]);
    let elsewhere = fast_cnp(OTHER, "2001:db8:7::1", RECEIVER, 0xABCD);
    assert_eq!(bench.send(1, &elsewhere), [(1, forwarded(elsewhere))]);
}

/// FC-5-3: only configured sources are accepted.
#[test]
fn notifications_of_foreign_sources_are_dropped() {
    let mut bench = with_connection();
    assert!(bench.send(1, &fast_cnp("2001:db8:dd::1", SENDER, RECEIVER, 0xABCD)).is_empty());
    assert_eq!(bench.drops(1), [("fast_cnp_foreign_source", 1)]);
}

/// A connection learnt from the messages that passed, until its end passes.
#[test]
fn connections_are_learnt_from_messages_that_pass() {
    let mut bench = first_hop();
    let messages = messages();
    let fast_cnp = fast_cnp(OTHER, SENDER, RECEIVER, 0xABCD);
    for (port, message, expected) in [(0, 0, 0), (1, 1, 1), (0, 2, 1), (0, 3, 0)] {
        let sent = bench.send(port, &messages[message]);
        assert_eq!(sent, [(1 - port, forwarded(messages[message].clone()))], "messages pass as they are");
        let translated = bench.send(1, &fast_cnp);
        assert_eq!(translated.len(), expected, "after message {message}");
        if let [(0, cnp_octets)] = &translated[..] {
            assert_eq!(*cnp_octets, forwarded(cnp(RECEIVER, SENDER, 0x123)));
        }
    }
    let counters = bench.node.fast_cnp_counters();
    assert_eq!((counters.connections_learnt, counters.connections_ended), (1, 1));
}

/// Messages that come from where their sender is not teach nothing; nor do damaged ones.
#[test]
fn nothing_is_learnt_from_forged_messages() {
    let messages = messages();
    let mut damaged = messages[0].clone();
    damaged[150] ^= 1;
    for (port, request) in [(1, &messages[0]), (0, &damaged)] {
        let mut bench = first_hop();
        bench.send(port, request);
        bench.send(1, &messages[1]);
        assert!(bench.send(1, &fast_cnp(OTHER, SENDER, RECEIVER, 0xABCD)).is_empty());
        assert_eq!(bench.node.fast_cnp_counters().connections_learnt, 0);
    }
}

/// A node that is congested and the first hop itself notifies the host in the same way, and need not mark.
#[test]
fn a_congested_first_hop_translates_its_own() {
    let mut bench = with_connection();
    let (mark, sent) = congested(&mut bench, &data(SENDER, RECEIVER, 0xABCD));
    assert_eq!((mark, sent), (Notified::Sender, vec![(0, cnp(RECEIVER, SENDER, 0x77))]));
    let (mark, sent) = congested(&mut bench, &data(SENDER, RECEIVER, 0xABCE));
    assert_eq!((mark, sent), (Notified::Marking, vec![]), "an unknown connection");
}

/// A standard CNP is no Fast CNP: it passes a border, which a Fast CNP does not (FC-5-1).
#[test]
fn a_translation_passes_the_border() {
    let mut bench = with_connection();
    bench.apply(Command::SetDomain(srdma_dataplane::Domain {
        sids: Vec::new(),
        infrastructure: vec![prefix("2001:db8:53::/48")],
        proxies: Vec::new(),
    }));
    bench.apply(Command::SetBorder { port: PortId(0), sources: vec![prefix("2001:db8:1::/48")] });
    let expected = vec![(0, forwarded(cnp(RECEIVER, SENDER, 0x77)))];
    assert_eq!(bench.send(1, &fast_cnp(OTHER, SENDER, RECEIVER, 0xABCD)), expected);
}

#[test]
fn connections_are_added_and_removed() {
    let connection =
        Connection { host: address(SENDER), host_qpn: qpn(0x77), peer: address(RECEIVER), peer_qpn: qpn(0xABCD) };
    let remove =
        Command::RemoveConnection { host: connection.host, peer: connection.peer, peer_qpn: connection.peer_qpn };
    let mut bench = switch();
    assert_eq!(bench.node.apply(Command::AddConnection(connection)), Err(ConfigError::FastCnpIsOff));
    let mut bench = with_connection();
    bench.apply(remove.clone());
    assert!(bench.send(1, &fast_cnp(OTHER, SENDER, RECEIVER, 0xABCD)).is_empty());
    let unknown = bench.node.apply(remove).unwrap_err();
    assert_eq!(unknown.to_string(), "no connection of 2001:db8:1::1 with 2001:db8:2::1, queue pair 0xabcd, was added");
}
