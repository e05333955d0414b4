//! Splits members in two so that every group is split in two as evenly as its size allows.
//!
//! A member belongs to groups on two sides, and on each side groups are nested: a flow belongs to the leaf and the pod
//! of its source, and to those of its destination. Within each group members are paired, leftover ones are paired in
//! the group around it; then the two of each pair are put into different halves. A member has at most one partner on
//! either side, so pairs form paths and cycles that alternate between the sides: none is of odd length, and two halves
//! always exist.
//!
//! ```text
//!   from leaf 1:   a ─── b    c          pairs of the side they come from
//!                  │     └────┼─╮
//!   to leaf 7:     a ─── c    b d        pairs of the side they go to
//! ```
//!
//! For two sides without groups in groups this is the splitting of a bipartite graph along its Euler tours (Gabow
//! 1976).

/// No member.
const NONE: u32 = u32::MAX;

/// One side: for each level, from the smallest groups to the largest, the group of each member.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    levels: Vec<Level>,
}

#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The group of each member, counted from 0.
    pub(crate) group: Vec<u32>,
    pub(crate) groups: usize,
}

impl Side {
    /// Levels from the smallest groups to the largest: members that are together on one are together on all later ones.
    /// In addition all members are one group.
    pub(crate) fn new(mut levels: Vec<Level>) -> Self {
        let members = levels.first().map_or(0, |level| level.group.len());
        levels.push(Level { group: vec![0; members], groups: 1 });
        Side { levels }
    }

    /// The levels, the one that holds all members last.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }
}

/// Buffers that are kept between calls.
pub(crate) struct Halving<'a> {
    sides: [&'a Side; 2],
    /// The partners of each member.
    partners: Vec<[u32; 2]>,
    /// The member of each group that has no partner yet.
    waiting: Vec<u32>,
    half: Vec<Half>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Open,
    First,
    Second,
}

impl Half {
    fn other(self) -> Half {
        match self {
            Half::Open | Half::Second => Half::First,
            Half::First => Half::Second,
        }
    }
}

impl<'a> Halving<'a> {
    pub(crate) fn new(sides: [&'a Side; 2]) -> Self {
        let members = sides[0].levels[0].group.len();
        let groups = sides.iter().flat_map(|side| &side.levels).map(|level| level.groups).max().unwrap_or(0);
        Halving {
            sides,
            partners: vec![[NONE; 2]; members],
            waiting: vec![NONE; groups],
            half: vec![Half::Open; members],
        }
    }

    /// Puts one half of some members in front, and returns how many these are. Those that are named first are paired
    /// first.
    pub(crate) fn split(&mut self, members: &mut [u32]) -> usize {
        for member in members.iter() {
            self.partners[*member as usize] = [NONE; 2];
            self.half[*member as usize] = Half::Open;
        }
        self.pair(0, members);
        self.pair(1, members);
        let mut open = Vec::new();
        for start in members.iter() {
            if self.half[*start as usize] == Half::Open {
                self.half[*start as usize] = Half::First;
                open.push(*start);
            }
            while let Some(member) = open.pop() {
                let other = self.half[member as usize].other();
                for partner in self.partners[member as usize] {
                    if partner != NONE && self.half[partner as usize] == Half::Open {
                        self.half[partner as usize] = other;
                        open.push(partner);
                    }
                }
            }
        }
        members.sort_by_key(|member| self.half[*member as usize] == Half::Second);
        members.partition_point(|member| self.half[*member as usize] == Half::First)
    }

    /// Pairs members on one side, level by level.
    fn pair(&mut self, side: usize, members: &[u32]) {
        let mut alone = members.to_vec();
        for level in &self.sides[side].levels {
            for member in &alone {
                let waiting = &mut self.waiting[level.group[*member as usize] as usize];
                if *waiting == NONE {
                    *waiting = *member;
                } else {
                    self.partners[*member as usize][side] = *waiting;
                    self.partners[*waiting as usize][side] = *member;
                    *waiting = NONE;
                }
            }
            alone.retain(|member| self.partners[*member as usize][side] == NONE);
            alone.iter().for_each(|member| self.waiting[level.group[*member as usize] as usize] = NONE);
        }
    }
}
