//! `[[group]]`: the node's group entry of a multicast group.

use super::claims::{Claims, Leads};
use super::regions::Regions;
use super::{Draft, count_or};
use super::{member, regions, repair};
use srdma_dataplane::NodeConfig;
use srdma_group::{
    Branch, Downstream, Dscp, EdgeList, GroupEntry, GroupId, HeadendEntry, ListMode, NodeIndex, NodeRole, Parent,
    Policy, PsnOffset, Receiver, Source,
};
use srdma_node_spec::file::{
    BehaviorName, BranchSection, GroupSection, HeadendSection, ListSection, Located, NodeFile, PolicySection,
    ReceiverSection,
};
use srdma_node_spec::{Entries, file};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use toml::Spanned;

pub(super) fn add(
    file: &NodeFile,
    config: &NodeConfig,
    claims: &mut Claims<'_>,
    draft: &mut Draft,
) -> Result<(), Problem> {
    let mut ids = BTreeSet::new();
    for section in &file.group {
        let id = &section.get_ref().id;
        if !ids.insert(id.value.get()) {
            return Err(Problem::new(id.at, format!("there is a group {} already", id.value.get())));
        }
        let proxy = &section.get_ref().proxy;
        let owner = format!("the Proxy Address of group {}", id.value.get());
        claims.claim(proxy.at, Prefix::host(proxy.value.0), owner, Leads::Elsewhere)?;
    }
    check_conflicts(file)?;
    for section in &file.group {
        let reader = Reader { file, config, claims, at: section.span().start, section: section.get_ref() };
        let entry = reader.entry()?;
        draft.add(section.get_ref().id.at, Entries { groups: [(entry.id.0, entry)].into(), ..Entries::default() })?;
    }
    Ok(())
}

/// That no group's address is another group's Proxy Address (D2), and no queue pair is in two groups (D8): it is
/// connected to one Proxy Address.
fn check_conflicts(file: &NodeFile) -> Result<(), Problem> {
    let groups = || file.group.iter().map(Spanned::get_ref);
    let mut queue_pairs = BTreeMap::new();
    for group in groups() {
        let id = group.id.value.get();
        let source = group.source.iter().map(|source| (&source.get_ref().address, &source.get_ref().qpn, "source"));
        let receivers = group.receiver.iter().map(Spanned::get_ref);
        let receivers = receivers.map(|receiver| (&receiver.address, &receiver.qpn, "receiver"));
        for (address, qpn, who) in source.chain(receivers) {
            let (at, address) = (address.at, address.value.0);
            if let Some(owner) = groups().find(|other| other.proxy.value.0 == address && other.id.value.get() != id) {
                let owner = owner.id.value.get();
                let text = format!(
                    "{who} {address} is the Proxy Address of group {owner}: such an address belongs to its \
                     group alone (D2)"
                );
                return Err(Problem::new(at, text));
            }
            if let Some(other) = queue_pairs.insert((address, qpn.value), id).filter(|other| *other != id) {
                let qpn = qpn.value;
                let text = format!(
                    "{who} {address}: its queue pair {qpn} is in group {other} already, and a queue pair is connected \
                     to one Proxy Address (D2)"
                );
                return Err(Problem::new(at, text));
            }
        }
    }
    Ok(())
}

/// A section, with the values for its checks.
struct Reader<'f> {
    file: &'f NodeFile,
    config: &'f NodeConfig,
    claims: &'f Claims<'f>,
    /// Offset of the section.
    at: usize,
    section: &'f GroupSection,
}

