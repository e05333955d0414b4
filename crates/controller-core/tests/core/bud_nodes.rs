//! Receivers at any node (D246): in whatever order they join, each gets its copies, and no response speaks for one that is
//! not there.

use crate::cluster::*;
use srdma_group::{NodeRole, OnFailure};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// One at the headend, one at a transit node, two at edges; N4 and N5 are equally near.
fn everywhere() -> [Ipv6Addr; 4] {
    [receiver(6, 1), receiver(4, 1), receiver(1, 1), receiver(2, 1)]
}

fn roles(cluster: &Cluster) -> Vec<(u16, NodeRole)> {
    (1..=6).filter_map(|number| Some((number, cluster.entry(number)?.role))).collect()
}

fn permutations(items: &[Ipv6Addr]) -> Vec<Vec<Ipv6Addr>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |position: usize| {
        let (first, mut rest) = (items[position], items.to_vec());
        rest.remove(position);
        permutations(&rest).into_iter().map(move |others| [vec![first], others].concat())
    };
    (0..items.len()).flat_map(with_first).collect()
}

/// All at once, and one after the other in each of the 24 orders.
#[test]
fn no_join_depends_on_the_order_of_joins() {
    let all: BTreeSet<Ipv6Addr> = everywhere().into();
    let mut cluster = Cluster::of(bud_node);
    cluster.create(&everywhere(), OnFailure::Evict);
    let at_once = [(1, NodeRole::Edge), (2, NodeRole::Edge), (4, NodeRole::Bud), (6, NodeRole::Bud)];
    assert_eq!(roles(&cluster), at_once);
    assert_eq!((cluster.acknowledged(), cluster.members()), (all.clone(), all.clone()));
    for order in permutations(&everywhere()) {
        let mut cluster = Cluster::of(bud_node);
        cluster.create(&order[..1], OnFailure::Evict);
        for receiver in &order[1..] {
            cluster.join(*receiver).unwrap();
            cluster.settle();
        }
        assert_eq!((cluster.acknowledged(), cluster.members()), (all.clone(), all.clone()), "{order:?}");
        let tree = cluster.group().tree.expect("a tree");
        let roles: Vec<(&str, &str)> = tree.nodes.iter().map(|node| (&*node.name, &*node.role)).collect();
        assert!(roles.contains(&("N6", "headend")) && roles.contains(&("N4", "bud")), "{order:?}: {roles:?}");
    }
}

/// A chain N6 – N4 – N1 – N5: the edge N1 becomes a bud node with a SID of its own when N5, behind it, gets a receiver.
#[test]
fn an_edge_becomes_a_bud_node() {
    let mut cluster = Cluster::of(|number| {
        let mut registration = bud_node(number);
        // N5 has lost its link to the headend.
        registration
            .links
            .retain(|link| (number, link.to) != (5, loopback(6)) && (number, link.to) != (6, loopback(5)));
        registration
    });
    cluster.create(&[receiver(1, 1)], OnFailure::Evict);
    assert_eq!(roles(&cluster), [(1, NodeRole::Edge), (4, NodeRole::Transit), (6, NodeRole::Transit)]);
    let of_edge = cluster.entry(1).unwrap().sid;
    cluster.join(receiver(5, 1)).unwrap();
    cluster.settle();
    assert_eq!(cluster.acknowledged(), [receiver(1, 1), receiver(5, 1)].into());
    let bud = cluster.entry(1).unwrap();
    assert_eq!((bud.role, bud.nodes_below(), bud.receivers.len()), (NodeRole::Bud, 1, 1));
    assert_ne!(bud.sid, of_edge, "a Replication SID");
    // Its receiver leaves, and it replicates still; then all that is behind it goes.
    cluster.leave(receiver(1, 1)).unwrap();
    cluster.settle();
    assert_eq!(cluster.entry(1).unwrap().role, NodeRole::Transit);
    assert_eq!(cluster.acknowledged(), [receiver(5, 1)].into());
    cluster.join(receiver(4, 1)).unwrap();
    cluster.settle();
    cluster.leave(receiver(5, 1)).unwrap();
    cluster.settle();
    assert_eq!(roles(&cluster), [(4, NodeRole::Bud), (6, NodeRole::Transit)]);
}

/// A bud node dies: the nodes below it move to another path, its own receivers are evicted when it is seen to stall.
#[test]
fn a_dead_bud_node_costs_its_own_receivers() {
    let mut cluster = Cluster::of(bud_node);
    cluster.create(&everywhere(), OnFailure::Evict);
    cluster.disconnect(4);
    cluster.pass(DEAD_AFTER_MS + 500);
    let entry = cluster.entry(5).expect("N5 has taken over");
    let below: Vec<Ipv6Addr> = entry.branches.iter().map(|branch| branch.responder).collect();
    assert_eq!(below, [loopback(1), loopback(2)]);
    cluster.report_lag(6, 4, 10, 5);
    cluster.pass(5_000);
    assert_eq!(cluster.members(), [receiver(6, 1), receiver(1, 1), receiver(2, 1)].into());
}

/// A join that waits for it leads around nothing: it does not prevent that.
#[test]
fn a_join_at_a_dead_bud_node_delays_no_eviction() {
    let mut cluster = Cluster::of(bud_node);
    cluster.create(&everywhere(), OnFailure::Evict);
    cluster.join(receiver(4, 2)).unwrap();
    cluster.disconnect(4);
    cluster.pass(DEAD_AFTER_MS + 500);
    cluster.report_lag(6, 4, 10, 5);
    cluster.pass(5_000);
    assert_eq!(cluster.members(), [receiver(6, 1), receiver(1, 1), receiver(2, 1)].into());
}
