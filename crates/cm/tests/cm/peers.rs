//! Parties as they are without the exchange: a client that asks and a server that listens, each with the timers of its
//! own side. They share nothing with the exchange but the format.

use srdma_cm::{Action, Answered, DisconnectRequest, Ids, Message, Receipt, Reply, Request, ServerAddress, Terms, ip};
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;

pub(crate) const PROXY: Ipv6Addr = address(0xcc, 1);
pub(crate) const CLIENT: Ipv6Addr = address(0xaa, 1);
pub(crate) const PORT: u16 = 7471;
pub(crate) const CLIENT_ID: u32 = 0x1111_1111;
pub(crate) const TERMS: Terms = Terms {
    proxy: PROXY,
    port: PORT,
    ca_guid: 0x0123_4567_89ab_cdef,
    client_id: CLIENT_ID,
    designated_qpn: Qpn::from_octets([0xd0, 0, 0]),
    initial_psn: Psn::new(0xff_fff0),
};

pub(crate) const fn address(net: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host)
}

pub(crate) fn qpn(number: u32) -> Qpn {
    Qpn::new(number).expect("24 bits")
}

pub(crate) fn servers(count: usize) -> Vec<ServerAddress> {
    let server = |at: usize| ServerAddress {
        address: address(0xbb, 1 + at as u16),
        port: PORT + at as u16,
        id: 0x2000_0000 + at as u32,
    };
    (0..count).map(server).collect()
}

/// Words for an action.
pub(crate) fn word(action: &Action) -> String {
    match action {
        Action::Send(to, mad) => {
            let name = match &mad.message {
                Message::Request(_) => "REQ",
                Message::Receipt(_) => "MRA",
                Message::Reject(_) => "REJ",
                Message::Reply(_) => "REP",
                Message::ReadyToUse(_) => "RTU",
                Message::DisconnectRequest(_) => "DREQ",
                Message::DisconnectReply(_) => "DREP",
            };
            let to = if *to == CLIENT { "c".to_owned() } else { format!("s{}", to.segments()[7]) };
            format!("{name}>{to}")
        }
        Action::MakeGroup(group) => format!("make{}", group.receivers.len()),
        Action::Connected => "connected".to_owned(),
        Action::Finish(end) => format!("finish:{end:?}").replace(' ', ""),
    }
}

/// The REQ of the client, as Linux makes it.
pub(crate) fn request() -> Request {
    let Message::Request(request) = super::golden::recorded()[0].mad().message else { panic!("a request") };
    let addresses = ip::IpRequest::parse(&request.private_data).expect("addresses");
    let addresses = ip::IpRequest { source: CLIENT, destination: PROXY, ..addresses };
    Request {
        local_id: 7,
        local_qpn: qpn(0x77),
        starting_psn: Psn::new(0x10),
        local_gid: CLIENT,
        remote_gid: PROXY,
        private_data: addresses.emit(),
        ..*request
    }
}

/// The REP of a server to a REQ.
pub(crate) fn reply(request: &Request, local_id: u32, number: u32) -> Reply {
    let mut private_data = [0; Reply::PRIVATE];
    private_data[..5].copy_from_slice(b"ready");
    Reply {
        ids: Ids { local: local_id, remote: request.local_id },
        local_qpn: qpn(number),
        starting_psn: Psn::new(99),
        responder_resources: 0,
        initiator_depth: 0,
        target_ack_delay: 15,
        failover: 0,
        end_to_end_flow_control: false,
        rnr_retry: 7,
        has_srq: false,
        ca_guid: 5,
        private_data,
    }
}

/// Seconds after which a party sends again, and how often.
const AGAIN_NS: u64 = 4_000_000_000;
const TIMES: u32 = 15;

/// A message that waits for its answer.
#[derive(Clone, Debug)]
struct Pending {
    message: Message,
    due_ns: u64,
    left: u32,
}

impl Pending {
    fn new(message: Message, now_ns: u64) -> Self {
        Pending { message, due_ns: now_ns + AGAIN_NS, left: TIMES }
    }
}

/// A client or a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    pending: Option<Pending>,
    /// What it answers to the same message.
    answer: Option<Message>,
    pub(crate) is_connected: bool,
    pub(crate) has_ended: bool,
    /// It has given up, or was rejected.
    pub(crate) has_failed: bool,
    own_id: u32,
    their_id: u32,
    their_qpn: Option<Qpn>,
    /// Of a server: the QPN of its queue pair, and what it was asked.
    pub(crate) own_qpn: u32,
    /// Of a server: the PSN that it answers. Of a client: the PSN that it was told.
    pub(crate) own_psn: u32,
    pub(crate) told_psn: Option<Psn>,
    /// Of a server: what the first octet of its private data differs by. Of a client: the reply that it has got.
    pub(crate) private_octet: u8,
    pub(crate) told: Option<Reply>,
    pub(crate) asked: Option<Request>,
}