impl Reader<'_> {
    fn entry(&self) -> Result<GroupEntry, Problem> {
        let section = self.section;
        self.check_role()?;
        let (region, more_regions) = regions::of_group(section)?;
        let receivers = self.receivers(&section.receiver, &mut BTreeSet::new(), Regions::OfGroup)?;
        for receiver in &section.receiver {
            self.claims.check_reachable(
                receiver.get_ref().address.at,
                "receiver",
                receiver.get_ref().address.value.0,
            )?;
        }
        let parent = self.parent()?;
        let headend = section.headend.as_ref().map(|headend| self.headend(headend.get_ref())).transpose()?;
        let policy = self.policy(&section.policy, headend.as_ref())?;
        let downstream = self.downstream()?;
        Ok(GroupEntry {
            id: GroupId(section.id.value.get() as u32),
            epoch: self.epoch(),
            renewed: member::renewed(section.renewed.as_ref(), self.epoch())?,
            proxy: section.proxy.value.0,
            designated_qpn: section.designated_qpn.value,
            initial_psn: section.initial_psn.value,
            role: section.role,
            sid: self.sid()?,
            parent,
            branches: self.branches(&receivers)?,
            repair: repair::entry(section, &policy.repair, &downstream)?,
            downstream,
            receivers,
            region,
            headend,
            policy,
            more_regions,
        })
    }

    fn epoch(&self) -> u32 {
        self.section.epoch.as_ref().map_or(0, |epoch| epoch.value.get() as u32)
    }

    fn problem<T>(&self, at: usize, text: impl Into<String>) -> Result<T, Problem> {
        Err(Problem::new(at, text))
    }

    /// That the section has the keys of its role and no others.
    fn check_role(&self) -> Result<(), Problem> {
        let section = self.section;
        let has = |key: bool, name| key.then_some(name);
        let branches = section.branches.as_ref().is_some_and(|branches| !branches.get_ref().is_empty());
        let downstream = section.downstream.as_ref().is_some_and(|downstream| !downstream.get_ref().is_empty());
        let (needed, forbidden) = match section.role {
            NodeRole::Edge => (
                [has(section.receiver.is_empty(), "[[group.receiver]]"), None],
                [
                    has(branches, "branches: its receivers are its branches, with nodes below its role is bud (D246)"),
                    has(downstream, "downstream: it replicates to its receivers"),
                    has(section.headend.is_some(), "[group.headend]: a headend is a transit or bud node"),
                ],
            ),
            NodeRole::Bud => (
                [has(section.receiver.is_empty(), "[[group.receiver]]"), has(branches && !downstream, "downstream")],
                [has(downstream && !branches, "downstream without branches"), None, None],
            ),
            NodeRole::Transit => (
                [has(!branches, "branches"), has(!downstream, "downstream")],
                [
                    has(!section.receiver.is_empty(), "[[group.receiver]]: with receivers its role is bud (D246)"),
                    has(!section.more_region.is_empty(), "[[group.more_region]]: edges select a region (D191)"),
                    None,
                ],
            ),
        };
        let role = match section.role {
            NodeRole::Edge => "an edge",
            NodeRole::Transit => "a transit node",
            NodeRole::Bud => "a bud node",
        };
        if let Some(name) = needed.into_iter().flatten().next() {
            return self.problem(self.at, format!("{role} needs {name}"));
        }
        if let Some(name) = forbidden.into_iter().flatten().next() {
            return self.problem(self.at, format!("{role} has no {name}"));
        }
        Ok(())
    }

    /// Outer destination of the group's data. A headend that gets none may leave it out.
    fn sid(&self) -> Result<Ipv6Addr, Problem> {
        let Some(sid) = &self.section.sid else {
            return match &self.section.headend {
                Some(_) => Ok(Ipv6Addr::UNSPECIFIED),
                None => self.problem(self.at, "missing key `sid`: only a headend can be without"),
            };
        };
        let id = self.section.id.value.get();
        let is_sid = self.file.sid.iter().any(|other| {
            let fits = match self.section.role {
                NodeRole::Edge => *other.behavior.get_ref() == BehaviorName::EndMt,
                NodeRole::Transit | NodeRole::Bud => other.group.as_ref().is_some_and(|group| group.value.get() == id),
            };
            fits && other.sid.value == Prefix::host(sid.value)
        });
        let is_multicast = self.file.multicast_route.iter().map(Spanned::get_ref).any(|route| {
            let fits = match self.section.role {
                NodeRole::Edge => route.end_mt,
                NodeRole::Transit => true,
                NodeRole::Bud => false,
            };
            fits && route.group.value.0 == sid.value
        });
        if is_sid || is_multicast {
            return Ok(sid.value);
        }
        let expected = match self.section.role {
            NodeRole::Edge => "a [[sid]] of behavior End.MT, or the group of a [[multicast_route]] with end_mt = true",
            NodeRole::Transit => {
                "a [[sid]] of behavior End.Replicate for this group, or the group of a [[multicast_route]]"
            }
            NodeRole::Bud => "a [[sid]] of behavior End.Replicate for this group",
        };
        self.problem(sid.at, format!("{} is no SID for group {id}, expected {expected}", sid.value))
    }

    fn source(&self) -> Result<Option<Source>, Problem> {
        let Some(section) = self.section.source.as_ref().map(Spanned::get_ref) else {
            return Ok(None);
        };
        self.claims.check_reachable(section.address.at, "source", section.address.value.0)?;
        Ok(Some(Source { address: section.address.value.0, qpn: section.qpn.value }))
    }

    /// Destination of responses (D12, D13).
    fn parent(&self) -> Result<Parent, Problem> {
        let source = self.source()?;
        let Some(parent) = self.section.parent.as_ref().map(Spanned::get_ref) else {
            return match source {
                Some(source) => Ok(Parent::Source(source)),
                None => self.problem(self.at, "a group needs a parent, or at the root of its tree a source"),
            };
        };
        if let (Some(section), None) = (&self.section.source, &self.section.headend) {
            let text = "source is a key of the root, which has no parent, and of the headend";
            return self.problem(section.span().start, text);
        }
        let loopback = parent.loopback.value.0;
        if loopback == self.config.loopback {
            return self.problem(parent.loopback.at, format!("the tree loops: parent {loopback} is this node itself"));
        }
        let (what, hop) = match &parent.sid {
            Some(sid) => ("SID of the parent", sid),
            None => ("parent", &parent.loopback),
        };
        self.claims.check_reachable(hop.at, what, hop.value.0)?;
        Ok(Parent::Node { loopback, sid: parent.sid.as_ref().map(|sid| sid.value.0) })
    }

    /// Senders of responses (D14): nodes, then receivers.
    fn branches(&self, receivers: &[Receiver]) -> Result<Vec<Branch>, Problem> {
        let branches = self.section.branches.as_ref().map_or(&[][..], |branches| branches.get_ref());
        let parent = self.section.parent.as_ref().map(|parent| parent.get_ref().loopback.value.0);
        let mut known = BTreeSet::new();
        let branch = |section: &Spanned<BranchSection>| {
            let (at, address) = (section.span().start, section.get_ref().loopback.0);
            if address == self.config.loopback || Some(address) == parent {
                let whose = if Some(address) == parent { "the parent's loopback" } else { "this node's own" };
                return self.problem(at, format!("the tree loops: branch {address} is {whose}"));
            }
            if !known.insert(address) {
                return self.problem(at, format!("branch {address} stands here twice"));
            }
            member::branch(section.get_ref(), self.epoch())
        };
        let of_receiver = |receiver: &Receiver| Branch {
            responder: receiver.address,
            joined: receiver.joined,
            renewed: receiver.moved,
        };
        branches.iter().map(branch).chain(receivers.iter().map(of_receiver).map(Ok)).collect()
    }

    /// Destinations of the copies for nodes (D3).
    fn downstream(&self) -> Result<Vec<Downstream>, Problem> {
        let entries = self.section.downstream.as_ref().map_or(&[][..], |entries| entries.get_ref().as_slice());
        let mut known = BTreeSet::new();
        entries
            .iter()
            .map(|entry| {
                let address = entry.value;
                if !known.insert(address) {
                    return self.problem(entry.at, format!("downstream {address} stands here twice"));
                }
                if !address.is_multicast() {
                    self.claims.check_reachable(entry.at, "downstream SID", address)?;
                    return Ok(Downstream::Sid(address));
                }
                let is_routed = self
                    .file
                    .multicast_route
                    .iter()
                    .map(Spanned::get_ref)
                    .any(|route| route.group.value.0 == address && route.source.value.0 == self.config.loopback);
                if !is_routed {
                    let text = format!("no [[multicast_route]] from {} to {address}", self.config.loopback);
                    return self.problem(entry.at, text);
                }
                Ok(Downstream::Multicast(address))
            })
            .collect()
    }

    /// Receivers; one that is in `known` already is an error (D8).
    fn receivers(
        &self,
        sections: &[Spanned<ReceiverSection>],
        known: &mut BTreeSet<Ipv6Addr>,
        regions: Regions,
    ) -> Result<Vec<Receiver>, Problem> {
        sections
            .iter()
            .map(|section| {
                let (at, receiver) = (section.span().start, section.get_ref());
                let address = receiver.address.value.0;
                if !known.insert(address) {
                    let text = format!(
                        "receiver {address} is in the group twice: two queue pairs of a host are indistinguishable on \
                         the way back (D8)"
                    );
                    return self.problem(receiver.address.at, text);
                }
                if address == self.section.proxy.value.0 {
                    return self.problem(receiver.address.at, format!("receiver {address} is the Proxy Address"));
                }
                let (region, more_regions) = regions::of_receiver(at, receiver, self.section, regions)?;
                let joined = member::join(receiver.joined.as_ref(), self.epoch())?;
                let (qpn, edge) = (receiver.qpn.value, NodeIndex(0));
                let psn_offset = receiver.psn_offset.as_ref().map_or(PsnOffset::ZERO, |offset| offset.value);
                let moved = member::moved(receiver.moved.as_ref(), self.epoch())?;
                Ok(Receiver { address, qpn, region, edge, joined, more_regions, psn_offset, moved })
            })
            .collect()
    }

    fn headend(&self, section: &HeadendSection) -> Result<HeadendEntry, Problem> {
        let Some(source) = self.source()? else {
            return self.problem(self.at, "a headend needs [group.source], whose packets it encapsulates");
        };
        // Regions of a group of several are in the edges' entries (D191, D231).
        let has_several = !self.section.more_region.is_empty();
        let listed = if has_several { Regions::None } else { Regions::OfGroup };
        let mut known = BTreeSet::new();
        let list = |list: &Spanned<ListSection>| {
            let list = list.get_ref();
            if list.receiver.is_empty() {
                return self.problem(list.edge.at, format!("the list of edge {} has no receiver", list.edge.value.0));
            }
            let receivers = self.receivers(&list.receiver, &mut known, listed)?;
            Ok(EdgeList { edge: list.edge.value.0, receivers })
        };
        let lists = section.list.iter().map(list).collect::<Result<Vec<_>, Problem>>()?;
        if section.recorded_regions && self.section.region.is_some() && !has_several {
            let text = "recorded_regions: the headend of a group of several regions has no [group.region] without \
                        [[group.more_region]] (D191, D231)";
            return self.problem(self.at, text);
        }
        let least_mtu = self.config.ports.iter().map(|port| port.link_mtu).min().unwrap_or(0);
        Ok(HeadendEntry {
            source,
            with_regions: (self.section.region.is_some() || section.recorded_regions) && !lists.is_empty(),
            lists,
            link_mtu: section.link_mtu.as_ref().map_or(least_mtu, |mtu| mtu.value.get() as u16),
        })
    }

    fn policy(&self, section: &PolicySection, headend: Option<&HeadendEntry>) -> Result<Policy, Problem> {
        if let Some(key_id) = &section.hmac_key_id {
            if headend.is_none() {
                return self.problem(key_id.at, "hmac_key_id is a key of the headend, which signs");
            }
            if !self.file.hmac_key.iter().any(|key| key.id.value.get() == key_id.value.get()) {
                return self.problem(key_id.at, format!("there is no [[hmac_key]] {}", key_id.value.get()));
            }
        }
        let lists = match headend {
            Some(headend) if headend.lists.is_empty() => ListMode::Provisioned,
            Some(_) => ListMode::Tlv,
            None => ListMode::default(),
        };
        policy_of(section, lists)
    }
}

