//! What nodes may say of themselves, and how they are removed and renamed.

use crate::cluster::*;
use srdma_api::{
    EventKind, EvictionRequest, GroupState, HeldGroup, NewGroup, Node, NodeIdentity, NodeOrder, PROTOCOL, ProblemType,
    ReceiverState, Registration, Sync,
};
use srdma_controller_core::{Core, Principal, Refusal, Role, Settings, Tenant, Time};
use srdma_group::{Digest, EntryName, Held, OnFailure, Record};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

fn node_token(number: u16) -> Principal {
    Principal { name: format!("token {number}"), role: Role::Node, tenant: None, node: Some(format!("N{number}")) }
}

/// An edge without links.
fn seventh() -> Registration {
    Registration {
        protocol: PROTOCOL,
        name: "N7".to_owned(),
        loopback: loopback(7),
        end_mt: Some(Ipv6Addr::new(0x2001, 0xdb8, 0xff, 7, 0, 0, 0, 0xe)),
        replication: None,
        links: Vec::new(),
        hosts: vec!["2001:db8:b7::/64".parse().unwrap()],
        groups: Vec::new(),
        repairs: false,
    }
}

impl Cluster {
    fn register(&mut self, principal: &Principal, registration: &Registration) -> Result<u64, Refusal> {
        let session = self.commit(|core| core.register(principal, registration.clone()));
        session.map(|session| session.session)
    }

    fn node(&mut self, name: &str) -> Node {
        self.commit(|core| core.node(&admin(), name)).unwrap()
    }

    fn confirm(&mut self, name: &str, identity: &NodeIdentity) -> Result<(), Refusal> {
        self.commit(|core| core.confirm_node(&admin(), name, identity))
    }

    fn remove(&mut self, name: &str) -> Result<(), Refusal> {
        self.commit(|core| core.remove_node(&admin(), name))
    }

    fn drain(&mut self, number: u16) {
        self.commit(|core| core.drain_node(&admin(), &format!("N{number}"), true)).unwrap();
        self.settle();
    }

    fn names(&mut self) -> Vec<String> {
        let page = self.commit(|core| core.nodes(&admin(), None, None)).unwrap();
        page.nodes.into_iter().map(|node| node.name).collect()
    }

    /// Actor, action and target of the audit log's entries.
    fn audit(&self) -> Vec<[String; 3]> {
        let rows = self.rows.iter().filter(|(key, _)| key.starts_with("audit/"));
        let entries = rows.map(|(_, value)| serde_json::from_slice::<srdma_api::AuditEntry>(value).unwrap());
        entries.map(|entry| [entry.who, entry.action, entry.target]).collect()
    }
}

fn kind<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> ProblemType {
    refused.unwrap_err().kind
}

/// D125
#[test]
fn an_unconfirmed_node_takes_part_in_nothing() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let rows = cluster.rows.clone();
    assert_eq!(kind(cluster.register(&node_token(7), &seventh())), ProblemType::NodeUnconfirmed);
    assert_eq!(cluster.rows, rows, "nothing is stored");
    let shown = cluster.node("N7");
    assert_eq!((shown.is_alive, shown.hosts.len(), shown.end_mt), (false, 0, None));
    assert_eq!(shown.unconfirmed, Some(seventh().identity()));
    assert_eq!(cluster.names().last().unwrap(), "N7");
    let refused = cluster.join("2001:db8:b7::1".parse().unwrap()).unwrap_err();
    assert!(refused.detail.contains("node N7 has registered it, which is not confirmed"), "{refused}");
    assert_eq!(kind(cluster.register(&node_token(1), &seventh())), ProblemType::Forbidden);
    let unbound = Principal { node: None, ..node_token(7) };
    assert_eq!(kind(cluster.register(&unbound, &seventh())), ProblemType::Forbidden);

    let other = NodeIdentity { hosts: Vec::new(), ..seventh().identity() };
    assert_eq!(kind(cluster.confirm("N7", &other)), ProblemType::VersionMismatch);
    assert_eq!(kind(cluster.confirm("N8", &other)), ProblemType::UnknownNode);
    let confirmed = seventh().identity();
    assert_eq!(
        kind(cluster.commit(|core| core.confirm_node(&node_token(7), "N7", &confirmed))),
        ProblemType::Forbidden
    );
    cluster.confirm("N7", &confirmed).unwrap();
    cluster.register(&node_token(7), &seventh()).unwrap();
    let shown = cluster.node("N7");
    assert_eq!((shown.is_alive, shown.hosts, shown.unconfirmed), (true, seventh().hosts, None));
    let [who, action, target] = cluster.audit().pop().unwrap();
    assert_eq!([who.as_str(), &action], ["test", "confirm"]);
    assert_eq!(target, "node N7 loopback 2001:db8:ff:7::1 end_mt 2001:db8:ff:7::e hosts 2001:db8:b7::/64");
}

