//! Devices.

use crate::errors::{raised, released};
use crate::receiver::Receiver;
use crate::source::{self, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use srdma::{DeviceOptions, DigestKind, GroupOptions, JoinOptions, OnFailure, host_address};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

/// A device: a provider of queue pairs, and the controller that the groups are at.
///
/// What is not given comes from the environment, as for the commands: SRDMA_CONTROLLER, SRDMA_PROVIDER,
/// SRDMA_TOKEN_FILE, SRDMA_CA.
#[pyclass(frozen, module = "srdma")]
pub(crate) struct Device {
    device: srdma::Device,
    text: String,
}

fn address(text: &str, name: &str) -> PyResult<Ipv6Addr> {
    host_address(text).ok_or_else(|| PyValueError::new_err(format!("{name}: {text:?} is no IPv6 or IPv4 address")))
}

/// A time in seconds.
fn seconds(value: f64, name: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| PyValueError::new_err(format!("{name}: {value} s is no time")))
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (controller=None, *, provider=None, token_file=None, ca_file=None, address=None))]
    fn new(
        py: Python<'_>,
        controller: Option<String>,
        provider: Option<String>,
        token_file: Option<PathBuf>,
        ca_file: Option<PathBuf>,
        address: Option<&str>,
    ) -> PyResult<Self> {
        let mut options = DeviceOptions::from_environment();
        options.controller = controller.unwrap_or(options.controller);
        options.provider = provider.unwrap_or(options.provider);
        options.token_file = token_file.or(options.token_file);
        options.ca_file = ca_file.or(options.ca_file);
        options.address = address.map(|text| self::address(text, "address")).transpose()?;
        let text = format!("Device({:?}, provider={:?})", options.controller, options.provider);
        let device = released(py, || srdma::Device::open(&options))?;
        Ok(Device { device, text })
    }

    /// Creates a group whose source this host is; with `resume` in place of that group, whose source has died.
    #[pyo3(signature = (
        *, buffers=None, slot_octets=None, slots=2, name=None, proxy=None, path_mtu=None, digest=None, on_failure=None,
        stall=None, not_ready=None, min_receivers=None, slow_after=None, window_octets=None, keep_current=false,
        resume=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn create_group(
        &self,
        py: Python<'_>,
        buffers: Option<Bound<'_, PyAny>>,
        slot_octets: Option<u64>,
        slots: u16,
        name: Option<String>,
        proxy: Option<&str>,
        path_mtu: Option<u32>,
        digest: Option<&str>,
        on_failure: Option<&str>,
        stall: Option<f64>,
        not_ready: Option<f64>,
        min_receivers: Option<u32>,
        slow_after: Option<f64>,
        window_octets: Option<u32>,
        keep_current: bool,
        resume: Option<u32>,
    ) -> PyResult<Source> {
        let lengths = match (&buffers, slot_octets) {
            (Some(buffers), None) => source::lengths(buffers)?,
            (None, Some(_)) => Vec::new(),
            (Some(_), Some(_)) | (None, None) => {
                return Err(PyValueError::new_err("either buffers or slot_octets is needed"));
            }
        };
        let mut options = GroupOptions::for_buffers(lengths);
        options.slots.octets = slot_octets.unwrap_or(options.slots.octets);
        options.slots.count = slots;
        options.name = name;
        options.proxy = proxy.map(|text| address(text, "proxy")).transpose()?;
        options.path_mtu = path_mtu.unwrap_or(options.path_mtu);
        options.digest = match digest {
            None | Some("sha256") => DigestKind::Sha256,
            Some("crc32") => DigestKind::Crc32,
            Some(other) => return Err(PyValueError::new_err(format!("digest {other:?}: sha256 and crc32 are"))),
        };
        options.policy.on_failure = match on_failure {
            None | Some("evict") => OnFailure::Evict,
            Some("strict") => OnFailure::Strict,
            Some(other) => return Err(PyValueError::new_err(format!("on_failure {other:?}: evict and strict are"))),
        };
        let time = |value: Option<f64>, name| value.map(|value| seconds(value, name)).transpose();
        options.policy.t_stall = time(stall, "stall")?.unwrap_or(options.policy.t_stall);
        options.policy.t_not_ready = time(not_ready, "not_ready")?;
        options.policy.min_receivers = min_receivers.unwrap_or(options.policy.min_receivers);
        options.slow_after = time(slow_after, "slow_after")?.unwrap_or(options.slow_after);
        options.window_octets = window_octets;
        options.keeps_current = keep_current;
        let create = || match resume {
            Some(former) => self.device.resume_group(former, &options),
            None => self.device.create_group(&options),
        };
        Ok(Source::new(released(py, create)?))
    }

    /// Joins a group. With `shared`, all processes of this host that do so share one receiver.
    #[pyo3(signature = (group, *, shared = false, runtime_directory = None))]
    fn join(&self, py: Python<'_>, group: u32, shared: bool, runtime_directory: Option<PathBuf>) -> PyResult<Receiver> {
        let options = JoinOptions { shared, runtime_directory, ..JoinOptions::default() };
        let receiver = py.detach(|| self.device.join(group, options));
        Ok(Receiver::new(receiver.map_err(|error| raised(py, &error))?))
    }

    fn __repr__(&self) -> &str {
        &self.text
    }
}
