//! A data thread, as the control task sees it.

use super::clock::Clock;
use super::coworkers::Coworkers;
use super::data::{DataThread, stay_on};
use super::interest::Wanted;
use super::memory;
use super::order::{Notice, Order};
use nix::sys::eventfd::EventFd;
use srdma_dataplane::Node;
use srdma_io::Umem;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::{mpsc as events, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};

/// A thread that runs.
#[derive(Debug)]
pub(super) struct WorkerHandle {
    index: usize,
    orders: mpsc::Sender<Order>,
    wake: Arc<EventFd>,
    thread: JoinHandle<()>,
    /// Whether the process is to end.
    stop: watch::Receiver<bool>,
    /// It was waited for in vain.
    hangs: AtomicBool,
}

/// Longest wait for an answer of a data thread; it answers between two batches of packets.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The same for a driver, whose interface may be reset by it.
pub(super) const ATTACH_PATIENCE: Duration = Duration::from_secs(25);

/// The same once the process is to end, which takes at most two seconds.
const LAST_PATIENCE: Duration = Duration::from_millis(500);

/// The same for the end of the thread, which may send for a second.
pub(super) const STOP_PATIENCE: Duration = Duration::from_millis(1400);

/// A data thread has ended without an order, or does not answer (D106).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Died {
    #[error("data thread {0} has died; its last lines are above")]
    Ended(usize),
    #[error("data thread {0} hangs: it has stopped to answer")]
    Hangs(usize),
}

/// What a data thread gets at its start.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) node: Node,
    pub(super) interest: Wanted,
    pub(super) clock: Clock,
    pub(super) coworkers: Coworkers,
    pub(super) wake: Arc<EventFd>,
    pub(super) notices: events::UnboundedSender<Notice>,
    /// The processor that it stays on.
    pub(super) cpu: Option<usize>,
}

impl WorkerHandle {
    /// Starts a thread. `stop` is set when the process is to end.
    pub(super) fn start(start: Start, stop: watch::Receiver<bool>) -> io::Result<Self> {
        let (worker, cpu, wake) = (start.coworkers.worker(), start.cpu, Arc::clone(&start.wake));
        let (orders, received_orders) = mpsc::channel();
        let (pinned, is_pinned) = mpsc::channel();
        let config = start.node.config();
        let ports = config.ports.len().div_ceil(worker.count());
        let memory = Umem::new(memory::pages(ports, config.repair_memory_octets))?;
        let end = End { index: worker.index(), notices: start.notices.clone() };
        let data = DataThread::new(start, memory, received_orders);
        let name = if worker.is_alone() { "data".to_owned() } else { format!("data{}", worker.index()) };
        let thread = Builder::new().name(name).spawn(move || {
            let _end = end;
            // The caller that starts the thread waits for this.
            let _ = pinned.send(cpu.map_or(Ok(()), stay_on));
            data.run();
        })?;
        is_pinned.recv().unwrap_or(Ok(())).map_err(|error| {
            let (index, cpu) = (worker.index(), cpu.unwrap_or_default());
            io::Error::new(error.kind(), format!("cannot keep data thread {index} on processor {cpu}: {error}"))
        })?;
        Ok(WorkerHandle { index: worker.index(), orders, wake, thread, stop, hangs: AtomicBool::new(false) })
    }

    /// Begins to end the thread. A thread that hangs ends with the process.
    pub(super) fn stop(self) -> Stopping {
        let answer = match self.hangs.load(Ordering::Relaxed) {
            true => Err(Died::Hangs(self.index)),
            false => self.order(|reply| Order::Stop { reply }),
        };
        Stopping { index: self.index, answer, thread: self.thread }
    }

