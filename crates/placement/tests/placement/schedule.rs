//! A job's messages, carried out on real buffers by a slow model: each message takes a copy of what the sender has when
//! it is given out, and is added or written where it arrives, in any order that keeps each lane's.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::HostId;
use srdma_placement::{Collective, CollectiveKind, GroupKind, Job, Message, Pace, Parallel, Schedule};
use std::collections::{BTreeMap, VecDeque};

const KINDS: [CollectiveKind; 10] = [
    CollectiveKind::AllReduceRing,
    CollectiveKind::AllReduceTree,
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::BroadcastTree,
    CollectiveKind::BroadcastUnicast,
    CollectiveKind::BroadcastMulticast,
    CollectiveKind::SendRecv,
];

/// Kinds after which every rank has the buffer of the first.
const BROADCASTS: [CollectiveKind; 4] = [
    CollectiveKind::Broadcast,
    CollectiveKind::BroadcastTree,
    CollectiveKind::BroadcastUnicast,
    CollectiveKind::BroadcastMulticast,
];

fn job(ranks: usize, collectives: Vec<Collective>) -> Job {
    Job {
        name: "job".to_owned(),
        tenant: None,
        nics: (0..ranks as u32).map(HostId).collect(),
        parallel: Parallel { tensor: 1, data: ranks, expert: ranks, pipeline: 1 },
        collectives,
        trace: None,
    }
}

fn collective(kind: CollectiveKind, octets: u64) -> Collective {
    Collective { name: kind.name().to_owned(), kind, group: GroupKind::All, octets, period_us: None }
}

/// Offsets of the parts of a buffer that is divided into so many.
fn cuts(octets: usize, parts: usize) -> Vec<usize> {
    (0..=parts).map(|part| octets * part / parts).collect()
}

/// Initial contents of a rank's buffer at a place: any numbers, all different.
fn initial(rank: usize, place: usize) -> u64 {
    (rank as u64 + 1) * 1_000_003 + (place as u64) * 7919
}

/// Messages that are under way, in their order, with what they carry.
type Lane = VecDeque<(Message, Vec<u64>)>;

struct Model {
    kind: CollectiveKind,
    ranks: usize,
    chunk: usize,
    /// Buffers of each rank.
    buffers: Vec<Vec<u64>>,
    /// Arrived data, where they are kept apart from the buffer.
    received: Vec<Vec<u64>>,
}

impl Model {
    fn new(kind: CollectiveKind, ranks: usize, octets: usize, chunk: usize) -> Self {
        let full = |rank: usize| -> Vec<u64> { (0..octets).map(|place| initial(rank, place)).collect() };
        let cuts = cuts(octets, ranks);
        let buffers = (0..ranks).map(|rank| match kind {
            // Every rank begins with its own part.
            CollectiveKind::AllGather => {
                let mut buffer = vec![0; octets];
                buffer[cuts[rank]..cuts[rank + 1]].copy_from_slice(&full(rank)[cuts[rank]..cuts[rank + 1]]);
                buffer
            }
            kind if BROADCASTS.contains(&kind) && rank > 0 => vec![0; octets],
            _ => full(rank),
        });
        Model { kind, ranks, chunk, buffers: buffers.collect(), received: vec![vec![0; octets]; ranks] }
    }

    /// Octets of a message in the sender's buffer.
    fn place(&self, message: &Message) -> std::ops::Range<usize> {
        let (n, octets) = (self.ranks, self.buffers[0].len());
        let (from, step) = (message.from as usize, message.step as usize);
        let part = |part: usize| {
            let cuts = cuts(octets, n);
            cuts[part % n]..cuts[part % n + 1]
        };
        let chunk = |begin: usize, end: usize| {
            // Each chunk goes to all others before the next.
            let step = if self.kind == CollectiveKind::BroadcastUnicast { step / (n - 1) } else { step };
            let chunks = (end - begin).div_ceil(self.chunk).max(1);
            let cuts = cuts(end - begin, chunks);
            begin + cuts[step]..begin + cuts[step + 1]
        };
        match self.kind {
            CollectiveKind::AllReduceRing | CollectiveKind::ReduceScatter => part(from + 3 * n - 1 - step),
            CollectiveKind::AllGather => part(from + 2 * n - step),
            CollectiveKind::AllToAll => part(message.to as usize),
            CollectiveKind::AllReduceTree if message.lane < 3 => chunk(0, octets / 2),
            CollectiveKind::AllReduceTree => chunk(octets / 2, octets),
            _ => chunk(0, octets),
        }
    }

