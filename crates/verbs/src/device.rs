//! Devices and their ports.

use crate::completion::CompletionQueue;
use crate::error::{Result, VerbsError};
use crate::event::Event;
use crate::gid::{self, GidEntry, GidType};
use crate::region::ProtectionDomain;
use crate::sys::layout::{
    IBV_GID_TYPE_ROCE_V2, IBV_LINK_LAYER_ETHERNET, IBV_MTU_256, IBV_MTU_4096, IBV_PORT_ACTIVE, ibv_gid_entry,
};
use crate::sys::{self, Context, LIBRARY_NAME, Library};
use srdma_wire::PathMtu;
use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// GID indexes of requests have eight bits.
const MOST_GIDS: u32 = 256;

/// Names of the RDMA devices of this machine.
///
/// # Errors
///
/// If the library is missing, or the kernel has no RDMA.
pub fn devices() -> Result<Vec<String>> {
    sys::device_names(library()?).map_err(VerbsError::list)
}

fn library() -> Result<&'static Library> {
    Library::get().map_err(|error| VerbsError::load(LIBRARY_NAME, error))
}

/// An open device.
#[derive(Clone, Debug)]
pub struct Device {
    context: Arc<Context>,
    name: Arc<str>,
}

/// An address of a device: the port and the entry of its GID table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// The port, from 1.
    pub port: u8,
    /// Place in the port's GID table.
    pub gid_index: u8,
    /// The address.
    pub address: Ipv6Addr,
    /// Index of the network interface that has the address; 0 if unknown.
    pub interface_index: u32,
}

/// State of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// True if the port can send and receive.
    pub is_active: bool,
    /// True for RoCE, false for InfiniBand.
    pub is_ethernet: bool,
    /// The greatest path MTU that the interface's MTU allows; `None` for a value that the specification does not have.
    pub active_mtu: Option<PathMtu>,
    /// The longest message, in octets.
    pub max_message_octets: u32,
    /// Length of the GID table, with empty entries.
    pub gid_entries: u32,
}

/// Limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Number of ports.
    pub ports: u8,
    /// The longest memory region, in octets.
    pub max_region_octets: u64,
    /// Requests in a queue of a queue pair.
    pub max_requests: u32,
    /// Elements of a request.
    pub max_elements: u32,
    /// Completions in a completion queue.
    pub max_completions: u32,
}

impl Device {
    /// Opens a device by its name, such as `mlx5_0` or `rxe0`.
    ///
    /// # Errors
    ///
    /// If there is no such device, or this process may not use it.
    pub fn open(name: &str) -> Result<Self> {
        let library = library()?;
        match Context::open(library, name) {
            Ok(Some(context)) => Ok(Device { context: Arc::new(context), name: name.into() }),
            Ok(None) => match devices()? {
                present if present.is_empty() => Err(VerbsError::NoDevice),
                present => Err(VerbsError::NoSuchDevice { name: name.to_owned(), present }),
            },
            Err(sys::Error::System(error)) if error.raw_os_error() == Some(libc::ENOSYS) => {
                Err(VerbsError::NoRdmaInKernel)
            }
            Err(error) => Err(VerbsError::of(name, "open it", error)),
        }
    }

