//! Captures of all links at once.
//!
//! One packet socket in the namespace of the wires sees every frame as it comes off an end of a link: before the link
//! can lose it or make it wait, and in the order of the kernel's own time stamps.

use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::namespace;
use crate::network::{Side, WIRES};
use crate::topology::{Link, Topology};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt,
    socket, sockopt,
};
use srdma_capture::{InterfaceId, Writer};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// What may wait for the thread that writes: some tenths of a second of a busy lab.
const SOCKET_OCTETS: usize = 256 << 20;

/// Longer than any frame of a link.
const LONGEST_FRAME: usize = 1 << 16;

/// How often the thread looks whether it is to end.
const PATIENCE_MS: u16 = 50;

/// `PACKET_OUTGOING`: a frame on its way out of an interface, which has come in at another one before.
const OUTGOING: u8 = 4;

/// A capture that is going on.
#[derive(Debug)]
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Captured>>,
}

/// What a capture has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Frames in the files.
    pub frames: u64,
    /// Frames that came faster than they could be written.
    pub missed: u64,
}

impl Capture {
    /// Begins to capture each link to a file `LINK.pcapng` in this directory, which is made if need be.
    ///
    /// # Errors
    ///
    /// When a file or the socket cannot be made.
    pub fn start(instance: &Instance, topology: &Topology, directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).map_err(LabError::file("create", directory))?;
        let mut files = Vec::new();
        for link in &topology.links {
            let path = directory.join(format!("{}.pcapng", link.name));
            files.push(LinkFile::create(topology, link, &path).map_err(LabError::file("write", &path))?);
        }
        let names: Vec<(String, usize, Side)> =
            (0..files.len()).flat_map(|link| Side::BOTH.map(|side| (side.wire(link), link, side))).collect();
        let (socket, interfaces) = namespace::enter(&instance.namespace(WIRES), move || open(names))?
            .map_err(LabError::system("open a packet socket"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = thread::spawn(move || run(&socket, &interfaces, files, &seen));
        Ok(Capture { stop, thread })
    }

    /// Ends it, once what has been sent until now is written.
    ///
    /// # Errors
    ///
    /// When a file could not be written.
    pub fn finish(self) -> Result<Captured> {
        self.stop.store(true, Ordering::Release);
        match self.thread.join() {
            Ok(result) => result.map_err(LabError::system("write captures")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The file of a link, with an interface for each direction.
struct LinkFile {
    writer: Writer<BufWriter<File>>,
    directions: [InterfaceId; 2],
}

impl LinkFile {
    fn create(topology: &Topology, link: &Link, path: &Path) -> io::Result<Self> {
        let mut writer = Writer::new(BufWriter::new(File::create(path)?))?;
        let [a, b] = [Side::A, Side::B].map(|side| topology.nodes[side.of(link).node].name.as_str());
        let directions = [writer.add_interface(&format!("{a}->{b}"))?, writer.add_interface(&format!("{b}->{a}"))?];
        Ok(LinkFile { writer, directions })
    }
}

/// The number of each interface among the wires: its link, and from which end frames come in there.
type Interfaces = HashMap<usize, (usize, Side)>;

fn open(names: Vec<(String, usize, Side)>) -> nix::Result<(OwnedFd, Interfaces)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
    setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_OCTETS)?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    let interfaces = names
        .into_iter()
        .map(|(name, link, side)| Ok((if_nametoindex(name.as_str())? as usize, (link, side))))
        .collect::<nix::Result<_>>()?;
    Ok((socket, interfaces))
}

fn run(socket: &OwnedFd, interfaces: &Interfaces, mut files: Vec<LinkFile>, stop: &AtomicBool) -> io::Result<Captured> {
    let mut captured = Captured::default();
    let mut frame = vec![0; LONGEST_FRAME];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec, u32);
    loop {
        // Asked before the socket is: what was sent before the end was asked for is read.
        let is_last = stop.load(Ordering::Acquire);
        while let Some((arrival, missed)) = receive(socket, &mut frame, &mut control)? {
            captured.missed = captured.missed.max(missed.into());
            let Some((link, side)) = arrival.interface.and_then(|interface| interfaces.get(&interface)) else {
                continue;
            };
            let file = &mut files[*link];
            let octets = &frame[..arrival.length];
            file.writer.write_packet(file.directions[*side as usize], arrival.time_ns, &[octets])?;
            captured.frames += 1;
        }
        if is_last {
            files.into_iter().try_for_each(|file| file.writer.finish().map(drop))?;
            return Ok(captured);
        }
        let mut descriptors = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        // Whether a frame or the time has come, both are looked at.
        let _ = poll(&mut descriptors, PollTimeout::from(PATIENCE_MS));
    }
}

/// A frame that was received.
struct Arrival {
    length: usize,
    time_ns: u64,
    /// Where it came in; `None` when it goes out.
    interface: Option<usize>,
}

/// Receives a frame, if there is one, and learns how many found no room before it.
fn receive(socket: &OwnedFd, frame: &mut [u8], control: &mut [u8]) -> io::Result<Option<(Arrival, u32)>> {
    let mut pieces = [IoSliceMut::new(frame)];
    let message = match recvmsg::<LinkAddr>(socket.as_raw_fd(), &mut pieces, Some(control), MsgFlags::empty()) {
        Ok(message) => message,
        Err(Errno::EAGAIN) => return Ok(None),
        // An interface that goes down with the lab says so once; the others go on.
        Err(Errno::EINTR | Errno::ENETDOWN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (mut time_ns, mut missed) = (0, 0);
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::ScmTimestampns(time) => {
                time_ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
            }
            ControlMessageOwned::RxqOvfl(count) => missed = count,
            _ => {}
        }
    }
    let address = message.address.filter(|address| address.pkttype() != OUTGOING);
    let interface = address.map(|address| address.ifindex());
    Ok(Some((Arrival { length: message.bytes, time_ns, interface }, missed)))
}
