//! The source's decisions, without I/O: which rail sends which part of a version, and when the version is published
//! (D197, D198).
//!
//! ```text
//!   publish ─► members of all rails ─► layout and chunks on the rails ─► all acknowledged ─► members again
//!                                         ▲                                                    │
//!                                         └── chunks that a host lacks, on rails that it has ──┤
//!                                                                                              └─► Published
//! ```
//!
//! A host *has* a chunk if a rail that lives has sent it to all its members, and the host was one of them from before
//! the version until after the acknowledgement: an acknowledgement is that of all who were members all the time. The
//! version is published when each host that is a member of a rail has all chunks.

use super::message::RailPart;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// A host in the groups of several rails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    /// By the number that it has drawn.
    Number(u64),
    /// One that has joined a single rail.
    Address(Ipv6Addr),
}

/// Messages that a rail has before they are acknowledged: enough that it never runs empty.
const DEPTH: usize = 3;

/// Rails, one bit for each.
type RailSet = u32;

/// What the source has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Find the members of the rails that live: [`Striper::members`].
    Query,
    /// Send a part of the version on a rail.
    Send { rail: usize, part: RailPart },
    /// All hosts have the version.
    Published { version: u64 },
}

#[derive(Debug, Default)]
struct Rail {
    is_over: bool,
    /// In the order in which they were sent.
    outstanding: VecDeque<RailPart>,
    has_layout: bool,
    /// Members before the version, and since then all the time.
    steady: BTreeSet<Host>,
}

/// A version that is being sent.
#[derive(Debug)]
struct Current {
    version: u64,
    /// For each chunk, the rails that have sent it to their members.
    sent_by: Vec<RailSet>,
    /// Chunks that are to be sent on one of some rails, by these rails.
    tasks: BTreeMap<RailSet, VecDeque<u32>>,
    stage: Stage,
}

impl Current {
    /// A chunk that this rail is to send.
    fn next_chunk(&mut self, rail: usize) -> Option<u32> {
        let (rails, chunks) = self.tasks.iter_mut().find(|(rails, _)| **rails & 1 << rail != 0)?;
        let (rails, chunk) = (*rails, chunks.pop_front());
        if chunks.is_empty() {
            self.tasks.remove(&rails);
        }
        chunk
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The members are being asked for, before anything is sent.
    Before,
    Sending,
    /// All is acknowledged; the members are being asked for.
    After,
}

/// The rails of a source.
#[derive(Debug)]
pub(crate) struct Striper {
    rails: Vec<Rail>,
    has_started: bool,
    /// Versions that wait, with the numbers of their chunks.
    waiting: VecDeque<(u64, u32)>,
    current: Option<Current>,
    actions: VecDeque<Action>,
}

impl Striper {
    pub(crate) fn new(rails: usize) -> Self {
        let rails = (0..rails).map(|_| Rail::default()).collect();
        Striper { rails, has_started: false, waiting: VecDeque::new(), current: None, actions: VecDeque::new() }
    }

    /// What is to be done next.
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The groups are committed: versions may be sent.
    pub(crate) fn start(&mut self) {
        self.has_started = true;
        self.begin();
    }

    /// Takes a version, which is sent after those before it.
    pub(crate) fn publish(&mut self, version: u64, chunks: u32) {
        self.waiting.push_back((version, chunks));
        self.begin();
    }

    /// The version that is being sent.
    pub(crate) fn current(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.version)
    }

    /// Whether a rail lives.
    pub(crate) fn is_live(&self, rail: usize) -> bool {
        self.rails.get(rail).is_some_and(|rail| !rail.is_over)
    }

    /// Begins the next version. The one before is published: a receiver that waits for a slot waits for no chunk that
    /// comes behind.
    fn begin(&mut self) {
        if !self.has_started || self.current.is_some() || self.rails.iter().all(|rail| rail.is_over) {
            return;
        }
        let Some((version, chunks)) = self.waiting.pop_front() else { return };
        let sent_by = vec![0; chunks as usize];
        self.current = Some(Current { version, sent_by, tasks: BTreeMap::new(), stage: Stage::Before });
        self.actions.push_back(Action::Query);
    }