/// D125: also after a restart of the controller.
#[test]
fn a_confirmed_node_is_used_as_far_as_it_is_confirmed() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    // Receivers of N2 and N3, and the SID of N3.
    let said = registration(1);
    let more = Registration {
        end_mt: registration(3).end_mt,
        hosts: [said.hosts.clone(), vec![format!("{}/128", receiver(2, 1)).parse().unwrap()]].concat(),
        ..said.clone()
    };
    for _ in 0..2 {
        cluster.register(&node_token(1), &more).unwrap();
        let shown = cluster.node("N1");
        assert_eq!((&shown.hosts, shown.end_mt), (&said.hosts, None));
        assert_eq!(shown.unconfirmed, Some(more.identity()));
        cluster.restart();
        cluster.settle();
        cluster.register(&node_token(1), &more).unwrap();
    }
    cluster.join(receiver(2, 1)).unwrap();
    cluster.settle();
    let edge = cluster
        .group()
        .tree
        .unwrap()
        .nodes
        .into_iter()
        .find(|node| node.branches.iter().any(|branch| branch.address == receiver(2, 1)));
    assert_eq!(edge.unwrap().name, "N2");
    cluster.register(&node_token(1), &more).unwrap();
    assert_eq!(kind(cluster.confirm("N1", &more.identity())), ProblemType::PrefixOverlap);
    cluster.register(&node_token(1), &said).unwrap();
    assert_eq!(cluster.node("N1").unconfirmed, None);
}

/// D126: an administrator's registration is checked as well.
#[test]
fn prefixes_of_others_are_refused() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let changes: [fn(&mut Registration); 6] = [
        |node| node.replication = "::/0".parse().ok(),
        |node| node.replication = "2001:db8:ff:4:f::/96".parse().ok(),
        |node| node.end_mt = registration(3).end_mt,
        |node| node.hosts = vec![format!("{}/128", receiver(1, 1)).parse().unwrap()],
        |node| node.end_mt = "2001:db8:cc::1".parse().ok(),
        |node| node.replication = "2001:db8:cc::/96".parse().ok(),
    ];
    for change in changes {
        let mut registration = seventh();
        change(&mut registration);
        assert_eq!(kind(cluster.register(&admin(), &registration)), ProblemType::PrefixOverlap, "{registration:?}");
    }
    cluster.register(&admin(), &seventh()).unwrap();
}

fn stated(node: &Registration, tenants: BTreeMap<String, Tenant>) -> Settings {
    Settings { nodes: BTreeMap::from([(node.name.clone(), node.identity())]), tenants, ..Settings::default() }
}

/// D125: controller.toml outranks what administrators and nodes say.
#[test]
fn a_stated_node_needs_no_confirmation() {
    let settings = stated(&seventh(), Settings::default().tenants);
    let mut core = Core::restore(settings, None, &[], 1, None, Time::default()).unwrap();
    core.register(&node_token(7), seventh()).unwrap();
    let more = Registration { hosts: vec!["2001:db8::/32".parse().unwrap()], ..seventh() };
    core.register(&admin(), more.clone()).unwrap();
    let shown = core.node(&admin(), "N7").unwrap();
    assert_eq!((shown.hosts.len(), shown.unconfirmed), (0, Some(more.identity())));
    assert_eq!(kind(core.confirm_node(&admin(), "N7", &more.identity())), ProblemType::NodeConflict);
    let moved = Registration { loopback: loopback(8), ..seventh() };
    assert_eq!(kind(core.register(&admin(), moved)), ProblemType::NodeConflict);
    let renamed = Registration { name: "N8".to_owned(), ..seventh() };
    assert_eq!(kind(core.register(&admin(), renamed)), ProblemType::NodeConflict);
    assert_eq!(kind(core.rename_node(&admin(), "N7", "N8")), ProblemType::NodeConflict);
}

