//! Any changes, with messages lost, repeated and overtaken, nodes that refuse, restart and die: the invariants hold at
//! any time, and in the end every node has its group entry (D25, D30, D31).

use crate::figure_1::*;
use crate::fleet::{Agent, Answer, Fleet};
use proptest::prelude::*;
use srdma_group::*;
use srdma_wire::{Psn, Qpn};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Messages in flight.
#[derive(Clone, Debug)]
enum Message {
    Order(Order),
    Answer(Option<Ipv6Addr>, Answer),
}

impl Message {
    fn is_of(&self, node: Ipv6Addr) -> bool {
        match self {
            Message::Order(order) => order.node() == Some(node),
            Message::Answer(from, _) => *from == Some(node),
        }
    }
}

struct Chaos {
    lifecycle: Lifecycle,
    fleet: Fleet,
    messages: Vec<Message>,
    /// Nodes that live and forward, and that the controller has lost.
    missed: BTreeSet<Ipv6Addr>,
    /// Those of them that do nothing any more, until they have executed the orders that they get when they register.
    fenced: BTreeSet<Ipv6Addr>,
    /// Nodes whose entry is being restored.
    restoring: BTreeSet<Ipv6Addr>,
    /// Rounds that have ended.
    released: BTreeSet<u32>,
    /// Receivers that the source has sent to.
    served: BTreeSet<Ipv6Addr>,
    /// Removals that were not answered: a driver repeats them, also to nodes that are in no record any more.
    removals: BTreeMap<Ipv6Addr, Order>,
    /// Receivers that join when they are ready, and what they have said last.
    two_steps: BTreeMap<Ipv6Addr, Option<Psn>>,
    next_number: u32,
    /// Starts of the controller.
    starts: u32,
}

#[derive(Clone, Debug)]
enum Event {
    Deliver(usize),
    Lose(usize),
    Repeat(usize),
    Unanswered,
    Restart(usize),
    Die(usize),
    Notice(usize),
    /// A living node loses its connection, and is taken for dead.
    Miss(usize),
    /// The lease of one that is missed is over.
    Fence(usize),
    /// It is connected again, with what it has.
    Return(usize),
    /// The controller ends, and starts from what it has stored.
    Crash,
    Refuse(usize),
    Evict(usize),
    Join(usize, bool, Admission),
    /// A newcomer that is reserved is ready.
    Ready(usize),
    /// A newcomer is ready from some other PSN on, which must have no effect.
    ReadyElsewhere(usize),
    Expire(usize),
    Rehome(usize, usize),
    /// A receiver moves to another node, or to one that is new below it.
    Move(usize, usize, bool),
    /// Another node becomes the headend, or a new one, with a tree that this number chooses.
    Replace(usize, usize, bool),
    Settled,
}

fn event() -> impl Strategy<Value = Event> {
    let number = 0..64_usize;
    prop_oneof![
        20 => number.clone().prop_map(Event::Deliver),
        2 => number.clone().prop_map(Event::Lose),
        3 => number.clone().prop_map(Event::Repeat),
        3 => Just(Event::Unanswered),
        2 => number.clone().prop_map(Event::Restart),
        1 => number.clone().prop_map(Event::Die),
        1 => number.clone().prop_map(Event::Notice),
        2 => number.clone().prop_map(Event::Miss),
        2 => number.clone().prop_map(Event::Fence),
        2 => number.clone().prop_map(Event::Return),
        1 => Just(Event::Crash),
        1 => number.clone().prop_map(Event::Refuse),
        1 => number.clone().prop_map(Event::Evict),
        2 => (number.clone(), any::<bool>(), admission()).prop_map(|(edge, new, when)| Event::Join(edge, new, when)),
        4 => number.clone().prop_map(Event::Ready),
        1 => number.clone().prop_map(Event::ReadyElsewhere),
        1 => number.clone().prop_map(Event::Expire),
        3 => (number.clone(), number.clone()).prop_map(|(node, parent)| Event::Rehome(node, parent)),
        3 => (number.clone(), number.clone(), any::<bool>())
            .prop_map(|(one, edge, new)| Event::Move(one, edge, new)),
        2 => (number.clone(), number, any::<bool>()).prop_map(|(one, tree, new)| Event::Replace(one, tree, new)),
        1 => Just(Event::Settled),
    ]
}

