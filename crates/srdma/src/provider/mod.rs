//! Providers of queue pairs: what a source and a receiver need of one, whatever it runs on.
//!
//! ```text
//!   Publisher, Subscriber ──► SourceQueue, ReceiverQueue      work requests, receives, memory; without I/O
//!   Source, Receiver      ──► SourcePair, ReceiverPair        connect, and run a program on a thread
//!                                   │
//!                                   ├── udp: an endpoint of srdma-rc on a socket
//!                                   └── verbs: a queue pair of an RDMA device
//! ```

pub(crate) mod udp;
mod verbs;

use crate::buffer::Buffer;
use crate::device::GroupAddress;
use crate::engine::Wake;
use crate::error::{Error, Over, PairError, Result};
use crate::manifest::{MAX_MANIFEST_OCTETS, SlotRegions};
use crate::memory::{HostMemory, Octets, SharedRange, SlotMemory};
use crate::statistics::PacketStatistics;
use srdma_api::{MemoryRegion, SourceTransport};
use srdma_group::Policy;
use srdma_rc::{MemoryKey, WorkRequest};
use srdma_verbs::{Access, ProtectionDomain, VerbsError};
use srdma_wire::{Instant, Psn, Qpn};
use std::net::Ipv6Addr;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Versions whose begin and end messages have receives before they come.
pub(crate) const AHEAD: u16 = 2;
/// Receives of the longest messages: of a version that is received, and of those ahead.
pub(crate) const RECEIVES: usize = 1 + 2 * AHEAD as usize;

/// The queue of a source. Memory that is registered stays until it is deregistered, or the queue is dropped.
pub(crate) trait SourceQueue {
    /// Takes memory that is to be sent.
    fn register(&mut self, memory: HostMemory) -> MemoryKey;

    /// Drops memory. All work that uses it is complete, or the queue pair is destroyed.
    fn deregister(&mut self, key: MemoryKey);

    /// Memory that is registered.
    fn memory(&self, key: MemoryKey) -> Option<&HostMemory>;

    /// The same, to be written.
    fn memory_mut(&mut self, key: MemoryKey) -> Option<&mut HostMemory>;

    /// Posts a SEND or a WRITE. False if the queue has no room now, or the queue pair has failed: then what was posted
    /// completes with an error.
    fn post_send(&mut self, request: WorkRequest) -> bool;

    /// The result of the oldest request that was posted and not reported yet, when it is known.
    fn poll_completion(&mut self) -> Option<std::result::Result<(), PairError>>;

    /// Packets that the peer has acknowledged.
    fn acknowledged_packets(&self) -> u64;

    /// Counters of the queue pair; `None` if the device has none for it.
    fn packets(&self) -> Option<PacketStatistics>;

    /// Ends the queue pair: nothing reads registered memory any more.
    fn destroy(&mut self);
}

/// A message that was received, or a receive that was used up otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// The number of the receive.
    pub(crate) number: u64,
    /// False for another operation than a SEND.
    pub(crate) is_send: bool,
    pub(crate) length_octets: u32,
}

/// The queue of a receiver, with its regions, counted from 0, and memory for messages.
pub(crate) trait ReceiverQueue {
    /// The oldest completion not yet fetched.
    fn poll_completion(&mut self) -> Option<std::result::Result<Received, PairError>>;

    /// Posts a receive for a message of any length. At most [`RECEIVES`] are posted at a time, with numbers one after
    /// the other. False if the queue pair has failed.
    fn post_receive(&mut self, number: u64) -> bool;

    /// The octets of a message that was received.
    fn message(&self, received: Received) -> Vec<u8>;

    /// Lets the source write to these ranges of regions, and to no others. False, and it can write to none, if the
    /// application still has a part of one.
    fn open(&mut self, ranges: &mut dyn Iterator<Item = (usize, Range<usize>)>) -> bool;

    /// Two slots change places in each region (D194). The source writes to neither, and nothing is verified there.
    fn exchange(&mut self, slots: &SlotRegions, pair: [u16; 2]);

    /// Reads octets of a version that is complete, whose range is closed, and that the application does not have yet.
    /// It gets those that have been read.
    fn take(&mut self, region: usize, offset: u64, into: &mut [u8]);

