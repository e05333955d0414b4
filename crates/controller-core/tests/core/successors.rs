//! Groups that resume others, whose sources have died (D193).

use crate::cluster::*;
use srdma_api::{GroupState, NewGroup, NewReceiver, ProblemType, SourceAddress, SourceRegion};
use srdma_controller_core::{Principal, Refusal, Role, Time, Write};
use srdma_group::OnFailure;
use std::net::Ipv6Addr;

/// The source's next process, by a queue pair of its own.
fn resuming(former: u32) -> NewGroup {
    let source = SourceAddress { address: "2001:db8:aa::1".parse().unwrap(), qpn: 0x100 + former };
    NewGroup { proxy: None, resumes: Some(former), ..NewGroup { source, ..new_group(OnFailure::Evict) } }
}

fn kind<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> ProblemType {
    refused.unwrap_err().kind
}

impl Cluster {
    fn resume(&mut self, former: u32) -> u32 {
        self.commit(|core| core.create_group(&admin(), None, resuming(former))).unwrap()
    }

    /// A receiver joins by another queue pair in each group.
    fn follow(&mut self, group: u32, address: Ipv6Addr) {
        let receiver = NewReceiver::new(0x1000 + group, 4096);
        self.commit(|core| core.join(&admin(), group, address, receiver, None)).unwrap();
    }

    fn install(&mut self, group: u32) {
        self.commit(|core| core.commit_group(&admin(), group, None)).unwrap();
    }

    fn state(&mut self, group: u32) -> Option<GroupState> {
        self.commit(|core| core.group_state(group))
    }

    fn successor(&mut self, group: u32) -> Result<u32, Refusal> {
        self.commit(|core| core.successor(&admin(), group)).map(|(group, _)| group.summary.id)
    }

    /// The epochs of the groups that a node has in effect.
    fn groups_at(&self, node: u16) -> Vec<u32> {
        let held = self.nodes[&node].table.held().into_iter();
        held.filter(|held| self.nodes[&node].table.entry(held.group).is_some()).map(|held| held.group).collect()
    }
}

fn running() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Evict);
    cluster
}

#[test]
fn a_group_is_resumed_by_another_with_its_proxy_address() {
    let mut cluster = running();
    assert_eq!(kind(cluster.successor(1)), ProblemType::UnknownGroup, "it has none");
    assert_eq!(cluster.resume(1), 2);
    assert_eq!((cluster.state(1), cluster.state(2)), (Some(GroupState::Closing), Some(GroupState::Open)));
    let (group, _) = cluster.commit(|core| core.successor(&admin(), 1)).unwrap();
    assert_eq!((group.resumes, group.summary.name.as_str()), (Some(1), "group-1"));
    assert_eq!(group.summary.proxy, "2001:db8:cc::1".parse::<Ipv6Addr>().unwrap());

    cluster.follow(2, receiver(1, 1));
    cluster.install(2);
    assert_eq!(cluster.state(2), Some(GroupState::Creating));
    assert!(cluster.nodes.values_mut().all(|node| !node.log.contains(&"prepare 2".to_owned())));
    let log = cluster.nodes[&6].log.len();
    cluster.settle();
    assert_eq!((cluster.state(1), cluster.state(2)), (None, Some(GroupState::Ready)));
    assert_eq!(cluster.nodes[&6].log[log..], ["remove 1", "prepare 1", "commit 1"]);
    assert_eq!((cluster.groups_at(6), cluster.groups_at(2)), (vec![2], vec![]));
    assert_eq!(cluster.successor(1).unwrap(), 2, "receivers that notice it later find it");

    cluster.commit(|core| core.close_group(&admin(), 2, None)).unwrap();
    assert_eq!(kind(cluster.successor(1)), ProblemType::UnknownGroup, "it has ended on purpose");
    cluster.settle();
    assert_eq!(kind(cluster.successor(1)), ProblemType::UnknownGroup);
    let free = cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Evict)));
    assert_eq!(free.unwrap(), 3, "its Proxy Address is free");
}

type Act = Box<dyn FnMut(&mut Cluster)>;

