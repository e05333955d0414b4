//! The connections of a client and its servers as one.
//!
//! ```text
//!   Waiting ── REQ ──→ Asking ── all REPs ──→ Making ── ready ──→ Connected
//!                        └── the client, a server, the group or the caller ends it ──→ Ending ── all over ──→ Over
//! ```

use crate::action::{Action, End, Group, Party, Receiver, Source};
use crate::client::{self, Client};
use crate::ip::{IpRequest, service_id};
use crate::mad::Mad;
use crate::message::{Answered, Ids, Message, Reject, Reply, Request};
use crate::reason::Reason;
use crate::refusal::Refusal;
use crate::server::{self, Server, TIMES};
use crate::text;
use srdma_wire::{Instant, Psn, Qpn};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

/// The most servers of a client.
pub const MOST_SERVERS: usize = 256;
/// Time for the servers to answer and the group to be made: less than a receipt promises.
const PREPARATION_NS: u64 = 60_000_000_000;
/// Time for a message to be answered, as Linux asks for: 4.3 s.
const RESPONSE_TIMEOUT: u8 = 20;
/// The time for an ACK that the REP announces, 0.13 s, as soft-RoCE does. A client that computes a longer timeout for
/// the path keeps it.
const ACK_DELAY: u8 = 15;
const ANY_RETRIES: u8 = 7;

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Its GID.
    pub address: Ipv6Addr,
    /// The port at which it listens.
    pub port: u16,
    /// Comm. ID of the connection to it: one that no connection had in the last minutes.
    pub id: u32,
}

/// Terms of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The group's Proxy Address.
    pub proxy: Ipv6Addr,
    /// The port at which it answers.
    pub port: u16,
    /// CA GUID of this side: one that no exchange had in the last minutes, since hosts reject what seems to be a
    /// connection that was just closed (D250).
    pub ca_guid: u64,
    /// Comm. ID of the connection to the client.
    pub client_id: u32,
    /// The queue pair of this side, to the client and to each server.
    pub designated_qpn: Qpn,
    /// PSN of the client's first packet. The REQs have it too: of the way back, which nothing takes.
    pub initial_psn: Psn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Asking,
    Making,
    Connected,
    Ending(End),
    Over,
}

/// The connections of one client and its servers.
#[derive(Debug)]
pub struct Exchange {
    terms: Terms,
    phase: Phase,
    client: Client,
    servers: Vec<Server>,
    ports: Vec<u16>,
    source: Option<Source>,
    /// When the preparation is too late.
    late: Instant,
    actions: VecDeque<Action>,
}

impl Exchange {
    /// An exchange with servers of different addresses, from 1 to [`MOST_SERVERS`], of the Proxy Address's IP version.
    pub fn new(terms: Terms, servers: &[ServerAddress]) -> Option<Self> {
        let is_first = |at: usize| servers[..at].iter().all(|other| other.address != servers[at].address);
        let is_of_version = |server: &ServerAddress| is_ipv4(server.address) == is_ipv4(terms.proxy);
        let is_valid = (1..=MOST_SERVERS).contains(&servers.len()) && servers.iter().all(is_of_version);
        (is_valid && (0..servers.len()).all(is_first)).then(|| Exchange {
            terms,
            phase: Phase::Waiting,
            client: Client::new(terms.client_id),
            servers: servers
                .iter()
                .enumerate()
                .map(|(at, server)| Server::new(at, server.address, server.id, terms.ca_guid))
                .collect(),
            ports: servers.iter().map(|server| server.port).collect(),
            source: None,
            late: Instant::NEVER,
            actions: VecDeque::new(),
        })
    }

    /// What is to be done next; to be called until there is nothing more.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Time of the next [`tick`](Self::tick).
    pub fn next_deadline(&self) -> Instant {
        let sides = self.servers.iter().map(Server::due).chain([self.client.due(), self.late]);
        sides.min().unwrap_or(Instant::NEVER)
    }

    /// Addresses of the servers.
    pub fn servers(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.servers.iter().map(Server::address)
    }

    /// Whether a client has connected, or is about to.
    pub fn has_begun(&self) -> bool {
        self.phase != Phase::Waiting
    }

    /// Takes a message that came to the Proxy Address.
    ///
    /// # Errors
    ///
    /// Why it had no effect.
    pub fn receive(&mut self, now: Instant, from: Ipv6Addr, mad: &Mad) -> Result<(), Refusal> {
        let mut out = Vec::new();
        let ids = match &mad.message {
            Message::Request(request) => {
                let result = self.requested(now, from, mad.transaction_id, request, &mut out);
                self.actions.extend(out);
                return result;
            }
            Message::Receipt(receipt) => receipt.ids,
            Message::Reject(reject) => reject.ids,
            Message::Reply(reply) => reply.ids,
            Message::DisconnectRequest(request) => request.ids,
            Message::ReadyToUse(ids) | Message::DisconnectReply(ids) => *ids,
        };
        if self.client.is_meant(from, ids, matches!(mad.message, Message::Reject(_))) {
            let happened = self.client.receive(now, mad, &mut out);
            self.actions.extend(out);
            self.client_did(now, happened?);
            return Ok(());
        }
        let server = self.servers.iter_mut().find(|server| server.is_meant(from, ids));
        let happened = server.ok_or(Refusal::UnknownConnection)?.receive(now, mad, &mut out);
        self.actions.extend(out);
        self.server_did(now, happened?);
        Ok(())
    }

