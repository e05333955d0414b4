//! Random lists, losses and silences against a slow model: sets and plain numbers.

use crate::common::Bench;
use crate::common::group::*;
use crate::learning::bench::*;
use srdma_dataplane::Learning;
use srdma_frame::Element;
use srdma_testkit::multicast::Receiver;
use srdma_testkit::random::Random;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// PSNs begin here, so that they wrap soon; the model counts on.
const FIRST: u64 = 0xFF_FFE8;

fn psn(number: u64) -> u32 {
    (number & 0xFF_FFFF) as u32
}

/// A queue pair that some list has named: a Reliable Connection responder.
#[derive(Clone, Copy)]
struct Host {
    expects: u64,
}

impl Host {
    /// Takes a packet; its answer is syndrome and PSN.
    fn take(&mut self, number: u64) -> (u8, u64) {
        self.expects += u64::from(number == self.expects);
        if number < self.expects { (0x1F, self.expects - 1) } else { (0x60, self.expects) }
    }
}

/// The expected state of a group at the edge.
struct Union {
    designated_qpn: u32,
    /// The highest number that went down.
    highest: u64,
    /// Each receiver, and the highest expected PSN received from it.
    members: Vec<(Receiver, Option<u64>)>,
    active_ns: u64,
}

struct World {
    bench: Bench,
    random: Random,
    settings: Learning,
    proxies: [Ipv6Addr; 3],
    unions: BTreeMap<Ipv6Addr, Union>,
    hosts: BTreeMap<(Ipv6Addr, Ipv6Addr), Host>,
    /// The source's next number, for each group.
    next: BTreeMap<Ipv6Addr, u64>,
    upstream: u64,
    refused: u64,
    ended: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let max_groups = random.between(1, 3) as u16;
        let max_receivers = random.between(2, 6) as u16;
        let settings = Learning { max_groups, max_receivers, ..learning() };
        let proxies = ["2001:db8:ff::1", "2001:db8:ff::2", "2001:db8:ff::3"].map(address);
        World {
            bench: edge_that_learns(false, settings.clone()),
            random,
            settings,
            proxies,
            unions: BTreeMap::new(),
            hosts: BTreeMap::new(),
            next: proxies.iter().map(|proxy| (*proxy, FIRST)).collect(),
            upstream: 0,
            refused: 0,
            ended: 0,
        }
    }

    fn step(&mut self) {
        self.pass_time();
        let proxy = self.random.one_of(&self.proxies);
        let next = self.next[&proxy];
        // The source continues, or goes back.
        let number = if self.random.happens(600) { next } else { next - self.random.below(6).min(next - FIRST) };
        self.next.insert(proxy, next.max(number + 1));
        let count = self.random.between(1, 4);
        let mut list: Vec<Receiver> = Vec::new();
        for _ in 0..count {
            let host = self.random.between(1, 6) as u16;
            if list.iter().all(|known| known.address != of_host(host).address) {
                let qpn = if self.random.happens(10) { 0x900 } else { 0x100 + u32::from(host) };
                list.push(receiver(host, qpn, None));
            }
        }
        let designated_qpn = if self.random.happens(20) { DESIGNATED + 1 } else { DESIGNATED };
        let inner = send_to(proxy, designated_qpn, psn(number));
        let sent = self.bench.send(0, &listed_to(proxy, &inner, &list));
        let (up, down): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(port, _)| *port == 0);
        if self.learn(proxy, designated_qpn, number, &list) {
            assert_eq!(down, copies(&inner, &list));
        } else {
            assert_eq!(down, []);
            self.refused += 1;
        }
        self.check_said(&up);
        if !down.is_empty() {
            self.deliver(proxy, number, &list);
        }
        self.check_unions();
    }

    /// Now and then long enough for groups to end.
    fn pass_time(&mut self) {
        let step = if self.random.happens(30) { IDLE_NS } else { self.random.between(1, IDLE_NS / 8) };
        self.bench.now += std::time::Duration::from_nanos(step);
        let now = self.bench.now;
        self.bench.node.tick(now, &mut self.bench.pool);
        let sent = self.bench.drain();
        self.check_said(&sent);
        let before = self.unions.len();
        self.unions.retain(|_, union| union.active_ns + IDLE_NS > now.as_ns());
        self.ended += (before - self.unions.len()) as u64;
    }

    /// Whether the list becomes part of its group's union.
    fn learn(&mut self, proxy: Ipv6Addr, designated_qpn: u32, number: u64, list: &[Receiver]) -> bool {
        let (groups, now) = (self.unions.len(), self.bench.now.as_ns());
        let fresh = Union { designated_qpn, highest: number, members: Vec::new(), active_ns: now };
        let union = self.unions.get(&proxy).unwrap_or(&fresh);
        let of = |address| union.members.iter().find(|(known, _)| known.address == address);
        let added: Vec<Receiver> = list.iter().filter(|receiver| of(receiver.address).is_none()).copied().collect();
        let agrees =
            list.iter().all(|receiver| of(receiver.address).is_none_or(|(known, _)| known.qpn == receiver.qpn));
        let fits = union.members.len() + added.len() <= usize::from(self.settings.max_receivers)
            && (self.unions.contains_key(&proxy) || groups < usize::from(self.settings.max_groups));
        if !agrees || !fits || union.designated_qpn != designated_qpn {
            return false;
        }
        let union = self.unions.entry(proxy).or_insert(fresh);
        union.active_ns = now;
        union.highest = union.highest.max(number);
        union.members.extend(added.into_iter().map(|receiver| (receiver, None)));
        true
    }

    /// Copies and answers get lost.
    fn deliver(&mut self, proxy: Ipv6Addr, number: u64, list: &[Receiver]) {
        for receiver in list {
            let host = self.hosts.entry((proxy, receiver.address)).or_insert(Host { expects: FIRST });
            if self.random.happens(150) {
                continue;
            }
            // A host that is far behind catches up, as if a source retransmitted to it alone.
            if self.random.happens(400) {
                host.expects = host.expects.max(number);
            }
            let (syndrome, answered) = host.take(number);
            if self.random.happens(150) {
                continue;
            }
            let union = self.unions.get_mut(&proxy).expect("it was learnt");
            let (_, heard) = union.members.iter_mut().find(|(known, _)| known.address == receiver.address).unwrap();
            // R1: no response concerns data that did not pass here.
            let expects = (answered + u64::from(syndrome == 0x1F)).min(union.highest + 1);
            *heard = Some(heard.map_or(expects, |before| before.max(expects)));
            let packet = response_to(proxy, receiver.address, syndrome, psn(answered));
            let sent = self.bench.send(1, &with_qpn(packet, union.designated_qpn));
            self.check_said(&sent);
        }
    }

    /// D17, R6, MT-5.3.1-1: a response sent upstream holds for every receiver of the union, and each of them has
    /// responded.
    fn check_said(&mut self, sent: &[(u16, Vec<u8>)]) {
        for (port, packet) in sent {
            assert_eq!(*port, 0);
            let mut packet = packet.clone();
            packet[53..56].copy_from_slice(&DESIGNATED.to_be_bytes()[1..]);
            let (proxy, (syndrome, upstream)) = upstream_of(&with_qpn(packet, DESIGNATED));
            let union = &self.unions[&proxy];
            let heard = union.members.iter().map(|(_, heard)| heard.expect("every member is known"));
            let least = heard.min().expect("a group has receivers");
            let confirmed = least - u64::from(syndrome == 0x1F);
            assert_eq!(upstream, psn(confirmed), "the minimum, and nothing else");
            for (receiver, _) in &union.members {
                assert!(self.hosts[&(proxy, receiver.address)].expects >= least, "{} lacks it", receiver.address);
            }
            self.upstream += 1;
        }
    }

    /// The node's unions equal the model's.
    fn check_unions(&self) {
        let node = &self.bench.node;
        assert_eq!(node.groups().count(), self.unions.len());
        for id in node.groups() {
            let (entry, acks) = (node.group_entry(id).unwrap(), node.acknowledgements(id).unwrap());
            let members = &self.unions[&entry.proxy].members;
            let known: Vec<_> = entry.receivers.iter().map(|known| (known.address, known.qpn.get())).collect();
            assert_eq!(known, members.iter().map(|(known, _)| (known.address, known.qpn)).collect::<Vec<_>>());
            let unknown = members.iter().filter(|(_, heard)| heard.is_none()).count();
            assert_eq!(usize::from(acks.unknown_branches()), unknown);
            let least = members.iter().filter_map(|(_, heard)| *heard).min();
            assert_eq!(acks.minimum_psn().map(|psn| psn.get()), least.map(psn));
        }
    }
}

