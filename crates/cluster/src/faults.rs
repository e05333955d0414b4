//! Faults of nodes, agents, links, receivers, the controller and its store.

use crate::adapter;
use crate::adapter::Request;
use crate::agent_host::AgentHost;
use crate::controller::Party;
use crate::data_network::name_of;
use crate::flow::Step;
use crate::outcome::{Finding, ViolationKind};
use crate::schedule::{Event, Schedule, StoreFate};
use crate::world::{Task, World};
use srdma_chaos::address;
use srdma_frame::PortId;
use srdma_sim::host::{HOST_PORT, SECOND_HOST_PORT};
use srdma_sim::network::Direction;
use srdma_wire::{Instant, Prefix};
use std::collections::{BTreeMap, BTreeSet};

/// A crash waits for writes no longer than this.
const LATEST_CRASH_NS: u64 = 600_000_000;

/// A crash of the controller that waits for durable writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    after_writes: u32,
    for_ns: u64,
    store: StoreFate,
}

/// The faults so far.
pub(crate) struct Faults {
    /// End of all faults that have begun and end.
    pub(crate) until: Instant,
    node_cut_until: Vec<Instant>,
    source_cut_until: Vec<Instant>,
    pub(crate) node_down_until: Vec<Instant>,
    /// The nodes that have registered since the controller's last start.
    pub(crate) is_registered: Vec<bool>,
    pub(crate) link_down_until: BTreeMap<(usize, usize), Instant>,
    pub(crate) receiver_down_until: Vec<Instant>,
    /// Of each receiver's first and second link.
    host_link_down_until: Vec<[Instant; 2]>,
    /// Of each source's first and second link.
    source_link_down_until: Vec<[Instant; 2]>,
    pub(crate) group_of_flow: Vec<usize>,
    pub(crate) session_down_until: BTreeMap<(usize, usize), Instant>,
    /// The leader that does not reach etcd, and until when.
    pub(crate) etcd_cut: Option<(u32, Instant)>,
    /// The last check at which the API showed a node as not alive.
    pub(crate) unheard_at: Vec<Instant>,
    /// The last time at which the controller read its store, and how often it did so again.
    pub(crate) controller_started: Instant,
    pub(crate) restarts: u32,
    /// Those that are connected to the former leader.
    pub(crate) follow_former: BTreeSet<Party>,
    /// The store was emptied, rebuilt or restored.
    pub(crate) store_changed: bool,
}

impl Faults {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        Faults {
            until: Instant::ZERO,
            node_cut_until: vec![Instant::ZERO; schedule.nodes()],
            source_cut_until: vec![Instant::ZERO; schedule.groups.len()],
            node_down_until: vec![Instant::ZERO; schedule.nodes()],
            is_registered: vec![false; schedule.nodes()],
            unheard_at: vec![Instant::ZERO; schedule.nodes()],
            link_down_until: BTreeMap::new(),
            receiver_down_until: vec![Instant::ZERO; schedule.receivers.len()],
            host_link_down_until: vec![[Instant::ZERO; 2]; schedule.receivers.len()],
            source_link_down_until: vec![[Instant::ZERO; 2]; schedule.groups.len()],
            group_of_flow: Vec::new(),
            session_down_until: BTreeMap::new(),
            etcd_cut: None,
            controller_started: Instant::ZERO,
            restarts: 0,
            follow_former: BTreeSet::new(),
            store_changed: false,
        }
    }

    /// Whether no message passes between a party and the controller.
    pub(crate) fn is_cut(&self, party: Party, now: Instant) -> bool {
        match party {
            Party::Node(node) => now < self.node_cut_until[node].max(self.node_down_until[node]),
            Party::Source(flow) => {
                self.group_of_flow.get(flow).is_some_and(|group| now < self.source_cut_until[*group])
            }
            Party::Application(_) | Party::Operator | Party::Receiver(..) => false,
        }
    }

    pub(crate) fn is_dead(&self, node: usize) -> bool {
        self.node_down_until[node] == Instant::NEVER
    }

    /// Until when a link of a receiver is cut.
    pub(crate) fn host_link_down_until(&self, receiver: usize, port: PortId) -> Instant {
        self.host_link_down_until[receiver].get(port.index()).copied().unwrap_or_default()
    }

    /// Until when a link of a source is cut.
    pub(crate) fn source_link_down_until(&self, source: usize, port: PortId) -> Instant {
        self.source_link_down_until[source].get(port.index()).copied().unwrap_or_default()
    }

    /// Until when the leader of this start does not reach etcd.
    pub(crate) fn etcd_cut_until(&self, run: u32) -> Option<Instant> {
        self.etcd_cut.filter(|(cut, _)| *cut == run).map(|(_, until)| until)
    }

    /// The controller has read its store.
    pub(crate) fn started(&mut self, now: Instant, again: bool) {
        self.controller_started = now;
        self.restarts += u32::from(again);
        self.is_registered.fill(false);
    }

    /// The run goes on for some time after this fault.
    pub(crate) fn note(&mut self, until: Instant) {
        if until < Instant::NEVER {
            self.until = self.until.max(until);
        }
    }
}

