//! Which pipes are in use, and what rate each has.

use super::fill::{Narrow, Wanting, fill};

/// How much more than its capacity a link must be asked for to be in somebody's way: less is rounding.
const MORE: f64 = 1.0 + 1e-9;

/// Links with their capacities, and the pipes over them. Rates and capacities have one unit, whatever it is.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    links: Vec<Link>,
    pipes: Vec<Pipe>,
    /// Links at which rates may have to change.
    touched: Vec<u32>,
    /// Pipes that have begun, each with what it gets until rates are found anew.
    begun: Vec<(u32, f64)>,
    /// How often rates were found anew: what is marked with this number belongs to the present time.
    round: u64,
    narrow: Vec<Narrow>,
    wanting: Vec<Wanting>,
}

#[derive(Clone, Debug)]
struct Link {
    capacity: f64,
    /// What its pipes would take if each were alone.
    wanted: f64,
    /// What its pipes have.
    used: f64,
    /// The pipes in use, each with which of its links this is.
    users: Vec<(u32, u32)>,
    round: u64,
    /// Its position among the narrow links of this round.
    number: u32,
}

#[derive(Clone, Debug)]
struct Pipe {
    /// The links, each with this pipe's position among its users.
    links: Vec<(u32, u32)>,
    /// What it gets alone.
    ceiling: f64,
    rate: f64,
    is_in_use: bool,
    round: u64,
    /// Its position among the pipes of this round.
    number: u32,
}

