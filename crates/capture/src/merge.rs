//! Several captures as one.

use crate::error::ReadError;
use crate::packet::Packet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The packets of several captures in the order of their time stamps; packets of the same time in the order of the
/// captures. Yields the position of the capture beside each packet.
///
/// Packets of one capture keep their order, even if its time stamps go back. An error is returned as soon as it occurs
/// and does not delay the other captures.
pub struct Merge<I> {
    captures: Vec<I>,
    /// The next item of each capture.
    heads: Vec<Option<Result<Packet, ReadError>>>,
    /// Time and position of the captures that have a next item.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<I: Iterator<Item = Result<Packet, ReadError>>> Merge<I> {
    /// Merges captures, given as readers.
    pub fn new(captures: impl IntoIterator<Item = I>) -> Self {
        let captures = Vec::from_iter(captures);
        let count = captures.len();
        let mut merge = Merge { captures, heads: Vec::from_iter((0..count).map(|_| None)), order: BinaryHeap::new() };
        for capture in 0..count {
            merge.advance(capture);
        }
        merge
    }

    fn advance(&mut self, capture: usize) {
        let head = self.captures[capture].next();
        match &head {
            Some(Ok(packet)) => self.order.push(Reverse((packet.time_ns, capture))),
            Some(Err(_)) => self.order.push(Reverse((0, capture))),
            None => {}
        }
        self.heads[capture] = head;
    }
}

impl<I: Iterator<Item = Result<Packet, ReadError>>> Iterator for Merge<I> {
    type Item = (usize, Result<Packet, ReadError>);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, capture)) = self.order.pop()?;
        let item = self.heads[capture].take()?;
        self.advance(capture);
        Some((capture, item))
    }
}
