//! Entries about repair (D150).

use super::{GroupEvent, Groups, Journal};
use crate::groups::GroupState;
use srdma_aggregation::{BranchIndex, Response};
use srdma_group::GroupId;
use srdma_repair::{Counters, Request, Sending};
use srdma_wire::Instant;
use std::net::Ipv6Addr;

impl Groups {
    /// Records a request to the parent.
    pub(crate) fn journal_request(&mut self, now: Instant, group: u32, request: Request) {
        let Request { psn, count } = request;
        self.journal_repair(now, group, None, |_| GroupEvent::RequestSent { psn, count });
    }

    /// Records a request of a child.
    pub(in crate::groups) fn journal_requested(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        request: Request,
    ) {
        let Request { psn, count } = request;
        self.journal_repair(now, group, Some(branch), |branch| GroupEvent::RequestReceived { branch, psn, count });
    }

    /// Records a packet that is sent to a branch again.
    pub(in crate::groups) fn journal_sending(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        sending: Sending,
    ) {
        if sending.is_again {
            self.journal_repair(now, group, Some(branch), |branch| GroupEvent::SentAgain { branch, psn: sending.psn });
        }
    }

    #[inline]
    fn journal_repair(
        &mut self,
        now: Instant,
        group: u32,
        branch: Option<BranchIndex>,
        event: impl FnOnce(Ipv6Addr) -> GroupEvent,
    ) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            let responder = branch.and_then(|branch| Some(state.entry.branches.get(branch.index())?.responder));
            journal.push(now, state.entry.id, event(responder.unwrap_or(Ipv6Addr::UNSPECIFIED)));
        }
    }
}

impl Journal {
    /// Records what the machine has decided since the last input, by its counters. `response`: the input, of a branch.
    pub(super) fn repaired(
        &mut self,
        now: Instant,
        group: u32,
        state: &GroupState,
        response: Option<(BranchIndex, Response)>,
    ) {
        let (Some(repair), Some(shadow)) = (&state.repair, self.groups.get_mut(&group)) else { return };
        let counters = repair.counters();
        let before: Counters = std::mem::replace(&mut shadow.repair, counters);
        let id: GroupId = state.entry.id;
        if let Some((branch, response)) = response
            && let Some(branch) = state.entry.branches.get(branch.index())
            && (counters.naks_absorbed > before.naks_absorbed || counters.rnr_naks_absorbed > before.rnr_naks_absorbed)
        {
            self.push(now, id, GroupEvent::NakAnswered { branch: branch.responder, psn: response.expected_psn() });
        }
        if counters.gaps_given_up > before.gaps_given_up
            && let Some((psn, _)) = repair.received()
        {
            self.push(now, id, GroupEvent::GapGivenUp { psn });
        }
    }
}
