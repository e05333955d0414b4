//! A node of one worker and a node of three, given the same frames: what leaves them must be the same.
//!
//! The scripts are those of the target `node`, without traffic classes, Fast CNPs and IOAM, which need one worker
//! (D209). Frames of one step may leave in another order, for different workers send them.

use super::script::Step;
use super::world::{PORTS, Temper, World};
use super::{LIFETIME, MAX_STEPS};
use crate::choices::Choices;
use srdma_dataplane::{DropReason, Node, Worker};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_workers::Workers;

/// Workers of the second node.
const WORKERS: u16 = 3;

/// The tempers of the nodes. Recomputing ones have little memory, which workers do not share.
const TEMPERS: [Temper; 3] = [Temper::Plain, Temper::Strict, Temper::Bordering];

/// The nodes under test.
#[derive(Debug)]
pub struct WorkersTarget {
    pairs: Vec<Pair>,
    executions: usize,
    octets: Vec<u8>,
    frames: Vec<Frame>,
    frames_in: u64,
    handed_over: u64,
}

/// The same node with one worker, and with several.
#[derive(Debug)]
struct Pair {
    alone: World,
    workers: Workers,
    pool: Pool,
}

impl Pair {
    fn new(temper: Temper, seed: u64) -> Self {
        let mut alone = World::without_congestion(temper, Worker::ALONE);
        let nodes = Worker::all(WORKERS).map(|worker| World::without_congestion(temper, worker).node);
        let workers = Workers::new(nodes.collect(), seed);
        alone.log = Some(Vec::new());
        alone.join_all();
        let mut pair = Pair { alone, workers, pool: Pool::new(4096) };
        pair.follow();
        pair
    }

    /// Carries out the commands of the first node at the second.
    fn follow(&mut self) {
        for command in std::mem::take(&mut self.alone.log).into_iter().flatten() {
            for node in self.workers.nodes_mut() {
                node.apply(command.clone()).expect("what one worker carries out another one does");
            }
        }
        self.alone.log = Some(Vec::new());
    }

    fn receive(&mut self, port: u16, octets: &[u8], frames: &mut Vec<Frame>) {
        let (now, port) = (self.alone.now, PortId(port));
        frames.extend(Frame::from_octets(octets, &mut self.alone.pool));
        self.alone.node.receive(now, port, frames, &mut self.alone.pool);
        frames.extend(Frame::from_octets(octets, &mut self.pool));
        self.workers.receive(now, port, frames, &mut self.pool);
        self.workers.settle(now, &mut self.pool);
    }

    fn pass(&mut self, ns: u64) {
        self.alone.now = self.alone.now.after_ns(ns);
        let now = self.alone.now;
        self.alone.node.tick(now, &mut self.alone.pool);
        self.workers.tick(now, &mut self.pool);
        self.workers.settle(now, &mut self.pool);
        let of_workers = self.workers.nodes().iter().filter_map(Node::next_deadline).min();
        assert_eq!(of_workers, self.alone.node.next_deadline(), "the next deadline");
    }

    /// What leaves both nodes must be the same.
    fn compare(&mut self) {
        for port in (0..PORTS).map(PortId) {
            let now = self.alone.now;
            let one = drain(&mut self.alone.node, now, port, &mut self.alone.pool);
            let several = drain(&mut self.workers, now, port, &mut self.pool);
            assert_eq!(one, several, "what leaves port {}", port.0);
        }
        assert_eq!(self.pool.in_use(), self.alone.pool.in_use(), "chunks in use");
    }