    /// Contents of a message, taken when it is sent.
    fn take(&self, message: &Message) -> Vec<u64> {
        let place = self.place(message);
        assert_eq!(message.octets as usize, place.len(), "{message:?}");
        self.buffers[message.from as usize][place].to_vec()
    }

    fn arrives(&mut self, message: &Message, data: &[u64]) {
        let place = self.place(message);
        let to = message.to as usize;
        if self.kind == CollectiveKind::BroadcastMulticast {
            assert_eq!((message.from, message.to), (0, 0));
            self.buffers.iter_mut().for_each(|buffer| buffer[place.clone()].copy_from_slice(data));
            return;
        }
        let adds = match self.kind {
            CollectiveKind::AllReduceRing => (message.step as usize) < self.ranks - 1,
            CollectiveKind::ReduceScatter => true,
            CollectiveKind::AllReduceTree => message.lane.is_multiple_of(3),
            _ => false,
        };
        let own = match self.kind {
            CollectiveKind::AllToAll => {
                let cuts = cuts(self.buffers[0].len(), self.ranks);
                let from = message.from as usize;
                &mut self.received[to][cuts[from]..cuts[from + 1]]
            }
            CollectiveKind::SendRecv => &mut self.received[to][place],
            _ => &mut self.buffers[to][place],
        };
        for (own, new) in own.iter_mut().zip(data) {
            *own = if adds { *own + new } else { *new };
        }
    }

    /// Whether every rank has the result of the collective.
    fn check(&self, what: &str) {
        let octets = self.buffers[0].len();
        let cuts = cuts(octets, self.ranks);
        let sum = |place: usize| (0..self.ranks).map(|rank| initial(rank, place)).sum::<u64>();
        let owner = |place: usize| (0..self.ranks).find(|rank| place < cuts[rank + 1]).unwrap();
        for rank in 0..self.ranks {
            for place in 0..octets {
                let (own, got) = (self.buffers[rank][place], self.received[rank][place]);
                let good = match self.kind {
                    CollectiveKind::AllReduceRing | CollectiveKind::AllReduceTree => own == sum(place),
                    CollectiveKind::ReduceScatter => owner(place) != rank || own == sum(place),
                    CollectiveKind::AllGather => own == initial(owner(place), place),
                    CollectiveKind::SendRecv => rank == 0 || got == initial(rank - 1, place),
                    CollectiveKind::AllToAll if owner(place) == rank => true,
                    CollectiveKind::AllToAll => {
                        let from = owner(place);
                        got == initial(from, cuts[rank] + place - cuts[from])
                    }
                    _ => own == initial(0, place),
                };
                assert!(good, "{what}: rank {rank} at {place}");
            }
        }
    }
}

