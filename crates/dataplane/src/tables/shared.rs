//! Values that several entries of the tables share by an index, removed with the last of them.

use std::ops::{Index, IndexMut};

/// Values and their use counts. Places of unused values are reused, so that the size is bounded by the largest number
/// in use at once.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    values: Vec<T>,
    /// How often each value is used.
    uses: Vec<u32>,
    /// Places of unused values.
    free: Vec<u32>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared { values: Vec::new(), uses: Vec::new(), free: Vec::new() }
    }
}

impl<T> Shared<T> {
    /// Uses the value that `is_it` recognises, or else a new one; returns its place.
    pub(crate) fn hold(&mut self, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> u32 {
        let place = self.find(is_it).unwrap_or_else(|| match self.free.pop() {
            Some(place) => {
                self.values[place as usize] = new();
                place
            }
            None => {
                self.values.push(new());
                self.uses.push(0);
                self.values.len() as u32 - 1
            }
        });
        self.uses[place as usize] += 1;
        place
    }

    /// Uses a value once more.
    pub(crate) fn hold_again(&mut self, place: u32) {
        self.uses[place as usize] += 1;
    }

    /// Ends one use of a value; returns whether it was the last.
    pub(crate) fn release(&mut self, place: u32) -> bool {
        let uses = &mut self.uses[place as usize];
        *uses -= 1;
        if *uses == 0 {
            self.free.push(place);
        }
        *uses == 0
    }

    /// How often a value is used.
    pub(crate) fn uses(&self, place: u32) -> u32 {
        self.uses[place as usize]
    }

    /// How many values are in use.
    pub(crate) fn in_use(&self) -> usize {
        self.uses.iter().filter(|uses| **uses > 0).count()
    }

    /// The values in use, for editing.
    pub(crate) fn values_in_use_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().zip(&self.uses).filter(|(_, uses)| **uses > 0).map(|(value, _)| value)
    }

    /// The place of the value in use that `is_it` recognises.
    pub(crate) fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<u32> {
        let mut values = self.values.iter().zip(&self.uses);
        values.position(|(value, uses)| *uses > 0 && is_it(value)).map(|place| place as u32)
    }

    /// Every place, in use or not.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// Every place, in use or not, for editing.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }
}

impl<T> Index<usize> for Shared<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, place: usize) -> &T {
        &self.values[place]
    }
}

impl<T> IndexMut<usize> for Shared<T> {
    #[inline(always)]
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.values[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut shared = Shared::default();
        let hold = |shared: &mut Shared<u8>, value: u8| shared.hold(|known| *known == value, || value);
        assert_eq!([1, 2, 1].map(|value| hold(&mut shared, value)), [0, 1, 0]);
        assert!(!shared.release(0));
        assert!(shared.release(0));
        assert_eq!(shared.find(|value| *value == 1), None);
        assert_eq!([3, 2, 4].map(|value| hold(&mut shared, value)), [0, 1, 2]);
        assert_eq!((shared.values.len(), shared[0]), (3, 3));
    }
}
