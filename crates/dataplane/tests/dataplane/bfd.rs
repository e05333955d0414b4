//! BFD sessions of a node, against the sessions of its peers, in virtual time (D109).

use crate::common::{Bench, address, ipv6, neighbour, next_hop, prefix};
use srdma_bfd::{Config, Event, Hops, Output, Peer, Refusal, Sessions, State, udp};
use srdma_dataplane::{
    BackupRoute, BfdPeer, BfdSession, Command, ConfigError, DropReason, Flavors, MAX_BFD_SESSIONS, RouteAction,
    SidBehavior, TableId,
};
use srdma_frame::{Element, PortId};
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_MS;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

const OWN: &str = "fe80::ff";
const LOOPBACK: &str = "2001:db8:ff:1::1";
const BEHIND: &str = "2001:db8:ff:9::1";

fn peer_at(port: u16) -> BfdPeer {
    BfdPeer { port: Some(PortId(port)), address: neighbour(port) }
}

fn session(port: u16) -> BfdSession {
    BfdSession { peer: peer_at(port), local: address(OWN), config: Config::default(), is_enabled: true }
}

/// A node, and a system at each of its ports that is reachable.
struct World {
    bench: Bench,
    peers: Vec<Sessions>,
    is_silent: Vec<bool>,
    events: Vec<(BfdPeer, Event)>,
    /// When the node has received the last packet of each peer.
    heard: Vec<Instant>,
}

impl World {
    fn new(ports: u16) -> Self {
        let mut bench = Bench::with(LOOPBACK, ports, |config| {
            config.ports.iter_mut().for_each(|port| port.addresses = vec![address(OWN)]);
            config.secret_seed = 7;
        });
        bench.route("2001:db8:ff:9::/64", 0);
        let peer = |port: u16| {
            let mut sessions = Sessions::new(2, port.into());
            let ends = Peer { hops: Hops::Single { interface: 0 }, remote: address(OWN), local: neighbour(port) };
            sessions.add(ends, Config::default(), Instant::ZERO).unwrap();
            sessions
        };
        let peers = (0..ports).map(peer).collect();
        let silent = vec![false; ports.into()];
        World { bench, peers, is_silent: silent, events: Vec::new(), heard: vec![Instant::ZERO; ports.into()] }
    }

    fn sessions(mut self, ports: u16) -> Self {
        (0..ports).for_each(|port| self.bench.apply(Command::SetBfdSession(Box::new(session(port)))));
        self
    }

    /// Lets time pass, a millisecond a step.
    fn run_ms(&mut self, ms: u64) {
        for _ in 0..ms {
            let now = self.bench.now.after_ns(NS_PER_MS);
            self.bench.now = now;
            if self.bench.node.next_deadline().is_some_and(|at| at <= now) {
                self.bench.node.tick(now, &mut self.bench.pool);
            }
            let mut sent = self.bench.drain();
            for port in 0..self.peers.len() as u16 {
                for packet in self.due(port) {
                    self.heard[usize::from(port)] = now;
                    sent.extend(self.bench.send(port, &packet));
                }
            }
            for (port, packet) in sent {
                if !self.is_silent[usize::from(port)] {
                    let taken = self.peers[usize::from(port)].receive_packet(0, &packet, now);
                    assert!(matches!(taken, Ok(_) | Err(Refusal::AdministrativelyDown)), "{taken:?}");
                }
            }
            self.events.extend(self.bench.node.take_bfd_events());
        }
    }

