//! An ordinary queue pair as source and as receiver of a multicast group. The network between them is played by the
//! test.

use crate::support::{Given, qpn};
use srdma_rc::{
    Access, DropReason, Endpoint, EndpointConfig, LocalRange, MemoryKey, Operation, QueuePairConfig, QueuePairState,
    RemoteAddress, Status, WorkRequest,
};
use srdma_wire::rocev2::{Packet, PacketValue};
use srdma_wire::{Instant, Opcode, PathMtu, Psn, Qpn, Syndrome};
use std::net::Ipv6Addr;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 0xf);
const FIRST_PSN: Psn = Psn::new(0xFF_FFFF);

fn receiver_address(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, number as u16)
}

fn member(address: Ipv6Addr, own: Qpn) -> Endpoint {
    let mut endpoint = Endpoint::new(EndpointConfig::new(address));
    let mut config = QueuePairConfig::new(own, PROXY, qpn(0xDE516));
    (config.sq_psn, config.rq_psn) = (FIRST_PSN, FIRST_PSN);
    config.path_mtu = PathMtu::Octets256;
    endpoint.add_queue_pair(config).expect("a good configuration");
    endpoint
}

/// The packet as a node of the group forwards it, its ICRC recomputed.
fn readdressed(packet: &[u8], source: Ipv6Addr, destination: Ipv6Addr, own: Qpn) -> Vec<u8> {
    let mut value: PacketValue<'_> = Packet::parse(packet, packet.len()).expect("RoCEv2").value().expect("whole");
    value.ipv6.source = source;
    value.ipv6.destination = destination;
    value.bth.dest_qpn = own;
    let mut octets = vec![0; value.len_octets()];
    value.emit(&mut octets).expect("as long as before");
    octets
}

fn drain(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; endpoint.max_packet_octets()];
    std::iter::from_fn(|| endpoint.poll_transmit(Instant::ZERO, &mut buffer).map(|length| buffer[..length].to_vec()))
        .collect()
}

fn write(endpoint: &mut Endpoint, own: Qpn, data: &[u8], operation: Operation) {
    let key = endpoint.register_memory(data.to_vec(), 0, Access::LOCAL, 0);
    let local = LocalRange { key, offset: 0, length_octets: data.len() as u32 };
    endpoint.post_send(own, WorkRequest { wr_id: 1, operation, local, signalled: true }).expect("posted");
}

/// MT-5.1-1, MT-5.2-4, D28: the remote address of all is the Proxy Address, their remote QPN the Designated QPN, and
/// every receiver expects the source's first PSN.
#[test]
fn one_source_writes_to_two_receivers_through_a_proxy_address() {
    let mut source = member(SOURCE, qpn(0x50));
    let mut receivers = [1, 2].map(|number| member(receiver_address(number), qpn(0x60 + number as u32)));
    let keys = receivers.each_mut().map(|it| it.register_memory(vec![0; 600], 0x1000, Access::REMOTE_WRITE, 0x33));
    assert_eq!(keys[0], keys[1], "the same key on both, so that no RETH need be rewritten here");
    let data: Vec<u8> = (0..600).map(|i| i as u8).collect();
    let remote = RemoteAddress { virtual_address: 0x1000, rkey: keys[0] };
    write(&mut source, qpn(0x50), &data, Operation::Write { remote, immediate: None });

    let mut acks = Vec::new();
    for packet in drain(&mut source) {
        let sent = Packet::parse(&packet, packet.len()).expect("RoCEv2");
        assert_eq!((sent.ipv6.source(), sent.ipv6.destination()), (SOURCE, PROXY));
        assert_eq!(sent.bth.dest_qpn(), qpn(0xDE516));
        for (index, receiver) in receivers.iter_mut().enumerate() {
            let (address, own) = (receiver_address(index + 1), qpn(0x61 + index as u32));
            let from_source = readdressed(&packet, SOURCE, address, own);
            let refused = receiver.receive(Instant::ZERO, &[&from_source]);
            assert_eq!(refused, Err(DropReason::UnexpectedSource), "copies need SA = Proxy Address (D11)");
            receiver.receive(Instant::ZERO, &[&readdressed(&packet, PROXY, address, own)]).expect("taken");
            acks.extend(drain(receiver));
        }
    }
    let [first, second] = &acks[..] else { panic!("one ACK from each, found {}", acks.len()) };
    let ack = Packet::parse(first, first.len()).expect("RoCEv2");
    assert_eq!((ack.ipv6.source(), ack.ipv6.destination()), (receiver_address(1), PROXY));
    assert_eq!((ack.bth.dest_qpn(), ack.bth.psn()), (qpn(0xDE516), FIRST_PSN.plus(2)));
    assert_eq!(Packet::parse(second, second.len()).expect("RoCEv2").bth.psn(), ack.bth.psn());

    source.receive(Instant::ZERO, &[&readdressed(first, PROXY, SOURCE, qpn(0x50))]).expect("taken");
    assert_eq!(source.poll_completion().map(|done| done.status), Some(Status::Success));
    for (receiver, key) in receivers.iter().zip(keys) {
        assert_eq!(receiver.memory(key), Some(&data));
    }
}

/// D26: the headend refuses a READ to the Proxy Address with NAK invalid request.
#[test]
fn a_read_from_a_group_is_refused_by_the_network() {
    let mut source = member(SOURCE, qpn(0x50));
    let remote = RemoteAddress { virtual_address: 0x1000, rkey: MemoryKey(0x33) };
    write(&mut source, qpn(0x50), &[0; 600], Operation::Read { remote });
    let [request] = &drain(&mut source)[..] else { panic!("one READ request") };
    let request = Packet::parse(request, request.len()).expect("RoCEv2");
    assert_eq!(request.bth.opcode(), Opcode::READ_REQUEST);
    let syndrome = Syndrome::INVALID_REQUEST.to_octet();
    let nak = Given::response(request.bth.psn().get(), syndrome).octets();
    source.receive(Instant::ZERO, &[&readdressed(&nak, PROXY, SOURCE, qpn(0x50))]).expect("taken");
    assert_eq!(source.poll_completion().map(|done| done.status), Some(Status::RemoteInvalidRequest));
    assert_eq!(source.state(qpn(0x50)), Some(QueuePairState::Error));
}
