//! Views of groups, and what registrations must not contain.

use crate::cluster::*;
use srdma_api::{Link, ProblemType};
use srdma_group::OnFailure;

/// The number belongs to the record: a view costs no search of the network, and a controller that has just started, whose
/// nodes are not usable yet, shows the same.
#[test]
fn the_links_of_unicast_are_kept_with_the_record() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let shown = |cluster: &mut Cluster| cluster.group().tree.expect("it is committed").links_of_unicast;
    assert_eq!(shown(&mut cluster), 4);
    cluster.restart();
    assert_eq!(shown(&mut cluster), 4);
    cluster.settle();
    cluster.join(receiver(3, 1)).unwrap();
    cluster.settle();
    assert_eq!(shown(&mut cluster), 6, "a third edge");
    cluster.join(receiver(3, 2)).unwrap();
    cluster.settle();
    assert_eq!(shown(&mut cluster), 6, "the same edges");
}

#[test]
fn a_registration_names_each_neighbour_once() {
    let mut cluster = Cluster::new();
    let mut twice = registration(6);
    twice.links.push(Link { cost: 9, ..twice.links[0] });
    let refusal = cluster.commit(|core| core.register(&admin(), twice)).unwrap_err();
    assert_eq!(refusal.kind, ProblemType::InvalidRequest);
    assert!(refusal.detail.contains(&format!("{} is named twice", loopback(4))), "{refusal}");
}
