//! The links of a node's ports: which of them are up, and what the node has to know about that.

use super::Mirror;
use crate::configuration::PortInterface;
use srdma_dataplane::Command;
use srdma_frame::PortId;

/// The links as the node knows them: all are up at first.
#[derive(Clone, Debug, Default)]
pub(in crate::daemon) struct PortLinks {
    down: Vec<PortId>,
}

impl PortLinks {
    /// Takes the present state of each port's link; returns a command for each that is another than before (D285).
    pub(in crate::daemon) fn follow(&mut self, links: &[bool]) -> Vec<Command> {
        let down: Vec<PortId> =
            (0..).map(PortId).zip(links).filter(|(_, is_up)| !**is_up).map(|(port, _)| port).collect();
        let before = std::mem::replace(&mut self.down, down);
        let gone = self.down.iter().filter(|port| !before.contains(port)).map(|port| (*port, false));
        let back = before.iter().filter(|port| !self.down.contains(port)).map(|port| (*port, true));
        gone.chain(back).map(|(port, is_up)| Command::SetLink { port, is_up }).collect()
    }
}

impl Mirror {
    /// Whether the link of each port is up: its interface is there, up, and has a carrier.
    pub(in crate::daemon) fn links(&self, ports: &[PortInterface]) -> Vec<bool> {
        let is_up = |port: PortId| self.interface(port).map(|(_, is_up)| is_up);
        // A VLAN port without a device of the kernel has its parent's link.
        let link = |(port, interface): (PortId, &PortInterface)| {
            is_up(port).or_else(|| is_up(interface.parent?)).unwrap_or(false)
        };
        (0..).map(PortId).zip(ports).map(link).collect()
    }
}
