//! Receivers that have missed data, or respond to nothing: they are evicted, or named.

use crate::cluster::*;
use srdma_api::SourceReport;
use srdma_group::OnFailure;

/// A receiver that a backup has again expects data that the source has completed: it is evicted, or named (D131).
#[test]
fn a_receiver_that_missed_data_is_evicted_or_named() {
    for on_failure in [OnFailure::Evict, OnFailure::Strict] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], on_failure);
        cluster.restart();
        cluster.pass(1000);
        // Edge N1 has sent PSNs 31 to 40, and its receiver expects 20.
        cluster.report_receiver(1, receiver(1, 1), 20, 21);
        let report = SourceReport { acknowledged_psn: Some(31), ..SourceReport::default() };
        cluster.commit(|core| core.report_source(&admin(), 1, report)).unwrap();
        cluster.pass(DEAD_AFTER_MS - 200);
        assert_eq!((cluster.members().len(), cluster.group().failure), (2, None), "a report on its way explains it");
        cluster.pass(400);
        match on_failure {
            OnFailure::Evict => {
                assert_eq!((cluster.members(), cluster.group().failure), ([receiver(2, 1)].into(), None));
            }
            OnFailure::Strict => {
                let failure = cluster.group().failure.unwrap();
                let expected =
                    format!("of receiver {} its edge expects PSN 20, and the source has completed", receiver(1, 1));
                assert!(failure.contains(&expected), "{failure}");
                // It has the data: the report was of an entry that was made anew.
                cluster.report_receiver(1, receiver(1, 1), 41, 0);
                cluster.pass(100);
                assert_eq!(cluster.group().failure, None);
            }
        }
    }
}

/// A receiver whose group began again at a later PSN has missed data, too, but its edge does not know it: `failure` names
/// a receiver that acknowledges nothing (D131). Whether to evict it is its edge's to say (D25).
#[test]
fn a_receiver_that_acknowledges_nothing_is_named() {
    for on_failure in [OnFailure::Evict, OnFailure::Strict] {
        let mut cluster = Cluster::new();
        cluster.create(&[receiver(1, 1), receiver(2, 1)], on_failure);
        cluster.report_receiver(1, receiver(1, 1), 41, 2);
        cluster.pass(DEAD_AFTER_MS - 200);
        assert_eq!(cluster.group().failure, None, "an acknowledgement may be on its way");
        cluster.pass(400);
        let failure = cluster.group().failure.unwrap();
        assert_eq!(failure, format!("receiver {} has not acknowledged PSN 41, which it was sent", receiver(1, 1)));
        assert_eq!(cluster.members().len(), 2);
        cluster.report_receiver(1, receiver(1, 1), 42, 1);
        cluster.pass(100);
        assert_eq!(cluster.group().failure, None, "it makes progress");
    }
}

/// The same of a receiver that has responded to nothing since its edge has restarted, as one that joins again with its
/// former queue pair.
#[test]
fn a_receiver_that_responds_to_nothing_is_named() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    cluster.report_silent_receiver(1, receiver(1, 1), None);
    cluster.pass(DEAD_AFTER_MS + 200);
    assert_eq!(cluster.group().failure, None, "it was sent nothing");
    cluster.report_silent_receiver(1, receiver(1, 1), Some(41));
    cluster.pass(DEAD_AFTER_MS - 200);
    assert_eq!(cluster.group().failure, None, "a response may be on its way");
    cluster.pass(400);
    let failure = cluster.group().failure.unwrap();
    assert_eq!(failure, format!("receiver {} has not acknowledged PSN 41, which it was sent", receiver(1, 1)));
    cluster.report_receiver(1, receiver(1, 1), 42, 0);
    cluster.pass(100);
    assert_eq!(cluster.group().failure, None, "it has responded");
}

/// A group that was committed anew after its store was restored, whose source goes on where it is: no data pass, and
/// `failure` says why as soon as the source reports (D137).
#[test]
fn a_source_beyond_the_first_psn_of_a_new_group_is_named() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    cluster.report_headend(true);
    cluster.pass(100);
    assert_eq!(cluster.group().failure, None);
    let report = SourceReport { acknowledged_psn: Some(31), ..SourceReport::default() };
    cluster.commit(|core| core.report_source(&admin(), 1, report)).unwrap();
    let failure = cluster.group().failure.unwrap();
    assert!(failure.starts_with("the headend waits for PSN 0, the group's first, and the source"), "{failure}");
    cluster.report_headend(false);
    cluster.pass(100);
    assert_eq!(cluster.group().failure, None);
}

/// What a receiver expects before the source's PSN says nothing as long as nothing was sent to it (D131).
#[test]
fn a_receiver_that_was_sent_nothing_has_missed_nothing() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Evict);
    cluster.report_receiver(1, receiver(1, 1), 0, 0);
    let report = SourceReport { acknowledged_psn: Some(31), ..SourceReport::default() };
    cluster.commit(|core| core.report_source(&admin(), 1, report)).unwrap();
    cluster.pass(2 * DEAD_AFTER_MS);
    assert_eq!((cluster.members().len(), cluster.group().failure), (2, None));
}
