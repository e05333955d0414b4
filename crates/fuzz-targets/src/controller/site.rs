//! A controller with its store and the six nodes of a two-level fabric.

use super::draw::{AS_HOSTS, admin};
use srdma_agent::{AllowedSids, GroupTable};
use srdma_api::{
    GroupState, GroupStatus, HeldGroup, Link, NodeStatus, PROTOCOL, Receiver, ReceiverState, Registration, Sync,
};
use srdma_controller_core::{
    Core, Jobs, Pipeline, Refusal, Row, RowError, STATE_PREFIXES, Settings, StatedNode, Tenant, Time, Write,
};
use srdma_fabric::{Encoding, SidPlan, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::sync::LazyLock;
use std::time::Duration;

pub(super) const NODES: u16 = 6;

/// The controller's identity of its store.
pub(super) const STORE: u64 = 1;

/// N6 is above the transit nodes N4 and N5, each of which is above the edges N1, N2 and N3.
const LINKS: [(u16, u16); 8] = [(6, 4), (6, 5), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (5, 3)];

pub(super) const fn loopback(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1)
}

pub(super) fn name_of(number: u16) -> String {
    format!("N{number}")
}

/// The registration of a node, without groups. N3 cannot repair.
pub(super) fn registration(number: u16) -> Registration {
    let ends = LINKS.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).filter(|(from, _)| *from == number);
    let links = ends.map(|(_, to)| Link { to: loopback(to), mtu: 9000, cost: 1 });
    let hosts = AS_HOSTS.iter().filter(|(node, _)| *node == number);
    Registration {
        protocol: PROTOCOL,
        name: name_of(number),
        loopback: loopback(number),
        end_mt: (number <= 3).then(|| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 0xe)),
        replication: if number >= 4 { format!("2001:db8:ff:{number}:f::/80").parse().ok() } else { None },
        links: links.collect(),
        hosts: hosts.filter_map(|(_, prefix)| prefix.parse().ok()).collect(),
        groups: Vec::new(),
        repairs: number != 3,
    }
}

/// Two tenants, of which one is limited, and a stated node.
fn settings() -> Settings {
    let prefixes = ["2001:db8:aa::/64", "2001:db8:b1::/64", "2001:db8:cc::/64"];
    let small = Tenant {
        name: "small".to_owned(),
        prefixes: prefixes.iter().filter_map(|prefix| prefix.parse().ok()).collect(),
        proxies: "2001:db8:cc::/64".parse().ok(),
        groups: 2,
        copies: 2,
        ..Tenant::default()
    };
    let Registration { name, loopback, end_mt, replication, hosts, .. } = registration(2);
    let stated = StatedNode { name, loopback, end_mt, replication, hosts };
    let mut tenants = Settings::default().tenants;
    // A group need not name a Proxy Address.
    tenants.values_mut().for_each(|tenant| tenant.proxies = "2001:db8:cd::/64".parse().ok());
    Settings {
        tenants: tenants.into_iter().chain([(small.name.clone(), small)]).collect(),
        nodes: BTreeMap::from([(stated.name.clone(), stated.identity())]),
        shared_hosts: "2001:db8:d0::/56".parse().into_iter().collect(),
        max_nodes: 8,
        node_lease: Some(Duration::from_millis(2500)),
        ..Settings::default()
    }
}

/// A fabric of four NICs.
static JOBS: LazyLock<Jobs> = LazyLock::new(|| {
    let fabric = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
    let topology = Topology::from_toml(fabric).expect("a fabric");
    let sids = SidPlan::new(&topology, SidPlan::BLOCK).expect("it has few links");
    Jobs::new(topology, sids, Encoding::Nodes)
});

/// A core from rows, as a controller restores it at its start.
pub(super) fn restore(rows: &BTreeMap<String, Vec<u8>>, rebuilds: Option<u64>, now_ms: u64) -> Result<Core, RowError> {
    let is_state = |key: &str| STATE_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    let state: Vec<Row> = rows.iter().filter(|(key, _)| is_state(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    Core::restore(settings(), Some(JOBS.clone()), &state, STORE, rebuilds, time(now_ms))
}

pub(super) fn time(now_ms: u64) -> Time {
    Time { monotonic: Duration::from_millis(now_ms), unix_ms: now_ms }
}

/// What a controller does from time to time.
pub(super) fn pass_time(core: &mut Core) {
    core.expire_nodes();
    core.retransmit();
}

/// Makes changes of a store.
pub(super) fn write(rows: &mut BTreeMap<String, Vec<u8>>, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::Put { key, value } => drop(rows.insert(key, value)),
            Write::Delete { key } => drop(rows.remove(&key)),
        }
    }
}

