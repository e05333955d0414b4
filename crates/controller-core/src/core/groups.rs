//! Creates and closes groups.

use super::successors::Predecessor;
use super::{Core, Group};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::{self, AnswerRow, GroupRow, Write};
use srdma_api::ProblemType;
use srdma_api::{EventKind, NewGroup, SourceState};
use srdma_group::{Policy, PsnOffset, RepairPolicy, is_host_address, is_mixed};
use srdma_wire::{PathMtu, Qpn};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Lifetime of responses that are stored for idempotency keys, seconds, and their maximum number.
const ANSWER_LIFETIME_S: u64 = 86_400;
const MAX_ANSWERS: usize = 100_000;

impl Core {
    /// Creates an open group; returns its number.
    pub fn create_group(
        &mut self,
        principal: &Principal,
        tenant: Option<&str>,
        request: NewGroup,
    ) -> Result<u32, Refusal> {
        let predecessor = request.resumes.map(|former| self.predecessor(principal, former)).transpose()?;
        let tenant = match &predecessor {
            Some(former) => former.tenant_of_successor(tenant)?,
            None => principal.tenant_of_new(tenant)?,
        };
        let Some(limits) = self.settings.tenants.get(&tenant) else {
            let text = format!("tenant {tenant} is not configured");
            return Err(Refusal::new(ProblemType::OtherTenant, text));
        };
        let has = self.groups_of_tenant.get(&tenant).copied().unwrap_or(0);
        // The group that is resumed goes.
        if has >= limits.groups + usize::from(predecessor.is_some()) {
            let text = format!("tenant {tenant} has {has} groups, its limit is {}: close one", limits.groups);
            return Err(Refusal::new(ProblemType::GroupQuotaExceeded, text));
        }
        let id = self.next_number().ok_or_else(|| {
            Refusal::new(ProblemType::GroupQuotaExceeded, "all group numbers are used: start with a new store")
        })?;
        let proxy = match request.proxy.or(predecessor.as_ref().and_then(|former| former.proxy)) {
            Some(proxy) => proxy,
            None => self.free_proxy(&tenant, request.source.address)?,
        };
        let former_name = predecessor.as_ref().and_then(|former| former.name.clone());
        let name = request.name.clone().or(former_name).unwrap_or_else(|| format!("group-{id}"));
        if name.len() > 128 || !crate::reports::is_printable(&name) {
            return Err(Refusal::new(
                ProblemType::InvalidRequest,
                "name: expected at most 128 octets, no control characters and none that change the direction of text",
            ));
        }
        let policy = Policy { repair: request.repair_policy(), ..request.policy };
        let (repair, window_octets) = (None, None);
        let (proxy, name, resumes) = (Some(proxy), Some(name), None);
        let request = NewGroup { proxy, name, policy, repair, window_octets, resumes, ..request };
        self.check_new(&tenant, &request, predecessor.as_ref())?;
        let ancestors = predecessor.map(Predecessor::ancestors_of_successor).unwrap_or_default();
        let resumed = ancestors.last().copied();
        self.site.last_group = id;
        let row = GroupRow {
            id,
            tenant: tenant.clone(),
            version: 0,
            request,
            is_closing: false,
            is_committed: false,
            source: SourceState::Idle,
            last_epoch: 0,
            unrenewed: BTreeSet::new(),
            failure: None,
            service: None,
            ancestors,
        };
        self.enter(row);
        self.write_group(id);
        match resumed {
            Some(former) => self.audit(&principal.name, "resume", format!("group {former} by group {id}")),
            None => self.audit(&principal.name, "create", format!("group {id}")),
        }
        self.emit(Some(&tenant), EventKind::GroupCreated { group: id });
        if let Some(former) = resumed {
            self.close(former);
        }
        Ok(id)
    }

    /// The next number that no group has, of any store that nodes report (D128).
    fn next_number(&self) -> Option<u32> {
        let mut numbers = self.site.last_group.checked_add(1)?..=u32::MAX;
        numbers.find(|number| {
            let is_ancestor = self.successors.contains_key(number);
            !is_ancestor && !self.foreign.has_number(*number) && !self.groups.contains_key(number)
        })
    }