impl World<'_> {
    pub(crate) fn apply_event(&mut self, position: usize) {
        let event = &self.schedule.events[position].event;
        self.log(&format_args!("{event:?}"));
        self.count(event.name());
        self.note_phases(event.name());
        let now = self.now();
        self.faults.note(now);
        match *event {
            Event::PartitionNode { node, for_ns } => {
                let until = now.after_ns(for_ns);
                self.faults.node_cut_until[node] = self.faults.node_cut_until[node].max(until);
                self.faults.note(until);
            }
            Event::PartitionSource { group, for_ns } => {
                let until = now.after_ns(for_ns);
                self.faults.source_cut_until[group] = self.faults.source_cut_until[group].max(until);
                self.faults.note(until);
            }
            Event::PauseAgent { node, for_ns } => {
                let until = now.after_ns(for_ns);
                self.agents[node].paused_until = self.agents[node].paused_until.max(until);
                self.faults.note(until);
            }
            Event::CrashNode { node, for_ns } => {
                self.crash_node(node, for_ns.map_or(Instant::NEVER, |for_ns| now.after_ns(for_ns)));
            }
            Event::CutLink { upper, lower, for_ns } => {
                let until = now.after_ns(for_ns);
                let end = self.faults.link_down_until.entry((upper, lower)).or_default();
                *end = (*end).max(until);
                self.faults.note(until);
                self.tasks.push(until, 0, Task::RepairLink(upper, lower));
                self.update_link(upper, lower);
            }
            Event::CutReceiver { receiver, for_ns } => self.cut_receiver(receiver, now.after_ns(for_ns)),
            Event::CutHostLink { receiver, is_second, for_ns } => {
                let until = for_ns.map_or(Instant::NEVER, |for_ns| now.after_ns(for_ns));
                let end = &mut self.faults.host_link_down_until[receiver][usize::from(is_second)];
                *end = (*end).max(until);
                self.faults.note(until);
                if until < Instant::NEVER {
                    self.tasks.push(until, 0, Task::RepairReceiver(receiver));
                }
                self.update_receiver(receiver);
            }
            Event::CutSourceLink { group, is_second, for_ns } => {
                let until = for_ns.map_or(Instant::NEVER, |for_ns| now.after_ns(for_ns));
                let end = &mut self.faults.source_link_down_until[group][usize::from(is_second)];
                *end = (*end).max(until);
                self.faults.note(until);
                if until < Instant::NEVER {
                    self.tasks.push(until, 0, Task::RepairSource(group));
                }
                self.update_source(group);
            }
            Event::KillReceiver { receiver } => self.cut_receiver(receiver, Instant::NEVER),
            // Its store is lost or replaced while it is down.
            Event::CrashController { store, .. } if self.controller.is_none() => self.change_store(store),
            Event::CrashController { after_writes, for_ns, store } => {
                self.crash = Some(Crash { after_writes, for_ns, store });
                let latest = now.after_ns(if after_writes == 0 { 0 } else { LATEST_CRASH_NS });
                self.faults.note(latest);
                self.tasks.push(latest, 0, Task::CrashController);
            }
            Event::Depose { for_ns } => self.depose(for_ns),
            Event::FailStore => self.store.fails_next = true,
            Event::Backup => self.store.back_up(),
            Event::CutEtcd { for_ns } => self.cut_etcd(now.after_ns(for_ns)),
            Event::BreakSession { upper, lower, for_ns } => self.break_session(upper, lower, now.after_ns(for_ns)),
            Event::JumpClock { by_ms } => {
                self.clock_ms += by_ms;
                if let Some(controller) = &mut self.controller {
                    controller.clock_ms = self.clock_ms;
                }
            }
            Event::Join { group, receiver } => self.add_step(group, Step::Join(receiver)),
            Event::Leave { group, receiver } => self.add_step(group, Step::Leave(receiver)),
            Event::Close { group } => self.add_step(group, Step::Close),
            Event::Resume { group, after_ns } => self.kill_source(group, now.after_ns(after_ns)),
            Event::Drain { node, for_ns } => {
                self.drain(node, true);
                let until = now.after_ns(for_ns);
                self.faults.note(until);
                self.tasks.push(until, 0, Task::Undrain(node));
            }
        }
    }

    pub(crate) fn end_random_faults(&mut self) {
        self.testbed.set_loss(&mut self.network, 0);
        self.log(&"random faults end");
    }

    fn crash_node(&mut self, node: usize, until: Instant) {
        self.faults.node_down_until[node] = self.faults.node_down_until[node].max(until);
        self.faults.note(until);
        if until < Instant::NEVER {
            self.tasks.push(until, 0, Task::RestartNode(node));
        }
        self.note_sessions_of(node);
        let host = &mut self.agents[node];
        host.is_down = true;
        host.call = None;
        host.is_executing = false;
        self.network.with(self.testbed.nodes[node], |element, _, pool| element.end_node(pool));
        self.note_host_links(node);
    }

    pub(crate) fn restart_node(&mut self, node: usize) {
        if self.now() < self.faults.node_down_until[node] {
            return;
        }
        match self.testbed.node(node, true) {
            Ok(value) => {
                self.network.with(self.testbed.nodes[node], |element, _, _| *element = value);
            }
            Err(error) => {
                return self.violation(ViolationKind::Setup, Finding::Unknown, node, error.to_string());
            }
        }
        let incarnation = self.agents[node].incarnation + 1;
        self.agents[node] = AgentHost::new(self.testbed.group_table(node), incarnation);
        self.note_host_links(node);
        self.count("node restart");
        self.log(&format_args!("n{node} restarts"));
        self.note_sessions_of(node);
        self.tasks.push(self.now(), 0, Task::AgentNext(node, incarnation));
    }

    pub(crate) fn update_link(&mut self, upper: usize, lower: usize) {
        let until = self.faults.link_down_until.get(&(upper, lower)).copied().unwrap_or_default();
        let is_down = self.now() < until;
        if let Some(link) = self.testbed.link(upper, lower) {
            for direction in [Direction::Down, Direction::Up] {
                self.network.faults_mut(link, direction).is_down = is_down;
            }
        }
        self.note_session(upper, lower);
    }

    fn cut_receiver(&mut self, receiver: usize, until: Instant) {
        let end = &mut self.faults.receiver_down_until[receiver];
        *end = (*end).max(until);
        self.faults.note(until);
        if until < Instant::NEVER {
            self.tasks.push(until, 0, Task::RepairReceiver(receiver));
        }
        self.update_receiver(receiver);
    }

    pub(crate) fn update_receiver(&mut self, receiver: usize) {
        let is_cut = self.now() < self.faults.receiver_down_until[receiver];
        for (position, link) in self.testbed.receiver_links[receiver].iter().enumerate() {
            let until = self.faults.host_link_down_until(receiver, PortId(position as u16));
            for direction in [Direction::Down, Direction::Up] {
                self.network.faults_mut(*link, direction).is_down = is_cut || self.network.now() < until;
            }
        }
        self.testbed.nodes_of_receiver(receiver).for_each(|node| self.note_host_links(node));
    }

    pub(crate) fn update_source(&mut self, source: usize) {
        for (position, link) in self.testbed.source_links[source].iter().enumerate() {
            let until = self.faults.source_link_down_until(source, PortId(position as u16));
            for direction in [Direction::Down, Direction::Up] {
                self.network.faults_mut(*link, direction).is_down = self.network.now() < until;
            }
        }
        self.testbed.headends().for_each(|node| self.note_host_links(node));
    }

    /// A node and the hosts at it see whether their links are up. A host has no link to a node that is down.
    fn note_host_links(&mut self, node: usize) {
        let (now, mut lost) = (self.now(), Vec::new());
        let is_node_up = now >= self.faults.node_down_until[node];
        for (receiver, port) in self.testbed.receivers_at(node) {
            let is_up = now >= self.faults.host_link_down_until(receiver, port);
            if !is_up {
                lost.push(Prefix::host(self.testbed.receiver_address(receiver)));
            }
            let element = self.testbed.receivers[receiver];
            self.network.with_host(element, |host| host.set_link(port, is_up && is_node_up));
        }
        let here = self.testbed.headends().zip([HOST_PORT, SECOND_HOST_PORT]).find(|(headend, _)| *headend == node);
        for source in 0..self.testbed.sources.len() {
            let Some((_, port)) = here else { break };
            let is_up = now >= self.faults.source_link_down_until(source, port);
            if !is_up {
                lost.push(Prefix::host(address::source(source)));
            }
            let element = self.testbed.sources[source];
            self.network.with_host(element, |host| host.set_link(port, is_up && is_node_up));
        }
        let before = std::mem::replace(&mut self.agents[node].lost_hosts, lost.clone());
        lost.retain(|prefix| !before.contains(prefix));
        if !lost.is_empty() && !self.agents[node].is_down {
            let (name, neighbours, lost_hosts) = (name_of(node), Vec::new(), lost);
            self.send_request(Party::Node(node), Request::Unreachable { name, neighbours, lost_hosts });
        }
    }

    /// Whether a crash of the controller is due after another durable write.
    pub(crate) fn crash_is_due(&mut self) -> bool {
        let Some(crash) = &mut self.crash else { return false };
        crash.after_writes = crash.after_writes.saturating_sub(1);
        crash.after_writes == 0
    }

    /// The controller's process ends. The present write is durable or not.
    pub(crate) fn crash_controller(&mut self) {
        let Some(Crash { for_ns, store, .. }) = self.crash.take() else { return };
        if self.controller.is_some() {
            self.note_phases("crash takes effect");
        }
        let Some(controller) = self.controller.take() else { return };
        self.log(&format_args!("the controller crashes for {for_ns} ns, its store is {store:?}"));
        self.stop(controller);
        self.change_store(store);
        let until = self.now().after_ns(for_ns);
        self.faults.note(until);
        self.tasks.push(until, 0, Task::RestartController);
    }

    /// What a controller that is down finds when it starts.
    fn change_store(&mut self, store: StoreFate) {
        match store {
            StoreFate::Kept => {}
            StoreFate::Emptied | StoreFate::Rebuilt => {
                let lost = adapter::store_identity(&self.store.state());
                self.rebuilds = lost.filter(|_| store == StoreFate::Rebuilt);
                self.store.clear();
                self.faults.store_changed = true;
            }
            StoreFate::Backup => {
                let rng = self.rng_of_etcd();
                self.faults.store_changed |= self.store.restore_backup(rng);
            }
        }
    }
}
