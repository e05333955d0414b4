//! A data thread: a node, or one of its workers, its pool and the drivers of its ports.
//!
//! ```text
//!   ┌→ orders ─→ of other workers, of each port: a batch in ─→ timers ─→ of each port: queue out ─┐
//!   │                                                                                             │
//!   └────────────── something done? at once ── else wait for frames, ←────────────────────────────┘
//!                                              orders or the next timer
//! ```

use super::clock::Clock;
use super::coworkers::Coworkers;
use super::evictions::Evictions;
use super::fast_path::FastPath;
use super::interest::Wanted;
use super::order::{Attached, Loss, Notice, Order, Refusal};
use super::pace::Pace;
use super::port::Port;
use super::received::Received;
use super::snapshot::WorkerSnapshot;
use super::worker::Start;
use crate::configuration::PortInterface;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::eventfd::EventFd;
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::unistd::Pid;
use srdma_dataplane::{Command, Lease, Node};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_io::{Choice, OpenError, Share, Umem};
use srdma_wire::Instant;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// Frames that one port may bring before the others have their turn.
const BATCH: usize = 64;

/// Delay before frames without room on the wire are tried again: the kernel can hold more than leaves meanwhile.
const BACKLOG_PERIOD: Duration = Duration::from_micros(200);

/// Time for frames to leave when the node stops.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// State of a data thread.
#[derive(Debug)]
pub(super) struct DataThread {
    node: Node,
    /// Memory that drivers share with the pool.
    umem: Umem,
    pool: Pool,
    ports: Vec<Port>,
    /// Drivers opened so far.
    attached: u64,
    interest: Wanted,
    clock: Clock,
    coworkers: Coworkers,
    orders: Receiver<Order>,
    notices: UnboundedSender<Notice>,
    /// Readable when there is an order.
    wake: Arc<EventFd>,
    evictions: Evictions,
    fast_path: FastPath,
    received: Received,
    /// Kept for its memory.
    frames: Vec<Frame>,
    /// Kept for its memory.
    ready: Vec<PortId>,
}

