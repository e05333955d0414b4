//! The sources' side: when they may send, and when they pause (D30, D31).

use super::{Core, unknown};
use crate::access::Who;
use crate::refusal::Refusal;
use srdma_api::{SourceOrder, SourceReport};
use srdma_group::Order;
use srdma_wire::Psn;

impl Core {
    /// The source's side reports; returns what it is to do.
    pub(crate) fn source(&mut self, who: &Who, id: u32, report: SourceReport) -> Result<SourceOrder, Refusal> {
        let group = self.groups.get(&id).ok_or_else(|| unknown(id))?;
        who.may_change(&group.row.tenant)?;
        if !group.row.has_begun {
            // From now on it may have sent something: this is durable before it hears that it may.
            if let Some(group) = self.groups.get_mut(&id) {
                group.row.has_begun = true;
            }
            self.write_group(id);
        }
        let lifecycle = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut());
        if let (Some(lifecycle), Some(round)) = (lifecycle, report.round) {
            match report.quiet_at_psn {
                Some(psn) if report.paused => lifecycle.quiescent(round, Psn::new(psn), report.completed_messages),
                Some(_) | None if !report.paused => lifecycle.running(round),
                Some(_) | None => {}
            }
            if let Some(psn) = report.settled_psn {
                lifecycle.settled(Psn::new(psn));
            }
        }
        self.drive(id);
        Ok(self.source_order(id))
    }

    /// What the source is to do now.
    pub(crate) fn source_order(&self, id: u32) -> SourceOrder {
        let Some(group) = self.groups.get(&id).filter(|group| !group.row.is_closing) else {
            return SourceOrder::Closed;
        };
        match group.lifecycle.as_ref().and_then(|lifecycle| lifecycle.source_order()) {
            Some(Order::Ready { round }) => SourceOrder::Ready { round },
            Some(Order::Pause { round }) => SourceOrder::Pause { round },
            Some(_) | None => SourceOrder::Wait,
        }
    }
}
