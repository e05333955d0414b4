//! Memory of applications, which the engine's thread reads and writes: the only `unsafe` code of the crate.

mod gpu;
mod mapped;
mod octets;
mod slots;

pub(crate) use mapped::{ReadRegion, receive_descriptor, send_descriptor};
pub(crate) use octets::Octets;
pub use slots::Region;
#[cfg(test)]
pub(crate) use slots::WatchedMemory;
pub(crate) use slots::{SharedRange, SlotMemory};

use srdma_rc::Memory;
use srdma_verbs::MemoryRegion;
use std::ops::Range;

/// The range of octets at an offset, if there can be one.
fn range_of(offset: u64, length: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(length)?)
}

/// A memory region of the library's endpoints.
#[derive(Debug)]
pub(crate) enum HostMemory {
    /// Messages of the library itself.
    Messages(Vec<u8>),
    /// The same, registered at a device.
    Registered(MemoryRegion<srdma_verbs::Buffer>),
    /// A buffer that is published.
    Source(Octets),
    /// Slots for versions.
    Slots(SlotMemory),
}

impl Memory for HostMemory {
    fn len(&self) -> u64 {
        match self {
            HostMemory::Messages(octets) => octets.len() as u64,
            HostMemory::Registered(region) => region.octets() as u64,
            HostMemory::Source(octets) => octets.len() as u64,
            HostMemory::Slots(slots) => slots.length_octets() as u64,
        }
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        match self {
            HostMemory::Messages(messages) => messages.write(offset, octets),
            HostMemory::Registered(region) => region.write(offset as usize, octets),
            // No peer may, and no receive is posted to it.
            HostMemory::Source(_) => {}
            HostMemory::Slots(slots) => slots.write(offset, octets),
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        match self {
            HostMemory::Messages(messages) => messages.read(offset, into),
            HostMemory::Registered(region) => region.memory().read(offset as usize, into),
            HostMemory::Source(octets) => octets.read(offset, into),
            HostMemory::Slots(slots) => slots.read(offset, into),
        }
    }
}