impl DataThread {
    /// A thread for a node whose ports have no drivers yet.
    pub(super) fn new(start: Start, (umem, pool): (Umem, Pool), orders: Receiver<Order>) -> Self {
        let Start { node, interest, clock, coworkers, wake, notices, cpu: _ } = start;
        let ports = node.config().ports.iter().map(|_| Port::default()).collect();
        DataThread {
            node,
            umem,
            pool,
            ports,
            attached: 0,
            interest,
            clock,
            coworkers,
            orders,
            notices,
            wake,
            evictions: Evictions::default(),
            fast_path: FastPath::default(),
            received: Received::default(),
            frames: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Runs until an order to stop, or until all senders of orders are gone.
    pub(super) fn run(mut self) {
        // The kernel may extend a sleep by 50 µs, and a held NAK waits for 20 (R5). Where the shorter slack is refused,
        // the node is that late.
        let _ = set_timerslack(1);
        loop {
            match self.orders.try_recv() {
                Ok(Order::Stop { reply }) => {
                    // The receiver of the reply may be gone.
                    let _ = reply.send(self.stop());
                    return;
                }
                Ok(order) => self.carry_out(order),
                Err(TryRecvError::Disconnected) => {
                    self.stop();
                    return;
                }
                Err(TryRecvError::Empty) => {}
            }
            self.fast_path.follow(&self.node, &mut self.ports, &self.interest);
            if !self.round() {
                self.wait();
            }
        }
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A batch of every port; returns whether there was anything to do.
    fn round(&mut self) -> bool {
        let began = self.node.has_bfd().then(|| (self.now(), self.coworkers.received_until()));
        let taken = self.coworkers.exchange.receive(self.now(), &mut self.node, &mut self.pool, BATCH);
        let mut worked = taken > 0;
        for index in 0..self.ports.len() {
            let id = PortId(index as u16);
            let received = self.ports[index].receive(&mut self.pool, &mut self.frames, BATCH);
            if !self.frames.is_empty() {
                worked = true;
                self.node.receive(self.now(), id, &mut self.frames, &mut self.pool);
            }
            match received {
                // It may come up again, and its driver with it.
                Err(error) if error.kind() == io::ErrorKind::NetworkDown => {}
                Err(error) => self.lose(id, error),
                Ok(()) => {}
            }
        }
        self.coworkers.pass(&mut self.node, &mut self.pool);
        if let Some((began, others)) = began {
            let is_drained = taken < BATCH && self.ports.iter().all(Port::is_drained);
            let until = self.received.round(began, is_drained);
            self.coworkers.set_received_until(until);
            self.node.set_received_until(until.min(others));
        }
        let now = self.now();
        if self.node.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.node.tick(now, &mut self.pool);
            worked = true;
        }
        for event in self.node.take_events() {
            self.evictions.observe(event);
        }
        for (peer, change) in self.node.take_bfd_events() {
            // The control task may be ending.
            let _ = self.notices.send(Notice::Bfd { peer, change });
        }
        self.send(now) || worked
    }

    /// Sends what the node has queued; returns whether there was anything that could be sent.
    fn send(&mut self, now: Instant) -> bool {
        self.coworkers.pass(&mut self.node, &mut self.pool);
        self.node.take_ready(&mut self.ready);
        for id in self.ready.drain(..) {
            self.ports[id.index()].is_waiting = true;
        }
        let mut worked = false;
        for index in 0..self.ports.len() {
            let id = PortId(index as u16);
            match self.ports[index].send(now, id, &mut self.node, &mut self.pool) {
                Ok(sent) => worked |= sent,
                Err(error) => self.lose(id, error),
            }
        }
        worked
    }

    /// Sleeps until a port has frames or an order has come, at most until the node's next deadline.
    fn wait(&mut self) {
        if !self.coworkers.exchange.fall_asleep() {
            return;
        }
        let now = self.now();
        let backlog = self.ports.iter().filter_map(|port| port.next_try(now, BACKLOG_PERIOD)).min();
        let handover = self.coworkers.exchange.is_backlogged().then_some(BACKLOG_PERIOD);
        let deadline = self.node.next_deadline().map(|deadline| deadline.since(now));
        let report = self.coworkers.report_period(&self.node);
        let timeout = deadline.into_iter().chain(backlog).chain(handover).chain(report).min();
        let timeout = timeout.map(TimeSpec::from_duration);
        let mut waited_for = vec![PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
        for port in &self.ports {
            let Some(readable) = port.driver.as_ref().and_then(|driver| driver.readable()) else {
                continue;
            };
            waited_for.push(PollFd::new(readable, PollFlags::POLLIN));
        }
        match ppoll(&mut waited_for, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            // Out of memory for a moment: rather slow than not at all.
            Err(_) => std::thread::sleep(BACKLOG_PERIOD),
        }
        if waited_for[0].any() == Some(true) {
            // Only that it was written to matters.
            let _ = self.wake.read();
        }
        self.coworkers.exchange.wake_up();
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            // A reply without a receiver is discarded.
            Order::Change { interest, commands, reply } => {
                let changed = self.change(interest, commands);
                self.fast_path.follow(&self.node, &mut self.ports, &self.interest);
                let _ = reply.send(changed);
            }
            Order::Attach { port, interface, share, reply } => {
                let _ = reply.send(self.attach(port, &interface, &share));
            }
            Order::Detach { port, reply } => {
                self.fast_path.detached(port);
                if let Some(port) = self.ports.get_mut(port.index()) {
                    port.detach(&mut self.pool);
                }
                let _ = reply.send(());
            }
            Order::Lease { end, reply } => {
                self.node.set_lease(end.map_or(Lease::Off, |end| Lease::Until(self.clock.at(end))));
                let _ = reply.send(());
            }
            Order::FollowBfd { peer, change, reply } => {
                self.node.follow_bfd(peer, change);
                let _ = reply.send(());
            }
            Order::Snapshot { mut state, reply } => {
                // Snapshots come twice a second.
                self.umem.reclaim(std::time::Instant::now(), &mut self.pool);
                self.fast_path.check_targets();
                for (port, state) in self.ports.iter().zip(&mut state.ports) {
                    state.driver = port.driver.as_ref().map(|driver| driver.kind());
                    state.note.clone_from(&port.note);
                    state.statistics = port.statistics();
                }
                for (port, config) in self.node.config().ports.iter().enumerate() {
                    if let Some(vlan) = config.vlan {
                        state.ports[port].driver = state.ports[vlan.parent.index()].driver;
                    }
                }
                let mut snapshot = super::snapshot::Snapshot::of(&self.node, &state);
                self.evictions.show(&mut snapshot);
                snapshot.workers = vec![WorkerSnapshot::of(&snapshot.ports, self.coworkers.exchange.counters())];
                self.fast_path.show(&mut snapshot);
                let _ = reply.send(snapshot);
            }
            Order::Stop { .. } => {}
        }
    }

    /// Frames that the new interest brings find the new commands carried out, since none is taken in between.
    fn change(&mut self, interest: Option<Wanted>, commands: Vec<Command>) -> Result<(), Refusal> {
        if let Some(interest) = interest {
            if let Err(reason) = self.set_interest(&interest) {
                // The drivers have the previous interest.
                let _ = self.set_interest(&self.interest.clone());
                return Err(Refusal::Interest(reason));
            }
            self.interest = interest;
            self.fast_path.interest_changed();
        }
        let mut refused = None;
        for command in commands {
            if let Err(error) = self.node.apply(command) {
                refused.get_or_insert(error);
            }
        }
        self.ports.resize_with(self.node.config().ports.len(), Port::default);
        refused.map_or(Ok(()), |error| Err(Refusal::Command(error.to_string())))
    }

    fn set_interest(&mut self, interest: &Wanted) -> Result<(), String> {
        for (id, (port, config)) in (0..).map(PortId).zip(self.ports.iter_mut().zip(&self.node.config().ports)) {
            if let Some(driver) = &mut port.driver {
                driver.set_interest(&interest.at(id)).map_err(|error| {
                    format!("port {}: cannot tell the driver which packets are wanted: {error}", config.name)
                })?;
            }
        }
        Ok(())
    }

    fn attach(&mut self, id: PortId, interface: &PortInterface, share: &Share) -> Result<Attached, OpenError> {
        self.fast_path.detached(id);
        let port = &mut self.ports[id.index()];
        port.detach(&mut self.pool);
        let interest = self.interest.at(id);
        let is_for_vlans = interface.carries_vlans && interface.driver == Choice::Auto;
        let choice = if is_for_vlans { Choice::Packet } else { interface.driver };
        let mut opened = srdma_io::open_share(&interface.name, choice, share, &interest, Some(&self.umem))?;
        if is_for_vlans {
            opened.notes.push(VLANS_NEED_TAGS.to_owned());
        }
        let may_miss_tags = interface.carries_vlans && choice != Choice::Packet;
        if may_miss_tags && srdma_io::takes_vlan_tags_off(&interface.name).unwrap_or(false) {
            opened.notes.push(TAGS_ARE_TAKEN_OFF.to_owned());
        }
        port.pace = interface.pace_bits_per_s.map(Pace::new);
        let note = (!opened.notes.is_empty()).then(|| opened.notes.join("; "));
        port.note.clone_from(&note);
        self.attached += 1;
        port.number = self.attached;
        let driver = port.driver.insert(opened.driver).kind();
        self.fast_path.attached(id, interface.fast_path.then_some(interface.name.as_str()));
        Ok(Attached { driver, note, number: self.attached, group: opened.group })
    }

    fn lose(&mut self, id: PortId, error: io::Error) {
        self.fast_path.detached(id);
        let port = &mut self.ports[id.index()];
        port.detach(&mut self.pool);
        // The control task may be ending.
        let _ = self.notices.send(Notice::Lost(Loss {
            worker: self.coworkers.worker().index(),
            port: id,
            number: port.number,
            error,
        }));
    }

    /// Sends what waits, for a while, and gives the drivers up. Returns how many frames were left.
    fn stop(&mut self) -> usize {
        let end = self.now() + DRAIN_TIME;
        loop {
            let sent = self.send(self.now());
            if !self.ports.iter().any(Port::is_backlogged) || self.now() > end {
                break;
            }
            if !sent {
                std::thread::sleep(BACKLOG_PERIOD);
            }
        }
        let mut unsent = 0;
        for (index, port) in self.ports.iter_mut().enumerate() {
            unsent += self.node.drop_queue(PortId(index as u16), &mut self.pool);
            port.detach(&mut self.pool);
        }
        unsent
    }
}

/// Why a port with VLANs has this driver, unless its configuration says otherwise.
const VLANS_NEED_TAGS: &str = "AF_XDP does not see VLAN tags that the interface or its peer has taken off the frame; \
                               with rxvlan and txvlan off, `driver` may choose it";

/// Why a port with VLANs may receive their frames without tags.
const TAGS_ARE_TAKEN_OFF: &str = "the interface takes VLAN tags off received frames, which AF_XDP does not see: \
                                  `ethtool -K NAME rxvlan off`";

/// Keeps the calling thread on one processor.
pub(super) fn stay_on(cpu: usize) -> io::Result<()> {
    let mut processors = CpuSet::new();
    processors.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &processors)?)
}
