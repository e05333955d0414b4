//! The driver's decisions as a value, without I/O: buffers, claims, and what is in progress (D210).
//!
//! ```text
//!   stage ──► being staged ──► staged ──► in use (propagated or received) ──► staged …
//!                 │ failed        │ last claim unstaged
//!                 ▼               ▼
//!                gone            gone
//! ```

mod name;
mod propagation;
mod refusal;

pub use name::{BufferId, ClaimId, GRPC, MAX_BUFFER_OCTETS, Target};
pub use propagation::{Assignment, MAX_ASSIGNMENTS, MAX_TARGETS, Mode, Part, Propagation};
pub use refusal::{Kind, Refusal};

use std::collections::{BTreeMap, BTreeSet};

/// Buffers, claims and announced lengths at most.
const MAX_BUFFERS: usize = 1024;
const MAX_CLAIMS: usize = 65_536;

/// Limits of a driver, and the names of its node.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Octets of all buffers together.
    pub memory_octets: u64,
    /// Addresses and host names by which requests name this node, as [`Target::host`] has them.
    pub own_hosts: BTreeSet<String>,
}

/// A request to stage a buffer for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The claim.
    pub claim: String,
    /// The buffer, or that of which it is a shard.
    pub buffer: String,
    /// Its octets; 0: as announced, or those of the file.
    pub octets: u64,
    /// The shard; negative: all of the buffer.
    pub shard_index: i32,
    /// Number of shards; 0: the buffer has none.
    pub total_shards: i32,
}

/// What a request to stage has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Staged {
    /// The buffer is there; nothing is to be done.
    Existing,
    /// Memory is to be made for it, then [`Driver::staged`] or [`Driver::not_staged`] called.
    New {
        /// The buffer.
        buffer: BufferId,
        /// Its octets.
        octets: u64,
    },
}

/// What a request to unstage has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unstaged {
    /// The claim was not there, or others have the buffer too.
    Kept,
    /// The buffer is to be removed.
    Last(BufferId),
}

/// Where a part of a buffer goes at a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer of this node.
    pub buffer: BufferId,
    /// First octet in it.
    pub offset: u64,
}

/// What is done with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    BeingStaged,
    Staged,
    /// It is propagated, or parts of it are received.
    Busy,
}

#[derive(Debug)]
struct Entry {
    octets: u64,
    claims: usize,
    used: Use,
}

/// The state of a driver.
#[derive(Debug)]
pub struct Driver {
    limits: Limits,
    buffers: BTreeMap<BufferId, Entry>,
    claims: BTreeMap<ClaimId, BufferId>,
    announced: BTreeMap<BufferId, u64>,
    octets: u64,
}

impl Driver {
    /// A driver without buffers.
    pub fn new(limits: Limits) -> Self {
        Driver { limits, buffers: BTreeMap::new(), claims: BTreeMap::new(), announced: BTreeMap::new(), octets: 0 }
    }

    /// Whether requests name this node so.
    pub fn is_own(&self, host: &str) -> bool {
        self.limits.own_hosts.contains(host)
    }

    /// Announces the length of a buffer, for requests to stage it that do not state one.
    ///
    /// # Errors
    ///
    /// If it is announced or staged with another length.
    pub fn announce(&mut self, buffer: &str, octets: u64) -> Result<(), Refusal> {
        let buffer = BufferId::parse(buffer)?;
        if octets == 0 {
            return Err(Refusal::NoLength(buffer));
        }
        let has = self.buffers.get(&buffer).map(|entry| entry.octets).or(self.announced.get(&buffer).copied());
        match has {
            Some(has) if has != octets => return Err(Refusal::OtherLength { buffer, has, wanted: octets }),
            Some(_) | None => {}
        }
        if self.announced.len() >= MAX_BUFFERS && !self.announced.contains_key(&buffer) {
            return Err(Refusal::TooMany("1024 announced buffers"));
        }
        self.announced.insert(buffer, octets);
        Ok(())
    }

