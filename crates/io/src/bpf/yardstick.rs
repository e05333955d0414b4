//! The least that XDP programs can do: yardsticks for the fast path, and a source of frames for it.

use super::assembler::{Assembler, Condition, Instruction, Label, Register, Width};
use super::{Map, MapKind, XdpMode, attach_xdp, end_with_redirect, load_xdp, send_by};
use super::{XDP_ABORTED, XDP_DROP, XDP_MD_DATA, XDP_MD_DATA_END, XDP_PASS};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use Register::{R0, R1, R2, R3, R4, R5, R6};
use Width::{Four, Two};

const ETHERNET: i32 = 14;

/// A program that is compared with. Dropping it takes it off the interface.
#[derive(Debug)]
pub struct XdpYardstick {
    _link: OwnedFd,
    /// Frames are redirected by it.
    _interfaces: Option<Map<u32, u32>>,
}

impl XdpYardstick {
    /// Swaps the MAC addresses of every frame and redirects it to another interface, in native mode.
    ///
    /// # Errors
    ///
    /// If the kernel refuses map, program or link, or there is a program already.
    pub fn reflector(interface_index: u32, to: u32) -> io::Result<Self> {
        let interfaces = Map::new(MapKind::DevMap, 1, c"srdma_yardstick")?;
        interfaces.set(0, to)?;
        let program = load_xdp(&reflect(&interfaces), c"srdma_reflect")?;
        let link = attach_xdp(program.as_fd(), interface_index, XdpMode::Native)?;
        Ok(XdpYardstick { _link: link, _interfaces: Some(interfaces) })
    }

    /// Passes every frame to the kernel: a veth that has it receives by NAPI, and its peer takes redirected frames.
    ///
    /// # Errors
    ///
    /// If the kernel refuses program or link, or there is a program already.
    pub fn pass(interface_index: u32) -> io::Result<Self> {
        XdpYardstick::always(XDP_PASS, interface_index)
    }

    /// Drops every frame.
    ///
    /// # Errors
    ///
    /// As [`XdpYardstick::pass`].
    pub fn drop_all(interface_index: u32) -> io::Result<Self> {
        XdpYardstick::always(XDP_DROP, interface_index)
    }

    fn always(verdict: i32, interface_index: u32) -> io::Result<Self> {
        let mut program = Assembler::default();
        program.set(R0, verdict);
        program.exit();
        let program = load_xdp(&program.finish(), c"srdma_verdict")?;
        let link = attach_xdp(program.as_fd(), interface_index, XdpMode::Native)?;
        Ok(XdpYardstick { _link: link, _interfaces: None })
    }
}

/// A source of frames that an interface is given as an XDP program redirects them to it: without socket buffers.
#[derive(Debug)]
pub struct XdpSource {
    program: OwnedFd,
    frame: Vec<u8>,
    _interfaces: Map<u32, u32>,
}

/// Octets of a frame that are written anew each time, since its memory is used again: all headers, a multiple of 4.
const RENEWED: usize = 256;

impl XdpSource {
    /// The longest frame.
    pub const MAX_OCTETS: usize = 3072;

    /// Copies of a frame, to an interface of the namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If the kernel refuses map or program.
    pub fn new(to: u32, frame: &[u8]) -> io::Result<Self> {
        let interfaces = Map::new(MapKind::DevMap, 1, c"srdma_source")?;
        interfaces.set(0, to)?;
        let program = load_xdp(&renew(&interfaces, frame), c"srdma_source")?;
        Ok(XdpSource { program, frame: frame.to_vec(), _interfaces: interfaces })
    }

    /// Sends so many; returns the time for each, which includes all that follows from them on this processor.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it, as before Linux 5.18.
    pub fn send(&self, count: u32) -> io::Result<Duration> {
        send_by(self.program.as_fd(), &self.frame, count)
    }
}

/// Writes the beginning of a frame, and redirects it.
fn renew(interfaces: &Map<u32, u32>, frame: &[u8]) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let fails = program.label();
    let words = frame[..frame.len().min(RENEWED)].as_chunks::<4>().0;
    begin(&mut program, 4 * words.len() as i32, fails);
    for (word, offset) in words.iter().zip((0..).step_by(4)) {
        program.store_value(Four, R6, offset, i32::from_ne_bytes(*word));
    }
    program.set(R2, 0);
    end_with_redirect(&mut program, interfaces.fd.as_fd(), XDP_ABORTED, fails);
    program.finish()
}

fn reflect(interfaces: &Map<u32, u32>) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let pass = program.label();
    begin(&mut program, ETHERNET, pass);
    program.load(Four, R2, R6, 0);
    program.load(Two, R3, R6, 4);
    program.load(Four, R4, R6, 6);
    program.load(Two, R5, R6, 10);
    program.store(Four, R6, 0, R4);
    program.store(Two, R6, 4, R5);
    program.store(Four, R6, 6, R2);
    program.store(Two, R6, 10, R3);
    program.set(R2, 0);
    end_with_redirect(&mut program, interfaces.fd.as_fd(), XDP_PASS, pass);
    program.finish()
}

/// `R6` becomes the frame; leaves for `otherwise` unless it has so many octets.
fn begin(program: &mut Assembler, octets: i32, otherwise: Label) {
    program.load(Four, R6, R1, XDP_MD_DATA);
    program.load(Four, R2, R1, XDP_MD_DATA_END);
    program.copy(R3, R6);
    program.add(R3, octets);
    program.jump_if_register(R3, Condition::Greater, R2, otherwise);
}
