//! Nodes with every configuration that a node can have, and the fuzzer's state beside them.

use super::plan::*;
use super::repair;
use srdma_dataplane::*;
use srdma_frame::{Pool, PortId};
use srdma_group::*;
use srdma_wire::{Instant, MacAddress, PathMtu, Prefix, Psn, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::LazyLock;
use std::time::Duration;

/// Ports: 0 upwards, 1 and 2 downwards, 3 with little MTU.
pub(super) const PORTS: u16 = 4;

/// Groups of each node are numbered from 1.
pub(super) const GROUPS: u16 = 6;

/// The region that WRITEs of every source address.
pub(super) const REGION: SourceRegion = SourceRegion { base: 0x7f00_0000_0000, length: 1 << 20, rkey: 0x1234 };

/// HMAC keys: the cover of each, by id.
pub(super) const KEYS: [(u32, Cover); 3] = [(7, Cover::Tlvs), (8, Cover::Rfc8754), (9, Cover::Linux)];
const SECRET: &[u8] = b"secret";

/// The keys themselves, in the order of [`KEYS`].
pub(super) static HMAC_KEYS: LazyLock<[HmacKey; 3]> = LazyLock::new(|| KEYS.map(|(_, cover)| key(cover)));

fn key(cover: Cover) -> HmacKey {
    HmacKey::new(SECRET, cover)
}

/// SR policies of the nested routes, and of the binding SID that one of their lists leads to.
const NESTED_POLICY: PolicyId = PolicyId(1);
const APPLIED_POLICY: PolicyId = PolicyId(2);

/// Configuration in which a node differs from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// Defaults.
    Plain,
    /// Verifies ICRCs and HMACs, and has been restarted.
    Strict,
    /// Computes ICRCs from scratch; has little memory and a threshold for replication.
    Recomputing,
    /// At the boundary of a domain: hosts behind port 0, foreign networks behind port 2.
    Bordering,
    /// Ports 2 and 3 are VLANs on the link of port 0, which trusts their priorities; without congestion.
    Tagged,
    /// Repairs losses in all groups that it can.
    Repairing,
}

/// The VLAN of a port.
fn vlan_of(temper: Temper, port: u16) -> Option<u16> {
    (temper == Temper::Tagged && matches!(port, 2 | 3)).then_some(100 + port)
}

impl Temper {
    pub(super) const ALL: [Temper; 6] =
        [Temper::Plain, Temper::Strict, Temper::Recomputing, Temper::Bordering, Temper::Tagged, Temper::Repairing];
}

/// Change of a group's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// The node's own branches change.
    Renewed,
    /// The branches of the node's first child change.
    ChildRenewed,
    /// The last member has left.
    Left,
    /// The last member has joined at the source's next PSN.
    Joined,
}

impl Change {
    pub(super) const ALL: [Change; 5] =
        [Change::Nothing, Change::Renewed, Change::ChildRenewed, Change::Left, Change::Joined];
}

/// A node, its memory, and how far its groups have come.
#[derive(Debug)]
pub(super) struct World {
    pub(super) node: Node,
    pub(super) pool: Pool,
    pub(super) now: Instant,
    pub(super) temper: Temper,
    /// The highest PSN that was given to the node for each group.
    pub(super) sent: [Psn; GROUPS as usize],
    epoch: u32,
    /// Ports whose neighbour has gone.
    gone: [bool; PORTS as usize],
    /// Something about congestion is not as the node began with it.
    pub(super) is_changed: bool,
    /// Ports may have classes, and the node Fast CNP and IOAM.
    pub(super) has_congestion: bool,
    /// The commands since they were last taken, for a second node; `None` where there is none.
    pub(super) log: Option<Vec<Command>>,
    /// Counters of congestion of which the owners were removed.
    pub(super) tally: BTreeMap<&'static str, u64>,
}

pub(super) fn port_mac(port: u16) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, port as u8])
}

