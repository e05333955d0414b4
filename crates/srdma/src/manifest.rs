//! The messages around a version (D170): *begin* with its manifest, and *end* with its digests.

mod regions;

pub use regions::SlotRegions;

use crate::digest::{Digest, DigestKind};
use srdma_group::MAX_REGIONS;
use std::collections::HashSet;

/// The longest name of a buffer, octets.
pub const MAX_NAME_OCTETS: usize = 1024;
/// The most buffers of a version.
pub const MAX_BUFFERS: usize = 65_535;
/// The longest begin or end message, octets.
pub const MAX_MANIFEST_OCTETS: usize = 2 << 20;
/// The most slots of a region.
pub const MAX_SLOTS: u16 = 64;

const BEGIN: [u8; 4] = *b"SRVB";
const END: [u8; 4] = *b"SRVE";
const FORM: u8 = 1;
/// Form of the begin message of a version in several regions (D192).
const FORM_OF_REGIONS: u8 = 2;
const BEGIN_OCTETS: usize = 36;
const ENTRY_OCTETS: usize = 18;
/// What form 2 has more: the number of regions, octets of a slot in each further one, and the region of each buffer.
const REGION_COUNT_OCTETS: usize = 2;
const SLOT_OCTETS: usize = 8;
const REGION_OCTETS: usize = 1;
const END_OCTETS: usize = 20;

/// A buffer's name and its place in the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name: 1 to [`MAX_NAME_OCTETS`] octets of UTF-8 without NUL, different from those of the other buffers.
    pub name: String,
    /// The region in which it is; 0 is the group's first.
    pub region: u8,
    /// Its first octet, from the beginning of the slot in its region.
    pub offset: u64,
    /// Its octets.
    pub length_octets: u64,
}

/// Description of a version, which the begin message has. One that exists fits its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    version: u64,
    sequence: u64,
    slots: SlotRegions,
    digest: DigestKind,
    buffers: Vec<Entry>,
}

/// The slots of a region, the same for all versions of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Versions that a receiver can have at once, the one on its way included.
    pub count: u16,
    /// Octets of each.
    pub octets: u64,
}

impl Slots {
    /// Octets of the region; `None` if a count is out of range.
    pub fn region_octets(self) -> Option<u64> {
        let is_count = (1..=MAX_SLOTS).contains(&self.count) && self.octets > 0;
        self.octets.checked_mul(self.count.into()).filter(|_| is_count)
    }

    /// The slot of a version that has so many before it.
    pub(crate) fn slot_of(self, sequence: u64) -> u16 {
        (sequence % u64::from(self.count)) as u16
    }

    /// Offset of a slot in the region.
    pub(crate) fn offset_of(self, slot: u16) -> u64 {
        u64::from(slot) * self.octets
    }
}

/// Why octets are no begin or end message, or values make no manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ManifestError {
    #[error("the message is neither a begin nor an end of a version")]
    Magic,
    #[error("form {0} of the message is not known")]
    Form(u8),
    #[error("the message is {found} octets long, its fields {needed}")]
    Length { found: usize, needed: usize },
    #[error("the message is {0} octets long, at most {MAX_MANIFEST_OCTETS}")]
    TooLong(usize),
    #[error("digest {0} is not known")]
    Digest(u8),
    #[error("{0} slots, 1 to {MAX_SLOTS}")]
    SlotCount(u16),
    #[error("slots of {0} octets")]
    SlotOctets(u64),
    #[error("{0} regions, at most {MAX_REGIONS}, and two at least in form 2")]
    RegionCount(usize),
    #[error("buffer {index} is in region {region}, which the group does not have")]
    Region { index: usize, region: u8 },
    #[error("{0} buffers, at most {MAX_BUFFERS}")]
    TooManyBuffers(usize),
    #[error("the name of buffer {index} has {octets} octets, 1 to {MAX_NAME_OCTETS}")]
    NameLength { index: usize, octets: usize },
    #[error("the name of buffer {0} is no UTF-8, or has a NUL")]
    Name(usize),
    #[error("buffer {0} has the name of an earlier one")]
    SameName(usize),
    #[error("buffer {0} is not behind the one before it")]
    Order(usize),
    #[error("buffer {index} ends beyond its slot of {slot_octets} octets")]
    BeyondSlot { index: usize, slot_octets: u64 },
}

