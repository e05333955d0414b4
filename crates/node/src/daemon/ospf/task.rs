//! The task: one speaker, its sockets and its clock.

use super::circuit::{self, Circuit, Link};
use super::learnt::{Known, learnt};
use super::{Order, Plan};
use crate::daemon::isis::Learnt;
use crate::daemon::snapshot::{OspfPort as Port, OspfSnapshot};
use srdma_io::{Received, Turns};
use srdma_ospf::{CircuitConfig, CircuitId, RouterId, Speaker};
use srdma_wire::Instant;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Time for which changes are gathered before paths are computed.
const GATHER: Duration = Duration::from_millis(50);

/// Delay before a socket that could not be opened is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Message at the start.
const NO_AUTHENTICATION: &str = "OSPFv3 has no authentication: any router on the link of a circuit can change routes \
                                 of all routers";

/// Longest packet that is read.
const GREATEST_PACKET: usize = 65_535;

pub(super) struct Task {
    plan: Plan,
    speaker: Speaker,
    circuits: Vec<Circuit>,
    clock: std::time::Instant,
    orders: mpsc::UnboundedReceiver<Order>,
    known: Known,
    learnt: watch::Sender<Arc<Learnt>>,
    /// Neighbours of each circuit in log lines.
    neighbours: BTreeSet<(usize, RouterId)>,
    /// Time of the next computation of paths.
    learn_at: Option<Instant>,
    retry_at: Option<Instant>,
    /// Packets that found no way out.
    unsent: u64,
    packet: Vec<u8>,
    turns: Turns,
}

enum Occasion {
    Order(Option<Order>),
    Packet(CircuitId, Received),
    Time,
}

impl Task {
    pub(super) fn new(plan: Plan, orders: mpsc::UnboundedReceiver<Order>, learnt: watch::Sender<Arc<Learnt>>) -> Self {
        let mut task = Task {
            plan: plan.clone(),
            speaker: Speaker::new(plan.settings.router.clone()),
            circuits: Vec::new(),
            clock: std::time::Instant::now(),
            orders,
            known: Known::default(),
            learnt,
            neighbours: BTreeSet::new(),
            learn_at: None,
            retry_at: None,
            unsent: 0,
            packet: vec![0; GREATEST_PACKET],
            turns: Turns::default(),
        };
        tracing::warn!(target: "ospf", "{NO_AUTHENTICATION}");
        task.follow(plan);
        task
    }

