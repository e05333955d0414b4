//! Source sessions: permission to send, and pauses (D30, D31).

use super::{Core, Group};
use crate::principal::Principal;
use crate::refusal::Refusal;
use srdma_api::ProblemType;
use srdma_api::{SourceOrder, SourceReport, SourceService, SourceState};
use srdma_group::Order;
use srdma_wire::Psn;

impl Core {
    /// Handles a report of a source; returns its order.
    pub fn report_source(
        &mut self,
        principal: &Principal,
        id: u32,
        report: SourceReport,
    ) -> Result<SourceOrder, Refusal> {
        let group = self.groups.get(&id).ok_or_else(|| self.missing(id))?;
        principal.may_change(&group.row.tenant)?;
        if group.row.source == SourceState::Ended && !report.ended {
            let text = format!("the source of group {id} has ended: create another group to send again");
            return Err(Refusal::new(ProblemType::SourceEnded, text));
        }
        self.note_source(id, report.ended);
        if let Some((group, psn)) = self.groups.get_mut(&id).zip(report.acknowledged_psn) {
            group.note_completed(Psn::new(psn));
        }
        let lifecycle = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut());
        if let (Some(lifecycle), Some(round)) = (lifecycle, report.round) {
            lifecycle.source_knows(round, report.pausing);
            match report.paused_at_psn {
                Some(psn) if report.pausing => lifecycle.quiescent(round, Psn::new(psn), report.completed_messages),
                Some(_) | None if !report.pausing => lifecycle.running(round),
                Some(_) | None => {}
            }
            if let Some(psn) = report.acknowledged_psn {
                lifecycle.settled(Psn::new(psn));
            }
        }
        self.drive(id);
        Ok(self.source_order(id))
    }

    /// Notes where a source serves the version that it published last (D190).
    pub fn state_service(&mut self, principal: &Principal, id: u32, service: SourceService) -> Result<(), Refusal> {
        let known = self.changeable(id, principal, None)?.row.service.as_ref();
        let is_key = service.key.len() == 64 && service.key.bytes().all(|digit| digit.is_ascii_hexdigit());
        if service.port == 0 || !is_key {
            let text = "service: expected a port above 0, and a key of 64 hexadecimal digits";
            return Err(Refusal::new(ProblemType::InvalidRequest, text));
        }
        if known != Some(&service) {
            if let Some(group) = self.groups.get_mut(&id) {
                group.row.service = Some(service);
            }
            self.write_group(id);
            self.audit(&principal.name, "service", format!("group {id}"));
        }
        Ok(())
    }

    /// Whether the source of a group has begun, and is not heard any more.
    pub(super) fn is_source_silent(&self, group: &Group) -> bool {
        let silent_for = self.now.monotonic.saturating_sub(group.source_seen);
        group.row.source == SourceState::Sending && silent_for >= self.settings.source_silent_after
    }

    /// Records that the source is alive, or has ended.
    fn note_source(&mut self, id: u32, ends: bool) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.source_seen = self.now.monotonic;
        let state = if ends { SourceState::Ended } else { SourceState::Sending };
        if group.row.source == state {
            return;
        }
        // It may send from now on: the state is durable before its order leaves.
        group.row.source = state;
        if ends && let Some(lifecycle) = &mut group.lifecycle {
            lifecycle.abort_joins("the source has ended");
        }
        self.write_group(id);
    }

    /// The current order of a source.
    pub fn source_order(&self, id: u32) -> SourceOrder {
        let Some(group) = self.groups.get(&id).filter(|group| !group.row.is_closing) else {
            return SourceOrder::End;
        };
        if group.row.source == SourceState::Ended {
            return SourceOrder::End;
        }
        match group.lifecycle.as_ref().and_then(|lifecycle| lifecycle.source_order()) {
            Some(Order::Ready { round }) => SourceOrder::Send { round },
            Some(Order::Pause { round }) => SourceOrder::Pause { round },
            Some(_) | None => SourceOrder::Wait,
        }
    }
}
