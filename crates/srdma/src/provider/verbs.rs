//! Provider `verbs`: queue pairs of RDMA devices, NICs and soft-RoCE.
//!
//! A device writes to the memory that was registered at any time while its key is known, so that of the application is
//! not registered for it (D183): the device writes to *landing* memory of the library, and a version gets into its slot
//! when it is complete. What the application sends is read in place.

mod event_loop;
mod queues;

use super::{RECEIVES, ReceiverPair, ReceiverProgram, Registrar, SendLimits, SourcePair, SourceProgram};
use crate::device::{GroupAddress, unpredictable};
use crate::engine::Wake;
use crate::error::{Error, Over, Result};
use crate::manifest::MAX_MANIFEST_OCTETS;
use crate::memory::SlotMemory;
use event_loop::EventLoop;
use queues::{LandingSlots, ReceiverState, SourceState};
use srdma_api::{MemoryRegion, SourceTransport};
use srdma_group::Policy;
use srdma_verbs::{
    Access, AckTimeout, Buffer, CompletionQueue, Device, LocalAddress, ProtectionDomain, QueuePair, QueuePairOptions,
    ReadyToReceive, ReadyToSend, VerbsError, gid,
};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

/// Requests in a send queue, at most. A queue that is full takes more when some are complete.
const SEND_REQUESTS: u32 = 256;
/// RNR NAKs ask for 2.56 ms: a receiver without a free slot gets the begin message of the next version so often, as do
/// all others.
const RNR_TIMER: u8 = 16;
/// Retransmissions without progress.
const RETRIES: u8 = ReadyToSend::MOST_RETRIES;
/// Time between the stall of a receiver, after which nodes ask for its eviction, and its effect.
const EVICTION: Duration = Duration::from_secs(5);

/// Which device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// By its name; otherwise the one that has the address.
    pub(crate) name: Option<String>,
}

impl Choice {
    /// Checks that there is such a device.
    pub(crate) fn check(&self, address: Option<Ipv6Addr>) -> Result<()> {
        match (&self.name, address) {
            (_, Some(address)) => drop(self.open(address)?),
            (Some(name), None) => drop(Device::open(name)?),
            (None, None) if srdma_verbs::devices()?.is_empty() => return Err(VerbsError::NoDevice.into()),
            (None, None) => {}
        }
        Ok(())
    }

    /// The address of the device, if it has a single one of IPv6, as on sockets.
    pub(crate) fn only_address(&self) -> Result<Option<Ipv6Addr>> {
        let names = match &self.name {
            Some(name) => vec![name.clone()],
            None => srdma_verbs::devices()?,
        };
        let mut entries = Vec::new();
        for name in &names {
            entries.extend(Device::open(name)?.gid_entries()?);
        }
        let mut usable = gid::usable(&entries);
        usable.retain(|address| address.to_ipv4_mapped().is_none());
        Ok(<[Ipv6Addr; 1]>::try_from(usable).ok().map(|[address]| address))
    }

    fn open(&self, address: Ipv6Addr) -> Result<(Device, LocalAddress)> {
        Ok(Device::open_with_address(self.name.as_deref(), address)?)
    }
}

/// A device of one queue pair: its events are for no other.
struct Opened {
    device: Device,
    local: LocalAddress,
    domain: ProtectionDomain,
    completions: CompletionQueue,
}

impl Opened {
    fn open(choice: &Choice, address: Ipv6Addr, completions: u32) -> Result<Self> {
        let (device, local) = choice.open(address)?;
        let domain = device.protection_domain()?;
        let completions = device.completion_queue(completions)?;
        Ok(Opened { device, local, domain, completions })
    }

    fn queue_pair(&self, send_requests: u32, receive_requests: u32) -> Result<QueuePair> {
        let options = QueuePairOptions { send_requests, receive_requests, elements: 1 };
        Ok(self.domain.queue_pair(&options, &self.completions, &self.completions)?)
    }

    fn ready_to_receive(&self, group: &GroupAddress, psn: Psn) -> ReadyToReceive {
        let ready = ReadyToReceive::new(self.local, group.proxy, group.designated_qpn, psn, group.path_mtu);
        ReadyToReceive { min_rnr_timer: RNR_TIMER, ..ready }
    }
}