#[test]
fn the_number_of_nodes_is_limited() {
    let settings = Settings { max_nodes: 1, ..Settings::default() };
    let mut core = Core::restore(settings, None, &[], 1, None, Time::default()).unwrap();
    core.register(&admin(), seventh()).unwrap();
    assert_eq!(kind(core.register(&admin(), registration(1))), ProblemType::NodeQuotaExceeded);
    core.register(&admin(), seventh()).unwrap();
}

/// D127: a node without groups is deleted, also from the store; its name and loopback are free.
#[test]
fn an_unused_node_is_removed() {
    let mut cluster = Cluster::new();
    cluster.register(&admin(), &seventh()).unwrap();
    assert_eq!(kind(cluster.remove("N7")), ProblemType::NodeInUse, "it is connected");
    let moved = Registration { loopback: loopback(8), ..seventh() };
    assert_eq!(kind(cluster.register(&admin(), &moved)), ProblemType::NodeConflict);
    cluster.pass(2 * DEAD_AFTER_MS);
    assert_eq!(kind(cluster.commit(|core| core.remove_node(&node_token(7), "N7"))), ProblemType::Forbidden);
    cluster.remove("N7").unwrap();
    assert_eq!(cluster.names().len(), 6);
    assert!(!cluster.rows.contains_key(&format!("node/{}", loopback(7))));
    assert_eq!(cluster.audit().pop().unwrap(), ["test", "remove", "node N7"]);
    cluster.register(&admin(), &moved).unwrap();
    assert_eq!(cluster.node("N7").loopback, loopback(8));
    assert_eq!(
        kind(cluster.register(&node_token(9), &Registration { name: "N9".to_owned(), ..seventh() })),
        ProblemType::NodeUnconfirmed
    );
    cluster.remove("N9").unwrap();
    assert_eq!(kind(cluster.remove("N9")), ProblemType::UnknownNode);
}

/// D127: the receivers of an edge are evicted, whether it is lost or drained.
#[test]
fn a_removed_edge_loses_its_receivers() {
    for is_lost in [true, false] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(1, 2), receiver(2, 1)], OnFailure::Strict);
        if is_lost {
            cluster.disconnect(1);
            cluster.pass(2 * DEAD_AFTER_MS);
        } else {
            cluster.drain(1);
        }
        cluster.remove("N1").unwrap();
        cluster.pass(1000);
        assert_eq!(cluster.members(), [receiver(2, 1)].into(), "lost: {is_lost}");
        let group = cluster.group();
        assert_eq!((group.summary.state, group.failure), (GroupState::Ready, None));
        let evicted = cluster.audit().into_iter().filter(|[_, action, _]| action == "evict");
        assert_eq!(evicted.map(|[who, ..]| who).collect::<Vec<_>>(), ["test"; 2]);
        if is_lost {
            assert_eq!(cluster.names(), ["N2", "N3", "N4", "N5", "N6"]);
            assert_eq!(cluster.nodes[&1].log.last().unwrap(), "commit 1");
        } else {
            assert!(cluster.nodes[&1].log.last().unwrap().starts_with("remove"));
        }
    }
}

/// D127: nothing changes.
#[test]
fn a_node_without_which_a_group_does_not_work_stays() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    for number in [6, 1] {
        cluster.disconnect(number);
    }
    cluster.pass(2 * DEAD_AFTER_MS);
    let refused = cluster.remove("N6").unwrap_err();
    assert_eq!(refused.kind, ProblemType::NodeInUse);
    assert!(refused.detail.contains("group 1: it is the headend"), "{refused}");
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    cluster.drain(1);
    let refused = cluster.remove("N1").unwrap_err();
    assert!(refused.detail.contains("group 1: its receivers cannot be evicted"), "{refused}");
    assert!(!cluster.node("N1").is_removing);
    let states: Vec<ReceiverState> = cluster.group().members.iter().map(|member| member.state).collect();
    assert_eq!(states, [ReceiverState::Member]);
    // A drained transit node has been rerouted around.
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let used = cluster.group().tree.unwrap().nodes.into_iter().find(|node| node.role == "transit").unwrap().name;
    let number = used.trim_start_matches('N').parse().unwrap();
    cluster.drain(number);
    cluster.remove(&used).unwrap();
}

