//! The structures of `srdma.h`, member by member.

use crate::errors::Failure;
use crate::text;
use srdma::{
    Device, DeviceOptions, DigestKind, Event, GroupOptions, JoinOptions, MAX_REGIONS, MAX_SLOTS, OnFailure, Region,
    Slots, Statistics, host_address,
};
use std::ffi::{c_char, c_int, c_void};
use std::net::Ipv6Addr;
use std::ptr::NonNull;
use std::time::Duration;

/// `struct srdma_options`.
#[repr(C)]
#[allow(missing_docs, reason = "srdma.h documents them")]
#[derive(Clone, Copy, Debug)]
pub struct SrdmaOptions {
    pub size: usize,
    pub provider: *const c_char,
    pub controller: *const c_char,
    pub token_file: *const c_char,
    pub ca_file: *const c_char,
    pub address: *const c_char,
}

/// `struct srdma_group_options`.
#[repr(C)]
#[allow(missing_docs, reason = "srdma.h documents them")]
#[derive(Clone, Copy, Debug)]
pub struct SrdmaGroupOptions {
    pub size: usize,
    pub name: *const c_char,
    pub proxy: *const c_char,
    pub slot_octets: u64,
    pub slots: u32,
    pub path_mtu: u32,
    pub digest: u32,
    pub on_failure: u32,
    pub stall_ms: u32,
    pub min_receivers: u32,
    pub slow_after_ms: u32,
    pub window_octets: u32,
    pub not_ready_ms: u32,
    pub flags: u32,
    pub more_slot_octets: *const u64,
    pub more_regions: u32,
    pub reserved: u32,
}

/// `struct srdma_region`.
#[repr(C)]
#[allow(missing_docs, reason = "srdma.h documents them")]
#[derive(Clone, Copy, Debug)]
pub struct SrdmaRegion {
    pub base: *mut c_void,
    pub length: usize,
}

/// `struct srdma_join_options`.
#[repr(C)]
#[allow(missing_docs, reason = "srdma.h documents them")]
#[derive(Clone, Copy, Debug)]
pub struct SrdmaJoinOptions {
    pub size: usize,
    pub base: *mut c_void,
    pub length: usize,
    pub runtime_directory: *const c_char,
    pub flags: u32,
    pub reserved: u32,
}

/// `struct srdma_buffer`.
#[repr(C)]
#[allow(missing_docs, reason = "srdma.h documents them")]
#[derive(Clone, Copy, Debug)]
pub struct SrdmaBuffer {
    pub name: *const c_char,
    pub base: *const c_void,
    pub length: usize,
}

/// `struct srdma_event`.
#[repr(C)]
#[allow(missing_docs, reason = "srdma.h documents them")]
#[derive(Clone, Copy, Debug)]
pub struct SrdmaEvent {
    pub size: usize,
    pub kind: u32,
    pub error: i32,
    pub version: u64,
    pub message: [c_char; 128],
}

/// `struct srdma_statistics`.
#[repr(C)]
#[allow(missing_docs, reason = "srdma.h documents them")]
#[derive(Clone, Copy, Debug)]
pub struct SrdmaStatistics {
    pub size: usize,
    pub versions: u64,
    pub octets: u64,
    pub failed: u64,
    pub waiting: u64,
    pub slow: u64,
    pub strays: u64,
    pub packets_sent: u64,
    pub packets_retransmitted: u64,
    pub packets_acknowledged: u64,
    pub timeouts: u64,
    pub naks: u64,
    pub rnr_naks: u64,
    pub cnps: u64,
    pub octets_received: u64,
    pub duplicates: u64,
}

