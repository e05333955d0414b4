//! The system's own LSPs: originated on changes, refreshed before they expire, numbered above older ones of this system
//! in the network (ISO 10589 sections 7.3.6 to 7.3.8, 7.3.16.1).

use super::OneLevel;
use crate::adjacency::Adjacency;
use crate::database::ZERO_AGE_LIFETIME_S;
use crate::id::{LspId, NodeId, SystemId};
use crate::origin::{Announced, fragments, fragments_of_pseudonode};
use crate::pdu::{GREATEST_LSP, Level, Lsp, LspFlags};
use crate::tlv::{EndXSid, LspEntry, Neighbour};
use srdma_wire::Instant;
use srdma_wire::units::{NS_PER_MS, NS_PER_S};
use std::collections::BTreeMap;

/// State of our own LSPs.
pub(super) struct Own {
    /// Something may have changed.
    is_stale: bool,
    first_sequence: u32,
    /// The originated fragments with their sequence numbers: those of the system, and of the pseudonodes of LANs whose
    /// designated system it is.
    originated: BTreeMap<LspId, Fragment>,
    /// Not before, so that many changes make one version.
    not_before: Instant,
    /// Time at which the fragments are refreshed.
    refresh_at: Option<Instant>,
}

struct Fragment {
    tlvs: Vec<u8>,
    flags: LspFlags,
    sequence: u32,
    at: Instant,
    /// Sequence numbers are exhausted: the fragment is not originated until all systems have removed the last one.
    silent_until: Option<Instant>,
}

impl Own {
    pub(super) fn new(first_sequence: u32) -> Self {
        Own {
            is_stale: true,
            first_sequence: first_sequence.max(1),
            originated: BTreeMap::new(),
            not_before: Instant::ZERO,
            refresh_at: None,
        }
    }

    /// Something has changed.
    pub(super) fn touch(&mut self) {
        self.is_stale = true;
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let silent = self.originated.values().filter_map(|current| current.silent_until).min();
        [self.is_stale.then_some(self.not_before), self.refresh_at, silent].into_iter().flatten().min()
    }
}

impl OneLevel {
    /// Whether [`OneLevel::renew_own`] has something to do.
    pub(crate) fn owes_own(&self, now: Instant) -> bool {
        self.own.next_deadline().is_some_and(|at| at <= now)
    }

    /// Makes what has changed, and what is about to be over.
    pub(crate) fn renew_own(&mut self, now: Instant) {
        if !self.owes_own(now) {
            return;
        }
        let is_old = self.own.refresh_at.is_some_and(|at| at <= now);
        self.own.is_stale = false;
        self.own.not_before = now.after_ns(self.config.timers.generation_ms * NS_PER_MS);
        let Some(wanted) = self.wanted() else {
            self.counters.lsp_overflows += 1;
            return;
        };
        let unused: Vec<LspId> = self.own.originated.keys().copied().filter(|id| !wanted.contains_key(id)).collect();
        for id in unused {
            self.own.originated.remove(&id);
            if let Some(lsp) = self.database.get(id).map(|stored| stored.lsp().clone()) {
                self.purge(now, &lsp, None);
            }
        }
        for (id, tlvs) in wanted {
            self.originate(now, id, tlvs, is_old);
        }
        let active = self.own.originated.values().filter(|current| current.silent_until.is_none());
        let oldest = active.map(|current| current.at).min();
        let refresh_ns = self.jittered_ns(u64::from(self.config.timers.refresh_s) * NS_PER_S);
        self.own.refresh_at = oldest.map(|at| at.after_ns(refresh_ns));
    }

    /// The fragments that should be there, with their TLVs; `None` if there are too many.
    fn wanted(&self) -> Option<BTreeMap<LspId, Vec<u8>>> {
        let limit = self.limit_lsp();
        let own = NodeId::of(self.config.system);
        let announced = Announced {
            neighbours: &self.neighbours(),
            is_overloaded: self.is_overloaded,
            is_attached: self.is_attached,
            leaks: &self.leaks,
        };
        let of_system = fragments(&self.config, &announced, limit)?;
        let mut nodes = vec![(own, of_system)];
        for circuit in self.circuits.iter().filter(|circuit| circuit.is_designated()) {
            let adjacent = circuit.adjacencies.values().filter(|adjacency| adjacency.is_up());
            let adjacent = adjacent.map(|adjacency| NodeId::of(adjacency.neighbour));
            let members: Vec<NodeId> = std::iter::once(own).chain(adjacent).collect();
            let node = circuit.lan.as_ref()?.designated()?;
            nodes.push((node, fragments_of_pseudonode(&self.config, &members, limit)?));
        }
        let fragments = nodes.into_iter().flat_map(|(node, fragments)| {
            let numbered = fragments.into_iter().enumerate();
            numbered.map(move |(fragment, tlvs)| (LspId { node, fragment: fragment as u8 }, tlvs))
        });
        Some(fragments.collect())
    }

