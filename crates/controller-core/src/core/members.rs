//! Receivers join and leave.

use super::groups::{check_family, check_host, check_psn_offset, check_qpn};
use super::{Core, Group, unknown};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::{self, MemberRow, Write};
use srdma_api::ProblemType;
use srdma_api::{EventKind, NewReceiver, SourceState};
use srdma_group::{ChangeError, ListMode};
use std::net::Ipv6Addr;

impl Core {
    /// A receiver joins. The same join again changes nothing.
    pub fn join(
        &mut self,
        principal: &Principal,
        id: u32,
        address: Ipv6Addr,
        receiver: NewReceiver,
        version: Option<u64>,
    ) -> Result<(), Refusal> {
        let in_two_steps = false;
        let member = MemberRow { receiver, is_leaving: false, in_two_steps, ready_at_psn: None };
        self.enter_member(principal, id, address, member, version)
    }

    /// Enters the row of a receiver that joins.
    pub(super) fn enter_member(
        &mut self,
        principal: &Principal,
        id: u32,
        address: Ipv6Addr,
        new: MemberRow,
        version: Option<u64>,
    ) -> Result<(), Refusal> {
        let receiver = &new.receiver;
        let group = self.changeable(id, principal, version)?;
        if let Some(member) = group.members.get(&address) {
            return match member {
                MemberRow { receiver: known, is_leaving: false, .. } if known == receiver => Ok(()),
                MemberRow { is_leaving: true, .. } => {
                    let text = format!("receiver {address} is leaving group {id}: it can join again when it has left");
                    Err(Refusal::new(ProblemType::AlreadyJoined, text))
                }
                MemberRow { is_leaving: false, .. } => {
                    let text = format!(
                        "receiver {address} has joined group {id} with another queue pair or region: it must leave"
                    );
                    Err(Refusal::new(ProblemType::AlreadyJoined, text))
                }
            };
        }
        self.check_join(group, address, receiver)?;
        let tenant = group.row.tenant.clone();
        let is_committed = group.lifecycle.is_some();
        self.queue_pairs.insert((address, receiver.qpn), id);
        let in_two_steps = new.in_two_steps;
        self.write(rows::put(rows::member_key(id, address), &new));
        if let Some(group) = self.groups.get_mut(&id) {
            group.members.insert(address, new);
            group.left.remove(&address);
        }
        self.write_group(id);
        self.audit(&principal.name, "join", format!("group {id} receiver {address}"));
        self.emit(Some(&tenant), EventKind::ReceiverJoining { group: id, receiver: address });
        if in_two_steps {
            self.hear(id, address);
        }
        if is_committed {
            self.drive(id);
        }
        Ok(())
    }

    fn check_join(&self, group: &Group, address: Ipv6Addr, receiver: &NewReceiver) -> Result<(), Refusal> {
        let (id, request) = (group.row.id, &group.row.request);
        check_qpn("qpn", receiver.qpn)?;
        let has_group_psns = check_psn_offset(receiver.psn_offset)?.is_zero();
        if !has_group_psns && request.policy.lists == ListMode::Tlv {
            let text =
                format!("receiver {address} has PSNs of its own, which the TLVs of group {id} do not name (D270)");
            return Err(Refusal::new(ProblemType::InvalidPsn, text));
        }
        if receiver.path_mtu != request.path_mtu {
            let text = format!(
                "receiver {address} has path MTU {}, group {id} has {}: one for all members (D28)",
                receiver.path_mtu, request.path_mtu
            );
            return Err(Refusal::new(ProblemType::PathMtuMismatch, text));
        }
        check_host("receiver", address)?;
        let proxy = request.proxy.unwrap_or(Ipv6Addr::UNSPECIFIED);
        check_family("receiver", address, proxy)?;
        self.check_tenant(&group.row.tenant, "receiver", address)?;
        if address == request.source.address {
            return Err(Refusal::new(ProblemType::AddressInUse, format!("receiver {address} is the group's source")));
        }
        if request.region.is_some() && receiver.region.is_none() {
            let text = format!("receiver {address} has no memory region, but group {id} carries WRITE (D27)");
            return Err(Refusal::new(ProblemType::MissingRegion, text));
        }
        if receiver.more_regions.len() != request.more_regions.len() {
            let (has, needed) = (1 + receiver.more_regions.len(), 1 + request.more_regions.len());
            let text = format!("receiver {address} has {has} memory regions, group {id} has {needed} (D191)");
            return Err(Refusal::new(ProblemType::InvalidRegions, text));
        }
        if group.row.source == SourceState::Ended {
            let text = format!("receiver {address} cannot join: the source of group {id} has ended");
            return Err(Refusal::new(ProblemType::SourceEnded, text));
        }
        self.check_free("receiver", address)?;
        self.check_queue_pair("receiver", address, receiver.qpn, None)?;
        let copies = self.settings.tenants.get(&group.row.tenant).map_or(0, |tenant| tenant.copies);
        if group.members.len() >= copies {
            let text = format!(
                "group {id} has {} receivers, and tenant {} may have {copies} copies of a packet",
                group.members.len(),
                group.row.tenant
            );
            return Err(Refusal::new(ProblemType::ReceiverQuotaExceeded, text));
        }
        // A committed group accepts only receivers that its network reaches.
        if group.lifecycle.is_some() && self.network.node_of_host(address).is_none() {
            return Err(self.network.no_node_of("receiver", address, "no edge can deliver to it"));
        }
        Ok(())
    }

