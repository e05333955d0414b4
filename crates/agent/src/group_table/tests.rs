//! The table between a lifecycle that gives orders and nodes of the dataplane that carry them out.

use super::*;
use srdma_dataplane::{Node, NodeConfig};
use srdma_group::{
    Admission, Lifecycle, Newcomer, NodeIndex, Order, Policy, PsnOffset, Receiver, Record, RepairEntry, Source, Tree,
    TreeNode,
};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::time::Duration;

/// Identity of the controller's store, and of another.
const STORE: u64 = 1;
const OTHER_STORE: u64 = 2;

fn loopback(number: usize) -> Ipv6Addr {
    format!("2001:db8:{number:x}::1").parse().unwrap()
}

fn receiver_address(number: usize) -> Ipv6Addr {
    format!("2001:db8:100::{number:x}").parse().unwrap()
}

fn end_mt(number: usize) -> Ipv6Addr {
    format!("5f00:0:{number:x}:e::").parse().unwrap()
}

fn replication(number: usize) -> Prefix {
    Prefix::new(format!("5f00:0:{number:x}:a::").parse().unwrap(), 96).unwrap()
}

/// N1 above N2, and that above the edges N3 and N4 with a receiver each. What lies in N2's replication prefix is the
/// SID of the group's number.
fn record() -> Record {
    let node = |number: usize, parent: Option<usize>, role| TreeNode {
        name: format!("N{number}"),
        loopback: loopback(number),
        sid: match role {
            NodeRole::Edge => end_mt(number),
            NodeRole::Transit | NodeRole::Bud => Ipv6Addr::from_bits(replication(number).address().to_bits() | 7),
        },
        parent: parent.map(NodeIndex),
        parent_sid: None,
        role,
        multicast: None,
        joined: None,
        renewed: 0,
        can_repair: false,
    };
    let receiver = |number: usize, edge| {
        Receiver::new(receiver_address(number), Qpn::new(0x100 + number as u32).unwrap(), NodeIndex(edge))
    };
    Record {
        id: GroupId(7),
        epoch: 1,
        proxy: "2001:db8:ff::100".parse().unwrap(),
        designated_qpn: Qpn::new(0xABCD).unwrap(),
        initial_psn: Psn::new(0),
        path_mtu: PathMtu::Octets1024,
        link_mtu: 4608,
        source: Source { address: "2001:db8:f::1".parse().unwrap(), qpn: Qpn::new(0x77).unwrap() },
        region: None,
        receivers: vec![receiver(3, 2), receiver(4, 3)],
        tree: Tree::new(vec![
            node(1, None, NodeRole::Transit),
            node(2, Some(0), NodeRole::Transit),
            node(3, Some(1), NodeRole::Edge),
            node(4, Some(1), NodeRole::Edge),
        ])
        .unwrap(),
        policy: Policy { min_receivers: 1, ..Policy::default() },
        more_regions: Vec::new(),
    }
}

/// A node with its table.
struct Agent {
    table: GroupTable,
    node: Node,
}

impl Agent {
    fn new(number: usize) -> Self {
        let allowed = AllowedSids { end_mt: Some(end_mt(number)), replication: Some(replication(number)) };
        let mut node = Node::new(NodeConfig::new(loopback(number), Vec::new()));
        let end_mt = Prefix::host(end_mt(number));
        node.apply(Command::AddSid { prefix: end_mt, behavior: SidBehavior::EndMt { require_hmac: false } }).unwrap();
        Agent { table: GroupTable::new(allowed), node }
    }

    /// Carries an order out as the control task does.
    fn execute(&mut self, order: NodeOrder) -> Option<NodeAnswer> {
        let change = match self.table.plan(order, |_| false) {
            Plan::Nothing => return None,
            Plan::Answer(answer) => return Some(answer),
            Plan::Apply(change) => change,
        };
        let (after, answer) = self.table.apply(&change);
        for command in change.commands.iter().chain(&change.afterwards) {
            if let Err(error) = self.node.apply(command.clone()) {
                return change.refused(error.to_string());
            }
        }
        self.table = after;
        answer
    }

    /// Epoch of the group and number of SIDs, as the dataplane has them.
    fn has(&self) -> (Option<u32>, usize) {
        (self.node.group_entry(GroupId(7)).map(|entry| entry.epoch), self.node.sids().count())
    }

