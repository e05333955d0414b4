//! Members of a group: receivers and branches, with the keys for a change of membership.

use super::{AnyAddress, HostAddress, Integer, Located, Notation, U64, integer, unless};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use srdma_group::{Branch, Join, PsnOffset, Receiver, ReceiverRegion};
use srdma_wire::{Psn, Qpn};
use std::fmt;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverSection {
    pub address: Located<AnyAddress>,
    pub qpn: Located<Qpn>,
    pub base: Option<Located<U64>>,
    pub rkey: Option<Located<Epoch>>,
    pub joined: Option<JoinSection>,
    pub psn_offset: Option<Located<PsnOffset>>,
    pub moved: Option<Located<Epoch>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_regions: Vec<ReceiverRegionSection>,
}

/// A [`ReceiverRegion`] for a further region of the group (D191).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverRegionSection {
    pub base: Located<U64>,
    pub rkey: Located<Epoch>,
}

/// Join point of a member (D30).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinSection {
    pub psn: Located<Psn>,
    pub msn: Located<Integer<0, 0xFF_FFFF>>,
}

pub type Epoch = Integer<0, 0xFFFF_FFFF>;

/// A branch of a transit node: a loopback, or a table with more keys.
pub struct BranchSection {
    pub loopback: HostAddress,
    pub joined: Option<JoinSection>,
    pub renewed: Option<Located<Epoch>>,
    /// The child repairs (D150).
    pub repairs: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchTable {
    loopback: Located<HostAddress>,
    joined: Option<JoinSection>,
    renewed: Option<Located<Epoch>>,
    #[serde(default)]
    repairs: bool,
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
        f.write_str(", or a table of loopback, joined, renewed and repairs")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<BranchSection, E> {
        let loopback = HostAddress::from_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))?;
        Ok(BranchSection { loopback, joined: None, renewed: None, repairs: false })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<BranchSection, A::Error> {
        let BranchTable { loopback, joined, renewed, repairs } =
            BranchTable::deserialize(MapAccessDeserializer::new(table))?;
        Ok(BranchSection { loopback: loopback.value, joined, renewed, repairs })
    }
}

impl Serialize for BranchSection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let loopback = Located::from(self.loopback);
        if self.joined.is_none() && self.renewed.is_none() && !self.repairs {
            return loopback.serialize(serializer);
        }
        let mut table = serializer.serialize_struct("BranchSection", 4)?;
        table.serialize_field("loopback", &loopback)?;
        table.serialize_field("joined", &self.joined)?;
        table.serialize_field("renewed", &self.renewed)?;
        table.serialize_field("repairs", &self.repairs.then_some(true))?;
        table.end()
    }
}

impl BranchSection {
    pub(super) fn of(branch: &Branch, repairs: bool) -> Self {
        let loopback = HostAddress(branch.responder);
        let joined = branch.joined.map(JoinSection::of);
        BranchSection { loopback, joined, renewed: unless(branch.renewed, 0, integer), repairs }
    }
}

impl ReceiverSection {
    pub(super) fn of(receiver: &Receiver) -> Self {
        ReceiverSection {
            address: AnyAddress(receiver.address).into(),
            qpn: receiver.qpn.into(),
            base: receiver.region.map(|region| integer(region.base)),
            rkey: receiver.region.map(|region| integer(region.rkey)),
            joined: receiver.joined.map(JoinSection::of),
            psn_offset: unless(receiver.psn_offset, PsnOffset::ZERO, Located::from),
            moved: unless(receiver.moved, 0, integer),
            more_regions: receiver.more_regions.iter().map(ReceiverRegionSection::of).collect(),
        }
    }
}

impl ReceiverRegionSection {
    fn of(ReceiverRegion { base, rkey }: &ReceiverRegion) -> Self {
        ReceiverRegionSection { base: integer(*base), rkey: integer(*rkey) }
    }
}

impl JoinSection {
    fn of(Join { psn, msn }: Join) -> Self {
        JoinSection { psn: psn.into(), msn: integer(msn) }
    }
}
