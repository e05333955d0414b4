//! Opening a device: the provider of queue pairs, and the controller that the groups are at.

use crate::error::{Error, Result};
use crate::provider::Provider;
use srdma_api::Client;
use srdma_host::{Connection, source_address};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// How to open a device.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// `udp`: RC endpoints on ordinary sockets, without privileges. `verbs`: the RDMA device that has the address;
    /// `verbs:NAME`: the RDMA device of this name, such as `verbs:mlx5_0`.
    pub provider: String,
    /// URL of the controller, or several separated by commas.
    pub controller: String,
    /// File with the bearer token.
    pub token_file: Option<PathBuf>,
    /// CA bundle (PEM) that verifies the controller's certificate [default: the system's].
    pub ca_file: Option<PathBuf>,
    /// The address of this host in groups [default: the one that the kernel chooses toward the group's Proxy Address;
    /// without a Proxy Address, the host's global IPv6 address, if it has a single one].
    /// With an RDMA device it is one of the device, for RoCE v2. One of IPv4 is IPv4-mapped: [`host_address`].
    ///
    /// [`host_address`]: crate::host_address
    pub address: Option<Ipv6Addr>,
}

impl DeviceOptions {
    /// Provider `udp`, and the controller at this URL, without a token.
    pub fn new(controller: impl Into<String>) -> Self {
        DeviceOptions {
            provider: "udp".to_owned(),
            controller: controller.into(),
            token_file: None,
            ca_file: None,
            address: None,
        }
    }

    /// Options from the environment, as `srdma send` and the other commands use it: the controller `SRDMA_CONTROLLER`,
    /// or port 8470 of this machine; the token file `SRDMA_TOKEN_FILE`; the CA bundle `SRDMA_CA`. `SRDMA_PROVIDER`
    /// is the provider, `udp` without.
    pub fn from_environment() -> Self {
        let file = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let controller = text("SRDMA_CONTROLLER");
        DeviceOptions {
            provider: text("SRDMA_PROVIDER").unwrap_or_else(|| "udp".to_owned()),
            token_file: file("SRDMA_TOKEN_FILE"),
            ca_file: file("SRDMA_CA"),
            ..DeviceOptions::new(controller.unwrap_or_else(|| "http://[::1]:8470".to_owned()))
        }
    }
}

/// A device. It has no state at the controller, and no socket: groups have.
#[derive(Clone)]
pub struct Device {
    pub(crate) client: Client,
    pub(crate) provider: Provider,
    address: Option<Ipv6Addr>,
    process: u32,
}

impl Device {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// If the provider is not available, or the controller's URL, the token or the certificates cannot be used. The
    /// controller is not asked.
    pub fn open(options: &DeviceOptions) -> Result<Self> {
        let provider = Provider::open(&options.provider, options.address)?;
        let read = |file: &PathBuf| {
            srdma_toml_error::read_private(file)
                .map(|text| text.trim().to_owned())
                .map_err(|error| Error::TokenFile(error.to_string()))
        };
        let token = options.token_file.as_ref().map(read).transpose()?;
        let client = Client::new(&options.controller, token, options.ca_file.as_deref())?;
        let DeviceOptions { provider: name, controller, address, .. } = options;
        tracing::debug!(provider = name, controller, ?address, "the device is open");
        Ok(Device { client, provider, address: options.address, process: std::process::id() })
    }

    pub(crate) fn check_process(&self) -> Result<()> {
        if std::process::id() == self.process { Ok(()) } else { Err(Error::Forked) }
    }

    /// The address of this host in a group.
    pub(crate) fn address_toward(&self, proxy: Option<Ipv6Addr>) -> Result<Ipv6Addr> {
        match (self.address, proxy) {
            (Some(address), _) => Ok(address),
            (None, Some(proxy)) => Ok(source_address(proxy)?),
            (None, None) => self.provider.only_address()?.ok_or(Error::NoAddress),
        }
    }
}

/// Packets of a source whose group's nodes do not repair, and whose receivers' buffers are not known.
pub(crate) const DEFAULT_WINDOW: u32 = 128;