impl SrdmaStatistics {
    /// Statistics as the structure has them; its size is this version's.
    pub(crate) fn of(statistics: &Statistics) -> Self {
        let packets = statistics.packets.unwrap_or_default();
        SrdmaStatistics {
            size: size_of::<SrdmaStatistics>(),
            versions: statistics.versions,
            octets: statistics.octets,
            failed: statistics.failed,
            waiting: statistics.waiting,
            slow: statistics.slow,
            strays: statistics.strays,
            packets_sent: packets.sent,
            packets_retransmitted: packets.retransmitted,
            packets_acknowledged: packets.acknowledged,
            timeouts: packets.timeouts,
            naks: packets.naks,
            rnr_naks: packets.rnr_naks,
            cnps: packets.cnps,
            octets_received: packets.octets_received,
            duplicates: packets.duplicates,
        }
    }
}

/// Writes a structure of results that begins with its size, which the program has set: as much of it as the program's
/// version of the structure has.
///
/// # Safety
///
/// `to` is NULL, or writable for the size that it begins with.
pub(crate) unsafe fn put_sized<T: Copy>(
    to: *mut T,
    name: &str,
    least: usize,
    value: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the contract of the function.
    let size = unsafe { to.cast::<usize>().read_unaligned() };
    if !(least..=4096).contains(&size) {
        return Err(Failure::invalid(format!("{name}: size is {size}: set it by sizeof")));
    }
    let mut value = value()?;
    // SAFETY: each structure of results begins with its size, and the target has `size` octets.
    unsafe {
        (&raw mut value).cast::<usize>().write_unaligned(size);
        (&raw const value).cast::<u8>().copy_to_nonoverlapping(to.cast(), size.min(size_of::<T>()));
    }
    Ok(())
}

/// A structure that begins with its size, and has no value that zeros do not make.
///
/// # Safety
///
/// All zeros must be a value, and the first member the size.
pub(crate) unsafe trait BeginsWithSize: Copy {}

// SAFETY: integers and pointers, the first of them the size.
unsafe impl BeginsWithSize for SrdmaOptions {}
// SAFETY: integers and pointers, the first of them the size.
unsafe impl BeginsWithSize for SrdmaGroupOptions {}
// SAFETY: integers and pointers, the first of them the size.
unsafe impl BeginsWithSize for SrdmaJoinOptions {}

