//! The functions of `srdma.h`.

use crate::errors::{Failure, call, last_message, number};
use crate::structures::{
    SrdmaBuffer, SrdmaEvent, SrdmaGroupOptions, SrdmaJoinOptions, SrdmaOptions, SrdmaRegion, SrdmaStatistics, copied,
    elements, no_event, open, put_sized, timeout, wrong_role,
};
use crate::text;
use srdma::{Buffer, Device, JoinOptions, MAX_REGIONS, Receiver, Region, Source, Version};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// `struct srdma_group`: a source or a receiver.
#[derive(Debug)]
pub struct SrdmaGroup(Role);

enum Role {
    Source(Source),
    Receiver { receiver: Receiver, group: u32 },
}

impl std::fmt::Debug for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Role::Source(source) => write!(f, "source of group {}", source.group()),
            Role::Receiver { group, .. } => write!(f, "receiver of group {group}"),
        }
    }
}

impl Role {
    fn source(&self) -> Result<&Source, Failure> {
        match self {
            Role::Source(source) => Ok(source),
            Role::Receiver { .. } => Err(wrong_role("source")),
        }
    }

    fn receiver(&self) -> Result<&Receiver, Failure> {
        match self {
            Role::Receiver { receiver, .. } => Ok(receiver),
            Role::Source(_) => Err(wrong_role("receiver")),
        }
    }
}

/// `struct srdma_version`.
#[derive(Debug)]
pub struct SrdmaVersion {
    version: Version,
    /// The buffers' names as C has them.
    names: Vec<CString>,
}

/// A reference to a handle.
///
/// # Safety
///
/// A pointer that is not NULL must be that of a handle of this library, which is not closed meanwhile.
unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the contract of the function.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::invalid(format!("{name} is NULL")))
}

/// Writes a result.
///
/// # Safety
///
/// A pointer that is not NULL must be writable.
unsafe fn put<T>(to: *mut T, name: &str, value: impl FnOnce() -> Result<T, Failure>) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    let value = value()?;
    // SAFETY: the contract of the function.
    unsafe { to.write(value) };
    Ok(())
}

/// See `srdma.h`.
#[unsafe(no_mangle)]
pub extern "C" fn srdma_library_version() -> u32 {
    let part = |text: &str| text.parse::<u32>().unwrap_or(0);
    let [major, minor, patch] =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    part(major) << 16 | part(minor) << 8 | part(patch)
}

/// See `srdma.h`.
#[unsafe(no_mangle)]
pub extern "C" fn srdma_strerror(error: c_int) -> *const c_char {
    let text: &CStr = match error.saturating_abs() {
        0 => c"success",
        libc::EINVAL => c"an argument is invalid",
        libc::ENODEV => c"there is no such provider or device",
        libc::EACCES => c"the token or the certificates are not accepted",
        libc::ECONNREFUSED => c"the controller cannot be reached",
        libc::EPERM => c"the controller refuses",
        libc::ENOENT => c"there is no such group, version or buffer",
        libc::EADDRNOTAVAIL => c"the address is not one of this host",
        libc::EADDRINUSE => c"another RoCEv2 endpoint uses the address",
        libc::EHOSTUNREACH => c"there is no route to the Proxy Address",
        libc::EPROTO => c"the group is not one of this library",
        libc::ENOSPC => c"the memory is too small",
        libc::ENOMEM => c"there is not so much memory",
        libc::ETIMEDOUT => c"not in time",
        libc::EALREADY => c"done already, or the version is not greater",
        libc::EAGAIN => c"nothing now, or too much waits",
        libc::EBADMSG => c"the version is damaged or malformed",
        libc::ESHUTDOWN => c"the group is closed",
        libc::ECONNRESET => c"the receiver was evicted",
        libc::EOPNOTSUPP => c"the device cannot do that, or the memory is that of a GPU",
        libc::EBUSY => c"the program has a log of its own",
        libc::ECHILD => c"the handle belongs to the parent process",
        libc::E2BIG => c"the structure is newer than the library",
        libc::EIO => c"the queue pair, the socket or the library has failed",
        _ => c"no error of this library",
    };
    text.as_ptr()
}

