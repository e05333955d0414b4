//! Forwarding tables: routes, SIDs, neighbours, Proxy Addresses and multicast routes, resolved ahead.

mod backups;
mod entries;
mod policies;
mod routes;
mod shared;
mod targets;

pub(crate) use entries::{Adjacency, EcmpSet, MulticastEntry, Sid, Target};
pub(crate) use routes::Unused;
pub(crate) use shared::Shared;

use crate::config::{ConfigError, NodeConfig, PortConfig, SidBehavior, TableId};
use crate::counters::Traffic;
use crate::drop::DropReason;
use crate::encaps::Encaps;
use crate::entropy;
use crate::headend::PlacedRoutes;
use crate::headers::ipv6;
use crate::scope::{self, is_mapped};
use backups::Backups;
use entries::{BehindEncaps, Link};
use policies::Policies;
use srdma_fib::Fib;
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::GroupId;
use srdma_wire::{MacAddress, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Key of a multicast route: source and group.
pub(crate) type MulticastKey = ([u8; 16], [u8; 16]);

/// The node's forwarding tables.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The main table, apart from the others because most lookups are in it.
    main: Fib<Target>,
    others: BTreeMap<TableId, Fib<Target>>,
    /// The same tables for IPv4 packets, by IPv4-mapped addresses (D258).
    ipv4: Ipv4Fibs,
    adjacencies: Shared<Adjacency>,
    ecmp: Shared<EcmpSet>,
    /// Makes this node choose otherwise among equal paths than its neighbours do.
    ecmp_salt: u32,
    encaps: Shared<Encaps>,
    /// What the destinations of the policies' outer headers lead to, as far as it was looked up (D226).
    behind_encaps: Vec<BehindEncaps>,
    policies: Policies,
    backups: Backups,
    sids: Vec<Sid>,
    multicast_routes: BTreeMap<MulticastKey, MulticastEntry>,
    /// The node's own addresses, and how many ports or features have each.
    own: BTreeMap<Ipv6Addr, u32>,
    /// Properties of ports that adjacencies take over.
    links: Vec<Link>,
    /// Incremented by each change that resolved forwarding data may depend on.
    generation: u64,
}

/// Tables of IPv4.
#[derive(Debug, Default)]
struct Ipv4Fibs {
    main: Fib<Target>,
    others: BTreeMap<TableId, Fib<Target>>,
}

impl Tables {
    /// Tables that lead to the node's own addresses only.
    pub(crate) fn new(config: &NodeConfig) -> Self {
        let mut tables = Tables {
            main: Fib::default(),
            others: BTreeMap::new(),
            ipv4: Ipv4Fibs::default(),
            adjacencies: Shared::default(),
            ecmp: Shared::default(),
            ecmp_salt: entropy::salt(config.loopback),
            encaps: Shared::default(),
            behind_encaps: Vec::new(),
            policies: Policies::default(),
            backups: Backups::default(),
            sids: Vec::new(),
            multicast_routes: BTreeMap::new(),
            own: BTreeMap::new(),
            links: Vec::new(),
            generation: 0,
        };
        tables.add_own(config.loopback);
        config.ports.iter().for_each(|port| tables.add_port(port));
        tables
    }

    pub(crate) fn add_port(&mut self, port: &PortConfig) {
        self.links.push(Link { mac: port.mac, link_mtu: port.link_mtu, is_border: false, is_down: false });
        port.addresses.iter().for_each(|address| self.add_own(*address));
    }

    /// A port's MAC address and MTU are others, for its adjacencies too.
    pub(crate) fn set_link(&mut self, port: PortId, mac: MacAddress, link_mtu: u16) {
        let link = &mut self.links[port.index()];
        (link.mac, link.link_mtu) = (mac, link_mtu);
        for adjacency in self.adjacencies.values_mut().filter(|adjacency| adjacency.port == port) {
            adjacency.ethernet[6..12].copy_from_slice(&mac.0);
            adjacency.link_mtu = link_mtu;
        }
    }

    pub(crate) fn set_border(&mut self, port: PortId, is_border: bool) {
        self.links[port.index()].is_border = is_border;
        for adjacency in self.adjacencies.values_mut().filter(|adjacency| adjacency.port == port) {
            adjacency.is_border = is_border;
        }
    }

    /// The link of a port has gone down or come up: its neighbours are avoided, or no longer, by one pass over them.
    pub(crate) fn set_link_state(&mut self, port: PortId, is_up: bool) {
        self.links[port.index()].is_down = !is_up;
        let at_port = self.adjacencies.values_mut().filter(|adjacency| adjacency.port == port);
        at_port.for_each(|adjacency| adjacency.is_avoided = adjacency.is_lost || !is_up);
        self.divide_equal_paths();
    }

