//! Fast CNP: a CNP that a switch sends to the sender of the packet that met congestion
//! (draft-xiao-rtgwg-rocev2-fast-cnp, section 4).
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
//! The layout is D40's; the length D41's. Both options may have the same type, and are then distinguished by their
//! length (D42). The ICRC is that of the packet without the Destination Options header (D43), so that a Fast CNP whose
//! header is taken off is a standard CNP.
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

/// Octets of the shortest trace, as it lies in an IOAM option: Reserved, IOAM Opt-Type, and the trace's header of
/// eight.
pub const MIN_TRACE_LEN: usize = 2 + 8;

/// Octets of the longest trace that option 2 can carry, counted in the same way: 255 octets of data, less the address,
/// are 2 and 237, of which a trace can use 236, a multiple of four (D41).
pub const MAX_TRACE_LEN: usize = 2 + 236;

/// Octets of the longest Fast CNP, from its IPv6 header to its ICRC.
pub const MAX_FAST_CNP_LEN: usize = STANDARD_CNP_LEN + (4 + 2 + MAX_TRACE_LEN + ADDRESS_OPTION_LEN).next_multiple_of(8);

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

/// Whether an IOAM trace of so many octets, from its option's Reserved octet on, can be carried (D41).
pub const fn can_carry(trace_len: usize) -> bool {
    MIN_TRACE_LEN <= trace_len && trace_len <= MAX_TRACE_LEN && trace_len % 4 == 2
}

#[cfg(test)]
mod tests;
