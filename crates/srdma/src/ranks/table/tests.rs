//! Ranks that read, stop, die, leave and send nonsense, in virtual time. What a rank may read is computed from the tokens
//! that exist, which the table does not know.

use super::*;
use crate::{DigestKind, Slots};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_testkit::seeds;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Versions that must not be overwritten.
type Live = Arc<Mutex<BTreeSet<u64>>>;

/// Keeps a version's slot.
struct Token {
    version: u64,
    live: Live,
}

impl Token {
    fn new(version: u64, live: &Live) -> Arc<Self> {
        live.lock().expect("not poisoned").insert(version);
        Arc::new(Token { version, live: Arc::clone(live) })
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.live.lock().expect("not poisoned").remove(&self.version);
    }
}

/// Version v has v - 1 versions before it.
fn manifest(version: u64, slots: u16) -> Arc<Manifest> {
    let slots = Slots { count: slots, octets: 100 };
    Arc::new(Manifest::new(version, version - 1, slots, DigestKind::Crc32, Vec::new()).expect("it fits"))
}

fn second(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn effects(table: &mut Table<Token>) -> Vec<Effect> {
    std::iter::from_fn(|| table.poll_effect()).collect()
}

fn messages(table: &mut Table<Token>, id: RankId) -> Vec<ToRank> {
    std::iter::from_fn(|| table.next_message(id)).collect()
}

struct Rig {
    table: Table<Token>,
    live: Live,
}

impl Rig {
    /// A table with attached ranks 0, 1, ...
    fn new(ranks: u64) -> Self {
        let mut table = Table::new(200);
        for id in 0..ranks {
            assert!(table.connect(Instant::ZERO, id));
            table.receive(Instant::ZERO, id, ToOwner::Attach);
            assert_eq!(messages(&mut table, id), [ToRank::Region { octets: 200 }]);
            assert_eq!(effects(&mut table), [Effect::Attached(id)]);
        }
        Rig { table, live: Live::default() }
    }

    /// A version that the owner's application does not want.
    fn version(&mut self, at: Instant, version: u64) {
        let token = Token::new(version, &self.live);
        self.table.version(at, &manifest(version, 2), &token);
    }

    fn takes(&mut self, id: RankId, version: u64) {
        self.table.receive(Instant::ZERO, id, ToOwner::Taken(version));
    }

    fn releases(&mut self, id: RankId, version: u64) {
        self.table.receive(Instant::ZERO, id, ToOwner::Released(version));
    }

    fn live(&self) -> Vec<u64> {
        self.live.lock().expect("not poisoned").iter().copied().collect()
    }
}

#[test]
fn a_slot_is_free_when_all_have_dropped_the_version() {
    let mut rig = Rig::new(3);
    rig.version(second(1), 1);
    for id in 0..3 {
        assert_eq!(messages(&mut rig.table, id), [ToRank::Version(manifest(1, 2))]);
        rig.takes(id, 1);
    }
    rig.releases(0, 1);
    rig.table.disconnect(1);
    assert_eq!((rig.live(), effects(&mut rig.table)), (vec![1], vec![Effect::Ended(1, RankEnd::Ended)]));
    rig.releases(2, 1);
    assert_eq!((rig.live(), effects(&mut rig.table)), (vec![], vec![]));
}

#[test]
fn a_rank_that_does_not_answer_is_detached_and_holds_no_slot() {
    let mut rig = Rig::new(2);
    rig.version(second(1), 1);
    rig.takes(0, 1);
    rig.releases(0, 1);
    assert_eq!(rig.table.next_deadline(), Some(second(6)));
    rig.table.tick(second(5));
    assert_eq!((effects(&mut rig.table), rig.live()), (vec![], vec![1]));
    rig.table.tick(second(6));
    let expected = [Effect::StopReading(1), Effect::Ended(1, Detach::Unanswered.into())];
    assert_eq!(effects(&mut rig.table), expected);
    assert_eq!(rig.live(), [1], "its answer may be there");
    rig.table.drained(1);
    assert_eq!(rig.live(), [0; 0]);
    assert_eq!(messages(&mut rig.table, 1), [ToRank::Detached(Detach::Unanswered)], "the offer is withdrawn");
    assert!(rig.table.is_done(1));
    rig.version(second(7), 2);
    assert!(!rig.table.has_message(1) && rig.table.next_deadline() == Some(second(12)));
}

/// The answer had been sent before the rank was cut off: it reads the version.
#[test]
fn what_a_rank_has_taken_stays_until_its_connection_is_closed() {
    let mut rig = Rig::new(1);
    rig.version(second(1), 1);
    rig.version(second(1), 2);
    rig.table.tick(second(6));
    rig.takes(0, 1);
    rig.table.drained(0);
    assert_eq!((rig.live(), rig.table.is_done(0)), (vec![1], false));
    rig.releases(0, 1);
    assert_eq!(rig.live(), [1], "what comes later is not read");
    effects(&mut rig.table);
    rig.table.disconnect(0);
    assert_eq!((rig.live(), effects(&mut rig.table)), (vec![], vec![]));
}

#[test]
fn a_rank_that_leaves_keeps_what_it_has() {
    let mut rig = Rig::new(1);
    rig.version(second(1), 1);
    rig.version(second(1), 2);
    rig.takes(0, 1);
    rig.table.receive(second(2), 0, ToOwner::Leave);
    assert_eq!((rig.live(), effects(&mut rig.table)), (vec![1], vec![Effect::Ended(0, RankEnd::Left)]));
    rig.version(second(3), 3);
    assert_eq!((rig.live(), rig.table.has_message(0)), (vec![1], false));
    rig.releases(0, 1);
    rig.table.disconnect(0);
    assert_eq!((rig.live(), effects(&mut rig.table)), (vec![], vec![]));
}

#[test]
fn a_late_rank_gets_the_newest_version_that_is_still_held() {
    let mut rig = Rig::new(0);
    rig.table.joined();
    let of_application = Token::new(1, &rig.live);
    rig.table.version(second(1), &manifest(1, 2), &of_application);
    let attach = |rig: &mut Rig, id| {
        assert!(rig.table.connect(second(2), id));
        rig.table.receive(second(2), id, ToOwner::Attach);
        messages(&mut rig.table, id)
    };
    let first = [ToRank::Region { octets: 200 }, ToRank::Joined];
    assert_eq!(attach(&mut rig, 0), [&first[..], &[ToRank::Version(manifest(1, 2))]].concat());
    drop(of_application);
    assert_eq!(rig.live(), [1]);
    rig.releases(0, 1);
    assert_eq!((rig.live(), attach(&mut rig, 1)), (vec![], first.to_vec()));
}

#[test]
fn a_rank_that_holds_the_next_slot_is_named_once() {
    let mut rig = Rig::new(2);
    for version in 1..=2 {
        rig.version(second(version), version);
        rig.takes(0, version);
        rig.takes(1, version);
        rig.releases(1, version);
    }
    assert_eq!(rig.table.next_deadline(), Some(second(3)));
    effects(&mut rig.table);
    rig.table.tick(second(2));
    assert_eq!(effects(&mut rig.table), []);
    rig.table.tick(second(3));
    assert_eq!(effects(&mut rig.table), [Effect::Holds(0, 1)]);
    assert_eq!(rig.table.next_deadline(), None);
    rig.table.tick(second(4));
    assert_eq!(effects(&mut rig.table), []);
}

#[test]
fn messages_out_of_place_end_the_rank() {
    let first: [&[ToOwner]; 6] = [
        &[ToOwner::Attach],
        &[ToOwner::Taken(7)],
        &[ToOwner::Released(7)],
        &[ToOwner::Taken(1), ToOwner::Taken(1)],
        &[ToOwner::Released(1), ToOwner::Released(1)],
        &[ToOwner::Released(1), ToOwner::Taken(1)],
    ];
    for wrong in first {
        let mut rig = Rig::new(2);
        rig.version(second(1), 1);
        wrong.iter().for_each(|message| rig.table.receive(second(1), 0, *message));
        let expected = [Effect::StopReading(0), Effect::Ended(0, Detach::Protocol.into())];
        assert_eq!(effects(&mut rig.table), expected, "{wrong:?}");
        rig.takes(1, 1);
        assert_eq!(effects(&mut rig.table), [], "the other is not harmed");
    }
    let mut rig = Rig::new(0);
    assert!(rig.table.connect(second(1), 5));
    rig.table.receive(second(1), 5, ToOwner::Leave);
    assert_eq!(effects(&mut rig.table), [Effect::StopReading(5)], "it never was attached");
    assert!(rig.table.connect(second(1), 6));
    assert_eq!(rig.table.next_deadline(), Some(second(6)));
    rig.table.tick(second(6));
    assert_eq!(effects(&mut rig.table), [Effect::StopReading(6)], "nor was one that says nothing");
}

#[test]
fn queues_and_ranks_are_bounded() {
    let mut rig = Rig::new(2);
    (0..MAX_QUEUE).for_each(|_| rig.table.source_is_silent());
    assert_eq!(effects(&mut rig.table), []);
    messages(&mut rig.table, 1);
    rig.table.rejected(None, "damaged");
    assert_eq!(effects(&mut rig.table), [Effect::StopReading(0), Effect::Ended(0, Detach::QueueFull.into())]);
    let mut rig = Rig::new(MAX_RANKS as u64);
    assert!(!rig.table.connect(second(1), 1000));
    rig.table.disconnect(3);
    assert!(rig.table.connect(second(1), 1000));
}

/// A process, as a rank of this library behaves.
#[derive(Default)]
struct Process {
    inbox: VecDeque<ToRank>,
    outbox: VecDeque<ToOwner>,
    /// What its application reads.
    visible: BTreeSet<u64>,
    is_stopped: bool,
    /// It cannot send any more.
    is_cut: bool,
    has_left: bool,
    is_hostile: bool,
}

/// Messages that a socket takes.
const SOCKET: usize = 4;

impl Process {
    fn send(&mut self, message: ToOwner) -> bool {
        if !self.is_cut {
            self.outbox.push_back(message);
        }
        !self.is_cut
    }

    fn read(&mut self) {
        if let Some(ToRank::Version(manifest)) = self.inbox.pop_front()
            && !self.has_left
            && self.send(ToOwner::Taken(manifest.version()))
        {
            self.visible.insert(manifest.version());
        }
    }

    fn drop_version(&mut self, version: u64) {
        if self.visible.remove(&version) {
            self.send(ToOwner::Released(version));
        }
    }
}

struct World {
    rng: Pcg64Mcg,
    now: Instant,
    slots: u16,
    next: u64,
    table: Table<Token>,
    live: Live,
    /// What the owner's application has.
    own: Vec<Arc<Token>>,
    processes: BTreeMap<RankId, Process>,
    next_id: RankId,
    attached: BTreeSet<RankId>,
    ended: BTreeSet<RankId>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        World {
            slots: rng.random_range(1..4),
            rng,
            now: Instant::ZERO,
            next: 1,
            table: Table::new(1000),
            live: Live::default(),
            own: Vec::new(),
            processes: BTreeMap::new(),
            next_id: 0,
            attached: BTreeSet::new(),
            ended: BTreeSet::new(),
        }
    }

    fn any(&mut self) -> Option<RankId> {
        let ids: Vec<RankId> = self.processes.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[self.rng.random_range(0..ids.len())])
    }

    fn may_publish(&self) -> bool {
        let slots = u64::from(self.slots);
        self.live.lock().expect("not poisoned").iter().all(|version| version % slots != self.next % slots)
    }

    fn publish(&mut self) {
        if self.may_publish() {
            let token = Token::new(self.next, &self.live);
            self.table.version(self.now, &manifest(self.next, self.slots), &token);
            self.next += 1;
            if self.rng.random_bool(0.3) {
                self.own.push(token);
            }
        }
    }

    /// The owner reads what a process has sent, and its end.
    fn receive(&mut self, id: RankId) {
        let Some(process) = self.processes.get_mut(&id).filter(|process| !process.is_cut) else { return };
        while let Some(message) = process.outbox.pop_front() {
            self.table.receive(self.now, id, message);
        }
        self.handle_effects();
    }

    fn handle_effects(&mut self) {
        while let Some(effect) = self.table.poll_effect() {
            match effect {
                Effect::Attached(id) => assert!(self.attached.insert(id)),
                Effect::Ended(id, why) => {
                    assert!(self.attached.contains(&id) && self.ended.insert(id), "{id}: {why}");
                }
                Effect::Holds(id, version) => {
                    let process = &self.processes[&id];
                    // One that is cut off cannot say that it has dropped it.
                    let may_hold = process.is_hostile || process.is_cut || process.visible.contains(&version);
                    let says_so = process.outbox.contains(&ToOwner::Released(version));
                    assert!(may_hold || says_so, "{id} does not hold {version}");
                }
                Effect::StopReading(id) => {
                    let process = self.processes.get_mut(&id).expect("connected");
                    process.is_cut = true;
                    let sent = std::mem::take(&mut process.outbox);
                    sent.into_iter().for_each(|message| self.table.receive(self.now, id, message));
                    self.table.drained(id);
                }
            }
        }
    }

    fn flush(&mut self, id: RankId) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        while process.inbox.len() < SOCKET {
            let Some(message) = self.table.next_message(id) else { return };
            process.inbox.push_back(message);
        }
    }

    fn kill(&mut self, id: RankId) {
        // What it had sent may be read before its end is seen.
        if self.rng.random() {
            self.receive(id);
        }
        self.processes.remove(&id);
        self.table.disconnect(id);
        self.handle_effects();
    }

    fn connect(&mut self) {
        let id = self.next_id;
        if self.processes.len() < 5 && self.table.connect(self.now, id) {
            self.next_id += 1;
            let is_hostile = self.rng.random_bool(0.1);
            let mut process = Process { is_hostile, ..Process::default() };
            process.send(ToOwner::Attach);
            self.processes.insert(id, process);
        }
    }

    fn hostile_message(&mut self) -> ToOwner {
        let version = self.rng.random_range(0..self.next + 1);
        [ToOwner::Attach, ToOwner::Taken(version), ToOwner::Released(version), ToOwner::Leave]
            [self.rng.random_range(0..4)]
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            0 => self.connect(),
            1..=4 => self.publish(),
            5 => {
                self.now += Duration::from_millis(self.rng.random_range(0..2000));
                self.table.tick(self.now);
                self.handle_effects();
            }
            6 => drop(self.own.pop()),
            choice => {
                let Some(id) = self.any() else { return };
                match choice {
                    7..=9 => self.receive(id),
                    10..=12 => self.flush(id),
                    13 if self.rng.random_bool(0.2) => self.kill(id),
                    _ => self.process_step(id, choice),
                }
            }
        }
    }

    fn process_step(&mut self, id: RankId, choice: u32) {
        let (drops, wrong) = (self.rng.random::<u64>(), self.hostile_message());
        let may_stop = self.rng.random_bool(0.1);
        let process = self.processes.get_mut(&id).expect("connected");
        match choice {
            13 => process.is_stopped ^= may_stop,
            _ if process.is_stopped => {}
            14..=16 if process.is_hostile => drop(process.send(wrong)),
            14..=16 => process.read(),
            17 if may_stop && !process.has_left && !process.is_hostile => {
                process.has_left = true;
                process.send(ToOwner::Leave);
            }
            _ => {
                let version = process.visible.iter().nth(drops as usize % process.visible.len().max(1)).copied();
                version.into_iter().for_each(|version| process.drop_version(version));
            }
        }
    }

    /// What is read is not written.
    fn check(&self) {
        let live = self.live.lock().expect("not poisoned");
        for (id, process) in &self.processes {
            assert!(process.visible.is_subset(&live), "rank {id} reads {:?}, of which {live:?} stay", process.visible);
        }
    }

    /// Stopped processes that have taken nothing hold nothing up.
    fn check_progress(&mut self) {
        self.own.clear();
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            self.receive(id);
            let process = self.processes.get_mut(&id).expect("connected");
            if process.is_hostile || process.is_cut {
                self.kill(id);
            } else {
                process.is_stopped |= process.visible.is_empty();
                process.visible.clone().into_iter().for_each(|version| process.drop_version(version));
                self.receive(id);
            }
        }
        self.now += ANSWER_TIMEOUT;
        self.table.tick(self.now);
        self.handle_effects();
        assert!(self.live.lock().expect("not poisoned").is_empty());
        assert!(self.may_publish());
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            self.kill(id);
        }
        assert_eq!(self.ended, self.attached, "each end is named");
    }
}

/// D199.
#[test]
fn what_a_rank_reads_is_never_written_and_no_rank_holds_the_others_up() {
    for seed in 0..seeds::count(400) {
        let mut world = World::new(seed);
        for step in 0..600 {
            world.step();
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.check()));
            assert!(checked.is_ok(), "seed {seed}, step {step}");
        }
        println!("seed {seed}: {} versions, {} ranks", world.next - 1, world.next_id);
        world.check_progress();
    }
}