    /// Adds a group to all indices.
    pub(super) fn enter(&mut self, row: GroupRow) {
        let id = row.id;
        *self.groups_of_tenant.entry(row.tenant.clone()).or_default() += 1;
        if let Some(proxy) = row.request.proxy {
            // Its successor may have it already.
            let owner = self.proxies.entry(proxy).or_insert(id);
            *owner = if row.is_closing { *owner } else { id };
        }
        self.note_ancestors(&row);
        self.queue_pairs.insert((row.request.source.address, row.request.source.qpn), id);
        let group = Group {
            row,
            members: BTreeMap::new(),
            lifecycle: None,
            record: None,
            before: None,
            joining: Vec::new(),
            reservations: BTreeMap::new(),
            source_seen: self.now.monotonic,
            pausing: None,
            moves_tried: None,
            explanation: Vec::new(),
            links_of_unicast: None,
            nodes: BTreeSet::new(),
            links: Vec::new(),
            reports: super::divergence::Reports::default(),
            completed: None,
            arrears: BTreeMap::new(),
            is_restored: false,
            left: BTreeMap::new(),
        };
        self.groups.insert(id, group);
    }

    /// Closes a group, at the nodes first.
    pub fn close_group(&mut self, principal: &Principal, id: u32, version: Option<u64>) -> Result<(), Refusal> {
        match self.changeable(id, principal, version) {
            Ok(_) => {}
            // A repeated request.
            Err(refusal) if refusal.kind == ProblemType::GroupClosing => return Ok(()),
            Err(refusal) => return Err(refusal),
        }
        self.audit(&principal.name, "close", format!("group {id}"));
        self.close(id);
        Ok(())
    }

