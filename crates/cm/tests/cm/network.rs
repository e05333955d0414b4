//! An exchange with its parties in a network that loses, repeats and reorders messages, in virtual time.

use super::peers::{CLIENT, Peer, TERMS, request, servers};
use srdma_cm::{Action, End, Exchange, Group, Mad, Message};
use srdma_testkit::random::Random;
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Chances in percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) repetition: u64,
    /// Longest delay of a message.
    pub(crate) delay_ns: u64,
}

#[derive(Debug)]
enum Event {
    ToExchange(Ipv6Addr, Mad),
    ToPeer(usize, Mad),
    Ready,
}

/// The parties: the client is 0.
pub(crate) struct Network {
    random: Random,
    faults: Faults,
    pub(crate) now_ns: u64,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    pub(crate) exchange: Exchange,
    pub(crate) peers: Vec<Peer>,
    addresses: Vec<Ipv6Addr>,
    pub(crate) end: Option<End>,
    pub(crate) ends: u32,
    /// Messages that came to the exchange.
    pub(crate) came: Vec<(Ipv6Addr, Mad)>,
    pub(crate) groups: u32,
    /// The last that was made.
    pub(crate) group: Option<Group>,
    pub(crate) connected: u32,
    /// The time that the controller takes.
    pub(crate) controller_ns: u64,
    pub(crate) messages: u64,
}

impl Network {
    pub(crate) fn new(seed: u64, count: usize, faults: Faults) -> Self {
        let servers = servers(count);
        let (client, first) = Peer::client(&request(), 0);
        let peers = std::iter::once(client).chain((0..count).map(|at| Peer::server(at as u32))).collect();
        let addresses = std::iter::once(CLIENT).chain(servers.iter().map(|server| server.address)).collect();
        let mut network = Network {
            random: Random::new(seed),
            faults,
            now_ns: 0,
            events: BTreeMap::new(),
            sequence: 0,
            exchange: Exchange::new(TERMS, &servers).expect("servers"),
            peers,
            addresses,
            end: None,
            ends: 0,
            came: Vec::new(),
            groups: 0,
            group: None,
            connected: 0,
            controller_ns: 3_000_000_000,
            messages: 0,
        };
        network.peer_sends(0, Some(first));
        network
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_ns(self.now_ns)
    }

    fn at(&mut self, time_ns: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((time_ns, self.sequence), event);
    }

    /// A message is on its way: lost, once, or several times.
    fn send(&mut self, event: impl Fn() -> Event) {
        self.messages += 1;
        if self.random.below(100) < self.faults.loss {
            return;
        }
        let copies = if self.random.below(100) < self.faults.repetition { 3 } else { 1 };
        for _ in 0..copies {
            let delay_ns = 1000 + self.random.below(self.faults.delay_ns.max(1));
            self.at(self.now_ns + delay_ns, event());
        }
    }

    pub(crate) fn peer_sends(&mut self, peer: usize, message: Option<Message>) {
        if let Some(message) = message {
            let (from, mad) = (self.addresses[peer], Mad { transaction_id: peer as u64, message });
            self.send(|| Event::ToExchange(from, mad.clone()));
        }
    }

    pub(crate) fn act(&mut self) {
        while let Some(action) = self.exchange.next_action() {
            match action {
                Action::Send(to, mad) => {
                    let peer = self.addresses.iter().position(|address| *address == to).expect("a party");
                    self.send(|| Event::ToPeer(peer, (*mad).clone()));
                }
                Action::MakeGroup(group) => {
                    // Every receiver is there, each with the queue pair that it has answered.
                    assert_eq!(group.receivers.len(), self.peers.len() - 1);
                    for (at, receiver) in group.receivers.iter().enumerate() {
                        assert_eq!(receiver.address, self.addresses[at + 1]);
                        let numbers = (receiver.qpn.get(), receiver.expected_psn.get());
                        assert_eq!(numbers, (self.peers[at + 1].own_qpn, self.peers[at + 1].own_psn));
                    }
                    let source = group.source;
                    assert_eq!((source.address, source.qpn.get()), (CLIENT, self.peers[0].own_qpn));
                    assert_eq!(group.designated_qpn, TERMS.designated_qpn);
                    self.groups += 1;
                    self.group = Some(group);
                    self.at(self.now_ns + self.controller_ns, Event::Ready);
                }
                Action::Connected => {
                    assert!(self.peers[0].is_connected, "the client is connected before the exchange says so");
                    self.connected += 1;
                }
                Action::Finish(end) => {
                    self.end = Some(end);
                    self.ends += 1;
                }
            }
        }
    }

    /// Goes on to the next event, unless that comes after `until_ns`, or there is none.
    pub(crate) fn step(&mut self, until_ns: u64) -> bool {
        let event_ns = self.events.first_key_value().map(|((time, _), _)| *time);
        let peer_ns = self.peers.iter().filter_map(Peer::due_ns).min();
        let deadline = self.exchange.next_deadline();
        let deadline_ns = (deadline != Instant::NEVER).then(|| deadline.as_ns());
        let Some(next_ns) = [event_ns, peer_ns, deadline_ns].into_iter().flatten().min() else { return false };
        if next_ns > until_ns {
            return false;
        }
        self.now_ns = self.now_ns.max(next_ns);
        if event_ns == Some(next_ns) {
            let (_, event) = self.events.pop_first().expect("there is one");
            match event {
                // A message that had no effect is a message that came again.
                Event::ToExchange(from, mad) => {
                    let _ = self.exchange.receive(self.now(), from, &mad);
                    self.came.push((from, mad));
                }
                Event::ToPeer(peer, mad) => {
                    let answer = self.peers[peer].receive(self.now_ns, &mad.message);
                    self.peer_sends(peer, answer);
                }
                Event::Ready => self.exchange.group_ready(self.now()),
            }
        } else {
            for peer in 0..self.peers.len() {
                let message = self.peers[peer].tick(self.now_ns);
                self.peer_sends(peer, message);
            }
            self.exchange.tick(self.now());
        }
        self.act();
        true
    }

    /// Runs until a condition holds; whether it does.
    pub(crate) fn run_until(&mut self, until_ns: u64, condition: impl Fn(&Network) -> bool) -> bool {
        while !condition(self) {
            if !self.step(until_ns) {
                return condition(self);
            }
        }
        true
    }

    /// Runs until nothing is left to happen.
    pub(crate) fn settle(&mut self) {
        let until_ns = self.now_ns + 3_600_000_000_000;
        while self.step(until_ns) {}
    }
}
