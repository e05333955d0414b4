//! Settings of a dissection.

use crate::entropy::EntropyPaths;
use crate::hmac::Keys;
use srdma_wire::fast_cnp::OptionTypes;

/// Keys, code points and rates that a packet does not carry.
#[derive(Default)]
pub struct Settings {
    /// Keys of HMAC TLVs.
    pub hmac_keys: Keys,
    /// Types of the Fast CNP options (FC-6-1).
    pub option_types: OptionTypes,
    /// Rate of the captured link: converts pause quanta to nanoseconds.
    pub link_rate_bits_per_s: Option<u64>,
    /// Paths of entropy values.
    pub entropy_paths: EntropyPaths,
}