/// Runs an iteration to its end, lanes in any order. The most that was under way at a time.
fn run(schedule: &mut Schedule, model: &mut Model, chance: &mut Pcg64Mcg) -> usize {
    let mut under_way: BTreeMap<(u32, u32, u8), Lane> = BTreeMap::new();
    let mut unacknowledged: Vec<Message> = Vec::new();
    let mut sends = Vec::new();
    let mut most = 0;
    schedule.begin(&mut sends);
    loop {
        for message in sends.drain(..) {
            let data = model.take(&message);
            under_way.entry((message.from, message.to, message.lane)).or_default().push_back((message, data));
        }
        most = most.max(under_way.values().map(VecDeque::len).sum());
        let open: Vec<(u32, u32, u8)> =
            under_way.iter().filter(|(_, messages)| !messages.is_empty()).map(|(lane, _)| *lane).collect();
        let acknowledges = !unacknowledged.is_empty() && (open.is_empty() || chance.random_bool(0.5));
        if acknowledges {
            let message = unacknowledged.swap_remove(chance.random_range(0..unacknowledged.len()));
            schedule.acknowledged(&message, &mut sends);
        } else if let Some(lane) = open.choose(chance) {
            let (message, data) = under_way.get_mut(lane).and_then(VecDeque::pop_front).unwrap();
            model.arrives(&message, &data);
            let is_last = schedule.arrived(&message, &mut sends);
            assert_eq!(is_last, !schedule.is_running());
            unacknowledged.push(message);
        } else {
            break;
        }
    }
    assert!(!schedule.is_running(), "messages wait for what does not come");
    most
}

/// PP-4-1's jobs do what they are for: sums are sums, and every rank has the whole result.
#[test]
fn collectives_compute_their_results() {
    for seed in 0..40 {
        let mut chance = Pcg64Mcg::seed_from_u64(seed);
        let ranks = chance.random_range(2..20);
        let any: usize = chance.random_range(1..9 * ranks);
        let chunk = chance.random_range(1..2 * any + 1);
        let messages_in_flight = chance.random_range(1..5);
        let peers_in_flight = chance.random_range(1..5);
        let pace = Pace { chunk_octets: chunk as u64, messages_in_flight, peers_in_flight };
        for kind in KINDS {
            // The model of an all-to-all has parts of one size only.
            let octets = if kind == CollectiveKind::AllToAll { any.next_multiple_of(ranks) } else { any };
            let job = job(ranks, vec![collective(kind, octets as u64)]);
            let [mut schedule] = <[Schedule; 1]>::try_from(Schedule::of_job(&job, pace)).unwrap();
            for iteration in 0..2 {
                let mut model = Model::new(kind, ranks, octets, chunk);
                let most = run(&mut schedule, &mut model, &mut chance);
                model.check(&format!("seed {seed}, {}, {ranks} ranks, iteration {iteration}", kind.name()));
                let lanes = if kind == CollectiveKind::AllReduceTree { 6 } else { 1 };
                let in_flight = messages_in_flight.max(peers_in_flight) as usize;
                assert!(most <= ranks * lanes * in_flight, "{most} messages at a time");
            }
            assert_eq!(schedule.iterations(), 2);
        }
    }
}

/// Every arrival of a ring releases one message, so that 4,096 ranks have 4,096 under way; a step of an all-to-all of
/// 65,536 has the number that is chosen.
#[test]
fn as_much_is_in_flight_as_the_pace_allows() {
    let mut sends = Vec::new();
    let ring = job(4096, vec![collective(CollectiveKind::AllReduceRing, 64 << 20)]);
    let mut schedule = Schedule::of_job(&ring, Pace::DEFAULT).remove(0);
    schedule.begin(&mut sends);
    for step in 0..64 {
        assert_eq!(sends.len(), 4096);
        assert!(sends.iter().all(|message| message.step == step && message.octets == 16 << 10));
        for message in std::mem::take(&mut sends) {
            assert!(!schedule.arrived(&message, &mut sends));
            schedule.acknowledged(&message, &mut sends);
        }
    }
    let all_to_all = job(65_536, vec![collective(CollectiveKind::AllToAll, 64 << 20)]);
    let mut schedule = Schedule::of_job(&all_to_all, Pace { peers_in_flight: 3, ..Pace::DEFAULT }).remove(0);
    sends.clear();
    schedule.begin(&mut sends);
    assert_eq!(sends.len(), 3 * 65_536);
    let to: Vec<u32> = sends.iter().filter(|message| message.from == 65_535).map(|message| message.to).collect();
    assert_eq!(to, [0, 1, 2]);
}

