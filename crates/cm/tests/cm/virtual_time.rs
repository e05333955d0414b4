//! Exchanges over networks with faults, and with parties that end, from seeds.

use super::network::{Faults, Network};
use super::peers::{CLIENT, PROXY, TERMS, qpn, reply, request, servers};
use srdma_cm::{Action, End, Exchange, Exchanges, Mad, Message, Party, Request, ServerAddress, Terms, ip};
use srdma_testkit::seeds;

const QUIET: Faults = Faults { loss: 0, repetition: 0, delay_ns: 0 };
const MINUTES_NS: u64 = 60_000_000_000;

/// D250, D253: a client and five servers are connected, and disconnected; the servers have seen the Proxy Address, the
/// Designated QPN, and the PSN that the client was told.
#[test]
fn a_client_reaches_five_servers() {
    let mut network = Network::new(1, 5, QUIET);
    assert!(network.run_until(MINUTES_NS, |network| network.connected == 1));
    assert!(network.peers.iter().all(|peer| peer.is_connected));
    assert_eq!((network.groups, network.peers[0].told_psn), (1, Some(TERMS.initial_psn)));
    for (at, peer) in network.peers.iter().enumerate().skip(1) {
        let asked = peer.asked.as_ref().expect("it was asked");
        assert_eq!((asked.local_qpn, asked.starting_psn), (TERMS.designated_qpn, TERMS.initial_psn));
        assert_eq!((asked.local_gid, asked.ca_guid), (PROXY, TERMS.ca_guid));
        assert_eq!(asked.service_id, ip::service_id(7471 + at as u16 - 1));
        let addresses = ip::IpRequest::parse(&asked.private_data).expect("addresses");
        assert_eq!((addresses.source, addresses.destination), (PROXY, asked.remote_gid));
        assert_eq!(&addresses.private_data[..5], b"file\0");
    }
    let message = network.peers[0].disconnect(network.now_ns);
    network.peer_sends(0, message);
    network.settle();
    assert_eq!((network.end.take(), network.ends), (Some(End::Disconnected), 1));
    assert!(network.peers.iter().all(|peer| peer.has_ended));
}

/// Loss, repetition and any order: either all are connected and disconnected, or all have ended.
#[test]
fn lost_and_repeated_messages() {
    let mut served = 0;
    for seed in 0..seeds::count(300) {
        let faults = Faults { loss: seed % 40, repetition: seed % 30, delay_ns: 1 + seed % 7 * 500_000_000 };
        let mut network = Network::new(seed, 1 + (seed % 5) as usize, faults);
        network.controller_ns = seed % 12 * 1_000_000_000;
        let is_connected = network.run_until(5 * MINUTES_NS, |network| network.connected == 1 || network.ends == 1);
        assert!(is_connected, "seed {seed}: neither connected nor over");
        if network.connected == 1 {
            assert!(network.peers[0].is_connected, "seed {seed}");
            let message = network.peers[0].disconnect(network.now_ns);
            network.peer_sends(0, message);
        }
        network.settle();
        assert_eq!(network.ends, 1, "seed {seed}: one end");
        assert!(network.connected <= 1 && network.groups <= 1, "seed {seed}");
        for peer in &network.peers {
            assert!(peer.has_ended || peer.has_failed || !peer.is_connected, "seed {seed}: {peer:?}");
        }
        // Four parties and a dozen messages each, again as often as they are lost: far from a flood.
        assert!(network.messages < 1500, "seed {seed}: {} messages", network.messages);
        served += u64::from(network.end == Some(End::Disconnected));
    }
    let seeds = seeds::count(300);
    assert!(served * 10 > seeds * 9, "{served} of {seeds} were served");
}

/// A receipt keeps the client from asking again while the group is made, for longer than it waits by itself.
#[test]
fn the_client_waits_for_a_slow_controller() {
    let mut network = Network::new(1, 2, QUIET);
    network.controller_ns = 50_000_000_000;
    assert!(network.run_until(2 * MINUTES_NS, |network| network.connected == 1));
    // REQ, MRA; REQ, REP, RTU of both servers; REP, RTU.
    assert_eq!(network.messages, 2 + 2 * 3 + 2);
}