    /// Writes octets of a version that comes by unicast, to a range that is closed and that the application does not
    /// have.
    fn deliver(&mut self, region: usize, offset: u64, octets: &[u8]);

    /// Gives a range to the application: it is closed, and stays as it is until the result is dropped.
    fn share(&mut self, region: usize, range: Range<usize>) -> Option<SharedRange>;

    /// Writes of the source outside of open ranges so far. They have had no effect.
    fn strays(&self) -> u64;

    /// Counters of the queue pair; `None` if the device has none for it.
    fn packets(&self) -> Option<PacketStatistics>;
}

/// What runs on the queue of a source.
pub(crate) trait SourceProgram {
    /// Handles what has happened, and posts what can be sent now. `Break` ends the program.
    fn work(&mut self, now: Instant, queue: &mut dyn SourceQueue) -> ControlFlow<()>;

    /// Time of the next call of [`SourceProgram::work`], if nothing happens before.
    fn next_deadline(&self) -> Option<Instant>;

    /// The last call: the program has ended, or the provider has failed.
    fn finish(&mut self, failure: Option<Over>, queue: &mut dyn SourceQueue);
}

/// What runs on the queue of a receiver.
pub(crate) trait ReceiverProgram {
    /// Handles what has happened, and posts receives. `Break` ends the program.
    fn work(&mut self, now: Instant, queue: &mut dyn ReceiverQueue) -> ControlFlow<()>;

    /// Time of the next call of [`ReceiverProgram::work`], if nothing happens before.
    fn next_deadline(&self) -> Option<Instant>;
}

/// How much a source may have in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendLimits {
    /// A message is posted while fewer packets than twice this are outstanding.
    pub(crate) window_packets: u32,
    /// Length of a WRITE, at most.
    pub(crate) message_octets: u32,
}

/// The queue pair of a source.
pub(crate) trait SourcePair: Send {
    /// Its number, from the beginning on.
    fn qpn(&self) -> Qpn;

    /// What makes memory ready to be sent by it.
    fn registrar(&self) -> Registrar;

    /// When it gives up; `None` if never.
    fn transport(&self) -> Option<SourceTransport>;

    /// How much it may have in its queue, with messages of at most so many octets.
    fn limits(&self, group: &GroupAddress, message_octets: u32) -> SendLimits;

    /// Connects it to a group.
    fn connect(&mut self, group: &GroupAddress) -> Result<()>;

    /// Runs a program to its end. The queue pair is connected.
    fn run(self: Box<Self>, program: &mut dyn SourceProgram);
}

/// The queue pair of a receiver.
pub(crate) trait ReceiverPair: Send {
    /// Its number, from the beginning on.
    fn qpn(&self) -> Qpn;

    /// Its regions, for the group's record.
    fn regions(&self) -> Vec<MemoryRegion>;

    /// Connects it before it is known whether the group has the receiver, for packets from this PSN on.
    fn prepare(&mut self, psn: Psn) -> Result<()>;

    /// Connects it: the group has the receiver, which gets packets from this PSN on.
    fn connect(&mut self, psn: Psn) -> std::result::Result<(), Over>;

    /// Runs a program to its end; returns the failure of the provider, if there is one. After that nothing writes to
    /// the regions.
    fn run(&mut self, program: &mut dyn ReceiverProgram) -> Option<Over>;

    /// Ends the queue pair and returns the slots of each region, for the next one of the same receiver. `None` after a
    /// defect.
    fn into_slots(self: Box<Self>) -> Option<Vec<SlotMemory>>;
}

/// Makes memory ready to be sent.
#[derive(Clone, Debug)]
pub(crate) enum Registrar {
    /// By an endpoint, which reads it itself.
    Host,
    /// By a device, which gets its own access.
    Device(ProtectionDomain),
}

impl Registrar {
    /// Memory for a message of the library, with these octets at first.
    pub(crate) fn message(&self, octets: Vec<u8>) -> std::result::Result<HostMemory, VerbsError> {
        let Registrar::Device(domain) = self else { return Ok(HostMemory::Messages(octets)) };
        let mut memory = srdma_verbs::Buffer::new(octets.len());
        memory.write(0, &octets);
        Ok(HostMemory::Registered(domain.register(memory, Access::LocalRead)?))
    }

