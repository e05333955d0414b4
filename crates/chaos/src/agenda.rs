//! What is still to happen in a run, besides what the network does by itself.

use srdma_wire::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Things to do, in the order of their times; those of one time in the order in which they were noted.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    /// By number; done ones are taken out.
    things: Vec<Option<T>>,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Agenda { heap: BinaryHeap::new(), things: Vec::new() }
    }

    pub(crate) fn note(&mut self, at: Instant, thing: T) {
        self.heap.push(Reverse((at, self.things.len())));
        self.things.push(Some(thing));
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// What is to be done next.
    pub(crate) fn take(&mut self) -> Option<T> {
        let Reverse((_, number)) = self.heap.pop()?;
        self.things[number].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_by_time_and_then_as_they_were_noted() {
        let mut agenda = Agenda::new();
        for (at, thing) in [(5, 'b'), (3, 'a'), (5, 'c')] {
            agenda.note(Instant::from_ns(at), thing);
        }
        assert_eq!(agenda.next(), Some(Instant::from_ns(3)));
        assert_eq!(std::iter::from_fn(|| agenda.take()).collect::<String>(), "abc");
        assert_eq!(agenda.next(), None);
    }
}
