//! A core with its store, and nodes' group tables that execute its orders.

use srdma_agent::{AllowedSids, GroupTable};
use srdma_api::{
    BranchStatus, EventKind, Group, GroupStatus, Link, NewGroup, NewReceiver, NodeAnswer, NodeOrder, NodeStatus,
    PROTOCOL, Registration, SourceAddress, Sync, UnreachableReport,
};
use srdma_controller_core::{Core, Pipeline, Principal, Refusal, Role, Row, Settings, Time, Write};
use srdma_group::{OnFailure, Policy};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Timeout of silent nodes, in milliseconds.
pub(crate) const DEAD_AFTER_MS: u64 = 3000;

pub(crate) fn admin() -> Principal {
    Principal { name: "test".to_owned(), role: Role::Admin, tenant: None, node: None }
}

pub(crate) fn loopback(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1)
}

/// The receivers of edge N1 are b1:1 to b1:9, and so on.
pub(crate) fn receiver(edge: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xb0 + edge, 0, 0, 0, 0, host)
}

/// N6 is the headend above the transit nodes N4 and N5; each of them is above the edges N1, N2 and N3.
const LINKS: [(u16, u16); 8] = [(6, 4), (6, 5), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (5, 3)];

/// The controller, its store, its nodes and the time.
pub(crate) struct Cluster {
    pub(crate) pipeline: Pipeline,
    pub(crate) rows: BTreeMap<String, Vec<u8>>,
    pub(crate) nodes: BTreeMap<u16, Node>,
    pub(crate) now_ms: u64,
    /// The events that have left.
    pub(crate) events: Vec<EventKind>,
    /// The registration of each node.
    describe: fn(u16) -> Registration,
    /// Of the next start.
    pub(crate) settings: Settings,
}

pub(crate) struct Node {
    pub(crate) table: GroupTable,
    session: Option<u64>,
    /// It reaches the controller.
    pub(crate) is_connected: bool,
    /// The orders that it has received.
    pub(crate) log: Vec<String>,
    status: Option<NodeStatus>,
}

pub(crate) fn registration(number: u16) -> Registration {
    with_mtu(number, |_, _| 9000)
}

/// Every node has receivers, an End.MT SID and a `replication` prefix.
pub(crate) fn bud_node(number: u16) -> Registration {
    let edge = registration(number);
    let receivers = format!("2001:db8:{:x}::/64", 0xb0 + number).parse().unwrap();
    Registration {
        end_mt: Some(Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 0xe)),
        replication: format!("2001:db8:ff:{number}:f::/80").parse().ok(),
        hosts: edge.hosts.into_iter().filter(|_| number == 6).chain([receivers]).collect(),
        ..edge
    }
}

/// The node with links of this MTU.
pub(crate) fn with_mtu(number: u16, mtu: fn(u16, u16) -> u16) -> Registration {
    let ends = LINKS.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).filter(|(from, _)| *from == number);
    Registration {
        protocol: PROTOCOL,
        name: format!("N{number}"),
        loopback: loopback(number),
        end_mt: (number <= 3).then(|| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 0xe)),
        replication: (number >= 4).then(|| format!("2001:db8:ff:{number}:f::/80").parse().unwrap()),
        links: ends
            .map(|(from, to)| Link { to: loopback(to), mtu: mtu(from.min(to), from.max(to)), cost: 1 })
            .collect(),
        hosts: match number {
            6 => vec!["2001:db8:aa::/64".parse().unwrap()],
            1..=3 => vec![format!("2001:db8:{:x}::/64", 0xb0 + number).parse().unwrap()],
            _ => Vec::new(),
        },
        groups: Vec::new(),
        // N3 is of an earlier version.
        repairs: number != 3,
    }
}

/// Group of source 2001:db8:aa::1 and Proxy Address 2001:db8:cc::1.
pub(crate) fn new_group(on_failure: OnFailure) -> NewGroup {
    let source = SourceAddress { address: "2001:db8:aa::1".parse().unwrap(), qpn: 0x100 };
    NewGroup {
        proxy: Some("2001:db8:cc::1".parse().unwrap()),
        policy: Policy { on_failure, min_receivers: 1, ..Policy::default() },
        ..NewGroup::new(source, 0xd0_0000)
    }
}

fn group_status(awaits_first_psn: bool, branches: Vec<BranchStatus>) -> GroupStatus {
    GroupStatus { group: 1, highest_psn: None, awaits_first_psn, repair: None, branches }
}

/// Lease of nodes.
pub(crate) const LEASE_MS: u64 = 2500;