impl Peer {
    pub(crate) fn client(request: &Request, now_ns: u64) -> (Self, Message) {
        let message = Message::Request(Box::new(request.clone()));
        let pending = Some(Pending::new(message.clone(), now_ns));
        (Peer { pending, own_id: request.local_id, own_qpn: 0x77, ..Peer::default() }, message)
    }

    pub(crate) fn server(number: u32) -> Self {
        Peer { own_id: 0x9000_0000 + number, own_qpn: 0x100 + number, ..Peer::default() }
    }

    fn ids(&self) -> Ids {
        Ids { local: self.own_id, remote: self.their_id }
    }

    /// Takes a message; gives what it sends.
    pub(crate) fn receive(&mut self, now_ns: u64, message: &Message) -> Option<Message> {
        match message {
            Message::Request(request) => {
                if self.has_failed {
                    return None;
                }
                if self.has_ended {
                    return None;
                }
                if let Some(asked) = &self.asked {
                    assert_eq!(**request, *asked, "a repeated request is the same");
                    return if self.is_connected { None } else { self.answer.clone() };
                }
                self.asked = Some((**request).clone());
                self.their_id = request.local_id;
                self.their_qpn = Some(request.local_qpn);
                let starting_psn = Psn::new(self.own_psn);
                let mut reply = Reply { starting_psn, ..reply(request, self.own_id, self.own_qpn) };
                reply.private_data[0] ^= self.private_octet;
                let reply = Message::Reply(reply);
                self.answer = Some(reply.clone());
                self.pending = Some(Pending::new(reply.clone(), now_ns));
                Some(reply)
            }
            Message::Receipt(receipt) => {
                if let Some(pending) = &mut self.pending {
                    pending.due_ns = now_ns + (4096 << receipt.service_timeout);
                }
                None
            }
            Message::Reply(reply) => {
                if self.has_ended || self.has_failed {
                    return None;
                }
                let rtu = Message::ReadyToUse(reply.ids.swapped());
                if !self.is_connected {
                    self.is_connected = true;
                    self.pending = None;
                    self.their_id = reply.ids.local;
                    self.their_qpn = Some(reply.local_qpn);
                    self.told_psn = Some(reply.starting_psn);
                    self.told = Some(reply.clone());
                }
                Some(rtu)
            }
            Message::ReadyToUse(_) => {
                if self.asked.is_some() && !self.has_ended {
                    self.is_connected = true;
                    self.pending = None;
                }
                None
            }
            Message::Reject(_) => {
                self.has_failed = true;
                self.pending = None;
                None
            }
            Message::DisconnectRequest(request) => {
                assert_eq!(request.remote_qpn.get(), self.own_qpn);
                self.pending = None;
                self.has_ended = true;
                Some(Message::DisconnectReply(request.ids.swapped()))
            }
            Message::DisconnectReply(_) => {
                self.pending = None;
                self.has_ended = true;
                None
            }
        }
    }

    /// Ends the connection.
    pub(crate) fn disconnect(&mut self, now_ns: u64) -> Option<Message> {
        let remote_qpn = self.their_qpn?;
        let message = Message::DisconnectRequest(DisconnectRequest { ids: self.ids(), remote_qpn });
        self.pending = Some(Pending::new(message.clone(), now_ns));
        Some(message)
    }

    /// A receipt for the REP that it has got.
    pub(crate) fn receipt(&self) -> Message {
        Message::Receipt(Receipt { ids: self.ids(), message: Answered::REPLY, service_timeout: 18 })
    }

    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.pending.as_ref().map(|pending| pending.due_ns)
    }

    /// Time passes.
    pub(crate) fn tick(&mut self, now_ns: u64) -> Option<Message> {
        let pending = self.pending.as_mut().filter(|pending| pending.due_ns <= now_ns)?;
        if pending.left == 0 {
            let is_disconnecting = matches!(pending.message, Message::DisconnectRequest(_));
            self.pending = None;
            if is_disconnecting {
                self.has_ended = true;
            } else {
                self.has_failed = true;
            }
            return None;
        }
        pending.left -= 1;
        pending.due_ns = now_ns + AGAIN_NS;
        Some(pending.message.clone())
    }
}
