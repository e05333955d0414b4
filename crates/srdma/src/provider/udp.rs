//! Provider `udp`: RC endpoints on ordinary sockets, without privileges.

use super::{
    RECEIVES, Received, ReceiverPair, ReceiverProgram, ReceiverQueue, Registrar, SendLimits, SourcePair, SourceProgram,
    SourceQueue, open_all, place_of,
};
use crate::device::{GroupAddress, any_qpn, unpredictable};
use crate::engine::Wake;
use crate::error::{Over, PairError, Result};
use crate::manifest::MAX_MANIFEST_OCTETS;
use crate::memory::{HostMemory, SharedRange, SlotMemory};
use crate::statistics::PacketStatistics;
use srdma_api::{MemoryRegion, SourceTransport};
use srdma_host::{Clock, Congestion, Connection, UdpWire, WireError, WireOptions, run};
use srdma_io::udp::Segmentation;
use srdma_rc::{Access, CompletedOperation, Endpoint, LocalRange, Memory, MemoryKey, Receive, Status, WorkRequest};
use srdma_wire::{Instant, Psn, Qpn};
use std::net::Ipv6Addr;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Octets of responses that a source's socket may buffer.
const SOURCE_BUFFER_OCTETS: u32 = 4 << 20;
/// Octets that a receiver's socket may buffer: also what comes before the receiver knows its join point.
const RECEIVER_BUFFER_OCTETS: u32 = 32 << 20;

/// Opens the socket of a connection.
fn open_wire(connection: &Connection, wake: &Wake, max_packet_octets: usize, buffer_octets: u32) -> Result<UdpWire> {
    let options = WireOptions {
        raw: None,
        connection,
        segmentation: Segmentation::Software,
        buffer_octets,
        max_packet_octets,
        probe_address: None,
    };
    let (mut wire, _) = options.open_udp()?;
    wire.set_wake(wake.descriptor()?);
    Ok(wire)
}

/// Runs a program to its end; returns the failure of the socket, if there is one.
fn run_program(
    endpoint: &mut Endpoint<HostMemory>,
    wire: &mut UdpWire,
    connection: &Connection,
    program: &mut dyn srdma_host::Program<HostMemory>,
) -> Option<Over> {
    let error = run(&Clock::start(), endpoint, wire, program).err()?;
    Some(Over::Socket(WireError::during_transfer(error, connection).to_string()))
}

fn checked(status: Status) -> std::result::Result<(), PairError> {
    match status {
        Status::Success => Ok(()),
        status @ (Status::LocalLengthError
        | Status::RemoteInvalidRequest
        | Status::RemoteAccessError
        | Status::RemoteOperationalError
        | Status::RetryExceeded
        | Status::RnrRetryExceeded
        | Status::Flushed) => Err(PairError::Endpoint(status)),
    }
}

/// The queue pair of a source at its endpoint.
pub(crate) struct EndpointSource<'a> {
    pub(crate) endpoint: &'a mut Endpoint<HostMemory>,
    pub(crate) qpn: Qpn,
}

impl SourceQueue for EndpointSource<'_> {
    fn register(&mut self, memory: HostMemory) -> MemoryKey {
        self.endpoint.register_memory(memory, 0, Access::LOCAL, 0)
    }

    fn deregister(&mut self, key: MemoryKey) {
        let outcome = self.endpoint.deregister_memory(key);
        debug_assert!(outcome.is_ok(), "{:?}", outcome.err());
    }

    fn memory(&self, key: MemoryKey) -> Option<&HostMemory> {
        self.endpoint.memory(key)
    }

    fn memory_mut(&mut self, key: MemoryKey) -> Option<&mut HostMemory> {
        self.endpoint.memory_mut(key)
    }

    fn post_send(&mut self, request: WorkRequest) -> bool {
        self.endpoint.post_send(self.qpn, request).is_ok()
    }

    fn poll_completion(&mut self) -> Option<std::result::Result<(), PairError>> {
        self.endpoint.poll_completion().map(|completion| checked(completion.status))
    }

    fn acknowledged_packets(&self) -> u64 {
        self.endpoint.counters(self.qpn).map_or(0, |counters| counters.packets_acknowledged)
    }

    fn packets(&self) -> Option<PacketStatistics> {
        self.endpoint.counters(self.qpn).map(|counters| (*counters).into())
    }

    fn destroy(&mut self) {
        self.endpoint.remove_queue_pair(self.qpn);
    }
}

/// A source before it is connected, and the endpoint afterwards.
pub(super) struct Source {
    address: Ipv6Addr,
    qpn: Qpn,
    wake: Arc<Wake>,
    connected: Option<(Connection, Endpoint<HostMemory>, UdpWire)>,
}

