//! Interfaces, each at the other end of a link of the device.

use super::{Device, DeviceError};
use crate::{Frame, Mac, Step};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_io::RawSocket;
use srdma_io::nd::answer_for_anybody;
use srdma_wire::MacAddress;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The longest frame, as long as a jumbo frame can be.
const LONGEST_FRAME: usize = 16 << 10;

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
    /// tester's MAC address there. After each step frames are received for the time `wait`.
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

    /// Frames received within a time.
    fn collect(&self, time: Duration) -> Result<Vec<Frame>, DeviceError> {
        let end = Instant::now() + time;
        let mut frames = Vec::new();
        loop {
            for port in &self.ports {
                port.receive(&mut frames)?;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(frames);
            }
            let mut waiting: Vec<PollFd<'_>> =
                self.ports.iter().map(|port| PollFd::new(port.socket.as_fd(), PollFlags::POLLIN)).collect();
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            // Both are checked after either a frame or the timeout.
            let _ = poll(&mut waiting, timeout);
        }
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
        self.collect(Duration::ZERO)?;
        for step in steps {
            let mut frames = Vec::new();
            for (place, frame) in step.sent.iter().enumerate() {
                if place > 0 && step.gap_ms > 0 {
                    frames.extend(self.collect(Duration::from_millis(step.gap_ms))?);
                }
                let port = self.ports.iter().find(|port| port.name == frame.port);
                let port =
                    port.ok_or_else(|| DeviceError::NoAnswer(format!("no interface for port {}", frame.port)))?;
                port.send(&frame.octets)?;
            }
            frames.extend(self.collect(self.wait + Duration::from_millis(step.takes_ms))?);
            observed.push(frames);
        }
        Ok(observed)
    }
}