/// A controller that takes longer than a minute is late: the client is rejected, the servers disconnected.
#[test]
fn a_controller_that_does_not_answer_is_late() {
    let mut network = Network::new(1, 2, QUIET);
    network.controller_ns = 70_000_000_000;
    network.settle();
    assert_eq!((network.end, network.connected), (Some(End::Late), 0));
    assert!(network.peers[0].has_failed && network.peers[1].has_ended && network.peers[2].has_ended);
}

/// A server that does not answer ends it for all.
#[test]
fn a_server_that_is_silent() {
    let mut network = Network::new(1, 3, QUIET);
    network.peers[2].has_failed = true;
    network.settle();
    assert_eq!(network.end, Some(End::Silent(Party::Server(1))));
    assert!(network.peers[0].has_failed && network.peers[1].has_ended && network.peers[3].has_ended);
    assert_eq!(network.groups, 0);
}

/// A client that is gone before its RTU: the group is over, though it was begun.
#[test]
fn a_client_that_is_silent() {
    let mut network = Network::new(1, 1, QUIET);
    assert!(network.run_until(MINUTES_NS, |network| network.groups == 1));
    network.peers[0].has_failed = true;
    network.settle();
    assert_eq!(network.end, Some(End::Silent(Party::Client)));
    assert!(network.peers[1].has_ended);
}

/// A server that disconnects first ends it for all.
#[test]
fn a_server_that_leaves() {
    let mut network = Network::new(1, 3, QUIET);
    assert!(network.run_until(MINUTES_NS, |network| network.connected == 1));
    let message = network.peers[3].disconnect(network.now_ns);
    network.peer_sends(3, message);
    network.settle();
    assert_eq!(network.end, Some(End::Left(Party::Server(2))));
    assert!(network.peers.iter().all(|peer| peer.has_ended));
}

/// The caller ends it in each state: at all times every party learns it.
#[test]
fn the_caller_ends_it_at_any_time() {
    for step in 0..60 {
        let mut network = Network::new(1, 2, QUIET);
        for _ in 0..step {
            network.step(MINUTES_NS);
        }
        network.exchange.close(network.now());
        network.act();
        network.settle();
        assert_eq!((network.end.take(), network.ends), (Some(End::Closed), 1), "after {step} events");
        for peer in &network.peers {
            assert!(peer.has_ended || peer.has_failed || !peer.is_connected, "after {step} events: {peer:?}");
        }
    }
}

/// A client that needs time behind the REP says so, and the REP is not sent again meanwhile.
#[test]
fn a_receipt_of_the_client() {
    let mut network = Network::new(1, 1, QUIET);
    assert!(network.run_until(MINUTES_NS, |network| network.groups == 1));
    // The REP is sent, and the RTU lost: the client sends receipts instead.
    let mut sent = 0;
    while network.connected == 0 && sent < 3 {
        let before = network.messages;
        let receipt = network.peers[0].receipt();
        network.peer_sends(0, Some(receipt));
        network.step(MINUTES_NS);
        sent += network.messages - before;
    }
    network.settle();
    assert_eq!(network.connected, 1);
    assert_eq!(network.peers[0].asked, None, "{CLIENT} is no server");
}

/// D253: each server expects the PSN of its own answer; the client is told the group's.
#[test]
fn the_psns_that_servers_expect() {
    let mut network = Network::new(1, 3, QUIET);
    for (peer, psn) in network.peers[1..].iter_mut().zip([0, 0x12_3456, 0xff_ffff]) {
        peer.own_psn = psn;
    }
    assert!(network.run_until(MINUTES_NS, |network| network.connected == 1));
    let group = network.group.as_ref().expect("a group");
    let expected: Vec<u32> = group.receivers.iter().map(|receiver| receiver.expected_psn.get()).collect();
    assert_eq!(expected, [0, 0x12_3456, 0xff_ffff]);
    assert_eq!((group.initial_psn, network.peers[0].told_psn), (TERMS.initial_psn, Some(TERMS.initial_psn)));
}

