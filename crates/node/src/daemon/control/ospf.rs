//! OSPFv3 in the control task: ports to its task, learnt routes and SIDs from it.

use super::Control;
use super::isis::backpressure_sids;
use super::routing::RoutingSide;
use crate::configuration::{OspfCircuit, OspfSettings};
use crate::daemon::handle::Died;
use crate::daemon::isis::Learnt;
use crate::daemon::order::Refusal;
use crate::daemon::ospf::{Link, Plan};
use crate::daemon::routing::RoutingEvent;
use crate::daemon::snapshot::OspfSnapshot;
use srdma_node_spec::{Entries, Owner};
use std::convert::Infallible;
use std::net::Ipv6Addr;

/// The task of OSPFv3.
pub(super) type OspfSide = RoutingSide<Plan, OspfSnapshot, Infallible>;

impl Control {
    pub(super) fn plan_of_ospf(&self, settings: OspfSettings) -> Plan {
        let link = |circuit: &OspfCircuit| {
            let port = &circuit.port;
            let interface = self.configuration.interfaces.get(port.index());
            let facts = interface.and_then(|interface| self.facts.get(&interface.name));
            let config = self.configuration.spec.node.ports.get(port.index());
            Link {
                port: config.map(|config| config.name.clone()).unwrap_or_default(),
                index: self.kernel.mirror.interface(*port).filter(|(_, is_up)| *is_up).map(|(index, _)| index),
                address: facts.and_then(|facts| facts.addresses.iter().copied().find(Ipv6Addr::is_unicast_link_local)),
                link_mtu: config.map_or(1500, |config| config.link_mtu),
            }
        };
        Plan { links: settings.circuits.iter().map(link).collect(), settings }
    }

    /// Applies an event of the task.
    pub(super) async fn ospf_event(&mut self, event: RoutingEvent) -> Result<(), Died> {
        if let RoutingEvent::Died = event {
            tracing::error!(target: "ospf", "the OSPFv3 task has died; its last lines are above");
        }
        if self.ospf.note(&event) { self.use_learnt().await } else { Ok(()) }
    }

    /// Brings the layer of OSPFv3 up to date: where notifications go (D63).
    pub(super) async fn apply_sids_of_ospf(&mut self, learnt: &Learnt) -> Result<(), Died> {
        let entries = Entries { backpressure_sids: backpressure_sids(learnt), ..Entries::default() };
        let commands = self.layers.replace(Owner::Ospf, entries);
        if commands.is_empty() {
            return Ok(());
        }
        match self.data.change(None, commands).await? {
            Ok(()) => {}
            Err(Refusal::Interest(reason) | Refusal::Command(reason)) => {
                tracing::warn!(reason, "the node refuses what OSPFv3 has learnt");
            }
        }
        Ok(())
    }
}
