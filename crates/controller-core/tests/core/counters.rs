//! Counters at the ends of their types.

use crate::cluster::*;
use srdma_group::OnFailure;

/// D299: counters of rows that no controller reaches are damage, since they would wrap.
#[test]
fn counters_near_their_end_are_refused() {
    let mut cluster = Cluster::new();
    cluster.create(&[receiver(1, 1), receiver(2, 1)], OnFailure::Strict);
    let refused = |key: &str, member: &str, value: u64| {
        let mut rows = cluster.rows.clone();
        let row = rows.get_mut(key).unwrap();
        let mut object: serde_json::Value = serde_json::from_slice(row).unwrap();
        assert!(object[member].is_u64());
        object[member] = value.into();
        *row = serde_json::to_vec(&object).unwrap();
        restored(&rows)
    };
    let damaged = |key: &str, text: &str| Err(format!("the store's row {key} is damaged: {text}"));
    let text = "starts 4294967295: expected 2147483647 at most";
    assert_eq!(refused("site", "starts", u32::MAX.into()), damaged("site", text));
    let text = "last_audit 18446744073709551615: expected 9223372036854775807 at most";
    assert_eq!(refused("site", "last_audit", u64::MAX), damaged("site", text));
    let text = "version 18446744073709551615: expected 9223372036854775807 at most";
    assert_eq!(refused("group/0000000001", "version", u64::MAX), damaged("group/0000000001", text));
    assert_eq!(refused("site", "starts", 70_000), Ok(()));
}

/// A group whose nodes have had the last epoch cannot be committed again.
#[test]
fn no_epoch_follows_the_last() {
    let mut cluster = Cluster::new();
    cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Strict))).unwrap();
    cluster.join(receiver(1, 1)).unwrap();
    let mut rows = cluster.rows.clone();
    let group = String::from_utf8(rows["group/0000000001"].clone()).unwrap();
    rows.insert(
        "group/0000000001".to_owned(),
        group.replace("\"last_epoch\":0", "\"last_epoch\":4294967295").into_bytes(),
    );
    cluster.start_with(rows, 1);
    cluster.settle();
    let refusal = cluster.commit(|core| core.commit_group(&admin(), 1, None)).unwrap_err();
    assert!(refusal.detail.contains("4294967295"), "{refusal}");
}