/// That a group is closed and its successor is one write; a commit that waits for the former group's end survives a
/// restart.
#[test]
fn a_restart_at_any_step_leaves_both_or_neither() {
    let mut pipeline = running().pipeline;
    let resumed = pipeline.transact(Time::default(), |core| core.create_group(&admin(), None, resuming(1)));
    let keys: Vec<&str> = resumed.writes.iter().map(Write::key).filter(|key| key.starts_with("group/")).collect();
    assert_eq!(keys, ["group/0000000002", "group/0000000001"]);
    for stop in 0..12 {
        let mut cluster = running();
        let mut acts: Vec<Act> = vec![
            Box::new(|cluster| assert_eq!(cluster.resume(1), 2)),
            Box::new(|cluster| cluster.follow(2, receiver(2, 1))),
            Box::new(|cluster| {
                // After a restart the nodes have to register before.
                if cluster.commit(|core| core.commit_group(&admin(), 2, None)).is_err() {
                    cluster.settle();
                    cluster.install(2);
                }
            }),
        ];
        acts.extend(
            (1..=9)
                .map(|round| -> Act { Box::new(move |cluster| cluster.sync([6, 4, 1, 2, 5, 3, 6, 4, 2][round - 1])) }),
        );
        for (step, act) in acts.iter_mut().enumerate() {
            if step == stop {
                cluster.restart();
                let known = (cluster.state(1).is_some(), cluster.successor(1).is_ok());
                assert!(stop > 0 || known == (true, false), "nothing was asked for");
                assert!(stop == 0 || known.1, "step {stop}: {known:?}");
            }
            act(&mut cluster);
        }
        cluster.settle();
        cluster.pass(1000);
        assert_eq!((cluster.state(1), cluster.state(2)), (None, Some(GroupState::Ready)), "step {stop}");
        assert_eq!(cluster.groups_at(6), [2], "step {stop}");
    }
}

/// A source that dies again and again; receivers of each group find the newest.
#[test]
fn a_group_that_resumes_is_resumed() {
    let mut cluster = running();
    cluster.resume(1);
    assert_eq!(cluster.resume(2), 3, "before any node has it");
    assert_eq!((cluster.state(1), cluster.state(2)), (Some(GroupState::Closing), None));
    cluster.follow(3, receiver(1, 1));
    cluster.install(3);
    assert_eq!(cluster.state(3), Some(GroupState::Creating), "the first has the Proxy Address still");
    cluster.settle();
    assert_eq!(cluster.state(3), Some(GroupState::Ready));
    for former in 3..80 {
        assert_eq!(cluster.resume(former), former + 1);
    }
    cluster.restart();
    for former in 16..80 {
        assert_eq!(cluster.successor(former).unwrap(), 80);
    }
    assert_eq!(kind(cluster.successor(15)), ProblemType::UnknownGroup, "64 restarts are kept");
    let again = cluster.commit(|core| core.create_group(&admin(), None, resuming(20))).unwrap_err();
    assert_eq!(again.kind, ProblemType::GroupClosing);
    assert_eq!(again.detail, "group 20 is resumed by group 80 already: resume that one");
}

/// A node that is lost holds neither the end of the former group nor its successor.
#[test]
fn a_lost_node_does_not_hold_a_successor() {
    let mut cluster = running();
    cluster.disconnect(2);
    cluster.resume(1);
    cluster.follow(2, receiver(1, 1));
    cluster.install(2);
    cluster.settle();
    assert_eq!(cluster.state(2), Some(GroupState::Creating));
    cluster.pass(DEAD_AFTER_MS + 1000);
    assert_eq!((cluster.state(1), cluster.state(2)), (None, Some(GroupState::Ready)));
    cluster.connect(2);
    cluster.pass(1000);
    assert_eq!((cluster.groups_at(1), cluster.groups_at(2)), (vec![2], vec![]), "what is left over is removed");
}

