//! Ports and their interfaces: claims and presence.

use super::Control;
use crate::configuration::Configuration;
use crate::daemon::claim::Claim;
use crate::daemon::handle::Died;
use crate::daemon::order::{Attached, Loss};
use crate::daemon::{DaemonError, claim::ClaimError};
use nix::net::if_::if_nametoindex;
use srdma_frame::PortId;
use srdma_io::{DriverKind, OpenError};
use std::collections::BTreeMap;

/// Whether a port has a driver.
#[derive(Clone, Debug)]
pub(super) enum PortDriver {
    /// It has, of the interface with this index.
    Attached { driver: DriverKind, index: u32, number: u64 },
    /// It waits for its interface; the reason, once logged.
    Waiting { reason: Option<String> },
}

impl PortDriver {
    /// Before anything was tried.
    pub(super) const NONE: PortDriver = PortDriver::Waiting { reason: None };
}

/// The interfaces of a configuration that `known` does not have, claimed.
pub(super) fn claim_missing(
    configuration: &Configuration,
    known: &BTreeMap<String, Claim>,
) -> Result<BTreeMap<String, Claim>, DaemonError> {
    let ports = configuration.spec.node.ports.iter().zip(&configuration.interfaces);
    let missing = ports.filter(|(_, interface)| !known.contains_key(&interface.name));
    missing
        .map(|(port, interface)| {
            let failed = |error: ClaimError| DaemonError::claim(&port.name, &error);
            Ok((interface.name.clone(), Claim::of(&interface.name).map_err(failed)?))
        })
        .collect()
}

impl Control {
    /// Gives every port a driver whose interface is there.
    pub(super) async fn attach_all(&mut self) -> Result<(), DaemonError> {
        for index in 0..self.ports.len() {
            if let Some(error) = self.attach(index).await? {
                let (port, _) = self.names(index);
                return Err(DaemonError::Attach { port, error });
            }
        }
        Ok(())
    }

    /// Gives a port a driver, if its interface is there, and logs that. Returns the error of an interface that is there
    /// and cannot be used.
    async fn attach(&mut self, index: usize) -> Result<Option<OpenError>, Died> {
        let (id, interface) = (PortId(index as u16), self.configuration.interfaces[index].clone());
        if interface.parent.is_some() {
            return Ok(None);
        }
        let Ok(interface_index) = if_nametoindex(interface.name.as_str()) else {
            self.data.detach(id).await?;
            self.wait_for(index, "there is no such interface in this network namespace".to_owned());
            return Ok(None);
        };
        let attached = self.data.attach(id, interface).await?;
        // A driver may take as long as the watchdog waits for all of them.
        self.supervisor.alive();
        match attached {
            Ok(Attached { driver, note, number, group: _ }) => {
                let (port, interface) = self.names(index);
                // The note is the reason for none of the faster drivers.
                tracing::info!(port, interface, %driver, note, "attached");
                self.ports[index] = PortDriver::Attached { driver, index: interface_index, number };
                Ok(None)
            }
            Err(error @ OpenError::NoInterface { .. }) => {
                self.wait_for(index, error.to_string());
                Ok(None)
            }
            Err(error @ (OpenError::InUse { .. } | OpenError::Refused { .. })) => Ok(Some(error)),
        }
    }

    /// A port's driver has found that its interface is gone. That may have been noticed here first.
    pub(super) async fn lost(&mut self, loss: &Loss) -> Result<(), Died> {
        let index = loss.port.index();
        let is_current =
            |driver: &PortDriver| matches!(driver, PortDriver::Attached { number, .. } if *number == loss.number);
        // Threads that only send at the port learn it from the one that receives there.
        if loss.worker == self.data.receiver_of(loss.port) && is_current(&self.ports[index]) {
            self.data.detach(loss.port).await?;
            self.wait_for(index, loss.error.to_string());
        }
        Ok(())
    }

    /// Retries ports that wait, and those whose interface was replaced by another of its name.
    pub(super) async fn look_after_ports(&mut self) -> Result<(), Died> {
        let mut is_other = false;
        for index in 0..self.ports.len() {
            // The frames of a VLAN port come and go by its parent.
            if self.configuration.interfaces[index].parent.is_some() {
                continue;
            }
            let found = if_nametoindex(self.configuration.interfaces[index].name.as_str()).ok();
            let wants_driver = match &self.ports[index] {
                PortDriver::Attached { index, .. } => found != Some(*index),
                PortDriver::Waiting { reason } => found.is_some() || reason.is_none(),
            };
            if wants_driver {
                if let Some(error) = self.attach(index).await? {
                    self.wait_for(index, error.to_string());
                }
                is_other = true;
            }
        }
        if is_other {
            self.settle_with_kernel().await;
        }
        Ok(())
    }

    /// Whether a driver leaves the kernel what the node takes.
    pub(super) fn kernel_sees_frames(&self) -> bool {
        let sees = |port: &PortDriver| matches!(port, PortDriver::Attached { driver: DriverKind::Packet, .. });
        self.ports.iter().any(sees)
    }

    /// Marks a port as without driver. Logs the reason, unless it is that of the last log line.
    fn wait_for(&mut self, index: usize, why: String) {
        if let PortDriver::Waiting { reason: Some(reason) } = &self.ports[index]
            && *reason == why
        {
            return;
        }
        self.ports[index] = PortDriver::Waiting { reason: Some(why.clone()) };
        let (port, interface) = self.names(index);
        tracing::warn!(port, interface, reason = why, "waiting for the interface");
    }

    fn names(&self, index: usize) -> (String, String) {
        (self.configuration.spec.node.ports[index].name.clone(), self.configuration.interfaces[index].name.clone())
    }
}