#[derive(Clone, Debug)]
struct Node {
    table: GroupTable,
    session: Option<u64>,
}

impl Node {
    fn new(number: u16) -> Self {
        let Registration { end_mt, replication, .. } = registration(number);
        Node { table: GroupTable::new(AllowedSids { end_mt, replication }), session: None }
    }
}

/// The controller, its store, the nodes and the time.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pipeline: Pipeline,
    rows: BTreeMap<String, Vec<u8>>,
    /// The writes that are not durable yet, in order.
    waiting: Vec<(u64, Vec<Write>)>,
    nodes: Vec<Node>,
    pub(super) now_ms: u64,
}

/// A site whose nodes have registered.
static REGISTERED: LazyLock<Site> = LazyLock::new(|| {
    let mut site = Site::empty();
    site.settle();
    site
});

impl Site {
    /// A controller with which all nodes have registered.
    pub(super) fn new() -> Self {
        REGISTERED.clone()
    }

    fn empty() -> Self {
        let rows = BTreeMap::new();
        let core = restore(&rows, None, 0).expect("an empty store");
        let nodes = (1..=NODES).map(Node::new).collect();
        let mut site = Site { pipeline: Pipeline::new(core), rows, waiting: Vec::new(), nodes, now_ms: 0 };
        site.transact(|_| ());
        site.flush();
        site
    }

    pub(super) fn core(&self) -> &Core {
        self.pipeline.core()
    }

    fn transact<T>(&mut self, act: impl FnOnce(&mut Core) -> T) -> (T, bool) {
        let transaction = self.pipeline.transact(time(self.now_ms), act);
        let has_written = !transaction.writes.is_empty();
        if has_written {
            self.waiting.push((transaction.number, transaction.writes));
        }
        // The order of answers and durable writes has tests and checkers of its own.
        let value = transaction.answer.release(u64::MAX).unwrap_or_else(|_| unreachable!("no number is greater"));
        (value, has_written)
    }

    /// A request. One that is refused writes nothing.
    pub(super) fn request<T>(&mut self, act: impl FnOnce(&mut Core) -> Result<T, Refusal>) -> Option<T> {
        match self.transact(act) {
            (Ok(value), _) => Some(value),
            (Err(refusal), has_written) => {
                assert!(!refusal.detail.is_empty(), "a refusal without a reason: {:?}", refusal.kind);
                assert!(!has_written, "a request that is refused has written: {refusal}");
                None
            }
        }
    }

    /// Writes of a change of jobs.
    pub(super) fn act(&mut self, act: impl FnOnce(&mut Core)) {
        self.transact(act);
    }

    /// All writes become durable.
    pub(super) fn flush(&mut self) {
        for (number, writes) in std::mem::take(&mut self.waiting) {
            write(&mut self.rows, writes);
            let _ = self.pipeline.durable(number);
        }
        let _ = self.pipeline.release();
    }

    /// A node registers, or executes its orders and reports; whether it had anything to do.
    pub(super) fn sync(&mut self, number: u16) -> bool {
        let position = usize::from(number - 1);
        let Some(session) = self.nodes[position].session else {
            let groups = self.nodes[position].table.held();
            let registration = Registration { groups, ..registration(number) };
            let session = self.request(|core| core.register(&admin(), registration));
            self.nodes[position].session = session.map(|session| session.session);
            return true;
        };
        let orders = self.pipeline.take_orders(loopback(number));
        let has_orders = !orders.is_empty();
        let table = &mut self.nodes[position].table;
        let answers = orders.into_iter().filter_map(|order| table.execute(order)).collect();
        let status = NodeStatus { groups: table.held().iter().map(idle).collect(), ..NodeStatus::default() };
        let sync = Sync { session, answers, status: Some(status), ..Sync::default() };
        if self.request(|core| core.sync(&admin(), &name_of(number), sync)).is_none() {
            self.nodes[position].session = None;
        }
        has_orders
    }

    /// Everything becomes durable, and the nodes execute their orders.
    pub(super) fn settle(&mut self) {
        for _ in 0..4 {
            self.flush();
            let were_busy = (1..=NODES).map(|number| self.sync(number)).fold(false, |one, other| one | other);
            if !were_busy {
                break;
            }
        }
        self.flush();
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.transact(pass_time);
    }

