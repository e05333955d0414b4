//! Takes one member of every k out of every group, as evenly as its size allows: where k is odd, halves do not help.
//!
//! If each member were taken by 1/k, each group would give 1/k of its size. That is a flow through a network with a
//! node for every group, and where flows of fractions respect bounds, flows of whole numbers do too.
//!
//! ```text
//!  all ──▶ pods ──▶ leaves ──▶ members ──▶ leaves ──▶ pods ──▶ all
//!   ▲      each edge: ⌊size/k⌋ to ⌈size/k⌉; a member: 0 or 1     │
//!   └─────────────────────────────────────────────────────────────┘
//! ```

use crate::halve::Side;
use crate::network::Network;

/// Puts the members that are taken in front, and returns how many these are.
pub(crate) fn take_one_of(k: usize, sides: [&Side; 2], members: &mut [u32]) -> usize {
    let groups: usize = sides.iter().flat_map(|side| side.levels()).map(|level| level.groups).sum();
    let mut network = Network::new(groups);
    // The nodes of the groups on the last level that was entered, for each side: all members, to begin with.
    let mut first_node = 0;
    let mut inner = [0; 2];
    for (side, inner) in sides.iter().zip(&mut inner) {
        let mut above: Option<usize> = None;
        for (position, level) in side.levels().iter().enumerate().rev() {
            let mut sizes = vec![0_usize; level.groups];
            let mut around = vec![0_u32; level.groups];
            for member in members.iter() {
                let group = level.group[*member as usize] as usize;
                sizes[group] += 1;
                if let Some(outer) = side.levels().get(position + 1) {
                    around[group] = outer.group[*member as usize];
                }
            }
            if let Some(above) = above {
                for group in (0..level.groups).filter(|group| sizes[*group] > 0) {
                    let (low, high) = ((sizes[group] / k) as u32, sizes[group].div_ceil(k) as u32);
                    let (outer, own) = (above + around[group] as usize, first_node + group);
                    let (from, to) = if std::ptr::eq(*side, sides[0]) { (outer, own) } else { (own, outer) };
                    network.add(from, to, low, high);
                }
            }
            above = Some(first_node);
            *inner = first_node;
            first_node += level.groups;
        }
    }
    let outermost = |side: usize| if side == 0 { 0 } else { sides[0].levels().iter().map(|level| level.groups).sum() };
    network.add(outermost(1), outermost(0), (members.len() / k) as u32, members.len().div_ceil(k) as u32);
    let smallest = |side: usize, member: u32| inner[side] + sides[side].levels()[0].group[member as usize] as usize;
    let numbers: Vec<usize> =
        members.iter().map(|member| network.add(smallest(0, *member), smallest(1, *member), 0, 1)).collect();
    let solved = network.solve();
    debug_assert!(solved, "taking 1/k of every member respects all bounds");
    let mut taken = Vec::new();
    let mut left = Vec::new();
    for (member, number) in members.iter().zip(numbers) {
        if network.above_low(number) > 0 { taken.push(*member) } else { left.push(*member) }
    }
    let count = taken.len();
    taken.extend(left);
    members.copy_from_slice(&taken);
    count
}