    /// Closes a group, at the nodes first.
    fn close(&mut self, id: u32) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.row.is_closing = true;
            if let Some(lifecycle) = &mut group.lifecycle {
                lifecycle.close();
                // Those that have it are ordered to remove it.
                for node in group.reports.nodes().filter(|node| !group.nodes.contains(*node)) {
                    self.groups_of_node.remove(*node, id);
                }
                group.reports.hand_over(lifecycle);
            }
        }
        self.write_group(id);
        self.drive(id);
        if self.groups.get(&id).is_some_and(|group| group.lifecycle.is_none()) {
            self.forget(id);
        }
    }

    /// Deletes a group that no node has.
    pub(super) fn forget(&mut self, id: u32) {
        let Some(group) = self.groups.remove(&id) else { return };
        self.effects.changed_groups.insert(id);
        let request = &group.row.request;
        if let Some(proxy) = request.proxy
            && self.proxies.get(&proxy) == Some(&id)
        {
            self.proxies.remove(&proxy);
        }
        self.forget_ancestors(&group.row);
        self.queue_pairs.remove(&(request.source.address, request.source.qpn));
        for (address, member) in &group.members {
            self.queue_pairs.remove(&(*address, member.receiver.qpn));
            self.effects.writes.push(Write::Delete { key: rows::member_key(id, *address) });
        }
        for key in [rows::record_key(id), rows::group_key(id)] {
            self.effects.writes.push(Write::Delete { key });
        }
        if let Some(count) = self.groups_of_tenant.get_mut(&group.row.tenant) {
            *count = count.saturating_sub(1);
        }
        for node in group.nodes.iter().chain(group.reports.nodes()) {
            self.groups_of_node.remove(*node, id);
        }
        self.load.replace(&group.links, &[]);
        self.unsettled.remove(&id);
        self.reserving.remove(&id);
        self.emit(Some(&group.row.tenant), EventKind::GroupClosed { group: id });
        self.release_successor(id);
    }

    fn check_new(&self, tenant: &str, request: &NewGroup, predecessor: Option<&Predecessor>) -> Result<(), Refusal> {
        let proxy = request.proxy.unwrap_or(Ipv6Addr::UNSPECIFIED);
        if let Some(former) = predecessor {
            former.check_regions(request)?;
        }
        check_path_mtu(request.path_mtu)?;
        check_qpn("designated_qpn", request.designated_qpn)?;
        check_qpn("source.qpn", request.source.qpn)?;
        if request.transport.is_some_and(|transport| transport.ack_timeout > 31 || transport.retries > 7) {
            let text = "transport: expected an ack_timeout of at most 31 and at most 7 retries";
            return Err(Refusal::new(ProblemType::InvalidRequest, text));
        }
        let repair = request.policy.repair;
        let packets = u64::from(repair.window_octets).div_ceil(u64::from(request.path_mtu));
        if !(1..=u64::from(RepairPolicy::MOST_PACKETS)).contains(&packets) {
            let most = RepairPolicy::MOST_PACKETS;
            let text = format!(
                "window_octets: expected from 1 octet to {most} packets of the path MTU, found {packets} packets"
            );
            return Err(Refusal::new(ProblemType::InvalidRequest, text));
        }
        if repair.ack_timeout.is_zero() || repair.round_trip.is_zero() {
            let text = "policy.repair: expected ack_timeout_ns and round_trip_ns above 0";
            return Err(Refusal::new(ProblemType::InvalidRequest, text));
        }
        if request.initial_psn >= 1 << 24 {
            let text = format!("initial_psn {:#x} exceeds 24 bits", request.initial_psn);
            return Err(Refusal::new(ProblemType::InvalidPsn, text));
        }
        let [first, more] = [request.region.as_slice(), &request.more_regions[..]]
            .map(|regions| regions.iter().copied().map(srdma_group::SourceRegion::from).collect::<Vec<_>>());
        srdma_group::check_regions(first.first(), &more)
            .map_err(|error| Refusal::new(ProblemType::InvalidRegions, error.to_string()))?;
        for (what, address) in [("proxy", proxy), ("source.address", request.source.address)] {
            check_host(what, address)?;
            self.check_tenant(tenant, what, address)?;
        }
        check_family("source.address", request.source.address, proxy)?;
        let is_former = |group: &u32| predecessor.is_some_and(|former| former.id == *group);
        if let Some(other) = self.proxies.get(&proxy).filter(|other| !is_former(other)) {
            let text = format!("proxy {proxy} is the Proxy Address of group {other}: each group has its own (D2)");
            return Err(Refusal::new(ProblemType::AddressInUse, text));
        }
        if proxy == request.source.address {
            return Err(Refusal::new(ProblemType::AddressInUse, format!("proxy {proxy} is the source's own address")));
        }
        self.check_free("proxy", proxy)?;
        if self.member_in(proxy, proxy).is_some() {
            return Err(Refusal::new(ProblemType::AddressInUse, format!("proxy {proxy} is a member of a group (D2)")));
        }
        self.check_queue_pair("source", request.source.address, request.source.qpn, None)
    }

    /// A member with an address from one to another, and its group.
    pub(super) fn member_in(&self, first: Ipv6Addr, last: Ipv6Addr) -> Option<(Ipv6Addr, u32)> {
        let ((address, _), group) = self.queue_pairs.range((first, 0)..=(last, u32::MAX)).next()?;
        Some((*address, *group))
    }

    /// Checks that the tenant may use the address.
    pub(super) fn check_tenant(&self, tenant: &str, what: &str, address: Ipv6Addr) -> Result<(), Refusal> {
        let tenants = self.settings.tenants.get(tenant).into_iter();
        if tenants.flat_map(|tenant| &tenant.prefixes).any(|prefix| prefix.contains(address)) {
            return Ok(());
        }
        let text = format!("{what} {address} is in none of the prefixes of tenant {tenant}");
        Err(Refusal::new(ProblemType::AddressNotPermitted, text))
    }

    /// Checks that the address belongs to no node and is no SID.
    pub(super) fn check_free(&self, what: &str, address: Ipv6Addr) -> Result<(), Refusal> {
        if let Some((store, group)) = self.foreign.owner_of(address) {
            let text = format!(
                "{what} {address} is the Proxy Address of group {group} of store {store:016x}, which nodes have"
            );
            return Err(Refusal::new(ProblemType::AddressInUse, text));
        }
        match self.network.owner_of(address) {
            Some(node) => Err(Refusal::new(
                ProblemType::AddressInUse,
                format!("{what} {address} is an address or SID of node {node}"),
            )),
            None => Ok(()),
        }
    }

    /// Checks that a queue pair is in no other group: it is connected to one Proxy Address (D2, D8).
    pub(super) fn check_queue_pair(
        &self,
        what: &str,
        address: Ipv6Addr,
        qpn: u32,
        own: Option<u32>,
    ) -> Result<(), Refusal> {
        if let Some(group) = self.proxies.get(&address) {
            let text = format!("{what} {address} is the Proxy Address of group {group} (D2)");
            return Err(Refusal::new(ProblemType::AddressInUse, text));
        }
        match self.queue_pairs.get(&(address, qpn)) {
            Some(group) if Some(*group) != own => {
                let text = format!("{what} {address}: queue pair {qpn:#x} is in group {group} already (D8)");
                Err(Refusal::new(ProblemType::QueuePairInUse, text))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The first address of the tenant's pool that is no Proxy Address yet. The pool's own address is left out.
    fn free_proxy(&self, tenant: &str, source: Ipv6Addr) -> Result<Ipv6Addr, Refusal> {
        let pool = self.settings.tenants.get(tenant).and_then(|tenant| tenant.proxies);
        let Some(pool) = pool else {
            let text = format!("proxy: tenant {tenant} has no pool of Proxy Addresses, so the request has to name one");
            return Err(Refusal::new(ProblemType::InvalidAddress, text));
        };
        let first = pool.address().to_bits();
        // Each address of a group, a member and a node, and the source's, makes one candidate unusable at most.
        let used = self.proxies.len() + self.queue_pairs.len() + 2 * self.nodes.len() + 1;
        let candidates = (1..=used as u128 + 1).map(|offset| Ipv6Addr::from_bits(first | offset));
        let mut free = candidates.filter(|address| {
            pool.contains(*address)
                && *address != source
                && !self.proxies.contains_key(address)
                && self.member_in(*address, *address).is_none()
                && self.check_free("proxy", *address).is_ok()
        });
        free.next()
            .ok_or_else(|| Refusal::new(ProblemType::InvalidAddress, format!("proxy: the pool {pool} is exhausted")))
    }

    /// The response that an idempotency key has received, if it came with the same request.
    pub fn stored_answer(
        &self,
        principal: &Principal,
        key: &str,
        request: &str,
    ) -> Result<Option<&AnswerRow>, Refusal> {
        match self.answers.get(&rows::answer_key(&principal.name, key)) {
            Some(answer) if answer.request == request => Ok(Some(answer)),
            Some(_) => Err(Refusal::new(
                ProblemType::IdempotencyKeyReused,
                format!("idempotency key {key} was used for another request"),
            )),
            None => Ok(None),
        }
    }

    /// Stores a response for its idempotency key.
    pub fn store_answer(&mut self, principal: &Principal, key: &str, request: String, status: u16, body: String) {
        let unix_s = self.now.unix_ms / 1000;
        if self.answers.len() >= MAX_ANSWERS {
            let is_old = |answer: &AnswerRow| answer.unix_s + ANSWER_LIFETIME_S < unix_s;
            let mut old: Vec<(u64, String)> =
                self.answers.iter().map(|(key, answer)| (answer.unix_s, key.clone())).collect();
            old.sort_unstable();
            let least = old.len() / 10;
            for (number, (_, key)) in old.into_iter().enumerate() {
                if number >= least && !self.answers.get(&key).is_some_and(is_old) {
                    break;
                }
                self.answers.remove(&key);
                self.write(Write::Delete { key });
            }
        }
        let key = rows::answer_key(&principal.name, key);
        let answer = AnswerRow { request, status, body, unix_s };
        self.write(rows::put(key.clone(), &answer));
        self.answers.insert(key, answer);
    }
}

pub(super) fn check_qpn(what: &str, qpn: u32) -> Result<Qpn, Refusal> {
    Qpn::new(qpn)
        .filter(|qpn| qpn.is_connected())
        .ok_or_else(|| Refusal::new(ProblemType::InvalidQpn, format!("{what} {qpn:#x}: expected 2 to 0xffffff")))
}

pub(super) fn check_psn_offset(number: u32) -> Result<PsnOffset, Refusal> {
    let text = || format!("psn_offset {number:#x} exceeds 24 bits");
    PsnOffset::new(number).ok_or_else(|| Refusal::new(ProblemType::InvalidPsn, text()))
}

pub(super) fn check_path_mtu(octets: u16) -> Result<PathMtu, Refusal> {
    PathMtu::from_octets(octets.into()).ok_or_else(|| {
        Refusal::new(ProblemType::InvalidPathMtu, format!("path_mtu {octets}: expected 256, 512, 1024, 2048 or 4096"))
    })
}

pub(super) fn check_host(what: &str, address: Ipv6Addr) -> Result<(), Refusal> {
    if !is_host_address(address) {
        return Err(Refusal::new(
            ProblemType::InvalidAddress,
            format!("{what} {}: expected a unicast address of a host", address.to_canonical()),
        ));
    }
    Ok(())
}

/// Checks that a member is of the IP version of its group's Proxy Address (D273).
pub(super) fn check_family(what: &str, address: Ipv6Addr, proxy: Ipv6Addr) -> Result<(), Refusal> {
    if is_mixed(address, proxy) {
        let (address, proxy) = (address.to_canonical(), proxy.to_canonical());
        let text = format!("{what} {address} and Proxy Address {proxy} are not both IPv4 or both IPv6 (D273)");
        return Err(Refusal::new(ProblemType::MixedFamilies, text));
    }
    Ok(())
}