/// The MAC address of the neighbour at a port.
pub(super) fn neighbour_mac(port: u16) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, port as u8])
}

fn next_hop(port: u16) -> NextHop {
    NextHop { port: PortId(port), address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, port + 1) }
}

/// The queue pair that all participants of a group send to.
pub(super) fn designated_qpn(group: u16) -> Qpn {
    Qpn::from_octets([0, 0xAB, group as u8])
}

/// The branches that respond to this node for a group.
pub(super) fn responders(group: u16) -> &'static [Ipv6Addr] {
    const RECEIVERS: [[Ipv6Addr; 3]; 2] =
        [[receiver(1), receiver(2), receiver(3)], [receiver(4), receiver(5), receiver(6)]];
    const OF_BUD: [Ipv6Addr; 3] = [BELOW[0], BELOW[1], receiver(3)];
    match group {
        2 => &OF_BUD,
        3 => &RECEIVERS[0],
        4 => &RECEIVERS[1],
        _ => &BELOW,
    }
}

/// Distance of the PSNs of a group's receiver at a position from the group's: group 4 has receivers with their own.
pub(super) fn psn_offset(group: u16, position: usize) -> PsnOffset {
    let offset = if group == 4 { (0x92_3456 * position as u32) & 0xFF_FFFF } else { 0 };
    PsnOffset::new(offset).unwrap_or_default()
}

fn initial_psn(group: u16) -> Psn {
    if group.is_multiple_of(2) { Psn::new(0xFF_FFFD) } else { Psn::new(100) }
}

impl World {
    pub(super) fn new(temper: Temper) -> Self {
        let mut world = World::without_congestion(temper, Worker::ALONE);
        if temper != Temper::Tagged {
            world.has_congestion = true;
            world.add_congestion();
            world.is_changed = false;
        }
        world.join_all();
        world
    }

