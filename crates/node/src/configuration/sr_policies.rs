//! `[[sr_policy]]`.

use super::Draft;
use srdma_dataplane::{PolicyId, SegmentList, SrPolicy};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{Located, NodeFile, SegmentListSection, U32};
use srdma_toml_error::Problem;

pub(super) fn add(file: &NodeFile, draft: &mut Draft) -> Result<(), Problem> {
    for section in &file.sr_policy {
        let id = PolicyId(section.id.value.get() as u32);
        if draft.entries.policies.contains_key(&id) {
            return Err(Problem::new(section.id.at, format!("there is an SR policy {} already", id.0)));
        }
        let lists = section.segment_list.get_ref().iter().map(|list: &SegmentListSection| SegmentList {
            segments: list.segments.iter().map(|segment| segment.value.0).collect(),
            weight: list.weight.as_ref().map_or(1, |weight| weight.value.get() as u32),
        });
        let hmac_key_id = section.hmac_key_id.as_ref().map(|key_id| key_id.value.get() as u32);
        let policy = SrPolicy { lists: lists.collect(), hmac_key_id };
        draft.add(section.id.at, Entries { policies: [(id, policy)].into(), ..Entries::default() })?;
    }
    Ok(())
}

/// The SR policy of a route or SID.
pub(super) fn used(file: &NodeFile, policy: &Located<U32>) -> Result<PolicyId, Problem> {
    let id = policy.value.get();
    match file.sr_policy.iter().any(|section| section.id.value.get() == id) {
        true => Ok(PolicyId(id as u32)),
        false => Err(Problem::new(policy.at, format!("there is no [[sr_policy]] {id}"))),
    }
}
