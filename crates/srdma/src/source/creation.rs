//! Groups that a source creates, or resumes.

use super::Source;
use crate::current::Server;
use crate::device::{Device, GroupAddress, any_qpn, unpredictable};
use crate::digest::DigestKind;
use crate::engine::Wake;
use crate::error::{Error, Result};
use crate::manifest::{SlotRegions, Slots};
use crate::publisher::{PublisherConfig, slot_octets};
use srdma_api::{Group, NewGroup, ProblemType, SourceAddress, SourceRegion};
use srdma_group::{MAX_REGIONS, OnFailure, Policy};
use srdma_rc::{MemoryKey, RemoteAddress};
use srdma_wire::PathMtu;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

/// First virtual address of the group's region, as its source writes to it.
const REGION_BASE: u64 = 0x1_0000;

/// A group to create.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// A display name.
    pub name: Option<String>,
    /// The versions that a receiver can have at once, the one on its way included, and the octets of each.
    pub slots: Slots,
    /// Octets of each slot in further regions, which have memory of their own at receivers and as many slots:
    /// [`Buffer::in_region`](crate::Buffer::in_region) says in which a buffer lies (D191).
    pub more_slot_octets: Vec<u64>,
    /// The group's Proxy Address [default: one of the tenant's pool].
    pub proxy: Option<Ipv6Addr>,
    /// RDMA path MTU: 256, 512, 1024, 2048 or 4096 octets.
    pub path_mtu: u32,
    /// Settings of the group [default: receivers that stall for ten seconds are evicted].
    pub policy: Policy,
    /// Octets that may be in flight, for which nodes have buffers [default: that of the controller].
    pub window_octets: Option<u32>,
    /// The digest of each buffer.
    pub digest: DigestKind,
    /// A version that the receivers have not accepted for this time is reported by [`Event::Slow`](crate::Event::Slow).
    pub slow_after: Duration,
    /// Length of an RDMA WRITE, at most.
    pub message_octets: u32,
    /// Keep the version that was published last, for receivers that join late: they fetch it by TCP from this host
    /// (D190). Its buffers are the application's again when a later version is published, or the source is closed.
    pub keeps_current: bool,
}

impl GroupOptions {
    /// Two slots, each of which has room for buffers of these lengths.
    pub fn for_buffers(lengths: impl IntoIterator<Item = u64>) -> Self {
        GroupOptions {
            name: None,
            slots: Slots { count: 2, octets: slot_octets(lengths).max(1) },
            more_slot_octets: Vec::new(),
            proxy: None,
            path_mtu: 4096,
            policy: Policy { on_failure: OnFailure::Evict, t_stall: Duration::from_secs(10), ..Policy::default() },
            window_octets: None,
            digest: DigestKind::Sha256,
            slow_after: Duration::from_secs(1),
            message_octets: 1 << 20,
            keeps_current: false,
        }
    }
}

impl Device {
    /// Creates a group at the controller, whose source this host is.
    ///
    /// # Errors
    ///
    /// If an option is out of range, the controller refuses, or the socket cannot be opened.
    pub fn create_group(&self, options: &GroupOptions) -> Result<Source> {
        self.create(options, None, None)
    }

    /// Creates a group whose source ends if there is no response for some time.
    pub(crate) fn create_group_of(&self, options: &GroupOptions, gives_up_after: Option<Duration>) -> Result<Source> {
        self.create(options, None, gives_up_after)
    }

    /// Resumes a group whose source has died, by a new one: the former is closed, and its receivers follow to the new
    /// one, with the versions that they have (D193). Name and Proxy Address are those of the former unless the options
    /// have others; slots must be the same for receivers that still have versions. If the group was resumed before, the
    /// newest is resumed: its source ends.
    ///
    /// # Errors
    ///
    /// As those of [`Device::create_group`]; and if there is no such group, or its receivers' memory is too small.
    pub fn resume_group(&self, group: u32, options: &GroupOptions) -> Result<Source> {
        self.check_process()?;
        self.create(options, Some(&self.group_or_successor(group)?), None)
    }