    /// Stages a buffer. The same request again has no effect: a claim counts once. `file_octets`: those of the file
    /// with its content.
    ///
    /// # Errors
    ///
    /// If names, shard or length make no sense, the claim has another buffer, the buffer another length, or there is
    /// no memory.
    pub fn stage(&mut self, request: &Stage, file_octets: Option<u64>) -> Result<Staged, Refusal> {
        let claim = ClaimId::parse(&request.claim)?;
        let buffer = staged_buffer(request)?;
        if let Some(has) = self.claims.get(&claim).filter(|has| **has != buffer) {
            return Err(Refusal::OtherBuffer { claim, has: has.clone(), wanted: buffer });
        }
        let stated = Some(request.octets).filter(|octets| *octets > 0);
        if let Some(entry) = self.buffers.get_mut(&buffer) {
            if entry.used == Use::BeingStaged {
                return Err(Refusal::BeingStaged(buffer));
            }
            if let Some(wanted) = stated.filter(|octets| *octets != entry.octets) {
                return Err(Refusal::OtherLength { buffer, has: entry.octets, wanted });
            }
            if !self.claims.contains_key(&claim) {
                check_count(self.claims.len(), MAX_CLAIMS, "65536 claims")?;
                entry.claims += 1;
                self.claims.insert(claim, buffer);
            }
            return Ok(Staged::Existing);
        }
        let announced = self.announced.get(&buffer).copied();
        let octets = stated.or(announced).or(file_octets).filter(|octets| *octets > 0);
        let octets = octets.ok_or_else(|| Refusal::NoLength(buffer.clone()))?;
        if let Some(has) = announced.filter(|has| *has != octets) {
            return Err(Refusal::OtherLength { buffer, has, wanted: octets });
        }
        if let Some(has) = file_octets.filter(|has| *has > octets) {
            return Err(Refusal::OtherLength { buffer, has, wanted: octets });
        }
        check_count(self.buffers.len(), MAX_BUFFERS, "1024 buffers")?;
        check_count(self.claims.len(), MAX_CLAIMS, "65536 claims")?;
        let left = self.limits.memory_octets.saturating_sub(self.octets);
        if octets > left {
            return Err(Refusal::NoMemory { buffer, wanted: octets, left });
        }
        self.octets += octets;
        self.buffers.insert(buffer.clone(), Entry { octets, claims: 1, used: Use::BeingStaged });
        self.claims.insert(claim, buffer.clone());
        Ok(Staged::New { buffer, octets })
    }

    /// The memory of a buffer is there.
    pub fn staged(&mut self, buffer: &BufferId) {
        if let Some(entry) = self.buffers.get_mut(buffer).filter(|entry| entry.used == Use::BeingStaged) {
            entry.used = Use::Staged;
        }
    }

    /// There is no memory for the buffer, or nothing to fill it with: its claim is gone.
    pub fn not_staged(&mut self, buffer: &BufferId) {
        self.remove(buffer);
    }

    /// Unstages a claim. One that is not there has been unstaged before.
    ///
    /// # Errors
    ///
    /// If the name makes no sense, or the buffer is in use.
    pub fn unstage(&mut self, claim: &str) -> Result<Unstaged, Refusal> {
        let claim = ClaimId::parse(claim)?;
        let Some(buffer) = self.claims.get(&claim).cloned() else { return Ok(Unstaged::Kept) };
        if let Some(entry) = self.buffers.get_mut(&buffer) {
            match entry.used {
                Use::BeingStaged => return Err(Refusal::BeingStaged(buffer)),
                Use::Busy if entry.claims == 1 => return Err(Refusal::Busy(buffer)),
                Use::Busy | Use::Staged => {}
            }
            if entry.claims > 1 {
                entry.claims -= 1;
                self.claims.remove(&claim);
                return Ok(Unstaged::Kept);
            }
        }
        self.remove(&buffer);
        Ok(Unstaged::Last(buffer))
    }

    fn remove(&mut self, buffer: &BufferId) {
        if let Some(entry) = self.buffers.remove(buffer) {
            self.octets -= entry.octets;
        }
        self.claims.retain(|_, of| of != buffer);
    }

    /// The buffer of this name.
    ///
    /// # Errors
    ///
    /// If there is none, or it has not this length; 0: any.
    pub fn buffer(&self, buffer: &str, octets: u64) -> Result<BufferId, Refusal> {
        let buffer = BufferId::parse(buffer)?;
        let entry = self.entry(&buffer)?;
        if octets != 0 && octets != entry.octets {
            return Err(Refusal::OtherLength { buffer, has: entry.octets, wanted: octets });
        }
        Ok(buffer)
    }

    /// The buffer of a claim.
    ///
    /// # Errors
    ///
    /// If there is no such claim.
    pub fn buffer_of(&self, claim: &str) -> Result<BufferId, Refusal> {
        let claim = ClaimId::parse(claim)?;
        self.claims.get(&claim).cloned().ok_or(Refusal::UnknownClaim(claim))
    }

