//! `[learning]`: groups that an edge node learns from the receiver lists of packets, without a record (D17).

use super::Draft;
use super::claims::Claims;
use super::group::policy_of;
use srdma_dataplane::Learning;
use srdma_group::{ListMode, RepairMode};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{BehaviorName, Integer, Located, NodeFile};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::time::Duration;

const MAX_GROUPS: u16 = 64;
const MAX_RECEIVERS: u16 = 256;
const IDLE: Duration = Duration::from_secs(60);

/// Adds the settings of learning. Comes last: it must not take the meaning of an address that has one.
pub(super) fn add(file: &NodeFile, claims: &Claims<'_>, draft: &mut Draft) -> Result<(), Problem> {
    let Some(section) = &file.learning else {
        return Ok(());
    };
    let (at, section) = (section.span().start, section.get_ref());
    let has_end_mt = file.sid.iter().any(|sid| *sid.behavior.get_ref() == BehaviorName::EndMt)
        || file.multicast_route.iter().any(|route| route.get_ref().end_mt);
    if !has_end_mt {
        let text = "nothing can be learnt: there is neither a [[sid]] of behavior End.MT nor a [[multicast_route]] \
                    with end_mt = true";
        return Err(Problem::new(at, text));
    }
    let is_everything = |prefix: Prefix| prefix.as_ipv4().map_or(prefix.prefix_len(), |(_, len)| len) == 0;
    if let Some(everything) = section.proxies.iter().find(|proxies| is_everything(proxies.value.0)) {
        let text = format!("{} are no Proxy Addresses: every address would be one", everything.value.0);
        return Err(Problem::new(everything.at, text));
    }
    if let Some(key_id) = &section.policy.hmac_key_id {
        return Err(Problem::new(key_id.at, "hmac_key_id is a key of the headend, which signs"));
    }
    if section.policy.repair != RepairMode::Off {
        let text = "a learnt group is not repaired: no record states its source's window (D150)";
        return Err(Problem::new(at, text));
    }
    if section.parent.repairs {
        return Err(Problem::new(at, "parent.repairs is a key of groups that this node repairs (D150)"));
    }
    let (loopback, sid) = (&section.parent.loopback, section.parent.sid.as_ref());
    let (what, hop) = sid.map_or(("parent", loopback), |sid| ("SID of the parent", sid));
    claims.check_reachable(hop.at, what, hop.value.0)?;
    let bound = |bound: &Option<Located<Integer<1, 0xFFFF>>>, default| {
        bound.as_ref().map_or(default, |bound| bound.value.get() as u16)
    };
    let idle = section.idle.as_ref().map_or(IDLE, |idle| idle.value);
    let learning = Learning {
        proxies: section.proxies.iter().map(|prefix| prefix.value.0).collect(),
        parent: loopback.value.0,
        parent_sid: sid.map(|sid| sid.value.0),
        policy: policy_of(&section.policy, ListMode::Tlv)?,
        max_groups: bound(&section.max_groups, MAX_GROUPS),
        max_receivers: bound(&section.max_receivers, MAX_RECEIVERS),
        idle_ns: u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX),
    };
    draft.add(at, Entries { learning: Some(learning), ..Entries::default() })
}
