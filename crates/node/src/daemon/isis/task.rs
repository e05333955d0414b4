//! The task: one speaker, its sockets and its clock.

use super::backups::{Around, Lingering, backups, ways_around};
use super::bfd::{Neighbours, neighbour_at};
use super::circuit::{self, Circuit, Link};
use super::learnt::{Known, Learnt};
use super::{Order, Plan};
use crate::daemon::snapshot::{IsisBackupSnapshot, IsisPort as Port, IsisSnapshot};
use srdma_dataplane::BfdPeer;
use srdma_io::Turns;
use srdma_isis::{CircuitConfig, CircuitId, NodeId, Overload, Speaker, SystemId};
use srdma_wire::Instant;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};

/// Time for which changes are gathered before paths are computed.
const GATHER: Duration = Duration::from_millis(50);

/// Time for which backups take the packets to a lost neighbour before this node's own routes change, in which the
/// others compute theirs: no packet meets one that still has the old ones (RFC 8333; D266).
const LOCAL_DELAY: Duration = Duration::from_secs(1);

/// Delay before a socket that could not be opened is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Message for a system without a key.
const NO_KEY: &str = "IS-IS has no authentication: without [isis.key] any system on the link of a circuit can change \
                      routes of all systems";

/// Longest frame that is read: the longest MTU of drivers, and an Ethernet header.
const GREATEST_FRAME: usize = 65_535 + 14;

pub(super) struct Task {
    plan: Plan,
    speaker: Speaker,
    circuits: Vec<Circuit>,
    clock: std::time::Instant,
    orders: mpsc::UnboundedReceiver<Order>,
    known: Known,
    learnt: watch::Sender<Arc<Learnt>>,
    /// Cause of the overload bit in the last log line.
    overload: Option<Overload>,
    /// Neighbours of each circuit in log lines.
    neighbours: BTreeSet<(usize, SystemId)>,
    /// Time of the next computation of paths.
    learn_at: Option<Instant>,
    retry_at: Option<Instant>,
    /// Neighbours with BFD sessions.
    bfd: Neighbours,
    /// Ways around neighbours, as they were computed last.
    ways: Vec<Around>,
    lingering: Lingering,
    /// Frames that found no way out.
    unsent: u64,
    frame: Vec<u8>,
    turns: Turns,
}

enum Occasion {
    Order(Option<Order>),
    Frame(CircuitId, usize),
    Time,
}

impl Task {
    pub(super) fn new(plan: Plan, orders: mpsc::UnboundedReceiver<Order>, learnt: watch::Sender<Arc<Learnt>>) -> Self {
        let speaker = speaker(&plan);
        let mut task = Task {
            plan: plan.clone(),
            speaker,
            circuits: Vec::new(),
            clock: std::time::Instant::now(),
            orders,
            known: Known::default(),
            learnt,
            overload: None,
            neighbours: BTreeSet::new(),
            learn_at: None,
            retry_at: None,
            bfd: Neighbours::default(),
            ways: Vec::new(),
            lingering: Lingering::default(),
            unsent: 0,
            frame: vec![0; GREATEST_FRAME],
            turns: Turns::default(),
        };
        task.warn_of_open_links();
        task.follow(plan);
        task
    }

