//! Frames in the order they came.

use crate::frame::Frame;

/// A queue of frames that grows, and never shrinks. Where a frame is made is decided by what the compiler takes in
/// line: with the standard library's queue it makes each frame elsewhere and moves it here, at the price of half a copy
/// of End.MT.
#[derive(Debug)]
pub(crate) struct Ring {
    /// A power of two.
    slots: Vec<Option<Frame>>,
    head: usize,
    len: usize,
}

impl Default for Ring {
    fn default() -> Self {
        Ring { slots: vec![None], head: 0, len: 0 }
    }
}

impl Ring {
    /// Whether no frame waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a frame behind the others.
    #[inline(always)]
    pub(crate) fn push(&mut self, frame: Frame) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let index = (self.head + self.len) & (self.slots.len() - 1);
        self.slots[index] = Some(frame);
        self.len += 1;
    }

    /// Takes the frame that has waited longest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Frame> {
        let frame = self.slots[self.head].take()?;
        self.head = (self.head + 1) & (self.slots.len() - 1);
        self.len -= 1;
        Some(frame)
    }

    /// Doubles the slots of a full ring.
    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.head);
        self.head = 0;
        self.slots.resize_with(2 * self.len, || None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_a_queue_of_the_standard_library(pushes in prop::collection::vec(any::<bool>(), 0..300)) {
            let mut pool = Pool::new(512);
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for (number, push) in pushes.into_iter().enumerate() {
                if push {
                    let octets = vec![number as u8; 1 + number % 60];
                    ring.push(Frame::from_octets(&octets, &mut pool).unwrap());
                    model.push_back(octets);
                } else {
                    prop_assert_eq!(ring.pop().map(|frame| frame.to_vec(&pool)), model.pop_front());
                }
                prop_assert_eq!(ring.is_empty(), model.is_empty());
            }
            for octets in model {
                prop_assert_eq!(ring.pop().map(|frame| frame.to_vec(&pool)), Some(octets));
            }
            prop_assert!(ring.pop().is_none());
        }
    }
}
