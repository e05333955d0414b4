//! Connection management between a client and listening receivers (D250).

use crate::choices::Choices;
use srdma_cm::{
    Action, Answered, DisconnectRequest, Exchange, Flow, Ids, Mad, Message, PAYLOAD_LEN, Receipt, Reply, Request,
    ServerAddress, Terms, ip,
};
use srdma_wire::{Instant, Psn, Qpn};
use std::net::Ipv6Addr;

const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, 1);
const CLIENT_ID: u32 = 0x100;
const DESIGNATED: Qpn = Qpn::from_octets([0xd0, 0, 1]);
const PORT: u16 = 7471;

const fn party(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, number)
}

/// Messages of a client and up to three servers in any order, in order, damaged or any octets, with time and the calls
/// of a controller. What is read is written as it was; an exchange asks for one group, ends once, is over when time
/// passes after its end, and sends no flood.
pub fn cm_exchange(input: &[u8]) {
    let mut choices = Choices::new(input);
    let count = 1 + choices.below(3);
    let servers: Vec<ServerAddress> = (0..count)
        .map(|at| ServerAddress { address: party(2 + at as u16), port: PORT, id: 0x200 + at as u32 })
        .collect();
    let terms = Terms {
        proxy: PROXY,
        port: PORT,
        ca_guid: 9,
        client_id: CLIENT_ID,
        designated_qpn: DESIGNATED,
        initial_psn: Psn::new(5),
    };
    let Some(mut exchange) = Exchange::new(terms, &servers) else { return };
    let (mut now, mut seen) = (Instant::ZERO, Seen::default());
    while !choices.is_empty() {
        match choices.below(8) {
            0 => now = now.after_ns(u64::from(choices.octet()) * 500_000_000),
            1 | 2 => exchange.group_ready(now),
            3 if choices.rarely(8) => exchange.group_failed(now, "no address is free"),
            3 if choices.rarely(8) => exchange.close(now),
            3 => exchange.tick(now),
            _ => {
                let from = choices.below(count + 1);
                let mut octets = message(&mut choices, from).emit();
                if choices.rarely(3) {
                    octets[choices.below(Mad::LEN)] ^= choices.octet();
                }
                receive(&mut exchange, now, party(1 + from as u16), &octets);
            }
        }
        seen.drain(&mut exchange, count);
    }
    exchange.close(now);
    seen.drain(&mut exchange, count);
    // All retransmissions end.
    for _ in 0..64 * (count + 1) {
        let deadline = exchange.next_deadline();
        if deadline == Instant::NEVER {
            break;
        }
        exchange.tick(deadline);
        seen.drain(&mut exchange, count);
    }
    assert_eq!(exchange.next_deadline(), Instant::NEVER, "it goes on for ever");
    assert_eq!(seen.ends, 1);
}

#[derive(Default)]
struct Seen {
    groups: u32,
    connected: u32,
    ends: u32,
}

impl Seen {
    fn drain(&mut self, exchange: &mut Exchange, count: usize) {
        let mut sent = 0;
        while let Some(action) = exchange.next_action() {
            match action {
                Action::Send(_, mad) => {
                    sent += 1;
                    assert_eq!(Mad::parse(&mad.emit()).as_ref(), Ok(&*mad));
                }
                Action::MakeGroup(group) => {
                    assert!(group.source.qpn.is_connected() && group.designated_qpn == DESIGNATED);
                    assert_eq!(group.receivers.len(), count);
                    assert!(group.receivers.iter().all(|receiver| receiver.qpn.is_connected()));
                    self.groups += 1;
                }
                Action::Connected => self.connected += 1,
                Action::Finish(_) => self.ends += 1,
            }
        }
        assert!(sent <= 2 * (count + 1), "{sent} messages at once");
        assert!(self.ends <= 1 && self.connected <= self.groups && self.groups <= 1);
    }
}

/// A MAD comes in a datagram, which is read as it was written.
fn receive(exchange: &mut Exchange, now: Instant, from: Ipv6Addr, octets: &[u8; Mad::LEN]) {
    let Ok(mad) = Mad::parse(octets) else { return };
    let flow = Flow { source: from, destination: PROXY, ports: (0xC000, 4791) };
    let payload = flow.emit(&mad, Psn::new(1));
    assert_eq!(payload.len(), PAYLOAD_LEN);
    assert_eq!(flow.parse(&payload).as_ref(), Ok(&mad));
    if let Err(refusal) = exchange.receive(now, from, &mad) {
        assert!(!refusal.name().is_empty());
    }
}

/// A message that a party may send: the client is 0.
fn message(choices: &mut Choices<'_>, from: usize) -> Mad {
    let ids = match from {
        0 => Ids { local: 7, remote: CLIENT_ID },
        server => Ids { local: 0x300 + server as u32, remote: 0x200 + server as u32 - 1 },
    };
    let message = match choices.below(9) {
        0 | 1 if from == 0 => Message::Request(Box::new(request())),
        0 => Message::Request(Box::new(request())),
        1 | 2 => Message::Reply(reply(ids)),
        3 | 4 => Message::ReadyToUse(ids),
        5 => Message::Receipt(Receipt {
            ids,
            message: Answered(choices.octet() & 3),
            service_timeout: choices.octet() & 31,
        }),
        6 => Message::DisconnectRequest(DisconnectRequest { ids, remote_qpn: DESIGNATED }),
        7 => Message::DisconnectReply(ids),
        _ => {
            let mut octets = Mad { transaction_id: 1, message: Message::ReadyToUse(ids) }.emit();
            // A rejection: of a REQ, for no reason.
            octets[17] = 0x12;
            return Mad::parse(&octets).expect("a rejection");
        }
    };
    Mad { transaction_id: u64::from(choices.octet()), message }
}

fn request() -> Request {
    let addresses = ip::IpRequest {
        source_port: 1,
        source: party(1),
        destination: PROXY,
        private_data: [1; ip::IpRequest::PRIVATE],
    };
    Request {
        local_id: 7,
        service_id: ip::service_id(PORT),
        ca_guid: 1,
        local_qpn: Qpn::from_octets([0, 0, 0x11]),
        responder_resources: 0,
        initiator_depth: 0,
        remote_response_timeout: 20,
        transport_service: 0,
        end_to_end_flow_control: false,
        starting_psn: Psn::new(3),
        local_response_timeout: 20,
        retry_count: 7,
        pkey: 0xFFFF,
        path_mtu_code: 3,
        rnr_retry: 7,
        max_retries: 15,
        has_srq: false,
        extended_transport: 0,
        local_lid: 0xFFFF,
        remote_lid: 0xFFFF,
        local_gid: party(1),
        remote_gid: PROXY,
        flow_label: 0,
        rate: 3,
        traffic_class: 0,
        hop_limit: 64,
        service_level: 0,
        subnet_local: false,
        ack_timeout: 19,
        private_data: addresses.emit(),
    }
}

fn reply(ids: Ids) -> Reply {
    Reply {
        ids,
        local_qpn: Qpn::from_octets([0, 0, 0x12]),
        starting_psn: Psn::new(0),
        responder_resources: 0,
        initiator_depth: 0,
        target_ack_delay: 15,
        failover: 0,
        end_to_end_flow_control: false,
        rnr_retry: 7,
        has_srq: false,
        ca_guid: 2,
        private_data: [2; Reply::PRIVATE],
    }
}