    /// That the table knows what the node has.
    #[track_caller]
    fn check(&self) {
        let held = self.table.held().first().and_then(|held| held.entries.committed).map(|name| name.epoch);
        assert_eq!(held, self.has().0);
        assert_eq!(self.table.commands().len(), self.has().1 - 1 + usize::from(held.is_some()));
    }
}

/// The controller's message for an order of its lifecycle.
fn to_node(order: Order) -> Option<(Ipv6Addr, NodeOrder)> {
    let recovery_snapshot =
        |entry: &GroupEntry| entry.headend.is_some().then(|| format!("recovery_snapshot of epoch {}", entry.epoch));
    Some(match order {
        Order::Prepare { node, name, entry } => {
            (node, NodeOrder::Prepare { store: STORE, name, recovery_snapshot: recovery_snapshot(&entry), entry })
        }
        Order::Commit { node, name, is_first } => (node, NodeOrder::Commit { store: STORE, group: 7, name, is_first }),
        Order::Abort { node, name } => (node, NodeOrder::Abort { store: STORE, group: 7, name }),
        Order::Restore { node, name, entry } => {
            (node, NodeOrder::Restore { store: STORE, name, recovery_snapshot: recovery_snapshot(&entry), entry })
        }
        Order::Remove { node, epoch } => (node, NodeOrder::Remove { store: STORE, group: 7, epoch }),
        _ => return None,
    })
}

fn deliver(lifecycle: &mut Lifecycle, node: Ipv6Addr, answer: NodeAnswer) {
    match answer {
        NodeAnswer::Prepared { name, .. } => lifecycle.prepared(node, name),
        NodeAnswer::Refused { name, reason, .. } => lifecycle.refused(node, name, reason),
        NodeAnswer::Committed { name, .. } => lifecycle.committed(node, name),
        NodeAnswer::Removed { epoch, .. } => lifecycle.removed(node, epoch),
    }
}

/// Executes all orders; the source pauses at once.
fn settle(lifecycle: &mut Lifecycle, agents: &mut BTreeMap<Ipv6Addr, Agent>) {
    while let Some(order) = lifecycle.next_order() {
        match order {
            Order::Pause { round } => lifecycle.quiescent(round, Psn::new(40), 3),
            Order::Ready { round } => lifecycle.running(round),
            order => {
                let Some((node, order)) = to_node(order) else { continue };
                if let Some(answer) = agents.get_mut(&node).expect("a node").execute(order) {
                    deliver(lifecycle, node, answer);
                }
            }
        }
    }
}

fn running() -> (Lifecycle, BTreeMap<Ipv6Addr, Agent>) {
    let mut agents = (1..=4).map(|number| (loopback(number), Agent::new(number))).collect();
    let mut lifecycle = Lifecycle::create(record()).unwrap();
    settle(&mut lifecycle, &mut agents);
    assert!(lifecycle.is_steady());
    (lifecycle, agents)
}

fn states(agents: &BTreeMap<Ipv6Addr, Agent>) -> Vec<(Option<u32>, usize)> {
    agents.values().for_each(Agent::check);
    agents.values().map(Agent::has).collect()
}

fn newcomer(number: usize, edge: usize) -> Newcomer {
    let qpn = Qpn::new(0x300).unwrap();
    Newcomer {
        address: receiver_address(number),
        qpn,
        region: None,
        edge: loopback(edge),
        admission: Admission::AtOnce,
        more_regions: Vec::new(),
        psn_offset: PsnOffset::ZERO,
    }
}

/// D31, D30, D25: creation, a join, an eviction that empties an edge, the end; Replication SIDs come and go with the
/// group.
#[test]
fn a_group_is_created_changed_and_removed() {
    let (mut lifecycle, mut agents) = running();
    assert_eq!(states(&agents), [(Some(1), 2), (Some(1), 2), (Some(1), 1), (Some(1), 1)]);
    lifecycle.join(vec![newcomer(9, 3)], Vec::new(), None).unwrap();
    settle(&mut lifecycle, &mut agents);
    assert_eq!(agents[&loopback(3)].has(), (Some(2), 1));
    lifecycle.evict(&[receiver_address(4)]).unwrap();
    settle(&mut lifecycle, &mut agents);
    assert_eq!(states(&agents)[3], (None, 1), "N4 has no receiver any more");
    let recovery_snapshot = |number| agents[&loopback(number)].table.held()[0].recovery_snapshots.clone();
    assert_eq!((recovery_snapshot(1), recovery_snapshot(2)), (vec!["recovery_snapshot of epoch 3".to_owned()], vec![]));
    lifecycle.close();
    settle(&mut lifecycle, &mut agents);
    assert!(lifecycle.is_closed());
    assert_eq!(states(&agents), [(None, 1); 4]);
}

