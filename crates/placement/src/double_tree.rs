//! Two binary trees over the same ranks, each for half of the data, such that no rank has children in both.
//!
//! One tree alone leaves half of its ranks, the leaves, with nothing to pass on; two trees in which they change places
//! use what every rank can send (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
//! and scan", Parallel Computing 35, 2009; NCCL has had them since version 2.4).
//!
//! In the first tree a rank's height is the number of zeros at the end of its number, and its parent is the nearest
//! number that is one higher; rank 0 is above all. The second is the first mirrored, or, where an odd number of ranks
//! would make that the same leaves, turned by one.

pub(crate) const TREES: u8 = 2;

/// The parent of a rank in a tree of so many ranks; `None` for the root.
pub(crate) fn parent(ranks: u32, tree: u8, rank: u32) -> Option<u32> {
    first_parent(ranks, turned(ranks, tree, rank)).map(|parent| turned_back(ranks, tree, parent))
}

/// The children of a rank in a tree of so many ranks.
pub(crate) fn children(ranks: u32, tree: u8, rank: u32) -> [Option<u32>; 2] {
    first_children(ranks, turned(ranks, tree, rank)).map(|child| child.map(|child| turned_back(ranks, tree, child)))
}

fn first_parent(ranks: u32, rank: u32) -> Option<u32> {
    if rank == 0 {
        return None;
    }
    let bit = rank & rank.wrapping_neg();
    let below = rank ^ bit;
    let above = below | bit << 1;
    Some(if above < ranks { above } else { below })
}

/// The one below it in number, and the one above it.
fn first_children(ranks: u32, rank: u32) -> [Option<u32>; 2] {
    let height = if rank == 0 { u32::BITS - ranks.leading_zeros() } else { rank.trailing_zeros() };
    let bits = || (0..height).rev().map(|height| 1_u32 << height);
    let is_child = |child: &u32| *child < ranks && first_parent(ranks, *child) == Some(rank);
    let lower = bits().filter_map(|bit| rank.checked_sub(bit)).find(is_child);
    let upper = bits().map(|bit| rank + bit).find(is_child);
    [lower, upper]
}

/// Position of a rank of a tree in the first tree.
fn turned(ranks: u32, tree: u8, rank: u32) -> u32 {
    match tree {
        0 => rank,
        _ if ranks.is_multiple_of(2) => ranks - 1 - rank,
        _ => (rank + ranks - 1) % ranks,
    }
}

fn turned_back(ranks: u32, tree: u8, rank: u32) -> u32 {
    match tree {
        0 => rank,
        _ if ranks.is_multiple_of(2) => ranks - 1 - rank,
        _ => (rank + 1) % ranks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The invariant of the trees: all ranks are below one root, and a rank with two children in one tree has none in
    /// the other.
    #[test]
    fn all_ranks_are_below_the_root_and_have_children_in_one_tree_at_most() {
        for ranks in (2..130).chain([255, 256, 257, 1000, 4096]) {
            let mut served = vec![[0; 2]; ranks as usize];
            for tree in 0..TREES {
                let mut below_root = 0;
                for rank in 0..ranks {
                    let depth = std::iter::successors(Some(rank), |at| parent(ranks, tree, *at)).count();
                    assert!(depth <= 2 + ranks.ilog2() as usize, "{ranks} ranks, tree {tree}: {rank} is at {depth}");
                    let own = children(ranks, tree, rank);
                    served[rank as usize][tree as usize] = own.iter().flatten().count();
                    for child in own.into_iter().flatten() {
                        assert_eq!(parent(ranks, tree, child), Some(rank), "{ranks} ranks, tree {tree}");
                        below_root += 1;
                    }
                }
                assert_eq!(below_root, ranks - 1, "{ranks} ranks, tree {tree}");
            }
            let busy = served.iter().filter(|served| served.iter().all(|children| *children > 0)).count();
            assert!(busy <= 1, "{ranks} ranks: {busy} have children in both trees");
        }
    }

    /// Figure by hand: 8 ranks, 4 above 2 and 6, those above the odd ones, and 0 above all.
    #[test]
    fn eight_ranks_make_the_tree_that_is_drawn_by_hand() {
        let parents: Vec<Option<u32>> = (0..8).map(|rank| parent(8, 0, rank)).collect();
        assert_eq!(parents, [None, Some(2), Some(4), Some(2), Some(0), Some(6), Some(4), Some(6)]);
        assert_eq!(children(8, 1, 7), [None, Some(3)]);
    }
}