    fn requested(
        &mut self,
        now: Instant,
        from: Ipv6Addr,
        transaction_id: u64,
        request: &Request,
        out: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let checked = self.check(from, request).and_then(|(source, addresses)| {
            let happened = self.client.requested(from, transaction_id, request, out)?;
            Ok((source, addresses, happened))
        });
        match checked {
            Ok((source, addresses, client::Happened::Requested)) => {
                self.source = Some(source);
                self.phase = Phase::Asking;
                self.late = now.after_ns(PREPARATION_NS);
                self.ask(now, request, &addresses, out);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(refusal) => {
                if let Some(reason) = refusal.rejection() {
                    let ids = Ids { local: 0, remote: request.local_id };
                    let reject = Reject::new(ids, Answered::REQUEST, reason, "");
                    let mad = Mad { transaction_id, message: Message::Reject(reject) };
                    out.push(Action::Send(from, Box::new(mad)));
                }
                Err(refusal)
            }
        }
    }

    /// The source that a REQ describes.
    fn check(&self, from: Ipv6Addr, request: &Request) -> Result<(Source, IpRequest), Refusal> {
        let Terms { proxy, port, .. } = self.terms;
        if request.service_id != service_id(port) {
            return Err(Refusal::Service);
        }
        if request.transport_service != 0 || request.extended_transport != 0 {
            return Err(Refusal::Transport);
        }
        let is_source = is_host(from)
            && is_ipv4(from) == is_ipv4(proxy)
            && from != proxy
            && self.servers.iter().all(|server| server.address() != from);
        if !is_source || request.local_gid != from || request.remote_gid != proxy {
            return Err(Refusal::Gid);
        }
        let addresses = IpRequest::parse(&request.private_data).ok_or(Refusal::NoIpAddresses)?;
        if addresses.source != from || addresses.destination != proxy {
            return Err(Refusal::NoIpAddresses);
        }
        let source = Source {
            address: from,
            qpn: request.local_qpn,
            path_mtu: request.path_mtu().ok_or(Refusal::PathMtu)?,
            ack_timeout: request.ack_timeout,
            retries: request.retry_count,
        };
        Ok((source, addresses))
    }

    /// Asks all servers.
    fn ask(&mut self, now: Instant, asked: &Request, addresses: &IpRequest, out: &mut Vec<Action>) {
        let Terms { proxy, ca_guid, designated_qpn, initial_psn, .. } = self.terms;
        for (server, port) in self.servers.iter_mut().zip(&self.ports) {
            let addresses = IpRequest { source: proxy, destination: server.address(), ..addresses.clone() };
            let request = Request {
                local_id: server.id(),
                service_id: service_id(*port),
                ca_guid,
                local_qpn: designated_qpn,
                responder_resources: 0,
                initiator_depth: 0,
                remote_response_timeout: RESPONSE_TIMEOUT,
                starting_psn: initial_psn,
                local_response_timeout: RESPONSE_TIMEOUT,
                max_retries: TIMES,
                has_srq: false,
                local_lid: 0xFFFF,
                remote_lid: 0xFFFF,
                local_gid: proxy,
                remote_gid: server.address(),
                subnet_local: false,
                private_data: addresses.emit(),
                ..asked.clone()
            };
            server.request(now, request, out);
        }
    }

    /// The group has its receivers: the client may send. It gets the private data that all servers have sent (D252).
    pub fn group_ready(&mut self, now: Instant) {
        let (Phase::Making, Some(request)) = (&self.phase, self.client.request()) else { return };
        let ids = Ids { local: self.terms.client_id, remote: request.local_id };
        let mut replies = self.servers.iter().filter_map(Server::reply).map(|reply| reply.private_data);
        let first = replies.next().unwrap_or([0; Reply::PRIVATE]);
        let private_data = if replies.all(|other| other == first) { first } else { [0; Reply::PRIVATE] };
        let reply = Reply {
            ids,
            local_qpn: self.terms.designated_qpn,
            starting_psn: self.terms.initial_psn,
            responder_resources: 0,
            initiator_depth: 0,
            target_ack_delay: ACK_DELAY,
            failover: 0,
            end_to_end_flow_control: false,
            rnr_retry: ANY_RETRIES,
            has_srq: false,
            ca_guid: self.terms.ca_guid,
            private_data,
        };
        let mut out = Vec::new();
        self.client.reply(now, reply, &mut out);
        self.actions.extend(out);
        self.phase = Phase::Connected;
        self.late = Instant::NEVER;
    }

    /// There is no group, for a reason that the client is told.
    pub fn group_failed(&mut self, now: Instant, reason: &str) {
        self.finish(now, End::NoGroup, Reason::NO_RESOURCES, reason);
    }

    /// Ends the exchange.
    pub fn close(&mut self, now: Instant) {
        self.finish(now, End::Closed, Reason::CONSUMER, "the group was closed");
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant) {
        let mut out = Vec::new();
        let happened = self.client.tick(now, &mut out);
        let of_servers: Vec<_> = self.servers.iter_mut().map(|server| server.tick(now, &mut out)).collect();
        self.actions.extend(out);
        self.client_did(now, happened);
        of_servers.into_iter().for_each(|happened| self.server_did(now, happened));
        if self.late <= now {
            self.finish(now, End::Late, Reason::CONSUMER, "the receivers were not ready in time");
        }
    }

    fn client_did(&mut self, now: Instant, happened: client::Happened) {
        match happened {
            client::Happened::Nothing | client::Happened::Requested => self.over_if_all(),
            client::Happened::Connected => self.actions.push_back(Action::Connected),
            client::Happened::Ended(end) => self.finish(now, end, Reason::CONSUMER, ""),
        }
    }

    fn server_did(&mut self, now: Instant, happened: server::Happened) {
        match happened {
            server::Happened::Nothing => self.over_if_all(),
            server::Happened::Replied => {
                if self.phase == Phase::Asking && self.servers.iter().all(|server| server.reply().is_some()) {
                    self.make();
                }
            }
            server::Happened::Ended(end) => {
                let text = match &end {
                    End::Left(Party::Server(at)) => {
                        format!("{}: has disconnected", self.servers[*at].address().to_canonical())
                    }
                    End::Silent(Party::Server(at)) => {
                        format!("{}: no answer", self.servers[*at].address().to_canonical())
                    }
                    End::Rejected(Party::Server(at), reason, _) => {
                        format!("{}: {reason}", self.servers[*at].address().to_canonical())
                    }
                    End::Left(_)
                    | End::Silent(_)
                    | End::Rejected(..)
                    | End::Disconnected
                    | End::Late
                    | End::NoGroup
                    | End::Closed => String::new(),
                };
                self.finish(now, end, Reason::CONSUMER, &text);
            }
        }
    }

    /// All servers have answered: their queue pairs become a group. The starting PSN of a message is that of its
    /// receiver's first packet, so that the REP's is what the server expects (D253).
    fn make(&mut self) {
        let Some(source) = self.source else { return };
        let receiver = |server: &Server| {
            let reply = server.reply()?;
            let (address, qpn) = (server.address(), reply.local_qpn);
            Some(Receiver { address, qpn, expected_psn: reply.starting_psn })
        };
        let receivers = self.servers.iter().filter_map(receiver).collect();
        self.phase = Phase::Making;
        self.actions.push_back(Action::MakeGroup(Group {
            source,
            designated_qpn: self.terms.designated_qpn,
            initial_psn: self.terms.initial_psn,
            receivers,
        }));
    }

    /// Begins the end of all sides.
    fn finish(&mut self, now: Instant, end: End, reason: Reason, text: &str) {
        if matches!(self.phase, Phase::Ending(_) | Phase::Over) {
            return self.over_if_all();
        }
        self.phase = Phase::Ending(end);
        self.late = Instant::NEVER;
        let mut out = Vec::new();
        self.client.reject(reason, text, &mut out);
        self.client.disconnect(now, &mut out);
        self.servers.iter_mut().for_each(|server| server.disconnect(now, &mut out));
        self.actions.extend(out);
        self.over_if_all();
    }

    fn over_if_all(&mut self) {
        if let Phase::Ending(end) = &self.phase
            && self.client.is_over()
            && self.servers.iter().all(Server::is_over)
        {
            self.actions.push_back(Action::Finish(end.clone()));
            self.phase = Phase::Over;
        }
    }
}

/// Whether packets of an address, of IPv4 an IPv4-mapped one, are IPv4.
fn is_ipv4(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

/// Whether a host that others reach by way of the network can have an address.
pub fn is_host(address: Ipv6Addr) -> bool {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !address.is_unicast_link_local()
        }
        IpAddr::V4(address) => {
            address.octets()[0] != 0
                && !address.is_loopback()
                && !address.is_multicast()
                && !address.is_broadcast()
                && !address.is_link_local()
        }
    }
}

impl Reject {
    /// A rejection without further information.
    pub(crate) fn new(ids: Ids, message: Answered, reason: Reason, private_text: &str) -> Self {
        Reject {
            ids,
            message,
            reason,
            information_length: 0,
            information: [0; 72],
            private_data: text::to(private_text),
        }
    }
}