    fn entry(&self, buffer: &BufferId) -> Result<&Entry, Refusal> {
        match self.buffers.get(buffer) {
            Some(entry) if entry.used == Use::BeingStaged => Err(Refusal::BeingStaged(buffer.clone())),
            Some(entry) => Ok(entry),
            None => Err(Refusal::UnknownBuffer(buffer.clone())),
        }
    }

    /// Begins to propagate a buffer, which is in use until [`Driver::release`]: parts in batches, to be sent one batch
    /// after the other.
    ///
    /// # Errors
    ///
    /// If the buffer is not there or is in use, or the request makes no sense.
    pub fn propagate(&mut self, request: &Propagation) -> Result<(BufferId, Vec<Vec<Part>>), Refusal> {
        let buffer = self.buffer(&request.buffer, 0)?;
        let octets = self.entry(&buffer)?.octets;
        let parts = propagation::parts(request, &buffer, octets, |host| self.is_own(host))?;
        self.occupy(&buffer)?;
        Ok((buffer, propagation::batches(parts, octets)))
    }

    /// Begins to receive a part of a buffer, which is in use until [`Driver::release`]. A shard goes to its octets of
    /// the whole buffer, or to the buffer that is staged for it alone.
    ///
    /// # Errors
    ///
    /// If the buffer is not there, has another length, or is in use.
    pub fn receive(
        &mut self,
        buffer: &BufferId,
        shard: Option<u32>,
        offset: u64,
        length: u64,
        is_whole: bool,
    ) -> Result<Place, Refusal> {
        let place = self.place(buffer, shard, offset, length, is_whole)?;
        self.occupy(&place.buffer)?;
        Ok(place)
    }

    fn place(
        &self,
        buffer: &BufferId,
        shard: Option<u32>,
        offset: u64,
        length: u64,
        is_whole: bool,
    ) -> Result<Place, Refusal> {
        let whole = match self.entry(buffer) {
            Ok(entry) if is_whole && entry.octets != length => {
                return Err(Refusal::OtherLength { buffer: buffer.clone(), has: entry.octets, wanted: length });
            }
            Ok(entry) if offset.checked_add(length).is_some_and(|end| end <= entry.octets) => {
                return Ok(Place { buffer: buffer.clone(), offset });
            }
            Ok(entry) => Refusal::Range { buffer: buffer.clone(), offset, length, has: entry.octets },
            Err(refusal) => refusal,
        };
        let Some(shard) = shard else { return Err(whole) };
        let shard = buffer.shard(shard)?;
        match self.entry(&shard) {
            Ok(entry) if entry.octets == length => Ok(Place { buffer: shard, offset: 0 }),
            Ok(entry) => Err(Refusal::OtherLength { buffer: shard, has: entry.octets, wanted: length }),
            Err(Refusal::UnknownBuffer(_)) => Err(whole),
            Err(refusal) => Err(refusal),
        }
    }

    fn occupy(&mut self, buffer: &BufferId) -> Result<(), Refusal> {
        match self.buffers.get_mut(buffer) {
            Some(entry) if entry.used == Use::Staged => {
                entry.used = Use::Busy;
                Ok(())
            }
            Some(_) => Err(Refusal::Busy(buffer.clone())),
            None => Err(Refusal::UnknownBuffer(buffer.clone())),
        }
    }

    /// The buffer is not propagated or received any more.
    pub fn release(&mut self, buffer: &BufferId) {
        if let Some(entry) = self.buffers.get_mut(buffer).filter(|entry| entry.used == Use::Busy) {
            entry.used = Use::Staged;
        }
    }
}

/// The buffer that a request stages: a shard has one of its own.
fn staged_buffer(request: &Stage) -> Result<BufferId, Refusal> {
    let buffer = BufferId::parse(&request.buffer)?;
    let Stage { shard_index: index, total_shards: total, .. } = *request;
    match u32::try_from(index) {
        // proto3 does not tell 0 from what is absent: without shards there is none.
        Ok(0) if total == 0 => Ok(buffer),
        Err(_) => Ok(buffer),
        Ok(shard) if index < total => buffer.shard(shard),
        Ok(_) => Err(Refusal::ShardIndex { index, total }),
    }
}

fn check_count(count: usize, most: usize, what: &'static str) -> Result<(), Refusal> {
    if count < most { Ok(()) } else { Err(Refusal::TooMany(what)) }
}

#[cfg(test)]
mod tests;