/// D252: the client gets the private data that all servers have sent, else none; and no resources for READ and ATOMIC,
/// which it is not told of by servers that offer them.
#[test]
fn what_the_client_is_told() {
    for (octets, expected) in [([0, 0, 0], &b"ready"[..]), ([0, 0, 1], &[0; 5])] {
        let mut network = Network::new(1, 3, QUIET);
        network.peers[1..].iter_mut().zip(octets).for_each(|(peer, octet)| peer.private_octet = octet);
        assert!(network.run_until(MINUTES_NS, |network| network.connected == 1));
        let told = network.peers[0].told.as_ref().expect("a reply");
        assert_eq!(&told.private_data[..5], expected);
        assert!(told.private_data[5..].iter().all(|octet| *octet == 0));
        assert_eq!((told.responder_resources, told.initiator_depth), (0, 0));
        assert_eq!((told.target_ack_delay, told.local_qpn), (15, TERMS.designated_qpn));
        let asked = network.peers[1].asked.as_ref().expect("a request");
        assert_eq!((asked.responder_resources, asked.initiator_depth), (0, 0));
    }
}

/// D271: what comes again of an exchange that is over begins nothing, and disturbs no other; the next client is served.
#[test]
fn one_client_after_the_other() {
    let mut network = Network::new(1, 3, QUIET);
    assert!(network.run_until(MINUTES_NS, |network| network.connected == 1));
    let message = network.peers[0].disconnect(network.now_ns);
    network.peer_sends(0, message);
    network.settle();
    let (now, came) = (network.now(), network.came);
    assert!(came.iter().any(|(from, _)| *from == CLIENT) && came.len() > 8, "{} messages", came.len());

    let terms = Terms { client_id: TERMS.client_id + 1, ca_guid: 7, ..TERMS };
    let of_next = servers(3).into_iter().map(|server| ServerAddress { id: server.id + 0x100, ..server });
    let mut exchanges = Exchanges::new(network.exchange);
    exchanges.succeed(Exchange::new(terms, &of_next.collect::<Vec<_>>()).expect("servers"));
    let again = |exchanges: &mut Exchanges| {
        for (from, mad) in &came {
            let _ = exchanges.receive(now, *from, mad);
            while let Some(action) = exchanges.next_action() {
                assert!(matches!(action, Action::Send(..)), "{action:?}");
            }
        }
    };
    again(&mut exchanges);
    assert!(!exchanges.current().has_begun(), "a request that comes again begins nothing");

    let next = Request { local_id: 8, local_qpn: qpn(0x78), ..request() };
    let mad = Mad { transaction_id: 5, message: Message::Request(Box::new(next)) };
    assert_eq!(exchanges.receive(now, CLIENT, &mad), Ok(()));
    let asked = std::iter::from_fn(|| exchanges.next_action());
    let asked: Vec<Mad> =
        asked.filter_map(|action| if let Action::Send(_, mad) = action { Some(*mad) } else { None }).collect();
    // A receipt, and three requests; another client is refused meanwhile.
    assert_eq!(asked.len(), 4);
    again(&mut exchanges);
    for mad in &asked {
        let Message::Request(request) = &mad.message else { continue };
        let reply = reply(request, 0x5000, 0x300);
        let mad = Mad { transaction_id: mad.transaction_id, message: Message::Reply(reply) };
        assert_eq!(exchanges.receive(now, request.remote_gid, &mad), Ok(()));
    }
    let made = std::iter::from_fn(|| exchanges.next_action()).find_map(|action| match action {
        Action::MakeGroup(group) => Some(group),
        _ => None,
    });
    let made = made.expect("a group");
    assert_eq!((made.source.qpn, made.receivers.len()), (qpn(0x78), 3));
    again(&mut exchanges);
}
