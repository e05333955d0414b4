//! The authentication section (RFC 5880 section 4.1), whose kinds have this in common:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Auth Type   |   Auth Len    |    Authentication Data ...    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The length counts its own octet and the type's. No kind is verified (D91).

use crate::refusal::Refusal;

/// An authentication section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication<'a> {
    /// 1: password; 2 to 5: keyed MD5 and SHA-1 (RFC 5880 section 4.1).
    pub kind: u8,
    /// What follows type and length.
    pub data: &'a [u8],
}

impl<'a> Authentication<'a> {
    /// Octets of type and length.
    pub(crate) const HEAD_LEN: usize = 2;

    /// The section at the front of the octets that follow the mandatory section within the packet's length.
    pub(crate) fn parse(octets: &'a [u8]) -> Result<Self, Refusal> {
        let ([kind, length], _) = octets.split_first_chunk().ok_or(Refusal::AuthenticationMalformed)?;
        let data = octets.get(Self::HEAD_LEN..usize::from(*length)).ok_or(Refusal::AuthenticationMalformed)?;
        Ok(Authentication { kind: *kind, data })
    }
}