/// D127: the node may use its former name until it registers with the new one.
#[test]
fn a_node_is_renamed_in_service() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let rename =
        |cluster: &mut Cluster, name: &str, new: &str| cluster.commit(|core| core.rename_node(&admin(), name, new));
    assert_eq!(kind(rename(&mut cluster, "N1", "N2")), ProblemType::NodeConflict);
    assert_eq!(kind(rename(&mut cluster, "N1", "N\x1b")), ProblemType::InvalidRequest);
    rename(&mut cluster, "N1", "leaf1").unwrap();
    assert_eq!(cluster.audit().pop().unwrap(), ["test", "rename", "node N1 to leaf1"]);
    for _ in 0..2 {
        // It reports and registers as N1.
        cluster.pass(2 * DEAD_AFTER_MS);
        assert!(cluster.node("leaf1").is_alive);
        let shown = cluster.group().tree.unwrap().nodes.into_iter().map(|node| node.name);
        assert!(shown.collect::<Vec<_>>().contains(&"leaf1".to_owned()));
        cluster.restart();
        cluster.settle();
    }
    assert_eq!(
        kind(cluster.register(&admin(), &Registration { name: "N1".to_owned(), ..seventh() })),
        ProblemType::NodeConflict
    );
    let new = Registration { name: "leaf1".to_owned(), ..registration(1) };
    cluster.register(&admin(), &new).unwrap();
    let former = registration(1);
    assert_eq!(kind(cluster.register(&admin(), &former)), ProblemType::NodeConflict);
    cluster.register(&admin(), &Registration { name: "N1".to_owned(), ..seventh() }).unwrap();
}

/// D99, D125: whatever a node requests, and whatever it says about groups of others.
#[test]
fn an_edge_evicts_its_own_receivers_only() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let mut request = |number: u16, address: Ipv6Addr| {
        let name = format!("N{number}");
        let session = cluster.register(&node_token(number), &registration(number)).unwrap();
        let request = EvictionRequest { group: 1, receiver: address, cause: "stalled".to_owned() };
        let sync = Sync { session, eviction_requests: vec![request], ..Sync::default() };
        cluster.commit(|core| core.sync(&node_token(number), &name, sync)).unwrap();
        cluster.restart();
        cluster.settle();
        cluster.members().contains(&address)
    };
    assert!(request(1, receiver(2, 1)), "it is not at N1");
    assert!(request(6, receiver(2, 1)), "N6 is the headend");
    assert!(!request(1, receiver(1, 1)));
    let evicted: Vec<_> = cluster.audit().into_iter().filter(|[_, action, _]| action == "evict").collect();
    let target = format!("group 1 receiver {} at the request of node N1", receiver(1, 1));
    assert_eq!(evicted, [["token 1".to_owned(), "evict".to_owned(), target]]);
}

/// A registration of a node with an entry of group 1 that no store knows.
fn claiming(number: u16, epoch: u32) -> Registration {
    let name = EntryName { epoch, ..EntryName::default() };
    let held = HeldGroup {
        store: 1,
        group: 1,
        proxy: "2001:db8:cc::1".parse().unwrap(),
        designated_qpn: 0xd0_0000,
        entries: Held { committed: Some(name), prepared: None },
        recovery_snapshots: Vec::new(),
    };
    Registration { groups: vec![held], ..registration(number) }
}

/// D128: a node says nothing about groups that it is not in.
#[test]
fn a_node_cannot_stop_groups_of_others() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    cluster.register(&node_token(3), &claiming(3, 99)).unwrap();
    let orders = cluster.pipeline.take_orders(loopback(3));
    assert!(matches!(orders.as_slice(), [NodeOrder::Remove { group: 1, epoch: 99, .. }]), "{orders:?}");
    assert_eq!(cluster.group().summary.state, GroupState::Ready);
    // Also if it is the first to register with a restarted controller.
    cluster.restart();
    cluster.register(&node_token(3), &claiming(3, u32::MAX)).unwrap();
    cluster.settle();
    cluster.pass(1000);
    let group = cluster.group();
    assert_eq!((group.summary.state, group.failure), (GroupState::Ready, None));
    cluster.join(receiver(2, 1)).unwrap();
    cluster.pass(1000);
    assert_eq!(cluster.members(), [receiver(1, 1), receiver(2, 1)].into());
}

