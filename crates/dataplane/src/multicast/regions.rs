//! The region of a group to which a WRITE goes: the one that the rkey of its RETH names (D27, D191).

use super::ListedReceiver;
use srdma_group::{Receiver, ReceiverRegion, SourceRegion};
use srdma_wire::transport::Reth;

/// Rewriting of the RETH of a WRITE (D27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RethRule {
    /// It stays as it is: no region is configured.
    Keep,
    /// It moves from this region of the group, or one of the further regions, to that of each receiver.
    Move(SourceRegion),
    /// The regions are known in part: the packet would reach unintended memory.
    Refuse,
}

impl RethRule {
    /// The rule for a group with this region, if it has one, and these receivers.
    pub(crate) fn new(region: Option<SourceRegion>, receivers: &[ListedReceiver]) -> Self {
        let mut regions = receivers.iter().map(|receiver| receiver.region);
        match region {
            Some(region) if regions.all(|region| region.is_some()) => RethRule::Move(region),
            None if regions.all(|region| region.is_none()) => RethRule::Keep,
            _ => RethRule::Refuse,
        }
    }
}

/// Where in a group's regions a message begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Position of the region; 0 is the first.
    pub(super) region: u8,
    pub(super) offset: u64,
}

impl Target {
    /// If all of the message lies in the region that its rkey names.
    pub(super) fn of(reth: &Reth, first: &SourceRegion, more: &[SourceRegion]) -> Option<Self> {
        if reth.rkey == first.rkey {
            return Some(Target { region: 0, offset: offset_in(first, reth)? });
        }
        let (named, region) = more.iter().zip(1..).find(|(region, _)| region.rkey == reth.rkey)?;
        Some(Target { region, offset: offset_in(named, reth)? })
    }
}

/// Where in a region a message begins, if all of it lies there.
fn offset_in(region: &SourceRegion, reth: &Reth) -> Option<u64> {
    let offset = reth.virtual_address.checked_sub(region.base)?;
    let end = offset.checked_add(u64::from(reth.dma_length))?;
    (end <= region.length).then_some(offset)
}

/// The further regions of a list's group, and the region of each copy that is in use. A list of a group of one region
/// has an empty table.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionTable {
    more: Vec<SourceRegion>,
    /// Region by region, the first included, each in the order of the copies.
    of_copies: Vec<ReceiverRegion>,
    selected: u8,
}

impl RegionTable {
    /// Of a group with these further regions; `None` if a receiver has not a region for each.
    pub(crate) fn new<'r>(
        more: &[SourceRegion],
        receivers: impl Iterator<Item = Option<&'r Receiver>> + Clone,
    ) -> Option<Self> {
        if more.is_empty() {
            return Some(RegionTable::default());
        }
        let of_copies = (0..=more.len()).flat_map(|region| receivers.clone().map(move |it| it?.region_at(region)));
        Some(RegionTable { more: more.to_vec(), of_copies: of_copies.collect::<Option<_>>()?, selected: 0 })
    }

    pub(crate) fn more(&self) -> &[SourceRegion] {
        &self.more
    }

    /// Gives the copies of a list the regions for messages to one of the group's.
    #[inline]
    pub(crate) fn select(&mut self, region: u8, copies: &mut [Option<ReceiverRegion>]) {
        if self.selected != region {
            self.selected = region;
            let of_region = self.of_copies.chunks(copies.len().max(1)).nth(region.into()).unwrap_or_default();
            copies.iter_mut().zip(of_region).for_each(|(copy, region)| *copy = Some(*region));
        }
    }
}
