//! Frames in the order they came.

/// A queue of frames that grows, and never shrinks. Where a frame is made is decided by what the compiler takes in
/// line: with the standard library's queue it makes each frame elsewhere and moves it here, at the price of half a copy
/// of End.MT.
#[derive(Debug)]
pub struct Ring<T> {
    /// A power of two.
    slots: Box<[Option<T>]>,
    head: u32,
    len: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { slots: Box::new([None]), head: 0, len: 0 }
    }
}

impl<T> Ring<T> {
    /// Frames that wait.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no frame waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a frame behind the others.
    #[inline(always)]
    pub fn push(&mut self, frame: T) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let index = self.place(self.len);
        self.slots[index] = Some(frame);
        self.len += 1;
    }

    /// Adds a frame behind the first `places`, before all others.
    pub fn insert(&mut self, places: usize, frame: T) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        self.head = self.head.wrapping_sub(1) & (self.slots.len() - 1) as u32;
        self.len += 1;
        for place in 0..(places as u32).min(self.len - 1) {
            let (to, from) = (self.place(place), self.place(place + 1));
            self.slots[to] = self.slots[from].take();
        }
        let index = self.place((places as u32).min(self.len - 1));
        self.slots[index] = Some(frame);
    }

    /// The frame that has waited longest.
    #[inline]
    pub fn first(&self) -> Option<&T> {
        self.slots[self.head as usize].as_ref()
    }

    /// Takes the frame that has waited longest.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let frame = self.slots[self.head as usize].take();
        self.len -= 1;
        // A ring that runs empty begins anew where it began before: there its slots are in the caches.
        self.head = if self.len == 0 { 0 } else { self.place(1) as u32 };
        frame
    }

    /// Reads the next two slots that are taken from, and that are put into: a sum that means nothing.
    #[inline]
    pub fn prefetch(&self) -> usize {
        let is_taken = |places| usize::from(self.slots[self.place(places)].is_some());
        is_taken(0) + is_taken(1) + is_taken(self.len) + is_taken(self.len + 1)
    }

    /// The slot so many places behind the first.
    #[inline]
    fn place(&self, places: u32) -> usize {
        self.head.wrapping_add(places) as usize & (self.slots.len() - 1)
    }

    /// All that wait, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }

    /// Doubles the slots of a full ring.
    #[cold]
    fn grow(&mut self) {
        let mut slots = std::mem::take(&mut self.slots).into_vec();
        slots.rotate_left(self.head as usize);
        self.head = 0;
        slots.reserve_exact(slots.len());
        slots.resize_with(2 * slots.len(), || None);
        self.slots = slots.into_boxed_slice();
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
        fn agrees_with_a_queue_of_the_standard_library(events in prop::collection::vec(0_usize..7, 0..300)) {
            let mut pool = Pool::new(512);
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for (number, event) in events.into_iter().enumerate() {
                let octets = vec![number as u8; 1 + number % 60];
                if event < 3 {
                    ring.push(Frame::from_octets(&octets, &mut pool).unwrap());
                    model.push_back(octets);
                } else if event < 5 {
                    let place = (event - 3) * (number % 4);
                    ring.insert(place, Frame::from_octets(&octets, &mut pool).unwrap());
                    model.insert(place.min(model.len()), octets);
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
