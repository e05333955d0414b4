//! A job's collectives as messages with their dependencies.
//!
//! ```text
//!   begin ──────────▶ messages ──▶ a network, packets or fluid ──▶ arrived, acknowledged ──▶ more messages
//! ```
//!
//! The collectives of an iteration follow one another: one begins at all ranks when the one before has arrived
//! everywhere, as with a barrier without cost. Messages are computed on demand: the state is a few numbers for each
//! rank, for any number of messages.

use crate::job::{Collective, CollectiveKind, Job};
use crate::pattern::{Follows, Pattern};

/// Amount of data in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Maximum length of the chunks of trees, broadcasts and transfers between neighbours, in octets.
    pub chunk_octets: u64,
    /// Number of messages of a lane that may be in flight: sent and not acknowledged.
    pub messages_in_flight: u32,
    /// To how many others each rank of an all-to-all sends at a time.
    pub peers_in_flight: u32,
}

impl Pace {
    /// Eight chunks of 512 KiB, as NCCL divides its buffers of 4 MiB (`NCCL_BUFFSIZE`); eight peers at a time.
    pub const DEFAULT: Pace = Pace { chunk_octets: 512 << 10, messages_in_flight: 8, peers_in_flight: 8 };
}

/// Octets that one rank sends to another. Those of the same sender, receiver and lane arrive in the order in which they
/// were returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// Of which collective, counted from 0 over all iterations.
    pub collective: u32,
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives. It may have the same NIC. The one that sends, if all others of its group receive, by
    /// multicast: then it arrives when all have it.
    pub to: u32,
    /// The sender's lane.
    pub lane: u8,
    /// Its position there.
    pub step: u32,
    /// Length in octets; 0 if a buffer has fewer octets than there are ranks.
    pub octets: u64,
}

/// A collective in rings: every rank sends to one other, a message for each that it has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lockstep {
    /// The collective, counted from 0 over all iterations.
    pub collective: u32,
    /// Messages of each rank in all.
    pub messages: u32,
    /// Messages that the rank has sent which is most advanced.
    pub sent: u32,
    /// Octets of a message; some have one more.
    pub octets: u64,
}

/// Collectives of a job that follow one another, iteration by iteration.
#[derive(Clone, Debug)]
pub struct Schedule {
    collectives: Vec<Groups>,
    period_us: Option<u64>,
    pace: Pace,
    /// Iterations that have been begun.
    begun: u32,
    /// The collective that is under way, counted from 0 over all iterations.
    current: u32,
    /// Messages of it that have not arrived.
    missing: u64,
    /// The lanes of each rank.
    lanes: Vec<Lane>,
    /// For each rank and tree, how many parts of a sum have come from the lower and from the upper child.
    parts: Vec<[[u32; 2]; 2]>,
}

/// A collective with its groups.
#[derive(Clone, Debug)]
struct Groups {
    pattern: Pattern,
    /// The ranks of each group, in order.
    members: Vec<Vec<u32>>,
    /// The group of each rank, and its position there; `None` if it takes no part.
    places: Vec<Option<[u32; 2]>>,
}

/// Progress of a lane, in messages.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// All that it has to send.
    all: u32,
    /// Octets that the pace allows so far.
    ready: u32,
    sent: u32,
    acknowledged: u32,
}

impl Schedule {
    /// The schedule of a job: the collectives without a period, one after the other, and each one with a period by
    /// itself.
    pub fn of_job(job: &Job, pace: Pace) -> Vec<Schedule> {
        let one_by_one: Vec<&Collective> = job.collectives.iter().filter(|own| own.period_us.is_none()).collect();
        let periodic = job.collectives.iter().filter(|own| own.period_us.is_some());
        let sequences = std::iter::once(one_by_one).chain(periodic.map(|own| vec![own]));
        sequences.filter(|sequence| !sequence.is_empty()).map(|sequence| Self::new(job, &sequence, pace)).collect()
    }

    /// These collectives, one after the other. The period is that of the first.
    pub fn new(job: &Job, collectives: &[&Collective], pace: Pace) -> Schedule {
        Schedule {
            collectives: collectives.iter().map(|collective| Groups::new(job, collective, pace)).collect(),
            period_us: collectives.first().and_then(|collective| collective.period_us),
            pace,
            begun: 0,
            current: 0,
            missing: 0,
            lanes: Vec::new(),
            parts: vec![[[0; 2]; 2]; job.nics.len()],
        }
    }