    /// A worker of a node that has neither classes nor Fast CNP nor IOAM, which need one worker; without groups.
    pub(super) fn without_congestion(temper: Temper, worker: Worker) -> Self {
        let port = |port| PortConfig {
            name: format!("p{port}"),
            mac: port_mac(port),
            addresses: vec![Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, port)],
            link_mtu: if port == 3 { 1280 } else { 4608 },
            queue_limit_octets: if port == 2 { 9000 } else { 1 << 20 },
            vlan: vlan_of(temper, port).map(|id| PortVlan { parent: PortId(0), id }),
            trust: if temper == Temper::Tagged { Trust::Pcp } else { Trust::Dscp },
        };
        let mut config = NodeConfig::new(LOOPBACK, (0..PORTS).map(port).collect());
        config.icmp_errors_per_second = 1_000_000;
        config.worker = worker;
        match temper {
            Temper::Plain | Temper::Bordering | Temper::Tagged | Temper::Repairing => {}
            Temper::Strict => {
                config.verify_icrc = true;
                config.hmac = HmacPolicy::Required;
                config.restarted = true;
            }
            Temper::Recomputing => {
                config.icrc = IcrcMode::Recompute;
                config.replication_hop_limit = 5;
            }
        }
        let limit = if temper == Temper::Recomputing { 5 } else { 4096 };
        let mut sent = [Psn::default(); GROUPS as usize];
        (1..).zip(&mut sent).for_each(|(group, sent)| *sent = initial_psn(group).previous());
        let (node, pool) = (Node::new(config), Pool::new(limit));
        let mut world = World {
            node,
            pool,
            now: Instant::ZERO,
            temper,
            sent,
            epoch: 1,
            gone: [false; 4],
            is_changed: false,
            has_congestion: false,
            log: None,
            tally: BTreeMap::new(),
        };
        world.add_neighbours_and_keys();
        world.add_routes();
        world.add_sids();
        world.add_ipv4();
        if temper == Temper::Bordering {
            world.add_borders();
        }
        world
    }

    /// Joins all groups.
    pub(super) fn join_all(&mut self) {
        for group in 1..=GROUPS {
            self.rejoin(group);
        }
    }

    pub(super) fn apply(&mut self, command: Command) {
        if let Some(log) = &mut self.log {
            log.push(command.clone());
        }
        self.node.apply(command).expect("a command that the node carries out");
    }

    fn add_neighbours_and_keys(&mut self) {
        for port in 0..PORTS {
            self.apply(Command::AddNeighbour { next_hop: next_hop(port), mac: neighbour_mac(port) });
        }
        for (key_id, cover) in KEYS {
            self.apply(Command::AddHmacKey { key_id, key: key(cover) });
        }
    }

    fn add_routes(&mut self) {
        let via = |ports: &[u16]| RouteAction::Via(ports.iter().map(|port| next_hop(*port)).collect());
        let encaps = |segments: &[Ipv6Addr], mode, hmac_key_id| RouteAction::Encaps {
            segments: segments.to_vec(),
            mode,
            hmac_key_id,
        };
        let unresolved = NextHop { port: PortId(1), address: behind(UNRESOLVED) };
        let far = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1);
        let list = |segments: &[Ipv6Addr], weight| SegmentList { segments: segments.to_vec(), weight };
        let nested = vec![list(&[behind(NESTED_AGAIN), far, far], 2), list(&[END_B6, far], 1)];
        let applied = vec![list(&[END_DX6, END], 1), list(&[Ipv6Addr::LOCALHOST], 1)];
        for (id, lists, hmac_key_id) in [(NESTED_POLICY, nested, None), (APPLIED_POLICY, applied, Some(7))] {
            self.apply(Command::AddPolicy { id, policy: Box::new(SrPolicy { lists, hmac_key_id }) });
        }
        let routes = [
            (source(0), 64, via(&[0])),
            (receiver(0), 64, via(&[1])),
            (receiver(1), 64, via(&[2])),
            (ABOVE, 128, via(&[0])),
            (BELOW[0], 128, via(&[1])),
            (BELOW[1], 128, via(&[2])),
            (ABOVE_SID, 128, via(&[0])),
            (BELOW_SIDS[0], 48, via(&[1])),
            (BELOW_SIDS[1], 48, via(&[2])),
            (behind(ENCAPSULATED), 48, encaps(&[far, END_X, ABOVE], EncapsMode::Encaps, None)),
            (behind(ENCAPSULATED_SIGNED), 48, encaps(&[far, BELOW[0]], EncapsMode::Reduced, Some(7))),
            (behind(ENCAPSULATED_MULTICAST), 48, encaps(&[COPIED], EncapsMode::Reduced, None)),
            (behind(BLACKHOLE), 48, RouteAction::Blackhole),
            (behind(UNRESOLVED), 48, RouteAction::Via(vec![unresolved])),
            (behind(NARROW), 48, via(&[3])),
            (behind(SEVERAL), 48, via(&[1, 2])),
            (behind(LOOP), 48, encaps(&[END_DT6], EncapsMode::Encaps, None)),
            (behind(NESTED), 48, RouteAction::Policy { policy: NESTED_POLICY, mode: EncapsMode::Encaps }),
            (behind(NESTED_AGAIN), 48, encaps(&[behind(ENCAPSULATED), far, far], EncapsMode::Encaps, None)),
            (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 15, via(&[2])),
            (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, via(&[2, 0])),
        ];
        for (address, len, action) in routes {
            let prefix = Prefix::new(address, len).expect("a length of at most 128");
            self.apply(Command::AddRoute { table: TableId(0), prefix, action });
        }
        let prefix = Prefix::new(receiver(0), 48).expect("a length of at most 128");
        self.apply(Command::AddRoute { table: TableId(5), prefix, action: via(&[1]) });
        let prefix = Prefix::new(source(0), 48).expect("a length of at most 128");
        let action = encaps(&[far], EncapsMode::Reduced, None);
        self.apply(Command::AddRoute { table: TableId(5), prefix, action });
        let routes = [
            (ABOVE, COPIED, None, &[1, 2][..], true, false),
            (LOOPBACK, COPIED, None, &[1, 2], false, false),
            (ABOVE, FROM_ABOVE, Some(0), &[1], false, false),
            (ABOVE, SIGNED, None, &[], true, true),
            (LOOPBACK, HANDED_OVER, None, &[1, 2], false, false),
            (ABOVE, NOWHERE, None, &[], false, false),
        ];
        for (source, group, incoming, outgoing, end_mt, require_hmac) in routes {
            let outgoing = outgoing.iter().map(|port| PortId(*port)).collect();
            let incoming = incoming.map(PortId);
            let route = MulticastRoute { source, group, incoming, outgoing, end_mt, require_hmac };
            self.apply(Command::AddMulticastRoute(route));
        }
    }

    fn add_sids(&mut self) {
        let all = Flavors { psp: true, usp: true, usd: true, next_csid: None };
        let psp = Flavors { psp: true, ..Flavors::default() };
        let sids = [
            (END, 128, SidBehavior::End(Flavors::default())),
            (END_ALL, 128, SidBehavior::End(all)),
            (END_X, 128, SidBehavior::EndX(Flavors::default(), next_hop(1))),
            (END_X_PSP, 128, SidBehavior::EndX(psp, next_hop(2))),
            (END_DT6, 128, SidBehavior::EndDt6(TableId(0))),
            (END_DT6_OTHER, 128, SidBehavior::EndDt6(TableId(5))),
            (END_DX6, 128, SidBehavior::EndDx6 { next_hop: next_hop(2), table: TableId(5) }),
            (END_B6, 128, SidBehavior::EndB6Encaps { policy: APPLIED_POLICY, mode: EncapsMode::Reduced }),
            (REPLICATE, 128, SidBehavior::EndReplicate(GroupId(2))),
            (REPLICATE_MULTICAST, 128, SidBehavior::EndReplicate(GroupId(6))),
            (REPLICATE_NOTHING, 128, SidBehavior::EndReplicate(GroupId(99))),
            (END_MT, 128, SidBehavior::EndMt { require_hmac: false }),
            (END_MT_SIGNED, 128, SidBehavior::EndMt { require_hmac: true }),
            (UN[0], 48, SidBehavior::End(Flavors::MICRO)),
            (UN[1], 48, SidBehavior::End(Flavors::MICRO)),
            (UA, 48, SidBehavior::EndX(Flavors::MICRO, next_hop(2))),
        ];
        for (sid, len, behavior) in sids {
            let prefix = Prefix::new(sid, len).expect("a length of at most 128");
            self.apply(Command::AddSid { prefix, behavior });
        }
    }

    fn add_borders(&mut self) {
        let prefix = |address, len| Prefix::new(address, len).expect("a length of at most 128");
        let sids = vec![
            prefix(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 15),
            prefix(Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16),
        ];
        let infrastructure = [LOOPBACK, ABOVE, BELOW[0]].map(|address| prefix(address, 48)).to_vec();
        let proxies = vec![prefix(proxy(0), 48)];
        self.apply(Command::SetDomain(Domain { sids, infrastructure, proxies }));
        self.apply(Command::SetBorder { port: PortId(0), sources: vec![prefix(source(0), 64)] });
        self.apply(Command::SetBorder { port: PortId(2), sources: Vec::new() });
    }

    /// Commits a new epoch of a group, in two phases; an invalid group is not committed.
    pub(super) fn commit(&mut self, group: u16, change: Change) {
        self.epoch += 1;
        let (id, epoch) = (GroupId(group.into()), self.epoch);
        let next = self.sent[usize::from(group) - 1].next();
        let Ok(whole) = Group::new(self.record(group, epoch, change, next)) else {
            return;
        };
        self.apply(Command::PrepareGroup(Box::new(entry(group, &whole))));
        self.apply(Command::CommitGroup { id, epoch, is_first: false });
    }

    /// Joins a group again.
    pub(super) fn rejoin(&mut self, group: u16) {
        let id = GroupId(group.into());
        if self.node.groups().any(|known| known == id) {
            self.apply(Command::RemoveGroup(id));
        }
        let first = initial_psn(group);
        let record = self.record(group, self.epoch, Change::Nothing, first);
        let whole = Group::new(record).expect("a group that can work");
        self.apply(Command::AddGroup(Box::new(entry(group, &whole))));
        self.sent[usize::from(group) - 1] = first.previous();
    }

    fn record(&self, group: u16, epoch: u32, change: Change, next: Psn) -> Record {
        let record = record(group, epoch, change, next);
        let repair = if self.repairs() { repair::policy(group) } else { RepairPolicy::default() };
        Record { policy: Policy { repair, ..record.policy }, ..record }
    }

    /// Whether ports are those of VLANs.
    pub(super) fn has_vlans(&self) -> bool {
        self.temper == Temper::Tagged
    }

    /// The frame as it is on the wire of a port: tagged, if that is a VLAN's; and the port of the link.
    pub(super) fn on_wire(&self, port: u16, frame: &[u8]) -> Option<(u16, Vec<u8>)> {
        let (addresses, rest) = frame.split_at_checked(12)?;
        let id = vlan_of(self.temper, port)?;
        // The priority changes from frame to frame.
        let control = (frame.len() as u16) << 13 | id;
        Some((0, [addresses, &[0x81, 0], &control.to_be_bytes(), rest].concat()))
    }

    /// The port that a frame which has left a link belongs to; its tag is taken out.
    pub(super) fn off_wire(&self, port: u16, frame: &mut Vec<u8>) -> u16 {
        if frame.get(12..14) != Some(&[0x81, 0]) || !self.has_vlans() {
            return port;
        }
        let tag: Vec<u8> = frame.drain(12..16).collect();
        let id = u16::from_be_bytes([tag[2] & 0x0F, tag[3]]);
        let member = (0..PORTS).find(|port| vlan_of(self.temper, *port) == Some(id));
        assert!(port == 0 && member.is_some(), "a tag of VLAN {id} at port {port}");
        member.unwrap_or(port)
    }

    /// Removes the neighbour at a port, if it is there, until [`restore_neighbours`](Self::restore_neighbours).
    pub(super) fn remove_neighbour(&mut self, port: u16) {
        if self.gone[usize::from(port)] {
            return;
        }
        self.gone[usize::from(port)] = true;
        self.apply(Command::RemoveNeighbour(next_hop(port)));
    }

    /// All neighbours are there again.
    pub(super) fn restore_neighbours(&mut self) {
        for port in 0..PORTS {
            if std::mem::take(&mut self.gone[usize::from(port)]) {
                self.apply(Command::AddNeighbour { next_hop: next_hop(port), mac: neighbour_mac(port) });
            }
        }
    }
}

