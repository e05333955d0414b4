//! Warnings of failures whose repair takes longer than the source waits (D120).

use crate::cluster::*;
use srdma_api::SourceTransport;
use srdma_group::OnFailure;
use std::time::Duration;

fn warnings(on_failure: OnFailure, transport: Option<SourceTransport>) -> Vec<String> {
    let mut cluster = Cluster::new();
    cluster.create_as(srdma_api::NewGroup { transport, ..new_group(on_failure) }, &[receiver(1, 1), receiver(2, 1)]);
    cluster.group().warnings
}

/// D120.
#[test]
fn a_commit_warns_of_repairs_that_are_slower_than_the_source() {
    let usual = warnings(OnFailure::Strict, None);
    assert_eq!(
        usual,
        [
            "a dead transit node is repaired after up to 3100 ms, and the source gives up after 469 ms (ACK timeout 14, 7 \
          retries, assumed): raise its ACK timeout, or lower node_dead_after_ms"
        ]
    );
    let times = |warnings: Vec<String>| -> Vec<String> {
        warnings.iter().map(|text| text.split(", and").next().unwrap().to_owned()).collect()
    };
    assert_eq!(
        times(warnings(OnFailure::Evict, Some(SourceTransport { ack_timeout: 16, retries: 7 }))),
        [
            "a dead transit node is repaired after up to 3100 ms",
            "a stalled receiver is repaired after up to 2000 ms",
            "a dead edge is repaired after up to 5100 ms"
        ]
    );
    let patient = Some(SourceTransport { ack_timeout: 18, retries: 4 });
    assert_eq!(times(warnings(OnFailure::Evict, patient)), ["a dead edge is repaired after up to 5100 ms"]);
    for patient in [SourceTransport { ack_timeout: 19, retries: 7 }, SourceTransport { ack_timeout: 0, retries: 7 }] {
        assert_eq!(warnings(OnFailure::Evict, Some(patient)), [""; 0]);
    }
}

#[test]
fn warnings_are_in_the_audit_log() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1)], OnFailure::Strict);
    let audited = cluster.rows.iter().filter(|(key, _)| key.starts_with("audit/"));
    let audited = audited.map(|(_, value)| String::from_utf8_lossy(value)).filter(|row| row.contains("\"warn\""));
    assert_eq!(audited.count(), 1);
}

#[test]
fn the_retry_budget_is_ack_timeout_times_retries() {
    let budget = |ack_timeout, retries| SourceTransport { ack_timeout, retries }.retry_budget();
    assert_eq!(budget(14, 7), Some(Duration::from_nanos((4096 << 14) * 7)));
    assert_eq!((budget(0, 7), budget(20, 0)), (None, Some(Duration::ZERO)));
    assert_eq!(budget(31, 7), Some(Duration::from_nanos((4096 << 31) * 7)));
}
