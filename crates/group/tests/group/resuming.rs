//! A driver that crashes after any order, and resumes from its stored state.

use crate::figure_1::*;
use crate::fleet::Fleet;
use srdma_group::*;
use srdma_wire::Psn;

/// The change requested before the driver dies.
type Change = fn(&mut Lifecycle);

/// Carries out so many orders of a change and forgets the lifecycle; returns whether all were carried out.
fn interrupted(change: Change, orders: usize) -> (Fleet, Record, bool) {
    let (fleet, before, _, is_over) = interrupt(change, orders);
    (fleet, before, is_over)
}

/// The same with the lifecycle.
fn interrupt(change: Change, orders: usize) -> (Fleet, Record, Lifecycle, bool) {
    let mut lifecycle = Lifecycle::create(record()).unwrap();
    let mut fleet = Fleet { next_psn: Psn::new(900), ..Fleet::default() };
    fleet.settle(&mut lifecycle);
    let before = fleet.stored.clone().unwrap();
    change(&mut lifecycle);
    for _ in 0..orders {
        let Some(order) = lifecycle.next_order() else { return (fleet, before, lifecycle, true) };
        if let Some(answer) = fleet.carry_out(&order) {
            fleet.hand_in(&mut lifecycle, answer);
        }
    }
    (fleet, before, lifecycle, false)
}

/// Every node registers with what it has.
fn register_all(fleet: &Fleet, lifecycle: &mut Lifecycle) {
    for (node, agent) in &fleet.agents {
        lifecycle.registered(*node, agent.held).unwrap();
    }
}

fn join(lifecycle: &mut Lifecycle) {
    let Receiver { address, qpn, region, .. } = receiver(6, 0);
    lifecycle
        .join(
            vec![Newcomer {
                address,
                qpn,
                region,
                edge: loopback(2),
                admission: Admission::AtOnce,
                more_regions: Vec::new(),
                psn_offset: PsnOffset::ZERO,
            }],
            vec![],
            None,
        )
        .unwrap();
}

fn evict_a_branch(lifecycle: &mut Lifecycle) {
    lifecycle.evict(&[receiver_address(3)]).unwrap();
}

/// D31: whenever the driver dies, every node ends with what the stored record gives it, none with what it took away,
/// and the source is released.
#[test]
fn no_crash_of_the_driver_leaves_an_incomplete_change() {
    for (change, least) in [(join as Change, 9), (evict_a_branch, 9)] {
        for orders in 0.. {
            let (mut fleet, before, is_over) = interrupted(change, orders);
            let stored = fleet.stored.clone().unwrap();
            let before = (stored != before).then(|| Box::new(before));
            let mut lifecycle =
                Lifecycle::resume(stored.clone(), Resumption::Committing { before }, 2, 1 << 16).unwrap();
            register_all(&fleet, &mut lifecycle);
            fleet.settle(&mut lifecycle);
            lifecycle.repeat();
            fleet.settle(&mut lifecycle);
            assert!(lifecycle.is_steady(), "after {orders} orders: {lifecycle:?}");
            assert_eq!(lifecycle.source_order(), Some(Order::Ready { round: 1 << 16 }));
            assert_eq!((fleet.paused, fleet.ready), (None, Some(1 << 16)));
            let group = Group::new(stored).unwrap();
            for (number, loopback) in (1..=6).map(|number| (number, loopback(number))) {
                let index = group.record().tree.nodes().iter().position(|node| node.loopback == loopback);
                let wanted = index.and_then(|index| group.at(NodeIndex(index)));
                let has = fleet.agents[&loopback].entry.clone();
                assert_eq!(essence(has), essence(wanted), "N{number} after {orders} orders");
            }
            if is_over {
                assert!(orders >= least, "the change took only {orders} orders");
                break;
            }
        }
    }
}

/// D98: when another record takes the place of a change, at any of its orders, no node keeps what it has prepared.
#[test]
fn nothing_stays_prepared_of_an_abandoned_change() {
    for change in [join as Change, evict_a_branch] {
        let (mut had_some, mut orders) = (false, 0);
        loop {
            let (mut fleet, _, lifecycle, is_over) = interrupt(change, orders);
            let prepared = |fleet: &Fleet| fleet.agents.values().filter(|agent| agent.held.prepared.is_some()).count();
            had_some |= prepared(&fleet) > 0;
            for (node, name) in lifecycle.abandon() {
                fleet.carry_out(&Order::Abort { node, name });
            }
            assert_eq!(prepared(&fleet), 0, "after {orders} orders");
            orders += 1;
            if is_over {
                break;
            }
        }
        assert!(had_some);
    }
}

/// A group entry without its epoch, and without positions in the tree, which change when a node is removed.
fn essence(entry: Option<GroupEntry>) -> Option<GroupEntry> {
    entry.map(|mut entry| {
        entry.epoch = 0;
        let lists =
            entry.headend.iter_mut().flat_map(|headend| &mut headend.lists).flat_map(|list| &mut list.receivers);
        for receiver in entry.receivers.iter_mut().chain(lists) {
            receiver.edge = NodeIndex(0);
            receiver.joined = None;
        }
        entry
    })
}

/// A group at rest is resumed without an order to any node; one that has lost its part is given it back (R6).
#[test]
fn a_group_without_a_change_is_resumed_without_orders() {
    let (mut fleet, stored, _) = interrupted(|_| {}, 1);
    fleet.take_log();
    let mut lifecycle = Lifecycle::resume(stored, Resumption::Settled, 0, 9).unwrap();
    assert_eq!(lifecycle.next_order(), None, "the nodes have not registered");
    assert_eq!(lifecycle.unverified().count(), 6);
    register_all(&fleet, &mut lifecycle);
    fleet.settle(&mut lifecycle);
    assert_eq!(fleet.take_log(), "ready 9");
    fleet.agents.remove(&loopback(4));
    lifecycle.restarted(loopback(4));
    assert_eq!(lifecycle.awaited().len(), 0, "a restarted node delays no change");
    fleet.settle(&mut lifecycle);
    assert_eq!(fleet.take_log(), "restore N4 1");
    assert!(lifecycle.is_steady());
}

/// Saved documents are parsed to equal values; invalid documents are refused.
#[test]
fn saved_documents_are_parsed_again() {
    let record = record();
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    let group = Group::new(record).unwrap();
    for index in 0..group.record().tree.nodes().len() {
        let entry = group.at(NodeIndex(index)).unwrap();
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<GroupEntry>(&text).unwrap(), entry);
    }
    for (good, bad) in [
        ("\"designated_qpn\":", "\"designated_qpn\":99999999"),
        ("\"initial_psn\":", "\"initial_psn\":99999999"),
        ("\"path_mtu\":", "\"path_mtu\":1"),
        ("\"parent\":0", "\"parent\":9"),
    ] {
        assert!(text.contains(good), "{good} in {text}");
        assert!(serde_json::from_str::<Record>(&text.replacen(good, bad, 1)).is_err(), "{bad}");
    }
}