impl Source {
    pub(super) fn new(address: Ipv6Addr, wake: Arc<Wake>) -> Self {
        Source { address, qpn: any_qpn(), wake, connected: None }
    }
}

impl SourcePair for Source {
    fn qpn(&self) -> Qpn {
        self.qpn
    }

    fn registrar(&self) -> Registrar {
        Registrar::Host
    }

    fn transport(&self) -> Option<SourceTransport> {
        None
    }

    fn limits(&self, group: &GroupAddress, message_octets: u32) -> SendLimits {
        // The endpoint keeps to the window. Twice as much is posted, so that it never runs empty while the next message
        // is prepared.
        SendLimits { window_packets: group.window, message_octets }
    }

    fn connect(&mut self, group: &GroupAddress) -> Result<()> {
        let connection = group.connection(self.address, self.qpn);
        let endpoint: Endpoint<HostMemory> = connection.endpoint(&Congestion::default())?;
        let wire = open_wire(&connection, &self.wake, endpoint.max_packet_octets(), SOURCE_BUFFER_OCTETS)?;
        self.connected = Some((connection, endpoint, wire));
        Ok(())
    }

    fn run(self: Box<Self>, program: &mut dyn SourceProgram) {
        let qpn = self.qpn;
        let Some((connection, mut endpoint, mut wire)) = self.connected else { return };
        let failure = run_program(&mut endpoint, &mut wire, &connection, &mut SourceAdapter { program, qpn });
        program.finish(failure, &mut EndpointSource { endpoint: &mut endpoint, qpn });
    }
}

/// A program of a source as one of the endpoint.
struct SourceAdapter<'a> {
    program: &'a mut dyn SourceProgram,
    qpn: Qpn,
}

impl srdma_host::Program<HostMemory> for SourceAdapter<'_> {
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<HostMemory>) -> ControlFlow<()> {
        self.program.work(now, &mut EndpointSource { endpoint, qpn: self.qpn })
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.program.next_deadline()
    }
}

/// Memory of a receiver at its endpoint.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverMemory {
    /// Base address and key of each region, for the group's record.
    regions: Vec<(u64, MemoryKey)>,
    messages: MemoryKey,
}

impl ReceiverMemory {
    /// Registers slots at an endpoint, which gets its queue pair later, with a base address for each region and a low
    /// octet of its key.
    pub(crate) fn register(
        endpoint: &mut Endpoint<HostMemory>,
        slots: Vec<SlotMemory>,
        mut place: impl FnMut(usize) -> (u64, u8),
    ) -> Self {
        let register = |(region, slots)| {
            let (base_address, tag) = place(region);
            let slots = HostMemory::Slots(slots);
            (base_address, endpoint.register_memory(slots, base_address, Access::REMOTE_WRITE, tag))
        };
        let regions = slots.into_iter().enumerate().map(register).collect();
        let messages = HostMemory::Messages(vec![0; RECEIVES * MAX_MANIFEST_OCTETS]);
        let messages = endpoint.register_memory(messages, 0, Access::LOCAL, 0);
        ReceiverMemory { regions, messages }
    }

    /// Base address and key of each region, for the group's record.
    pub(crate) fn regions(&self) -> &[(u64, MemoryKey)] {
        &self.regions
    }

    fn key(&self, region: usize) -> Option<MemoryKey> {
        self.regions.get(region).map(|(_, key)| *key)
    }
}

/// The queue pair of a receiver at its endpoint.
pub(crate) struct EndpointReceiver<'a> {
    pub(crate) endpoint: &'a mut Endpoint<HostMemory>,
    pub(crate) qpn: Qpn,
    pub(crate) memory: &'a ReceiverMemory,
}

impl EndpointReceiver<'_> {
    fn slots(&self, region: usize) -> Option<&SlotMemory> {
        match self.endpoint.memory(self.memory.key(region)?) {
            Some(HostMemory::Slots(slots)) => Some(slots),
            Some(HostMemory::Messages(_) | HostMemory::Registered(_) | HostMemory::Source(_)) | None => None,
        }
    }

    fn slots_mut(&mut self, region: usize) -> Option<&mut SlotMemory> {
        match self.endpoint.memory_mut(self.memory.key(region)?) {
            Some(HostMemory::Slots(slots)) => Some(slots),
            Some(HostMemory::Messages(_) | HostMemory::Registered(_) | HostMemory::Source(_)) | None => None,
        }
    }
}