fn admission() -> impl Strategy<Value = Admission> {
    prop_oneof![Just(Admission::AtOnce), Just(Admission::WhenReady)]
}

/// Figure 1 with another edge below N3's parent, and a level more.
fn deep_record() -> Record {
    use NodeRole::{Edge, Transit};
    let nodes = [
        node(6, None, Transit),
        node(4, Some(0), Transit),
        node(5, Some(0), Transit),
        node(7, Some(1), Transit),
        node(8, Some(2), Transit),
        node(1, Some(3), Edge),
        node(2, Some(3), Edge),
        node(3, Some(4), Edge),
        node(9, Some(2), Edge),
    ];
    let receivers = vec![receiver(1, 5), receiver(2, 5), receiver(3, 6), receiver(4, 7), receiver(5, 8)];
    Record { tree: Tree::new(nodes.to_vec()).unwrap(), receivers, ..record() }
}

/// A part without what means nothing to the node.
fn essence(entry: &GroupEntry) -> GroupEntry {
    let mut entry = GroupEntry { epoch: 0, ..entry.clone() };
    let lists = entry.headend.iter_mut().flat_map(|headend| &mut headend.lists).flat_map(|list| &mut list.receivers);
    lists.for_each(|receiver| receiver.joined = None);
    let lists = entry.headend.iter_mut().flat_map(|headend| &mut headend.lists).flat_map(|list| &mut list.receivers);
    lists.chain(&mut entry.receivers).for_each(|receiver| receiver.edge = NodeIndex(0));
    entry
}

fn entries(record: &Record) -> Vec<(Ipv6Addr, GroupEntry)> {
    let group = Group::new(record.clone()).unwrap();
    let nodes = record.tree.nodes().iter().enumerate();
    nodes.map(|(index, node)| (node.loopback, essence(&group.at(NodeIndex(index)).unwrap()))).collect()
}

impl Chaos {
    fn new() -> Self {
        Chaos {
            lifecycle: Lifecycle::create(deep_record()).unwrap(),
            fleet: Fleet::default(),
            messages: Vec::new(),
            missed: BTreeSet::new(),
            fenced: BTreeSet::new(),
            restoring: BTreeSet::new(),
            released: BTreeSet::new(),
            served: BTreeSet::new(),
            removals: BTreeMap::new(),
            two_steps: BTreeMap::new(),
            next_number: 20,
            starts: 0,
        }
    }

    fn has(&self, node: Ipv6Addr) -> Option<GroupEntry> {
        self.fleet.agents.get(&node)?.entry.as_ref().map(essence)
    }

    /// The node that a number means, among those of the tree.
    fn node(&self, number: usize) -> Ipv6Addr {
        let tree = self.lifecycle.group().map_or_else(|| deep_record().tree, |group| group.record().tree.clone());
        tree.nodes()[number % tree.nodes().len()].loopback
    }

    fn take_orders(&mut self) {
        while let Some(order) = self.lifecycle.next_order() {
            self.take(order);
        }
    }

    fn take(&mut self, order: Order) {
        match &order {
            Order::Store { record, .. } => self.check_store(record),
            Order::Commit { name, .. } => {
                assert!(self.fleet.stored.as_ref().is_some_and(|stored| stored.epoch >= name.epoch), "not stored");
            }
            Order::Ready { round } => self.check_ready(*round),
            Order::Restore { node, .. } => drop(self.restoring.insert(*node)),
            Order::Pause { .. }
            | Order::Prepare { .. }
            | Order::Abort { .. }
            | Order::Remove { .. }
            | Order::Evicted { .. }
            | Order::Changed { .. }
            | Order::Aborted { .. }
            | Order::Closed => {}
        }
        if let Some(node) = order.node() {
            self.removals.remove(&node);
            if matches!(order, Order::Remove { .. }) {
                self.removals.insert(node, order.clone());
            }
        }
        let is_lost = order.node().is_some_and(|node| self.missed.contains(&node));
        if matches!(order, Order::Store { .. } | Order::Changed { .. }) {
            self.fleet.carry_out(&order);
        } else if !is_lost {
            self.messages.push(Message::Order(order));
        }
    }

