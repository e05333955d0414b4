//! Captures of all links at once.
//!
//! One tap in the namespace of the wires sees every frame as it comes off an end of a link: before the link can lose it
//! or make it wait, and in the order of the kernel's own time stamps.

use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::namespace;
use crate::network::{Side, WIRES};
use crate::topology::{Link, Topology};
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_capture::{InterfaceId, Writer};
use srdma_io::Tap;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Interval at which the thread checks for its end.
const PATIENCE_MS: u16 = 50;

/// A capture that is going on.
#[derive(Debug)]
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Captured>>,
}

/// Packets and octets of a capture.
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
    /// If a file or the socket cannot be made.
    pub fn start(instance: &Instance, topology: &Topology, directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).map_err(LabError::file("create", directory))?;
        let mut files = Vec::new();
        for link in &topology.links {
            let path = directory.join(format!("{}.pcapng", link.name));
            files.push(LinkFile::create(topology, link, &path).map_err(LabError::file("write", &path))?);
        }
        let names: Vec<(String, usize, Side)> =
            (0..files.len()).flat_map(|link| Side::BOTH.map(|side| (side.wire(link), link, side))).collect();
        let (tap, interfaces) = namespace::enter(&instance.namespace(WIRES), move || open(names))?
            .map_err(LabError::system("tap the links"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = thread::spawn(move || run(tap, &interfaces, files, &seen));
        Ok(Capture { stop, thread })
    }

    /// Ends it, once what has been sent until now is written.
    ///
    /// # Errors
    ///
    /// If a file could not be written.
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
type Interfaces = HashMap<u32, (usize, Side)>;

fn open(names: Vec<(String, usize, Side)>) -> io::Result<(Tap, Interfaces)> {
    let tap = Tap::open()?;
    let interfaces = names
        .into_iter()
        .map(|(name, link, side)| Ok((if_nametoindex(name.as_str())?, (link, side))))
        .collect::<nix::Result<_>>()?;
    Ok((tap, interfaces))
}

fn run(mut tap: Tap, interfaces: &Interfaces, mut files: Vec<LinkFile>, stop: &AtomicBool) -> io::Result<Captured> {
    let mut captured = Captured::default();
    loop {
        // Read before the tap is: frames that were sent before the end was requested are captured.
        let is_last = stop.load(Ordering::Acquire);
        while let Some(frame) = tap.next_frame() {
            if let Some((link, side)) = interfaces.get(&frame.interface) {
                let file = &mut files[*link];
                file.writer.write_packet(file.directions[*side as usize], frame.time_ns, &[frame.octets])?;
                captured.frames += 1;
            }
        }
        if is_last {
            captured.missed = tap.missed();
            files.into_iter().try_for_each(|file| file.writer.finish().map(drop))?;
            return Ok(captured);
        }
        let mut descriptors = [PollFd::new(tap.as_fd(), PollFlags::POLLIN)];
        // Both are checked after either a frame or the timeout.
        let _ = poll(&mut descriptors, PollTimeout::from(PATIENCE_MS));
    }
}