    /// Interval of iterations, in microseconds; `None`: each begins at the end of the previous one.
    pub fn period_us(&self) -> Option<u64> {
        self.period_us
    }

    /// Whether an iteration is under way.
    pub fn is_running(&self) -> bool {
        self.missing > 0
    }

    /// Number of iterations that have begun.
    pub fn iterations(&self) -> u32 {
        self.begun
    }

    /// Begins the next iteration: adds what is sent first. It ends at once if no rank has a destination. Nothing
    /// happens while one is under way.
    pub fn begin(&mut self, sends: &mut Vec<Message>) {
        if self.is_running() || self.collectives.is_empty() {
            return;
        }
        self.current = self.begun.wrapping_mul(self.collectives.len() as u32);
        self.begun = self.begun.wrapping_add(1);
        self.begin_collective(0, sends);
    }

    /// A message has arrived in full: adds what was waiting for it. `true` if it was the last one of the iteration.
    pub fn arrived(&mut self, message: &Message, sends: &mut Vec<Message>) -> bool {
        if message.collective != self.current || self.missing == 0 {
            return false;
        }
        self.missing -= 1;
        let number = self.number();
        if self.missing == 0 {
            self.current = self.current.wrapping_add(1);
            self.begin_collective(number + 1, sends);
            return !self.is_running();
        }
        let groups = &self.collectives[number];
        let places = [message.to, message.from].map(|rank| groups.places[rank as usize]);
        let [Some([_, position]), Some([_, from])] = places else { return false };
        let pattern = groups.pattern;
        let lanes = match pattern.follows(position, from, message.lane) {
            Follows::Nothing => [None; 2],
            Follows::Next(lanes) => lanes,
            Follows::Part { tree, child } => {
                let parts = &mut self.parts[message.to as usize][usize::from(tree)];
                let before = complete(*parts, pattern.has_children(position, tree));
                parts[usize::from(child)] += 1;
                let is_complete = complete(*parts, pattern.has_children(position, tree)) > before;
                if is_complete { pattern.lanes_after_sum(position, tree) } else { [None; 2] }
            }
        };
        for lane in lanes.into_iter().flatten() {
            let at = self.lane_index(message.to, lane);
            self.lanes[at].ready = self.lanes[at].ready.saturating_add(1);
            self.send(message.to, lane, sends);
        }
        false
    }

    /// A message has been acknowledged: adds what waited for room.
    pub fn acknowledged(&mut self, message: &Message, sends: &mut Vec<Message>) {
        if message.collective == self.current && self.is_running() {
            let at = self.lane_index(message.from, message.lane);
            self.lanes[at].acknowledged += 1;
            self.send(message.from, message.lane, sends);
        }
    }

    /// The collective under way, if it is one in rings.
    pub fn lockstep(&self) -> Option<Lockstep> {
        let pattern = self.collectives.get(self.number()).filter(|_| self.is_running())?.pattern;
        let is_ring = match pattern.kind {
            CollectiveKind::AllReduceRing | CollectiveKind::AllGather | CollectiveKind::ReduceScatter => true,
            CollectiveKind::AllReduceTree
            | CollectiveKind::AllToAll
            | CollectiveKind::Broadcast
            | CollectiveKind::BroadcastTree
            | CollectiveKind::BroadcastUnicast
            | CollectiveKind::BroadcastMulticast
            | CollectiveKind::SendRecv => false,
        };
        let messages = self.lanes.iter().map(|lane| lane.all).max()?;
        let sent = self.lanes.iter().map(|lane| lane.sent).max()?;
        let octets = pattern.octets / u64::from(pattern.ranks.max(1));
        is_ring.then_some(Lockstep { collective: self.current, messages, sent, octets })
    }