impl Manifest {
    /// A manifest with these values.
    ///
    /// # Errors
    ///
    /// If a value is beyond its limit, or the buffers overlap or do not fit the slot.
    pub fn new(
        version: u64,
        sequence: u64,
        slots: impl Into<SlotRegions>,
        digest: DigestKind,
        buffers: Vec<Entry>,
    ) -> Result<Self, ManifestError> {
        let manifest = Manifest { version, sequence, slots: slots.into(), digest, buffers };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), ManifestError> {
        self.slots.check()?;
        if self.buffers.len() > MAX_BUFFERS {
            return Err(ManifestError::TooManyBuffers(self.buffers.len()));
        }
        let mut names = HashSet::with_capacity(self.buffers.len());
        let mut ends = vec![0; self.slots.count()];
        for (index, entry) in self.buffers.iter().enumerate() {
            let octets = entry.name.len();
            if !(1..=MAX_NAME_OCTETS).contains(&octets) {
                return Err(ManifestError::NameLength { index, octets });
            }
            if entry.name.contains('\0') {
                return Err(ManifestError::Name(index));
            }
            if !names.insert(entry.name.as_str()) {
                return Err(ManifestError::SameName(index));
            }
            let region = usize::from(entry.region);
            let place = ends.get_mut(region).zip(self.slots.of(region));
            let (end, slots) = place.ok_or(ManifestError::Region { index, region: entry.region })?;
            if entry.offset < *end {
                return Err(ManifestError::Order(index));
            }
            let slot_octets = slots.octets;
            *end = entry
                .offset
                .checked_add(entry.length_octets)
                .filter(|end| *end <= slot_octets)
                .ok_or(ManifestError::BeyondSlot { index, slot_octets })?;
        }
        match self.message_octets() {
            octets if octets > MAX_MANIFEST_OCTETS => Err(ManifestError::TooLong(octets)),
            _ => Ok(()),
        }
    }

    fn message_octets(&self) -> usize {
        let (head, of_entry) = match self.form() {
            FORM_OF_REGIONS => {
                (REGION_COUNT_OCTETS + SLOT_OCTETS * self.slots.more_octets().len(), ENTRY_OCTETS + REGION_OCTETS)
            }
            _ => (0, ENTRY_OCTETS),
        };
        BEGIN_OCTETS + head + self.buffers.iter().map(|entry| of_entry + entry.name.len()).sum::<usize>()
    }

    fn form(&self) -> u8 {
        if self.slots.count() == 1 { FORM } else { FORM_OF_REGIONS }
    }

    /// The application's number of the version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Number of versions of the group before it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The slots of the group's first region.
    pub fn slots(&self) -> Slots {
        self.slots.first()
    }

    /// The slots of all of the group's regions.
    pub fn regions(&self) -> &SlotRegions {
        &self.slots
    }

    /// The digest of its buffers.
    pub fn digest(&self) -> DigestKind {
        self.digest
    }

    /// Its buffers.
    pub fn buffers(&self) -> &[Entry] {
        &self.buffers
    }

    /// Offset in its region of what is so far from the beginning of the version's slot there.
    pub(crate) fn place(&self, region: u8, offset: u64) -> u64 {
        self.slots.of(region.into()).map_or(0, |slots| slots.offset_of(self.slot())) + offset
    }

    /// Octets of all buffers.
    pub(crate) fn buffer_octets(&self) -> u64 {
        // Each is inside its slot, but slots of several regions together may be longer than 64 bits say.
        self.buffers.iter().fold(0, |octets, entry| octets.saturating_add(entry.length_octets))
    }

    /// The slot of the version.
    pub(crate) fn slot(&self) -> u16 {
        self.slots().slot_of(self.sequence)
    }

    /// The octets of the begin message.
    pub fn emit(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.message_octets());
        octets.extend_from_slice(&BEGIN);
        octets.extend_from_slice(&[self.form(), self.digest.code()]);
        octets.extend_from_slice(&self.slots().count.to_be_bytes());
        octets.extend_from_slice(&self.version.to_be_bytes());
        octets.extend_from_slice(&self.sequence.to_be_bytes());
        octets.extend_from_slice(&self.slots().octets.to_be_bytes());
        let has_regions = self.form() == FORM_OF_REGIONS;
        if has_regions {
            octets.extend_from_slice(&(self.slots.count() as u16).to_be_bytes());
            self.slots.more_octets().iter().for_each(|more| octets.extend_from_slice(&more.to_be_bytes()));
        }
        octets.extend_from_slice(&(self.buffers.len() as u32).to_be_bytes());
        for entry in &self.buffers {
            if has_regions {
                octets.push(entry.region);
            }
            octets.extend_from_slice(&entry.offset.to_be_bytes());
            octets.extend_from_slice(&entry.length_octets.to_be_bytes());
            octets.extend_from_slice(&(entry.name.len() as u16).to_be_bytes());
            octets.extend_from_slice(entry.name.as_bytes());
        }
        octets
    }
}

/// The end message: the digests of a version's buffers, in the order of the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The application's number of the version.
    pub version: u64,
    /// The digest of its buffers.
    pub digest: DigestKind,
    /// One for each buffer.
    pub digests: Vec<Digest>,
}

impl End {
    /// Length of the message of a version with so many buffers.
    pub(crate) fn octets(digest: DigestKind, buffers: usize) -> usize {
        END_OCTETS + buffers * digest.octets()
    }

