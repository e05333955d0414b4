use super::*;

fn address(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number)
}

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).unwrap()
}

const HOST: u16 = 1;
const PEER: u16 = 2;

fn packet(from: u16, to: u16, message: CmMessage) -> CmPacket {
    CmPacket { source: address(from), destination: address(to), message }
}

fn request(from: u16, to: u16, local_id: u32, number: u32) -> CmPacket {
    packet(from, to, CmMessage::ConnectRequest { local_id, local_qpn: qpn(number) })
}

fn reply(from: u16, to: u16, remote_id: u32, number: u32) -> CmPacket {
    packet(from, to, CmMessage::ConnectReply { remote_id, local_qpn: qpn(number) })
}

fn disconnect(from: u16, to: u16, number: u32) -> CmPacket {
    packet(from, to, CmMessage::DisconnectRequest { remote_qpn: qpn(number) })
}

fn watch(connections: &mut Connections, seconds: u64, packets: &[CmPacket]) -> Change {
    let mut total = Change::default();
    for packet in packets {
        let now = Instant::from_ns(seconds * 1_000_000_000);
        let change = connections.observe(now, packet, |host| host == address(HOST));
        total = Change { learnt: total.learnt + change.learnt, ended: total.ended + change.ended };
    }
    total
}

fn found(connections: &Connections, peer: u16, peer_qpn: u32) -> Lookup {
    connections.find(address(HOST), address(peer), qpn(peer_qpn))
}

/// D48: whichever side sent the request.
#[test]
fn a_connection_is_learnt_from_request_and_reply() {
    for (host_asks, exchange) in [
        (true, [request(HOST, PEER, 7, 0x10), reply(PEER, HOST, 7, 0x20)]),
        (false, [request(PEER, HOST, 7, 0x20), reply(HOST, PEER, 7, 0x10)]),
    ] {
        let mut connections = Connections::default();
        assert_eq!(watch(&mut connections, 0, &exchange), Change { learnt: 1, ended: 0 }, "host asks: {host_asks}");
        assert_eq!(found(&connections, PEER, 0x20), Lookup::Found(qpn(0x10)));
        assert_eq!(found(&connections, PEER, 0x21), Lookup::Unknown);
        assert_eq!(found(&connections, 3, 0x20), Lookup::Unknown);
        assert!(connections.learnt.len() == 1 && connections.pending.is_empty(), "only the host's side is kept");
    }
}

#[test]
fn a_reply_needs_its_request() {
    let mut connections = Connections::default();
    watch(&mut connections, 0, &[reply(PEER, HOST, 7, 0x20)]);
    watch(&mut connections, 0, &[request(HOST, PEER, 7, 0x10), reply(PEER, HOST, 8, 0x20), reply(3, HOST, 7, 0x20)]);
    watch(&mut connections, 60, &[reply(PEER, HOST, 7, 0x20)]);
    assert_eq!(found(&connections, PEER, 0x20), Lookup::Unknown);
    watch(&mut connections, 0, &[request(5, 6, 7, 0x10), reply(6, 5, 7, 0x20)]);
    assert!(connections.learnt.is_empty() && connections.pending.is_empty(), "messages of others leave nothing behind");
}

/// D48: two queue pairs of the host cannot both be the peer's one; until one is known to be over, neither is.
#[test]
fn two_claims_are_ambiguous_until_one_ends() {
    for from_host in [true, false] {
        let mut connections = Connections::default();
        let first = [request(HOST, PEER, 7, 0x10), reply(PEER, HOST, 7, 0x20)];
        let second = [request(HOST, PEER, 8, 0x11), reply(PEER, HOST, 8, 0x20)];
        watch(&mut connections, 0, &first);
        watch(&mut connections, 1, &first);
        assert_eq!(found(&connections, PEER, 0x20), Lookup::Found(qpn(0x10)), "a repeated message");
        let end = if from_host { disconnect(HOST, PEER, 0x20) } else { disconnect(PEER, HOST, 0x10) };
        watch(&mut connections, 2, &[end]);
        assert_eq!(found(&connections, PEER, 0x20), Lookup::Unknown);
        watch(&mut connections, 3, &second);
        assert_eq!(found(&connections, PEER, 0x20), Lookup::Found(qpn(0x11)));
        watch(&mut connections, 4, &first);
        assert_eq!(found(&connections, PEER, 0x20), Lookup::Ambiguous);
        watch(&mut connections, 5, &second);
        assert_eq!(found(&connections, PEER, 0x20), Lookup::Ambiguous);
        watch(&mut connections, 6, &[disconnect(HOST, PEER, 0x20)]);
        assert_eq!(found(&connections, PEER, 0x20), Lookup::Unknown);
        assert!(connections.order.is_empty());
    }
}

#[test]
fn provisioned_connections_take_precedence() {
    let mut connections = Connections::default();
    let (host, peer) = (address(HOST), address(PEER));
    connections.provision(Connection { host, host_qpn: qpn(0x99), peer, peer_qpn: qpn(0x20) });
    watch(&mut connections, 0, &[request(HOST, PEER, 7, 0x10), reply(PEER, HOST, 7, 0x20)]);
    assert_eq!(found(&connections, PEER, 0x20), Lookup::Found(qpn(0x99)));
    assert!(connections.withdraw(host, peer, qpn(0x20)) && !connections.withdraw(host, peer, qpn(0x20)));
    assert_eq!(found(&connections, PEER, 0x20), Lookup::Found(qpn(0x10)));
}

#[test]
fn neither_table_grows_without_bound() {
    let mut connections = Connections::default();
    for number in 2..20_000 {
        watch(&mut connections, 0, &[request(HOST, PEER, number, number)]);
    }
    assert_eq!(connections.pending.len(), MOST_PENDING);
    for number in 2..20_000 {
        let exchange = [request(HOST, PEER, number, number), reply(PEER, HOST, number, number)];
        watch(&mut connections, 0, &exchange);
    }
    assert_eq!((connections.learnt.len(), connections.order.len()), (MOST_LEARNT, MOST_LEARNT));
    assert_eq!(found(&connections, PEER, 19_999), Lookup::Found(qpn(19_999)));
    assert_eq!(found(&connections, PEER, 2), Lookup::Unknown);
}
