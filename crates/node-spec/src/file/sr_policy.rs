//! `[[sr_policy]]`: weighted segment lists.

use super::{HostAddress, Located, PositiveU32, U32, addresses, integer, spanned, unless};
use serde::{Deserialize, Serialize};
use srdma_dataplane::{PolicyId, SrPolicy};
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SrPolicySection {
    pub id: Located<U32>,
    pub segment_list: Spanned<Vec<SegmentListSection>>,
    pub hmac_key_id: Option<Located<U32>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentListSection {
    pub segments: Vec<Located<HostAddress>>,
    pub weight: Option<Located<PositiveU32>>,
}

impl SrPolicySection {
    pub(super) fn of(id: PolicyId, policy: &SrPolicy) -> Self {
        let lists = policy.lists.iter().map(|list| SegmentListSection {
            segments: addresses(&list.segments),
            weight: unless(list.weight, 1, integer),
        });
        SrPolicySection {
            id: integer(id.0),
            segment_list: spanned(lists.collect()),
            hmac_key_id: policy.hmac_key_id.map(integer),
        }
    }
}
