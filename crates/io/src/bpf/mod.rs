//! eBPF by bpf(2): maps, programs and links, without a compiler or a loader.

mod assembler;
pub mod fast_path;
mod redirect;
mod yardstick;

pub(crate) use redirect::Redirect;
pub use yardstick::{XdpSource, XdpYardstick};

use assembler::{Assembler, Helper, Instruction, Label, Register};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Verdicts of an XDP program.
const XDP_ABORTED: i32 = 0;
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_REDIRECT: i32 = 4;

/// Offsets in `struct xdp_md`.
const XDP_MD_DATA: i16 = 0;
const XDP_MD_DATA_END: i16 = 4;
const XDP_MD_RX_QUEUE_INDEX: i16 = 16;

/// Ends a program: the frame goes to the entry `R2` of a map, or `otherwise` is the verdict, as from a label on.
fn end_with_redirect(program: &mut Assembler, map: BorrowedFd<'_>, otherwise: i32, from: Label) {
    use Register::{R0, R1, R3};
    program.set_map(R1, map);
    program.set(R3, otherwise);
    program.call(Helper::RedirectMap);
    program.exit();
    program.place(from);
    program.set(R0, otherwise);
    program.exit();
}

/// The hook that runs an XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// The interface's own driver, before there is a socket buffer.
    Native,
    /// The kernel, for any interface, on socket buffers.
    Generic,
}

/// Commands of bpf(2), from `linux/bpf.h`.
#[derive(Clone, Copy)]
enum Operation {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    ProgramLoad = 5,
    ProgramTestRun = 10,
    LinkCreate = 28,
    LinkUpdate = 29,
}

/// The `union bpf_attr`: fields are put where the operation has them.
#[repr(C, align(8))]
struct Attributes([u8; 144]);

impl Attributes {
    fn new() -> Self {
        Attributes([0; 144])
    }