    /// Counts so many more messages of each rank as sent, arrived and acknowledged, in a collective in rings of which
    /// more are to be sent. Messages in flight stay in flight.
    pub fn skip(&mut self, messages: u32) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.all > 0) {
            lane.ready = lane.ready.saturating_add(messages);
            lane.sent += messages;
            lane.acknowledged += messages;
            self.missing -= u64::from(messages);
        }
    }

    /// Begins a collective of the iteration, or the next one with a transfer.
    fn begin_collective(&mut self, mut number: usize, sends: &mut Vec<Message>) {
        while let Some(groups) = self.collectives.get(number) {
            self.missing = groups.messages();
            if self.missing > 0 {
                break;
            }
            self.current = self.current.wrapping_add(1);
            number += 1;
        }
        let Some(groups) = self.collectives.get(number) else { return };
        self.lanes = groups.lanes();
        self.parts.fill([[0; 2]; 2]);
        let lanes = groups.pattern.lanes();
        for rank in 0..groups.places.len() as u32 {
            (0..lanes).for_each(|lane| self.send(rank, lane, sends));
        }
    }

    /// Returns the next message of a lane, if it may be sent.
    fn send(&mut self, rank: u32, lane: u8, sends: &mut Vec<Message>) {
        let at = self.lane_index(rank, lane);
        let groups = &self.collectives[self.number()];
        let Some([group, position]) = groups.places[rank as usize] else { return };
        let in_flight = match groups.pattern.kind {
            CollectiveKind::AllToAll => self.pace.peers_in_flight,
            _ => self.pace.messages_in_flight,
        };
        let own = &mut self.lanes[at];
        let limit = own.all.min(own.ready).min(own.acknowledged.saturating_add(in_flight.max(1)));
        while own.sent < limit {
            let step = own.sent;
            own.sent += 1;
            let Some(to) = groups.pattern.peer(position, lane, step) else { return };
            let to = groups.members[group as usize][to as usize];
            let [begin, end] = groups.pattern.part(position, lane, step);
            sends.push(Message { collective: self.current, from: rank, to, lane, step, octets: end - begin });
        }
    }

    /// Index of the collective in progress.
    fn number(&self) -> usize {
        self.current as usize % self.collectives.len()
    }

    fn lane_index(&self, rank: u32, lane: u8) -> usize {
        rank as usize * usize::from(self.collectives[self.number()].pattern.lanes()) + usize::from(lane)
    }
}

impl Groups {
    fn new(job: &Job, collective: &Collective, pace: Pace) -> Self {
        let members: Vec<Vec<u32>> = job
            .groups(collective.group)
            .into_iter()
            .map(|group| group.into_iter().map(|rank| rank as u32).collect())
            .collect();
        let mut places = vec![None; job.nics.len()];
        for (group, ranks) in (0..).zip(&members) {
            for (position, rank) in (0..).zip(ranks) {
                places[*rank as usize] = Some([group, position]);
            }
        }
        let pattern = Pattern {
            kind: collective.kind,
            // Groups of one kind are alike.
            ranks: members.first().map_or(0, Vec::len) as u32,
            octets: collective.octets,
            chunk_octets: pace.chunk_octets,
        };
        Groups { pattern, members, places }
    }

    /// Number of messages of all ranks.
    fn messages(&self) -> u64 {
        let of_lane = |position, lane| u64::from(self.pattern.messages(position, lane));
        let of_position = |position| (0..self.pattern.lanes()).map(|lane| of_lane(position, lane)).sum::<u64>();
        (0..self.pattern.ranks).map(of_position).sum::<u64>() * self.members.len() as u64
    }

    /// The lanes of each rank before anything is sent.
    fn lanes(&self) -> Vec<Lane> {
        let lane = |place: Option<[u32; 2]>, lane: u8| {
            place.map_or(Lane::default(), |[_, position]| Lane {
                all: self.pattern.messages(position, lane),
                ready: self.pattern.ready_at_start(position, lane),
                ..Lane::default()
            })
        };
        let lanes = self.pattern.lanes();
        self.places.iter().flat_map(|place| (0..lanes).map(move |number| lane(*place, number))).collect()
    }
}

/// Number of parts that all children have sent.
fn complete(parts: [u32; 2], has_children: [bool; 2]) -> u32 {
    parts.into_iter().zip(has_children).filter(|(_, has)| *has).map(|(parts, _)| parts).min().unwrap_or(0)
}
