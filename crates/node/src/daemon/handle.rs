//! Handle of the control task for a data thread.

use super::data::{DataThread, stay_on};
use super::interest::Wanted;
use super::order::{Attached, Loss, Order, Refusal};
use super::snapshot::{DaemonState, Snapshot};
use crate::configuration::PortInterface;
use nix::sys::eventfd::{EfdFlags, EventFd};
use srdma_dataplane::{Command, Node};
use srdma_frame::PortId;
use srdma_io::{OpenError, Umem};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use tokio::sync::{mpsc as events, oneshot};

/// Pages of a data thread: for frames that wait to be sent, and for those that drivers keep ready for the kernel.
const PAGES: usize = 8192;
const PAGES_PER_PORT: usize = 4096;

/// A data thread that runs.
#[derive(Debug)]
pub(super) struct DataHandle {
    orders: mpsc::Sender<Order>,
    wake: Arc<EventFd>,
    losses: events::UnboundedReceiver<Loss>,
    thread: JoinHandle<()>,
}

/// The data thread has ended without an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data thread has died; its last lines are above")]
pub(super) struct Died;

impl DataHandle {
    /// Starts a thread for a node, on this processor if one is given.
    pub(super) fn start(node: Node, interest: Wanted, cpu: Option<usize>) -> io::Result<Self> {
        let wake = Arc::new(EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        let (orders, received_orders) = mpsc::channel();
        let (sent_losses, losses) = events::unbounded_channel();
        let (pinned, is_pinned) = mpsc::channel();
        let pages = PAGES + PAGES_PER_PORT * node.config().ports.len();
        let data = DataThread::new(node, Umem::new(pages)?, interest, received_orders, sent_losses, Arc::clone(&wake));
        let thread = Builder::new().name("data".to_owned()).spawn(move || {
            // The caller that starts the thread waits for this.
            let _ = pinned.send(cpu.map_or(Ok(()), stay_on));
            data.run();
        })?;
        is_pinned.recv().unwrap_or(Ok(())).map_err(|error| {
            let cpu = cpu.unwrap_or_default();
            io::Error::new(error.kind(), format!("cannot keep the data thread on cpu {cpu} of [daemon]: {error}"))
        })?;
        Ok(DataHandle { orders, wake, losses, thread })
    }

    /// Carries out commands, all of them between the same two batches.
    pub(super) async fn change(
        &self,
        interest: Option<Wanted>,
        commands: Vec<Command>,
    ) -> Result<Result<(), Refusal>, Died> {
        self.ask(|reply| Order::Change { interest, commands, reply }).await
    }

    /// Gives a port a driver.
    pub(super) async fn attach(
        &self,
        port: PortId,
        interface: PortInterface,
    ) -> Result<Result<Attached, OpenError>, Died> {
        self.ask(|reply| Order::Attach { port, interface, reply }).await
    }

    /// Takes a port's driver away, if it has one.
    pub(super) async fn detach(&self, port: PortId) -> Result<(), Died> {
        self.ask(|reply| Order::Detach { port, reply }).await
    }

    /// Describes the node.
    pub(super) async fn snapshot(&self, state: Box<DaemonState>) -> Result<Snapshot, Died> {
        self.ask(|reply| Order::Snapshot { state, reply }).await
    }

    /// The next port that has lost its driver.
    pub(super) async fn loss(&mut self) -> Result<Loss, Died> {
        self.losses.recv().await.ok_or(Died)
    }

    /// Lets frames that wait leave, and ends the thread; returns how many could not be sent.
    pub(super) async fn stop(self) -> Result<usize, Died> {
        let unsent = self.ask(|reply| Order::Stop { reply }).await?;
        self.thread.join().map_err(|_| Died)?;
        Ok(unsent)
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, Died> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).map_err(|_| Died)?;
        // It cannot be full: that takes 2^64 orders.
        let _ = self.wake.write(1);
        answer.await.map_err(|_| Died)
    }
}