/// D128: claims of great numbers, of this store and another.
#[test]
fn claims_of_a_node_use_up_no_numbers() {
    let mut cluster = Cluster::new();
    let claim = |store: u64, numbers: &[u32]| {
        let claimed = claiming(3, 1).groups.remove(0);
        let groups = numbers.iter().map(|group| HeldGroup { store, group: *group, ..claimed.clone() }).collect();
        Registration { groups, ..registration(3) }
    };
    cluster.register(&node_token(3), &claim(1, &[2, 3, u32::MAX])).unwrap();
    cluster.register(&node_token(3), &claim(77, &[4, u32::MAX])).unwrap();
    let mut create = |proxy: u16| {
        let address = Ipv6Addr::new(0x2001, 0xdb8, 0xcd, 0, 0, 0, 0, proxy);
        let mut request = NewGroup { proxy: Some(address), ..new_group(OnFailure::Strict) };
        request.source.qpn += u32::from(proxy);
        cluster.commit(|core| core.create_group(&admin(), None, request)).unwrap()
    };
    assert_eq!([create(1), create(2), create(3)], [1, 5, 6]);
    let many: Vec<u32> = (100..100 + (1 << 15)).collect();
    assert_eq!(kind(cluster.register(&node_token(3), &claim(77, &many))), ProblemType::InvalidRequest);
    // A removed group of this store keeps its number, also after a restart.
    cluster.register(&node_token(3), &claim(1, &[7])).unwrap();
    cluster.commit(|core| core.remove_foreign(&admin(), 1, 7)).unwrap();
    cluster.register(&node_token(3), &registration(3)).unwrap();
    cluster.restart();
    let listed = cluster.commit(|core| core.foreign_groups(&admin())).unwrap().groups;
    assert!(listed.iter().all(|foreign| foreign.group != 7), "{listed:?}");
    let mut request = new_group(OnFailure::Strict);
    request.proxy = "2001:db8:cd::9".parse().ok();
    request.source.qpn = 0x900;
    assert_eq!(cluster.commit(|core| core.create_group(&admin(), None, request)).unwrap(), 8);
}

/// D98, D128: a node that claims to be the headend of a group whose source is not at it.
#[test]
fn a_forged_recovery_snapshot_is_not_taken_over() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(2, 1)], OnFailure::Strict);
    let held = cluster.nodes[&6].table.held().remove(0);
    let forged = held.recovery_snapshots[0].replace(&loopback(6).to_string(), &loopback(1).to_string());
    assert_ne!(forged, held.recovery_snapshots[0]);
    let record = serde_json::from_str::<serde_json::Value>(&forged).unwrap()["record"].take();
    let record: Record = serde_json::from_value(record).unwrap();
    let name = EntryName { epoch: record.epoch, record: Digest::of_record(&record), ..EntryName::default() };
    let entries = Held { committed: Some(name), prepared: None };
    let claimed = HeldGroup { entries, recovery_snapshots: vec![forged], ..held };
    cluster.rebuild(1);
    cluster.disconnect(1);
    let liar = Registration { groups: vec![claimed], ..registration(1) };
    cluster.register(&admin(), &liar).unwrap();
    cluster.settle();
    let group = cluster.group();
    assert_eq!((group.summary.state, group.failure), (GroupState::Ready, None));
    assert_eq!(group.tree.unwrap().nodes[0].name, "N6");
    assert_eq!(cluster.members(), [receiver(2, 1)].into());
}

/// Events of the network's administration reach those that read the network.
#[test]
fn changes_of_nodes_are_events() {
    let mut cluster = Cluster::new();
    let mut seen = Vec::new();
    let mut note = |cluster: &mut Cluster| seen.extend(std::mem::take(&mut cluster.events));
    let _ = cluster.register(&node_token(7), &seventh());
    let _ = cluster.register(&node_token(7), &seventh());
    note(&mut cluster);
    cluster.confirm("N7", &seventh().identity()).unwrap();
    cluster.commit(|core| core.rename_node(&admin(), "N7", "N8")).unwrap();
    cluster.remove("N8").unwrap();
    note(&mut cluster);
    let node = |name: &str| name.to_owned();
    assert_eq!(
        seen.split_off(seen.len() - 4),
        [
            EventKind::NodeUnconfirmed { node: node("N7") },
            EventKind::NodeConfirmed { node: node("N7") },
            EventKind::NodeRenamed { node: node("N7"), name: node("N8") },
            EventKind::NodeRemoved { node: node("N8") },
        ]
    );
}
