//! Processes that start, die and join slowly, in virtual time, around a lock as the kernel has it.

use super::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use srdma_testkit::seeds;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Until its step is done.
    Looking(Election, Instant),
    /// It has the lock, and listens from this time on.
    Joining(Instant),
    Owner,
    Attached(u64),
    GaveUp,
}

#[derive(Default)]
struct World {
    now: Instant,
    processes: BTreeMap<u64, State>,
    lock: Option<u64>,
    next: u64,
}

/// Time of a request to connect that is not answered, at most.
const ANSWER: Duration = Duration::from_secs(5);

impl World {
    fn start(&mut self) {
        self.processes.insert(self.next, State::Looking(Election::new(self.now), self.now));
        self.next += 1;
    }

    fn kill(&mut self, id: u64) {
        self.processes.remove(&id);
        if self.lock == Some(id) {
            self.lock = None;
        }
        for state in self.processes.values_mut() {
            if *state == State::Attached(id) {
                *state = State::Looking(Election::new(self.now), self.now);
            }
        }
    }

    /// Everything that is due by now. A join takes as long as it is said to.
    fn turn(&mut self, rng: &mut Pcg64Mcg, longest_join: Duration) {
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            let state = self.processes[&id];
            let next = match state {
                State::Looking(election, done_at) if done_at <= self.now => {
                    self.search(id, election, rng, longest_join)
                }
                State::Joining(done_at) if done_at <= self.now => State::Owner,
                State::Looking(..) | State::Joining(_) | State::Owner | State::Attached(_) | State::GaveUp => state,
            };
            self.processes.insert(id, next);
        }
    }

    fn search(&mut self, id: u64, mut election: Election, rng: &mut Pcg64Mcg, longest_join: Duration) -> State {
        let mut done_at = self.now;
        match election.step() {
            Step::TryLock if self.lock.is_none() => {
                self.lock = Some(id);
                return State::Joining(self.now + longest_join.mul_f64(rng.random()));
            }
            Step::TryLock => election.found(self.now, Found::Locked),
            Step::Connect => {
                let owner = self.processes.iter().find(|(_, state)| **state == State::Owner);
                if let Some((owner, _)) = owner {
                    return State::Attached(*owner);
                }
                // Refused at once, or by an owner that has died before it answered.
                election.found(self.now, Found::NoOwner);
                if rng.random_bool(0.1) {
                    done_at += ANSWER;
                }
            }
            Step::Wait(time) => {
                election.found(self.now + time, Found::Waited);
                done_at += time;
            }
            Step::GiveUp => return State::GaveUp,
        }
        State::Looking(election, done_at)
    }

    fn check(&self) {
        let has_lock = |state: &State| matches!(state, State::Owner | State::Joining(_));
        let owners: Vec<u64> = self.processes.iter().filter(|(_, state)| has_lock(state)).map(|(id, _)| *id).collect();
        assert_eq!(owners, self.lock.into_iter().collect::<Vec<_>>(), "{:?}", self.processes);
    }

    fn is_settled(&self) -> bool {
        let owner = self.processes.iter().find(|(_, state)| **state == State::Owner).map(|(id, _)| *id);
        self.processes.iter().all(|(id, state)| match state {
            State::Owner => true,
            State::Attached(of) => Some(*of) == owner && of != id,
            State::Looking(..) | State::Joining(_) | State::GaveUp => false,
        })
    }
}

/// D201: after the last death all processes have the same owner, which lives.
#[test]
fn one_rank_becomes_the_owner_and_all_others_attach_to_it() {
    for seed in 0..seeds::count(300) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let longest_join = Duration::from_secs(rng.random_range(0..30));
        let mut world = World::default();
        for _ in 0..rng.random_range(1..400) {
            match rng.random_range(0..10) {
                0 if world.processes.len() < 6 => world.start(),
                1 if rng.random_bool(0.3) && !world.processes.is_empty() => {
                    let index = rng.random_range(0..world.processes.len());
                    let id = *world.processes.keys().nth(index).expect("it has so many");
                    world.kill(id);
                }
                _ => world.now += Duration::from_millis(rng.random_range(0..2000)),
            }
            world.turn(&mut rng, longest_join);
            world.check();
        }
        world.processes.retain(|_, state| *state != State::GaveUp);
        world.start();
        let last = world.now;
        while !world.is_settled() {
            world.now += Duration::from_millis(5);
            world.turn(&mut rng, longest_join);
            world.check();
            assert!(world.now.since(last) < Duration::from_secs(60), "seed {seed}: {:?}", world.processes);
        }
    }
}

/// A process that has the lock and does not come to an end of its join.
#[test]
fn a_rank_gives_up_when_time_is_up_and_not_before() {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut world = World::default();
    world.start();
    world.turn(&mut rng, Duration::MAX / 2);
    world.start();
    let has_given_up = |world: &World| world.processes[&1] == State::GaveUp;
    while !has_given_up(&world) {
        world.now += Duration::from_millis(20);
        world.turn(&mut rng, Duration::ZERO);
        assert!(world.now.since(Instant::ZERO) < ENTER_TIMEOUT + 2 * ANSWER);
    }
    assert!(world.now.since(Instant::ZERO) >= ENTER_TIMEOUT);
}