    /// Every living node has prepared what it does not have yet; and receivers come in only while the source is quiet,
    /// at its next PSN.
    fn check_store(&self, record: &Record) {
        let before = self.fleet.stored.as_ref();
        let parts_before = before.map(entries).unwrap_or_default();
        for (node, entry) in entries(record) {
            let agent = self.fleet.agents.get(&node).cloned().unwrap_or_default();
            let is_prepared = agent.prepared.as_ref().is_some_and(|prepared| prepared.epoch == record.epoch);
            let is_unconcerned = parts_before.contains(&(node, entry));
            let is_away = self.fleet.dead.contains(&node) || self.missed.contains(&node);
            assert!(is_prepared || is_unconcerned || is_away, "{node} has not prepared");
        }
        let known = before.map(|before| before.receivers.iter().map(|receiver| receiver.address).collect::<Vec<_>>());
        for receiver in &record.receivers {
            if known.as_ref().is_some_and(|known| !known.contains(&receiver.address)) {
                assert!(self.fleet.paused.is_some(), "{} joins while the source sends", receiver.address);
                let joined = receiver.joined.map(|join| join.psn);
                assert_eq!(joined, Some(self.fleet.next_psn));
                if let Some(ready) = self.two_steps.get(&receiver.address) {
                    assert_eq!(*ready, joined, "{} joins and is not ready (D187)", receiver.address);
                }
            }
        }
    }

    /// All connected nodes have committed, except those that have just returned.
    fn check_ready(&mut self, round: u32) {
        let stored = self.fleet.stored.clone().unwrap();
        // A repetition may arrive during a change that the source need not wait for.
        if self.released.insert(round) {
            for (node, entry) in entries(&stored) {
                let away = [&self.fleet.dead, &self.missed, &self.restoring];
                let is_away = away.iter().any(|nodes| nodes.contains(&node));
                if let Some(has) = self.has(node).filter(|_| !is_away) {
                    assert_eq!(has, entry, "{node} has not committed when the source is released");
                }
            }
        }
        self.served.extend(stored.receivers.iter().map(|receiver| receiver.address));
    }

    /// Receivers that the accepted responses of a node include; `None`: it is silent, as are nodes each of which is below
    /// the other in its entry. `above`: the nodes that it was reached by.
    fn speaks_for(&self, node: Ipv6Addr, above: &[Ipv6Addr]) -> Option<BTreeSet<Ipv6Addr>> {
        if above.contains(&node) {
            return None;
        }
        let above = [above, &[node]].concat();
        let is_silent = self.fleet.dead.contains(&node) || self.fenced.contains(&node);
        let entry = self.fleet.agents.get(&node).filter(|_| !is_silent)?.entry.as_ref()?;
        let (nodes, receivers) = entry.branches.split_at(entry.nodes_below());
        let mut all: BTreeSet<Ipv6Addr> = receivers.iter().map(|branch| branch.responder).collect();
        for branch in nodes {
            let child = self.fleet.agents.get(&branch.responder)?.entry.as_ref()?;
            all.extend(self.speaks_for(branch.responder, &above).filter(|_| child.epoch >= branch.renewed)?);
        }
        Some(all)
    }

    /// Safety of the order of commits: a response of a headend includes all members that the source has sent to.
    fn check_words(&self) {
        if let Some((headend, receiver)) = self.false_words() {
            panic!("headend {headend} speaks without {receiver}: {:#?}", self.fleet.log);
        }
    }