fn dscp(given: &Located<file::Dscp>) -> Dscp {
    Dscp::of_traffic_class((given.value.get() as u8) << 2)
}

/// Policy of a section.
pub(super) fn policy_of(section: &PolicySection, lists: ListMode) -> Result<Policy, Problem> {
    let default = Policy::default();
    let cnp_window = section.cnp_window.as_ref().map_or(default.cnp_window, |time| time.value);
    if let Some(most) = section.cnp_window_most.as_ref().filter(|most| most.value < cnp_window) {
        let text = "cnp_window_most is less than cnp_window: the window only grows (MT-5.3.3-3)";
        return Err(Problem::new(most.at, text));
    }
    if let Some(t_stall) = section.t_stall.as_ref().filter(|t_stall| t_stall.value.is_zero()) {
        let text = "t_stall is zero: every receiver would be stalled at once (D25)";
        return Err(Problem::new(t_stall.at, text));
    }
    if let Some(t_not_ready) = section.t_not_ready.as_ref().filter(|time| time.value.is_zero()) {
        let text = "t_not_ready is zero: no receiver could have a receive missing (D196)";
        return Err(Problem::new(t_not_ready.at, text));
    }
    Ok(Policy {
        rules: section.rules,
        lists,
        prune_retransmit: section.prune_retransmit,
        t_hold: section.t_hold.as_ref().map_or(default.t_hold, |time| time.value),
        cnp_mode: section.cnp_mode,
        cnp_window,
        cnp_window_most: section.cnp_window_most.as_ref().map_or(cnp_window, |time| time.value),
        cnp_limit: section.cnp_limit.as_ref().map_or(default.cnp_limit, |limit| limit.value.get() as u16),
        ack_dscp: section.ack_dscp.as_ref().map(dscp),
        cnp_dscp: section.cnp_dscp.as_ref().map_or(default.cnp_dscp, dscp),
        on_failure: section.on_failure,
        t_stall: section.t_stall.as_ref().map_or(default.t_stall, |time| time.value),
        t_not_ready: section.t_not_ready.as_ref().map(|time| time.value),
        stall_sends: section.stall_sends.as_ref().map_or(default.stall_sends, |sends| sends.value.get() as u8),
        min_receivers: count_or(&section.min_receivers, default.min_receivers),
        hmac_key_id: section.hmac_key_id.as_ref().map(|key_id| key_id.value.get() as u32),
        repair: repair::policy(section)?,
    })
}
