//! Requests and messages that are refused, each by its reason.

use super::peers::{CLIENT, CLIENT_ID, PROXY, TERMS, address, qpn, request, servers, word};
use srdma_cm::{Action, DisconnectRequest, Exchange, Ids, MOST_SERVERS, Mad, Message, Reason, Refusal, Request, ip};
use srdma_wire::Instant;
use std::net::Ipv6Addr;

const NOW: Instant = Instant::ZERO;

fn exchange() -> Exchange {
    Exchange::new(TERMS, &servers(2)).expect("servers")
}

fn mad(message: Message) -> Mad {
    Mad { transaction_id: 3, message }
}

fn ask(exchange: &mut Exchange, from: Ipv6Addr, request: Request) -> Result<(), Refusal> {
    exchange.receive(NOW, from, &mad(Message::Request(Box::new(request))))
}

/// The reason of the rejection that was sent.
fn rejection(exchange: &mut Exchange) -> Option<Reason> {
    let Some(Action::Send(_, mad)) = exchange.next_action() else { return None };
    assert!(exchange.next_action().is_none());
    match mad.message {
        Message::Reject(reject) => {
            assert_eq!(reject.ids, Ids { local: 0, remote: 7 });
            Some(reject.reason)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_that_no_group_can_serve() {
    let wrong = |change: fn(&mut Request)| {
        let mut exchange = exchange();
        let mut request = request();
        change(&mut request);
        let refusal = ask(&mut exchange, CLIENT, request).expect_err("refused");
        let reason = rejection(&mut exchange);
        assert!(!exchange.has_begun());
        (refusal, reason.expect("a rejection"))
    };
    let addresses = |source, destination| {
        let found = ip::IpRequest::parse(&request().private_data).expect("addresses");
        ip::IpRequest { source, destination, ..found }.emit()
    };
    let no_addresses = (Refusal::NoIpAddresses, Reason::UNSUPPORTED_REQUEST);
    let gid = (Refusal::Gid, Reason::INVALID_GID);
    let transport = (Refusal::Transport, Reason::INVALID_TRANSPORT_SERVICE);
    assert_eq!(wrong(|r| r.service_id += 1), (Refusal::Service, Reason::INVALID_SERVICE_ID));
    assert_eq!(wrong(|r| r.service_id = 0x0111 << 16 | 7471), (Refusal::Service, Reason::INVALID_SERVICE_ID));
    assert_eq!(wrong(|r| r.transport_service = 1), transport);
    assert_eq!(wrong(|r| r.extended_transport = 1), transport);
    assert_eq!(wrong(|r| r.local_gid = address(0xaa, 2)), gid);
    assert_eq!(wrong(|r| r.remote_gid = address(0xcc, 2)), gid);
    assert_eq!(wrong(|r| r.path_mtu_code = 0), (Refusal::PathMtu, Reason::INVALID_PATH_MTU));
    assert_eq!(wrong(|r| r.path_mtu_code = 6), (Refusal::PathMtu, Reason::INVALID_PATH_MTU));
    assert_eq!(wrong(|r| r.private_data[1] = 0x40), no_addresses);
    assert_eq!(wrong(|r| r.private_data[0] = 0x10), no_addresses);
    let mut with_other_source = exchange();
    let other = Request { private_data: addresses(address(0xaa, 2), PROXY), ..request() };
    assert_eq!(ask(&mut with_other_source, CLIENT, other), Err(Refusal::NoIpAddresses));
    let other = Request { private_data: addresses(CLIENT, address(0xcc, 2)), ..request() };
    assert_eq!(ask(&mut with_other_source, CLIENT, other), Err(Refusal::NoIpAddresses));
}

/// Senders that cannot be the source of a group.
#[test]
fn senders_that_are_no_source() {
    for text in ["::", "::1", "ff02::1", "fe80::1", "::ffff:192.0.2.1", "2001:db8:cc::1", "2001:db8:bb::1"] {
        let from: Ipv6Addr = text.parse().expect("an address");
        let asked = Request { local_gid: from, ..request() };
        assert_eq!(ask(&mut exchange(), from, asked), Err(Refusal::Gid), "{text}");
    }
}

/// A second client, and the first one with another queue pair, are rejected; the first goes on.
#[test]
fn a_second_client_is_rejected() {
    let mut exchange = exchange();
    assert_eq!(ask(&mut exchange, CLIENT, request()), Ok(()));
    while exchange.next_action().is_some() {}
    let private_data = request().private_data;
    let mut second = ip::IpRequest::parse(&private_data).expect("addresses");
    second.source = address(0xaa, 2);
    let from_second = Request { local_gid: address(0xaa, 2), private_data: second.emit(), ..request() };
    assert_eq!(ask(&mut exchange, address(0xaa, 2), from_second), Err(Refusal::Busy));
    assert_eq!(rejection(&mut exchange), Some(Reason::NO_RESOURCES));
    let other = Request { local_qpn: qpn(0x78), ..request() };
    assert_eq!(ask(&mut exchange, CLIENT, other), Err(Refusal::Busy));
    assert_eq!(rejection(&mut exchange), Some(Reason::NO_RESOURCES));
    assert_eq!(ask(&mut exchange, CLIENT, request()), Ok(()));
    let words: Vec<String> = std::iter::from_fn(|| exchange.next_action()).map(|action| word(&action)).collect();
    assert_eq!(words, ["MRA>c"]);
}

/// Messages about connections that do not exist, or of others than their parties, have no effect.
#[test]
fn strangers_have_no_effect() {
    let mut exchange = exchange();
    let ids = |local, remote| Ids { local, remote };
    let disconnect = |ids, number| Message::DisconnectRequest(DisconnectRequest { ids, remote_qpn: qpn(number) });
    let rtu = mad(Message::ReadyToUse(ids(7, CLIENT_ID)));
    assert_eq!(exchange.receive(NOW, CLIENT, &rtu), Err(Refusal::UnknownConnection));
    assert_eq!(ask(&mut exchange, CLIENT, request()), Ok(()));
    while exchange.next_action().is_some() {}
    assert_eq!(exchange.receive(NOW, CLIENT, &rtu), Err(Refusal::OutOfState));
    assert_eq!(exchange.receive(NOW, address(0xaa, 2), &rtu), Err(Refusal::UnknownConnection));
    let other = mad(Message::ReadyToUse(ids(8, CLIENT_ID)));
    assert_eq!(exchange.receive(NOW, CLIENT, &other), Err(Refusal::UnknownConnection));
    // No server has answered yet.
    let early = mad(disconnect(ids(1, 0x2000_0000), 0xd0_0000));
    assert_eq!(exchange.receive(NOW, address(0xbb, 1), &early), Err(Refusal::OutOfState));
    assert!(exchange.next_action().is_none());
}

/// Another queue pair than that of the connection is not disconnected.
#[test]
fn another_queue_pair_is_not_disconnected() {
    use super::network::{Faults, Network};
    let mut network = Network::new(1, 1, Faults { loss: 0, repetition: 0, delay_ns: 0 });
    assert!(network.run_until(60_000_000_000, |network| network.connected == 1));
    let ids = Ids { local: 7, remote: CLIENT_ID };
    let message = Message::DisconnectRequest(DisconnectRequest { ids, remote_qpn: qpn(0xd0_0001) });
    let now = network.now();
    assert_eq!(network.exchange.receive(now, CLIENT, &mad(message)), Err(Refusal::OtherQueuePair));
    assert!(network.exchange.next_action().is_none());
}

/// The number of servers is bounded, and each has an address of its own.
#[test]
fn servers_that_make_no_group() {
    assert!(Exchange::new(TERMS, &[]).is_none());
    assert!(Exchange::new(TERMS, &servers(MOST_SERVERS)).is_some());
    assert!(Exchange::new(TERMS, &servers(MOST_SERVERS + 1)).is_none());
    let twice = [servers(1), servers(1)].concat();
    assert!(Exchange::new(TERMS, &twice).is_none());
}