fn with_qpn(mut packet: Vec<u8>, qpn: u32) -> Vec<u8> {
    packet[53..56].copy_from_slice(&qpn.to_be_bytes()[1..]);
    let end = packet.len() - 4;
    let icrc = srdma_testkit::checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

/// D17, R2, R6: lists that grow, shrink, alternate and contradict each other, losses, silence, several groups.
#[test]
fn the_union_is_that_of_a_slow_model() {
    let (mut upstream, mut refused, mut ended) = (0, 0, 0);
    for seed in 0..srdma_testkit::seeds::count(300) {
        let mut world = World::new(seed);
        for _ in 0..150 {
            world.step();
        }
        upstream += world.upstream;
        refused += world.refused;
        ended += world.ended;
    }
    println!("upstream {upstream}, refused {refused}, ended {ended}");
    assert!(
        upstream > srdma_testkit::seeds::count(300)
            && refused > srdma_testkit::seeds::count(300)
            && ended > srdma_testkit::seeds::count(300),
        "upstream {upstream}, refused {refused}, ended {ended}"
    );
}

/// However many lists come, and from whomever, nothing grows beyond the bounds.
#[test]
fn a_flood_of_lists_is_bounded_by_its_limits() {
    let mut world = World::new(1);
    world.bench = edge_that_learns(false, learning());
    for number in 0..5_000_u32 {
        let proxy = Ipv6Addr::from(u128::from(address("2001:db8:ff::")) + u128::from(world.random.below(40)));
        let host = world.random.between(1, 500) as u16;
        let packet = listed_to(proxy, &send_to(proxy, DESIGNATED, number), &[of_host(host), of_host(host + 1)]);
        world.bench.send(0, &packet);
    }
    let node = &world.bench.node;
    assert_eq!(node.groups().count(), 2);
    assert!(node.groups().all(|id| node.group_entry(id).unwrap().branches.len() <= 4));
}