/// The node's role in a group: headend (1, 5), transit node (2, 6), edge (3, 4).
fn entry(group: u16, whole: &Group) -> GroupEntry {
    let index = if matches!(group, 1 | 5) { 0 } else { 1 };
    whole.at(NodeIndex(index)).expect("a node of the tree")
}

fn record(group: u16, epoch: u32, change: Change, next: Psn) -> Record {
    let (mut nodes, mut receivers) = (tree(group), receivers(group));
    let own = if matches!(group, 1 | 5) { 0 } else { 1 };
    let join = Join { psn: next, msn: 5 };
    let edges = nodes.len() - own - 1;
    match change {
        Change::Nothing => {}
        Change::Renewed => nodes[own].renewed = epoch,
        Change::ChildRenewed => {
            if let Some(child) = nodes.get_mut(own + 1) {
                child.renewed = epoch;
            }
        }
        Change::Left => {
            receivers.pop();
            if edges > 0 {
                nodes.pop();
            }
        }
        Change::Joined => {
            if let Some(receiver) = receivers.last_mut() {
                receiver.joined = Some(join);
            }
            if edges > 0
                && let Some(node) = nodes.last_mut()
            {
                node.joined = Some(join);
            }
        }
    }
    Record {
        id: GroupId(group.into()),
        epoch,
        proxy: proxy(group),
        designated_qpn: designated_qpn(group),
        initial_psn: initial_psn(group),
        path_mtu: if group == 5 { PathMtu::Octets256 } else { PathMtu::Octets4096 },
        link_mtu: if group == 5 { 1280 } else { 4608 },
        source: Source { address: source(group), qpn: Qpn::from_octets([0, 0, 0x77]) },
        region: matches!(group, 1 | 3).then_some(REGION),
        tree: Tree::new(nodes).expect("a tree"),
        receivers,
        policy: Policy { hmac_key_id: (group == 1).then_some(7), ..policy(group) },
        more_regions: Vec::new(),
    }
}

