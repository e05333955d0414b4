//! Frames in flight on the links.

use srdma_frame::Frame;

/// Frames on the wires.
#[derive(Default)]
pub(crate) struct Travelling {
    pub(crate) frames: Vec<Option<(Frame, u32)>>,
    pub(crate) free: Vec<u32>,
}

impl Travelling {
    #[inline]
    pub(crate) fn put(&mut self, frame: Frame, direction: u32) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.frames[place as usize] = Some((frame, direction));
                place
            }
            None => {
                self.frames.push(Some((frame, direction)));
                self.frames.len() as u32 - 1
            }
        }
    }

    /// The frame at a place that [`Travelling::put`] returned, once.
    #[inline]
    pub(crate) fn take(&mut self, place: u32) -> (Frame, u32) {
        self.free.push(place);
        self.frames[place as usize].take().expect("a place is taken once")
    }

    pub(crate) fn direction(&self, place: u32) -> Option<u32> {
        self.frames[place as usize].as_ref().map(|(_, direction)| *direction)
    }
}
