//! The active flows of each link, in one list: the flows of a link are next to each other.

/// Room for flows that a link gets with its first flow.
const FIRST_ROOM: u32 = 4;

/// Active flows by link.
#[derive(Clone, Debug)]
pub(super) struct Users {
    spans: Vec<Span>,
    flows: Vec<u32>,
}

/// Where the flows of a link are.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    first: u32,
    count: u32,
    room: u32,
}

impl Span {
    fn range(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

impl Users {
    /// No flows on so many links.
    pub(super) fn new(links: usize) -> Self {
        Users { spans: vec![Span::default(); links], flows: Vec::new() }
    }

    /// The flows of a link.
    #[inline]
    pub(super) fn of(&self, link: u32) -> &[u32] {
        &self.flows[self.spans[link as usize].range()]
    }

    /// Adds a flow to a link; returns its position there.
    pub(super) fn push(&mut self, link: u32, flow: u32) -> u32 {
        let span = &mut self.spans[link as usize];
        if span.count == span.room {
            // What is left behind is less than the room of all links.
            let first = self.flows.len() as u32;
            self.flows.extend_from_within(span.range());
            (span.first, span.room) = (first, FIRST_ROOM.max(2 * span.room));
            self.flows.resize((first + span.room) as usize, 0);
        }
        self.flows[(span.first + span.count) as usize] = flow;
        span.count += 1;
        span.count - 1
    }

    /// Removes the flow at a position of a link, which the last one takes; returns that one.
    pub(super) fn swap_remove(&mut self, link: u32, position: u32) -> Option<u32> {
        let span = &mut self.spans[link as usize];
        span.count -= 1;
        let moved = self.flows[(span.first + span.count) as usize];
        self.flows[(span.first + position) as usize] = moved;
        (position < span.count).then_some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_keep_their_flows_apart() {
        let mut users = Users::new(3);
        let mut model = [const { Vec::new() }; 3];
        for flow in 0..100 {
            let link = flow * 7 % 3;
            assert_eq!(users.push(link, flow), model[link as usize].len() as u32);
            model[link as usize].push(flow);
            if flow % 4 == 3 {
                let position = (flow * 13) as usize % model[link as usize].len();
                model[link as usize].swap_remove(position);
                let moved = users.swap_remove(link, position as u32);
                assert_eq!(moved, model[link as usize].get(position).copied());
            }
            (0..3).for_each(|link| assert_eq!(users.of(link), model[link as usize]));
        }
    }
}
