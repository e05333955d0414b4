//! Handle of the control task for the data threads.

use super::clock::Clock;
use super::coworkers::Coworkers;
use super::interest::Wanted;
use super::order::{Attached, Notice, Order, Refusal};
use super::snapshot::{DaemonState, Snapshot};
pub(super) use super::worker::Died;
use super::worker::{ATTACH_PATIENCE, PATIENCE, STOP_PATIENCE, Start, WorkerHandle};
use crate::configuration::PortInterface;
use nix::sys::eventfd::{EfdFlags, EventFd};
use srdma_dataplane::{BfdPeer, Command, Node};
use srdma_frame::PortId;
use srdma_io::{OpenError, Share};
use std::io;
use std::sync::Arc;
use tokio::sync::{mpsc as events, watch};
use tokio::time::Instant;

/// The data threads of a node, one for each worker.
#[derive(Debug)]
pub(super) struct DataHandle {
    workers: Vec<WorkerHandle>,
    /// The processor of each.
    cpus: Vec<Option<usize>>,
    notices: events::UnboundedReceiver<Notice>,
}

impl DataHandle {
    /// Starts a thread for each worker of a node, on its processor if one is given. `stop` is set when the process is
    /// to end.
    pub(super) fn start(
        nodes: Vec<Node>,
        interest: &Wanted,
        cpus: Vec<Option<usize>>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let (sent_notices, notices) = events::unbounded_channel();
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let bells: Result<Vec<_>, _> =
            nodes.iter().map(|_| EventFd::from_value_and_flags(0, flags).map(Arc::new)).collect();
        let bells = bells?;
        let clock = Clock::new();
        let parts = nodes.into_iter().zip(Coworkers::connect(&bells)).zip(bells).zip(&cpus);
        let workers = parts.map(|(((node, coworkers), wake), cpu)| {
            let (interest, notices, cpu) = (interest.clone(), sent_notices.clone(), *cpu);
            WorkerHandle::start(Start { node, interest, clock, coworkers, wake, notices, cpu }, stop.clone())
        });
        Ok(DataHandle { workers: workers.collect::<io::Result<_>>()?, cpus, notices })
    }

    /// Carries out commands, at each thread all of them between the same two batches. What the first thread refuses is
    /// carried out by none.
    pub(super) async fn change(
        &self,
        interest: Option<Wanted>,
        commands: Vec<Command>,
    ) -> Result<Result<(), Refusal>, Died> {
        let mut answer = Ok(());
        for worker in &self.workers {
            let (interest, commands) = (interest.clone(), commands.clone());
            let order = |reply| Order::Change { interest, commands, reply };
            match worker.ask(PATIENCE, order).await? {
                Err(refusal @ Refusal::Interest(_)) => return Ok(Err(refusal)),
                // It has carried out all others, and so must they.
                Err(refusal) => answer = Err(refusal),
                Ok(()) => {}
            }
        }
        Ok(answer)
    }

    /// Gives a port a driver at each thread.
    pub(super) async fn attach(
        &self,
        port: PortId,
        interface: PortInterface,
    ) -> Result<Result<Attached, OpenError>, Died> {
        self.detach(port).await?;
        let first = self.receiver_of(port);
        let workers = self.workers.len();
        let share = if workers == 1 { Share::All } else { Share::First(workers as u16) };
        let attached = match self.attach_at(first, port, &interface, share).await? {
            Ok(attached) => attached,
            Err(error) => return Ok(Err(error)),
        };
        for number in 1..workers {
            let worker = (first + number) % workers;
            let joining = |group| Share::Joining(group, number as u16);
            let share = attached.group.clone().map_or(Share::Sending, joining);
            if let Err(error) = self.attach_at(worker, port, &interface, share).await? {
                self.detach(port).await?;
                return Ok(Err(error));
            }
        }
        Ok(Ok(attached))
    }

    /// Number of threads.
    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The thread that receives at a port where only one can.
    pub(super) fn receiver_of(&self, port: PortId) -> usize {
        port.index() % self.workers.len()
    }

    async fn attach_at(
        &self,
        worker: usize,
        port: PortId,
        interface: &PortInterface,
        share: Share,
    ) -> Result<Result<Attached, OpenError>, Died> {
        let interface = interface.clone();
        self.workers[worker].ask(ATTACH_PATIENCE, |reply| Order::Attach { port, interface, share, reply }).await
    }

    /// Takes a port's drivers away, if it has any.
    pub(super) async fn detach(&self, port: PortId) -> Result<(), Died> {
        for worker in &self.workers {
            worker.ask(ATTACH_PATIENCE, |reply| Order::Detach { port, reply }).await?;
        }
        Ok(())
    }

    /// Sets the lease for the controller's groups (D122).
    pub(super) async fn lease(&self, end: Option<std::time::Instant>) -> Result<(), Died> {
        for worker in &self.workers {
            worker.ask(PATIENCE, |reply| Order::Lease { end, reply }).await?;
        }
        Ok(())
    }

    /// Has the threads without BFD sessions follow an event of one.
    pub(super) async fn follow_bfd(&self, peer: BfdPeer, change: srdma_bfd::Event) -> Result<(), Died> {
        for worker in &self.workers[1..] {
            worker.ask(PATIENCE, |reply| Order::FollowBfd { peer, change, reply }).await?;
        }
        Ok(())
    }

    /// Describes the node.
    pub(super) async fn snapshot(&self, state: Box<DaemonState>) -> Result<Snapshot, Died> {
        let mut merged: Option<Snapshot> = None;
        for (index, (worker, cpu)) in self.workers.iter().zip(&self.cpus).enumerate() {
            let state = state.clone();
            let mut snapshot = worker.ask(PATIENCE, |reply| Order::Snapshot { state, reply }).await?;
            for worker in &mut snapshot.workers {
                worker.cpu = *cpu;
            }
            match &mut merged {
                None => merged = Some(snapshot),
                Some(merged) => merged.add(snapshot, |port| self.receiver_of(port) == index),
            }
        }
        merged.ok_or(Died::Ended(0))
    }

    /// The next report of a thread's own accord.
    pub(super) async fn notice(&mut self) -> Result<Notice, Died> {
        match self.notices.recv().await {
            Some(Notice::Ended(worker)) => Err(Died::Ended(worker)),
            Some(notice) => Ok(notice),
            None => Err(Died::Ended(0)),
        }
    }

    /// Lets frames that wait leave, and ends the threads; returns how many frames could not be sent.
    pub(super) async fn stop(self) -> Result<usize, Died> {
        let mut unsent = 0;
        let mut died = None;
        let ends = Instant::now() + STOP_PATIENCE;
        let stopping: Vec<_> = self.workers.into_iter().map(WorkerHandle::stop).collect();
        for worker in stopping {
            match worker.finish(ends).await {
                Ok(frames) => unsent += frames,
                Err(error) => died = died.or(Some(error)),
            }
        }
        died.map_or(Ok(unsent), Err)
    }
}