    /// The packets that a peer sends now.
    fn due(&mut self, port: u16) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        while let Some(output) = self.peers[usize::from(port)].poll(self.bench.now) {
            if let Output::Packet { peer, source_port, control } = output
                && !self.is_silent[usize::from(port)]
            {
                packets.push(udp::emit(&peer, source_port, &control).to_vec());
            }
        }
        packets
    }

    fn state(&self, peer: BfdPeer) -> State {
        self.bench.node.bfd_reports().find(|report| report.peer == peer).unwrap().session.state()
    }

    /// The port that each of some flows leaves by.
    fn flows(&mut self) -> Vec<u16> {
        let flow = |world: &mut World, flow: u16| {
            let payload = [&flow.to_be_bytes()[..], &[0x12, 0xB7, 0, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
            let packet = ipv6("2001:db8:aa::1", "2001:db8:bb::1", 0, 17, &payload);
            let [(port, _)] = world.bench.send(0, &packet)[..] else { panic!("one packet") };
            port
        };
        (0..64).map(|number| flow(self, number)).collect()
    }

    fn drops(&self, port: u16, reason: DropReason) -> u64 {
        self.bench.node.port_counters(PortId(port)).unwrap().drops.get(reason)
    }
}

fn equal_paths(world: &mut World, ports: u16) {
    let action = RouteAction::Via((0..ports).map(next_hop).collect());
    world.bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:bb::/64"), action });
}

#[test]
fn a_silent_neighbour_is_detected_and_avoided() {
    let mut world = World::new(3).sessions(3);
    equal_paths(&mut world, 3);
    world.run_ms(3_000);
    assert_eq!(world.events, [0, 1, 2].map(|port| (peer_at(port), Event::Up)));
    let before = world.flows();
    assert_eq!(before.iter().collect::<BTreeSet<_>>().len(), 3);

    world.events.clear();
    world.is_silent[1] = true;
    let heard = world.heard[1];
    world.run_ms(149 - world.bench.now.since(heard).as_millis() as u64);
    assert_eq!(world.events, []);
    world.run_ms(1);
    let [(peer, Event::Down { diagnostic, is_administrative: false })] = world.events[..] else {
        panic!("{:?}", world.events)
    };
    assert_eq!((peer, diagnostic.name()), (peer_at(1), "detection_time_expired"));
    let after = world.flows();
    for (before, after) in before.iter().zip(&after) {
        assert!(if *before == 1 { *after != 1 } else { after == before }, "flows of others stay: {before} {after}");
    }
    // The flows that moved are divided among the others.
    let moved = before.iter().zip(&after).filter(|(before, _)| **before == 1).map(|(_, after)| *after);
    assert_eq!(moved.collect::<BTreeSet<_>>(), [0, 2].into());

    world.is_silent[1] = false;
    world.run_ms(3_000);
    assert_eq!((world.state(peer_at(1)), world.flows()), (State::Up, before));
    let downs: Vec<u64> = world.bench.node.bfd_reports().map(|report| report.downs).collect();
    assert_eq!(downs, [0, 1, 0]);
}

/// Headers behind the Ethernet header: hop limit, destination, and the octets behind the IPv6 header.
fn sent(world: &mut World, to: &str, hop_limit: u8) -> Option<(u16, u8, Ipv6Addr, Vec<u8>)> {
    let mut packet = ipv6("2001:db8:aa::1", to, 0, 17, &[0x12, 0xB7, 0x12, 0xB7, 0, 12, 0, 1, 2, 3, 4, 5]);
    packet[7] = hop_limit;
    let (port, packet) = world.bench.send(0, &packet).pop()?;
    let destination: [u8; 16] = packet[24..40].try_into().unwrap();
    Some((port, packet[7], destination.into(), packet[40..].to_vec()))
}

/// D266: while the session with a neighbour is down, the packets to it take its backups; one write does it for all of
/// them.
#[test]
fn backups_take_the_packets_to_a_neighbour_that_is_down() {
    let mut world = World::new(3).sessions(3);
    let [plain, tunnelled, other] = ["2001:db8:b0::/64", "2001:db8:b1::/64", "2001:db8:b2::/64"].map(prefix);
    for prefix in [plain, tunnelled, other] {
        let action = RouteAction::Via(vec![next_hop(1)]);
        world.bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    let segments = vec![address("5f00:0:3:1::"), address("5f00:0:4:e002::")];
    let routes = vec![
        BackupRoute { prefix: plain, next_hop: next_hop(2), segments: Vec::new() },
        BackupRoute { prefix: tunnelled, next_hop: next_hop(2), segments },
    ];
    world.bench.apply(Command::SetBackups { next_hop: next_hop(1), routes: routes.clone() });
    world.run_ms(3_000);
    let destinations = ["2001:db8:b0::1", "2001:db8:b1::1", "2001:db8:b2::1"];
    for to in destinations {
        let (port, hop_limit, destination, _) = sent(&mut world, to, 64).expect("a packet");
        assert_eq!((port, hop_limit, destination), (1, 63, address(to)), "the session is up");
    }
    world.is_silent[1] = true;
    world.run_ms(200);
    let (port, hop_limit, destination, _) = sent(&mut world, destinations[0], 64).expect("a packet");
    assert_eq!((port, hop_limit, destination), (2, 63, address(destinations[0])));
    // H.Encaps.Red: the second segment alone is in the SRH (RFC 8986 section 5.2), 24 octets, before the packet.
    let (port, hop_limit, destination, behind) = sent(&mut world, destinations[1], 9).expect("a packet");
    assert_eq!((port, hop_limit, destination), (2, 8, address("5f00:0:3:1::")), "not more than the packet has");
    assert_eq!(behind[..8], [41, 2, 4, 1, 0, 0, 0, 0]);
    assert_eq!(behind[8..24], address("5f00:0:4:e002::").octets());
    assert_eq!((behind[24 + 7], &behind[24 + 24..24 + 40]), (8, &address(destinations[1]).octets()[..]));
    let (port, ..) = sent(&mut world, destinations[2], 64).expect("a packet");
    assert_eq!(port, 1, "without a backup it is sent as before");
    let reports: Vec<_> = world.bench.node.backup_reports().collect();
    let [(protected, 2, traffic)] = reports[..] else { panic!("{reports:?}") };
    assert_eq!((protected, traffic.frames), (next_hop(1), 2));

    // Others in their place, and none by a neighbour that is down itself.
    world.is_silent[2] = true;
    world.run_ms(200);
    assert_eq!(sent(&mut world, destinations[0], 64).expect("a packet").0, 1);
    let by_0 = BackupRoute { next_hop: next_hop(0), ..routes[0].clone() };
    world.bench.apply(Command::SetBackups { next_hop: next_hop(1), routes: vec![by_0] });
    assert_eq!(sent(&mut world, destinations[0], 64).expect("a packet").0, 0);
    assert_eq!(sent(&mut world, destinations[1], 64).expect("a packet").0, 1);
    world.bench.apply(Command::RemoveBackups(next_hop(1)));
    assert_eq!(sent(&mut world, destinations[0], 64).expect("a packet").0, 1);
    let unknown = world.bench.node.apply(Command::RemoveBackups(next_hop(1)));
    assert_eq!(unknown, Err(ConfigError::UnknownNeighbour { address: neighbour(1), port: 1 }));
    let segments = vec![address("5f00:0:3:1::"); 40];
    let too_long = BackupRoute { prefix: plain, next_hop: next_hop(2), segments };
    let refused = world.bench.node.apply(Command::SetBackups { next_hop: next_hop(1), routes: vec![too_long] });
    assert!(matches!(refused, Err(ConfigError::Encaps { .. })), "{refused:?}");
    // The session is back.
    world.bench.apply(Command::SetBackups { next_hop: next_hop(1), routes });
    world.is_silent = vec![false; 3];
    world.run_ms(3_000);
    assert_eq!(sent(&mut world, destinations[1], 64).expect("a packet").0, 1);
}

/// D285: a port without carrier. Its neighbours are avoided without BFD: flows take the others, and packets the backups,
/// also by adjacencies that come meanwhile; a session that is down at that time is still so when the link is back.
#[test]
fn neighbours_behind_a_link_that_is_down_are_avoided() {
    let mut world = World::new(3).sessions(1);
    equal_paths(&mut world, 3);
    let [early, late] = ["2001:db8:b0::/64", "2001:db8:b1::/64"].map(prefix);
    let by_1 = |prefix| Command::AddRoute { table: TableId(0), prefix, action: RouteAction::Via(vec![next_hop(1)]) };
    let backup = |prefix| BackupRoute { prefix, next_hop: next_hop(2), segments: Vec::new() };
    world.bench.apply(by_1(early));
    let routes = vec![backup(early), backup(late)];
    world.bench.apply(Command::SetBackups { next_hop: next_hop(1), routes });
    world.run_ms(3_000);
    let before = world.flows();
    assert_eq!(before.iter().collect::<BTreeSet<_>>().len(), 3);
    let port_to = |world: &mut World, to: &str| sent(world, to, 64).expect("a packet").0;
    assert_eq!(port_to(&mut world, "2001:db8:b0::1"), 1);

    let link = |port, is_up| Command::SetLink { port: PortId(port), is_up };
    world.bench.apply(link(1, false));
    for (before, after) in before.iter().zip(world.flows()) {
        assert!(if *before == 1 { after != 1 } else { after == *before }, "flows of others stay: {before} {after}");
    }
    world.bench.apply(by_1(late));
    let to_both = |world: &mut World| ["2001:db8:b0::1", "2001:db8:b1::1"].map(|to| port_to(world, to));
    assert_eq!(to_both(&mut world), [2, 2]);
    // The backup's own link is down as well: there is no other path.
    world.bench.apply(link(2, false));
    assert_eq!(to_both(&mut world), [1, 1]);
    assert_eq!(world.flows(), [0; 64]);
    // The session of port 0 goes down, and its link goes down and comes up.
    world.bench.apply(link(1, true));
    world.bench.apply(link(2, true));
    assert_eq!((world.flows(), to_both(&mut world)), (before.clone(), [1, 1]));
    world.is_silent[0] = true;
    world.run_ms(200);
    for is_up in [false, true] {
        world.bench.apply(link(0, is_up));
        assert!(!world.flows().contains(&0), "the session is down");
    }
    world.is_silent[0] = false;
    world.bench.apply(link(0, false));
    world.run_ms(3_000);
    assert_eq!(world.state(peer_at(0)), State::Up);
    assert!(!world.flows().contains(&0), "the link is down");
    world.bench.apply(link(0, true));
    assert_eq!(world.flows(), before);
    let refused = world.bench.node.apply(link(3, false));
    assert_eq!(refused, Err(ConfigError::UnknownPort(3, 3)));
}

/// Routes by the neighbour that come while it is avoided.
#[test]
fn new_routes_avoid_a_neighbour_that_is_down() {
    let mut world = World::new(2).sessions(2);
    world.run_ms(3_000);
    world.is_silent[0] = true;
    world.run_ms(200);
    equal_paths(&mut world, 2);
    assert_eq!(world.flows(), [1; 64]);
    // There is no other path than those by neighbours that are down.
    world.is_silent[1] = true;
    world.run_ms(200);
    assert_eq!(world.flows().into_iter().collect::<BTreeSet<_>>().len(), 2);
    // A session that is removed says nothing.
    world.is_silent[1] = false;
    world.run_ms(3_000);
    assert_eq!(world.flows(), [1; 64]);
    world.bench.apply(Command::RemoveBfdSession(peer_at(0)));
    assert_eq!(world.flows().into_iter().collect::<BTreeSet<_>>().len(), 2);
}

/// D90: a disabled session is no hint, on either side; one that was never up is none either.
#[test]
fn disabled_sessions_are_no_hint() {
    let mut world = World::new(2).sessions(2);
    equal_paths(&mut world, 2);
    world.is_silent[0] = true;
    world.run_ms(3_000);
    let divided = world.flows();
    assert_eq!(divided.iter().collect::<BTreeSet<_>>().len(), 2);
    world.is_silent[0] = false;
    world.run_ms(3_000);
    world.events.clear();
    world.bench.apply(Command::SetBfdSession(Box::new(BfdSession { is_enabled: false, ..session(0) })));
    let other = world.peers[1].next_deadline().map(|_| ()).and_then(|()| world.peers[1].iter().next());
    let discriminator = other.unwrap().1.discriminator();
    world.peers[1].disable(discriminator, srdma_bfd::Diagnostic::ADMINISTRATIVELY_DOWN);
    world.run_ms(1_000);
    let is_disabled = |event: &(BfdPeer, Event)| matches!(event.1, Event::Down { is_administrative: true, .. });
    assert!(world.events.len() == 2 && world.events.iter().all(is_disabled), "{:?}", world.events);
    assert_eq!(world.flows(), divided);
    assert!(world.drops(0, DropReason::BfdDisabled) > 0);
}

/// D109: packets that wait in a driver are received before the node looks at the time.
#[test]
fn a_late_node_does_not_report_its_own_delay() {
    let mut world = World::new(1).sessions(1);
    world.run_ms(3_000);
    world.events.clear();
    // The node gets no processor for a second. Its peer has sent meanwhile.
    let mut waiting = Vec::new();
    for _ in 0..100 {
        world.bench.now = world.bench.now.after_ns(NS_PER_MS);
        waiting.extend(world.due(0));
    }
    assert!(!waiting.is_empty());
    let began = world.bench.now.after_ns(900 * NS_PER_MS);
    world.bench.now = began;
    // A driver had more frames than fit a batch.
    world.bench.node.set_received_until(world.heard[0]);
    world.bench.node.tick(began, &mut world.bench.pool);
    world.bench.drain();
    for packet in waiting {
        world.bench.send(0, &packet);
    }
    world.bench.node.set_received_until(began);
    world.bench.node.tick(began, &mut world.bench.pool);
    assert_eq!((world.state(peer_at(0)), world.bench.node.take_bfd_events().count()), (State::Up, 0));
    world.bench.drain();
}

#[test]
fn sessions_over_several_hops_follow_routes() {
    let mut world = World::new(2);
    let peer = BfdPeer { port: None, address: address(BEHIND) };
    let session = BfdSession { peer, local: address(LOOPBACK), config: Config::default(), is_enabled: true };
    world.bench.apply(Command::SetBfdSession(Box::new(session)));
    let mut other = Sessions::new(1, 3);
    let ends = Peer { hops: Hops::Multi, remote: address(LOOPBACK), local: address(BEHIND) };
    other.add(ends, Config::default(), Instant::ZERO).unwrap();
    world.peers[0] = other;
    world.run_ms(3_000);
    assert_eq!((world.state(peer), &world.events[..]), (State::Up, &[(peer, Event::Up)][..]));
}

fn packet_of(world: &mut World, port: u16) -> Vec<u8> {
    loop {
        world.bench.now = world.bench.now.after_ns(NS_PER_MS);
        if let Some(packet) = world.due(port).pop() {
            return packet;
        }
    }
}

/// D92, D109: each refusal has its name, and changes nothing.
#[test]
fn forged_packets_are_dropped_by_name() {
    let mut world = World::new(2).sessions(1);
    world.run_ms(3_000);
    let genuine = packet_of(&mut world, 0);
    let changed = |at: usize, value: u8| {
        let mut packet = genuine.clone();
        packet[at] = value;
        packet
    };
    let with_checksum = |mut packet: Vec<u8>| {
        packet[46..48].fill(0);
        let sum = packet[8..].chunks(2).fold(17 + (packet.len() as u32 - 40), |sum, pair| {
            sum + u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))
        });
        let folded = (sum & 0xFFFF) + (sum >> 16);
        packet[46..48].copy_from_slice(&(!((folded & 0xFFFF) + (folded >> 16)) as u16).to_be_bytes());
        packet
    };
    let cases = [
        (0, changed(7, 254), DropReason::BfdHopLimit),
        (0, changed(70, genuine[70] ^ 1), DropReason::BfdChecksum),
        (0, with_checksum(changed(48, genuine[48] ^ 0x40)), DropReason::BfdMalformed),
        (0, with_checksum(changed(56, genuine[56] ^ 1)), DropReason::BfdUnknownSession),
        (1, genuine.clone(), DropReason::BfdOtherPeer),
        (0, with_checksum(changed(23, genuine[23] ^ 3)), DropReason::BfdOtherPeer),
        (0, with_checksum(changed(49, genuine[49] | 4)), DropReason::BfdMalformed),
    ];
    for (port, packet, reason) in cases {
        let dropped = world.drops(port, reason);
        world.bench.send(port, &packet);
        assert_eq!((world.drops(port, reason), world.state(peer_at(0))), (dropped + 1, State::Up), "{reason:?}");
    }
    // Nothing is BFD for a node without sessions.
    world.bench.apply(Command::RemoveBfdSession(peer_at(0)));
    world.bench.send(0, &genuine);
    assert_eq!(world.drops(0, DropReason::LocalDelivery), 1);
}

