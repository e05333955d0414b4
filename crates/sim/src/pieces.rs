//! A frame in the form that an endpoint takes: in slices.

use srdma_frame::{Frame, Pool};

/// The most slices that a frame consists of.
const MAX_PIECES: usize = 8;

/// The slices of a frame, and how many there are.
pub fn pieces_of<'a>(frame: &'a Frame, pool: &'a Pool) -> ([&'a [u8]; MAX_PIECES], usize) {
    let mut pieces: [&[u8]; MAX_PIECES] = [&[]; MAX_PIECES];
    let mut count = 0;
    for (place, piece) in pieces.iter_mut().zip(frame.pieces(pool)) {
        *place = piece;
        count += 1;
    }
    (pieces, count)
}