    /// The entries that a node has of each group.
    pub(super) fn held(&self, number: u16) -> Vec<HeldGroup> {
        self.nodes[usize::from(number - 1)].table.held()
    }

    pub(super) fn session(&self, number: u16) -> u64 {
        self.nodes[usize::from(number - 1)].session.unwrap_or_default()
    }

    /// A node loses its memory.
    pub(super) fn reinstall(&mut self, number: u16) {
        self.nodes[usize::from(number - 1)] = Node::new(number);
    }

    /// The controller starts again with the writes that are durable, or with none, to be rebuilt from the nodes.
    pub(super) fn restart(&mut self, rebuilds: bool) {
        self.waiting.clear();
        if rebuilds {
            self.rows.clear();
        }
        let core = restore(&self.rows, rebuilds.then_some(STORE), self.now_ms);
        self.pipeline = Pipeline::new(core.expect("it starts with what it has written"));
        self.nodes.iter_mut().for_each(|node| node.session = None);
        self.transact(|_| ());
        self.flush();
    }

    /// Prefixes of keys, with their numbers of rows.
    pub(super) fn row_count(&self, prefix: &str) -> usize {
        self.rows.keys().filter(|key| key.starts_with(prefix)).count()
    }
}

/// What a controller shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Nodes whose registration is in use.
    confirmed: BTreeSet<(String, Ipv6Addr)>,
    /// And those whose registration waits for an administrator, which register again.
    nodes: BTreeSet<(String, Ipv6Addr)>,
    pub(super) groups: BTreeMap<u32, KeptGroup>,
}

/// What it shows of a group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeptGroup {
    pub(super) is_closing: bool,
    /// Receivers that have joined or are joining.
    pub(super) lasting: BTreeSet<Ipv6Addr>,
    /// And those that leave.
    pub(super) receivers: BTreeSet<Ipv6Addr>,
}

impl Kept {
    /// All that it shows, which can be written as JSON.
    pub(super) fn of(core: &Core) -> Self {
        let page = core.nodes(&admin(), None, Some(100)).expect("an administrator may read");
        assert!(serde_json::to_string(&page).is_ok());
        let is_confirmed = |node: &&srdma_api::Node| node.unconfirmed.is_none();
        let names =
            |nodes: Vec<&srdma_api::Node>| nodes.iter().map(|node| (node.name.clone(), node.loopback)).collect();
        let confirmed = names(page.nodes.iter().filter(is_confirmed).collect());
        let nodes = names(page.nodes.iter().collect());
        let page = core.groups(&admin(), None, None, Some(100)).expect("an administrator may read");
        assert_eq!(page.groups.len() as u64, page.total.min(100));
        let group = |id| core.group(&admin(), id).expect("it is in the list").0;
        let groups = page.groups.iter().map(|summary| {
            let group = group(summary.id);
            assert!(serde_json::to_string(&group).is_ok());
            let lasts = |member: &&Receiver| matches!(member.state, ReceiverState::Member | ReceiverState::Joining);
            let addresses = |members: Vec<&Receiver>| members.iter().map(|member| member.address).collect();
            let kept = KeptGroup {
                is_closing: summary.state == GroupState::Closing,
                lasting: addresses(group.members.iter().filter(lasts).collect()),
                receivers: addresses(group.members.iter().collect()),
            };
            (summary.id, kept)
        });
        Kept { confirmed, nodes, groups: groups.collect() }
    }

    /// Checks what a controller shows after a restart without the loss of a write.
    pub(super) fn is_kept_by(&self, after: &Kept) {
        let are_kept = after.nodes.is_superset(&self.confirmed) && self.nodes.is_superset(&after.nodes);
        assert!(are_kept, "nodes {:?}, then {:?}", self.nodes, after.nodes);
        for (id, group) in &self.groups {
            match after.groups.get(id) {
                // A group that was never made, and is being closed, is gone.
                None => assert!(group.is_closing, "group {id} is gone: {group:?}"),
                Some(after) => {
                    assert!(group.receivers.is_superset(&after.receivers), "group {id}: {group:?}, then {after:?}");
                    assert!(after.receivers.is_superset(&group.lasting), "group {id}: {group:?}, then {after:?}");
                }
            }
        }
        assert!(after.groups.keys().all(|id| self.groups.contains_key(id)), "{self:?}, then {after:?}");
    }
}

fn idle(held: &HeldGroup) -> GroupStatus {
    GroupStatus { group: held.group, highest_psn: None, awaits_first_psn: false, repair: None, branches: Vec::new() }
}
