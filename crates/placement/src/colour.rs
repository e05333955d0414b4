//! Colouring of members such that the colours of every group are balanced within one.
//!
//! Two colours are [halves](crate::halve). An even number of colours is divided evenly between the halves. Of an odd
//! number [one is taken out](crate::one_of) first. A group of n members then has each of k colours ⌊n/k⌋ or ⌈n/k⌉
//! times; that there is such a colouring for groups in groups on two sides is a theorem of de Werra (1971).

use crate::halve::{Halving, Level, Side};
use crate::one_of::take_one_of;

/// Groups of one level: which group each member belongs to.
#[derive(Clone, Debug)]
pub struct Evenly {
    side: Side,
}

impl Evenly {
    /// Levels from the smallest groups to the largest; each has the group of every member, and the number of groups.
    /// Members that are together on one level must be together on later ones.
    pub fn new(levels: impl IntoIterator<Item = (Vec<u32>, usize)>) -> Self {
        let levels = levels.into_iter().map(|(group, groups)| Level { group, groups }).collect();
        Evenly { side: Side::new(levels) }
    }
}

/// Colours members, which are in groups on two sides, with `k` colours, 1 or more. Some members may be left out; the
/// colours of these are 0. Those named first are paired with those named next: with members sorted by weight, weights
/// are about as even as numbers.
pub fn colour(k: usize, from: &Evenly, to: &Evenly, members: &mut [u32]) -> Vec<u16> {
    let sides = [&from.side, &to.side];
    let mut colours = vec![0; from.side.levels()[0].group.len()];
    let mut halving = Halving::new(sides);
    let mut work = vec![(0, k.max(1), members)];
    while let Some((first, k, members)) = work.pop() {
        if k == 1 {
            members.iter().for_each(|member| colours[*member as usize] = first as u16);
            continue;
        }
        if members.is_empty() {
            continue;
        }
        let (count, taken) = match k % 2 {
            0 => (halving.split(members), k / 2),
            _ => (take_one_of(k, sides, members), 1),
        };
        let (front, back) = members.split_at_mut(count);
        work.push((first, taken, front));
        work.push((first + taken, k - taken, back));
    }
    colours
}
