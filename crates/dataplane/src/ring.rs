//! Frames in the order they came.

/// A queue of frames that grows, and never shrinks. Where a frame is made is decided by what the compiler takes in
/// line: with the standard library's queue it makes each frame elsewhere and moves it here, at the price of half a copy
/// of End.MT.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    /// A power of two.
    slots: Vec<Option<T>>,
    head: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { slots: vec![None], head: 0, len: 0 }
    }
}

impl<T> Ring<T> {
    /// Whether no frame waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a frame behind the others.
    #[inline(always)]
    pub(crate) fn push(&mut self, frame: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let index = (self.head + self.len) & (self.slots.len() - 1);
        self.slots[index] = Some(frame);
        self.len += 1;
    }

    /// The frame that has waited longest.
    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.slots[self.head].as_ref()
    }

    /// Takes the frame that has waited longest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let frame = self.slots[self.head].take()?;
        self.head = (self.head + 1) & (self.slots.len() - 1);
        self.len -= 1;
        Some(frame)
    }

    /// All that wait, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
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
    use crate::frame::Frame;
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
                prop_assert_eq!(ring.first().map(|frame: &Frame| frame.to_vec(&pool)), model.front().cloned());
            }
            for octets in model {
                prop_assert_eq!(ring.pop().map(|frame| frame.to_vec(&pool)), Some(octets));
            }
            prop_assert!(ring.pop().is_none());
        }
    }
}
