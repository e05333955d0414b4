//! Buffers that a source publishes.

use crate::memory::Octets;

/// A named buffer. It is immutable until the version that has it is published or has failed.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub(crate) name: String,
    pub(crate) octets: Octets,
    pub(crate) region: u8,
}

impl Buffer {
    /// A buffer with memory of its own, such as a `Vec<u8>`, an `Arc<[u8]>` or a mapped file.
    pub fn new(name: impl Into<String>, octets: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Buffer { name: name.into(), octets: Octets::new(octets), region: 0 }
    }

    /// The same, for another region of the group than the first, which is 0 (D191).
    pub fn in_region(self, region: u8) -> Self {
        Buffer { region, ..self }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its octets.
    pub fn length_octets(&self) -> u64 {
        self.octets.len() as u64
    }
}