/// By hand: two tensor groups of two gather, then two data groups of two send; traffic with a period runs by itself.
#[test]
fn collectives_of_a_job_follow_one_another() {
    let gather = Collective { group: GroupKind::Tensor, ..collective(CollectiveKind::AllGather, 10) };
    let alone = Collective { group: GroupKind::Pipeline, ..collective(CollectiveKind::AllReduceRing, 10) };
    let send = Collective { group: GroupKind::Data, ..collective(CollectiveKind::SendRecv, 7) };
    let periodic = Collective { period_us: Some(100), ..collective(CollectiveKind::Broadcast, 3) };
    let mut job = job(4, vec![gather, periodic, alone, send]);
    job.parallel = Parallel { tensor: 2, data: 2, expert: 2, pipeline: 1 };
    let mut schedules = Schedule::of_job(&job, Pace::DEFAULT);
    let periods: Vec<Option<u64>> = schedules.iter().map(Schedule::period_us).collect();
    assert_eq!(periods, [None, Some(100)]);
    let schedule = &mut schedules[0];
    let mut sends = Vec::new();
    let pairs = |sends: &[Message]| -> Vec<(u32, u32, u64)> {
        sends.iter().map(|message| (message.from, message.to, message.octets)).collect()
    };
    for _ in 0..2 {
        schedule.begin(&mut sends);
        assert_eq!(pairs(&sends), [(0, 1, 5), (1, 0, 5), (2, 3, 5), (3, 2, 5)]);
        let gathered = std::mem::take(&mut sends);
        gathered.iter().for_each(|message| assert!(!schedule.arrived(message, &mut sends)));
        assert_eq!(pairs(&sends), [(0, 2, 7), (1, 3, 7)]);
        // Late messages of completed collectives have no effect.
        gathered.iter().for_each(|message| schedule.acknowledged(message, &mut sends));
        let sent = std::mem::take(&mut sends);
        let ends: Vec<bool> = sent.iter().map(|message| schedule.arrived(message, &mut sends)).collect();
        assert_eq!(ends, [false, true]);
        assert!(sends.is_empty());
    }
}

/// Without destinations an iteration ends at once.
#[test]
fn a_job_of_one_rank_has_nothing_to_send() {
    let mut schedule =
        Schedule::of_job(&job(1, vec![collective(CollectiveKind::AllToAll, 9)]), Pace::DEFAULT).remove(0);
    let mut sends = Vec::new();
    schedule.begin(&mut sends);
    assert!(sends.is_empty() && !schedule.is_running());
}

/// Five ranks send eight messages each, of which three are skipped after two: the others are sent, and then it ends.
#[test]
fn messages_of_rings_can_be_skipped() {
    let job = job(5, vec![collective(CollectiveKind::AllReduceRing, 500)]);
    let mut schedule = Schedule::of_job(&job, Pace::DEFAULT).remove(0);
    let mut messages = Vec::new();
    schedule.begin(&mut messages);
    let mut sent = messages.len();
    for round in 1..=5 {
        assert!(schedule.is_running());
        let mut next = Vec::new();
        for message in messages.drain(..) {
            assert_eq!(schedule.arrived(&message, &mut next), round == 5 && !schedule.is_running());
            schedule.acknowledged(&message, &mut next);
        }
        if round == 2 {
            let lockstep = schedule.lockstep().unwrap();
            assert_eq!((lockstep.messages, lockstep.sent, lockstep.octets), (8, 3, 100));
            schedule.skip(3);
            assert_eq!(schedule.lockstep().unwrap().sent, 6);
        }
        sent += next.len();
        messages = next;
    }
    assert_eq!((sent, messages.len(), schedule.is_running(), schedule.lockstep()), (25, 0, false, None));
    for kind in [CollectiveKind::AllReduceTree, CollectiveKind::AllToAll, CollectiveKind::Broadcast] {
        let mut other = Schedule::of_job(&self::job(5, vec![collective(kind, 500)]), Pace::DEFAULT).remove(0);
        other.begin(&mut messages);
        assert_eq!(other.lockstep(), None, "{kind:?}");
    }
}
