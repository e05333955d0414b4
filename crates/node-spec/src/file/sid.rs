//! `[[sid]]`: endpoint behaviours by the names of their RFCs.

use super::{Integer, Located, PortName, Ports, U16, U32, ZonedAddress, integer, spanned, unless};
use serde::{Deserialize, Serialize};
use srdma_dataplane::{EncapsMode, Flavors, NextCsid, SidBehavior};
use srdma_wire::Prefix;
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SidSection {
    pub sid: Located<Prefix>,
    pub behavior: Spanned<BehaviorName>,
    pub flavors: Option<Spanned<Vec<FlavorName>>>,
    pub next_hop: Option<Located<ZonedAddress>>,
    pub block_bits: Option<Located<CsidBits>>,
    pub csid_bits: Option<Located<CsidBits>>,
    pub table: Option<Located<U16>>,
    pub port: Option<Located<PortName>>,
    pub policy: Option<Located<U32>>,
    pub group: Option<Located<U32>>,
    pub require_hmac: Option<Spanned<bool>>,
}

pub type CsidBits = Integer<1, 127>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BehaviorName {
    End,
    #[serde(rename = "End.X")]
    EndX,
    #[serde(rename = "uN")]
    MicroN,
    #[serde(rename = "uA")]
    MicroA,
    #[serde(rename = "End.DT6")]
    EndDt6,
    #[serde(rename = "End.DX6")]
    EndDx6,
    #[serde(rename = "End.DT4")]
    EndDt4,
    #[serde(rename = "End.DT46")]
    EndDt46,
    #[serde(rename = "End.DX4")]
    EndDx4,
    #[serde(rename = "End.DX2")]
    EndDx2,
    #[serde(rename = "End.B6.Encaps")]
    EndB6Encaps,
    #[serde(rename = "End.B6.Encaps.Red")]
    EndB6EncapsRed,
    #[serde(rename = "End.Replicate")]
    EndReplicate,
    #[serde(rename = "End.MT")]
    EndMt,
    #[serde(rename = "END.C")]
    EndC,
    #[serde(rename = "END.E")]
    EndE,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlavorName {
    #[serde(rename = "PSP")]
    Psp,
    #[serde(rename = "USP")]
    Usp,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "NEXT-CSID")]
    NextCsid,
}

impl SidSection {
    /// A SID of a behaviour that needs no further key.
    pub fn new(sid: Prefix, behavior: BehaviorName) -> Self {
        SidSection {
            sid: sid.into(),
            behavior: spanned(behavior),
            flavors: None,
            next_hop: None,
            block_bits: None,
            csid_bits: None,
            table: None,
            port: None,
            policy: None,
            group: None,
            require_hmac: None,
        }
    }

    pub(super) fn of(ports: Ports<'_>, sid: Prefix, behavior: SidBehavior) -> Self {
        let new = |behavior| SidSection::new(sid, behavior);
        let table = |table: u16| unless(table, 0, integer);
        match behavior {
            SidBehavior::End(flavors) => new(BehaviorName::End).flavored(flavors),
            SidBehavior::EndX(flavors, next_hop) => {
                let section = new(BehaviorName::EndX).flavored(flavors);
                SidSection { next_hop: Some(ports.next_hop(next_hop)), ..section }
            }
            SidBehavior::EndDt6(number) => SidSection { table: table(number.0), ..new(BehaviorName::EndDt6) },
            SidBehavior::EndDt4(number) => SidSection { table: table(number.0), ..new(BehaviorName::EndDt4) },
            SidBehavior::EndDt46(number) => SidSection { table: table(number.0), ..new(BehaviorName::EndDt46) },
            SidBehavior::EndDx4 { next_hop, table: number } => SidSection {
                next_hop: Some(ports.next_hop(next_hop)),
                table: table(number.0),
                ..new(BehaviorName::EndDx4)
            },
            SidBehavior::EndDx6 { next_hop, table: number } => SidSection {
                next_hop: Some(ports.next_hop(next_hop)),
                table: table(number.0),
                ..new(BehaviorName::EndDx6)
            },
            SidBehavior::EndDx2(port) => {
                SidSection { port: Some(ports.name(port).into()), ..new(BehaviorName::EndDx2) }
            }
            SidBehavior::EndB6Encaps { policy, mode } => {
                let name = match mode {
                    EncapsMode::Encaps => BehaviorName::EndB6Encaps,
                    EncapsMode::Reduced => BehaviorName::EndB6EncapsRed,
                };
                SidSection { policy: Some(integer(policy.0)), ..new(name) }
            }
            SidBehavior::EndC => new(BehaviorName::EndC),
            SidBehavior::EndE(number) => SidSection { table: table(number.0), ..new(BehaviorName::EndE) },
            SidBehavior::EndReplicate(group) => {
                SidSection { group: Some(integer(group.0)), ..new(BehaviorName::EndReplicate) }
            }
            SidBehavior::EndMt { require_hmac } => {
                SidSection { require_hmac: require_hmac.then(|| spanned(true)), ..new(BehaviorName::EndMt) }
            }
        }
    }

    fn flavored(self, Flavors { psp, usp, usd, next_csid }: Flavors) -> Self {
        let names = [
            (psp, FlavorName::Psp),
            (usp, FlavorName::Usp),
            (usd, FlavorName::Usd),
            (next_csid.is_some(), FlavorName::NextCsid),
        ];
        let names: Vec<FlavorName> = names.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect();
        let default = NextCsid::F3216;
        let NextCsid { block_bits, csid_bits } = next_csid.unwrap_or(default);
        SidSection {
            flavors: (!names.is_empty()).then(|| spanned(names)),
            block_bits: unless(block_bits, default.block_bits, integer),
            csid_bits: unless(csid_bits, default.csid_bits, integer),
            ..self
        }
    }
}