fn policy(group: u16) -> Policy {
    let default = Policy { lists: ListMode::Provisioned, ..Policy::default() };
    match group {
        1 => Policy { lists: ListMode::Tlv, ..default },
        4 => Policy {
            prune_retransmit: true,
            cnp_mode: CnpMode::Leading,
            cnp_limit: 3,
            on_failure: OnFailure::Evict,
            t_stall: Duration::from_micros(200),
            stall_sends: 2,
            ..default
        },
        5 => Policy { rules: Rules::Literal, ..default },
        _ => default,
    }
}

fn receivers(group: u16) -> Vec<Receiver> {
    let on_this_node = matches!(group, 3 | 4);
    let hosts = if on_this_node { responders(group).to_vec() } else { vec![receiver(1), receiver(2)] };
    let first_edge = if matches!(group, 1 | 5) { 1 } else { 2 };
    let member = |(position, address): (usize, Ipv6Addr)| Receiver {
        region: matches!(group, 1 | 3).then_some(ReceiverRegion { base: 0x1000 << position, rkey: position as u32 }),
        psn_offset: psn_offset(group, position),
        ..Receiver::new(
            address,
            Qpn::from_octets([0, 1, 0x10 + position as u8]),
            NodeIndex(if on_this_node { 1 } else { first_edge + position }),
        )
    };
    let own = (group == 2).then(|| Receiver { edge: NodeIndex(1), ..member((2, receiver(3))) });
    hosts.into_iter().enumerate().map(member).chain(own).collect()
}