    /// The answer to [`Action::Query`], found after it was given: the members of each rail. Those of one that is over
    /// do not matter.
    pub(crate) fn members(&mut self, members: &[BTreeSet<Host>]) {
        let Some(current) = &mut self.current else { return };
        match current.stage {
            Stage::Before => {
                for (rail, members) in self.rails.iter_mut().zip(members) {
                    (rail.has_layout, rail.steady) = (false, members.clone());
                }
            }
            Stage::After => {
                for (rail, members) in self.rails.iter_mut().zip(members) {
                    rail.steady.retain(|host| members.contains(host));
                }
            }
            Stage::Sending => return,
        }
        let was_after = current.stage == Stage::After;
        current.stage = Stage::Sending;
        self.plan();
        // A host may have become a member of a rail that it was not before; it gets the next version.
        let is_whole = was_after && self.current.as_ref().is_some_and(|current| current.tasks.is_empty());
        if !is_whole {
            return self.advance();
        }
        if let Some(done) = self.current.take() {
            self.actions.push_back(Action::Published { version: done.version });
        }
        self.begin();
    }

    /// A rail's oldest message is acknowledged by all its members.
    pub(crate) fn acknowledged(&mut self, rail: usize) {
        let Some(part) = self.rails.get_mut(rail).and_then(|rail| rail.outstanding.pop_front()) else { return };
        if let (RailPart::Chunk(chunk), Some(current)) = (part, &mut self.current)
            && let Some(sent_by) = current.sent_by.get_mut(chunk as usize)
        {
            *sent_by |= 1 << rail;
        }
        self.advance();
    }

    /// A rail is over. What it has sent of the version counts no more: whether its last acknowledgement was that of a
    /// host cannot be asked any more.
    pub(crate) fn over(&mut self, rail: usize) {
        let Some(rail) = self.rails.get_mut(rail) else { return };
        rail.is_over = true;
        rail.outstanding.clear();
        if self.current.as_ref().is_some_and(|current| current.stage == Stage::Sending) {
            self.plan();
            self.advance();
        }
    }

    /// For each host its rails that live; hosts with the same ones need the same.
    fn needs(&self) -> BTreeSet<RailSet> {
        let mut rails_of: BTreeMap<Host, RailSet> = BTreeMap::new();
        let mut live = 0;
        for (number, rail) in self.rails.iter().enumerate().filter(|(_, rail)| !rail.is_over) {
            live |= 1 << number;
            rail.steady.iter().for_each(|host| *rails_of.entry(*host).or_default() |= 1 << number);
        }
        let mut needs: BTreeSet<RailSet> = rails_of.into_values().collect();
        if live != 0 && needs.is_empty() {
            needs.insert(live);
        }
        needs
    }

    /// Finds the chunks that hosts lack, and do not get by what is outstanding.
    fn plan(&mut self) {
        let needs = self.needs();
        let Some(current) = &mut self.current else { return };
        let mut coming = current.sent_by.clone();
        for (number, rail) in self.rails.iter().enumerate() {
            for part in &rail.outstanding {
                if let RailPart::Chunk(chunk) = part
                    && let Some(rails) = coming.get_mut(*chunk as usize)
                {
                    *rails |= 1 << number;
                }
            }
        }
        current.tasks.clear();
        for (chunk, rails) in (0_u32..).zip(coming) {
            let lacking = needs.iter().copied().filter(|needed| needed & rails == 0);
            for rails in covering(lacking.collect()) {
                current.tasks.entry(rails).or_default().push_back(chunk);
            }
        }
    }

    /// Gives each rail what it can send, and asks for the members when all is acknowledged.
    fn advance(&mut self) {
        let Some(current) = self.current.as_mut().filter(|current| current.stage == Stage::Sending) else { return };
        // In turns, so that rails of the same rate get the same.
        loop {
            let mut is_sent = false;
            for (number, rail) in self.rails.iter_mut().enumerate() {
                if rail.is_over || rail.outstanding.len() >= DEPTH || (rail.has_layout && current.tasks.is_empty()) {
                    continue;
                }
                // Each rail has the layout, so that receivers see on each of them that the version before is over.
                let part = if !std::mem::replace(&mut rail.has_layout, true) {
                    RailPart::Layout
                } else {
                    let Some(chunk) = current.next_chunk(number) else { continue };
                    RailPart::Chunk(chunk)
                };
                rail.outstanding.push_back(part);
                self.actions.push_back(Action::Send { rail: number, part });
                is_sent = true;
            }
            if !is_sent {
                break;
            }
        }
        if current.tasks.is_empty() && self.rails.iter().all(|rail| rail.outstanding.is_empty()) {
            current.stage = Stage::After;
            self.actions.push_back(Action::Query);
        }
    }
}