    /// What both nodes have counted, and the state of all groups, each where its owner has it.
    fn compare_state(&mut self) {
        let (one, several) = (drops(std::slice::from_ref(&self.alone.node)), drops(self.workers.nodes()));
        for (reason, (one, several)) in DropReason::ALL.iter().zip(one.iter().zip(several)) {
            assert_eq!(*one, several, "drops of reason {}", reason.name());
        }
        for id in self.alone.node.groups() {
            let nodes = self.workers.nodes().iter();
            let owners: Vec<&Node> = nodes.filter(|node| node.owned_groups().any(|owned| owned == id)).collect();
            let [owner] = owners[..] else { panic!("group {} has {} owners", id.0, owners.len()) };
            assert_eq!(owner.group_counters(id), self.alone.node.group_counters(id), "counters of group {}", id.0);
            assert_eq!(owner.acknowledgements(id), self.alone.node.acknowledgements(id), "group {}", id.0);
        }
        let mut one: Vec<_> = self.alone.node.take_events().collect();
        let mut several: Vec<_> = self.workers.nodes_mut().iter_mut().flat_map(Node::take_events).collect();
        let key = |event: &srdma_dataplane::Event| format!("{event:?}");
        one.sort_by_key(key);
        several.sort_by_key(key);
        assert_eq!(one, several, "events");
    }
}

impl Default for WorkersTarget {
    fn default() -> Self {
        let pairs = TEMPERS.iter().zip(1..).map(|(temper, seed)| Pair::new(*temper, seed)).collect();
        WorkersTarget { pairs, executions: 0, octets: Vec::new(), frames: Vec::new(), frames_in: 0, handed_over: 0 }
    }
}

impl WorkersTarget {
    /// Runs a script.
    pub fn run(&mut self, input: &[u8]) {
        if self.executions == LIFETIME {
            let (frames_in, handed_over) = self.frames();
            *self = Self { frames_in, handed_over, ..Self::default() };
        }
        self.executions += 1;
        let mut choices = Choices::new(input);
        let pair = &mut self.pairs[choices.below(TEMPERS.len())];
        for _ in 0..MAX_STEPS {
            if choices.is_empty() {
                break;
            }
            match Step::choose(&mut choices, &mut pair.alone, &mut self.octets) {
                Step::Frame { port } => {
                    pair.receive(port, &self.octets, &mut self.frames);
                    self.frames_in += 1;
                    pair.compare();
                    pair.pass(700);
                }
                Step::Pass { ns } => pair.pass(ns),
                Step::Commit { group, change } => pair.alone.commit(group, change),
                Step::Rejoin { group } => pair.alone.rejoin(group),
                Step::RemoveNeighbour { port } => pair.alone.remove_neighbour(port),
                Step::RestoreNeighbours => pair.alone.restore_neighbours(),
                Step::Configured | Step::Pause { .. } => {}
            }
            pair.follow();
            pair.compare();
        }
        pair.alone.restore_neighbours();
        pair.follow();
        pair.compare_state();
    }

    /// Frames that were given to the nodes, and packets that workers have handed over, so far.
    pub fn frames(&self) -> (u64, u64) {
        let now: u64 = self.pairs.iter().map(|pair| pair.workers.handed_over()).sum();
        (self.frames_in, self.handed_over + now)
    }
}

/// The frames that leave a port, in the order of their octets.
fn drain(element: &mut impl Element, now: srdma_wire::Instant, port: PortId, pool: &mut Pool) -> Vec<Vec<u8>> {
    let mut left = Vec::new();
    while let Some(frame) = element.dequeue(now, port, pool) {
        left.push(frame.to_vec(pool));
        frame.release(pool);
    }
    left.sort();
    left
}

/// Drops of all ports, in the order of [`DropReason::ALL`].
fn drops(nodes: &[Node]) -> [u64; DropReason::COUNT] {
    let mut drops = [0; DropReason::COUNT];
    for node in nodes {
        let of_ports = (0..PORTS).filter_map(|port| node.port_counters(PortId(port)));
        for counters in of_ports.map(|port| &port.drops).chain([node.own_drops()]) {
            for (sum, reason) in drops.iter_mut().zip(DropReason::ALL) {
                *sum += counters.get(*reason);
            }
        }
    }
    drops
}