    fn check_port(&self, port: PortId) -> Result<(), ConfigError> {
        let ports = self.links.len();
        if port.index() < ports { Ok(()) } else { Err(ConfigError::UnknownPort(port.0, ports)) }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Invalidates what was resolved from the tables so far.
    pub(crate) fn invalidate(&mut self) {
        self.generation += 1;
    }
}

/// Lookups.
impl Tables {
    #[inline(always)]
    pub(crate) fn lookup(&self, table: TableId, destination: &[u8; 16]) -> Option<Target> {
        if table == TableId(0) { self.main.lookup(destination) } else { self.lookup_other(table, destination) }
    }

    /// The same in a table of a VRF: not inlined, so that the main table's lookup is.
    #[inline(never)]
    fn lookup_other(&self, table: TableId, destination: &[u8; 16]) -> Option<Target> {
        self.others.get(&table).and_then(|table| table.lookup(destination))
    }

    #[inline]
    pub(crate) fn lookup_main(&self, destination: &[u8; 16]) -> Option<Target> {
        self.main.lookup(destination)
    }

    /// The same for an IPv4 packet, whose destination is IPv4-mapped.
    #[cold]
    pub(crate) fn lookup_ipv4(&self, table: TableId, destination: &[u8; 16]) -> Option<Target> {
        let routes = if table == TableId(0) { Some(&self.ipv4.main) } else { self.ipv4.others.get(&table) };
        routes?.lookup(destination)
    }

    /// What the address of a node or host leads to by the main table of its IP version.
    #[inline]
    pub(crate) fn lookup_host(&self, address: &[u8; 16]) -> Option<Target> {
        if is_mapped(address) { self.ipv4.main.lookup(address) } else { self.main.lookup(address) }
    }

    /// Whether the main table has anything for IPv4 packets.
    pub(crate) fn has_ipv4(&self) -> bool {
        !self.ipv4.main.is_empty()
    }

    /// The main table of the IP version of a prefix.
    fn main_of(&self, prefix: Prefix) -> &Fib<Target> {
        if prefix.is_ipv4() { &self.ipv4.main } else { &self.main }
    }

    fn main_of_mut(&mut self, prefix: Prefix) -> &mut Fib<Target> {
        if prefix.is_ipv4() { &mut self.ipv4.main } else { &mut self.main }
    }

    /// The other tables of the IP version of a prefix.
    fn others_of_mut(&mut self, prefix: Prefix) -> &mut BTreeMap<TableId, Fib<Target>> {
        if prefix.is_ipv4() { &mut self.ipv4.others } else { &mut self.others }
    }

    /// Whether packets to an address of the prefix take a longer one of the main table.
    pub(crate) fn has_longer(&self, prefix: Prefix, address: Ipv6Addr) -> bool {
        let mut longer = (prefix.prefix_len() + 1..=128).filter_map(|len| Prefix::new(address, len));
        longer.any(|longer| self.main.get(longer).is_some())
    }

    /// The target of exactly this prefix of IPv6.
    pub(crate) fn get(&self, table: TableId, prefix: Prefix) -> Option<Target> {
        match table {
            TableId(0) => self.main.get(prefix),
            table => self.others.get(&table).and_then(|routes| routes.get(prefix)),
        }
    }

    /// The member of an ECMP set for a packet's flow.
    #[inline]
    pub(crate) fn choose(&self, set: u32, head: &[u8]) -> u32 {
        self.ecmp[set as usize].choose(entropy::of_packet(head), self.ecmp_salt)
    }

    /// The same for an IPv4 packet.
    #[cold]
    pub(crate) fn choose_ipv4(&self, set: u32, head: &[u8]) -> u32 {
        self.ecmp[set as usize].choose(entropy::of_ipv4_packet(head), self.ecmp_salt)
    }

    #[inline(always)]
    pub(crate) fn adjacency(&self, adjacency: u32) -> &Adjacency {
        &self.adjacencies[adjacency as usize]
    }

    #[inline(always)]
    pub(crate) fn encaps(&self, policy: u32) -> &Encaps {
        &self.encaps[policy as usize]
    }

    /// What the destination of a policy's outer headers leads to by the main table; `None` where a lookup has to tell.
    #[inline(always)]
    pub(crate) fn behind_encaps(&mut self, policy: u32) -> Option<Target> {
        match self.behind_encaps.get(policy as usize) {
            Some(behind) if behind.generation == self.generation => behind.target,
            _ => self.look_behind_encaps(policy),
        }
    }

