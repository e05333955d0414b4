//! IS-IS beside a node (`docs/isis.md`).

mod backups;
mod bfd;
mod circuit;
mod learnt;
mod task;

pub(super) use circuit::Link;
pub(super) use learnt::{Known, Learnt, is_silent};

use super::routing;
use super::snapshot::IsisSnapshot;
use crate::configuration::IsisSettings;
use srdma_dataplane::BfdPeer;
use task::Task;

/// Configuration of a system: its settings, and the links of its circuits in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) settings: IsisSettings,
    pub(super) links: Vec<Link>,
}

/// Orders to the task. BFD's hints are the peers that it has lost.
type Order = routing::Order<Plan, IsisSnapshot, BfdPeer>;

/// Handle for requesting the state of a system.
pub(super) type Inquiry = routing::Inquiry<Plan, IsisSnapshot, BfdPeer>;

/// A task that runs.
pub(super) type IsisHandle = routing::Handle<Plan, IsisSnapshot, BfdPeer>;

/// Starts a task in the calling thread's network namespace. Must be called inside a tokio runtime.
pub(super) fn start(plan: Plan) -> IsisHandle {
    IsisHandle::start(plan, |plan, orders, learnt| Task::new(plan, orders, learnt).run())
}
