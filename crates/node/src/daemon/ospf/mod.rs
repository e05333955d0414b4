//! OSPFv3 beside a node (`docs/ospf.md`).

mod circuit;
mod learnt;
mod task;

pub(super) use circuit::Link;
pub(super) use learnt::Known;

use super::routing;
use super::snapshot::OspfSnapshot;
use crate::configuration::OspfSettings;
use std::convert::Infallible;
use task::Task;

/// Configuration of a router: its settings, and the links of its circuits in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) settings: OspfSettings,
    pub(super) links: Vec<Link>,
}

/// Orders to the task, which gets no hints.
type Order = routing::Order<Plan, OspfSnapshot, Infallible>;

/// Handle for requesting the state of a router.
pub(super) type Inquiry = routing::Inquiry<Plan, OspfSnapshot, Infallible>;

/// A task that runs.
pub(super) type OspfHandle = routing::Handle<Plan, OspfSnapshot, Infallible>;

/// Starts a task in the calling thread's network namespace. Must be called inside a tokio runtime.
pub(super) fn start(plan: Plan) -> OspfHandle {
    OspfHandle::start(plan, |plan, orders, learnt| Task::new(plan, orders, learnt).run())
}
