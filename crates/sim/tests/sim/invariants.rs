//! The checker of MT-5.3.1-1 and MT-5.3.2-1 finds violations.

use srdma_dataplane::Command;
use srdma_group::NodeIndex;
use srdma_random::{Probability, Stream};
use srdma_sim::transfer::{Outcome, TransferConfig};
use srdma_sim::{LinkModel, Multicast};
use std::sync::Arc;

/// The edge N1 of Figure 1, by its position, with the receivers R1 and R2.
const N1: usize = 3;

fn run(loss: f64, branches_of_n1: usize) -> Outcome {
    let link = LinkModel { loss: Probability::new(loss).unwrap(), ..TransferConfig::figure_1().link };
    let mut data = vec![0; 1 << 20];
    Stream::new(1, "data").fill(&mut data);
    let mut multicast = Multicast::new(TransferConfig { link, ..TransferConfig::figure_1() }, Arc::new(data)).unwrap();
    let mut part = multicast.group().at(NodeIndex(N1)).unwrap();
    part.branches.truncate(branches_of_n1);
    multicast.apply(N1, Command::AddGroup(Box::new(part))).unwrap();
    multicast.run(&mut |_| {}).unwrap()
}

/// A node that loses a branch confirms data to the source that are not there.
#[test]
fn a_forgotten_branch_is_found() {
    let outcome = run(0.01, 1);
    assert!(outcome.invariant_violations > 0 && !outcome.is_good());
    let violation = outcome.first_violation.unwrap();
    let (receiver, octets_received) = violation.receiver.unwrap();
    assert_eq!(outcome.receivers[receiver].name, "R2");
    assert!(octets_received < violation.octets_acknowledged);
    assert!(outcome.completion_ns.is_some(), "the source believed that all was well");
    assert!(!outcome.receivers[receiver].is_identical);
    assert_ne!(outcome.receivers[receiver].sha256, outcome.source.sha256);
}

#[test]
fn the_same_run_with_all_branches_is_clean() {
    let outcome = run(0.01, 2);
    assert!(outcome.is_good() && outcome.first_violation.is_none());
    assert_eq!(outcome.invariant_violations, 0);
}
