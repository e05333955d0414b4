use crate::bth::Opcode;
use crate::ioam::TraceError;
use crate::options::OptionOverrun;
use core::fmt;

/// The reason why a packet with a Fast CNP option is no Fast CNP. Offsets count from the start of the options header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastCnpError {
    /// An option reaches beyond its header.
    Overrun(OptionOverrun),
    /// The option is in another header than the Destination Options header directly before UDP (D40).
    WrongPlace {
        /// Offset of that header from the start of the IPv6 header.
        header_offset: usize,
    },
    /// There are two of them.
    Twice {
        /// Offset of the second.
        offset: usize,
    },
    /// Its data are too short for an address, or for a trace's header and an address.
    TooShort {
        /// Offset of the option.
        offset: usize,
        /// Octets that were needed.
        needed: usize,
        /// Octets that were there.
        found: usize,
    },
    /// Option 1 has more than an address, or option 2 a trace that is longer than [`super::MAX_TRACE_LEN`] or no
    /// multiple of four octets.
    TooLong {
        /// Offset of the option.
        offset: usize,
        /// Octets of data that can be right.
        limit: usize,
        /// Octets that were there.
        found: usize,
    },
    /// Option 2's trace is invalid, or its length exceeds the option.
    Trace(TraceError),
    /// An unknown option beside it that must not be skipped (RFC 8200 section 4.2): its type.
    UnknownOption(u8),
    /// The packet is no CNP.
    NotACnp(Opcode),
}

impl fmt::Display for FastCnpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FastCnpError::Overrun(overrun) => overrun.fmt(f),
            FastCnpError::WrongPlace { header_offset } => {
                write!(f, "a Fast CNP option in the header at offset {header_offset}, not directly before UDP")
            }
            FastCnpError::Twice { offset } => write!(f, "a second Fast CNP option at offset {offset}"),
            FastCnpError::TooShort { offset, needed, found } => {
                write!(f, "Fast CNP option at offset {offset} needs {needed} octets, has {found}")
            }
            FastCnpError::TooLong { offset, limit, found } => {
                write!(f, "Fast CNP option at offset {offset} can use {limit} octets, has {found}")
            }
            FastCnpError::Trace(error) => write!(f, "IOAM trace: {error}"),
            FastCnpError::UnknownOption(kind) => {
                write!(f, "option {kind:#04x} beside the Fast CNP option is not known")
            }
            FastCnpError::NotACnp(opcode) => {
                write!(f, "a Fast CNP option in a packet with BTH opcode {:#04x}, no CNP", opcode.0)
            }
        }
    }
}

impl core::error::Error for FastCnpError {}

impl From<OptionOverrun> for FastCnpError {
    fn from(overrun: OptionOverrun) -> Self {
        FastCnpError::Overrun(overrun)
    }
}

impl From<TraceError> for FastCnpError {
    fn from(error: TraceError) -> Self {
        FastCnpError::Trace(error)
    }
}