    /// Runs until an order to stop, or until all senders of orders are gone.
    pub(super) async fn run(mut self) {
        loop {
            self.work();
            match self.next().await {
                Occasion::Order(Some(Order::Follow(plan))) => self.follow(*plan),
                Occasion::Order(Some(Order::Hint(none))) => match none {},
                Occasion::Order(Some(Order::Snapshot(reply))) => {
                    // The receiver of the reply may be gone.
                    let _ = reply.send(self.snapshot());
                }
                Occasion::Order(Some(Order::Stop(reply))) => {
                    self.take_leave();
                    let _ = reply.send(());
                    return;
                }
                Occasion::Order(None) => return,
                Occasion::Packet(circuit, Received { len_octets, source, destination }) => {
                    let now = self.now();
                    let packet = self.packet.get(..len_octets).unwrap_or_default();
                    self.speaker.receive(now, circuit, source, destination, packet);
                }
                Occasion::Time => {}
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.clock.elapsed()
    }

    async fn next(&mut self) -> Occasion {
        let now = self.now();
        let deadline = [self.speaker.next_deadline(), self.learn_at, self.retry_at].into_iter().flatten().min();
        let wait = deadline.map(|deadline| if deadline > now { deadline - now } else { Duration::ZERO });
        let Task { circuits, turns, packet, orders, .. } = self;
        let received = poll_fn(|context| circuit::poll_receive(circuits, turns, context, packet));
        let time = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Orders and time first: no flood of packets holds up a hello.
            biased;
            order = orders.recv() => Occasion::Order(order),
            () = time => Occasion::Time,
            (circuit, received) = received => Occasion::Packet(circuit, received),
        }
    }

    /// Does what is due, and sends what there is to send.
    fn work(&mut self) {
        let now = self.now();
        if self.retry_at.is_some_and(|at| at <= now) {
            self.settle(now);
        }
        if self.speaker.next_deadline().is_some_and(|at| at <= now) {
            self.speaker.tick(now);
        }
        self.send();
        let changes = self.speaker.take_changes();
        if changes.neighbours {
            self.say_neighbours();
        }
        if changes.neighbours || changes.database {
            self.learn_at.get_or_insert(now + GATHER);
        }
        if self.learn_at.is_some_and(|at| at <= now) {
            self.learn_at = None;
            self.known = Known::of(&self.speaker);
            let learnt = learnt(&self.known, &self.speaker, &self.plan, &self.circuits);
            tracing::debug!(target: "ospf", routes = learnt.routes.len(), "paths computed");
            self.learnt.send_if_modified(|before| {
                let is_other = **before != learnt;
                if is_other {
                    *before = Arc::new(learnt);
                }
                is_other
            });
        }
    }

    fn send(&mut self) {
        while let Some(sent) = self.speaker.poll_transmit() {
            // The protocol itself retransmits lost packets.
            let circuit = self.circuits.get(sent.circuit.0);
            if !circuit.is_some_and(|circuit| circuit.send(sent.destination, &sent.octets)) {
                self.unsent += 1;
            }
        }
    }

    /// Applies a plan. Another router resets the state.
    fn follow(&mut self, plan: Plan) {
        let now = self.now();
        let before = std::mem::replace(&mut self.plan, plan);
        let settings = &self.plan.settings;
        if before.settings.router.router != settings.router.router {
            let speaker = Speaker::new(settings.router.clone());
            self.take_leave();
            self.say_neighbours();
            self.speaker = speaker;
            self.circuits.clear();
        } else if before.settings.router != settings.router {
            let router = settings.router.clone();
            self.speaker.reconfigure(|config| *config = router);
        }
        let planned = self.plan.settings.circuits.clone();
        let mut is_planned = vec![false; self.circuits.len()];
        for (settings, link) in planned.into_iter().zip(self.plan.links.clone()) {
            let mut config = CircuitConfig::new(link.address.unwrap_or(Ipv6Addr::UNSPECIFIED));
            (config.metric, config.mtu, config.end_x) = (settings.metric, link.link_mtu, settings.end_x);
            match self.circuits.iter().position(|circuit| circuit.link.port == link.port) {
                Some(number) => {
                    self.speaker.change_circuit(now, CircuitId(number), config);
                    if let Some(circuit) = self.circuits.get_mut(number) {
                        (circuit.link, circuit.metric) = (link, settings.metric);
                    }
                    is_planned[number] = true;
                }
                None => {
                    let id = self.speaker.add_circuit(now, config);
                    self.speaker.set_link(now, id, false);
                    self.circuits.push(Circuit::new(link, settings.metric));
                    is_planned.push(true);
                }
            }
        }
        for (circuit, _) in self.circuits.iter_mut().zip(&is_planned).filter(|(_, is_planned)| !**is_planned) {
            circuit.link = Link { index: None, ..circuit.link.clone() };
        }
        self.settle(now);
        self.learn_at.get_or_insert(now);
    }

    /// Opens and closes sockets by the state of the links, and updates the speaker.
    fn settle(&mut self, now: Instant) {
        for (number, circuit) in self.circuits.iter_mut().enumerate() {
            let before = circuit.end();
            circuit.settle();
            if circuit.end() != before {
                // One interface or address in place of another is another link.
                self.speaker.set_link(now, CircuitId(number), false);
                self.speaker.set_link(now, CircuitId(number), circuit.end().is_some());
            }
        }
        self.retry_at = self.circuits.iter().any(Circuit::is_missing).then(|| now + RETRY);
    }

    /// Logs neighbours that have come and gone.
    fn say_neighbours(&mut self) {
        let speaker = &self.speaker;
        let full = |number: usize| {
            let neighbour = speaker.neighbour(CircuitId(number)).filter(|neighbour| neighbour.is_full())?;
            Some((number, neighbour.router))
        };
        let up: BTreeSet<(usize, RouterId)> = (0..self.circuits.len()).filter_map(full).collect();
        let port = |number: usize| self.circuits.get(number).map(|circuit| circuit.link.port.as_str());
        for (number, neighbour) in self.neighbours.difference(&up) {
            let (port, neighbour) = (port(*number), neighbour.to_string());
            tracing::warn!(target: "ospf", port, neighbour, "neighbour down");
        }
        for (number, neighbour) in up.difference(&self.neighbours) {
            let hostname = self.known.hostname(*neighbour);
            let (port, neighbour) = (port(*number), neighbour.to_string());
            tracing::info!(target: "ospf", port, neighbour, hostname, "neighbour full");
        }
        self.neighbours = up;
    }

    fn take_leave(&mut self) {
        let now = self.now();
        self.speaker.retire(now);
        self.send();
    }

    fn snapshot(&self) -> OspfSnapshot {
        let ports = self.circuits.iter().map(|circuit| Port {
            name: &circuit.link.port,
            metric: circuit.metric,
            is_open: circuit.end().is_some(),
        });
        let ports: Vec<Port<'_>> = ports.collect();
        let mut snapshot = OspfSnapshot::of(&self.speaker, &self.known, &self.plan.settings, &ports, self.now());
        snapshot.counters.insert("unsent".to_owned(), self.unsent);
        snapshot
    }
}