    /// A buffer, in its place.
    pub(crate) fn buffer(&self, buffer: Buffer) -> Result<Buffer> {
        if buffer.octets.is_device_memory() {
            return Err(Error::DeviceMemory(format!("buffer {:?}", buffer.name)));
        }
        let Registrar::Device(domain) = self else { return Ok(buffer) };
        let Buffer { name, octets, region: of_group } = buffer;
        // Without octets there is nothing to register, and nothing is sent. One that was registered is not again.
        if octets.len() == 0 || matches!(octets, Octets::Registered(_)) {
            return Ok(Buffer { name, octets, region: of_group });
        }
        let Some(fixed) = octets.fixed() else { return Err(Error::BufferMoves(name)) };
        let region = domain.register(fixed, Access::LocalRead).map_err(VerbsError::from)?;
        Ok(Buffer { name, octets: Octets::Registered(Arc::new(region)), region: of_group })
    }
}

/// A provider, chosen at run time.
#[derive(Clone, Debug)]
pub(crate) enum Provider {
    /// RC endpoints on ordinary sockets.
    Udp,
    /// RDMA devices.
    Verbs(verbs::Choice),
}

impl Provider {
    /// The provider of this name: `udp`, `verbs`, or `verbs:` and a device's name.
    pub(crate) fn open(name: &str, address: Option<Ipv6Addr>) -> Result<Self> {
        let choice = match name.split_once(':') {
            None if name == "udp" => return Ok(Provider::Udp),
            None if name == "verbs" => verbs::Choice { name: None },
            Some(("verbs", device)) if !device.is_empty() => verbs::Choice { name: Some(device.to_owned()) },
            None | Some(_) => return Err(Error::UnknownProvider(name.to_owned())),
        };
        choice.check(address)?;
        Ok(Provider::Verbs(choice))
    }

    /// The address of this host, when there is a single one that it can be.
    pub(crate) fn only_address(&self) -> Result<Option<Ipv6Addr>> {
        match self {
            Provider::Udp => Ok(srdma_host::only_address()),
            Provider::Verbs(choice) => choice.only_address(),
        }
    }

    /// A queue pair for the source of a group with this policy.
    pub(crate) fn source_pair(
        &self,
        address: Ipv6Addr,
        policy: &Policy,
        wake: Arc<Wake>,
    ) -> Result<Box<dyn SourcePair>> {
        match self {
            Provider::Udp => Ok(Box::new(udp::Source::new(address, wake))),
            Provider::Verbs(choice) => Ok(Box::new(verbs::Source::new(choice, address, policy, wake)?)),
        }
    }

    /// A queue pair for a receiver of a group, whose source writes to these slots, of a region each.
    pub(crate) fn receiver_pair(
        &self,
        address: Ipv6Addr,
        group: &GroupAddress,
        slots: Vec<SlotMemory>,
        wake: Arc<Wake>,
    ) -> Result<Box<dyn ReceiverPair>> {
        match self {
            Provider::Udp => Ok(Box::new(udp::Receiver::new(address, group, slots, &wake)?)),
            Provider::Verbs(choice) => Ok(Box::new(verbs::Receiver::new(choice, address, group, slots, wake)?)),
        }
    }
}

/// Opens ranges of so many regions by `open`, which gets each region with its ranges: all of them, or none.
fn open_all(
    regions: usize,
    ranges: &mut dyn Iterator<Item = (usize, Range<usize>)>,
    mut open: impl FnMut(usize, Vec<Range<usize>>) -> bool,
) -> bool {
    let ranges: Vec<(usize, Range<usize>)> = ranges.collect();
    let of = |region| ranges.iter().filter(|(of, _)| *of == region).map(|(_, range)| range.clone()).collect();
    let is_open = (0..regions).all(|region| open(region, of(region)));
    if !is_open {
        for region in 0..regions {
            open(region, Vec::new());
        }
    }
    is_open
}

/// Offset of a receive in memory for [`RECEIVES`] messages: receives are used in the order in which they are posted.
pub(crate) fn place_of(number: u64) -> u64 {
    number % RECEIVES as u64 * MAX_MANIFEST_OCTETS as u64
}
