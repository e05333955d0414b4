//! Memory regions of a group and of its receivers (D27, D191).

use srdma_group::{ReceiverRegion, SourceRegion, check_regions};
use srdma_node_spec::file::{GroupSection, ReceiverSection, RegionSection};
use srdma_toml_error::Problem;

/// The group's region and its further ones.
pub(super) fn of_group(section: &GroupSection) -> Result<(Option<SourceRegion>, Vec<SourceRegion>), Problem> {
    let first = section.region.as_ref().map(source_region);
    let more: Vec<SourceRegion> = section.more_region.iter().map(|region| source_region(region.get_ref())).collect();
    if let Some(at) = section.more_region.first().map(|region| region.span().start) {
        check_regions(first.as_ref(), &more).map_err(|error| Problem::new(at, error.to_string()))?;
    }
    Ok((first, more))
}

fn source_region(RegionSection { base, length, rkey }: &RegionSection) -> SourceRegion {
    SourceRegion { base: base.value.get(), length: length.value.get(), rkey: rkey.value.get() as u32 }
}

/// The regions that a receiver has in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Regions {
    /// One for each of its group's.
    OfGroup,
    /// None.
    None,
}

/// The regions of a receiver. `at`: where the receiver is in the file.
pub(super) fn of_receiver(
    at: usize,
    receiver: &ReceiverSection,
    group: &GroupSection,
    regions: Regions,
) -> Result<(Option<ReceiverRegion>, Vec<ReceiverRegion>), Problem> {
    let address = receiver.address.value.0;
    let problem = |text: String| Err(Problem::new(at, text));
    let first = match (&receiver.base, &receiver.rkey) {
        (Some(base), Some(rkey)) => Some(ReceiverRegion { base: base.value.get(), rkey: rkey.value.get() as u32 }),
        (None, None) if group.region.is_none() || regions == Regions::None => None,
        (None, None) => {
            return problem(format!("receiver {address} needs base and rkey, since the group has a region"));
        }
        (Some(_), None) | (None, Some(_)) => {
            return problem(format!("receiver {address} needs both of base and rkey, or neither"));
        }
    };
    let more = receiver.more_regions.iter();
    let more: Vec<ReceiverRegion> = more
        .map(|region| ReceiverRegion { base: region.base.value.get(), rkey: region.rkey.value.get() as u32 })
        .collect();
    let needed = if regions == Regions::None { 0 } else { group.more_region.len() };
    if more.len() != needed {
        let has = more.len();
        return problem(format!("receiver {address} has {has} more_regions, the group has {needed} (D191)"));
    }
    Ok((first, more))
}
