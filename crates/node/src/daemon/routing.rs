//! Handles of tasks that run a routing protocol: what the control task orders, and what it learns.
//!
//! ```text
//!  plan, hints            ──→ ┌──────┐ ←→ sockets of the circuits
//!  routes and SIDs learnt ←── │ task │
//!  snapshots              ←── └──────┘
//! ```
//!
//! A task of its own, so that no hello is late because the control task waits for the kernel or the data thread.

use super::isis::Learnt;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Orders to a task with plans `P`, snapshots `S` and hints `H` from other protocols.
#[derive(Debug)]
pub(super) enum Order<P, S, H> {
    /// To be this from now on.
    Follow(Box<P>),
    /// Another protocol has found something.
    Hint(H),
    /// Request for a snapshot.
    Snapshot(oneshot::Sender<S>),
    /// To take leave of its neighbours, and end.
    Stop(oneshot::Sender<()>),
}

/// Events of a task for the control task.
#[derive(Debug)]
pub(super) enum RoutingEvent {
    /// Other routes or SIDs than before.
    Learnt,
    /// The task has panicked. No event follows.
    Died,
}

/// Handle for requesting the state of a protocol. It keeps no task alive.
#[derive(Debug)]
pub(super) struct Inquiry<P, S, H>(mpsc::WeakUnboundedSender<Order<P, S, H>>);

impl<P, S, H> Clone for Inquiry<P, S, H> {
    fn clone(&self) -> Self {
        Inquiry(self.0.clone())
    }
}

impl<P, S, H> Inquiry<P, S, H> {
    /// State of the protocol; `None` if the task is gone.
    pub(super) async fn answer(&self) -> Option<S> {
        let (reply, answer) = oneshot::channel();
        self.0.upgrade()?.send(Order::Snapshot(reply)).ok()?;
        answer.await.ok()
    }
}

/// A task that runs.
#[derive(Debug)]
pub(super) struct Handle<P, S, H> {
    plan: P,
    orders: mpsc::UnboundedSender<Order<P, S, H>>,
    learnt: watch::Receiver<Arc<Learnt>>,
    task: JoinHandle<()>,
    /// Whether the task has died, and that was reported.
    is_dead: bool,
}

impl<P: Clone + PartialEq, S, H> Handle<P, S, H> {
    /// Starts the task that `run` makes, in the calling thread's network namespace. Must be called inside a tokio
    /// runtime.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        plan: P,
        run: impl FnOnce(P, mpsc::UnboundedReceiver<Order<P, S, H>>, watch::Sender<Arc<Learnt>>) -> F,
    ) -> Self {
        let (orders, received_orders) = mpsc::unbounded_channel();
        let (sent_learnt, learnt) = watch::channel(Arc::default());
        let task = tokio::spawn(run(plan.clone(), received_orders, sent_learnt));
        Handle { plan, orders, learnt, task, is_dead: false }
    }

    /// Has the task follow another plan, if it is another.
    pub(super) fn follow(&mut self, plan: P) {
        if plan != self.plan {
            self.plan = plan.clone();
            // The death of the task is an event.
            let _ = self.orders.send(Order::Follow(Box::new(plan)));
        }
    }

    /// Another protocol has found something.
    pub(super) fn hint(&self, hint: H) {
        // The death of the task is an event.
        let _ = self.orders.send(Order::Hint(hint));
    }

    /// Waits for an event. Nothing is lost when the future is dropped.
    pub(super) async fn event(&mut self) -> RoutingEvent {
        if self.is_dead {
            return std::future::pending().await;
        }
        match self.learnt.changed().await {
            Ok(()) => RoutingEvent::Learnt,
            Err(_) => {
                self.is_dead = true;
                RoutingEvent::Died
            }
        }
    }

    /// Last results of the database.
    pub(super) fn learnt(&mut self) -> Arc<Learnt> {
        Arc::clone(&self.learnt.borrow_and_update())
    }

    /// Handle for requesting the state of the protocol.
    pub(super) fn inquiry(&self) -> Inquiry<P, S, H> {
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
