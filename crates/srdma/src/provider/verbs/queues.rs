//! The queues of a source and a receiver on a device.

use super::event_loop::DeviceQueue;
use crate::error::{Over, PairError};
use crate::manifest::MAX_MANIFEST_OCTETS;
use crate::memory::{HostMemory, Octets, SharedRange, SlotMemory};
use crate::provider::{Received, ReceiverQueue, SourceQueue, open_all, place_of};
use crate::statistics::PacketStatistics;
use srdma_api::MemoryRegion as RecordRegion;
use srdma_rc::{LocalRange, MemoryKey, Operation, WorkRequest};
use srdma_verbs::{
    Buffer, Completed, Completion, CompletionQueue, MemoryRegion, QueuePair, RemoteMemory, ScatterGatherElement,
    SendRequest, VerbsError,
};
use srdma_wire::PathMtu;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Completions that were polled and not reported yet, and the failure of the device.
struct Completions {
    queue: CompletionQueue,
    polled: VecDeque<Completion>,
    batch: Vec<Completion>,
    failure: Option<Over>,
}

impl Completions {
    fn new(queue: CompletionQueue) -> Self {
        Completions { queue, polled: VecDeque::new(), batch: Vec::new(), failure: None }
    }

    fn next(&mut self) -> Option<Completion> {
        if self.polled.is_empty() {
            match self.queue.poll(&mut self.batch) {
                Ok(_) => self.polled.extend(self.batch.drain(..)),
                Err(error) => self.fail(&error),
            }
        }
        self.polled.pop_front()
    }

