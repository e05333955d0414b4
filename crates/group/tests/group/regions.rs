//! Groups of several regions (D191): which can be, what each node has of them, and documents of those with one.

use crate::figure_1::record;
use serde_json::Value;
use srdma_group::*;

/// The record with so many regions, of the group and of each receiver.
fn with_regions(count: usize) -> Record {
    let mut record = record();
    let further = |rkey: u32| SourceRegion { base: u64::from(rkey) << 32, length: 4096, rkey };
    record.more_regions = (100..).take(count - 1).map(further).collect();
    for receiver in &mut record.receivers {
        let further = |number: u32| ReceiverRegion { base: u64::from(number) << 20, rkey: 7 + number };
        receiver.more_regions = (0..).take(count - 1).map(further).collect();
    }
    record
}

fn refused(count: usize, change: impl FnOnce(&mut Record)) -> String {
    let mut record = with_regions(count);
    change(&mut record);
    Group::new(record).unwrap_err().to_string()
}

/// D191: sixteen at most, each with a key of its own, and one at each receiver for each of them.
#[test]
fn impossible_regions_are_named() {
    assert!(Group::new(with_regions(MAX_REGIONS)).is_ok());
    let message = refused(MAX_REGIONS + 1, |_| ());
    assert_eq!(message, "the group has 17 regions, at most 16 are possible");
    let message = refused(3, |record| record.more_regions[1].rkey = 9);
    assert_eq!(message, "regions 1 and 3 of the group have the same rkey: requests select a region by it");
    let message = refused(3, |record| record.receivers[2].more_regions.truncate(1));
    assert_eq!(message, "receiver 2001:db8:100::3 names 2 memory regions, the group has 3");
    let message = refused(1, |record| record.receivers[0].more_regions.push(ReceiverRegion { base: 0, rkey: 1 }));
    assert_eq!(message, "receiver 2001:db8:100::1 names 2 memory regions, the group has 1");
    assert_eq!(refused(2, |record| record.region = None), "further regions need a first one");
    // Keys of a receiver may be equal: its regions may be parts of one.
    let mut same = with_regions(2);
    same.receivers[0].more_regions[0].rkey = same.receivers[0].region.unwrap().rkey;
    assert!(Group::new(same).is_ok());
}

/// D191, D231: edges alone have the regions, so that other nodes may be of versions that know one; lists in packets have
/// none, but an MR TLV of 24 octets each that says so.
#[test]
fn edges_alone_have_several_regions() {
    let several = Group::new(with_regions(3)).unwrap();
    let (one, none) = (Group::new(record()).unwrap(), Group::new(Record { region: None, ..record() }).unwrap());
    let mut edges = 0;
    for position in 0..record().tree.nodes().len() {
        let of = |group: &Group| group.at(NodeIndex(position)).unwrap();
        let (entry, without) = (of(&several), of(&none));
        let document = serde_json::to_string(&entry).unwrap();
        match entry.role {
            NodeRole::Edge => {
                edges += 1;
                assert_eq!(entry.more_regions, with_regions(3).more_regions);
                assert_eq!(entry.region, record().region);
                assert!(entry.receivers.iter().all(|receiver| receiver.more_regions.len() == 2));
                assert!(document.contains("more_regions"), "an edge of an earlier version refuses the key");
            }
            NodeRole::Transit | NodeRole::Bud => {
                assert!(!document.contains("more_regions"), "{document}");
                assert_eq!((&entry.region, &entry.branches), (&None, &without.branches));
            }
        }
        let lists = entry.headend.iter().flat_map(|headend| &headend.lists).flat_map(|list| &list.receivers);
        assert!(lists.clone().all(|receiver| receiver.region.is_none() && receiver.more_regions.is_empty()));
        let listed = |entry: &GroupEntry| entry.headend.as_ref().map(|headend| headend.with_regions);
        assert_eq!(listed(&entry), without.headend.as_ref().map(|_| true));
        assert_eq!(listed(&without), without.headend.as_ref().map(|_| false));
        assert!(!serde_json::to_string(&of(&one)).unwrap().contains("more_regions"));
    }
    assert_eq!(edges, 3);
    assert_eq!(several.overhead().octets(), none.overhead().octets() + 3 * 24);
}

/// D112, D191: documents of groups with one region are those of earlier versions, and are read as before.
#[test]
fn a_group_of_one_region_has_the_document_of_earlier_versions() {
    let document = serde_json::to_value(record()).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&document["receivers"][0]),
        ["address", "edge", "joined", "qpn", "region"],
        "a key that earlier versions do not know"
    );
    assert!(!keys(&document).contains(&"more_regions".to_owned()));
    assert_eq!(serde_json::from_value::<Record>(document).unwrap(), record());
    let several = serde_json::to_value(with_regions(4)).unwrap();
    assert_eq!(serde_json::from_value::<Record>(several).unwrap(), with_regions(4));
}
