//! Handle of the control task for a data thread.

use super::data::{DataThread, stay_on};
use super::interest::Wanted;
use super::memory;
use super::order::{Attached, Notice, Order, Refusal};
use super::snapshot::{DaemonState, Snapshot};
use crate::configuration::PortInterface;
use nix::sys::eventfd::{EfdFlags, EventFd};
use srdma_dataplane::{Command, Node};
use srdma_frame::PortId;
use srdma_io::{OpenError, Umem};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::{mpsc as events, oneshot, watch};
use tokio::time::{sleep, timeout};

/// A data thread that runs.
#[derive(Debug)]
pub(super) struct DataHandle {
    orders: mpsc::Sender<Order>,
    wake: Arc<EventFd>,
    notices: events::UnboundedReceiver<Notice>,
    thread: JoinHandle<()>,
    /// Whether the process is to end.
    stop: watch::Receiver<bool>,
    /// It was waited for in vain.
    hangs: AtomicBool,
}

/// Longest wait for an answer of the data thread; it answers between two batches of packets.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same for a driver, whose interface may be reset by it.
const ATTACH_PATIENCE: Duration = Duration::from_secs(25);

/// The same once the process is to end, which takes at most two seconds.
const LAST_PATIENCE: Duration = Duration::from_millis(500);

/// The same for the end of the thread, which may send for a second.
const STOP_PATIENCE: Duration = Duration::from_millis(1400);

/// The data thread has ended without an order, or does not answer (D106).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Died {
    #[error("the data thread has died; its last lines are above")]
    Ended,
    #[error("the data thread hangs: it has stopped to answer")]
    Hangs,
}

