//! IS-IS beside a node (`docs/isis.md`).
//!
//! ```text
//!  configuration, links ──→ ┌──────┐ ←→ sockets of the circuits
//!  routes and SIDs learnt ← │ task │
//!  what is known          ← └──────┘
//! ```
//!
//! A task of its own, so that no hello is late because the control task waits for the kernel or the data thread.

mod bfd;
mod circuit;
mod learnt;
mod task;

pub(super) use circuit::Link;
pub(super) use learnt::{Known, Learnt};

use super::snapshot::IsisSnapshot;
use crate::configuration::IsisSettings;
use srdma_dataplane::BfdPeer;
use std::sync::Arc;
use task::Task;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Configuration of a system: its settings, and the links of its circuits in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) settings: IsisSettings,
    pub(super) links: Vec<Link>,
}

/// Orders to the task.
#[derive(Debug)]
enum Order {
    /// To be this from now on.
    Follow(Box<Plan>),
    /// BFD has lost this peer.
    Lost(BfdPeer),
    /// Request for a snapshot.
    Snapshot(oneshot::Sender<IsisSnapshot>),
    /// To take leave of its neighbours, and end.
    Stop(oneshot::Sender<()>),
}

/// Events of the task for the control task.
#[derive(Debug)]
pub(super) enum IsisEvent {
    /// Other routes or SIDs than before.
    Learnt,
    /// The task has panicked. No event follows.
    Died,
}

/// Handle for requesting the state of a system. It keeps no task alive.
#[derive(Clone, Debug)]
pub(super) struct Inquiry(mpsc::WeakUnboundedSender<Order>);

impl Inquiry {
    /// State of the system; `None` if the task is gone.
    pub(super) async fn answer(&self) -> Option<IsisSnapshot> {
        let (reply, answer) = oneshot::channel();
        self.0.upgrade()?.send(Order::Snapshot(reply)).ok()?;
        answer.await.ok()
    }
}

/// A task that runs.
#[derive(Debug)]
pub(super) struct IsisHandle {
    plan: Plan,
    orders: mpsc::UnboundedSender<Order>,
    learnt: watch::Receiver<Arc<Learnt>>,
    task: JoinHandle<()>,
    /// Whether the task has died, and that was reported.
    is_dead: bool,
}

impl IsisHandle {
    /// Starts a task in the calling thread's network namespace. Must be called inside a tokio runtime.
    pub(super) fn start(plan: Plan) -> Self {
        let (orders, received_orders) = mpsc::unbounded_channel();
        let (sent_learnt, learnt) = watch::channel(Arc::default());
        let task = Task::new(plan.clone(), received_orders, sent_learnt);
        IsisHandle { plan, orders, learnt, task: tokio::spawn(task.run()), is_dead: false }
    }

    /// Has the task follow another plan, if it is another.
    pub(super) fn follow(&mut self, plan: Plan) {
        if plan != self.plan {
            self.plan = plan.clone();
            // The death of the task is an event.
            let _ = self.orders.send(Order::Follow(Box::new(plan)));
        }
    }

    /// BFD has lost a peer: a hint to use other paths (D90).
    pub(super) fn lose(&self, peer: BfdPeer) {
        // The death of the task is an event.
        let _ = self.orders.send(Order::Lost(peer));
    }

    /// Waits for an event. Nothing is lost when the future is dropped.
    pub(super) async fn event(&mut self) -> IsisEvent {
        if self.is_dead {
            return std::future::pending().await;
        }
        match self.learnt.changed().await {
            Ok(()) => IsisEvent::Learnt,
            Err(_) => {
                self.is_dead = true;
                IsisEvent::Died
            }
        }
    }

    /// Last results of the database.
    pub(super) fn learnt(&mut self) -> Arc<Learnt> {
        Arc::clone(&self.learnt.borrow_and_update())
    }

    /// Handle for requesting the state of the system.
    pub(super) fn inquiry(&self) -> Inquiry {
        Inquiry(self.orders.downgrade())
    }

    /// Takes leave of the neighbours, and ends the task.
    pub(super) async fn stop(self) {
        let (reply, answer) = oneshot::channel();
        if self.orders.send(Order::Stop(reply)).is_ok() {
            // It may have died.
            let _ = answer.await;
        }
        self.task.abort();
    }
}