    fn u32(mut self, offset: usize, value: u32) -> Self {
        self.0[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// What an operation has answered at an offset.
    fn u32_at(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(std::array::from_fn(|index| self.0[offset + index]))
    }

    fn fd(self, offset: usize, fd: BorrowedFd<'_>) -> Self {
        self.u32(offset, fd.as_raw_fd() as u32)
    }

    fn pointer<T: ?Sized>(mut self, offset: usize, to: *const T) -> Self {
        self.0[offset..offset + 8].copy_from_slice(&(to.cast::<u8>() as u64).to_ne_bytes());
        self
    }

    /// # Safety
    ///
    /// Every pointer that was put in is valid for what the operation does with it.
    unsafe fn call(&mut self, operation: Operation) -> io::Result<i32> {
        // SAFETY: the attributes have the given length; the caller guarantees the pointers in them.
        let result = unsafe { libc::syscall(libc::SYS_bpf, operation as u32, self.0.as_mut_ptr(), self.0.len()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    /// # Safety
    ///
    /// As [`Attributes::call`]; and the operation answers with a new descriptor.
    unsafe fn call_for_fd(&mut self, operation: Operation) -> io::Result<OwnedFd> {
        // SAFETY: as the caller promises; the new descriptor is not owned elsewhere.
        unsafe { Ok(OwnedFd::from_raw_fd(self.call(operation)?)) }
    }
}

/// Kinds of maps, from `linux/bpf.h`.
#[derive(Clone, Copy)]
enum MapKind {
    Array = 2,
    PerCpuArray = 6,
    LpmTrie = 11,
    DevMap = 14,
    XskMap = 17,
}

/// A map with keys and values of exactly these sizes.
#[derive(Debug)]
struct Map<K, V> {
    fd: OwnedFd,
    entry: std::marker::PhantomData<fn(K, V)>,
}

/// Types of keys and values: octets without padding, any of which are valid.
trait Plain: Copy {}

impl Plain for u32 {}
impl<const N: usize> Plain for [u64; N] {}
impl<const N: usize> Plain for [u8; N] {}

impl<K: Plain, V: Plain> Map<K, V> {
    fn new(kind: MapKind, entries: u32, name: &CStr) -> io::Result<Self> {
        /// `BPF_F_NO_PREALLOC`, which tries insist on.
        const ALLOCATE_LATER: u32 = 1;
        let flags = if matches!(kind, MapKind::LpmTrie) { ALLOCATE_LATER } else { 0 };
        let mut attributes = Attributes::new()
            .u32(0, kind as u32)
            .u32(4, size_of::<K>() as u32)
            .u32(8, size_of::<V>() as u32)
            .u32(12, entries)
            .u32(16, flags)
            .name(28, name);
        // SAFETY: there is no pointer in it; a map is a descriptor.
        let fd = unsafe { attributes.call_for_fd(Operation::MapCreate)? };
        Ok(Map { fd, entry: std::marker::PhantomData })
    }

    fn set(&self, key: K, value: V) -> io::Result<()> {
        let mut attributes =
            Attributes::new().fd(0, self.fd.as_fd()).pointer(8, &raw const key).pointer(16, &raw const value);
        // SAFETY: key and value live through the call and have the sizes that the map was made with.
        unsafe { attributes.call(Operation::MapUpdate) }.map(|_| ())
    }

    /// Reads an entry of a map with a value for each processor.
    fn of_each_cpu(&self, key: K, cpus: usize) -> io::Result<Vec<V>>
    where
        V: Default,
    {
        debug_assert_eq!(size_of::<V>() % 8, 0, "the kernel aligns each value to eight octets");
        let mut values = vec![V::default(); cpus];
        let mut attributes =
            Attributes::new().fd(0, self.fd.as_fd()).pointer(8, &raw const key).pointer(16, values.as_mut_ptr());
        // SAFETY: key and values live through the call; there is a value of the map's size for each processor.
        unsafe { attributes.call(Operation::MapLookup) }.map(|_| values)
    }

    /// Writes an entry of a map with a value for each processor.
    fn set_of_each_cpu(&self, key: K, values: &[V]) -> io::Result<()> {
        let mut attributes =
            Attributes::new().fd(0, self.fd.as_fd()).pointer(8, &raw const key).pointer(16, values.as_ptr());
        // SAFETY: key and values live through the call; there is a value of the map's size for each processor.
        unsafe { attributes.call(Operation::MapUpdate) }.map(|_| ())
    }

    fn remove(&self, key: K) -> io::Result<()> {
        let mut attributes = Attributes::new().fd(0, self.fd.as_fd()).pointer(8, &raw const key);
        // SAFETY: the key lives through the call and has the size that the map was made with.
        unsafe { attributes.call(Operation::MapDelete) }.map(|_| ())
    }
}

impl Attributes {
    /// A name of at most 15 octets, which `bpftool` shows.
    fn name(mut self, offset: usize, name: &CStr) -> Self {
        let octets = name.to_bytes();
        let len = octets.len().min(15);
        self.0[offset..offset + len].copy_from_slice(&octets[..len]);
        self
    }
}

/// Loads an XDP program that frames of several buffers may be given to. The verifier's words are part of the error.
fn load_xdp(instructions: &[Instruction], name: &CStr) -> io::Result<OwnedFd> {
    const XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;
    const HAS_FRAGS: u32 = 1 << 5;
    const LOG_OCTETS: usize = 1 << 16;
    let license = c"Dual MIT/GPL";
    let load = |log: &mut [u8]| {
        let attributes = Attributes::new()
            .u32(0, XDP)
            .u32(4, instructions.len() as u32)
            .pointer(8, instructions.as_ptr())
            .pointer(16, license.as_ptr())
            .u32(44, HAS_FRAGS)
            .name(48, name)
            .u32(68, ATTACH_XDP);
        let mut attributes = match log.len() {
            0 => attributes,
            len => attributes.u32(24, 1).u32(28, len as u32).pointer(32, log.as_mut_ptr()),
        };
        // SAFETY: instructions, license and log live through the call, and their lengths are those given.
        unsafe { attributes.call_for_fd(Operation::ProgramLoad) }
    };
    load(&mut []).or_else(|error| {
        // Only a refused program is worth the verifier's words.
        if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) {
            return Err(error);
        }
        let mut log = vec![0; LOG_OCTETS];
        load(&mut log).map_err(|error| {
            let words = String::from_utf8_lossy(&log);
            io::Error::new(
                error.kind(),
                format!("{error}; the verifier says: {}", words.trim_end_matches(['\0', '\n'])),
            )
        })
    })
}

/// Runs a program for the frames of an interface until the descriptor that it returns is closed.
fn attach_xdp(program: BorrowedFd<'_>, interface_index: u32, mode: XdpMode) -> io::Result<OwnedFd> {
    const ATTACH_XDP: u32 = 37;
    let flags = match mode {
        XdpMode::Generic => 1 << 1,
        XdpMode::Native => 1 << 2,
    };
    let mut attributes = Attributes::new().fd(0, program).u32(4, interface_index).u32(8, ATTACH_XDP).u32(12, flags);
    // SAFETY: there is no pointer in it; a link is a descriptor.
    unsafe { attributes.call_for_fd(Operation::LinkCreate) }
}

/// Runs a program for an interface's link in place of the one that runs there, for the next frame on.
fn replace_xdp(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = Attributes::new().fd(0, link).fd(4, program);
    // SAFETY: there is no pointer in it.
    unsafe { attributes.call(Operation::LinkUpdate) }.map(|_| ())
}

/// Runs a program once for a frame of no interface, which it changes as it would one of an interface; returns its
/// verdict.
fn test_run(program: BorrowedFd<'_>, frame: &mut Vec<u8>) -> io::Result<i32> {
    let mut changed = vec![0; frame.len() + srdma_frame::HEADROOM];
    let mut attributes = Attributes::new()
        .fd(0, program)
        .u32(8, frame.len() as u32)
        .u32(12, changed.len() as u32)
        .pointer(16, frame.as_ptr())
        .pointer(24, changed.as_mut_ptr())
        .u32(32, 1);
    // SAFETY: both buffers live through the call and have the given lengths.
    unsafe { attributes.call(Operation::ProgramTestRun)? };
    changed.truncate(attributes.u32_at(12) as usize);
    *frame = changed;
    Ok(attributes.u32_at(4) as i32)
}

/// Runs a program for so many copies of a frame, and does with them as it says (Linux 5.18); returns the time for each,
/// without that of the beginning and the end.
fn send_by(program: BorrowedFd<'_>, frame: &[u8], count: u32) -> io::Result<Duration> {
    const LIVE_FRAMES: u32 = 1 << 1;
    let mut attributes = Attributes::new()
        .fd(0, program)
        .u32(8, frame.len() as u32)
        .pointer(16, frame.as_ptr())
        .u32(32, count)
        .u32(64, LIVE_FRAMES);
    // SAFETY: the frame lives through the call and has the given length.
    unsafe { attributes.call(Operation::ProgramTestRun)? };
    Ok(Duration::from_nanos(attributes.u32_at(36).into()))
}

/// Processors for which maps have values.
fn possible_cpus() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, text))
}
