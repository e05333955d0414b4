//! The slots of a group in each of its regions (D191, D192).

use super::{ManifestError, Slots};
use srdma_group::MAX_REGIONS;
use std::ops::Range;

/// Slots of the same number in each region of a group, the same for all versions of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRegions {
    first: Slots,
    /// Octets of a slot in each further region.
    more_octets: Vec<u64>,
}

impl From<Slots> for SlotRegions {
    fn from(first: Slots) -> Self {
        SlotRegions { first, more_octets: Vec::new() }
    }
}

impl SlotRegions {
    /// Slots in the first region, and as many in further ones, each of so many octets.
    pub fn new(first: Slots, more_octets: Vec<u64>) -> Self {
        SlotRegions { first, more_octets }
    }

    /// The slots in the first region.
    pub fn first(&self) -> Slots {
        self.first
    }

    /// Octets of a slot in each further region.
    pub fn more_octets(&self) -> &[u64] {
        &self.more_octets
    }

    /// Number of regions.
    pub fn count(&self) -> usize {
        1 + self.more_octets.len()
    }

    /// The slots in each region.
    pub fn each(&self) -> impl Iterator<Item = Slots> {
        let count = self.first.count;
        std::iter::once(self.first).chain(self.more_octets.iter().map(move |octets| Slots { count, octets: *octets }))
    }

    /// The slots in a region.
    pub fn of(&self, region: usize) -> Option<Slots> {
        self.each().nth(region)
    }

    /// Where a slot is in each region.
    pub(crate) fn ranges(&self, slot: u16) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.each().enumerate().map(move |(region, slots)| {
            let start = slots.offset_of(slot) as usize;
            (region, start..start + slots.octets as usize)
        })
    }

    pub(super) fn check(&self) -> Result<(), ManifestError> {
        if self.count() > MAX_REGIONS {
            return Err(ManifestError::RegionCount(self.count()));
        }
        match self.each().find(|slots| slots.region_octets().is_none()) {
            Some(slots) if !(1..=super::MAX_SLOTS).contains(&slots.count) => Err(ManifestError::SlotCount(slots.count)),
            Some(slots) => Err(ManifestError::SlotOctets(slots.octets)),
            None => Ok(()),
        }
    }
}