    /// A headend that speaks, and a member without which it does.
    fn false_words(&self) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let stored = self.fleet.stored.as_ref()?;
        let is_headend = |agent: &Agent| agent.entry.as_ref().is_some_and(|entry| entry.headend.is_some());
        let headends = self.fleet.agents.iter().filter(|(_, agent)| is_headend(agent)).map(|(node, _)| *node);
        let heard = headends.filter_map(|headend| Some((headend, self.speaks_for(headend, &[])?)));
        heard.into_iter().find_map(|(headend, heard)| {
            let mut members = stored.receivers.iter().map(|receiver| receiver.address);
            let lacking = members.find(|receiver| self.served.contains(receiver) && !heard.contains(receiver));
            Some((headend, lacking?))
        })
    }

    fn deliver(&mut self, index: usize) {
        if self.messages.is_empty() {
            return;
        }
        match self.messages.remove(index % self.messages.len()) {
            Message::Order(order) => {
                if let Order::Restore { node, .. } | Order::Commit { node, .. } = order {
                    self.restoring.remove(&node);
                }
                let answer = self.fleet.carry_out(&order);
                self.messages.extend(answer.map(|answer| Message::Answer(order.node(), answer)));
            }
            Message::Answer(_, answer) => {
                if let Answer::Removed(node, _) = &answer {
                    self.removals.remove(node);
                }
                self.fleet.hand_in(&mut self.lifecycle, answer);
            }
        }
    }

    fn empty(&mut self, node: Ipv6Addr) {
        self.fleet.log.push(format!("{node} is empty"));
        self.messages.retain(|message| !message.is_of(node));
        let agent = self.fleet.agents.entry(node).or_default();
        *agent = Agent { refuses: agent.refuses, ..Agent::default() };
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Deliver(index) => self.deliver(index),
            Event::Lose(index) if !self.messages.is_empty() => {
                self.messages.remove(index % self.messages.len());
            }
            Event::Repeat(index) if !self.messages.is_empty() => {
                self.messages.push(self.messages[index % self.messages.len()].clone());
            }
            Event::Lose(_) | Event::Repeat(_) => {}
            Event::Unanswered => self.lifecycle.repeat(),
            Event::Restart(number) => self.restart(self.node(number)),
            Event::Die(number) => {
                self.empty(self.node(number));
                self.fleet.dead.insert(self.node(number));
            }
            Event::Notice(number) => {
                let dead = self.fleet.dead.iter().nth(number % self.fleet.dead.len().max(1)).copied();
                dead.into_iter().for_each(|node| self.lifecycle.lost(node));
            }
            Event::Miss(number) => self.miss(self.node(number)),
            Event::Fence(number) => {
                let missed = self.missed.iter().nth(number % self.missed.len().max(1)).copied();
                missed.into_iter().for_each(|node| self.fence(node));
            }
            Event::Return(number) => {
                let missed = self.missed.iter().nth(number % self.missed.len().max(1)).copied();
                missed.into_iter().for_each(|node| self.connect(node));
            }
            Event::Crash => self.crash(),
            Event::Refuse(number) => {
                let agent = self.fleet.agents.entry(self.node(number)).or_default();
                agent.refuses = !agent.refuses;
            }
            Event::Evict(number) => {
                let receivers = self.lifecycle.group().map_or_else(Vec::new, |group| group.record().receivers.clone());
                let receiver = receivers.get(number % receivers.len().max(1));
                let _ = receiver.map(|receiver| self.lifecycle.evict(&[receiver.address]));
            }
            Event::Join(number, is_new, admission) => self.join(number, is_new, admission),
            Event::Ready(number) => self.say_ready(number),
            Event::ReadyElsewhere(number) => {
                let one = self.two_steps.keys().nth(number % self.two_steps.len().max(1)).copied();
                one.into_iter().for_each(|receiver| self.lifecycle.ready(receiver, self.fleet.next_psn.plus(1)));
            }
            Event::Expire(number) => {
                let reserved = self.lifecycle.reserved();
                let one = reserved.iter().nth(number % reserved.len().max(1)).copied();
                self.lifecycle.expire(&one.into_iter().collect(), "not ready in time");
            }
            Event::Rehome(node, parent) => {
                let _ = self.lifecycle.rehome(self.node(node), self.node(parent), None);
            }
            Event::Move(number, edge, is_new) => self.move_receiver(number, edge, is_new),
            Event::Replace(number, tree, is_new) => self.replace(number, tree, is_new),
            Event::Settled => self.lifecycle.settled(self.fleet.next_psn),
        }
        self.take_orders();
        if self.fleet.paused.is_none() && self.fleet.ready.is_some() {
            self.fleet.next_psn = self.fleet.next_psn.plus(1 << 18);
        }
        self.check_words();
    }

    fn restart(&mut self, node: Ipv6Addr) {
        self.fleet.dead.remove(&node);
        self.empty(node);
        self.connect(node);
    }

    fn miss(&mut self, node: Ipv6Addr) {
        if self.fleet.dead.contains(&node) {
            return;
        }
        self.fleet.log.push(format!("{node} is missed"));
        self.missed.insert(node);
        self.messages.retain(|message| !message.is_of(node));
        self.lifecycle.lost(node);
    }

    /// A node registers with what it has.
    fn connect(&mut self, node: Ipv6Addr) {
        self.missed.remove(&node);
        let held = self.fleet.agents.get(&node).map(|agent| agent.held).unwrap_or_default();
        self.fleet.log.push(format!("{node} registers with {held:?}"));
        self.messages.retain(|message| !message.is_of(node));
        // What it lacks it may be given later, when the headend has registered.
        let parts = self.fleet.stored.as_ref().map(entries).unwrap_or_default();
        if let Some((_, entry)) = parts.into_iter().find(|(of, _)| *of == node)
            && self.has(node).is_some_and(|has| has != entry)
        {
            self.restoring.insert(node);
        }
        self.lifecycle.registered(node, held).unwrap();
        if self.fenced.contains(&node) {
            self.take_orders();
            while let Some(next) = self.messages.iter().position(|message| message.is_of(node)) {
                self.deliver(next);
                self.take_orders();
            }
            self.fenced.remove(&node);
        }
    }

    fn fence(&mut self, node: Ipv6Addr) {
        self.fleet.log.push(format!("{node} is fenced"));
        self.fenced.insert(node);
        self.lifecycle.fenced(node);
    }

    /// A tree of two levels at most from another headend: edges below it or below one of the transit nodes.
    fn replace(&mut self, number: usize, chosen: usize, is_new: bool) {
        let Some(stored) = self.lifecycle.group().map(|group| group.record().clone()) else { return };
        let nodes = stored.tree.nodes();
        let has_receivers =
            |one: &TreeNode| stored.receivers.iter().any(|receiver| nodes[receiver.edge.0].loopback == one.loopback);
        let mut headend = nodes[number % nodes.len()].clone();
        if is_new {
            self.next_number += 1;
            headend = node(self.next_number as usize, None, NodeRole::Transit);
        }
        let role = NodeRole::of(has_receivers(&headend), true);
        let mut tree = vec![TreeNode { parent: None, role, ..headend.clone() }];
        let others = || nodes.iter().filter(|one| one.loopback != headend.loopback);
        let edges: Vec<&TreeNode> = others().filter(|one| has_receivers(one)).collect();
        let transits: Vec<&TreeNode> = others().skip(1).filter(|one| !has_receivers(one)).collect();
        let parent_of = |place: usize| (place * 7 + chosen) % (transits.len() + 1);
        let mut places = BTreeMap::from([(0, NodeIndex(0))]);
        for place in 0..edges.len() {
            let parent = parent_of(place);
            if let Some(transit) = parent.checked_sub(1).and_then(|transit| transits.get(transit)) {
                places.entry(parent).or_insert_with(|| {
                    tree.push(TreeNode { parent: Some(NodeIndex(0)), role: NodeRole::Transit, ..(*transit).clone() });
                    NodeIndex(tree.len() - 1)
                });
            }
        }
        for (place, edge) in edges.iter().enumerate() {
            tree.push(TreeNode { parent: places.get(&parent_of(place)).copied(), ..(*edge).clone() });
        }
        let replacement = Replacement { tree: Tree::new(tree).unwrap(), receivers: Vec::new(), link_mtu: None };
        let _ = self.lifecycle.replace_headend(replacement);
    }

    /// The source stays as it is; the nodes register again later.
    fn crash(&mut self) {
        let Some(stored) = self.fleet.stored.clone().filter(|_| !self.lifecycle.is_closed()) else { return };
        self.fleet.log.push("the controller restarts".to_string());
        self.starts += 1;
        let resumption = match self.fleet.is_settled {
            true => Resumption::Settled,
            false => Resumption::Committing { before: self.fleet.before.clone() },
        };
        self.messages.clear();
        let last_epoch = self.lifecycle.last_epoch();
        self.lifecycle = Lifecycle::resume(stored, resumption, last_epoch, self.starts << 16).unwrap();
        self.missed.extend(self.fleet.agents.keys().filter(|node| !self.fleet.dead.contains(node)));
    }

    /// One of those that join in two steps says that it is ready, whether it is reserved or not.
    fn say_ready(&mut self, number: usize) {
        let chosen = number % self.two_steps.len().max(1);
        let Some((receiver, said)) = self.two_steps.iter_mut().nth(chosen) else { return };
        *said = Some(self.fleet.next_psn);
        self.lifecycle.ready(*receiver, self.fleet.next_psn);
    }

    fn join(&mut self, number: usize, is_new: bool, admission: Admission) {
        self.next_number += 1;
        let Receiver { address, qpn, region, .. } = receiver(self.next_number, 0);
        let below = self.node(number);
        let mut new_nodes = Vec::new();
        let mut newcomer = Newcomer {
            address,
            qpn,
            region,
            edge: below,
            admission,
            more_regions: Vec::new(),
            psn_offset: PsnOffset::ZERO,
        };
        if admission == Admission::WhenReady {
            self.two_steps.insert(address, None);
        }
        if is_new {
            newcomer.edge = self.new_edge(below, &mut new_nodes);
        }
        let _ = self.lifecycle.join(vec![newcomer], new_nodes, None);
    }

    /// An edge of the last number below a node.
    fn new_edge(&self, below: Ipv6Addr, new_nodes: &mut Vec<NewNode>) -> Ipv6Addr {
        let TreeNode { name, loopback: own, sid, .. } = node(self.next_number as usize, None, NodeRole::Edge);
        new_nodes.extend(self.promotion(below));
        let (parent, parent_sid, role) = (below, None, NodeRole::Edge);
        let (multicast, can_repair) = (None, true);
        new_nodes.push(NewNode { name, loopback: own, sid, parent, parent_sid, role, multicast, can_repair });
        own
    }

    fn move_receiver(&mut self, number: usize, edge: usize, is_new: bool) {
        let receivers = self.lifecycle.group().map_or_else(Vec::new, |group| group.record().receivers.clone());
        let Some(receiver) = receivers.get(number % receivers.len().max(1)) else { return };
        let (mut edge, mut new_nodes) = (self.node(edge), Vec::new());
        if is_new {
            self.next_number += 1;
            edge = self.new_edge(edge, &mut new_nodes);
        }
        let receivers = vec![(receiver.address, edge)];
        let _ = self.lifecycle.move_receivers(Move { receivers, new_nodes, link_mtu: None });
    }

    /// An edge of the stored record as a bud node.
    fn promotion(&self, edge: Ipv6Addr) -> Option<NewNode> {
        let nodes = self.fleet.stored.as_ref()?.tree.nodes();
        let edge = nodes.iter().find(|node| node.loopback == edge && node.role == NodeRole::Edge)?;
        let [a, b, c, d, ..] = edge.loopback.segments();
        Some(NewNode {
            name: edge.name.clone(),
            loopback: edge.loopback,
            sid: Ipv6Addr::new(a, b, c, d, 0xf, 0, 0, 1),
            parent: nodes.get(edge.parent?.0)?.loopback,
            parent_sid: None,
            role: NodeRole::Bud,
            multicast: None,
            can_repair: true,
        })
    }

    /// From here on no message is lost, no node refuses and none stays dead.
    fn calm_down(&mut self) {
        self.fleet.agents.values_mut().for_each(|agent| agent.refuses = false);
        for node in self.fleet.dead.clone() {
            self.restart(node);
            self.take_orders();
        }
        for node in self.missed.clone() {
            self.connect(node);
            self.take_orders();
        }
        for _ in 0..1000 {
            self.take_orders();
            while !self.messages.is_empty() {
                self.deliver(0);
                self.take_orders();
                self.check_words();
            }
            for receiver in self.lifecycle.reserved() {
                self.two_steps.insert(receiver, Some(self.fleet.next_psn));
                self.lifecycle.ready(receiver, self.fleet.next_psn);
            }
            let is_running = self.fleet.ready.is_some() && self.fleet.paused.is_none();
            let is_settled = self.lifecycle.is_closed() || (self.lifecycle.is_steady() && is_running);
            if is_settled && self.removals.is_empty() {
                return;
            }
            self.lifecycle.repeat();
            self.messages.extend(self.removals.values().cloned().map(Message::Order));
        }
        panic!("never steady: {:#?}\n{:#?}", self.lifecycle, self.fleet.log);
    }

    fn check_end(&self) {
        let expected: Vec<_> = match self.lifecycle.is_closed() {
            true => Vec::new(),
            false => entries(self.fleet.stored.as_ref().unwrap()),
        };
        for (node, entry) in &expected {
            assert_eq!(self.has(*node).as_ref(), Some(entry), "{node}: {:#?}", self.fleet.log);
        }
        let members: BTreeSet<Ipv6Addr> = expected.iter().map(|(node, _)| *node).collect();
        for node in self.fleet.agents.keys().filter(|node| !members.contains(*node)) {
            assert_eq!(self.has(*node), None, "{node} is not in the tree any more: {:#?}", self.fleet.log);
        }
        assert_eq!(self.lifecycle.group().map(Group::record), self.fleet.stored.as_ref());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(srdma_testkit::seeds::count(512) as u32))]

    #[test]
    fn every_node_gets_its_group_entry_under_any_faults(begun: bool, events in prop::collection::vec(event(), 1..400)) {
        let mut chaos = Chaos::new();
        if begun {
            chaos.calm_down();
        }
        events.iter().for_each(|event| chaos.happen(event));
        chaos.calm_down();
        chaos.check_end();
    }
}