/// RFC 5881 section 5: a hop limit of 255 shows that no router was passed, unless a tunnel was.
#[test]
fn a_packet_out_of_a_tunnel_is_refused() {
    let mut world = World::new(1).sessions(1);
    let sid = prefix("2001:db8:ff:1::d6");
    world.bench.apply(Command::AddSid { prefix: sid, behavior: SidBehavior::EndDt6(TableId(0)) });
    let end = prefix("2001:db8:ff:1::e");
    let flavors = Flavors { usd: true, ..Flavors::default() };
    world.bench.apply(Command::AddSid { prefix: end, behavior: SidBehavior::End(flavors) });
    world.run_ms(3_000);
    let genuine = packet_of(&mut world, 0);
    let mut global = genuine.clone();
    global[8..24].copy_from_slice(&address("2001:db8:77::9").octets());
    let sids = ["2001:db8:ff:1::d6", "2001:db8:ff:1::e"];
    for (count, sid) in (1..).zip(sids) {
        world.bench.send(0, &ipv6("2001:db8:77::1", sid, 0, 41, &global));
        assert_eq!(world.drops(0, DropReason::BfdHopLimit), count);
        // A link-local source is not that of a packet from afar.
        world.bench.send(0, &ipv6("2001:db8:77::1", sid, 0, 41, &genuine));
        assert_eq!(world.drops(0, DropReason::Scope), count);
    }
}

#[test]
fn sessions_are_limited_and_unique() {
    let mut world = World::new(1);
    let far = |number: usize| BfdPeer { port: None, address: Ipv6Addr::from(0x2001_0db8_u128 << 96 | number as u128) };
    let session = |peer: BfdPeer| {
        let local = address(LOOPBACK);
        Command::SetBfdSession(Box::new(BfdSession { peer, local, config: Config::default(), is_enabled: true }))
    };
    (0..MAX_BFD_SESSIONS).for_each(|number| world.bench.apply(session(far(number))));
    world.bench.apply(session(far(0)));
    let refused = world.bench.node.apply(session(far(MAX_BFD_SESSIONS)));
    assert_eq!(refused, Err(ConfigError::TooManyBfdSessions(MAX_BFD_SESSIONS)));
    let unknown = world.bench.node.apply(Command::RemoveBfdSession(peer_at(0)));
    assert_eq!(unknown, Err(ConfigError::UnknownBfdPeer(neighbour(0))));
    let port = BfdPeer { port: Some(PortId(5)), address: neighbour(0) };
    assert_eq!(world.bench.node.apply(session(port)), Err(ConfigError::UnknownPort(5, 1)));
}
