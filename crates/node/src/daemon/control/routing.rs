//! The tasks of routing protocols in the control task.

use crate::daemon::isis::Learnt;
use crate::daemon::routing::{Handle, Inquiry, RoutingEvent};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The task of a protocol, while the configuration has one, and what was last exchanged with it.
#[derive(Debug)]
pub(super) struct RoutingSide<P, S, H> {
    pub(super) handle: Option<Handle<P, S, H>>,
    pub(super) learnt: Arc<Learnt>,
    /// Nodes whose notification SIDs do not count, and for which that was logged.
    pub(super) silent: BTreeSet<String>,
}

impl<P, S, H> Default for RoutingSide<P, S, H> {
    fn default() -> Self {
        RoutingSide { handle: None, learnt: Arc::default(), silent: BTreeSet::new() }
    }
}

impl<P: Clone + PartialEq, S, H> RoutingSide<P, S, H> {
    /// Waits for an event; forever while there is no task.
    pub(super) async fn event(&mut self) -> RoutingEvent {
        match &mut self.handle {
            Some(handle) => handle.event().await,
            None => std::future::pending().await,
        }
    }

    /// Handle for requesting the state of the protocol.
    pub(super) fn inquiry(&self) -> Option<Inquiry<P, S, H>> {
        self.handle.as_ref().map(Handle::inquiry)
    }

    /// Has the task follow the configuration; whether there is none any more, and what it had learnt is forgotten.
    pub(super) async fn settle(&mut self, plan: Option<P>, start: impl FnOnce(P) -> Handle<P, S, H>) -> bool {
        match (plan, &mut self.handle) {
            (Some(plan), Some(handle)) => handle.follow(plan),
            (Some(plan), none) => *none = Some(start(plan)),
            (None, Some(_)) => {
                self.stop().await;
                self.learnt = Arc::default();
                return true;
            }
            (None, None) => {}
        }
        false
    }

    /// Notes an event of the task: whether something was learnt.
    pub(super) fn note(&mut self, event: &RoutingEvent) -> bool {
        match (event, &mut self.handle) {
            (RoutingEvent::Learnt, Some(handle)) => {
                self.learnt = handle.learnt();
                true
            }
            (RoutingEvent::Learnt, None) | (RoutingEvent::Died, _) => false,
        }
    }

    /// Nodes whose notification SIDs do not count, each once.
    pub(super) fn newly_silent(&mut self) -> Vec<String> {
        let before = std::mem::replace(&mut self.silent, self.learnt.silent.clone());
        self.silent.difference(&before).cloned().collect()
    }

    /// Takes leave of the neighbours.
    pub(super) async fn stop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.stop().await;
        }
    }
}