#[test]
fn a_resumption_that_would_not_work_is_refused_and_changes_nothing() {
    let mut cluster = Cluster::new();
    let region = |length| Some(SourceRegion { base: 0, length, rkey: 1 });
    let group = NewGroup { region: region(1000), ..new_group(OnFailure::Evict) };
    cluster.commit(|core| core.create_group(&admin(), None, group)).unwrap();
    let rows = cluster.rows.clone();
    let as_principal = |role, tenant: Option<&str>| Principal { role, tenant: tenant.map(str::to_owned), ..admin() };
    for (principal, expected) in [
        (as_principal(Role::Tenant, Some("other")), ProblemType::UnknownGroup),
        (as_principal(Role::Read, None), ProblemType::Forbidden),
        (as_principal(Role::Node, None), ProblemType::Forbidden),
    ] {
        let refused = cluster.commit(|core| core.create_group(&principal, None, resuming(1)));
        assert_eq!(kind(refused), expected, "{principal:?}");
        let read = cluster.commit(|core| core.successor(&principal, 1).map(|_| ()));
        assert_ne!(read.err().map(|refusal| refusal.kind), None);
    }
    let longer = NewGroup { region: region(1001), ..resuming(1) };
    let more_regions = vec![SourceRegion { base: 0, length: 1, rkey: 2 }];
    let one_more = NewGroup { region: region(1000), more_regions, ..resuming(1) };
    for (request, tenant, expected) in [
        (resuming(9), None, ProblemType::UnknownGroup),
        (longer, None, ProblemType::InvalidGroup),
        (one_more, None, ProblemType::InvalidGroup),
        (resuming(1), Some("other"), ProblemType::InvalidRequest),
    ] {
        assert_eq!(kind(cluster.commit(|core| core.create_group(&admin(), tenant, request))), expected);
    }
    assert_eq!(cluster.rows, rows);
    assert_eq!(cluster.state(1), Some(GroupState::Open));

    // Without a receiver its commit is refused at once, also while the former group is there.
    let mut cluster = running();
    cluster.resume(1);
    assert_eq!(kind(cluster.commit(|core| core.commit_group(&admin(), 2, None))), ProblemType::GroupEmpty);
}

/// The group that is resumed goes, so that a tenant at its limit can resume it.
#[test]
fn another_tenant_neither_resumes_a_group_nor_finds_its_successor() {
    let mut cluster = running();
    cluster.resume(1);
    let other = Principal { name: "b".to_owned(), role: Role::Tenant, tenant: Some("b".to_owned()), node: None };
    let own = Principal { tenant: Some(srdma_controller_core::DEFAULT_TENANT.to_owned()), ..other.clone() };
    assert_eq!(kind(cluster.commit(|core| core.successor(&other, 1))), ProblemType::UnknownGroup);
    assert_eq!(cluster.commit(|core| core.successor(&own, 1)).unwrap().0.summary.id, 2);
    assert_eq!(kind(cluster.commit(|core| core.create_group(&other, None, resuming(2)))), ProblemType::UnknownGroup);
    assert_eq!(cluster.commit(|core| core.create_group(&own, None, resuming(2))).unwrap(), 3);
}

/// A store that is rebuilt does not know the numbers of groups that have gone: a group with the number of an ancestor is
/// no reason to wait.
#[test]
fn a_group_with_the_number_of_an_ancestor_is_not_waited_for() {
    let mut cluster = running();
    let second = cluster.resume(1);
    cluster.follow(second, receiver(1, 1));
    cluster.install(second);
    cluster.settle();
    assert_eq!((cluster.state(1), cluster.state(second)), (None, Some(GroupState::Ready)));
    cluster.rebuild(1);
    let other = NewGroup { proxy: "2001:db8:cc::9".parse().ok(), ..new_group(OnFailure::Evict) };
    let other = cluster.commit(|core| core.create_group(&admin(), None, other)).unwrap();
    assert_eq!(other, 1);
    cluster.pass(2 * DEAD_AFTER_MS);
    assert_eq!(cluster.state(second), Some(GroupState::Ready));
    let third = cluster.resume(second);
    cluster.follow(third, receiver(1, 1));
    cluster.install(third);
    cluster.settle();
    assert_eq!((cluster.state(second), cluster.state(third)), (None, Some(GroupState::Ready)));
}
