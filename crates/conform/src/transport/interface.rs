//! Interfaces, each at the other end of a link of the device.

use super::{Device, DeviceError};
use crate::compare::is_complete;
use crate::{Frame, Mac, Step};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_io::RawSocket;
use srdma_io::nd::answer_for_anybody;
use srdma_wire::MacAddress;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The longest frame, as long as a jumbo frame can be.
const LONGEST_FRAME: usize = 16 << 10;

/// How many times the wait of a step is repeated for expected frames that are missing: the device, or this host, may be
/// busy. A device that does not send them costs that time.
const LATE: u32 = 9;

/// A device behind interfaces of this host. The tester answers each Neighbor Solicitation, as every neighbour.
#[derive(Debug)]
pub struct InterfaceDevice {
    ports: Vec<TesterPort>,
    wait: Duration,
}

#[derive(Debug)]
struct TesterPort {
    name: &'static str,
    interface: String,
    mac: Mac,
    socket: RawSocket,
}

impl InterfaceDevice {
    /// Opens the interface of each port in the namespace of the calling thread: the port's name, the interface, and the
    /// tester's MAC address there. After each step frames are received for the time `wait`, and for nine times as long
    /// again while expected ones are missing.
    ///
    /// # Errors
    ///
    /// If an interface does not exist, or the process lacks the privilege.
    pub fn open(ports: &[(&'static str, String, Mac)], wait: Duration) -> Result<Self, DeviceError> {
        let open = |(name, interface, mac): &(&'static str, String, Mac)| {
            let socket = RawSocket::open(interface).map_err(|error| {
                DeviceError::Unusable(format!(
                    "port {name}: cannot open interface {interface}: {error}; `ip link` lists those that are there, \
                     and this needs root or CAP_NET_RAW"
                ))
            })?;
            Ok(TesterPort { name, interface: interface.clone(), mac: *mac, socket })
        };
        Ok(InterfaceDevice { ports: ports.iter().map(open).collect::<Result<_, _>>()?, wait })
    }

    /// Receives frames for a time.
    fn collect(&self, time: Duration, frames: &mut Vec<Frame>) -> Result<(), DeviceError> {
        self.collect_until(time, frames, |_| false)
    }

    /// Receives frames until the time is over or they are complete.
    fn collect_until(
        &self,
        time: Duration,
        frames: &mut Vec<Frame>,
        is_complete: impl Fn(&[Frame]) -> bool,
    ) -> Result<(), DeviceError> {
        let end = Instant::now() + time;
        loop {
            for port in &self.ports {
                port.receive(frames)?;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || is_complete(frames) {
                return Ok(());
            }
            let mut waiting: Vec<PollFd<'_>> =
                self.ports.iter().map(|port| PollFd::new(port.socket.as_fd(), PollFlags::POLLIN)).collect();
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            // Both are checked after either a frame or the timeout.
            let _ = poll(&mut waiting, timeout);
        }
    }

    /// Receives the frames that follow the last one sent in a step.
    fn collect_rest(&self, step: &Step, frames: &mut Vec<Frame>) -> Result<(), DeviceError> {
        self.collect(self.wait + Duration::from_millis(step.takes_ms), frames)?;
        if is_complete(&step.expected, frames) {
            return Ok(());
        }
        self.collect_until(self.wait * LATE, frames, |frames| is_complete(&step.expected, frames))?;
        // Frames that must not come would be as late.
        self.collect(self.wait, frames)
    }
}

impl TesterPort {
    fn receive(&self, frames: &mut Vec<Frame>) -> Result<(), DeviceError> {
        let mut octets = vec![0; LONGEST_FRAME];
        while let Some(len) = self.socket.receive(&mut octets).map_err(|error| self.gone(error))? {
            let frame = &octets[..len.min(LONGEST_FRAME)];
            match answer_for_anybody(frame, MacAddress(self.mac.0)) {
                Some(answer) => self.send(&answer)?,
                None => frames.push(Frame { port: self.name, octets: frame.to_vec() }),
            }
        }
        Ok(())
    }

    fn send(&self, octets: &[u8]) -> Result<(), DeviceError> {
        self.socket.send(octets).map_err(|error| self.gone(error))
    }

    fn gone(&self, error: std::io::Error) -> DeviceError {
        DeviceError::Unusable(format!("port {}: interface {}: {error}", self.name, self.interface))
    }
}

impl Device for InterfaceDevice {
    fn name(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(|port| format!("{}={}", port.name, port.interface)).collect();
        format!("interfaces {}", ports.join(", "))
    }

    fn put(&mut self, steps: &[Step]) -> Result<Vec<Vec<Frame>>, DeviceError> {
        let mut observed = Vec::new();
        // Frames still in flight from before belong to no case.
        self.collect(Duration::ZERO, &mut Vec::new())?;
        for step in steps {
            let mut frames = Vec::new();
            for (place, frame) in step.sent.iter().enumerate() {
                if place > 0 && step.gap_ms > 0 {
                    self.collect(Duration::from_millis(step.gap_ms), &mut frames)?;
                }
                let port = self.ports.iter().find(|port| port.name == frame.port);
                let port =
                    port.ok_or_else(|| DeviceError::NoAnswer(format!("no interface for port {}", frame.port)))?;
                port.send(&frame.octets)?;
            }
            self.collect_rest(step, &mut frames)?;
            observed.push(frames);
        }
        Ok(observed)
    }
}
