//! Pipes with what is to go through them, in virtual time.

use super::sharing::Sharing;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A pipe: octets in it go one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipeId(pub u32);

/// How much of the mean duration of transfers passes at least from one time that rates are found anew to the next: so
/// long what ends leaves its share to what begins in its place, and no more.
const PATIENCE: f64 = 0.005;

/// How many transfers the mean is over, more or less.
const REMEMBERED: f64 = 64.0;

/// Pipes over links. `T` says what a transfer is to whoever wants it.
#[derive(Clone, Debug)]
pub struct Pipes<T> {
    sharing: Sharing,
    pipes: Vec<Pipe<T>>,
    /// When pipes will have done their first transfer, with which of their plans says so: others are outdated.
    ends: BinaryHeap<Reverse<(u64, u32, u32)>>,
    changed: Vec<(u32, f64)>,
    /// How long transfers took, in the mean.
    mean_ps: f64,
    /// When rates were found anew, and when they will be if they have to be.
    settled_ps: u64,
    due_ps: Option<u64>,
}

#[derive(Clone, Debug)]
struct Pipe<T> {
    waiting: VecDeque<(T, f64)>,
    /// Octets of the first of them that had not gone at `since_ps`.
    left: f64,
    begun_ps: u64,
    since_ps: u64,
    octets_per_ps: f64,
    plan: u32,
    /// Whether nothing goes through it although something waits.
    is_shut: bool,
}

impl<T: Copy> Pipes<T> {
    /// Links of these rates, in bits a second, and no pipes.
    pub fn new(bits_per_s: impl IntoIterator<Item = u64>) -> Self {
        let octets_per_ps = |bits_per_s: u64| bits_per_s as f64 / 8e12;
        Pipes {
            sharing: Sharing::new(bits_per_s.into_iter().map(octets_per_ps)),
            pipes: Vec::new(),
            ends: BinaryHeap::new(),
            changed: Vec::new(),
            mean_ps: 0.0,
            settled_ps: 0,
            due_ps: None,
        }
    }

    /// Adds a pipe along these links, by their positions. Each may be there once.
    pub fn add(&mut self, links: &[u32]) -> PipeId {
        self.sharing.add(links);
        self.pipes.push(Pipe {
            waiting: VecDeque::new(),
            left: 0.0,
            begun_ps: 0,
            since_ps: 0,
            octets_per_ps: 0.0,
            plan: 0,
            is_shut: false,
        });
        PipeId(self.pipes.len() as u32 - 1)
    }

    /// The links of a pipe.
    pub fn links(&self, pipe: PipeId) -> impl Iterator<Item = u32> + '_ {
        self.sharing.links(pipe.0)
    }

    /// Puts so many octets behind what waits at a pipe, more than 0.
    pub fn send(&mut self, now_ps: u64, pipe: PipeId, octets: f64, what: T) {
        let own = &mut self.pipes[pipe.0 as usize];
        own.waiting.push_back((what, octets));
        if own.waiting.len() == 1 {
            (own.left, own.octets_per_ps) = (octets, 0.0);
            (own.begun_ps, own.since_ps) = (now_ps, now_ps);
            if !own.is_shut {
                self.sharing.begin(pipe.0);
            }
        }
    }

    /// Nothing goes through a pipe until it is [laid](Pipes::lay) anew. What waits goes on waiting.
    pub fn shut(&mut self, now_ps: u64, pipe: PipeId) {
        let own = &mut self.pipes[pipe.0 as usize];
        own.progress(now_ps);
        (own.octets_per_ps, own.is_shut) = (0.0, true);
        own.plan = own.plan.wrapping_add(1);
        if self.sharing.is_in_use(pipe.0) {
            self.sharing.end(pipe.0);
        }
    }

    /// Whether nothing goes through a pipe.
    pub fn is_shut(&self, pipe: PipeId) -> bool {
        self.pipes[pipe.0 as usize].is_shut
    }

    /// Lays a pipe along other links; what waits goes on there.
    pub fn lay(&mut self, now_ps: u64, pipe: PipeId, links: &[u32]) {
        self.shut(now_ps, pipe);
        self.sharing.lay(pipe.0, links);
        let own = &mut self.pipes[pipe.0 as usize];
        own.is_shut = false;
        if !own.waiting.is_empty() {
            self.sharing.begin(pipe.0);
        }
    }

    /// When something happens next, in picoseconds: a transfer has gone, or rates are to be [settled](Pipes::settle).
    pub fn next_ps(&mut self) -> Option<u64> {
        while let Some(Reverse((at_ps, pipe, plan))) = self.ends.peek() {
            if self.pipes[*pipe as usize].plan == *plan {
                return Some(self.due_ps.map_or(*at_ps, |due_ps| due_ps.min(*at_ps)));
            }
            self.ends.pop();
        }
        self.due_ps
    }

    /// Takes out what has gone by now: adds it in the order of the pipes.
    pub fn take_gone(&mut self, now_ps: u64, gone: &mut Vec<(PipeId, T)>) {
        while let Some(Reverse((at_ps, number, plan))) = self.ends.peek().copied() {
            let pipe = &mut self.pipes[number as usize];
            if pipe.plan == plan && at_ps > now_ps {
                return;
            }
            self.ends.pop();
            if pipe.plan != plan {
                continue;
            }
            let Some((what, _)) = pipe.waiting.pop_front() else { continue };
            gone.push((PipeId(number), what));
            self.mean_ps += ((now_ps - pipe.begun_ps) as f64 - self.mean_ps) / REMEMBERED;
            (pipe.begun_ps, pipe.since_ps) = (now_ps, now_ps);
            match pipe.waiting.front() {
                Some((_, octets)) => {
                    pipe.left = *octets;
                    self.ends.push(Reverse(pipe.next_end(number)));
                }
                None => {
                    pipe.plan = pipe.plan.wrapping_add(1);
                    self.sharing.end(number);
                }
            }
        }
    }

    /// Gives pipes their rates after what has begun and ended now.
    pub fn settle(&mut self, now_ps: u64) {
        self.sharing.take_up(&mut self.changed);
        self.due_ps = None;
        if self.sharing.is_touched() {
            let due_ps = self.settled_ps + (self.mean_ps * PATIENCE) as u64;
            if due_ps <= now_ps {
                self.settled_ps = now_ps;
                self.sharing.settle(&mut self.changed);
            } else {
                self.due_ps = Some(due_ps);
            }
        }
        for (number, octets_per_ps) in self.changed.drain(..) {
            let pipe = &mut self.pipes[number as usize];
            pipe.progress(now_ps);
            pipe.octets_per_ps = octets_per_ps;
            self.ends.push(Reverse(pipe.next_end(number)));
        }
    }
}

impl<T> Pipe<T> {
    /// Lets time pass up to now.
    fn progress(&mut self, now_ps: u64) {
        self.left -= self.octets_per_ps * (now_ps - self.since_ps) as f64;
        self.since_ps = now_ps;
    }

    /// Plans when the first transfer will have gone, in place of what was planned before.
    fn next_end(&mut self, number: u32) -> (u64, u32, u32) {
        self.plan = self.plan.wrapping_add(1);
        let needed_ps = (self.left.max(0.0) / self.octets_per_ps).ceil();
        // What will not come within the virtual time that there is stands at its end.
        (self.since_ps.saturating_add(needed_ps as u64), number, self.plan)
    }
}