/// R6, D17: it knows nothing of the branches of restored groups, and requests no epoch twice.
#[test]
fn a_restarted_node_is_given_its_groups() {
    let (mut lifecycle, mut agents) = running();
    agents.insert(loopback(2), Agent::new(2));
    lifecycle.restarted(loopback(2));
    settle(&mut lifecycle, &mut agents);
    assert!(lifecycle.is_steady());
    assert_eq!(states(&agents)[1], (Some(1), 2));
    let unknown = |number| agents[&loopback(number)].node.acknowledgements(GroupId(7)).unwrap().unknown_branches();
    assert_eq!((unknown(2), unknown(1)), (2, 0));
    // A node that was unreachable has kept the group with its branches.
    let held = agents[&loopback(1)].table.held()[0].entries;
    lifecycle.registered(loopback(1), held).unwrap();
    settle(&mut lifecycle, &mut agents);
    assert!(lifecycle.is_steady());
    assert_eq!(agents[&loopback(1)].node.acknowledgements(GroupId(7)).unwrap().unknown_branches(), 0);
}

fn entry(number: usize, epoch: u32) -> (Box<GroupEntry>, EntryName) {
    let group = srdma_group::Group::new(Record { epoch, ..record() }).unwrap();
    let entry = group.at(NodeIndex(number - 1)).unwrap();
    let name = group.name_of(&entry);
    (Box::new(entry), name)
}

fn prepare(number: usize, epoch: u32) -> NodeOrder {
    let (entry, name) = entry(number, epoch);
    NodeOrder::Prepare { store: STORE, name, entry, recovery_snapshot: None }
}

fn restore(number: usize, epoch: u32) -> NodeOrder {
    let (entry, name) = entry(number, epoch);
    NodeOrder::Restore { store: STORE, name, entry, recovery_snapshot: None }
}

/// Repeated orders are answered again, outdated ones are refused, and only prepared entries are committed.
#[test]
fn outdated_orders_have_no_effect() {
    let mut agent = Agent::new(2);
    let name = |epoch| entry(2, epoch).1;
    let commit = |epoch| NodeOrder::Commit { store: STORE, group: 7, name: name(epoch), is_first: false };
    let abort = |epoch| NodeOrder::Abort { store: STORE, group: 7, name: name(epoch) };
    let remove = |epoch| NodeOrder::Remove { store: STORE, group: 7, epoch };
    let prepared = |epoch| Some(NodeAnswer::Prepared { group: 7, name: name(epoch) });
    let committed = |epoch| Some(NodeAnswer::Committed { group: 7, name: name(epoch) });
    let refused =
        |epoch, reason: &str| Some(NodeAnswer::Refused { group: 7, name: name(epoch), reason: reason.to_owned() });
    assert_eq!(agent.execute(commit(3)), refused(3, "nothing is prepared for epoch 3 of group 7"));
    assert_eq!(agent.execute(prepare(2, 3)), prepared(3));
    assert_eq!(agent.execute(prepare(2, 3)), prepared(3));
    let outdated = "epoch 2 of group 7 is older than epoch 3, which the node has";
    assert_eq!(agent.execute(prepare(2, 2)), refused(2, outdated), "older than what is prepared");
    assert_eq!(agent.execute(abort(2)), None);
    assert_eq!((agent.execute(commit(3)), agent.execute(commit(3))), (committed(3), committed(3)));
    assert_eq!(agent.execute(prepare(2, 3)), prepared(3), "in effect already");
    assert_eq!(agent.execute(prepare(2, 4)), prepared(4));
    assert_eq!(agent.execute(commit(3)), committed(3));
    assert_eq!(agent.execute(restore(2, 3)), committed(3));
    assert_eq!(agent.execute(abort(4)), None);
    assert_eq!(agent.table.held()[0].entries.prepared, None);
    assert_eq!(agent.execute(prepare(2, 5)), prepared(5));
    assert_eq!(agent.execute(restore(2, 4)), committed(4), "it replaces what is prepared");
    assert_eq!(agent.table.held()[0].entries.prepared, None);
    assert_eq!(agent.execute(remove(2)), None, "older than what is in effect");
    let removed = Some(NodeAnswer::Removed { store: STORE, group: 7, epoch: 5 });
    assert_eq!((agent.execute(remove(5)), agent.execute(remove(5))), (removed.clone(), removed));
    let outdated = "epoch 4 of group 7 is older than epoch 5, which the node has";
    assert_eq!((agent.execute(prepare(2, 4)), agent.has()), (refused(4, outdated), (None, 1)));
}