impl DataHandle {
    /// Starts a thread for a node, on this processor if one is given. `stop` is set when the process is to end.
    pub(super) fn start(
        node: Node,
        interest: Wanted,
        cpu: Option<usize>,
        stop: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let wake = Arc::new(EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        let (orders, received_orders) = mpsc::channel();
        let (sent_notices, notices) = events::unbounded_channel();
        let (pinned, is_pinned) = mpsc::channel();
        let pages = memory::pages(node.config().ports.len(), node.config().repair_memory_octets);
        let data = DataThread::new(node, Umem::new(pages)?, interest, received_orders, sent_notices, Arc::clone(&wake));
        let thread = Builder::new().name("data".to_owned()).spawn(move || {
            // The caller that starts the thread waits for this.
            let _ = pinned.send(cpu.map_or(Ok(()), stay_on));
            data.run();
        })?;
        is_pinned.recv().unwrap_or(Ok(())).map_err(|error| {
            let cpu = cpu.unwrap_or_default();
            io::Error::new(error.kind(), format!("cannot keep the data thread on cpu {cpu} of [daemon]: {error}"))
        })?;
        Ok(DataHandle { orders, wake, notices, thread, stop, hangs: AtomicBool::new(false) })
    }

    /// Carries out commands, all of them between the same two batches.
    pub(super) async fn change(
        &self,
        interest: Option<Wanted>,
        commands: Vec<Command>,
    ) -> Result<Result<(), Refusal>, Died> {
        self.ask(PATIENCE, |reply| Order::Change { interest, commands, reply }).await
    }

    /// Gives a port a driver.
    pub(super) async fn attach(
        &self,
        port: PortId,
        interface: PortInterface,
    ) -> Result<Result<Attached, OpenError>, Died> {
        self.ask(ATTACH_PATIENCE, |reply| Order::Attach { port, interface, reply }).await
    }

    /// Takes a port's driver away, if it has one.
    pub(super) async fn detach(&self, port: PortId) -> Result<(), Died> {
        self.ask(ATTACH_PATIENCE, |reply| Order::Detach { port, reply }).await
    }

    /// Sets the lease for the controller's groups (D122).
    pub(super) async fn lease(&self, end: Option<std::time::Instant>) -> Result<(), Died> {
        self.ask(PATIENCE, |reply| Order::Lease { end, reply }).await
    }

    /// Describes the node.
    pub(super) async fn snapshot(&self, state: Box<DaemonState>) -> Result<Snapshot, Died> {
        self.ask(PATIENCE, |reply| Order::Snapshot { state, reply }).await
    }

    /// The next report of the thread's own accord.
    pub(super) async fn notice(&mut self) -> Result<Notice, Died> {
        self.notices.recv().await.ok_or(Died::Ended)
    }

    /// Lets frames that wait leave, and ends the thread; returns how many could not be sent. A thread that hangs ends
    /// with the process.
    pub(super) async fn stop(self) -> Result<usize, Died> {
        if self.hangs.load(Ordering::Relaxed) {
            return Err(Died::Hangs);
        }
        let answer = self.order(|reply| Order::Stop { reply })?;
        let unsent = timeout(STOP_PATIENCE, answer).await.map_err(|_| Died::Hangs)?.map_err(|_| Died::Ended)?;
        // Nothing is left to do for it.
        self.thread.join().map_err(|_| Died::Ended)?;
        Ok(unsent)
    }

    /// The answer to an order, for which it waits so long, or shortly once the process is to end.
    async fn ask<T>(&self, patience: Duration, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, Died> {
        let answer = self.order(order)?;
        let mut stop = self.stop.clone();
        let is_out_of_patience = async {
            tokio::select! {
                () = sleep(patience) => {}
                Ok(_) = stop.wait_for(|stop| *stop) => sleep(LAST_PATIENCE).await,
            }
        };
        tokio::select! {
            biased;
            answer = answer => answer.map_err(|_| Died::Ended),
            () = is_out_of_patience => {
                self.hangs.store(true, Ordering::Relaxed);
                Err(Died::Hangs)
            }
        }
    }

    fn order<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<oneshot::Receiver<T>, Died> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).map_err(|_| Died::Ended)?;
        // It cannot be full: that takes 2^64 orders.
        let _ = self.wake.write(1);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use tokio::time::Instant;

    /// A thread that answers this many orders, and hangs then. It ends with the process.
    fn answering(count: usize) -> (DataHandle, watch::Sender<bool>) {
        let (orders, received) = mpsc::channel();
        let (_, notices) = events::unbounded_channel();
        let (stopping, stop) = watch::channel(false);
        let thread = thread::spawn(move || {
            for order in received.iter().take(count) {
                if let Order::Detach { reply, .. } = order {
                    reply.send(()).unwrap();
                }
            }
            let _orders = received;
            loop {
                thread::park();
            }
        });
        let wake = Arc::new(EventFd::new().unwrap());
        (DataHandle { orders, wake, notices, thread, stop, hangs: AtomicBool::new(false) }, stopping)
    }

    /// In virtual time: a wait for the thread is limited, and the error names it.
    #[tokio::test(start_paused = true)]
    async fn a_data_thread_that_hangs_is_noticed() {
        let (data, _stopping) = answering(0);
        let begin = Instant::now();
        let hangs = data.change(None, Vec::new()).await.unwrap_err();
        assert_eq!((hangs, begin.elapsed()), (Died::Hangs, PATIENCE));
        assert!(hangs.to_string().contains("data thread hangs"));
        assert_eq!((data.stop().await, begin.elapsed()), (Err(Died::Hangs), PATIENCE));
    }

    /// A signal that comes while the control task waits ends it within two seconds, and so does one that comes before.
    #[tokio::test(start_paused = true)]
    async fn a_signal_ends_the_wait_for_a_data_thread_that_hangs() {
        for is_before in [false, true] {
            let (data, stopping) = answering(0);
            let signal = || stopping.send_replace(true);
            if is_before {
                signal();
            }
            let begin = Instant::now();
            let after = async {
                sleep(Duration::from_secs(1)).await;
                signal();
                std::future::pending::<()>().await;
            };
            let answer = tokio::select! {
                answer = data.change(None, Vec::new()) => answer,
                () = after => unreachable!("it never ends"),
            };
            assert_eq!(answer, Err(Died::Hangs));
            assert_eq!(data.stop().await, Err(Died::Hangs));
            let since = begin.elapsed() - if is_before { Duration::ZERO } else { Duration::from_secs(1) };
            assert!(since < Duration::from_secs(2), "{since:?}");
        }
        // No order was under way.
        let (data, stopping) = answering(0);
        stopping.send_replace(true);
        let begin = Instant::now();
        assert_eq!(data.stop().await, Err(Died::Hangs));
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    /// Not in virtual time, which would pass while the thread works.
    #[tokio::test]
    async fn a_thread_that_answers_does_not_hang() {
        let (data, _stopping) = answering(2);
        for _ in 0..2 {
            assert_eq!(data.detach(PortId(0)).await, Ok(()));
        }
        assert!(!data.hangs.load(Ordering::Relaxed));
    }
}
