//! Memory regions for WRITE and READ of peers, with keys, bounds and access rights.

/// Octets of a region.
///
/// A plain `Vec<u8>` is one. A host that only wants to hash or compare what arrives implements it without storing:
/// within a message, and from message to message, the endpoint writes verified octets in the order of their PSNs, each
/// once.
pub trait Memory {
    /// Length in octets. Read once, when the region is registered.
    fn len(&self) -> u64;

    /// Whether the length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts `octets` at `offset`. The endpoint calls it only for ranges inside the registered length.
    fn write(&mut self, offset: u64, octets: &[u8]);

    /// Copies what is at `offset` to `into`. The endpoint calls it only for ranges inside the registered length.
    fn read(&self, offset: u64, into: &mut [u8]);
}

impl Memory for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        let start = offset as usize;
        if let Some(place) = self.get_mut(start..start + octets.len()) {
            place.copy_from_slice(octets);
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let start = offset as usize;
        if let Some(place) = self.get(start..start + into.len()) {
            into.copy_from_slice(place);
        }
    }
}

impl<M: Memory + ?Sized> Memory for Box<M> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        (**self).write(offset, octets);
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        (**self).read(offset, into);
    }
}

/// Key of a memory region: R_Key for peers, local key for the host itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryKey(pub u32);

/// Permitted operations of peers on a region. The host itself may use all its regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// WRITE is allowed.
    pub remote_write: bool,
    /// READ is allowed.
    pub remote_read: bool,
}

impl Access {
    /// No access for peers: a source of messages, or a target of SENDs.
    pub const LOCAL: Access = Access { remote_write: false, remote_read: false };
    /// WRITE only.
    pub const REMOTE_WRITE: Access = Access { remote_write: true, remote_read: false };
    /// READ only.
    pub const REMOTE_READ: Access = Access { remote_write: false, remote_read: true };
    /// READ and WRITE.
    pub const REMOTE: Access = Access { remote_write: true, remote_read: true };

    fn allows(self, wanted: Access) -> bool {
        (self.remote_write || !wanted.remote_write) && (self.remote_read || !wanted.remote_read)
    }
}

/// A registered region: the one that has the memory, and not only its address and key.
#[derive(Debug)]
struct Region<M> {
    memory: M,
    length_octets: u64,
    base_address: u64,
    access: Access,
    key: MemoryKey,
}

/// The regions of an endpoint. A key's high 24 bits are the region's index, so that finding it is one step.
#[derive(Debug)]
pub(crate) struct Regions<M> {
    places: Vec<Option<Region<M>>>,
    /// Indices of deregistered regions, for the next ones.
    vacant: Vec<u32>,
}

impl<M: Memory> Regions<M> {
    pub(crate) fn new() -> Self {
        Regions { places: Vec::new(), vacant: Vec::new() }
    }

    pub(crate) fn register(&mut self, memory: M, base_address: u64, access: Access, key_tag: u8) -> MemoryKey {
        let index = self.vacant.pop().unwrap_or(self.places.len() as u32);
        let key = MemoryKey(index << 8 | u32::from(key_tag));
        let region = Some(Region { length_octets: memory.len(), memory, base_address, access, key });
        match self.places.get_mut(index as usize) {
            Some(place) => *place = region,
            None => self.places.push(region),
        }
        key
    }

    /// Returns the memory of a region, which exists no more.
    pub(crate) fn deregister(&mut self, key: MemoryKey) -> Option<M> {
        let index = key.0 >> 8;
        let region = self.places.get_mut(index as usize)?.take_if(|region| region.key == key)?;
        self.vacant.push(index);
        Some(region.memory)
    }

    pub(crate) fn get(&self, key: MemoryKey) -> Option<&M> {
        self.region(key).map(|region| &region.memory)
    }

    pub(crate) fn get_mut(&mut self, key: MemoryKey) -> Option<&mut M> {
        self.region_mut(key).map(|region| &mut region.memory)
    }

    /// Whether the host may use `length` octets at `offset`.
    pub(crate) fn is_inside(&self, key: MemoryKey, offset: u64, length: u32) -> bool {
        self.region(key).is_some_and(|region| fits(region.length_octets, offset, length))
    }