    /// The message's octets.
    pub fn emit(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(Self::octets(self.digest, self.digests.len()));
        octets.extend_from_slice(&END);
        octets.extend_from_slice(&[FORM, self.digest.code(), 0, 0]);
        octets.extend_from_slice(&self.version.to_be_bytes());
        octets.extend_from_slice(&(self.digests.len() as u32).to_be_bytes());
        self.digests.iter().for_each(|digest| octets.extend_from_slice(digest.octets()));
        octets
    }
}

/// A message of the source, for programs that look at packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The SEND before a version.
    Begin(Manifest),
    /// The SEND behind it.
    End(End),
}

impl Message {
    /// Parses a message. The time and the memory that it takes are bounded by the octets.
    ///
    /// # Errors
    ///
    /// If the octets do not follow the form, or a value is beyond its limit.
    pub fn parse(octets: &[u8]) -> Result<Self, ManifestError> {
        if octets.len() > MAX_MANIFEST_OCTETS {
            return Err(ManifestError::TooLong(octets.len()));
        }
        let mut fields = Fields { octets, taken: 0 };
        let magic: [u8; 4] = fields.array()?;
        let [form, digest] = fields.array()?;
        if magic != BEGIN && magic != END {
            return Err(ManifestError::Magic);
        }
        let has_regions = form == FORM_OF_REGIONS && magic == BEGIN;
        if form != FORM && !has_regions {
            return Err(ManifestError::Form(form));
        }
        let digest = DigestKind::from_code(digest).ok_or(ManifestError::Digest(digest))?;
        let slots = u16::from_be_bytes(fields.array()?);
        let version = u64::from_be_bytes(fields.array()?);
        let message = if magic == BEGIN {
            Message::Begin(parse_begin(&mut fields, digest, slots, version, has_regions)?)
        } else {
            Message::End(parse_end(&mut fields, digest, version)?)
        };
        match fields.taken {
            taken if taken == octets.len() => Ok(message),
            needed => Err(ManifestError::Length { found: octets.len(), needed }),
        }
    }
}

fn parse_begin(
    fields: &mut Fields<'_>,
    digest: DigestKind,
    slots: u16,
    version: u64,
    has_regions: bool,
) -> Result<Manifest, ManifestError> {
    let sequence = u64::from_be_bytes(fields.array()?);
    let slot_octets = u64::from_be_bytes(fields.array()?);
    let more_octets = if has_regions { parse_regions(fields)? } else { Vec::new() };
    let count = fields.count(ENTRY_OCTETS + if has_regions { REGION_OCTETS } else { 0 })?;
    let mut buffers = Vec::with_capacity(count);
    for index in 0..count {
        let [region] = if has_regions { fields.array()? } else { [0] };
        let offset = u64::from_be_bytes(fields.array()?);
        let length_octets = u64::from_be_bytes(fields.array()?);
        let name_octets = usize::from(u16::from_be_bytes(fields.array()?));
        let name = std::str::from_utf8(fields.take(name_octets)?).map_err(|_| ManifestError::Name(index))?;
        buffers.push(Entry { name: name.to_owned(), region, offset, length_octets });
    }
    let slots = SlotRegions::new(Slots { count: slots, octets: slot_octets }, more_octets);
    Manifest::new(version, sequence, slots, digest, buffers)
}

/// Octets of a slot in each region but the first.
fn parse_regions(fields: &mut Fields<'_>) -> Result<Vec<u64>, ManifestError> {
    let count = usize::from(u16::from_be_bytes(fields.array()?));
    if !(2..=MAX_REGIONS).contains(&count) {
        return Err(ManifestError::RegionCount(count));
    }
    (1..count).map(|_| Ok(u64::from_be_bytes(fields.array()?))).collect()
}

fn parse_end(fields: &mut Fields<'_>, digest: DigestKind, version: u64) -> Result<End, ManifestError> {
    let count = fields.count(digest.octets())?;
    let mut digests = Vec::with_capacity(count);
    for _ in 0..count {
        digests.extend(Digest::from_octets(digest, fields.take(digest.octets())?));
    }
    Ok(End { version, digest, digests })
}

struct Fields<'a> {
    octets: &'a [u8],
    taken: usize,
}

impl<'a> Fields<'a> {
    fn take(&mut self, octets: usize) -> Result<&'a [u8], ManifestError> {
        let needed = self.taken + octets;
        let taken = self.octets.get(self.taken..needed);
        let taken = taken.ok_or(ManifestError::Length { found: self.octets.len(), needed })?;
        self.taken = needed;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ManifestError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// The number of elements that follow, each of at least so many octets: not more than the message has.
    fn count(&mut self, least_octets: usize) -> Result<usize, ManifestError> {
        let count = u32::from_be_bytes(self.array()?) as usize;
        if count > MAX_BUFFERS {
            return Err(ManifestError::TooManyBuffers(count));
        }
        let needed = self.taken + count * least_octets;
        if needed > self.octets.len() {
            return Err(ManifestError::Length { found: self.octets.len(), needed });
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