impl Sharing {
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let link = |capacity| Link { capacity, wanted: 0.0, used: 0.0, users: Vec::new(), round: 0, number: 0 };
        Sharing {
            links: capacities.into_iter().map(link).collect(),
            pipes: Vec::new(),
            touched: Vec::new(),
            begun: Vec::new(),
            round: 0,
            narrow: Vec::new(),
            wanting: Vec::new(),
        }
    }

    /// Adds a pipe that is not in use.
    pub(super) fn add(&mut self, links: &[u32]) {
        self.pipes.push(Pipe { links: Vec::new(), ceiling: 0.0, rate: 0.0, is_in_use: false, round: 0, number: 0 });
        self.lay(self.pipes.len() as u32 - 1, links);
    }

    /// Lays a pipe that is not in use along other links.
    pub(super) fn lay(&mut self, pipe: u32, links: &[u32]) {
        let least = links.iter().map(|link| self.links[*link as usize].capacity).fold(f64::INFINITY, f64::min);
        let pipe = &mut self.pipes[pipe as usize];
        pipe.links = links.iter().map(|link| (*link, 0)).collect();
        pipe.ceiling = least;
    }

    pub(super) fn is_in_use(&self, pipe: u32) -> bool {
        self.pipes[pipe as usize].is_in_use
    }

    /// The links of a pipe.
    pub(super) fn links(&self, pipe: u32) -> impl Iterator<Item = u32> + '_ {
        self.pipes[pipe as usize].links.iter().map(|(link, _)| *link)
    }

    /// A pipe is in use from now on: with what nobody uses, as soon as [`Sharing::take_up`] says so.
    pub(super) fn begin(&mut self, number: u32) {
        let pipe = &mut self.pipes[number as usize];
        (pipe.is_in_use, pipe.rate) = (true, 0.0);
        let mut unused = pipe.ceiling;
        for (place, (link, position)) in (0..).zip(&mut pipe.links) {
            let at = &mut self.links[*link as usize];
            *position = at.users.len() as u32;
            at.users.push((number, place));
            at.wanted += pipe.ceiling;
            if at.wanted > at.capacity * MORE {
                self.touched.push(*link);
                unused = unused.min((at.capacity - at.used).max(0.0));
            }
        }
        pipe.rate = unused;
        pipe.links.iter().for_each(|(link, _)| self.links[*link as usize].used += unused);
        self.begun.push((number, unused));
    }

    /// A pipe is not in use any more.
    pub(super) fn end(&mut self, number: u32) {
        self.pipes[number as usize].is_in_use = false;
        for place in 0..self.pipes[number as usize].links.len() {
            let pipe = &self.pipes[number as usize];
            let (link, position) = pipe.links[place];
            let at = &mut self.links[link as usize];
            if at.wanted > at.capacity * MORE {
                self.touched.push(link);
            }
            at.users.swap_remove(position as usize);
            // Without users there is nothing to add up, rounding included.
            let is_last = at.users.is_empty();
            at.wanted = if is_last { 0.0 } else { at.wanted - pipe.ceiling };
            at.used = if is_last { 0.0 } else { at.used - pipe.rate };
            if let Some((moved, place)) = at.users.get(position as usize).copied() {
                self.pipes[moved as usize].links[place as usize].1 = position;
            }
        }
    }

    /// Adds the pipes that have begun, with what they get for now.
    pub(super) fn take_up(&mut self, changed: &mut Vec<(u32, f64)>) {
        changed.extend(self.begun.drain(..).filter(|(number, _)| self.pipes[*number as usize].is_in_use));
    }

    /// Whether something has begun or ended where somebody is in somebody's way.
    pub(super) fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Finds the rates anew where they may have changed, and adds the pipes that have another one now, with it.
    pub(super) fn settle(&mut self, changed: &mut Vec<(u32, f64)>) {
        let together = self.together();
        fill(&mut self.narrow, &mut self.wanting[..together.len()]);
        for (number, wanting) in together.iter().zip(&self.wanting) {
            let pipe = &mut self.pipes[*number as usize];
            let rate = wanting.rate.unwrap_or(pipe.ceiling);
            if rate != pipe.rate {
                for (link, _) in &pipe.links {
                    self.links[*link as usize].used += rate - pipe.rate;
                }
                pipe.rate = rate;
                changed.push((*number, rate));
            }
        }
    }

    /// The pipes that share links with those that were touched, directly or by others, as far as these links can be in
    /// anybody's way; their narrow links and what they want are laid out for filling.
    fn together(&mut self) -> Vec<u32> {
        self.round += 1;
        self.narrow.clear();
        let mut together: Vec<u32> = Vec::new();
        for link in std::mem::take(&mut self.touched) {
            for (pipe, _) in &self.links[link as usize].users {
                join(&mut self.pipes[*pipe as usize], *pipe, self.round, &mut together);
            }
        }
        let mut done = 0;
        while let Some(number) = together.get(done).copied() {
            if self.wanting.len() == done {
                self.wanting.push(Wanting { ceiling: 0.0, links: Vec::new(), rate: None });
            }
            let own = &mut self.wanting[done];
            (own.ceiling, own.rate) = (self.pipes[number as usize].ceiling, None);
            own.links.clear();
            for place in 0..self.pipes[number as usize].links.len() {
                let (link, _) = self.pipes[number as usize].links[place];
                let at = &mut self.links[link as usize];
                if at.wanted <= at.capacity * MORE {
                    continue;
                }
                if at.round != self.round {
                    (at.round, at.number) = (self.round, self.narrow.len() as u32);
                    for (pipe, _) in &at.users {
                        join(&mut self.pipes[*pipe as usize], *pipe, self.round, &mut together);
                    }
                    let users: Vec<u32> = at.users.iter().map(|(pipe, _)| self.pipes[*pipe as usize].number).collect();
                    let waiting = users.len() as u32;
                    self.narrow.push(Narrow { left: at.capacity, users, waiting });
                }
                own.links.push(at.number);
            }
            done += 1;
        }
        together
    }
}

/// Takes a pipe among those of a round, once.
fn join(pipe: &mut Pipe, number: u32, round: u64, together: &mut Vec<u32>) {
    if pipe.round != round {
        (pipe.round, pipe.number) = (round, together.len() as u32);
        together.push(number);
    }
}