/// A group as its controller describes it, in the types of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupAddress {
    pub(crate) id: u32,
    pub(crate) proxy: Ipv6Addr,
    pub(crate) designated_qpn: Qpn,
    pub(crate) initial_psn: Psn,
    pub(crate) path_mtu: PathMtu,
    /// Packets that the source may have in flight: the nodes repair so many (D160).
    pub(crate) window: u32,
}

impl GroupAddress {
    pub(crate) fn of(group: &srdma_api::Group) -> Result<Self> {
        let path_mtu = PathMtu::from_octets(group.path_mtu.into()).ok_or(Error::InvalidGroup("its path MTU"))?;
        let repair = Some(group.policy.repair).filter(|repair| !repair.is_off());
        Ok(GroupAddress {
            id: group.summary.id,
            proxy: group.summary.proxy,
            designated_qpn: Qpn::new(group.designated_qpn).ok_or(Error::InvalidGroup("its Designated QPN"))?,
            initial_psn: Psn::new(group.initial_psn),
            path_mtu,
            window: repair.map_or(DEFAULT_WINDOW, |repair| repair.window_packets(path_mtu)),
        })
    }

    /// The queue pair of a member. It never gives up by itself: the group's policy decides about silent receivers
    /// (D25), and the application by its timeouts.
    pub(crate) fn connection(&self, address: Ipv6Addr, qpn: Qpn) -> Connection {
        Connection {
            address,
            qpn,
            peer_address: self.proxy,
            peer_qpn: self.designated_qpn,
            psn: self.initial_psn,
            path_mtu: self.path_mtu,
            window: self.window,
            ack_timeout: 14,
            retries: 7,
        }
    }
}

/// A number that a peer does not know: from the operating system, by way of the standard library's hash keys.
pub(crate) fn unpredictable() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A queue pair number by chance, none of the reserved ones.
pub(crate) fn any_qpn() -> Qpn {
    const FIRST: u32 = 0x100;
    let number = FIRST + (unpredictable() % u64::from(0xFF_FFFF - FIRST)) as u32;
    let [_, a, b, c] = number.to_be_bytes();
    Qpn::from_octets([a, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_is_chosen_at_run_time() {
        let options = DeviceOptions::new("http://[::1]:8470");
        let error = |provider: &str| {
            let options = DeviceOptions { provider: provider.to_owned(), ..options.clone() };
            Device::open(&options).err().map(|error| error.to_string())
        };
        assert_eq!(error("udp"), None);
        let expected = "there is no provider \"shm\": udp, verbs, and verbs:NAME for the RDMA device of this name are";
        assert_eq!(error("shm").expect("refused"), expected);
        for name in ["", "UDP", "udp:eth0", "verbs:"] {
            assert!(error(name).expect("refused").starts_with("there is no provider "), "{name:?}");
        }
        // Without the library, without RDMA in the kernel, or without such a device: each sentence says what to do.
        let verbs = error("verbs:none0").expect("refused");
        assert!(
            ["install it", "modprobe", "rdma link", "devices: "].iter().any(|text| verbs.contains(text)),
            "{verbs}"
        );
    }

    #[test]
    fn options_that_cannot_be_used_are_refused_at_open() {
        let missing = PathBuf::from("/nonexistent/token");
        let with_token = DeviceOptions { token_file: Some(missing), ..DeviceOptions::new("http://[::1]:8470") };
        let error = Device::open(&with_token).err().expect("refused").to_string();
        assert!(error.contains("/nonexistent/token"), "{error}");
        let error = Device::open(&DeviceOptions::new("ftp://x")).err().expect("refused").to_string();
        assert!(error.starts_with("the controller: ftp://x: expected the URL"), "{error}");
        let [given, proxy] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().expect("an address"));
        let options = DeviceOptions { address: Some(given), ..DeviceOptions::new("http://[::1]:8470") };
        let device = Device::open(&options).expect("open");
        assert_eq!(device.address_toward(Some(proxy)).expect("given"), given);
    }

    #[test]
    fn queue_pair_numbers_are_by_chance_and_not_reserved() {
        let numbers: std::collections::BTreeSet<u32> = (0..100).map(|_| any_qpn().get()).collect();
        assert!(numbers.len() > 90 && numbers.iter().all(|number| (0x100..0xFF_FFFF).contains(number)));
    }
}