    /// Originates a fragment, unless its contents are unchanged.
    fn originate(&mut self, now: Instant, id: LspId, tlvs: Vec<u8>, is_old: bool) {
        let is_system = id.node.pseudonode == 0;
        let flags = LspFlags {
            is_attached: self.is_attached && is_system,
            is_overloaded: self.is_overloaded && is_system,
            is_level_2: self.config.levels.contains(Level::Two),
        };
        let sequence = match self.own.originated.get(&id) {
            None => self.own.first_sequence,
            Some(current) if current.silent_until.is_some_and(|until| until > now) => return,
            Some(current) if current.silent_until.is_some() => 1,
            Some(current) if !is_old && current.tlvs == tlvs && current.flags == flags => return,
            Some(current) => match current.sequence.checked_add(1) {
                Some(next) => next,
                None => return self.fall_silent(now, id),
            },
        };
        self.own.originated.insert(id, Fragment { tlvs, flags, sequence, at: now, silent_until: None });
        self.issue(now, id);
    }

    /// Sends a fragment as originated.
    fn issue(&mut self, now: Instant, id: LspId) {
        let Some(current) = self.own.originated.get(&id) else { return };
        let key = self.config.key.as_ref();
        let tlvs = [key.map(crate::authentication::Key::tlv).unwrap_or_default(), current.tlvs.clone()].concat();
        let lifetime_s = self.config.timers.lifetime_s;
        let entry = LspEntry { lifetime_s, id, sequence: current.sequence, checksum: 0 };
        let mut lsp = Lsp::new(self.level, entry, current.flags, &tlvs);
        if let Some(key) = key {
            key.sign_lsp(&mut lsp);
        }
        self.store_and_flood(now, lsp, None);
    }

    /// Another system has an LSP of ours that is newer than ours, or that we do not originate: it is originated above
    /// its number, or purged.
    pub(super) fn outdo(&mut self, now: Instant, lsp: &Lsp, from: SystemId) {
        let id = lsp.entry.id;
        match self.own.originated.get_mut(&id) {
            Some(current) if current.silent_until.is_some() => {}
            Some(current) => match current.sequence.max(lsp.entry.sequence).checked_add(1) {
                Some(next) => {
                    current.sequence = next;
                    current.at = now;
                    self.issue(now, id);
                }
                None => self.fall_silent(now, id),
            },
            None => self.purge(now, lsp, Some(from)),
        }
    }

    /// The sequence number is exhausted: the LSP is purged, and originated from 1 when all systems have removed it.
    fn fall_silent(&mut self, now: Instant, id: LspId) {
        // Others have raised its lifetime (RFC 7987).
        let wait_ns = (u64::from(self.config.timers.least_lifetime_s()) + ZERO_AGE_LIFETIME_S) * NS_PER_S;
        if let Some(current) = self.own.originated.get_mut(&id) {
            current.silent_until = Some(now.after_ns(wait_ns));
        }
        self.own.touch();
        if let Some(lsp) = self.database.get(id).map(|stored| stored.lsp().clone()) {
            self.purge(now, &lsp, None);
        }
    }

    /// The links with an adjacency that is up in our topology: to the neighbour, or to the pseudonode of a LAN; of that
    /// several, if the SIDs of its neighbours need them.
    fn neighbours(&self) -> Vec<Neighbour> {
        let topology = self.config.topology;
        let mut links = Vec::new();
        for circuit in &self.circuits {
            let is_used = |adjacency: &&Adjacency| adjacency.is_up() && adjacency.topologies.contains(topology);
            let mut adjacencies = circuit.adjacencies.values().filter(is_used).peekable();
            let Some(adjacency) = adjacencies.peek() else { continue };
            let (metric, sids) = (circuit.config.metric, &circuit.config.end_x);
            let Some(lan) = &circuit.lan else {
                let end_x = sids.iter().map(|(_, sid)| *sid).collect();
                links.push(Neighbour { node: NodeId::of(adjacency.neighbour), metric, end_x });
                continue;
            };
            let Some(node) = lan.designated() else { continue };
            let of_neighbour = |adjacency: &Adjacency| {
                let at = sids.iter().filter(|(address, _)| adjacency.addresses.contains(address));
                let neighbour = Some(adjacency.neighbour);
                at.map(|(_, sid)| EndXSid { neighbour, ..*sid }).collect::<Vec<_>>()
            };
            let end_x: Vec<EndXSid> = adjacencies.flat_map(of_neighbour).collect();
            let mut parts = end_x.chunks(EndXSid::GREATEST_OF_LAN);
            let first = parts.next().unwrap_or_default();
            let parts = std::iter::once(first).chain(parts);
            links.extend(parts.map(|part| Neighbour { node, metric, end_x: part.to_vec() }));
        }
        links
    }

    fn limit_lsp(&self) -> usize {
        self.circuits.iter().map(|circuit| circuit.config.limit_pdu).min().unwrap_or(GREATEST_LSP).min(GREATEST_LSP)
    }
}