/// D97: the number of an epoch does not name a record. Another record of the same epoch is never answered as this one.
#[test]
fn entries_are_named_by_their_record() {
    let mut agent = Agent::new(2);
    let (entry, name) = entry(2, 3);
    let group = srdma_group::Group::new(Record { epoch: 3, link_mtu: 5000, ..record() }).unwrap();
    let other = group.name_of(&group.at(NodeIndex(1)).unwrap());
    assert_eq!((other.epoch, other.entry), (name.epoch, name.entry), "the record differs elsewhere");
    let prepare = |name| NodeOrder::Prepare { store: STORE, name, entry: entry.clone(), recovery_snapshot: None };
    let commit = |name| NodeOrder::Commit { store: STORE, group: 7, name, is_first: false };
    let text = "epoch 3 of group 7 is known with another record".to_owned();
    let refused = Some(NodeAnswer::Refused { group: 7, name: other, reason: text });
    assert_eq!(agent.execute(prepare(name)), Some(NodeAnswer::Prepared { group: 7, name }));
    assert_eq!(agent.execute(prepare(other)), refused);
    let text = "nothing is prepared for epoch 3 of group 7".to_owned();
    assert_eq!(agent.execute(commit(other)), Some(NodeAnswer::Refused { group: 7, name: other, reason: text }));
    assert_eq!(agent.execute(commit(name)), Some(NodeAnswer::Committed { group: 7, name }));
    assert_eq!(agent.execute(prepare(other)), refused);
    let held = agent.table.held();
    assert_eq!(held[0].entries, Held { committed: Some(name), prepared: None });
}

/// D97: a store changes no group that the node has for another one.
#[test]
fn groups_of_another_store_are_left_alone() {
    let mut agent = Agent::new(2);
    let (entry, name) = entry(2, 3);
    agent.execute(prepare(2, 3));
    agent.execute(NodeOrder::Commit { store: STORE, group: 7, name, is_first: false });
    let order = NodeOrder::Prepare { store: OTHER_STORE, name, entry: entry.clone(), recovery_snapshot: None };
    let reason = "group 7 is held for store 0000000000000001: remove it for that store first".to_owned();
    let refused = Some(NodeAnswer::Refused { group: 7, name, reason });
    assert_eq!(agent.execute(order), refused);
    assert_eq!(agent.execute(NodeOrder::Commit { store: OTHER_STORE, group: 7, name, is_first: false }), refused);
    let order = NodeOrder::Restore { store: OTHER_STORE, name, entry, recovery_snapshot: None };
    assert_eq!(agent.execute(order), refused);
    assert_eq!(agent.execute(NodeOrder::Remove { store: OTHER_STORE, group: 7, epoch: 9 }), None);
    assert_eq!((agent.table.held()[0].store, agent.has()), (STORE, (Some(3), 2)));
    let removed = NodeAnswer::Removed { store: STORE, group: 7, epoch: 9 };
    assert_eq!(agent.execute(NodeOrder::Remove { store: STORE, group: 7, epoch: 9 }), Some(removed));
    let (entry, name) = self::entry(2, 1);
    let order = NodeOrder::Prepare { store: OTHER_STORE, name, entry, recovery_snapshot: None };
    assert_eq!(agent.execute(order), Some(NodeAnswer::Prepared { group: 7, name }), "its number may be used again");
}

/// D300: the node multiplies times by the levels of its repair.
#[test]
fn entries_with_too_many_levels_of_repair_are_refused() {
    let mut agent = Agent::new(2);
    let (plain, name) = entry(2, 1);
    let with = |levels: u32| {
        let repair = RepairEntry { window_packets: 128, parent_repairs: true, children: vec![true, false], levels };
        let policy = Policy { t_hold: Duration::from_nanos(u64::MAX), ..plain.policy };
        let entry = Box::new(GroupEntry { repair: Some(repair), policy, ..(*plain).clone() });
        NodeOrder::Prepare { store: STORE, name, entry, recovery_snapshot: None }
    };
    let reason = "2147483648 levels of repair in group 7: expected 255 at most".to_owned();
    assert_eq!(agent.execute(with(1 << 31)), Some(NodeAnswer::Refused { group: 7, name, reason }));
    assert_eq!(agent.execute(with(255)), Some(NodeAnswer::Prepared { group: 7, name }));
    let commit = NodeOrder::Commit { store: STORE, group: 7, name, is_first: false };
    assert_eq!(agent.execute(commit), Some(NodeAnswer::Committed { group: 7, name }));
}

