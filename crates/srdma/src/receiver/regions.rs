//! Memory of a receiver for the regions of a group.

use crate::error::{Error, Result};
use crate::memory::Region;
use srdma_api::Group;

/// Octets that a group needs in each of its regions.
pub(super) fn needed(group: &Group) -> Result<Vec<u64>> {
    group.region.ok_or(Error::NoRegion(group.summary.id))?;
    Ok(group.regions().map(|region| region.length).collect())
}

/// Checks that memory of these lengths is enough for a group.
pub(super) fn check(group: u32, found: impl ExactSizeIterator<Item = usize>, needed: &[u64]) -> Result<()> {
    if found.len() != needed.len() {
        return Err(Error::RegionCount { group, found: found.len(), needed: needed.len() });
    }
    let lengths = found.map(|length| length as u64).zip(needed.iter().copied());
    match lengths.into_iter().find(|(found, needed)| found < needed) {
        Some((found, needed)) => Err(Error::RegionTooSmall { group, found, needed }),
        None => Ok(()),
    }
}

/// The memory for a group: what is given, or memory of the library.
pub(super) fn given_or_new(given: Vec<Region>, group: &Group) -> Result<Vec<Region>> {
    let needed = needed(group)?;
    if given.is_empty() {
        let new = |octets: &u64| Region::new(usize::try_from(*octets).ok()?).ok();
        return needed.iter().map(|octets| new(octets).ok_or(Error::NoMemory(*octets))).collect();
    }
    check(group.summary.id, given.iter().map(Region::length_octets), &needed)?;
    Ok(given)
}
