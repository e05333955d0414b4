//! Pseudo-random numbers from a seed: the finaliser of splitmix64 (Steele, Lea and Flood 2014) over the subject of the
//! choice.

/// A number that depends on every bit of seed, flow and count.
#[inline]
pub(crate) fn draw(seed: u64, flow: u64, count: u64) -> u64 {
    let mut z = seed ^ flow.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ count.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A number below `limit`, evenly; 0 when `limit` is 0.
#[inline]
pub(crate) fn below(drawn: u64, limit: u64) -> u64 {
    ((u128::from(drawn) * u128::from(limit)) >> 64) as u64
}