    fn create(
        &self,
        options: &GroupOptions,
        former: Option<&Group>,
        gives_up_after: Option<Duration>,
    ) -> Result<Source> {
        self.check_process()?;
        let proxy = options.proxy.or(former.map(|former| former.summary.proxy));
        let address = self.address_toward(proxy)?;
        let slots = SlotRegions::new(options.slots, options.more_slot_octets.clone());
        let range = |name, value: u64, range| Error::OutOfRange { name, value, range };
        let path_mtu = PathMtu::from_octets(options.path_mtu);
        let path_mtu =
            path_mtu.ok_or(range("path_mtu", options.path_mtu.into(), "256, 512, 1024, 2048 or 4096 octets"))?;
        let message_octets = options.message_octets;
        if !(path_mtu.octets()..=1 << 30).contains(&message_octets) {
            return Err(range("message_octets", message_octets.into(), "the path MTU to 2^30"));
        }
        let wake = Wake::new()?;
        let mut pair = self.provider.source_pair(address, &options.policy, Arc::clone(&wake))?;
        let regions = regions_of(&slots)?;
        let new = NewGroup {
            name: options.name.clone(),
            proxy: options.proxy,
            resumes: former.map(|former| former.summary.id),
            initial_psn: unpredictable() as u32 & 0xFF_FFFF,
            path_mtu: path_mtu.into(),
            region: regions.first().copied(),
            more_regions: regions.iter().skip(1).copied().collect(),
            policy: options.policy,
            window_octets: options.window_octets,
            transport: pair.transport(),
            ..NewGroup::new(SourceAddress { address, qpn: pair.qpn().get() }, any_qpn().get())
        };
        let group = self.client.create_group(&new, None)?;
        let group = GroupAddress::of(&group)?;
        let (GroupAddress { id, proxy, window, .. }, resumes) = (group, new.resumes);
        tracing::info!(%address, %proxy, window_packets = window, resumes, "source of group {id}: created");
        let limits = pair.limits(&group, message_octets);
        let config = PublisherConfig {
            path_mtu,
            window_packets: limits.window_packets,
            message_octets: limits.message_octets,
            regions: regions.iter().map(remote_address).collect(),
            slots,
            digest: options.digest,
            slow_after: options.slow_after,
            keeps_current: options.keeps_current,
            gives_up_after,
        };
        let connected = pair.connect(&group);
        let server = || if options.keeps_current { self.serve(group.id, address) } else { Ok(None) };
        let started = connected
            .and_then(|()| server())
            .and_then(|server| Source::start(self.client.clone(), group, config, pair, wake, server));
        started.inspect_err(|_| {
            // A group without a source is of no use; if this fails too, the first error is the one to report.
            let _ = self.client.close_group(group.id);
        })
    }

    /// Serves the current version of a group, and says so to the controller; `None` if that does not know of it.
    fn serve(&self, group: u32, address: Ipv6Addr) -> Result<Option<Server>> {
        let server = Server::start(address)?;
        match self.client.state_service(group, server.service()) {
            Ok(()) => Ok(Some(server)),
            Err(error) if error.is(ProblemType::UnknownPath) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The regions of a group, as its source writes to them. They have the same address, and keys of their own.
fn regions_of(slots: &SlotRegions) -> Result<Vec<SourceRegion>> {
    if slots.count() > MAX_REGIONS {
        let value = slots.more_octets().len() as u64;
        return Err(Error::OutOfRange { name: "more_slot_octets", value, range: "at most 15 further regions" });
    }
    let key = unpredictable() as u32;
    let region = |(slots, number): (Slots, u32)| {
        let length = slots.region_octets().ok_or(Error::Slots(slots))?;
        Ok(SourceRegion { base: REGION_BASE, length, rkey: key ^ number })
    };
    slots.each().zip(0..).map(region).collect()
}

fn remote_address(region: &SourceRegion) -> RemoteAddress {
    RemoteAddress { virtual_address: region.base, rkey: MemoryKey(region.rkey) }
}