    /// Opens the device that has an address for RoCE v2 on an active port.
    ///
    /// # Errors
    ///
    /// If no device has it, or its port is down. A device that cannot be opened is an error only if no other one has
    /// the address.
    pub fn open_by_address(address: Ipv6Addr) -> Result<(Self, LocalAddress)> {
        let names = devices()?;
        if names.is_empty() {
            return Err(VerbsError::NoDevice);
        }
        let mut entries = Vec::new();
        let mut first_error = None;
        for name in &names {
            let found = Device::open(name).and_then(|device| Ok((device.gid_entries()?, device)));
            match found {
                Ok((of_device, device)) => match gid::choose(&of_device, address) {
                    Ok(entry) => return device.local_address(entry).map(|local| (device, local)),
                    Err(_) => entries.extend(of_device),
                },
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match (first_error, gid::choose(&entries, address)) {
            (None, Err(problem)) => Err(VerbsError::NoSuchAddress { address, problem }),
            (Some(error), _) => Err(error),
            (None, Ok(_)) => unreachable!("an entry of all devices that is one of none"),
        }
    }

    /// Opens the device of this name, which must have the address; without a name, the one that has it.
    ///
    /// # Errors
    ///
    /// As [`Device::open`] and [`Device::address`], or [`Device::open_by_address`].
    pub fn open_with_address(name: Option<&str>, address: Ipv6Addr) -> Result<(Self, LocalAddress)> {
        let Some(name) = name else { return Device::open_by_address(address) };
        let device = Device::open(name)?;
        let local = device.address(address)?;
        Ok((device, local))
    }

    /// The port and GID index of an address of this device, on an active port.
    ///
    /// # Errors
    ///
    /// If the device does not have it for RoCE v2, or its port is down.
    pub fn address(&self, address: Ipv6Addr) -> Result<LocalAddress> {
        let entry = gid::choose(&self.gid_entries()?, address);
        self.local_address(entry.map_err(|problem| VerbsError::NoSuchAddress { address, problem })?)
    }

    fn local_address(&self, entry: GidEntry) -> Result<LocalAddress> {
        let GidEntry { port, index, address, interface_index, gid_type: _ } = entry;
        if !self.port(port)?.is_active {
            return Err(VerbsError::PortDown { device: self.name().to_owned(), port });
        }
        Ok(LocalAddress { port, gid_index: index, address, interface_index })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its limits.
    ///
    /// # Errors
    ///
    /// If the device has failed.
    pub fn limits(&self) -> Result<DeviceLimits> {
        let attributes = self.context.query_device().map_err(|error| self.error("read its limits", error))?;
        let count = |number: i32| u32::try_from(number).unwrap_or(0);
        Ok(DeviceLimits {
            ports: attributes.phys_port_cnt,
            max_region_octets: attributes.max_mr_size,
            max_requests: count(attributes.max_qp_wr),
            max_elements: count(attributes.max_sge),
            max_completions: count(attributes.max_cqe),
        })
    }

    /// State of a port, from 1.
    ///
    /// # Errors
    ///
    /// If there is no such port.
    pub fn port(&self, port: u8) -> Result<Port> {
        let attributes =
            self.context.query_port(port).map_err(|error| self.error(format!("read port {port}"), error))?;
        Ok(Port {
            is_active: attributes.state == IBV_PORT_ACTIVE,
            is_ethernet: u32::from(attributes.link_layer) == IBV_LINK_LAYER_ETHERNET,
            active_mtu: path_mtu(attributes.active_mtu),
            max_message_octets: attributes.max_msg_sz,
            gid_entries: u32::try_from(attributes.gid_tbl_len).unwrap_or(0),
        })
    }

    /// The GIDs of all ports.
    ///
    /// # Errors
    ///
    /// If the device has failed.
    pub fn gid_entries(&self) -> Result<Vec<GidEntry>> {
        let mut entries = Vec::new();
        for port in 1..=self.limits()?.ports {
            for index in 0..self.port(port)?.gid_entries.min(MOST_GIDS) {
                let failed = |error| self.error(format!("read GID {index} of port {port}"), error);
                if let Some(entry) = self.context.query_gid(port, index).map_err(failed)? {
                    entries.extend(gid_entry(port, index, &entry));
                }
            }
        }
        Ok(entries)
    }

    /// A protection domain.
    ///
    /// # Errors
    ///
    /// If the device has no room for another.
    pub fn protection_domain(&self) -> Result<ProtectionDomain> {
        ProtectionDomain::new(self)
    }

    /// A completion queue for at least `entries` completions. With more outstanding requests than that, completions
    /// may be lost and the queue fail, by [`Event::CompletionQueueError`].
    ///
    /// # Errors
    ///
    /// If the device has no room for it.
    pub fn completion_queue(&self, entries: u32) -> Result<CompletionQueue> {
        CompletionQueue::new(self, entries)
    }

    /// The descriptor that is readable while an asynchronous event waits. It does not block.
    pub fn event_descriptor(&self) -> BorrowedFd<'_> {
        self.context.event_descriptor()
    }

    /// The next asynchronous event, if one waits.
    ///
    /// # Errors
    ///
    /// If the device was removed.
    pub fn next_event(&self) -> Result<Option<Event>> {
        let event = self.context.next_event().map_err(|error| self.error("read its events", error))?;
        Ok(event.map(Event::of))
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn error(&self, action: impl Into<String>, error: sys::Error) -> VerbsError {
        VerbsError::of(&self.name, action, error)
    }
}

fn gid_entry(port: u8, index: u32, entry: &ibv_gid_entry) -> Option<GidEntry> {
    let gid_type = if entry.gid_type == IBV_GID_TYPE_ROCE_V2 { GidType::RoceV2 } else { GidType::Other };
    let address = Ipv6Addr::from(entry.gid.raw);
    let index = u8::try_from(index).ok()?;
    Some(GidEntry { port, index, address, gid_type, interface_index: entry.ndev_ifindex })
}

/// Numbers 1 to 5 of `enum ibv_mtu`.
fn path_mtu(number: u32) -> Option<PathMtu> {
    let is_valid = (IBV_MTU_256..=IBV_MTU_4096).contains(&number);
    is_valid.then(|| PathMtu::from_octets(128 << number)).flatten()
}

/// The number of a path MTU in `enum ibv_mtu`.
pub(crate) fn path_mtu_number(path_mtu: PathMtu) -> u32 {
    path_mtu.octets().ilog2() - 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_mtus_have_the_numbers_of_the_header() {
        for (path_mtu_octets, number) in [(256, 1), (512, 2), (1024, 3), (2048, 4), (4096, 5)] {
            let expected = PathMtu::from_octets(path_mtu_octets).expect("a path MTU");
            assert_eq!(path_mtu(number), Some(expected));
            assert_eq!(path_mtu_number(expected), number);
        }
        assert_eq!((path_mtu(0), path_mtu(6)), (None, None));
    }
}
