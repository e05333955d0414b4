//! Octets that are read from the front and never beyond their end.

use crate::id::{LspId, NodeId, SystemId};

/// The reason why octets are no PDU, or one that is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer octets than a field needs.
    #[error("{field} needs {needed} octets, {found} left")]
    Truncated {
        /// The field that was read.
        field: &'static str,
        /// Octets that it occupies.
        needed: usize,
        /// Octets that there were.
        found: usize,
    },
    /// A field has a value that it must not have.
    #[error("{field} is {found}: expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// The value.
        found: u32,
        /// The expected values.
        expected: &'static str,
    },
}

/// Octets that are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    field: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `octets`, which are a `field`.
    pub fn new(field: &'static str, octets: &'a [u8]) -> Self {
        Reader { field, rest: octets }
    }

    /// What is not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything is read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads so many octets.
    ///
    /// # Errors
    ///
    /// If there are fewer octets left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let truncated = Malformed::Truncated { field: self.field, needed: count, found: self.rest.len() };
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads an array.
    ///
    /// # Errors
    ///
    /// If there are fewer octets left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let truncated = Malformed::Truncated { field: self.field, needed: N, found: self.rest.len() };
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads an octet.
    ///
    /// # Errors
    ///
    /// If there are fewer octets left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[octet]| octet)
    }

    /// Reads 16 bits.
    ///
    /// # Errors
    ///
    /// If there are fewer octets left.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads 24 bits.
    ///
    /// # Errors
    ///
    /// If there are fewer octets left.
    pub fn u24(&mut self) -> Result<u32, Malformed> {
        self.array().map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    /// Reads 32 bits.
    ///
    /// # Errors
    ///
    /// If there are fewer octets left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn system(&mut self) -> Result<SystemId, Malformed> {
        self.array().map(SystemId)
    }

    pub(crate) fn node(&mut self) -> Result<NodeId, Malformed> {
        self.array::<{ NodeId::LEN }>().map(NodeId::from)
    }

    pub(crate) fn lsp_id(&mut self) -> Result<LspId, Malformed> {
        self.array::<{ LspId::LEN }>().map(LspId::from)
    }
}
