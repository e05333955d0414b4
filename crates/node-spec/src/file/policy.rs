//! `[group.policy]` and `[learning]`.

use super::group::ParentSection;
use super::repair::RepairName;
use super::{AnyPrefix, Dscp, Integer, Located, PositiveU32, U32, integer, is_default, ns, unless};
use serde::{Deserialize, Serialize};
use srdma_dataplane::Learning;
use srdma_group::{CnpMode, OnFailure, Policy, RepairMode, RepairPolicy, Rules};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySection {
    #[serde(default, with = "RulesName", skip_serializing_if = "is_default")]
    pub rules: Rules,
    #[serde(default, skip_serializing_if = "is_default")]
    pub prune_retransmit: bool,
    pub t_hold: Option<Located<Duration>>,
    #[serde(default, with = "CnpName", skip_serializing_if = "is_default")]
    pub cnp_mode: CnpMode,
    pub cnp_window: Option<Located<Duration>>,
    pub cnp_window_most: Option<Located<Duration>>,
    pub cnp_limit: Option<Located<Integer<1, 0xFFFF>>>,
    pub ack_dscp: Option<Located<Dscp>>,
    pub cnp_dscp: Option<Located<Dscp>>,
    #[serde(default, with = "FailureName", skip_serializing_if = "is_default")]
    pub on_failure: OnFailure,
    pub t_stall: Option<Located<Duration>>,
    pub t_not_ready: Option<Located<Duration>>,
    pub stall_sends: Option<Located<Integer<2, 15>>>,
    pub min_receivers: Option<Located<PositiveU32>>,
    pub hmac_key_id: Option<Located<U32>>,
    #[serde(default, with = "RepairName", skip_serializing_if = "is_default")]
    pub repair: RepairMode,
    pub window_octets: Option<Located<PositiveU32>>,
    pub ack_timeout: Option<Located<Duration>>,
    pub round_trip: Option<Located<Duration>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Rules", rename_all = "lowercase")]
enum RulesName {
    Default,
    Literal,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CnpMode", rename_all = "lowercase")]
enum CnpName {
    Leading,
    Trailing,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "OnFailure", rename_all = "lowercase")]
enum FailureName {
    Strict,
    Evict,
}

impl PolicySection {
    pub(super) fn of(policy: &Policy) -> Self {
        let default = Policy::default();
        let time = |time: Duration, default: Duration| unless(time, default, Located::from);
        PolicySection {
            rules: policy.rules,
            prune_retransmit: policy.prune_retransmit,
            t_hold: time(policy.t_hold, default.t_hold),
            cnp_mode: policy.cnp_mode,
            cnp_window: time(policy.cnp_window, default.cnp_window),
            cnp_window_most: time(policy.cnp_window_most, policy.cnp_window),
            cnp_limit: unless(policy.cnp_limit, default.cnp_limit, integer),
            ack_dscp: policy.ack_dscp.map(|dscp| integer(u8::from(dscp))),
            cnp_dscp: unless(policy.cnp_dscp, default.cnp_dscp, |dscp| integer(u8::from(dscp))),
            on_failure: policy.on_failure,
            t_stall: time(policy.t_stall, default.t_stall),
            t_not_ready: policy.t_not_ready.map(Located::from),
            stall_sends: unless(policy.stall_sends, default.stall_sends, integer),
            min_receivers: unless(policy.min_receivers, default.min_receivers, integer),
            hmac_key_id: policy.hmac_key_id.map(integer),
            repair: policy.repair.mode,
            window_octets: unless(policy.repair.window_octets, default.repair.window_octets, integer),
            ack_timeout: time(policy.repair.ack_timeout, default.repair.ack_timeout),
            round_trip: time(policy.repair.round_trip, default.repair.round_trip),
        }
    }

    /// The part that concerns repair.
    pub fn repair_policy(&self) -> RepairPolicy {
        let default = RepairPolicy::default();
        let time = |time: &Option<Located<Duration>>, default| time.as_ref().map_or(default, |time| time.value);
        let octets = self.window_octets.as_ref().map(|octets| octets.value.get() as u32);
        RepairPolicy {
            mode: self.repair,
            window_octets: octets.unwrap_or(default.window_octets),
            ack_timeout: time(&self.ack_timeout, default.ack_timeout),
            round_trip: time(&self.round_trip, default.round_trip),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningSection {
    pub proxies: Vec<Located<AnyPrefix>>,
    pub parent: ParentSection,
    pub max_groups: Option<Located<Integer<1, 0xFFFF>>>,
    pub max_receivers: Option<Located<Integer<1, 0xFFFF>>>,
    pub idle: Option<Located<Duration>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: PolicySection,
}

impl LearningSection {
    pub(super) fn of(learning: &Learning) -> Self {
        LearningSection {
            proxies: learning.proxies.iter().map(|prefix| AnyPrefix(*prefix).into()).collect(),
            parent: ParentSection::new(learning.parent, learning.parent_sid, false),
            max_groups: Some(integer(learning.max_groups)),
            max_receivers: Some(integer(learning.max_receivers)),
            idle: Some(ns(learning.idle_ns).into()),
            policy: PolicySection::of(&learning.policy),
        }
    }
}
