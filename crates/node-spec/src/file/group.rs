//! `[[group]]`: the node's group entry of a multicast group.

use super::policy::PolicySection;
use super::repair::RepairSection;
use super::{AnyAddress, BranchSection, Epoch, HostAddress, LinkMtu, Located, ReceiverSection, U32, U64};
use super::{integer, is_default, spanned, unless};
use serde::{Deserialize, Serialize};
use srdma_group::{Downstream, GroupEntry, HeadendEntry, NodeRole, Parent, Source, SourceRegion};
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSection {
    pub id: Located<U32>,
    pub epoch: Option<Located<U32>>,
    pub renewed: Option<Located<Epoch>>,
    pub proxy: Located<AnyAddress>,
    pub designated_qpn: Located<Qpn>,
    pub initial_psn: Located<Psn>,
    #[serde(with = "RoleName")]
    pub role: NodeRole,
    pub sid: Option<Located<Ipv6Addr>>,
    pub source: Option<Spanned<SourceSection>>,
    pub parent: Option<Spanned<ParentSection>>,
    pub branches: Option<Spanned<Vec<Spanned<BranchSection>>>>,
    pub downstream: Option<Spanned<Vec<Located<Ipv6Addr>>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receiver: Vec<Spanned<ReceiverSection>>,
    pub region: Option<RegionSection>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_region: Vec<Spanned<RegionSection>>,
    pub headend: Option<Spanned<HeadendSection>>,
    pub repair: Option<Spanned<RepairSection>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: PolicySection,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NodeRole", rename_all = "lowercase")]
enum RoleName {
    Edge,
    Transit,
    Bud,
}

impl GroupSection {
    /// A group entry. Branches that are receivers are written as such alone. What a reader concludes from the other
    /// entries is not written: the list mode, and the nodes that receivers hang on.
    pub fn of(entry: &GroupEntry) -> Self {
        let replicates = entry.role.replicates();
        let (source, parent) = match entry.parent {
            Parent::Source(source) => (Some(source), None),
            Parent::Node { loopback, sid } => {
                let source = entry.headend.as_ref().map(|headend| headend.source);
                let repairs = entry.repair.as_ref().is_some_and(|repair| repair.parent_repairs);
                (source, Some(spanned(ParentSection::new(loopback, sid, repairs))))
            }
        };
        let downstream = entry.downstream.iter().map(|downstream| match downstream {
            Downstream::Sid(address) | Downstream::Multicast(address) => Located::from(*address),
        });
        let children = entry.repair.as_ref().map_or(&[][..], |repair| &repair.children);
        let repairs = children.iter().copied().chain(std::iter::repeat(false));
        let branches = entry.branches.iter().take(entry.nodes_below()).zip(repairs);
        let branches = branches.map(|(branch, repairs)| spanned(BranchSection::of(branch, repairs)));
        let repair = entry.repair.as_ref();
        let repair = repair.and_then(|repair| RepairSection::of(repair, &entry.policy.repair));
        GroupSection {
            id: integer(entry.id.0),
            epoch: unless(entry.epoch, 0, integer),
            renewed: unless(entry.renewed, 0, integer),
            proxy: AnyAddress(entry.proxy).into(),
            designated_qpn: entry.designated_qpn.into(),
            initial_psn: entry.initial_psn.into(),
            role: entry.role,
            sid: (!entry.sid.is_unspecified()).then(|| entry.sid.into()),
            source: source.map(|source| spanned(SourceSection::of(source))),
            parent,
            branches: replicates.then(|| spanned(branches.collect())),
            downstream: replicates.then(|| spanned(downstream.collect())),
            receiver: entry.receivers.iter().map(|receiver| spanned(ReceiverSection::of(receiver))).collect(),
            region: entry.region.map(RegionSection::of),
            more_region: entry.more_regions.iter().map(|region| spanned(RegionSection::of(*region))).collect(),
            headend: entry.headend.as_ref().map(|headend| spanned(HeadendSection::of(headend))),
            repair: repair.map(spanned),
            policy: PolicySection::of(&entry.policy),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSection {
    pub address: Located<AnyAddress>,
    pub qpn: Located<Qpn>,
}

impl SourceSection {
    fn of(Source { address, qpn }: Source) -> Self {
        SourceSection { address: AnyAddress(address).into(), qpn: qpn.into() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentSection {
    pub loopback: Located<HostAddress>,
    pub sid: Option<Located<HostAddress>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub repairs: bool,
}

impl ParentSection {
    pub(super) fn new(loopback: Ipv6Addr, sid: Option<Ipv6Addr>, repairs: bool) -> Self {
        ParentSection { loopback: HostAddress(loopback).into(), sid: sid.map(|sid| HostAddress(sid).into()), repairs }
    }
}

/// A [`SourceRegion`], each value with its place in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionSection {
    pub base: Located<U64>,
    pub length: Located<U64>,
    pub rkey: Located<U32>,
}

impl RegionSection {
    fn of(SourceRegion { base, length, rkey }: SourceRegion) -> Self {
        RegionSection { base: integer(base), length: integer(length), rkey: integer(rkey) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadendSection {
    pub link_mtu: Option<Located<LinkMtu>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded_regions: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<Spanned<ListSection>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListSection {
    pub edge: Located<HostAddress>,
    pub receiver: Vec<Spanned<ReceiverSection>>,
}

impl HeadendSection {
    fn of(headend: &HeadendEntry) -> Self {
        let list = headend.lists.iter().map(|list| {
            let receiver = list.receivers.iter().map(|receiver| spanned(ReceiverSection::of(receiver))).collect();
            spanned(ListSection { edge: HostAddress(list.edge).into(), receiver })
        });
        let has_regions = headend.lists.iter().flat_map(|list| &list.receivers).any(|it| it.region.is_some());
        HeadendSection {
            link_mtu: Some(integer(headend.link_mtu)),
            recorded_regions: headend.with_regions && !headend.lists.is_empty() && !has_regions,
            list: list.collect(),
        }
    }
}