    /// Runs until an order to stop, or until all senders of orders are gone.
    pub(super) async fn run(mut self) {
        loop {
            self.work();
            match self.next().await {
                Occasion::Order(Some(Order::Follow(plan))) => self.follow(*plan),
                Occasion::Order(Some(Order::Hint(peer))) => self.lose(peer),
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
                Occasion::Frame(circuit, len) => {
                    let now = self.now();
                    self.speaker.receive(now, circuit, self.frame.get(..len).unwrap_or_default());
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
        let deadlines = [self.speaker.next_deadline(), self.retry_at, self.learn_deadline()];
        let deadline = deadlines.into_iter().flatten().min();
        let wait = deadline.map(|deadline| if deadline > now { deadline - now } else { Duration::ZERO });
        let Task { circuits, turns, frame, orders, .. } = self;
        let received = poll_fn(|context| circuit::poll_receive(circuits, turns, context, frame));
        let time = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Orders and time first: no flood of frames holds up a hello.
            biased;
            order = orders.recv() => Occasion::Order(order),
            () = time => Occasion::Time,
            (circuit, len) = received => Occasion::Frame(circuit, len),
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
        self.say_overload();
        let changes = self.speaker.take_changes();
        if changes.adjacencies {
            self.say_neighbours();
        }
        if changes.adjacencies || changes.database {
            self.learn_at.get_or_insert(now + GATHER);
        }
        if self.learn_deadline().is_some_and(|at| at <= now) {
            self.learn_at = None;
            self.bfd.follow(now, &self.speaker, &self.circuits);
            self.known = Known::of(&self.speaker, now);
            let mut learnt = Learnt::of(&self.known, &self.speaker, &self.plan, &self.circuits);
            learnt.bfd = self.bfd.sessions();
            if self.plan.settings.ti_lfa {
                self.ways = ways_around(&self.known, &self.speaker, &self.plan, &self.circuits, now);
                learnt.backups = backups(&self.ways);
                self.lingering.keep(now, &self.learnt.borrow().backups, &mut learnt.backups);
            } else {
                (self.ways, self.lingering) = (Vec::new(), Lingering::default());
            }
            let backups: usize = learnt.backups.values().map(Vec::len).sum();
            tracing::debug!(target: "isis", routes = learnt.routes.len(), backups, "paths computed");
            self.learnt.send_if_modified(|before| {
                let is_other = **before != learnt;
                if is_other {
                    *before = Arc::new(learnt);
                }
                is_other
            });
        }
    }

    /// Time at which paths are computed, or what lost neighbours leave behind ends.
    fn learn_deadline(&self) -> Option<Instant> {
        [self.learn_at, self.bfd.next_deadline(), self.lingering.next_deadline()].into_iter().flatten().min()
    }

    /// BFD has lost a peer: its adjacency ends, and paths are computed without it at once (D110); later, if backups
    /// take its packets meanwhile (D266).
    fn lose(&mut self, peer: BfdPeer) {
        let Some((circuit, neighbour)) = neighbour_at(peer, &self.speaker, &self.circuits) else { return };
        let now = self.now();
        self.speaker.lose_neighbour(now, circuit, neighbour);
        let has_backups = self.learnt.borrow().has_backups(peer);
        self.learn_at = Some(if has_backups { now + LOCAL_DELAY } else { now });
    }

    fn send(&mut self) {
        while let Some((circuit, frame)) = self.speaker.poll_transmit() {
            // The protocol itself retransmits lost frames.
            if !self.circuits.get(circuit.0).is_some_and(|circuit| circuit.send(&frame)) {
                self.unsent += 1;
            }
        }
    }

    /// Applies a plan. Another system, or other levels, reset the state.
    fn follow(&mut self, plan: Plan) {
        let now = self.now();
        let before = std::mem::replace(&mut self.plan, plan);
        let identity = |plan: &Plan| (plan.settings.system.system, plan.settings.system.levels);
        if identity(&before) != identity(&self.plan) {
            self.take_leave();
            self.say_neighbours();
            self.speaker = speaker(&self.plan);
            self.circuits.clear();
        } else if before.settings.system != self.plan.settings.system {
            let system = self.plan.settings.system.clone();
            self.speaker.reconfigure(|config| *config = system);
        }
        if before.settings.system.key.is_some() {
            self.warn_of_open_links();
        }
        let planned = self.plan.settings.circuits.clone();
        let mut is_planned = vec![false; self.circuits.len()];
        for (settings, link) in planned.into_iter().zip(self.plan.links.clone()) {
            let mut config = CircuitConfig::new(link.mac);
            (config.kind, config.metric) = (settings.kind, settings.metric);
            config.addresses.clone_from(&link.addresses);
            config.end_x = settings.end_x;
            config.limit_pdu = config.limit_pdu.min(usize::from(link.link_mtu).saturating_sub(LLC_OCTETS));
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

    /// Opens and closes sockets by the state of the links, and updates the speaker. Paths are computed without a link
    /// that is lost, or with one that is back, at once; later, if backups take the packets meanwhile (D285).
    fn settle(&mut self, now: Instant) {
        for (number, circuit) in self.circuits.iter_mut().enumerate() {
            let before = circuit.index();
            circuit.settle();
            if circuit.index() != before {
                // One interface in place of another is another link.
                self.speaker.set_link(now, CircuitId(number), false);
                self.speaker.set_link(now, CircuitId(number), circuit.index().is_some());
                let is_covered = circuit.index().is_none() && self.learnt.borrow().has_backups_at(circuit.link.id);
                self.learn_at = Some(if is_covered { now + LOCAL_DELAY } else { now });
            }
        }
        self.retry_at = self.circuits.iter().any(Circuit::is_missing).then(|| now + RETRY);
    }

    /// Logs that there is no key, at the start and when it was removed.
    fn warn_of_open_links(&self) {
        if self.plan.settings.system.key.is_none() {
            tracing::warn!(target: "isis", "{NO_KEY}");
        }
    }

    /// Logs that the overload bit was set or cleared.
    fn say_overload(&mut self) {
        let before = std::mem::replace(&mut self.overload, self.speaker.overload());
        if before != self.overload {
            match self.overload {
                Some(cause) => tracing::warn!(target: "isis", cause = cause.name(), "overload bit set"),
                None => tracing::info!(target: "isis", "overload bit cleared"),
            }
        }
    }

    /// Logs neighbours that have come and gone.
    fn say_neighbours(&mut self) {
        let speaker = &self.speaker;
        let of_circuit = |number: usize| {
            let levels = speaker.levels().as_slice().iter();
            let all = levels.flat_map(move |level| speaker.adjacencies(*level, CircuitId(number)));
            all.filter(|adjacency| adjacency.is_up()).map(move |adjacency| (number, adjacency.neighbour))
        };
        let up: BTreeSet<(usize, SystemId)> = (0..self.circuits.len()).flat_map(of_circuit).collect();
        let port = |number: usize| self.circuits.get(number).map(|circuit| circuit.link.port.as_str());
        for (number, neighbour) in self.neighbours.difference(&up) {
            let (port, neighbour) = (port(*number), neighbour.to_string());
            tracing::warn!(target: "isis", port, neighbour, "neighbour down");
        }
        for (number, neighbour) in up.difference(&self.neighbours) {
            let hostname = self.known.hostname(*neighbour);
            let (port, neighbour) = (port(*number), neighbour.to_string());
            tracing::info!(target: "isis", port, neighbour, hostname, "neighbour up");
        }
        self.neighbours = up;
    }

    fn take_leave(&mut self) {
        let now = self.now();
        self.speaker.retire(now);
        self.send();
    }

    fn shown(&self, way: &Around) -> IsisBackupSnapshot {
        let name = |node: NodeId| self.known.hostname(node.system).map_or(node.system.to_string(), str::to_owned);
        let port = self.circuits.iter().find(|circuit| circuit.link.id == way.route.next_hop.port);
        IsisBackupSnapshot {
            prefix: way.route.prefix.to_string(),
            level: way.level.number(),
            neighbour: name(way.neighbour),
            protects: way.protection.name().to_owned(),
            via: name(way.first),
            port: port.map(|circuit| circuit.link.port.clone()).unwrap_or_default(),
            segments: way.route.segments.clone(),
        }
    }

    fn snapshot(&self) -> IsisSnapshot {
        let ports = self.circuits.iter().map(|circuit| Port {
            name: &circuit.link.port,
            metric: circuit.metric,
            is_open: circuit.index().is_some(),
        });
        let mut snapshot =
            IsisSnapshot::of(&self.speaker, &self.known, &self.plan.settings, &ports.collect::<Vec<_>>(), self.now());
        snapshot.backups = self.ways.iter().map(|way| self.shown(way)).collect();
        snapshot.counters.insert("unsent".to_owned(), self.unsent);
        snapshot
    }
}

/// Octets of a link's packets that LLC takes.
const LLC_OCTETS: usize = 3;

/// A speaker that has lost its memory: its numbers come from the clock, so that they are above those before.
fn speaker(plan: &Plan) -> Speaker {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let [a, b, c, d, e, f] = plan.settings.system.system.0;
    // Nodes that were started at once have different ids.
    let seed = u64::from_be_bytes([0, 0, a, b, c, d, e, f]) ^ since_1970.as_nanos() as u64;
    Speaker::new(plan.settings.system.clone(), first_sequence(since_1970), seed)
}

/// The seconds since 1970, at most half of all numbers: a clock that is far ahead does not exhaust them, and the
/// numbers of a speaker whose LSPs are newer in the network follow those (ISO 10589 section 7.3.16.1).
fn first_sequence(since_1970: Duration) -> u32 {
    u32::try_from(since_1970.as_secs()).map_or(u32::MAX / 2, |seconds| seconds.min(u32::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::IsisSettings;
    use srdma_isis::{Behaviors, Config, Key, SystemId};
    use std::sync::Mutex;

    fn plan(key: Option<Key>) -> Plan {
        let system = Config { key, ..Config::new(SystemId([0, 0, 0, 0, 0, 1]), vec![vec![0x49, 0, 1]], "own") };
        let behaviors = Behaviors { end_c: 0x8001, end_e: 0x8002 };
        Plan {
            settings: IsisSettings { system, circuits: Vec::new(), behaviors, ti_lfa: false, node_protection: true },
            links: Vec::new(),
        }
    }

    fn task(key: Option<Key>) -> Task {
        let (orders, received) = mpsc::unbounded_channel();
        drop(orders);
        Task::new(plan(key), received, watch::channel(Arc::default()).0)
    }

    /// A clock that is far ahead leaves numbers for later.
    #[test]
    fn first_numbers_leave_room() {
        let years = |years: u64| first_sequence(Duration::from_secs(years * 31_557_600));
        assert_eq!(years(50), 50 * 31_557_600, "the seconds, which are above those before a restart");
        assert_eq!((years(130), years(5000)), (u32::MAX / 2, u32::MAX / 2));
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(octets)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `act` logs, without levels and targets.
    fn logged<T>(act: impl FnOnce() -> T) -> (T, Vec<String>) {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt().with_ansi(false).without_time().with_level(false).with_target(false);
        let subscriber = log.with_max_level(tracing::Level::INFO).with_writer(move || writer.clone()).finish();
        let value = tracing::subscriber::with_default(subscriber, act);
        let octets = lines.0.lock().unwrap().clone();
        (value, String::from_utf8(octets).unwrap().lines().map(str::to_owned).collect())
    }

    #[test]
    fn a_system_without_a_key_is_logged_once() {
        let key = Key::Sha256 { key_id: 1, secret: b"12345678".to_vec().into() };
        let (mut open, lines) = logged(|| task(None));
        assert_eq!(lines, [NO_KEY]);
        assert_eq!(open.snapshot().authentication, "none");
        let mut other = plan(None);
        other.settings.system.hostname = "other".to_owned();
        let ((), lines) = logged(|| {
            open.follow(other);
            open.follow(plan(Some(key.clone())));
        });
        assert_eq!(lines, [""; 0]);
        assert_eq!(open.snapshot().authentication, "hmac-sha256");
        assert_eq!(logged(|| open.follow(plan(None))).1, [NO_KEY]);
        assert_eq!(logged(|| task(Some(key))).1, [""; 0]);
    }

    #[test]
    fn the_overload_bit_is_logged_with_its_cause() {
        let mut task = task(Some(Key::Md5 { secret: b"12345678".to_vec().into() }));
        let ((), lines) = logged(|| (0..2).for_each(|_| task.work()));
        assert_eq!(lines, ["overload bit set cause=\"starting\""]);
        assert_eq!((task.snapshot().is_overloaded, task.snapshot().overload.as_deref()), (true, Some("starting")));
        let mut configured = plan(None);
        configured.settings.system.is_overloaded = true;
        let ((), lines) = logged(|| {
            task.follow(configured);
            task.work();
        });
        assert_eq!(lines, [NO_KEY, "overload bit set cause=\"configured\""]);
        let mut off = plan(None);
        off.settings.system.timers.startup_s = 0;
        let ((), lines) = logged(|| {
            task.follow(off);
            task.work();
        });
        assert_eq!(lines, ["overload bit cleared"]);
    }
}