/// When a source gives up (D184): not before a receiver that stalls is evicted.
fn ack_timeout(policy: &Policy) -> u8 {
    let is_long_enough = |exponent: &u8| {
        let transport = SourceTransport { ack_timeout: *exponent, retries: RETRIES };
        transport.retry_budget().is_none_or(|budget| budget >= policy.t_stall.saturating_add(EVICTION))
    };
    (AckTimeout::DEFAULT.exponent()..=31).find(is_long_enough).unwrap_or(31)
}

/// A device knows no window, so that what is posted is never more than the group's (D186): messages of a quarter of it,
/// as long as less than three quarters are outstanding.
fn limits(window_packets: u32, path_mtu: PathMtu, message_octets: u32) -> SendLimits {
    let window = window_packets.max(4);
    let quarter_octets = (window / 4).saturating_mul(path_mtu.octets());
    // Messages are posted while fewer packets than twice this are outstanding.
    SendLimits { window_packets: (window / 8 * 3).max(1), message_octets: message_octets.min(quarter_octets) }
}

/// The queue pair of a source.
pub(super) struct Source {
    opened: Opened,
    pair: QueuePair,
    wake: Arc<Wake>,
    transport: SourceTransport,
    group: Option<GroupAddress>,
}

impl Source {
    pub(super) fn new(choice: &Choice, address: Ipv6Addr, policy: &Policy, wake: Arc<Wake>) -> Result<Self> {
        let opened = Opened::open(choice, address, SEND_REQUESTS + 1)?;
        let requests = SEND_REQUESTS.min(opened.device.limits()?.max_requests);
        let pair = opened.queue_pair(requests, 1)?;
        let transport = SourceTransport { ack_timeout: ack_timeout(policy), retries: RETRIES };
        Ok(Source { opened, pair, wake, transport, group: None })
    }
}

impl SourcePair for Source {
    fn qpn(&self) -> Qpn {
        self.pair.qpn()
    }

    fn transport(&self) -> Option<SourceTransport> {
        Some(self.transport)
    }

    fn registrar(&self) -> Registrar {
        Registrar::Device(self.opened.domain.clone())
    }

    fn limits(&self, group: &GroupAddress, message_octets: u32) -> SendLimits {
        limits(group.window, group.path_mtu, message_octets)
    }

    fn connect(&mut self, group: &GroupAddress) -> Result<()> {
        self.pair.to_init(&self.opened.local, Access::LocalRead)?;
        // Its peer sends no requests.
        self.pair.to_rtr(&self.opened.ready_to_receive(group, Psn::new(0)))?;
        let ack_timeout = AckTimeout::new(self.transport.ack_timeout).unwrap_or(AckTimeout::DEFAULT);
        self.pair.to_rts(&ReadyToSend { ack_timeout, ..ReadyToSend::new(group.initial_psn) })?;
        self.group = Some(*group);
        Ok(())
    }

    fn run(self: Box<Self>, program: &mut dyn SourceProgram) {
        let Source { opened, pair, wake, transport: _, group } = *self;
        let Some(group) = group else { return };
        let mut queue = SourceState::new(pair, opened.completions.clone(), group.path_mtu);
        let mut events = EventLoop::new(&opened.device, &opened.completions, &wake);
        let failure =
            events.run(&mut queue, |now, queue| program.work(now, queue).map_continue(|()| program.next_deadline()));
        program.finish(failure, &mut queue);
    }
}

/// The queue pair of a receiver.
pub(super) struct Receiver {
    opened: Opened,
    state: ReceiverState,
    wake: Arc<Wake>,
    group: GroupAddress,
    /// It receives packets from this PSN on.
    expected_psn: Option<Psn>,
}

