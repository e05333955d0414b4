//! Groups that resume others, whose sources have died (D193).
//!
//! ```text
//!   7 ready ── resumes 7 ──► 7 closing, 8 open ── commit ──► 8 creating ── no node has 7 ──► installed ──► 8 ready
//!            one batch of writes
//! ```

use super::{Core, Group};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::GroupRow;
use srdma_api::{NewGroup, ProblemType, SourceRegion};
use std::net::Ipv6Addr;

/// The oldest of so many restarts is forgotten: receivers that have not noticed the others do not find the group.
const MAX_ANCESTORS: usize = 64;

/// A group that is to be resumed.
pub(super) struct Predecessor {
    pub(super) id: u32,
    pub(super) proxy: Option<Ipv6Addr>,
    pub(super) name: Option<String>,
    tenant: String,
    regions: Vec<SourceRegion>,
    ancestors: Vec<u32>,
}

impl Predecessor {
    /// The tenant of the group that resumes it, which is its own.
    pub(super) fn tenant_of_successor(&self, given: Option<&str>) -> Result<String, Refusal> {
        match given.filter(|given| *given != self.tenant) {
            None => Ok(self.tenant.clone()),
            Some(given) => {
                let text = format!("resumes: group {} is of tenant {}, not of {given}", self.id, self.tenant);
                Err(Refusal::new(ProblemType::InvalidRequest, text))
            }
        }
    }

    /// Its receivers join the group that resumes it with the memory that they have.
    pub(super) fn check_regions(&self, request: &NewGroup) -> Result<(), Refusal> {
        let id = self.id;
        let refusal = |text| Err(Refusal::new(ProblemType::InvalidGroup, text));
        for (found, known) in request.regions().zip(&self.regions).map(|(found, known)| (found.length, known.length)) {
            if found > known {
                return refusal(format!(
                    "region: {found} octets, and receivers of group {id}, which is resumed, have {known} octets"
                ));
            }
        }
        match (request.regions().count(), self.regions.len()) {
            (found, known) if found == known || found == 0 => Ok(()),
            (found, known) => {
                refusal(format!("{found} regions, and receivers of group {id}, which is resumed, have {known}"))
            }
        }
    }

    pub(super) fn ancestors_of_successor(self) -> Vec<u32> {
        let Predecessor { mut ancestors, id, .. } = self;
        ancestors.push(id);
        ancestors.drain(..ancestors.len().saturating_sub(MAX_ANCESTORS));
        ancestors
    }
}

impl Core {
    /// The group to be resumed, if the principal may close it.
    pub(super) fn predecessor(&self, principal: &Principal, id: u32) -> Result<Predecessor, Refusal> {
        let found = self.changeable(id, principal, None).map_err(|refusal| match self.successor(principal, id) {
            Ok((group, _)) => {
                let successor = group.summary.id;
                let text = format!("group {id} is resumed by group {successor} already: resume that one");
                Refusal::new(ProblemType::GroupClosing, text)
            }
            Err(_) => refusal,
        });
        let GroupRow { request, tenant, ancestors, .. } = &found?.row;
        Ok(Predecessor {
            id,
            proxy: request.proxy,
            name: request.name.clone(),
            tenant: tenant.clone(),
            regions: request.regions().copied().collect(),
            ancestors: ancestors.clone(),
        })
    }

    /// Notes that a group resumes others. Of those that do, one is not being closed.
    pub(super) fn note_ancestors(&mut self, row: &GroupRow) {
        for ancestor in &row.ancestors {
            // The last one begins to close when its successor is created.
            let is_last = row.ancestors.last() == Some(ancestor);
            if self.groups.get(ancestor).is_some_and(|group| !is_last && !is_former(group)) {
                continue;
            }
            let successor = self.successors.entry(*ancestor).or_insert(row.id);
            *successor = if row.is_closing { *successor } else { row.id };
        }
    }

    /// A group that resumes others goes.
    pub(super) fn forget_ancestors(&mut self, row: &GroupRow) {
        for ancestor in &row.ancestors {
            if self.successors.get(ancestor) == Some(&row.id) {
                self.successors.remove(ancestor);
            }
        }
    }

    /// The group that resumes a group, directly or by others between them, and its version.
    ///
    /// # Errors
    ///
    /// There is none that the principal may read and that is not being closed.
    pub fn successor(&self, principal: &Principal, id: u32) -> Result<(srdma_api::Group, u64), Refusal> {
        let successor = self.successors.get(&id).copied();
        let found = successor.map(|successor| self.seen(successor, principal)).transpose()?;
        match found.filter(|group| !group.row.is_closing) {
            Some(group) => self.group(principal, group.row.id),
            None if self.groups.contains_key(&id) => {
                Err(Refusal::new(ProblemType::UnknownGroup, format!("no group resumes group {id}")))
            }
            None => Err(self.missing(id)),
        }
    }

    /// Whether nodes may still have the group that a group resumes: it has the same Proxy Address.
    pub(super) fn awaits_predecessor(&self, group: &Group) -> bool {
        let mut ancestors = group.row.ancestors.iter().filter_map(|ancestor| self.groups.get(ancestor));
        group.lifecycle.is_none() && ancestors.any(is_former)
    }

    /// A commit begins when the group that is resumed has gone.
    pub(super) fn postpone_commit(&mut self, id: u32) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.row.failure = None;
            group.row.is_committed = true;
        }
    }

    /// Whether nodes may have the record of a group that has no lifecycle.
    pub(super) fn may_be_installed(&self, group: &Group) -> bool {
        (group.row.is_committed && !self.awaits_predecessor(group)) || self.may_have_record(group)
    }

    /// A group has gone: one that resumes it, and was committed meanwhile, is installed.
    pub(super) fn release_successor(&mut self, former: u32) {
        let Some(id) = self.successors.get(&former).copied() else { return };
        // A refusal is recorded by a later attempt.
        self.retry_creation(id, true);
        self.drive(id);
    }
}

/// Whether the group that has an ancestor's number is that ancestor: it is being closed. A store that is rebuilt does
/// not know the numbers of groups that have gone, and may have given one to another group.
fn is_former(group: &Group) -> bool {
    group.row.is_closing
}
