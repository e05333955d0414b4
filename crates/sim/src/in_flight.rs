//! Frames in flight on the links.

use srdma_frame::Frame;

/// Frames in flight, each in a slot with the index of its directed link.
#[derive(Default)]
pub(crate) struct InFlight {
    slots: Vec<Option<(Frame, u32)>>,
    free: Vec<u32>,
}

impl InFlight {
    /// Returns the slot of the frame.
    #[inline]
    pub(crate) fn insert(&mut self, frame: Frame, direction: u32) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some((frame, direction));
                slot
            }
            None => {
                self.slots.push(Some((frame, direction)));
                self.slots.len() as u32 - 1
            }
        }
    }

    /// The frame in a slot that [`InFlight::insert`] returned; at most once.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> (Frame, u32) {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a slot is emptied once")
    }

    pub(crate) fn direction(&self, slot: u32) -> Option<u32> {
        self.slots[slot as usize].as_ref().map(|(_, direction)| *direction)
    }

    /// Removes all frames.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Frame> {
        self.free.clear();
        self.slots.drain(..).flatten().map(|(frame, _)| frame)
    }
}