    /// A receiver leaves or is removed by an operator (D30).
    pub fn leave(
        &mut self,
        principal: &Principal,
        id: u32,
        address: Ipv6Addr,
        version: Option<u64>,
    ) -> Result<(), Refusal> {
        let group = self.changeable(id, principal, version)?;
        let Some(member) = group.members.get(&address).cloned() else {
            if self.is_verifying(group) {
                let text = format!("the nodes of group {id} have not reported its receivers yet");
                return Err(Refusal::new(ProblemType::Recovering, text));
            }
            let text = format!("{address} is not a receiver of group {id}");
            return Err(Refusal::new(ProblemType::UnknownReceiver, text));
        };
        if member.is_leaving {
            return Ok(());
        }
        self.remove_receiver(id, address)?;
        // The store may be an older one: the record that replaces it has the receiver still (D98).
        if let Some(group) = self.groups.get_mut(&id).filter(|group| group.may_be_replaced()) {
            group.left.insert(address, member.receiver);
        }
        self.write_group(id);
        self.audit(&principal.name, "leave", format!("group {id} receiver {address}"));
        self.drive(id);
        Ok(())
    }

    /// Removes a receiver, if enough others remain. Its row is deleted when no node has it.
    pub(super) fn remove_receiver(&mut self, id: u32, address: Ipv6Addr) -> Result<(), Refusal> {
        let group = self.groups.get_mut(&id).ok_or_else(|| unknown(id))?;
        let is_in = |record: &srdma_group::Record| record.receivers.iter().any(|receiver| receiver.address == address);
        let newest = group.lifecycle.as_ref().and_then(|lifecycle| lifecycle.newest()).map(srdma_group::Group::record);
        let is_known_to_nodes = group.record.as_ref().into_iter().chain(newest).any(is_in)
            || group.joining.iter().any(|newcomer| newcomer.address == address);
        match &mut group.lifecycle {
            Some(lifecycle) if is_known_to_nodes => {
                lifecycle.leave(&[address]).map_err(|error| refused(id, &error))?;
                if let Some(member) = group.members.get_mut(&address) {
                    member.is_leaving = true;
                    let write = rows::put(rows::member_key(id, address), member);
                    self.effects.writes.push(write);
                }
            }
            Some(_) | None => self.delete_member(id, address),
        }
        Ok(())
    }

    /// Deletes the receivers that left during a first commit that was aborted: they are in no record.
    pub(super) fn delete_leaving(&mut self, id: u32) {
        let members = self.groups.get(&id).into_iter().flat_map(|group| &group.members);
        let leaving = members.filter(|(_, member)| member.is_leaving).map(|(address, _)| *address);
        for address in leaving.collect::<Vec<_>>() {
            self.delete_member(id, address);
        }
    }

    /// Deletes a receiver.
    pub(super) fn delete_member(&mut self, id: u32, address: Ipv6Addr) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        // Its eviction may have taken the place of its join.
        group.joining.retain(|newcomer| newcomer.address != address);
        group.reservations.remove(&address);
        if let Some(lifecycle) = &mut group.lifecycle {
            lifecycle.forget_ready(address);
        }
        if let Some(member) = group.members.remove(&address) {
            self.queue_pairs.remove(&(address, member.receiver.qpn));
            self.write(Write::Delete { key: rows::member_key(id, address) });
            self.emit_for_group(id, EventKind::ReceiverRemoved { group: id, receiver: address });
        }
    }
}

/// A change that the lifecycle refuses, as a refusal.
pub(super) fn refused(id: u32, error: &ChangeError) -> Refusal {
    let kind = match error {
        ChangeError::Closed => ProblemType::GroupClosing,
        ChangeError::Busy => ProblemType::Busy,
        ChangeError::NotAReceiver(_) => ProblemType::UnknownReceiver,
        ChangeError::TooFew { .. } => ProblemType::TooFewReceivers,
        ChangeError::Nothing
        | ChangeError::NotANode(_)
        | ChangeError::Headend(_)
        | ChangeError::IsHeadend(_)
        | ChangeError::Outdated
        | ChangeError::InPlace { .. }
        | ChangeError::AtEdge { .. }
        | ChangeError::Loop { .. }
        | ChangeError::LastEpoch(_)
        | ChangeError::Tree(_)
        | ChangeError::Group(_) => ProblemType::InvalidGroup,
    };
    Refusal::new(kind, format!("group {id}: {error}"))
}
