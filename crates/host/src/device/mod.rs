//! Transfers of `srdma send` and `srdma recv` by queue pairs of RDMA devices.

mod receiving;
mod sending;

pub use receiving::DeviceReceiver;
pub use sending::{DeviceSender, Sent};

use crate::connection::Connection;
use crate::open::WireError;
use crate::source_address;
use crate::transfer_error::TransferError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_verbs::{
    AckTimeout, Completion, CompletionQueue, Device, Event, LocalAddress, ProtectionDomain, QueuePair,
    QueuePairOptions, ReadyToReceive, ReadyToSend, VerbsError, WorkError,
};
use srdma_wire::{Psn, host_address};
use std::convert::Infallible;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::str::FromStr;
use std::time::Duration;

/// A device by its name, such as `mlx5_0` or `rxe0`, or by an address of it, of IPv4 an IPv4-mapped one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DeviceName {
    Name(String),
    Address(Ipv6Addr),
}

impl FromStr for DeviceName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(host_address(text).map_or_else(|| DeviceName::Name(text.to_owned()), DeviceName::Address))
    }
}

impl DeviceName {
    /// The address of this host in a transfer: the given one, else that of the device if it was named so, else the one
    /// that the kernel chooses toward the peer.
    ///
    /// # Errors
    ///
    /// If there is no route to the peer.
    pub fn address(&self, given: Option<Ipv6Addr>, peer: Option<Ipv6Addr>) -> Result<Option<Ipv6Addr>, WireError> {
        match (given, self, peer) {
            (Some(address), ..) => Ok(Some(address)),
            (None, DeviceName::Address(address), _) => Ok(Some(*address)),
            (None, DeviceName::Name(_), Some(peer)) => source_address(peer).map(Some),
            (None, DeviceName::Name(_), None) => Ok(None),
        }
    }
}

/// Why a transfer by a device failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DeviceError {
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error("a request of the queue pair failed: {0}")]
    Work(WorkError),
    #[error("{device}: {event}")]
    Event { device: String, event: Event },
    #[error("a message is longer than --message, {0} octets: give the sender's --message")]
    MessageTooLong(u32),
    #[error("there is no memory of {0} octets")]
    NoMemory(u64),
    #[error("cannot wait for completions: {0}")]
    Wait(io::Error),
}

/// An open device with a queue pair.
struct Opened {
    device: Device,
    local: LocalAddress,
    domain: ProtectionDomain,
    completions: CompletionQueue,
    pair: QueuePair,
}

impl Opened {
    fn open(name: &DeviceName, address: Ipv6Addr, options: QueuePairOptions) -> Result<Self, VerbsError> {
        let name = match name {
            DeviceName::Name(name) => Some(name.as_str()),
            DeviceName::Address(_) => None,
        };
        let (device, local) = Device::open_with_address(name, address)?;
        let domain = device.protection_domain()?;
        let completions = device.completion_queue(options.send_requests + options.receive_requests)?;
        let pair = domain.queue_pair(&options, &completions, &completions)?;
        Ok(Opened { device, local, domain, completions, pair })
    }

    /// From INIT to RTS. Its requests begin with `first_psn`, and those of the peer with `expected_psn`.
    fn connect(&self, connection: &Connection, first_psn: Psn, expected_psn: Psn) -> Result<(), VerbsError> {
        let (peer, qpn) = (connection.peer_address, connection.peer_qpn);
        self.pair.to_rtr(&ReadyToReceive::new(self.local, peer, qpn, expected_psn, connection.path_mtu))?;
        let ack_timeout = AckTimeout::new(connection.ack_timeout).unwrap_or(AckTimeout::DEFAULT);
        let retry_count = connection.retries;
        self.pair.to_rts(&ReadyToSend { ack_timeout, retry_count, ..ReadyToSend::new(first_psn) })
    }

    /// Completions so far; without any it waits for the next, at most so long.
    fn completions(&self, timeout: Duration) -> Result<Vec<Completion>, DeviceError> {
        let mut completions = Vec::new();
        self.completions.request_notification()?;
        while self.completions.poll(&mut completions)? > 0 {}
        while let Some(event) = self.device.next_event()? {
            // After others the transfer may go on, or its retries say that it does not.
            if event.ended().is_some() {
                return Err(DeviceError::Event { device: self.device.name().to_owned(), event });
            }
        }
        if !completions.is_empty() {
            return Ok(completions);
        }
        let descriptors = [self.completions.as_fd(), self.device.event_descriptor()];
        let mut descriptors = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
        let milliseconds = timeout.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(i32::MAX);
        match poll(&mut descriptors, PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(DeviceError::Wait(error.into())),
        }
        self.completions.take_events()?;
        while self.completions.poll(&mut completions)? > 0 {}
        Ok(completions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_name_or_an_address() {
        let parse = |text: &str| text.parse::<DeviceName>().expect("any text");
        assert_eq!(parse("rxe0"), DeviceName::Name("rxe0".to_owned()));
        let address = "2001:db8::1".parse().expect("an address");
        assert_eq!(parse("2001:db8::1"), DeviceName::Address(address));
        let of_ipv4 = "::ffff:192.0.2.1".parse().expect("an address");
        assert_eq!(parse("192.0.2.1"), DeviceName::Address(of_ipv4));
        assert_eq!(parse("2001:db8::1").address(None, None).expect("no route is needed"), Some(address));
        let other = "2001:db8::2".parse().expect("an address");
        assert_eq!(parse("rxe0").address(Some(other), None).expect("no route is needed"), Some(other));
        assert_eq!(parse("rxe0").address(None, None).expect("no route is needed"), None);
    }
}
