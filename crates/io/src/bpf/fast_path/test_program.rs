//! The fast path without an interface: the kernel runs it for frames of the caller's.

use super::program::FastProgram;
use super::{Maps, Port};
use crate::bpf::assembler::{Assembler, Register};
use crate::bpf::{XDP_PASS, XDP_REDIRECT, load_xdp, test_run};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A program of a port that is at no interface.
#[derive(Debug)]
pub struct TestProgram {
    program: OwnedFd,
}

impl TestProgram {
    /// Loads it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it; the error has the verifier's words.
    pub fn load(maps: &Maps, port: &Port) -> io::Result<Self> {
        let mut program = Assembler::default();
        let element = program.label();
        program.copy(Register::R6, Register::R1);
        FastProgram { maps, port }.emit(&mut program, element);
        program.place(element);
        program.set(Register::R0, XDP_PASS);
        program.exit();
        Ok(TestProgram { program: load_xdp(&program.finish(), c"srdma_test")? })
    }

    /// Runs it for a frame, which it may change, and whose counters it counts; returns whether it forwards the frame
    /// rather than give it to the element.
    ///
    /// # Errors
    ///
    /// If the kernel cannot run it, or the verdict is neither.
    pub fn forwards(&self, frame: &mut Vec<u8>) -> io::Result<bool> {
        match test_run(self.program.as_fd(), frame)? {
            XDP_REDIRECT => Ok(true),
            XDP_PASS => Ok(false),
            verdict => Err(io::Error::other(format!("verdict {verdict}"))),
        }
    }
}
