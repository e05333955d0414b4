//! Links: their capacities, and their active flows. An allocation visits thousands of links in an order that no cache
//! foresees, so what it reads of a link is in half a cache line, and the flows of a link are next to each other.

/// Relative demand above which a link is a bottleneck; a smaller excess is rounding.
const TOLERANCE: f64 = 1.0 + 1e-9;

/// Room for flows that a link gets with its first flow.
const FIRST_ROOM: u32 = 4;

/// Links with their active flows.
#[derive(Clone, Debug)]
pub(super) struct Links {
    links: Vec<Link>,
    users: Vec<u32>,
    /// Whether all have the same capacity.
    are_equal: bool,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Link {
    pub(super) capacity: f64,
    /// Sum of the limits of its flows.
    demand: f64,
    /// Where its flows are.
    first: u32,
    count: u32,
    room: u32,
    /// Its position among the bottlenecks of the allocation in which it last was one.
    pub(super) bottleneck: u32,
}

const _: () = assert!(size_of::<Link>() == 32);

impl Link {
    fn range(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }

    /// Whether its demand exceeds its capacity.
    pub(super) fn is_tight(self) -> bool {
        self.demand > self.capacity * TOLERANCE
    }

    /// Number of its flows.
    pub(super) fn users(self) -> u32 {
        self.count
    }
}

impl Links {
    /// Links of these capacities, without flows.
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let link = |capacity| Link { capacity, demand: 0.0, first: 0, count: 0, room: 0, bottleneck: 0 };
        let links: Vec<Link> = capacities.into_iter().map(link).collect();
        let are_equal = links.windows(2).all(|pair| pair[0].capacity == pair[1].capacity);
        Links { links, users: Vec::new(), are_equal }
    }

    pub(super) fn are_equal(&self) -> bool {
        self.are_equal
    }

    pub(super) fn get(&self, link: u32) -> Link {
        self.links[link as usize]
    }

    /// Sets the position of a link among the bottlenecks.
    pub(super) fn set_bottleneck(&mut self, link: u32, bottleneck: u32) {
        self.links[link as usize].bottleneck = bottleneck;
    }

    /// The flows of a link.
    #[inline]
    pub(super) fn of(&self, link: u32) -> &[u32] {
        &self.users[self.links[link as usize].range()]
    }

    /// Adds to the demand of a link, whose flow is [added](Links::push) next.
    pub(super) fn demand(&mut self, link: u32, limit: f64) {
        self.links[link as usize].demand += limit;
    }

    /// Adds a flow to a link; returns its position there.
    pub(super) fn push(&mut self, link: u32, flow: u32) -> u32 {
        let link = &mut self.links[link as usize];
        if link.count == link.room {
            // What is left behind is less than the room of all links.
            let first = self.users.len() as u32;
            self.users.extend_from_within(link.range());
            (link.first, link.room) = (first, FIRST_ROOM.max(2 * link.room));
            self.users.resize((first + link.room) as usize, 0);
        }
        self.users[(link.first + link.count) as usize] = flow;
        link.count += 1;
        link.count - 1
    }

    /// Removes the flow with this limit at a position of a link, which the last one takes; returns that one.
    pub(super) fn swap_remove(&mut self, link: u32, position: u32, limit: f64) -> Option<u32> {
        let link = &mut self.links[link as usize];
        link.count -= 1;
        // Without users the sum is exactly 0.
        link.demand = if link.count == 0 { 0.0 } else { link.demand - limit };
        let moved = self.users[(link.first + link.count) as usize];
        self.users[(link.first + position) as usize] = moved;
        (position < link.count).then_some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_keep_their_flows_apart() {
        let mut links = Links::new([10.0; 3]);
        let mut model = [const { Vec::new() }; 3];
        for flow in 0..100 {
            let link = flow * 7 % 3;
            links.demand(link, 0.5);
            assert_eq!(links.push(link, flow), model[link as usize].len() as u32);
            model[link as usize].push(flow);
            if flow % 4 == 3 {
                let position = (flow * 13) as usize % model[link as usize].len();
                model[link as usize].swap_remove(position);
                let moved = links.swap_remove(link, position as u32, 0.5);
                assert_eq!(moved, model[link as usize].get(position).copied());
            }
            for (link, users) in (0..3).zip(&model) {
                assert_eq!(links.of(link), users);
                assert_eq!(links.get(link).is_tight(), users.len() > 20);
            }
        }
    }
}