/// The rows of a state, without its audit log.
fn state(rows: &BTreeMap<String, Vec<u8>>) -> Vec<Row> {
    let is_state = |(key, _): &(&String, &Vec<u8>)| !key.starts_with("audit/");
    rows.iter().filter(is_state).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Whether a controller starts with these rows, or why it does not.
pub(crate) fn restored(rows: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let core = Core::restore(Settings::default(), None, &state(rows), 1, None, Time::default());
    core.map(|_| ()).map_err(|error| error.to_string())
}

/// Hosts that two nodes have may be attached to both.
fn settings(describe: fn(u16) -> Registration) -> Settings {
    let all: Vec<Prefix> = (1..=6).flat_map(|number| describe(number).hosts).collect();
    let is_shared = |prefix: &Prefix| all.iter().filter(|hosts| prefix.overlaps(**hosts)).count() > 1;
    let shared_hosts = ["2001:db8:d0::/56", "2001:db8:aa::/64"].map(|prefix| prefix.parse().unwrap());
    Settings {
        node_dead_after: Duration::from_millis(DEAD_AFTER_MS),
        node_lease: Some(Duration::from_millis(LEASE_MS)),
        shared_hosts: shared_hosts.into_iter().filter(is_shared).collect(),
        ..Settings::default()
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Cluster::of(registration)
    }

    pub(crate) fn of(describe: fn(u16) -> Registration) -> Self {
        let settings = settings(describe);
        let core = Core::restore(settings.clone(), None, &[], 1, None, Time::default()).unwrap();
        let nodes = (1..=6).map(|number| (number, Node::new(&describe(number)))).collect();
        let (pipeline, rows, events) = (Pipeline::new(core), BTreeMap::new(), Vec::new());
        let mut cluster = Cluster { pipeline, rows, nodes, now_ms: 0, events, describe, settings };
        cluster.commit(|_| ());
        cluster.settle();
        cluster
    }

    /// Runs a transaction, which is durable at once.
    pub(crate) fn commit<T>(&mut self, act: impl FnOnce(&mut Core) -> T) -> T {
        let time = Time { monotonic: Duration::from_millis(self.now_ms), unix_ms: self.now_ms };
        let transaction = self.pipeline.transact(time, act);
        for write in transaction.writes {
            match write {
                Write::Put { key, value } => drop(self.rows.insert(key, value)),
                Write::Delete { key } => drop(self.rows.remove(&key)),
            }
        }
        let mut events = self.pipeline.durable(transaction.number).events;
        events.extend(self.pipeline.release().events);
        self.events.extend(events.into_iter().map(|event| event.kind));
        transaction.answer.release(self.pipeline.durable_number()).ok().unwrap()
    }

    /// The controller starts again with these rows; the nodes have to register.
    pub(crate) fn start_with(&mut self, rows: BTreeMap<String, Vec<u8>>, identity: u64) {
        self.start(rows, identity, None);
    }

    /// The controller starts with an empty store, to be rebuilt as another one.
    pub(crate) fn rebuild(&mut self, store: u64) {
        self.start(BTreeMap::new(), 77, Some(store));
    }

    fn start(&mut self, rows: BTreeMap<String, Vec<u8>>, identity: u64, rebuilds: Option<u64>) {
        self.rows = rows;
        let time = Time { monotonic: Duration::from_millis(self.now_ms), unix_ms: self.now_ms };
        let core = Core::restore(self.settings.clone(), None, &state(&self.rows), identity, rebuilds, time).unwrap();
        self.pipeline = Pipeline::new(core);
        self.nodes.values_mut().for_each(|node| node.session = None);
        self.commit(|_| ());
    }

    pub(crate) fn restart(&mut self) {
        self.start_with(self.rows.clone(), 99);
    }

    /// The nodes that are connected register, execute all orders, and answer them.
    pub(crate) fn settle(&mut self) {
        for _ in 0..50 {
            for number in self.nodes.keys().copied().collect::<Vec<_>>() {
                self.sync(number);
            }
        }
    }

    /// A node registers, or executes its orders and reports.
    pub(crate) fn sync(&mut self, number: u16) {
        let node = self.nodes.get_mut(&number).unwrap();
        if !node.is_connected {
            return;
        }
        let Some(session) = node.session else {
            let registration = Registration { groups: node.table.held(), ..(self.describe)(number) };
            let session = self.commit(|core| core.register(&admin(), registration)).unwrap().session;
            self.nodes.get_mut(&number).unwrap().session = Some(session);
            return;
        };
        let idle = |held: srdma_api::HeldGroup| GroupStatus {
            group: held.group,
            highest_psn: None,
            awaits_first_psn: false,
            repair: None,
            branches: Vec::new(),
        };
        let status = node.status.clone().unwrap_or_else(|| NodeStatus {
            groups: node.table.held().into_iter().map(idle).collect(),
            ..NodeStatus::default()
        });
        let answers = self.execute(number);
        let sync = Sync { session, answers, status: Some(status), ..Sync::default() };
        let name = format!("N{number}");
        if self.commit(|core| core.sync(&admin(), &name, sync)).is_err() {
            self.nodes.get_mut(&number).unwrap().session = None;
        }
    }

    fn execute(&mut self, number: u16) -> Vec<NodeAnswer> {
        let orders = self.pipeline.take_orders(loopback(number));
        let node = self.nodes.get_mut(&number).unwrap();
        orders.into_iter().filter_map(|order| node.execute(order)).collect()
    }

    /// The orders of a node are lost.
    pub(crate) fn lose_orders(&mut self, number: u16) {
        assert!(!self.pipeline.take_orders(loopback(number)).is_empty(), "there were orders");
    }

    /// Lets time pass, in which connected nodes report and the controller looks for dead ones.
    pub(crate) fn pass(&mut self, milliseconds: u64) {
        let until = self.now_ms + milliseconds;
        while self.now_ms < until {
            self.now_ms += 100;
            for number in self.nodes.keys().copied().collect::<Vec<_>>() {
                self.sync(number);
            }
            self.commit(|core| {
                core.expire_nodes();
                core.retransmit();
            });
        }
        self.settle();
    }

    pub(crate) fn disconnect(&mut self, number: u16) {
        let node = self.nodes.get_mut(&number).unwrap();
        (node.is_connected, node.session) = (false, None);
    }

    /// A node registers again with other values.
    pub(crate) fn register_as(&mut self, number: u16, describe: fn(u16) -> Registration) {
        self.describe = describe;
        self.nodes.get_mut(&number).unwrap().session = None;
    }

    pub(crate) fn connect(&mut self, number: u16) {
        self.nodes.get_mut(&number).unwrap().is_connected = true;
    }

    /// The node has lost its state.
    pub(crate) fn reinstall(&mut self, number: u16) {
        self.nodes.insert(number, Node::new(&(self.describe)(number)));
    }

    /// A node reports data outstanding on the branch towards another, which expects this PSN.
    pub(crate) fn report_lag(&mut self, node: u16, branch: u16, expected_psn: u32, lag: u32) {
        self.report_branch(node, loopback(branch), expected_psn, lag);
    }

    /// The same of an edge and a receiver.
    pub(crate) fn report_receiver(&mut self, edge: u16, receiver: Ipv6Addr, expected_psn: u32, lag: u32) {
        self.report_branch(edge, receiver, expected_psn, lag);
    }

    /// An edge reports a receiver that has not responded since it restarted, and the highest PSN that it has forwarded.
    pub(crate) fn report_silent_receiver(&mut self, edge: u16, receiver: Ipv6Addr, highest_psn: Option<u32>) {
        self.report_receiver(edge, receiver, 0, 0);
        let status = self.nodes.get_mut(&edge).unwrap().status.as_mut().unwrap();
        let group = &mut status.groups[0];
        group.highest_psn = highest_psn;
        (group.branches[0].expected_psn, group.branches[0].lag) = (None, None);
    }

    fn report_branch(&mut self, node: u16, address: Ipv6Addr, expected_psn: u32, lag: u32) {
        let branch = BranchStatus {
            address,
            expected_psn: Some(expected_psn),
            lag: Some(lag),
            cnps: 0,
            packets_resent: None,
            is_repairing: false,
        };
        let group = group_status(false, vec![branch]);
        self.nodes.get_mut(&node).unwrap().status = Some(NodeStatus { groups: vec![group], ..NodeStatus::default() });
    }

    /// The headend of group 1 reports whether it waits for the first PSN.
    pub(crate) fn report_headend(&mut self, awaits_first_psn: bool) {
        let group = group_status(awaits_first_psn, Vec::new());
        self.nodes.get_mut(&6).unwrap().status = Some(NodeStatus { groups: vec![group], ..NodeStatus::default() });
    }

    /// A node reports these neighbours as unreachable.
    pub(crate) fn report_unreachable(&mut self, node: u16, neighbours: &[u16]) {
        let unreachable = neighbours.iter().map(|neighbour| loopback(*neighbour)).collect();
        self.nodes.get_mut(&node).unwrap().status = Some(NodeStatus { unreachable, ..NodeStatus::default() });
    }

    /// A node reports hosts whose links to it are down.
    pub(crate) fn report_lost(&mut self, node: u16, hosts: &[&str]) {
        let lost_hosts = hosts.iter().map(|prefix| prefix.parse().unwrap()).collect();
        self.nodes.get_mut(&node).unwrap().status = Some(NodeStatus { lost_hosts, ..NodeStatus::default() });
    }

    /// A node reports a neighbour as unreachable at once, beside its status.
    pub(crate) fn hint(&mut self, node: u16, neighbour: u16) {
        let name = format!("N{node}");
        let report = UnreachableReport { unreachable: vec![loopback(neighbour)], ..UnreachableReport::default() };
        self.commit(|core| core.note_unreachable(&admin(), &name, &report)).unwrap();
        self.report_unreachable(node, &[neighbour]);
    }

    /// A node reports at once that its links to hosts are down.
    pub(crate) fn hint_lost(&mut self, node: u16, hosts: &[&str]) {
        let lost_hosts = hosts.iter().map(|prefix| prefix.parse().unwrap()).collect();
        let report = UnreachableReport { lost_hosts, ..UnreachableReport::default() };
        self.commit(|core| core.note_unreachable(&admin(), &format!("N{node}"), &report)).unwrap();
    }

    /// Creates group 1 with these receivers and commits it.
    pub(crate) fn create(&mut self, receivers: &[Ipv6Addr], on_failure: OnFailure) {
        self.create_as(new_group(on_failure), receivers);
    }

    /// The same with other settings.
    pub(crate) fn create_as(&mut self, group: NewGroup, receivers: &[Ipv6Addr]) {
        self.open(group, receivers);
        self.commit_group().unwrap();
    }

    /// Creates group 1 with these receivers.
    pub(crate) fn open(&mut self, group: NewGroup, receivers: &[Ipv6Addr]) {
        let group = self.commit(|core| core.create_group(&admin(), None, group)).unwrap();
        assert_eq!(group, 1);
        for receiver in receivers {
            self.join(*receiver).unwrap();
        }
    }

    /// Commits it.
    pub(crate) fn commit_group(&mut self) -> Result<(), Refusal> {
        let committed = self.commit(|core| core.commit_group(&admin(), 1, None));
        self.settle();
        committed
    }

    pub(crate) fn join(&mut self, address: Ipv6Addr) -> Result<(), Refusal> {
        let receiver = NewReceiver::new(0x1000, 4096);
        self.commit(|core| core.join(&admin(), 1, address, receiver, None))
    }

    pub(crate) fn leave(&mut self, address: Ipv6Addr) -> Result<(), Refusal> {
        self.commit(|core| core.leave(&admin(), 1, address, None))
    }

    /// Group 1 as the API shows it.
    pub(crate) fn group(&mut self) -> Group {
        self.commit(|core| core.group(&admin(), 1)).unwrap().0
    }

    /// The members of group 1 that the API shows as such.
    pub(crate) fn members(&mut self) -> BTreeSet<Ipv6Addr> {
        let members = self.group().members.into_iter();
        members.filter(|member| member.state == srdma_api::ReceiverState::Member).map(|member| member.address).collect()
    }

    /// The receivers that an acknowledgement of the root vouches for: those of the entries that nodes have in effect,
    /// from the headend down, where each parent accepts the child's epoch.
    pub(crate) fn acknowledged(&self) -> BTreeSet<Ipv6Addr> {
        self.below(6).unwrap_or_default()
    }

    /// The same of another headend.
    pub(crate) fn acknowledged_by(&self, headend: u16) -> BTreeSet<Ipv6Addr> {
        self.below(headend).unwrap_or_default()
    }

    /// The entry of group 1 that a node has in effect.
    pub(crate) fn entry(&self, number: u16) -> Option<&srdma_group::GroupEntry> {
        self.nodes[&number].table.entry(1)
    }

    fn below(&self, number: u16) -> Option<BTreeSet<Ipv6Addr>> {
        let entry = self.entry(number)?;
        let mut all = BTreeSet::new();
        for branch in &entry.branches {
            match (1..=6).find(|number| loopback(*number) == branch.responder) {
                Some(child) => {
                    let epoch = self.entry(child)?.epoch;
                    all.extend(self.below(child).filter(|_| epoch >= branch.renewed)?);
                }
                None => drop(all.insert(branch.responder)),
            }
        }
        Some(all)
    }
}

impl Node {
    fn new(registration: &Registration) -> Self {
        let allowed = AllowedSids { end_mt: registration.end_mt, replication: registration.replication };
        Node { table: GroupTable::new(allowed), session: None, is_connected: true, log: Vec::new(), status: None }
    }

    fn execute(&mut self, order: NodeOrder) -> Option<NodeAnswer> {
        self.log.push(match &order {
            NodeOrder::Prepare { name, .. } => format!("prepare {}", name.epoch),
            NodeOrder::Commit { name, .. } => format!("commit {}", name.epoch),
            NodeOrder::Abort { name, .. } => format!("abort {}", name.epoch),
            NodeOrder::Restore { name, .. } => format!("restore {}", name.epoch),
            NodeOrder::Remove { epoch, .. } => format!("remove {epoch}"),
        });
        self.table.execute(order)
    }
}