impl ReceiverQueue for EndpointReceiver<'_> {
    fn poll_completion(&mut self) -> Option<std::result::Result<Received, PairError>> {
        let completion = self.endpoint.poll_completion()?;
        Some(checked(completion.status).map(|()| Received {
            number: completion.wr_id,
            is_send: completion.operation == CompletedOperation::Receive,
            length_octets: completion.length_octets,
        }))
    }

    fn post_receive(&mut self, number: u64) -> bool {
        let length_octets = MAX_MANIFEST_OCTETS as u32;
        let local = LocalRange { key: self.memory.messages, offset: place_of(number), length_octets };
        self.endpoint.post_receive(self.qpn, Receive { wr_id: number, local }).is_ok()
    }

    fn message(&self, received: Received) -> Vec<u8> {
        let mut octets = vec![0; received.length_octets as usize];
        if let Some(memory) = self.endpoint.memory(self.memory.messages) {
            memory.read(place_of(received.number), &mut octets);
        }
        octets
    }

    fn open(&mut self, ranges: &mut dyn Iterator<Item = (usize, Range<usize>)>) -> bool {
        open_all(self.memory.regions.len(), ranges, |region, ranges| {
            self.slots_mut(region).is_some_and(|slots| slots.open(ranges))
        })
    }

    fn take(&mut self, region: usize, offset: u64, into: &mut [u8]) {
        match self.slots(region) {
            Some(slots) => slots.read(offset, into),
            None => into.fill(0),
        }
    }

    fn deliver(&mut self, region: usize, offset: u64, octets: &[u8]) {
        if let Some(slots) = self.slots_mut(region) {
            slots.deliver(offset, octets);
        }
    }

    fn share(&mut self, region: usize, range: Range<usize>) -> Option<SharedRange> {
        self.slots_mut(region)?.share(range)
    }

    fn strays(&self) -> u64 {
        (0..self.memory.regions.len()).filter_map(|region| self.slots(region)).map(SlotMemory::strays).sum()
    }

    fn packets(&self) -> Option<PacketStatistics> {
        self.endpoint.counters(self.qpn).map(|counters| (*counters).into())
    }
}

/// A receiver: its endpoint has the queue pair once it is connected.
pub(super) struct Receiver {
    connection: Connection,
    endpoint: Endpoint<HostMemory>,
    wire: UdpWire,
    memory: ReceiverMemory,
}

impl Receiver {
    pub(super) fn new(address: Ipv6Addr, group: &GroupAddress, slots: Vec<SlotMemory>, wake: &Wake) -> Result<Self> {
        let connection = group.connection(address, any_qpn());
        let mut endpoint = Endpoint::new(connection.endpoint_config(&Congestion::default()));
        let max_packet_octets = connection.endpoint::<HostMemory>(&Congestion::default())?.max_packet_octets();
        // Bound before the join: what comes before the join point is known waits in it.
        let wire = open_wire(&connection, wake, max_packet_octets, RECEIVER_BUFFER_OCTETS)?;
        // Fresh for each join.
        let place = |_| ((unpredictable() & 0xFFFF_FFFF) << 12, unpredictable() as u8);
        let memory = ReceiverMemory::register(&mut endpoint, slots, place);
        Ok(Receiver { connection, endpoint, wire, memory })
    }
}

impl ReceiverPair for Receiver {
    fn qpn(&self) -> Qpn {
        self.connection.qpn
    }

    fn regions(&self) -> Vec<MemoryRegion> {
        let regions = self.memory.regions().iter();
        regions.map(|(virtual_address, key)| MemoryRegion { virtual_address: *virtual_address, rkey: key.0 }).collect()
    }

    /// What comes before [`Receiver::connect`] waits in the socket.
    fn prepare(&mut self, _: Psn) -> Result<()> {
        Ok(())
    }

    fn connect(&mut self, psn: Psn) -> std::result::Result<(), Over> {
        self.connection.psn = psn;
        let added = self.endpoint.add_queue_pair(self.connection.queue_pair(&Congestion::default()));
        added.map_err(|error| Over::QueuePair(error.to_string()))
    }

    fn run(mut self: Box<Self>, program: &mut dyn ReceiverProgram) -> Option<Over> {
        let mut adapter = ReceiverAdapter { program, qpn: self.connection.qpn, memory: self.memory };
        run_program(&mut self.endpoint, &mut self.wire, &self.connection, &mut adapter)
    }
}

/// A program of a receiver as one of the endpoint.
struct ReceiverAdapter<'a> {
    program: &'a mut dyn ReceiverProgram,
    qpn: Qpn,
    memory: ReceiverMemory,
}

impl srdma_host::Program<HostMemory> for ReceiverAdapter<'_> {
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<HostMemory>) -> ControlFlow<()> {
        self.program.work(now, &mut EndpointReceiver { endpoint, qpn: self.qpn, memory: &self.memory })
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.program.next_deadline()
    }
}