fn tree(group: u16) -> Vec<TreeNode> {
    let handed_over = matches!(group, 5 | 6);
    let node = |name: &str, loopback, sid, parent: Option<usize>, role| TreeNode {
        name: name.to_owned(),
        loopback,
        sid,
        parent: parent.map(NodeIndex),
        parent_sid: None,
        role,
        multicast: None,
        joined: None,
        renewed: 0,
        can_repair: true,
    };
    let own_sid = match group {
        2 => REPLICATE,
        6 => REPLICATE_MULTICAST,
        _ => END_MT,
    };
    let is_headend = matches!(group, 1 | 5);
    let role = NodeRole::of(matches!(group, 2..=4), matches!(group, 1 | 2 | 5 | 6));
    let own = TreeNode {
        parent_sid: matches!(group, 4 | 6).then_some(ABOVE_SID),
        multicast: handed_over.then_some(HANDED_OVER),
        ..node("own", LOOPBACK, own_sid, (!is_headend).then_some(0), role)
    };
    let mut nodes = Vec::new();
    if !is_headend {
        nodes.push(node("above", ABOVE, ABOVE_SID, None, NodeRole::Transit));
    }
    nodes.push(own);
    if role.replicates() {
        let parent = nodes.len() - 1;
        for (loopback, sid) in BELOW.into_iter().zip(BELOW_SIDS) {
            let sid = if handed_over { HANDED_OVER } else { sid };
            nodes.push(node("below", loopback, sid, Some(parent), NodeRole::Edge));
        }
    }
    nodes
}
