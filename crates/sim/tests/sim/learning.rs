//! Whole transfers over edges that have no record of the group, only the lists in its packets (D17): headend and
//! transit nodes have theirs.

use srdma_dataplane::{Command, Learning};
use srdma_group::{GroupId, ListMode, NodeIndex, Parent};
use srdma_random::{Probability, Stream};
use srdma_sim::transfer::{Operation, Outcome, TransferConfig};
use srdma_sim::{LinkModel, Multicast};
use srdma_wire::{Instant, Prefix, Psn};
use std::sync::Arc;

/// The edges N1, N2 and N3 of Figure 1, by their positions.
const EDGES: [usize; 3] = [3, 4, 5];

fn scenario(seed: u64) -> TransferConfig {
    let faulty = |thousandths: f64| Probability::new(thousandths / 1000.0).unwrap();
    let link = LinkModel {
        loss: faulty(10.0 * (seed % 4) as f64),
        duplicate: faulty(5.0 * (seed % 3) as f64),
        reorder: faulty(5.0 * (seed % 5) as f64),
        ..TransferConfig::figure_1().link
    };
    TransferConfig {
        link,
        seed,
        lists: ListMode::Tlv,
        operation: Operation::Send,
        message_octets: 64 << 10,
        first_psn: Psn::new(if seed.is_multiple_of(2) { 0xFF_FFF0 } else { 7 }),
        prune_retransmit: seed % 3 == 1,
        unlimited_retries: true,
        time_limit: Instant::from_ns(1_000_000_000),
        ..TransferConfig::figure_1()
    }
}

/// Removes the record from the edges; `learn`: makes them learn the group.
fn run(scenario: TransferConfig, learn: bool) -> Outcome {
    let mut data = vec![0; 1 << 20];
    Stream::new(scenario.seed, "data").fill(&mut data);
    let mut multicast = Multicast::new(scenario, Arc::new(data)).unwrap();
    for edge in EDGES {
        let part = multicast.group().at(NodeIndex(edge)).unwrap();
        multicast.apply(edge, Command::RemoveGroup(GroupId(1))).unwrap();
        let Parent::Node { loopback, sid } = part.parent else { panic!("an edge has a node above") };
        let learning = Learning {
            proxies: vec![Prefix::host(part.proxy)],
            parent: loopback,
            parent_sid: sid,
            policy: part.policy,
            max_groups: 1,
            max_receivers: 2,
            idle_ns: 10_000_000_000,
        };
        if learn {
            multicast.apply(edge, Command::SetLearning(learning)).unwrap();
        }
    }
    multicast.run(&mut |_| {}).unwrap()
}

/// D17, R6, MT-5.3.1-1: every octet arrives, and no ACK reaches the source for one that a receiver lacks.
#[test]
fn edges_with_lists_only_carry_a_transfer() {
    for seed in 1..=srdma_testkit::seeds::count(24) {
        let outcome = run(scenario(seed), true);
        assert_eq!(outcome.invariant_violations, 0, "seed {seed}: {outcome:?}");
        assert!(outcome.is_good() && outcome.completion_ns.is_some(), "seed {seed}: {outcome:?}");
    }
}

/// Without learning no node responds for the receivers, although they have all that was sent.
#[test]
fn edges_that_do_not_learn_answer_nothing() {
    let outcome = run(TransferConfig { time_limit: Instant::from_ns(20_000_000), ..scenario(8) }, false);
    assert_eq!((outcome.completion_ns, outcome.invariant_violations), (None, 0));
    assert_eq!(outcome.source.acks_received, 0);
}