    #[cold]
    fn look_behind_encaps(&mut self, policy: u32) -> Option<Target> {
        let destination = self.encaps(policy).destination();
        let plain = destination.filter(|octets| !scope::may_be_special(octets[0]));
        let target = plain.and_then(|octets| self.main.lookup(octets));
        let (generation, place) = (self.generation, policy as usize);
        if self.behind_encaps.len() <= place {
            // That of a generation which has passed.
            let unknown = BehindEncaps { generation: generation.wrapping_sub(1), target: None };
            self.behind_encaps.resize(place + 1, unknown);
        }
        self.behind_encaps[place] = BehindEncaps { generation, target };
        target
    }

    #[inline]
    pub(crate) fn sid(&self, sid: u32) -> &Sid {
        &self.sids[sid as usize]
    }

    /// A SID, to count a packet for it.
    #[inline(always)]
    pub(crate) fn sid_mut(&mut self, sid: u32) -> &mut Sid {
        &mut self.sids[sid as usize]
    }

    /// Counts a packet for a SID.
    #[inline]
    pub(crate) fn enter_sid(&mut self, sid: u32, octets: usize) -> &Sid {
        let sid = &mut self.sids[sid as usize];
        sid.traffic.count(octets);
        sid
    }

    /// The adjacency for packets of this node to an address of another node. `flow`, the address of a group, selects
    /// among equal paths.
    pub(crate) fn resolve(&self, destination: &[u8; 16], flow: &[u8; 16]) -> Option<u32> {
        self.toward(self.lookup_host(destination)?, destination, flow)
    }

    /// As [`Tables::resolve`], from the target of a lookup in any table.
    pub(crate) fn toward(&self, target: Target, destination: &[u8; 16], flow: &[u8; 16]) -> Option<u32> {
        match target {
            Target::Adjacency(adjacency) => Some(adjacency),
            Target::Ecmp(set) => {
                let hash = entropy::of_addresses(flow, destination);
                Some(self.ecmp[set as usize].choose(hash, self.ecmp_salt))
            }
            Target::Sid(_)
            | Target::Group(_)
            | Target::Encaps(_)
            | Target::Policy(_)
            | Target::Placed(_)
            | Target::Local
            | Target::Blackhole
            | Target::ToPeer => None,
        }
    }

    /// The adjacency of a packet of this node, looked up in a given table.
    pub(crate) fn resolve_in(&self, table: TableId, frame: &Frame, pool: &Pool) -> Result<u32, DropReason> {
        let view = ipv6(frame.head(pool))?;
        let (source, destination) = (view.source_octets(), view.destination_octets());
        let target = self.lookup(table, destination);
        target.and_then(|target| self.toward(target, destination, source)).ok_or(DropReason::NoRoute)
    }

    /// The adjacency for a packet of this node by the main table, encapsulated where a policy applies.
    pub(crate) fn route_own(
        &mut self,
        frame: &mut Frame,
        pool: &mut Pool,
        headend: &PlacedRoutes,
    ) -> Result<u32, DropReason> {
        match self.main.lookup(ipv6(frame.head(pool))?.destination_octets()) {
            Some(Target::Encaps(policy)) => self.encaps(policy).push(frame, pool)?,
            Some(Target::Policy(policy)) => {
                self.push_policy(policy, frame, pool)?;
            }
            Some(Target::Placed(place)) => headend.encapsulate_unsteered(place, frame, pool)?,
            Some(
                Target::Adjacency(_)
                | Target::Ecmp(_)
                | Target::Sid(_)
                | Target::Group(_)
                | Target::Local
                | Target::Blackhole
                | Target::ToPeer,
            )
            | None => {}
        }
        let view = ipv6(frame.head(pool))?;
        let (destination, source) = (view.destination_octets(), view.source_octets());
        let target = self.main.lookup(destination).ok_or(DropReason::NoRoute)?;
        self.toward(target, destination, source).ok_or(DropReason::NoRoute)
    }

    /// The adjacency of a packet that is plainly forwarded by the main table.
    pub(crate) fn plain_route(&self, destination: &[u8; 16], head: &[u8]) -> Option<&Adjacency> {
        let adjacency = match self.main.lookup(destination)? {
            Target::Adjacency(adjacency) => adjacency,
            Target::Ecmp(set) => self.choose(set, head),
            Target::Sid(_)
            | Target::Group(_)
            | Target::Encaps(_)
            | Target::Policy(_)
            | Target::Placed(_)
            | Target::Local
            | Target::Blackhole
            | Target::ToPeer => return None,
        };
        Some(self.adjacency(adjacency))
    }

