//! A frame as slices, the form that an endpoint receives.

use srdma_frame::{Frame, Pool};

/// Maximum number of slices of a frame.
const MAX_SLICES: usize = 8;

/// The slices of a frame, and their number.
pub fn slices_of<'a>(frame: &'a Frame, pool: &'a Pool) -> ([&'a [u8]; MAX_SLICES], usize) {
    let mut slices: [&[u8]; MAX_SLICES] = [&[]; MAX_SLICES];
    let mut count = 0;
    for (slot, piece) in slices.iter_mut().zip(frame.pieces(pool)) {
        *slot = piece;
        count += 1;
    }
    (slices, count)
}
