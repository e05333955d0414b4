//! Fast CNP: a CNP that a switch sends to the sender of the packet that met congestion (draft-xiao-rtgwg-rocev2-fast-cnp,
//! section 4).
//!
//! ```text
//! 0      40                         udp     bth      cnp                icrc
//! | IPv6 | Destination Options 24–264 | UDP 8 | BTH 12 | 16 reserved octets | ICRC |
//!            one of the two options below
//!
//!  Option 1, at 4n+2                       Option 2, at 4n
//! +--------+--------+--------+--------+   +--------+--------+--------+--------+
//! |  Next  | HdrLen |  Type  |   16   |   |  Next  | HdrLen |      PadN 0     |
//! +--------+--------+--------+--------+   +--------+--------+--------+--------+
//! |                                   |   |  Type  | Length |Reserved|IOAM typ|
//! :     Original Destination  16      :   +--------+--------+--------+--------+
//! |                                   |   :  IOAM trace: header 8, node data  :
//! +--------+--------+--------+--------+   +--------+--------+--------+--------+
//! |               PadN 2              |   :     Original Destination  16      :
//! +--------+--------+--------+--------+   +--------+--------+--------+--------+
//!                                         :            PadN to 8n             :
//! ```
//!
//! The layout is D40's; the length D41's. Both options may have the same type, and are then told apart by their length
//! (D42). The ICRC is that of the packet without the Destination Options header (D43), so that a Fast CNP whose header is
//! taken off is a standard CNP.
//!
//! [`FastCnp`] finds the option in a packet that has come; [`FastCnpValue`] makes a packet;
//! [`standard_cnp`] turns one into what every host understands (D48).

mod error;
mod find;
mod translate;
mod value;

pub use error::FastCnpError;
pub use find::FastCnp;
pub use translate::{STANDARD_CNP_LEN, Translation, standard_cnp};
pub use value::FastCnpValue;

use crate::codepoints::option;

/// Data octets of option 1: an address (FC-4-4).
pub const ADDRESS_OPTION_LEN: usize = 16;

/// Octets of an IOAM trace's header, before its node data.
pub const TRACE_HEADER_LEN: usize = 8;

/// Octets of the longest trace that option 2 can carry, its header included: 255 octets of data, less 2 and the address,
/// down to a multiple of four (D41).
pub const MAX_TRACE_LEN: usize = 236;

/// Octets of the longest Fast CNP, from its IPv6 header to its ICRC.
pub const MAX_FAST_CNP_LEN: usize =
    STANDARD_CNP_LEN + (4 + 2 + 2 + MAX_TRACE_LEN + ADDRESS_OPTION_LEN).next_multiple_of(8);

/// IOAM Option-Type of the pre-allocated trace (RFC 9197 section 4.4), the one that a Hop-by-Hop option carries (RFC 9486).
const PRE_ALLOCATED_TRACE: u8 = 0;

/// The types of the two options (FC-6-1, D42).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionTypes {
    address: u8,
    trace: u8,
}

impl OptionTypes {
    /// The types of option 1 and option 2. `None` when the three high bits of one are not 100: discard and report, no
    /// change on the way (FC-4-3).
    pub const fn new(address: u8, trace: u8) -> Option<Self> {
        if address >> 5 == 0b100 && trace >> 5 == 0b100 { Some(OptionTypes { address, trace }) } else { None }
    }

    /// Type of option 1, which carries the original destination.
    pub const fn address(self) -> u8 {
        self.address
    }

    /// Type of option 2, which carries a trace as well.
    pub const fn trace(self) -> u8 {
        self.trace
    }

    /// Whether this is the type of one of the two.
    pub const fn contains(self, kind: u8) -> bool {
        kind == self.address || kind == self.trace
    }
}

impl Default for OptionTypes {
    fn default() -> Self {
        OptionTypes { address: option::FAST_CNP_ADDRESS, trace: option::FAST_CNP_TRACE }
    }
}

#[cfg(test)]
mod tests;
