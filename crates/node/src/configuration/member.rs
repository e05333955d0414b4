//! Members of a group in `node.toml`: receivers and branches, with the keys for a change of membership.

use super::value::{HostAddress, Integer, Located, Notation};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};
use srdma_group::{Branch, Join};
use srdma_toml_error::Problem;
use srdma_wire::{Psn, Qpn};
use std::fmt;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiverSection {
    pub(super) address: Located<HostAddress>,
    pub(super) qpn: Located<Qpn>,
    pub(super) base: Option<Located<Integer<0, { u64::MAX }>>>,
    pub(super) rkey: Option<Located<Epoch>>,
    pub(super) joined: Option<JoinSection>,
}

/// Join point of a member (D30).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JoinSection {
    pub(super) psn: Located<Psn>,
    pub(super) msn: Located<Integer<0, 0xFF_FFFF>>,
}

pub(super) type Epoch = Integer<0, 0xFFFF_FFFF>;

/// A branch of a transit node: a loopback, or a table with more keys.
pub(super) struct BranchSection {
    pub(super) loopback: HostAddress,
    joined: Option<JoinSection>,
    renewed: Option<Located<Epoch>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchTable {
    loopback: Located<HostAddress>,
    joined: Option<JoinSection>,
    renewed: Option<Located<Epoch>>,
}

impl<'de> Deserialize<'de> for BranchSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BranchVisitor)
    }
}

struct BranchVisitor;

impl<'de> Visitor<'de> for BranchVisitor {
    type Value = BranchSection;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HostAddress::describe(f)?;
        f.write_str(", or a table of loopback, joined and renewed")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<BranchSection, E> {
        let loopback = HostAddress::from_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))?;
        Ok(BranchSection { loopback, joined: None, renewed: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<BranchSection, A::Error> {
        let BranchTable { loopback, joined, renewed } = BranchTable::deserialize(MapAccessDeserializer::new(table))?;
        Ok(BranchSection { loopback: loopback.value, joined, renewed })
    }
}

impl BranchSection {
    /// The branch in a group of this epoch.
    pub(super) fn branch(&self, epoch: u32) -> Result<Branch, Problem> {
        Ok(Branch {
            responder: self.loopback.0,
            joined: join(self.joined.as_ref(), epoch)?,
            renewed: renewed(self.renewed.as_ref(), epoch)?,
        })
    }
}

/// Join point of a member of a group of this epoch.
pub(super) fn join(section: Option<&JoinSection>, epoch: u32) -> Result<Option<Join>, Problem> {
    let Some(JoinSection { psn, msn }) = section else {
        return Ok(None);
    };
    if epoch == 0 {
        let text = "no receiver can have joined at epoch 0: each change of membership raises the epoch (D30)";
        return Err(Problem::new(psn.at, text));
    }
    Ok(Some(Join { psn: psn.value, msn: msn.value.get() as u32 }))
}

/// Epoch from which the responses of a node count.
pub(super) fn renewed(section: Option<&Located<Epoch>>, epoch: u32) -> Result<u32, Problem> {
    let Some(renewed) = section else {
        return Ok(0);
    };
    let since = renewed.value.get() as u32;
    if since > epoch {
        let text = format!("renewed by epoch {since}, but the group's epoch is {epoch}: no later one can have been");
        return Err(Problem::new(renewed.at, text));
    }
    Ok(since)
}