/// Copies a structure of a program that was compiled with another version: members that it does not have are zero, and
/// members that this version does not have must be.
///
/// # Safety
///
/// `given` must be readable for the size that it begins with.
pub(crate) unsafe fn copied<T: BeginsWithSize>(given: *const T, name: &str) -> Result<T, Failure> {
    if given.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    // SAFETY: the size is readable, by the contract of the function.
    let size = unsafe { given.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() || size > 4096 {
        return Err(Failure::invalid(format!("{name}: size is {size}, which is no structure's: set it by sizeof")));
    }
    // SAFETY: zeros are a value, by the contract of the trait.
    let mut copy: T = unsafe { std::mem::zeroed() };
    let known = size.min(size_of::<T>());
    // SAFETY: the source is readable for `size` octets, the target has its own size, and both are at least `known`.
    unsafe { given.cast::<u8>().copy_to_nonoverlapping((&raw mut copy).cast(), known) };
    // SAFETY: as above, for the rest.
    let rest = unsafe { std::slice::from_raw_parts(given.cast::<u8>().add(known), size - known) };
    if rest.iter().any(|octet| *octet != 0) {
        let text = format!("{name} has members that this version of the library does not know");
        return Err(Failure::new(libc::E2BIG, text));
    }
    Ok(copy)
}

/// Opens a device by these options.
///
/// # Safety
///
/// Texts must end by NUL.
pub(crate) unsafe fn open(options: *const SrdmaOptions) -> Result<Device, Failure> {
    let mut device = DeviceOptions::from_environment();
    if !options.is_null() {
        // SAFETY: the contract of the function.
        let options = unsafe { copied(options, "options") }?;
        // SAFETY: the contract of the function, for each.
        let [provider, controller, token_file, ca_file, address] = unsafe {
            [
                text::optional(options.provider, "provider")?,
                text::optional(options.controller, "controller")?,
                text::optional(options.token_file, "token_file")?,
                text::optional(options.ca_file, "ca_file")?,
                text::optional(options.address, "address")?,
            ]
        };
        device.provider = provider.map_or(device.provider, str::to_owned);
        device.controller = controller.map_or(device.controller, str::to_owned);
        device.token_file = token_file.map(Into::into).or(device.token_file);
        device.ca_file = ca_file.map(Into::into).or(device.ca_file);
        device.address = address.map(|text| parse_address(text, "address")).transpose()?;
    }
    Ok(Device::open(&device)?)
}

fn parse_address(text: &str, name: &str) -> Result<Ipv6Addr, Failure> {
    host_address(text).ok_or_else(|| Failure::invalid(format!("{name}: {text:?} is no IPv6 or IPv4 address")))
}

/// Regions of a group besides the first, at most.
pub(crate) const MOST_FURTHER: usize = MAX_REGIONS - 1;

/// An array of a program; `None` if it has more than so many elements, or is NULL and has some.
///
/// # Safety
///
/// `first` is readable for `count` elements, or NULL, as long as the result is used.
pub(crate) unsafe fn elements<'a, T>(first: *const T, count: usize, most: usize) -> Option<&'a [T]> {
    if count == 0 {
        return Some(&[]);
    }
    if count > most || first.is_null() {
        return None;
    }
    // SAFETY: the contract of the function.
    Some(unsafe { std::slice::from_raw_parts(first, count) })
}

/// `SRDMA_KEEP_CURRENT` of `enum srdma_group_flags`.
const KEEP_CURRENT: u32 = 1;

impl SrdmaGroupOptions {
    /// # Safety
    ///
    /// Texts must end by NUL, and `more_slot_octets` has `more_regions` elements.
    pub(crate) unsafe fn options(&self) -> Result<GroupOptions, Failure> {
        // SAFETY: the contract of the function.
        let (name, proxy) = unsafe { (text::optional(self.name, "name")?, text::optional(self.proxy, "proxy")?) };
        if self.flags & !KEEP_CURRENT != 0 {
            let text = format!("flags {:#x}: this version does not know all of them", self.flags);
            return Err(Failure::new(libc::E2BIG, text));
        }
        if self.reserved != 0 {
            return Err(Failure::new(libc::E2BIG, "options: reserved is not 0"));
        }
        let mut options = GroupOptions::for_buffers([]);
        // SAFETY: the contract of the function.
        options.more_slot_octets = unsafe { elements(self.more_slot_octets, self.more_regions as usize, MOST_FURTHER) }
            .ok_or_else(|| {
                let text = format!("more_slot_octets: {} regions, at most {MOST_FURTHER}, or NULL", self.more_regions);
                Failure::invalid(text)
            })?
            .to_vec();
        options.name = name.map(str::to_owned);
        options.proxy = proxy.map(|text| parse_address(text, "proxy")).transpose()?;
        let count = match self.slots {
            0 => options.slots.count,
            count => u16::try_from(count).unwrap_or(u16::MAX),
        };
        options.slots = Slots { count, octets: self.slot_octets };
        if options.slots.region_octets().is_none() {
            let text = format!("slots: {count} of {} octets, 1 to {MAX_SLOTS} of at least one", self.slot_octets);
            return Err(Failure::invalid(text));
        }
        let given = |value: u32| (value != 0).then_some(value);
        let time = |ms: u32| given(ms).map(|ms| Duration::from_millis(ms.into()));
        options.path_mtu = given(self.path_mtu).unwrap_or(options.path_mtu);
        options.digest = match self.digest {
            0 | 1 => DigestKind::Sha256,
            2 => DigestKind::Crc32,
            other => return Err(Failure::invalid(format!("digest {other} is none of enum srdma_digest"))),
        };
        options.policy.on_failure = match self.on_failure {
            0 | 2 => OnFailure::Evict,
            1 => OnFailure::Strict,
            other => return Err(Failure::invalid(format!("on_failure {other} is none of enum srdma_on_failure"))),
        };
        options.policy.t_stall = time(self.stall_ms).unwrap_or(options.policy.t_stall);
        options.policy.t_not_ready = time(self.not_ready_ms);
        options.policy.min_receivers = given(self.min_receivers).unwrap_or(options.policy.min_receivers);
        options.slow_after = time(self.slow_after_ms).unwrap_or(options.slow_after);
        options.window_octets = given(self.window_octets);
        options.keeps_current = self.flags & KEEP_CURRENT != 0;
        Ok(options)
    }
}

/// `SRDMA_JOIN_SHARED` and `SRDMA_JOIN_ENDS_WITH_GROUP` of `enum srdma_join_flags`.
const JOIN_SHARED: u32 = 1;
const JOIN_ENDS_WITH_GROUP: u32 = 2;

impl SrdmaJoinOptions {
    /// # Safety
    ///
    /// Texts must end by NUL, and `base` is as `srdma.h` says.
    pub(crate) unsafe fn options(&self) -> Result<JoinOptions, Failure> {
        if self.flags & !(JOIN_SHARED | JOIN_ENDS_WITH_GROUP) != 0 || self.reserved != 0 {
            let text = format!("flags {:#x}: this version does not know all of them", self.flags);
            return Err(Failure::new(libc::E2BIG, text));
        }
        // SAFETY: the contract of the function.
        let directory = unsafe { text::optional(self.runtime_directory, "runtime_directory")? };
        let base = NonNull::new(self.base.cast());
        Ok(JoinOptions {
            // SAFETY: the contract of the function.
            region: base.map(|base| unsafe { Region::from_raw(base, self.length) }),
            more_regions: Vec::new(),
            ends_with_group: self.flags & JOIN_ENDS_WITH_GROUP != 0,
            shared: self.flags & JOIN_SHARED != 0,
            runtime_directory: directory.map(Into::into),
        })
    }
}

impl SrdmaEvent {
    /// An event as the structure has it; its size is this version's.
    pub(crate) fn of(event: &Event) -> Self {
        let (kind, version, error, text) = match event {
            Event::Published { version } => (1, *version, 0, String::new()),
            Event::Slow { version } => (2, *version, 0, String::new()),
            Event::Failed { version, failure } => (3, *version, libc::ESHUTDOWN, failure.to_string()),
            Event::Joined => (4, 0, 0, String::new()),
            Event::Version { version } => (5, *version, 0, String::new()),
            Event::Rejected { version, why } => (6, version.unwrap_or(0), libc::EBADMSG, why.to_string()),
            Event::Over(over) => (7, 0, crate::errors::over_errno(over), over.to_string()),
            Event::Lost(count) => (8, *count, 0, String::new()),
            Event::SourceSilent => (9, 0, 0, String::new()),
            Event::RankAttached { process } => (10, process_number(*process), 0, String::new()),
            Event::RankDetached { process, why } => (11, process_number(*process), 0, why.to_string()),
            Event::RankHolds { process, version } => (12, *version, 0, format!("process {process} has it")),
            Event::OwnerLost => (13, 0, 0, String::new()),
            Event::Resumed { .. } => (14, 0, 0, String::new()),
            // The enumeration may grow; programs ignore what they do not know.
            _ => (0, 0, 0, String::new()),
        };
        let mut message = [0; 128];
        text::write(&text, &mut message);
        SrdmaEvent { size: size_of::<SrdmaEvent>(), kind, error: -error, version, message }
    }
}

/// A process as a member that has no sign.
fn process_number(process: i32) -> u64 {
    u64::try_from(process).unwrap_or(0)
}

/// A timeout in milliseconds; below 0 there is none.
pub(crate) fn timeout(timeout_ms: c_int) -> Duration {
    u64::try_from(timeout_ms).map_or(Duration::MAX, Duration::from_millis)
}

/// The error of an empty queue of events.
pub(crate) fn no_event() -> Failure {
    Failure::new(libc::EAGAIN, "there is no event")
}

/// The error of a function for the other role.
pub(crate) fn wrong_role(needed: &str) -> Failure {
    Failure::invalid(format!("the group's handle is not that of a {needed}"))
}