/// The chaos's own numbers name what they are to name.
#[test]
fn newcomers_join_at_the_next_psn() {
    let mut chaos = Chaos::new();
    chaos.calm_down();
    chaos.join(8, false, Admission::AtOnce);
    chaos.join(1, true, Admission::WhenReady);
    chaos.calm_down();
    chaos.check_end();
    let record = chaos.lifecycle.group().unwrap().record().clone();
    let newest = record.receivers.last().unwrap();
    assert_eq!((record.receivers.len(), newest.qpn), (7, Qpn::new(0x100 + 22).unwrap()));
    assert!(newest.joined.is_some_and(|join| join.psn == chaos.fleet.next_psn && join.psn != Psn::new(1)));
}

/// D289: without the fence a headend that the controller has lost speaks without a member, when another one has taken
/// its place.
#[test]
fn a_former_headend_would_not_be_true() {
    let is_false = |without: Option<Safeguard>| {
        (0..8).any(|chosen| {
            let mut chaos = Chaos::new();
            chaos.lifecycle = Lifecycle::create(deep_record()).unwrap().without(without);
            chaos.calm_down();
            chaos.miss(loopback(6));
            chaos.replace(0, chosen, true);
            chaos.take_orders();
            while !chaos.messages.is_empty() && chaos.false_words().is_none() {
                chaos.deliver(0);
                chaos.take_orders();
            }
            chaos.false_words().is_some()
        })
    };
    assert!(!is_false(None));
    assert!(is_false(Some(Safeguard::HeadendFenced)));
}