impl Receiver {
    pub(super) fn new(
        choice: &Choice,
        address: Ipv6Addr,
        group: &GroupAddress,
        slots: Vec<SlotMemory>,
        wake: Arc<Wake>,
    ) -> Result<Self> {
        let receives = RECEIVES as u32;
        let opened = Opened::open(choice, address, receives + 1)?;
        let memory = |octets: usize| Buffer::try_new(octets).ok_or(Error::NoMemory(octets as u64));
        let land = |slots: SlotMemory| {
            // Fresh for each join, as is the key.
            let base_address = (unpredictable() & 0xFFFF_FFFF) << 12;
            let landing = memory(slots.length_octets())?;
            let landing = opened.domain.register_at(landing, base_address, Access::RemoteWrite);
            Ok(LandingSlots { landing: landing.map_err(VerbsError::from)?, slots })
        };
        let regions = slots.into_iter().map(land).collect::<Result<Vec<_>>>()?;
        let messages = opened.domain.register(memory(RECEIVES * MAX_MANIFEST_OCTETS)?, Access::LocalWrite);
        let messages = messages.map_err(VerbsError::from)?;
        let pair = opened.queue_pair(1, receives)?;
        let state = ReceiverState::new(pair, opened.completions.clone(), messages, regions);
        Ok(Receiver { opened, state, wake, group: *group, expected_psn: None })
    }

    fn connect_at(&mut self, psn: Psn) -> std::result::Result<(), VerbsError> {
        let pair = self.state.pair();
        match self.expected_psn {
            Some(expected) if expected == psn => return Ok(()),
            Some(_) => pair.to_reset()?,
            None => {}
        }
        self.expected_psn = None;
        pair.to_init(&self.opened.local, Access::RemoteWrite)?;
        pair.to_rtr(&self.opened.ready_to_receive(&self.group, psn))?;
        // It sends no requests.
        pair.to_rts(&ReadyToSend::new(Psn::new(0)))?;
        self.expected_psn = Some(psn);
        Ok(())
    }
}

impl ReceiverPair for Receiver {
    fn qpn(&self) -> Qpn {
        self.state.pair().qpn()
    }

    fn regions(&self) -> Vec<MemoryRegion> {
        self.state.regions()
    }

    /// A device drops what comes before it is connected (D185).
    fn prepare(&mut self, psn: Psn) -> Result<()> {
        Ok(self.connect_at(psn)?)
    }

    fn connect(&mut self, psn: Psn) -> std::result::Result<(), Over> {
        self.connect_at(psn).map_err(|error| Over::Device(error.to_string()))
    }

    fn run(&mut self, program: &mut dyn ReceiverProgram) -> Option<Over> {
        let Receiver { opened, state, wake, .. } = self;
        let mut events = EventLoop::new(&opened.device, &opened.completions, wake);
        events.run(state, |now, queue| program.work(now, queue).map_continue(|()| program.next_deadline()))
    }

    fn into_slots(self: Box<Self>) -> Option<Vec<SlotMemory>> {
        Some(self.state.into_slots())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D186: as the publisher posts by these limits.
    #[test]
    fn what_is_posted_is_never_more_than_the_window() {
        for window in [4, 5, 8, 17, 32, 128, 511, 1 << 20] {
            for (path_mtu, message_octets) in [(PathMtu::Octets256, 1 << 20), (PathMtu::Octets4096, 100_000)] {
                let limits = limits(window, path_mtu, message_octets);
                let packets = path_mtu.packets(limits.message_octets);
                assert!(limits.message_octets <= message_octets && packets >= 1);
                let mut posted = 0;
                while posted < 2 * limits.window_packets {
                    posted += packets;
                }
                assert!(posted <= window, "{posted} packets, window {window}, {path_mtu:?}");
            }
        }
    }

    /// D184.
    #[test]
    fn a_source_gives_up_after_the_eviction_of_a_receiver() {
        let of = |t_stall| ack_timeout(&Policy { t_stall, ..Policy::default() });
        let budget = |exponent| SourceTransport { ack_timeout: exponent, retries: 7 }.retry_budget().expect("limited");
        for (t_stall_s, exponent) in [(0, 18), (1, 18), (10, 19), (11, 20), (60, 22)] {
            assert_eq!(of(Duration::from_secs(t_stall_s)), exponent, "{t_stall_s} s");
            assert!(budget(exponent) >= Duration::from_secs(t_stall_s + 5));
            assert!(budget(exponent - 1) < Duration::from_secs(t_stall_s + 5));
        }
        assert_eq!(of(Duration::MAX), 31);
    }
}