/// Entries must use the SIDs that the node has registered, and no group of the node's own file.
#[test]
fn entries_outside_the_registration_are_refused() {
    let refusal = |number: usize, allowed: AllowedSids, is_in_file: bool| {
        let table = GroupTable::new(allowed);
        match table.plan(prepare(number, 1), |group| is_in_file && group == 7) {
            Plan::Answer(NodeAnswer::Refused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let all = |number| AllowedSids { end_mt: Some(end_mt(number)), replication: Some(replication(number)) };
    assert_eq!(refusal(3, all(3), true), "group 7 is configured in the node's own file");
    let text = "SID 5f00:0:3:e:: of group 7 is not the End.MT SID that the node has registered";
    assert_eq!(refusal(3, all(4), false), text);
    let text = "SID 5f00:0:2:a::7 of group 7 is outside the replication prefix that the node has registered";
    assert_eq!(refusal(2, all(3), false), text);
    assert_eq!(refusal(2, AllowedSids::default(), false), text);
    let mut agent = Agent::new(2);
    agent.execute(prepare(2, 1));
    let (mut other, name) = entry(2, 1);
    other.id = GroupId(8);
    let Some(NodeAnswer::Refused { reason, .. }) =
        agent.execute(NodeOrder::Prepare { store: STORE, name, entry: other, recovery_snapshot: None })
    else {
        panic!("accepted");
    };
    assert_eq!(reason, "SID 5f00:0:2:a::7 of group 8 is already used by group 7");
}

/// A refusal by the node leaves table and node unchanged.
#[test]
fn refused_entries_are_not_kept() {
    let mut agent = Agent::new(2);
    let (mut wrong, name) = entry(2, 1);
    wrong.proxy = loopback(2);
    let order = NodeOrder::Prepare { store: STORE, name, entry: wrong, recovery_snapshot: None };
    let Some(NodeAnswer::Refused { group: 7, reason, .. }) = agent.execute(order) else { panic!("accepted") };
    assert!(reason.contains("2001:db8:2::1"), "{reason}");
    assert_eq!((agent.table.held(), agent.has()), (vec![], (None, 1)));
}

/// After restarts, repetitions and changes in any order.
#[test]
fn all_nodes_converge_to_the_record() {
    for seed in 1..=200_u64 {
        let (mut lifecycle, mut agents) = running();
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut next = 10;
        for _ in 0..40 {
            match random(12) {
                0 => lifecycle.repeat(),
                1 => {
                    let number = random(4) as usize + 1;
                    agents.insert(loopback(number), Agent::new(number));
                    lifecycle.restarted(loopback(number));
                }
                2 => {
                    next += 1;
                    // Refused while as many changes wait as may.
                    let _ = lifecycle.join(vec![newcomer(next, 3 + random(2) as usize)], Vec::new(), None);
                }
                3 => drop(lifecycle.evict(&[receiver_address(next)])),
                _ => match lifecycle.next_order() {
                    Some(Order::Pause { round }) => lifecycle.quiescent(round, Psn::new(40), 3),
                    Some(Order::Ready { round }) => lifecycle.running(round),
                    order => {
                        let Some((node, order)) = order.and_then(to_node) else { continue };
                        let answers = [agents.get_mut(&node).unwrap().execute(order.clone())];
                        // Sent twice, as after a broken connection.
                        let again = (random(3) == 0).then(|| agents.get_mut(&node).unwrap().execute(order));
                        for answer in answers.into_iter().chain(again).flatten() {
                            deliver(&mut lifecycle, node, answer);
                        }
                    }
                },
            }
        }
        for _ in 0..8 {
            settle(&mut lifecycle, &mut agents);
            lifecycle.repeat();
        }
        assert!(lifecycle.is_steady(), "seed {seed}");
        states(&agents);
        let group = lifecycle.group().unwrap();
        for (index, node) in group.record().tree.nodes().iter().enumerate() {
            let has = agents[&node.loopback].node.group_entry(GroupId(7)).expect("it is in the tree");
            let wanted = group.at(NodeIndex(index)).unwrap();
            assert_eq!((&has.branches, has.role), (&wanted.branches, wanted.role), "seed {seed}, {}", node.name);
        }
    }
}
