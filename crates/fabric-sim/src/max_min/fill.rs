//! Progressive filling: all rates grow together, and whoever meets a full link stays at what it has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link that may be in the way.
#[derive(Clone, Debug)]
pub(super) struct Narrow {
    /// What it carries, less what has been given out.
    pub(super) left: f64,
    /// The pipes that use it, by their positions.
    pub(super) users: Vec<u32>,
    /// How many of them have no rate yet.
    pub(super) waiting: u32,
}

/// A pipe that wants a rate.
#[derive(Clone, Debug)]
pub(super) struct Wanting {
    /// What it gets if nothing is in its way.
    pub(super) ceiling: f64,
    /// The narrow links that it uses, by their positions.
    pub(super) links: Vec<u32>,
    /// What it gets.
    pub(super) rate: Option<f64>,
}

/// Gives each pipe its rate.
pub(super) fn fill(links: &mut [Narrow], pipes: &mut [Wanting]) {
    let mut by_ceiling: Vec<u32> = (0..pipes.len() as u32).collect();
    by_ceiling.sort_by(|one, other| pipes[*one as usize].ceiling.total_cmp(&pipes[*other as usize].ceiling));
    let mut by_ceiling = by_ceiling.into_iter().peekable();
    // Shares are not negative, and the bits of such numbers have their order.
    let mut open: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    open.extend((0..).zip(links.iter()).map(|(number, link)| Reverse((share(link).to_bits(), number))));
    loop {
        while by_ceiling.next_if(|pipe| pipes[*pipe as usize].rate.is_some()).is_some() {}
        let ceiling = by_ceiling.peek().map_or(f64::INFINITY, |pipe| pipes[*pipe as usize].ceiling);
        let Some(Reverse((bits, number))) = open.peek().copied().filter(|Reverse((bits, _))| *bits < ceiling.to_bits())
        else {
            let Some(pipe) = by_ceiling.next() else { return };
            settle(links, pipes, pipe, ceiling);
            continue;
        };
        open.pop();
        let link = &links[number as usize];
        // What was given out since has left more for each of the others.
        let now = share(link);
        if now.to_bits() > bits {
            open.push(Reverse((now.to_bits(), number)));
            continue;
        }
        for pipe in link.users.clone() {
            if pipes[pipe as usize].rate.is_none() {
                settle(links, pipes, pipe, now);
            }
        }
    }
}

/// What each pipe that waits at a link would get there; without end if none does.
fn share(link: &Narrow) -> f64 {
    if link.waiting == 0 { f64::INFINITY } else { link.left.max(0.0) / f64::from(link.waiting) }
}

fn settle(links: &mut [Narrow], pipes: &mut [Wanting], pipe: u32, rate: f64) {
    let pipe = &mut pipes[pipe as usize];
    pipe.rate = Some(rate);
    for link in &pipe.links {
        let link = &mut links[*link as usize];
        link.left -= rate;
        link.waiting -= 1;
    }
}
