//! The end of a group that another one resumes (D193): the receiver has versions of the former in its slots.

use super::{Rejection, SlotState, Subscriber};

impl Subscriber {
    /// The group has ended, and the receiver joins the one that resumes it, by another queue pair with the same memory.
    /// What is not whole is rejected; versions that the application has stay where they are. Returns whether there are
    /// any, so that the slots have to be the same. `strays`: those of the memory so far.
    pub(crate) fn resume(&mut self, strays: u64) -> bool {
        let received = self.verifying.drain(..).map(|one| one.manifest).chain(self.receiving.take());
        let unfinished: Vec<_> = self.unicast.take().into_iter().chain(received).collect();
        for manifest in unfinished {
            self.reject(&manifest, Rejection::Interrupted);
        }
        (self.posted, self.completed, self.strays) = (0, 0, strays);
        (self.has_ended, self.has_failed) = (false, false);
        // One that was interrupted may come again.
        self.newest = self.newest_whole;
        let is_held = |state: &SlotState| matches!(state, SlotState::Held { .. });
        self.known = self.known.take().filter(|known| known.states.iter().any(is_held));
        if let Some(known) = &mut self.known {
            known.next_sequence = Some(0);
        }
        self.known.is_some()
    }

    /// The group that it follows to has begun before: its next version may be any.
    pub(crate) fn joins_late(&mut self) {
        if let Some(known) = &mut self.known {
            known.next_sequence = None;
        }
    }
}
