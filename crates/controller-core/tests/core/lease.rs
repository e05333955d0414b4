//! Leases of nodes against the controller's detection of their death (D122).

use crate::cluster::*;
use srdma_agent::{ControllerSession, Report};
use srdma_api::Registration;
use srdma_group::OnFailure;
use std::time::Duration;

fn now(cluster: &Cluster) -> Duration {
    Duration::from_millis(cluster.now_ms)
}

/// A node that falls silent has stopped before the controller acts, and before another one does that starts then.
#[test]
fn a_lease_ends_before_a_controller_acts() {
    for restarts in [false, true] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
        cluster.disconnect(2);
        let mut node = ControllerSession::default();
        node.next(now(&cluster));
        let held = cluster.nodes[&2].table.held();
        let registration = Registration { groups: held, ..registration(2) };
        let session = cluster.commit(|core| core.register(&admin(), registration)).unwrap();
        assert_eq!(u64::from(session.lease_ms), LEASE_MS);
        node.registered(&session).unwrap();
        cluster.now_ms += 700;
        node.next(now(&cluster));
        let report = node.sync(Report::default());
        cluster.now_ms += 40;
        cluster.commit(|core| core.sync(&admin(), "N2", report)).unwrap();
        node.synced(Vec::new());
        let end = node.lease_end().expect("the controller has given a lease");
        assert_eq!(end, now(&cluster) + Duration::from_millis(LEASE_MS - 40));
        if restarts {
            cluster.restart();
        }
        let is_lost = |cluster: &mut Cluster| cluster.group().failure.is_some_and(|failure| failure.contains("N2"));
        for _ in 0..1000 {
            if is_lost(&mut cluster) {
                break;
            }
            cluster.now_ms += 10;
            for number in [1, 3, 4, 5, 6] {
                cluster.sync(number);
            }
            cluster.commit(srdma_controller_core::Core::expire_nodes);
        }
        assert!(is_lost(&mut cluster), "{:?}", cluster.group());
        let margin = now(&cluster).checked_sub(end).expect("the lease is over");
        assert!(margin >= Duration::from_millis(500), "restarts: {restarts}, {margin:?}");
    }
}
