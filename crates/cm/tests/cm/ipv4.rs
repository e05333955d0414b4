//! Exchanges over IPv4 (D292), with the REQ of a soft-RoCE host.

use super::golden::recorded_over_ipv4;
use super::peers::{TERMS, reply, servers};
use srdma_cm::{Action, Exchange, Ids, Mad, Message, Refusal, Request, ServerAddress, Terms};
use srdma_wire::Instant;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The host to which the recorded client connects.
const PROXY: Ipv6Addr = Ipv4Addr::new(10, 2, 1, 1).to_ipv6_mapped();
const CLIENT: Ipv6Addr = Ipv4Addr::new(10, 2, 2, 1).to_ipv6_mapped();
const SERVERS: [[u8; 4]; 2] = [[10, 3, 0, 1], [10, 3, 0, 2]];

fn terms() -> Terms {
    Terms { proxy: PROXY, ..TERMS }
}

fn of_ipv4() -> Vec<ServerAddress> {
    let addresses = SERVERS.map(|octets| Ipv4Addr::from(octets).to_ipv6_mapped());
    servers(2).into_iter().zip(addresses).map(|(server, address)| ServerAddress { address, ..server }).collect()
}

fn recorded_request() -> Mad {
    recorded_over_ipv4()[0].0.mad()
}

/// The REQs that are to be sent.
fn requests(exchange: &mut Exchange) -> Vec<(Ipv6Addr, Request)> {
    let sent = std::iter::from_fn(|| exchange.next_action());
    let request = |action| match action {
        Action::Send(to, mad) => match mad.message {
            Message::Request(request) => Some((to, *request)),
            _ => None,
        },
        _ => None,
    };
    sent.filter_map(request).collect()
}

/// Each server is asked by the GIDs of IPv4, and by the private data that Linux writes: version 4, and addresses in the
/// last four of their octets.
#[test]
fn servers_are_asked_over_ipv4() {
    let mut exchange = Exchange::new(terms(), &of_ipv4()).expect("servers");
    exchange.receive(Instant::ZERO, CLIENT, &recorded_request()).expect("a client");
    let asked = requests(&mut exchange);
    assert_eq!(asked.len(), SERVERS.len());
    for ((to, request), octets) in asked.iter().zip(SERVERS) {
        let address = Ipv4Addr::from(octets).to_ipv6_mapped();
        assert_eq!((*to, request.local_gid, request.remote_gid), (address, PROXY, address));
        let expected = [&[0; 12][..], &[10, 2, 1, 1], &[0; 12], &octets, b"file\0"].concat();
        assert_eq!((request.private_data[..2].to_vec(), &request.private_data[4..41]), (vec![0, 0x40], &expected[..]));
    }
    for (at, (to, request)) in asked.iter().enumerate() {
        let message = Message::Reply(reply(request, 0x90 + at as u32, 0x100));
        exchange.receive(Instant::ZERO, *to, &Mad { transaction_id: 1, message }).expect("a reply");
    }
    let made = std::iter::from_fn(|| exchange.next_action()).find_map(|action| match action {
        Action::MakeGroup(group) => Some(group),
        _ => None,
    });
    let group = made.expect("a group");
    assert_eq!(group.source.address, CLIENT);
    let receivers: Vec<Ipv6Addr> = group.receivers.iter().map(|receiver| receiver.address).collect();
    assert_eq!(receivers, SERVERS.map(|octets| Ipv4Addr::from(octets).to_ipv6_mapped()));
}

/// A group has one IP version (D273).
#[test]
fn versions_do_not_mix() {
    assert!(Exchange::new(terms(), &servers(2)).is_none());
    assert!(Exchange::new(TERMS, &of_ipv4()).is_none());
    let mixed = [servers(1), of_ipv4()].concat();
    assert!(Exchange::new(terms(), &mixed).is_none() && Exchange::new(TERMS, &mixed).is_none());

    let mut exchange = Exchange::new(terms(), &of_ipv4()).expect("servers");
    let of_ipv6 = "2001:db8::1".parse().expect("an address");
    assert_eq!(exchange.receive(Instant::ZERO, of_ipv6, &recorded_request()), Err(Refusal::Gid));
    let mut exchange = Exchange::new(TERMS, &servers(1)).expect("a server");
    assert_eq!(exchange.receive(Instant::ZERO, CLIENT, &recorded_request()), Err(Refusal::Gid));
}

/// Private data whose addresses are not those of the packet, or of another version.
#[test]
fn other_addresses_are_refused() {
    let Message::Request(request) = recorded_request().message else { panic!("a request") };
    // The version, an octet of the client's address, and one of the Proxy Address.
    for (at, octet) in [(1, 0x60), (19, 9), (35, 9)] {
        let mut request = request.clone();
        request.private_data[at] = octet;
        let ids = Ids { local: 0, remote: request.local_id };
        let mut exchange = Exchange::new(terms(), &of_ipv4()).expect("servers");
        let mad = Mad { transaction_id: 5, message: Message::Request(request) };
        assert_eq!(exchange.receive(Instant::ZERO, CLIENT, &mad), Err(Refusal::NoIpAddresses), "octet {at}");
        let Some(Action::Send(CLIENT, mad)) = exchange.next_action() else { panic!("a rejection") };
        assert!(matches!(mad.message, Message::Reject(reject) if reject.ids == ids));
    }
}