/// Sets of rails, one of each of which is to send a chunk, so that each of `needs` has one of them: a single set if all
/// have a rail in common, else rails that serve most.
fn covering(mut needs: Vec<RailSet>) -> Vec<RailSet> {
    let mut found = Vec::new();
    // A host without rails cannot be served.
    needs.retain(|needed| *needed != 0);
    while !needs.is_empty() {
        let common = needs.iter().fold(RailSet::MAX, |common, needed| common & needed);
        if common != 0 {
            found.push(common);
            break;
        }
        let serves = |rail: &u32| needs.iter().filter(|needed| **needed & 1 << rail != 0).count();
        let Some(best) = (0..RailSet::BITS).max_by_key(serves) else { break };
        found.push(1 << best);
        needs.retain(|needed| needed & 1 << best == 0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_sent_once_where_a_rail_serves_all() {
        assert!(covering(vec![]).is_empty());
        assert_eq!(covering(vec![0b111, 0b110, 0b011]), [0b010]);
        assert_eq!(covering(vec![0b01, 0b10]), [0b10, 0b01]);
        // The second rail serves two of three.
        assert_eq!(covering(vec![0b010, 0b011, 0b100]), [0b010, 0b100]);
        assert_eq!(covering(vec![0b001, 0b110, 0]), [0b100, 0b001], "a host without rails is not served");
    }

    /// All actions, with those of rails acknowledged at once.
    fn run(striper: &mut Striper, members: &mut dyn FnMut(&mut Striper) -> Vec<BTreeSet<Host>>) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(action) = striper.poll_action() {
            match &action {
                Action::Query => {
                    let found = members(striper);
                    striper.members(&found);
                }
                Action::Send { rail, .. } => striper.acknowledged(*rail),
                Action::Published { .. } => {}
            }
            actions.push(action);
        }
        actions
    }

    fn hosts(numbers: &[u64]) -> BTreeSet<Host> {
        numbers.iter().copied().map(Host::Number).collect()
    }

    #[test]
    fn nothing_is_sent_before_the_commit() {
        let mut striper = Striper::new(2);
        striper.publish(1, 2);
        assert_eq!(striper.poll_action(), None);
        striper.start();
        assert_eq!(striper.poll_action(), Some(Action::Query));
    }

    /// D198: a host that was evicted from a rail when its chunks were acknowledged, and one that is gone everywhere.
    #[test]
    fn what_a_host_may_lack_is_sent_on_another_rail() {
        let mut striper = Striper::new(2);
        striper.start();
        striper.publish(1, 4);
        let answers =
            [[hosts(&[1, 2, 3]), hosts(&[1, 2, 3])], [hosts(&[1, 2]), hosts(&[1])], [hosts(&[1, 2]), hosts(&[1])]];
        let mut answers = answers.into_iter().map(Vec::from);
        let actions = run(&mut striper, &mut |_| answers.next().expect("no more questions"));
        let chunks = |rail| {
            let chunk = |action: &Action| match action {
                Action::Send { rail: on, part: RailPart::Chunk(chunk) } if *on == rail => Some(*chunk),
                Action::Send { .. } | Action::Query | Action::Published { .. } => None,
            };
            actions.iter().filter_map(chunk).collect::<BTreeSet<u32>>()
        };
        assert_eq!(chunks(0).len(), 4, "host 2 has rail 0 alone: {actions:?}");
        assert!(!chunks(1).is_empty(), "{actions:?}");
        assert_eq!(actions.last(), Some(&Action::Published { version: 1 }));
        assert_eq!(answers.next(), None);
    }

    /// A host that comes back to a rail has missed what was acknowledged meanwhile; so has one that joins it.
    #[test]
    fn members_that_were_not_there_before_have_nothing() {
        let mut striper = Striper::new(1);
        striper.start();
        striper.publish(1, 1);
        let mut answers = [vec![hosts(&[1])], vec![hosts(&[1, 2])]].into_iter();
        let actions = run(&mut striper, &mut |_| answers.next().expect("no more questions"));
        assert_eq!(actions.last(), Some(&Action::Published { version: 1 }), "host 2 gets the next one");
    }
}