    /// Whether a packet of `sender` may come in by a port: its route leads there (D14). `None`: the route does not
    /// determine a port.
    pub(crate) fn is_at(&self, sender: &[u8; 16], port: Option<PortId>) -> Option<bool> {
        let is_there = |adjacency: &u32| Some(self.adjacency(*adjacency).port) == port;
        match self.lookup_host(sender) {
            Some(Target::Adjacency(adjacency)) => Some(is_there(&adjacency)),
            Some(Target::Ecmp(set)) => Some(self.ecmp[set as usize].adjacencies.iter().any(is_there)),
            Some(
                Target::Sid(_)
                | Target::Group(_)
                | Target::Encaps(_)
                | Target::Policy(_)
                | Target::Placed(_)
                | Target::Local
                | Target::Blackhole
                | Target::ToPeer,
            )
            | None => None,
        }
    }

    /// The group whose Proxy Address this is.
    #[inline]
    pub(crate) fn group_of(&self, proxy: &[u8; 16]) -> Option<u32> {
        match self.main.lookup(proxy) {
            Some(Target::Group(group)) => Some(group),
            _ => None,
        }
    }

    pub(crate) fn multicast_route(&self, key: &MulticastKey) -> Option<&MulticastEntry> {
        self.multicast_routes.get(key)
    }

    /// Lends the adjacencies of a multicast route while packets are copied; the caller
    /// [returns](Self::return_multicast_adjacencies) them.
    pub(crate) fn lend_multicast_adjacencies(&mut self, key: &MulticastKey) -> Vec<u32> {
        self.multicast_routes.get_mut(key).map(|entry| std::mem::take(&mut entry.adjacencies)).unwrap_or_default()
    }

    pub(crate) fn return_multicast_adjacencies(&mut self, key: &MulticastKey, adjacencies: Vec<u32>) {
        if let Some(entry) = self.multicast_routes.get_mut(key) {
            entry.adjacencies = adjacencies;
        }
    }
}

/// Contents of the tables, for reports.
impl Tables {
    pub(crate) fn sids(&self) -> &[Sid] {
        &self.sids
    }

    pub(crate) fn sid_reports(&self) -> impl Iterator<Item = (Prefix, SidBehavior, Traffic)> {
        self.sids.iter().map(|sid| (sid.prefix, sid.behavior, sid.traffic))
    }

    /// What every prefix of IPv6 of every table leads to.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (TableId, Prefix, Target)> {
        let main = self.main.iter().map(|(prefix, target)| (TableId(0), prefix, target));
        let others = self
            .others
            .iter()
            .flat_map(|(table, routes)| routes.iter().map(move |(prefix, target)| (*table, prefix, target)));
        main.chain(others)
    }

    /// The adjacencies of a set of equal paths, unless some are avoided.
    pub(crate) fn equal_paths(&self, set: u32) -> Option<&[u32]> {
        self.ecmp[set as usize].undivided()
    }

    /// The salt of the choice among equal paths.
    pub(crate) fn ecmp_salt(&self) -> u32 {
        self.ecmp_salt
    }

    pub(crate) fn prefix_count(&self) -> usize {
        let others = self.others.values().chain(self.ipv4.others.values());
        self.main.len() + self.ipv4.main.len() + others.map(|table| table.len()).sum::<usize>()
    }

    pub(crate) fn neighbour_count(&self) -> usize {
        self.adjacencies.values().filter(|adjacency| adjacency.resolved && adjacency.address[0] != 0xff).count()
    }

    /// The prefixes that lead to placed paths, and the place of each in the headend's list.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (TableId, Prefix, u32)> {
        self.targets().filter_map(|(table, prefix, target)| match target {
            Target::Placed(place) => Some((table, prefix, place)),
            Target::Adjacency(_)
            | Target::Ecmp(_)
            | Target::Sid(_)
            | Target::Group(_)
            | Target::Encaps(_)
            | Target::Policy(_)
            | Target::Local
            | Target::Blackhole
            | Target::ToPeer => None,
        })
    }

    /// Assigns groups to the End.Replicate SIDs by their numbers.
    pub(crate) fn assign_replication_sids(&mut self, group_of: impl Fn(GroupId) -> Option<u32>) {
        for sid in &mut self.sids {
            if let SidBehavior::EndReplicate(id) = sid.behavior {
                sid.group = group_of(id);
            }
        }
    }
}