/// See `srdma.h`.
#[unsafe(no_mangle)]
pub extern "C" fn srdma_last_message() -> *const c_char {
    last_message()
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_open(options: *const SrdmaOptions, device: *mut *mut Device) -> c_int {
    // SAFETY: the contract of the function.
    call(|| unsafe { put(device, "device", || open(options).map(|device| Box::into_raw(Box::new(device)))) })
}

/// See `srdma.h`.
///
/// # Safety
///
/// `device` is NULL or a handle that is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_close(device: *mut Device) {
    call(|| {
        if !device.is_null() {
            // SAFETY: the handle was made by `Box::into_raw`, and is used no more.
            drop(unsafe { Box::from_raw(device) });
        }
        Ok(())
    });
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_create(
    device: *mut Device,
    options: *const SrdmaGroupOptions,
    group: *mut *mut SrdmaGroup,
) -> c_int {
    let create = || {
        // SAFETY: the contract of the function.
        let (device, options) = unsafe { (handle(device, "device")?, copied(options, "options")?.options()?) };
        Ok(boxed(Role::Source(device.create_group(&options)?)))
    };
    // SAFETY: the contract of the function.
    call(|| unsafe { put(group, "group", create) })
}

fn boxed(role: Role) -> *mut SrdmaGroup {
    Box::into_raw(Box::new(SrdmaGroup(role)))
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says; `base` is NULL, or writable for `length` octets until the group is closed and its
/// versions are released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_join(
    device: *mut Device,
    number: u32,
    base: *mut c_void,
    length: usize,
    group: *mut *mut SrdmaGroup,
) -> c_int {
    let join = || {
        // SAFETY: the contract of the function.
        let device = unsafe { handle(device, "device")? };
        // SAFETY: the contract of the function.
        let region = NonNull::new(base.cast()).map(|base| unsafe { Region::from_raw(base, length) });
        let receiver = device.join(number, JoinOptions { region, ..JoinOptions::default() })?;
        Ok(boxed(Role::Receiver { receiver, group: number }))
    };
    // SAFETY: the contract of the function.
    call(|| unsafe { put(group, "group", join) })
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says; each base is writable for its length until the group is closed and its versions are
/// released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_join_regions(
    device: *mut Device,
    number: u32,
    regions: *const SrdmaRegion,
    count: usize,
    group: *mut *mut SrdmaGroup,
) -> c_int {
    let join = || {
        // SAFETY: the contract of the function.
        let device = unsafe { handle(device, "device")? };
        // SAFETY: the contract of the function.
        let given = unsafe { elements(regions, count, MAX_REGIONS) };
        let given =
            given.ok_or_else(|| Failure::invalid(format!("{count} regions, at most {MAX_REGIONS}, or NULL")))?;
        let region = |region: &SrdmaRegion| {
            let base = NonNull::new(region.base.cast());
            // SAFETY: the contract of the function.
            base.map(|base| unsafe { Region::from_raw(base, region.length) })
                .ok_or_else(|| Failure::invalid("the base of a region is NULL"))
        };
        let mut given = given.iter().map(region).collect::<Result<Vec<_>, _>>()?.into_iter();
        let options = JoinOptions { region: given.next(), more_regions: given.collect(), ..JoinOptions::default() };
        let receiver = device.join(number, options)?;
        Ok(boxed(Role::Receiver { receiver, group: number }))
    };
    // SAFETY: the contract of the function.
    call(|| unsafe { put(group, "group", join) })
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says; `base` of the options is NULL, or writable for `length` octets until the group is
/// closed and its versions are released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_join_with(
    device: *mut Device,
    number: u32,
    options: *const SrdmaJoinOptions,
    group: *mut *mut SrdmaGroup,
) -> c_int {
    let join = || {
        // SAFETY: the contract of the function.
        let (device, options) = unsafe { (handle(device, "device")?, copied(options, "options")?.options()?) };
        Ok(boxed(Role::Receiver { receiver: device.join(number, options)?, group: number }))
    };
    // SAFETY: the contract of the function.
    call(|| unsafe { put(group, "group", join) })
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_number(group: *mut SrdmaGroup, number: *mut u32) -> c_int {
    call(|| {
        // SAFETY: the contract of the function.
        let group = unsafe { handle(group, "group")? };
        let value = match &group.0 {
            Role::Source(source) => source.group(),
            Role::Receiver { group, .. } => *group,
        };
        // SAFETY: the contract of the function.
        unsafe { put(number, "number", || Ok(value)) }
    })
}

/// See `srdma.h`.
///
/// # Safety
///
/// `group` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_commit(group: *mut SrdmaGroup, receivers: u32, timeout_ms: c_int) -> c_int {
    // SAFETY: the contract of the function.
    call(|| Ok(unsafe { handle(group, "group")? }.0.source()?.commit(receivers, timeout(timeout_ms))?))
}

/// See `srdma.h`.
///
/// # Safety
///
/// `group` is NULL or a handle that is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_close(group: *mut SrdmaGroup) -> c_int {
    call(|| {
        if group.is_null() {
            return Err(Failure::invalid("group is NULL"));
        }
        // SAFETY: the handle was made by `Box::into_raw`, and is used no more.
        match unsafe { Box::from_raw(group) }.0 {
            Role::Source(source) => Ok(source.close()?),
            Role::Receiver { receiver, .. } => Ok(receiver.close()?),
        }
    })
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says; the buffers are readable until the version is published or has failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_publish(
    group: *mut SrdmaGroup,
    version: u64,
    buffers: *const SrdmaBuffer,
    count: usize,
) -> c_int {
    // SAFETY: the contract of the function.
    call(|| unsafe { publish(group, version, buffers, std::ptr::null(), count) })
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says; the buffers are readable until the version is published or has failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_publish_regions(
    group: *mut SrdmaGroup,
    version: u64,
    buffers: *const SrdmaBuffer,
    regions: *const u32,
    count: usize,
) -> c_int {
    // SAFETY: the contract of the function.
    call(|| unsafe { publish(group, version, buffers, regions, count) })
}

/// Publishes buffers, each in the region of its number; all in the first one if `regions` is NULL.
///
/// # Safety
///
/// As those of the functions of the interface.
unsafe fn publish(
    group: *mut SrdmaGroup,
    version: u64,
    buffers: *const SrdmaBuffer,
    regions: *const u32,
    count: usize,
) -> Result<(), Failure> {
    // SAFETY: the contract of the function.
    let source = unsafe { handle(group, "group")? }.0.source()?;
    // SAFETY: the contract of the function.
    let given = unsafe { elements(buffers, count, srdma::MAX_BUFFERS) };
    let most = srdma::MAX_BUFFERS;
    let given = given.ok_or_else(|| Failure::invalid(format!("{count} buffers, at most {most}, or NULL")))?;
    // SAFETY: the contract of the function. There are not more than buffers.
    let regions = unsafe { elements(regions, count, most) }.unwrap_or_default();
    let regions = regions.iter().copied().chain(std::iter::repeat(0));
    let to_buffer = |(given, region): (&SrdmaBuffer, u32)| {
        // SAFETY: the contract of the function.
        let buffer = unsafe { to_buffer(given) }?;
        // One that is beyond all regions is refused as such.
        Ok(buffer.in_region(u8::try_from(region).unwrap_or(u8::MAX)))
    };
    let buffers = given.iter().zip(regions).map(to_buffer).collect::<Result<_, Failure>>()?;
    Ok(source.publish(version, buffers)?)
}

/// # Safety
///
/// The octets are readable until the buffer is dropped, and the name ends by NUL.
unsafe fn to_buffer(buffer: &SrdmaBuffer) -> Result<Buffer, Failure> {
    // SAFETY: the contract of the function.
    let name = unsafe { text::optional(buffer.name, "the name of a buffer")? };
    let name = name.ok_or_else(|| Failure::invalid("the name of a buffer is NULL"))?;
    match NonNull::new(buffer.base.cast_mut().cast()) {
        // SAFETY: the contract of the function.
        Some(base) => Ok(unsafe { Buffer::from_raw(name, base, buffer.length) }),
        None if buffer.length == 0 => Ok(Buffer::new(name, [])),
        None => Err(Failure::invalid(format!("the base of buffer {name:?} is NULL"))),
    }
}

/// See `srdma.h`.
///
/// # Safety
///
/// `group` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_wait(group: *mut SrdmaGroup, version: u64, timeout_ms: c_int) -> c_int {
    // SAFETY: the contract of the function.
    call(|| Ok(unsafe { handle(group, "group")? }.0.source()?.wait(version, timeout(timeout_ms))?))
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_take(
    group: *mut SrdmaGroup,
    timeout_ms: c_int,
    version: *mut *mut SrdmaVersion,
) -> c_int {
    let take = || {
        // SAFETY: the contract of the function.
        let version = unsafe { handle(group, "group")? }.0.receiver()?.next_version(timeout(timeout_ms))?;
        let buffers = version.manifest().buffers().iter();
        // A manifest has no name with a NUL.
        let names = buffers.map(|entry| CString::new(entry.name.as_str()).unwrap_or_default()).collect();
        Ok(Box::into_raw(Box::new(SrdmaVersion { version, names })))
    };
    // SAFETY: the contract of the function.
    call(|| unsafe { put(version, "version", take) })
}

/// See `srdma.h`.
///
/// # Safety
///
/// `version` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_version_number(version: *const SrdmaVersion) -> u64 {
    // SAFETY: the contract of the function.
    unsafe { version.as_ref() }.map_or(0, |version| version.version.number())
}

/// See `srdma.h`.
///
/// # Safety
///
/// `version` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_version_buffers(version: *const SrdmaVersion) -> usize {
    // SAFETY: the contract of the function.
    unsafe { version.as_ref() }.map_or(0, |version| version.names.len())
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_version_buffer(
    version: *const SrdmaVersion,
    index: usize,
    buffer: *mut SrdmaBuffer,
) -> c_int {
    call(|| {
        // SAFETY: the contract of the function.
        let version = unsafe { handle(version, "version")? };
        // SAFETY: the contract of the function.
        unsafe { put(buffer, "buffer", || version.buffer(index)) }
    })
}

impl SrdmaVersion {
    fn buffer(&self, index: usize) -> Result<SrdmaBuffer, Failure> {
        let found = self.names.get(index).zip(self.version.buffer_at(index));
        let (name, octets) = found.ok_or_else(|| Failure::new(libc::ENOENT, format!("there is no buffer {index}")))?;
        Ok(SrdmaBuffer { name: name.as_ptr(), base: octets.as_ptr().cast(), length: octets.len() })
    }
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_version_find(
    version: *const SrdmaVersion,
    name: *const c_char,
    buffer: *mut SrdmaBuffer,
) -> c_int {
    call(|| {
        // SAFETY: the contract of the function.
        let version = unsafe { handle(version, "version")? };
        if name.is_null() {
            return Err(Failure::invalid("name is NULL"));
        }
        // SAFETY: the contract of the function.
        let name = unsafe { CStr::from_ptr(name) };
        let index = version.names.iter().position(|other| other.as_c_str() == name);
        let no_such = || Failure::new(libc::ENOENT, format!("there is no buffer {name:?}"));
        let index = index.ok_or_else(no_such)?;
        // SAFETY: the contract of the function.
        unsafe { put(buffer, "buffer", || version.buffer(index)) }
    })
}

/// See `srdma.h`.
///
/// # Safety
///
/// `version` is NULL or a handle that is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_release(version: *mut SrdmaVersion) {
    call(|| {
        if !version.is_null() {
            // SAFETY: the handle was made by `Box::into_raw`, and is used no more.
            drop(unsafe { Box::from_raw(version) });
        }
        Ok(())
    });
}

/// See `srdma.h`.
///
/// # Safety
///
/// `group` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_fd(group: *mut SrdmaGroup) -> c_int {
    number(|| {
        // SAFETY: the contract of the function.
        Ok(match &unsafe { handle(group, "group")? }.0 {
            Role::Source(source) => source.as_raw_fd(),
            Role::Receiver { receiver, .. } => receiver.as_raw_fd(),
        })
    })
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_next_event(group: *mut SrdmaGroup, event: *mut SrdmaEvent) -> c_int {
    call(|| {
        // SAFETY: the contract of the function.
        let group = unsafe { handle(group, "group")? };
        let next = || {
            let next = match &group.0 {
                Role::Source(source) => source.next_event()?,
                Role::Receiver { receiver, .. } => receiver.next_event()?,
            };
            Ok(SrdmaEvent::of(&next.ok_or_else(no_event)?))
        };
        // Through version, which the first version of the structure has.
        let least = std::mem::offset_of!(SrdmaEvent, message);
        // SAFETY: the contract of the function.
        unsafe { put_sized(event, "event", least, next) }
    })
}

/// See `srdma.h`.
///
/// # Safety
///
/// Pointers are as `srdma.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_group_statistics(group: *mut SrdmaGroup, statistics: *mut SrdmaStatistics) -> c_int {
    call(|| {
        // SAFETY: the contract of the function.
        let group = unsafe { handle(group, "group")? };
        let found = || {
            let found = match &group.0 {
                Role::Source(source) => source.statistics()?,
                Role::Receiver { receiver, .. } => receiver.statistics()?,
            };
            Ok(SrdmaStatistics::of(&found))
        };
        // SAFETY: the contract of the function.
        unsafe { put_sized(statistics, "statistics", size_of::<usize>(), found) }
    })
}
