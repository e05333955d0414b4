//! The system's own LSPs: originated on changes, refreshed before they expire, numbered above older ones of this system
//! in the network (ISO 10589 sections 7.3.6 to 7.3.8, 7.3.16.1).

use super::{CircuitId, Speaker};
use crate::database::ZERO_AGE_LIFETIME_S;
use crate::id::{LspId, NodeId};
use crate::origin::fragments;
use crate::pdu::{GREATEST_LSP, Lsp, LspFlags};
use crate::tlv::{LspEntry, Neighbour};
use srdma_wire::Instant;
use srdma_wire::units::{NS_PER_MS, NS_PER_S};
use std::collections::BTreeMap;

/// State of our own LSPs.
pub(super) struct Own {
    /// Something may have changed.
    is_stale: bool,
    first_sequence: u32,
    /// The originated fragments with their sequence numbers.
    originated: BTreeMap<u8, Fragment>,
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

impl Speaker {
    /// Makes what has changed, and what is about to be over.
    pub(super) fn renew_own(&mut self, now: Instant) {
        let is_old = self.own.refresh_at.is_some_and(|at| at <= now);
        let may_restart =
            self.own.originated.values().any(|current| current.silent_until.is_some_and(|until| until <= now));
        let is_stale = self.own.is_stale && self.own.not_before <= now;
        if !is_stale && !is_old && !may_restart {
            return;
        }
        self.own.is_stale = false;
        self.own.not_before = now.after_ns(self.config.timers.generation_ms * NS_PER_MS);
        let Some(fragments) = fragments(&self.config, &self.neighbours(), self.limit_lsp()) else {
            self.counters.lsp_overflows += 1;
            return;
        };
        let unused: Vec<u8> =
            self.own.originated.keys().copied().filter(|fragment| usize::from(*fragment) >= fragments.len()).collect();
        for fragment in unused {
            self.own.originated.remove(&fragment);
            if let Some(lsp) = self.database.get(self.own_id(fragment)).map(|stored| stored.lsp().clone()) {
                self.purge(now, &lsp, None);
            }
        }
        for (fragment, tlvs) in fragments.into_iter().enumerate() {
            self.originate(now, fragment as u8, tlvs, is_old);
        }
        let active = self.own.originated.values().filter(|current| current.silent_until.is_none());
        let oldest = active.map(|current| current.at).min();
        let refresh_ns = self.jittered_ns(u64::from(self.config.timers.refresh_s) * NS_PER_S);
        self.own.refresh_at = oldest.map(|at| at.after_ns(refresh_ns));
    }

    /// Originates a fragment, unless its contents are unchanged.
    fn originate(&mut self, now: Instant, fragment: u8, tlvs: Vec<u8>, is_old: bool) {
        let flags = LspFlags {
            is_overloaded: self.overload().is_some(),
            is_level_2: self.config.level == crate::pdu::Level::Two,
            ..LspFlags::default()
        };
        let sequence = match self.own.originated.get(&fragment) {
            None => self.own.first_sequence,
            Some(current) if current.silent_until.is_some_and(|until| until > now) => return,
            Some(current) if current.silent_until.is_some() => 1,
            Some(current) if !is_old && current.tlvs == tlvs && current.flags == flags => return,
            Some(current) => match current.sequence.checked_add(1) {
                Some(next) => next,
                None => return self.fall_silent(now, fragment),
            },
        };
        self.own.originated.insert(fragment, Fragment { tlvs, flags, sequence, at: now, silent_until: None });
        self.issue(now, fragment);
    }

    /// Sends a fragment as originated.
    fn issue(&mut self, now: Instant, fragment: u8) {
        let Some(current) = self.own.originated.get(&fragment) else { return };
        let key = self.config.key.as_ref();
        let tlvs = [key.map(crate::authentication::Key::tlv).unwrap_or_default(), current.tlvs.clone()].concat();
        let lifetime_s = self.config.timers.lifetime_s;
        let entry = LspEntry { lifetime_s, id: self.own_id(fragment), sequence: current.sequence, checksum: 0 };
        let mut lsp = Lsp::new(self.config.level, entry, current.flags, &tlvs);
        if let Some(key) = key {
            key.sign_lsp(&mut lsp);
        }
        self.store_and_flood(now, lsp, None);
    }

    /// Another system has an LSP of ours that is newer than ours, or that we do not originate: it is originated above
    /// its number, or purged.
    pub(super) fn outdo(&mut self, now: Instant, lsp: &Lsp, circuit: CircuitId) {
        let fragment = lsp.entry.id.fragment;
        let is_ours = lsp.entry.id.node == NodeId::of(self.config.system);
        match self.own.originated.get_mut(&fragment).filter(|_| is_ours) {
            Some(current) if current.silent_until.is_some() => {}
            Some(current) => match current.sequence.max(lsp.entry.sequence).checked_add(1) {
                Some(next) => {
                    current.sequence = next;
                    current.at = now;
                    self.issue(now, fragment);
                }
                None => self.fall_silent(now, fragment),
            },
            None => self.purge(now, lsp, Some(circuit)),
        }
    }

    /// The sequence number is exhausted: the LSP is purged, and originated from 1 when all systems have removed it.
    fn fall_silent(&mut self, now: Instant, fragment: u8) {
        // Others have raised its lifetime (RFC 7987).
        let wait_ns = (u64::from(self.config.timers.least_lifetime_s()) + ZERO_AGE_LIFETIME_S) * NS_PER_S;
        if let Some(current) = self.own.originated.get_mut(&fragment) {
            current.silent_until = Some(now.after_ns(wait_ns));
        }
        self.own.touch();
        if let Some(lsp) = self.database.get(self.own_id(fragment)).map(|stored| stored.lsp().clone()) {
            self.purge(now, &lsp, None);
        }
    }

    fn own_id(&self, fragment: u8) -> LspId {
        LspId { node: NodeId::of(self.config.system), fragment }
    }

    /// The links whose adjacency is up.
    fn neighbours(&self) -> Vec<Neighbour> {
        let adjacent = self.circuits.iter().filter(|circuit| circuit.is_adjacent());
        adjacent
            .filter_map(|circuit| {
                let node = NodeId::of(circuit.adjacency.as_ref()?.neighbour);
                Some(Neighbour { node, metric: circuit.config.metric, end_x: circuit.config.end_x.clone() })
            })
            .collect()
    }

    fn limit_lsp(&self) -> usize {
        self.circuits.iter().map(|circuit| circuit.config.limit_pdu).min().unwrap_or(GREATEST_LSP).min(GREATEST_LSP)
    }
}