    /// The answer to an order, for which it waits so long, or shortly once the process is to end.
    pub(super) async fn ask<T>(
        &self,
        patience: Duration,
        order: impl FnOnce(oneshot::Sender<T>) -> Order,
    ) -> Result<T, Died> {
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
            answer = answer => answer.map_err(|_| Died::Ended(self.index)),
            () = is_out_of_patience => {
                self.hangs.store(true, Ordering::Relaxed);
                Err(Died::Hangs(self.index))
            }
        }
    }

    fn order<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<oneshot::Receiver<T>, Died> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).map_err(|_| Died::Ended(self.index))?;
        // It cannot be full: that takes 2^64 orders.
        let _ = self.wake.write(1);
        Ok(answer)
    }
}

/// A thread that sends what waits, and ends.
#[derive(Debug)]
pub(super) struct Stopping {
    index: usize,
    answer: Result<oneshot::Receiver<usize>, Died>,
    thread: JoinHandle<()>,
}

impl Stopping {
    /// Waits for the end of the thread, at most until `ends`; returns how many frames it could not send.
    pub(super) async fn finish(self, ends: Instant) -> Result<usize, Died> {
        let answer = timeout_at(ends, self.answer?).await.map_err(|_| Died::Hangs(self.index))?;
        let unsent = answer.map_err(|_| Died::Ended(self.index))?;
        // Nothing is left to do for it.
        self.thread.join().map_err(|_| Died::Ended(self.index))?;
        Ok(unsent)
    }
}

/// Reports the end of a thread, whatever its cause.
#[derive(Debug)]
struct End {
    index: usize,
    notices: events::UnboundedSender<Notice>,
}

impl Drop for End {
    fn drop(&mut self) {
        // The control task may be ending.
        let _ = self.notices.send(Notice::Ended(self.index));
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Refusal;
    use super::*;
    use srdma_frame::PortId;
    use std::thread;

    async fn change(data: &WorkerHandle) -> Result<Result<(), Refusal>, Died> {
        data.ask(PATIENCE, |reply| Order::Change { interest: None, commands: Vec::new(), reply }).await
    }

    async fn detach(data: &WorkerHandle) -> Result<(), Died> {
        data.ask(ATTACH_PATIENCE, |reply| Order::Detach { port: PortId(0), reply }).await
    }

    /// A thread that answers this many orders, and hangs then. It ends with the process.
    fn answering(count: usize) -> (WorkerHandle, watch::Sender<bool>) {
        let (orders, received) = mpsc::channel();
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
        (WorkerHandle { index: 3, orders, wake, thread, stop, hangs: AtomicBool::new(false) }, stopping)
    }

    /// In virtual time: a wait for the thread is limited, and the error names it.
    #[tokio::test(start_paused = true)]
    async fn a_data_thread_that_hangs_is_noticed() {
        let (data, _stopping) = answering(0);
        let begin = Instant::now();
        let hangs = change(&data).await.unwrap_err();
        assert_eq!((hangs, begin.elapsed()), (Died::Hangs(3), PATIENCE));
        assert!(hangs.to_string().contains("data thread 3 hangs"));
        assert_eq!(
            (data.stop().finish(Instant::now() + STOP_PATIENCE).await, begin.elapsed()),
            (Err(Died::Hangs(3)), PATIENCE)
        );
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
                answer = change(&data) => answer,
                () = after => unreachable!("it never ends"),
            };
            assert_eq!(answer, Err(Died::Hangs(3)));
            assert_eq!(data.stop().finish(Instant::now() + STOP_PATIENCE).await, Err(Died::Hangs(3)));
            let since = begin.elapsed() - if is_before { Duration::ZERO } else { Duration::from_secs(1) };
            assert!(since < Duration::from_secs(2), "{since:?}");
        }
        // No order was under way.
        let (data, stopping) = answering(0);
        stopping.send_replace(true);
        let begin = Instant::now();
        assert_eq!(data.stop().finish(Instant::now() + STOP_PATIENCE).await, Err(Died::Hangs(3)));
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    /// Not in virtual time, which would pass while the thread works.
    #[tokio::test]
    async fn a_thread_that_answers_does_not_hang() {
        let (data, _stopping) = answering(2);
        for _ in 0..2 {
            assert_eq!(detach(&data).await, Ok(()));
        }
        assert!(!data.hangs.load(Ordering::Relaxed));
    }
}