    /// Whether a request was posted. One that found the queue full is posted later.
    fn posted(&mut self, result: Result<(), VerbsError>) -> bool {
        match result {
            Ok(()) => true,
            Err(VerbsError::QueueFull { .. }) => false,
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    fn fail(&mut self, error: &VerbsError) {
        self.failure.get_or_insert(Over::Device(error.to_string()));
    }
}

/// The send queue of a source, and the memory that its requests read.
pub(super) struct SourceState {
    /// Destroyed before its memory is deregistered.
    pair: Option<QueuePair>,
    completions: Completions,
    memory: BTreeMap<u32, HostMemory>,
    next_key: u32,
    path_mtu: PathMtu,
    /// Packets of each request that is posted.
    posted_packets: VecDeque<u32>,
    acknowledged_packets: u64,
}

impl SourceState {
    pub(super) fn new(pair: QueuePair, completions: CompletionQueue, path_mtu: PathMtu) -> Self {
        SourceState {
            pair: Some(pair),
            completions: Completions::new(completions),
            memory: BTreeMap::new(),
            next_key: 0,
            path_mtu,
            posted_packets: VecDeque::new(),
            acknowledged_packets: 0,
        }
    }

    fn element(&self, local: &LocalRange) -> Option<ScatterGatherElement> {
        let start = usize::try_from(local.offset).ok()?;
        let range = start..start.checked_add(local.length_octets as usize)?;
        match self.memory.get(&local.key.0)? {
            HostMemory::Registered(region) => region.element(range).ok(),
            HostMemory::Source(Octets::Registered(region)) => region.element(range).ok(),
            HostMemory::Source(Octets::Owned(..) | Octets::Raw(..) | Octets::Part(..)) => None,
            HostMemory::Messages(_) | HostMemory::Slots(_) => None,
        }
    }
}

impl DeviceQueue for SourceState {
    fn take_failure(&mut self) -> Option<Over> {
        self.completions.failure.take()
    }
}

impl SourceQueue for SourceState {
    fn register(&mut self, memory: HostMemory) -> MemoryKey {
        let key = self.next_key;
        self.next_key = self.next_key.wrapping_add(1);
        self.memory.insert(key, memory);
        MemoryKey(key)
    }

    fn deregister(&mut self, key: MemoryKey) {
        let memory = self.memory.remove(&key.0);
        debug_assert!(memory.is_some(), "memory is deregistered once");
    }

    fn memory(&self, key: MemoryKey) -> Option<&HostMemory> {
        self.memory.get(&key.0)
    }

    fn memory_mut(&mut self, key: MemoryKey) -> Option<&mut HostMemory> {
        self.memory.get_mut(&key.0)
    }

    fn post_send(&mut self, request: WorkRequest) -> bool {
        let operation = match request.operation {
            Operation::Send { immediate: None } => srdma_verbs::Operation::Send,
            Operation::Write { remote, immediate: None } => {
                let (virtual_address, rkey) = (remote.virtual_address, remote.rkey.0);
                srdma_verbs::Operation::Write(RemoteMemory { virtual_address, rkey })
            }
            // Sources of versions have no others.
            Operation::Send { immediate: Some(_) }
            | Operation::Write { immediate: Some(_), .. }
            | Operation::Read { .. } => return false,
        };
        let (Some(pair), Some(element)) = (&self.pair, self.element(&request.local)) else { return false };
        let send = SendRequest { id: request.wr_id, operation, is_signalled: true };
        let is_posted = self.completions.posted(pair.post_send(&send, &[element]));
        if is_posted {
            self.posted_packets.push_back(self.path_mtu.packets(request.local.length_octets));
        }
        is_posted
    }

    fn poll_completion(&mut self) -> Option<Result<(), PairError>> {
        let completion = self.completions.next()?;
        let packets = self.posted_packets.pop_front().unwrap_or(0);
        Some(match completion.result {
            Ok(
                Completed::Send
                | Completed::Write
                | Completed::Receive { .. }
                | Completed::ReceiveWrite { .. }
                | Completed::Other(_),
            ) => {
                self.acknowledged_packets += u64::from(packets);
                Ok(())
            }
            Err(error) => Err(PairError::Device(error)),
        })
    }

    fn acknowledged_packets(&self) -> u64 {
        self.acknowledged_packets
    }

    fn packets(&self) -> Option<PacketStatistics> {
        None
    }

    fn destroy(&mut self) {
        self.pair = None;
    }
}

/// The receive queue of a receiver, with its memory.
pub(super) struct ReceiverState {
    /// Dropped before its memory.
    pair: QueuePair,
    completions: Completions,
    messages: MemoryRegion<Buffer>,
    regions: Vec<LandingSlots>,
}

/// A region of a receiver.
pub(super) struct LandingSlots {
    /// Where the device writes (D183).
    pub(super) landing: MemoryRegion<Buffer>,
    /// What the application has.
    pub(super) slots: SlotMemory,
}

impl ReceiverState {
    pub(super) fn new(
        pair: QueuePair,
        completions: CompletionQueue,
        messages: MemoryRegion<Buffer>,
        regions: Vec<LandingSlots>,
    ) -> Self {
        ReceiverState { pair, completions: Completions::new(completions), messages, regions }
    }

    pub(super) fn pair(&self) -> &QueuePair {
        &self.pair
    }

    /// For the group's record.
    pub(super) fn regions(&self) -> Vec<RecordRegion> {
        let of = |LandingSlots { landing, .. }: &LandingSlots| RecordRegion {
            virtual_address: landing.virtual_address(),
            rkey: landing.rkey(),
        };
        self.regions.iter().map(of).collect()
    }
}

impl DeviceQueue for ReceiverState {
    fn take_failure(&mut self) -> Option<Over> {
        self.completions.failure.take()
    }
}

impl ReceiverQueue for ReceiverState {
    fn poll_completion(&mut self) -> Option<Result<Received, PairError>> {
        let completion = self.completions.next()?;
        let number = completion.id;
        Some(match completion.result {
            Ok(Completed::Receive { octets, .. }) => Ok(Received { number, is_send: true, length_octets: octets }),
            Ok(Completed::ReceiveWrite { octets, .. }) => {
                Ok(Received { number, is_send: false, length_octets: octets })
            }
            Ok(Completed::Send | Completed::Write | Completed::Other(_)) => {
                Ok(Received { number, is_send: false, length_octets: 0 })
            }
            Err(error) => Err(PairError::Device(error)),
        })
    }

    fn post_receive(&mut self, number: u64) -> bool {
        let start = place_of(number) as usize;
        let element = self.messages.element(start..start + MAX_MANIFEST_OCTETS);
        let posted = element.and_then(|element| self.pair.post_receive(number, &[element]));
        self.completions.posted(posted)
    }

    fn message(&self, received: Received) -> Vec<u8> {
        let mut octets = vec![0; (received.length_octets as usize).min(MAX_MANIFEST_OCTETS)];
        self.messages.memory().read(place_of(received.number) as usize, &mut octets);
        octets
    }

    /// What the device writes does not get into the slots, so that nothing is to be closed for it.
    fn open(&mut self, ranges: &mut dyn Iterator<Item = (usize, Range<usize>)>) -> bool {
        open_all(self.regions.len(), ranges, |region, ranges| {
            self.regions.get_mut(region).is_some_and(|region| region.slots.open(ranges))
        })
    }

    /// The octets get into their slot now, and are those that the caller sees: what the device writes to the same place
    /// later has no effect.
    fn take(&mut self, region: usize, offset: u64, into: &mut [u8]) {
        let Some(LandingSlots { landing, slots }) = self.regions.get_mut(region) else { return into.fill(0) };
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(into.len()));
        match end.filter(|end| *end <= landing.octets()) {
            Some(_) => landing.memory().read(offset as usize, into),
            None => into.fill(0),
        }
        slots.deliver(offset, into);
    }

    fn deliver(&mut self, region: usize, offset: u64, octets: &[u8]) {
        if let Some(region) = self.regions.get_mut(region) {
            region.slots.deliver(offset, octets);
        }
    }

    fn share(&mut self, region: usize, range: Range<usize>) -> Option<SharedRange> {
        self.regions.get_mut(region)?.slots.share(range)
    }

    /// Writes outside of the region end the queue pair, and those inside have no effect on other versions' slots.
    fn strays(&self) -> u64 {
        0
    }

    fn packets(&self) -> Option<PacketStatistics> {
        None
    }
}