    /// Offset of a peer's virtual address, when key, bounds and access allow all of `length` octets.
    pub(crate) fn remote_offset(&self, key: MemoryKey, address: u64, length: u32, wanted: Access) -> Option<u64> {
        let region = self.region(key)?;
        let offset = address.checked_sub(region.base_address)?;
        (region.access.allows(wanted) && fits(region.length_octets, offset, length)).then_some(offset)
    }

    pub(crate) fn write(&mut self, key: MemoryKey, offset: u64, octets: &[u8]) {
        if let Some(region) = self.region_mut(key) {
            region.memory.write(offset, octets);
        }
    }

    pub(crate) fn read(&self, key: MemoryKey, offset: u64, into: &mut [u8]) {
        if let Some(region) = self.region(key) {
            region.memory.read(offset, into);
        }
    }

    fn region(&self, key: MemoryKey) -> Option<&Region<M>> {
        self.places.get((key.0 >> 8) as usize)?.as_ref().filter(|region| region.key == key)
    }

    fn region_mut(&mut self, key: MemoryKey) -> Option<&mut Region<M>> {
        self.places.get_mut((key.0 >> 8) as usize)?.as_mut().filter(|region| region.key == key)
    }
}

fn fits(available: u64, offset: u64, length: u32) -> bool {
    offset.checked_add(u64::from(length)).is_some_and(|end| end <= available)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(length: usize, access: Access) -> (Regions<Vec<u8>>, MemoryKey) {
        let mut regions = Regions::new();
        regions.register(vec![0; 8], 0, Access::REMOTE, 1);
        let key = regions.register(vec![0; length], 0x1000, access, 0x5A);
        (regions, key)
    }

    #[test]
    fn a_peer_reaches_only_memory_that_key_bounds_and_access_allow() {
        let (regions, key) = one(100, Access::REMOTE_WRITE);
        let offset = |key, address, length, access| regions.remote_offset(key, address, length, access);
        assert_eq!(offset(key, 0x1000, 100, Access::REMOTE_WRITE), Some(0));
        assert_eq!(offset(key, 0x1000 + 99, 1, Access::REMOTE_WRITE), Some(99));
        assert_eq!(offset(key, 0x1000 + 99, 2, Access::REMOTE_WRITE), None, "one octet past the end");
        assert_eq!(offset(key, 0x0FFF, 1, Access::REMOTE_WRITE), None, "before the region");
        assert_eq!(offset(key, u64::MAX, u32::MAX, Access::REMOTE_WRITE), None, "no overflow");
        assert_eq!(offset(key, 0x1000, 1, Access::REMOTE_READ), None, "WRITE does not imply READ");
        assert_eq!(offset(MemoryKey(key.0 ^ 1), 0x1000, 1, Access::REMOTE_WRITE), None, "another tag");
        assert_eq!(offset(MemoryKey(9 << 8), 0x1000, 1, Access::REMOTE_WRITE), None, "no such region");
    }

    #[test]
    fn a_deregistered_region_is_gone_and_its_index_is_used_again() {
        let (mut regions, key) = one(100, Access::REMOTE_WRITE);
        assert_eq!(regions.deregister(MemoryKey(key.0 ^ 1)), None, "another tag");
        assert_eq!(regions.deregister(key), Some(vec![0; 100]));
        assert_eq!(regions.deregister(key), None, "a second time");
        assert_eq!(regions.remote_offset(key, 0x1000, 1, Access::REMOTE_WRITE), None);
        assert!(!regions.is_inside(key, 0, 1));
        let next = regions.register(vec![0; 50], 0x1000, Access::REMOTE_WRITE, 0x5B);
        assert_eq!((next.0 >> 8, next != key), (key.0 >> 8, true));
        assert_eq!(regions.remote_offset(key, 0x1000, 1, Access::REMOTE_WRITE), None, "the former key");
        assert_eq!(regions.remote_offset(next, 0x1000, 50, Access::REMOTE_WRITE), Some(0));
    }

    #[test]
    fn the_host_is_bounded_as_well() {
        let (regions, key) = one(100, Access::LOCAL);
        assert!(regions.is_inside(key, 0, 100));
        assert!(regions.is_inside(key, 100, 0));
        assert!(!regions.is_inside(key, 1, 100));
        assert!(!regions.is_inside(key, u64::MAX, 2));
    }
}
