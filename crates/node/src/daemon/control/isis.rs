//! IS-IS in the control task: ports to its task, learnt routes and SIDs from it.

use super::Control;
use crate::configuration::{IsisCircuit, IsisSettings};
use crate::daemon::handle::Died;
use crate::daemon::interest;
use crate::daemon::isis::{Inquiry, IsisEvent, IsisHandle, Learnt, Link, Plan};
use crate::daemon::order::Refusal;
use srdma_dataplane::{BackpressureSids, BfdPeer};
use srdma_node_spec::{Entries, Owner};
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The task, while the configuration has one, and what was last exchanged with it.
#[derive(Debug, Default)]
pub(super) struct IsisSide {
    handle: Option<IsisHandle>,
    learnt: Arc<Learnt>,
    /// Nodes whose notification SIDs do not count, and for which that was logged.
    silent: BTreeSet<String>,
}

impl IsisSide {
    /// Waits for an event; forever while there is no task.
    pub(super) async fn event(&mut self) -> IsisEvent {
        match &mut self.handle {
            Some(handle) => handle.event().await,
            None => std::future::pending().await,
        }
    }

    /// Handle for requesting the state of the system.
    pub(super) fn inquiry(&self) -> Option<Inquiry> {
        self.handle.as_ref().map(IsisHandle::inquiry)
    }

    /// BFD has lost a peer.
    pub(super) fn lose(&self, peer: BfdPeer) {
        if let Some(handle) = &self.handle {
            handle.lose(peer);
        }
    }

    /// Takes leave of the neighbours.
    pub(super) async fn stop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.stop().await;
        }
    }
}

impl Control {
    /// Updates the task to the present configuration and interfaces.
    pub(super) async fn settle_isis(&mut self) -> Result<(), Died> {
        let plan = self.configuration.isis.clone().map(|settings| self.plan(settings));
        match (plan, &mut self.isis.handle) {
            (Some(plan), Some(handle)) => handle.follow(plan),
            (Some(plan), none) => *none = Some(IsisHandle::start(plan)),
            (None, Some(_)) => {
                self.isis.stop().await;
                self.isis.learnt = Arc::default();
                self.use_learnt().await?;
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn plan(&self, settings: IsisSettings) -> Plan {
        let link = |circuit: &IsisCircuit| {
            let port = &circuit.port;
            let interface = self.configuration.interfaces.get(port.index());
            let facts = interface.and_then(|interface| self.facts.get(&interface.name));
            let config = self.configuration.spec.node.ports.get(port.index());
            let given = interface.and_then(|interface| interface.mac);
            Link {
                port: config.map(|config| config.name.clone()).unwrap_or_default(),
                index: self.kernel.mirror.interface(*port).filter(|(_, is_up)| *is_up).map(|(index, _)| index),
                mac: given.or(facts.map(|facts| facts.mac)).unwrap_or_default(),
                addresses: facts
                    .iter()
                    .flat_map(|facts| &facts.addresses)
                    .copied()
                    .filter(Ipv6Addr::is_unicast_link_local)
                    .collect(),
                link_mtu: config.map_or(1500, |config| config.link_mtu),
                bfd: circuit.bfd.then_some(*port),
            }
        };
        Plan { links: settings.circuits.iter().map(link).collect(), settings }
    }

    /// Applies an event of the task.
    pub(super) async fn isis_event(&mut self, event: IsisEvent) -> Result<(), Died> {
        match event {
            IsisEvent::Died => tracing::error!(target: "isis", "the IS-IS task has died; its last lines are above"),
            IsisEvent::Learnt => {
                if let Some(handle) = &mut self.isis.handle {
                    self.isis.learnt = handle.learnt();
                }
                self.use_learnt().await?;
            }
        }
        Ok(())
    }

    /// Applies what was learnt last, and logs once which nodes were ignored.
    async fn use_learnt(&mut self) -> Result<(), Died> {
        let learnt = Arc::clone(&self.isis.learnt);
        self.kernel.lead(&learnt.routes).await;
        self.say_refusal();
        self.apply_entries(&learnt).await?;
        for node in learnt.silent.difference(&self.isis.silent.clone()) {
            let text = "END.C or END.E is announced without the C-flag: nothing is sent there, and earlier entries are \
                        removed";
            tracing::warn!(target: "isis", node, "{text}");
        }
        self.isis.silent.clone_from(&learnt.silent);
        Ok(())
    }

    /// Brings the layer of IS-IS up to date: where notifications go (D63), BFD sessions with neighbours (D110), and
    /// ways around them (D266).
    async fn apply_entries(&mut self, learnt: &Learnt) -> Result<(), Died> {
        let of_entry = |(outer_source, end_c, end_e): (Prefix, Option<Ipv6Addr>, Option<Ipv6Addr>)| {
            (outer_source, BackpressureSids { outer_source, end_c, end_e })
        };
        let backpressure_sids = learnt.sids.iter().map(of_entry).collect();
        let is_other_bfd = self.layers.get(Owner::Isis).bfd != learnt.bfd;
        let (bfd, backups) = (learnt.bfd.clone(), learnt.backups.clone());
        let entries = Entries { backpressure_sids, bfd, backups, ..Entries::default() };
        let commands = self.layers.replace(Owner::Isis, entries);
        if commands.is_empty() {
            return Ok(());
        }
        let interest = || interest::of(&self.configuration, &self.layers.above(Owner::Kernel));
        match self.data.change(is_other_bfd.then(interest), commands).await? {
            Ok(()) => {}
            Err(Refusal::Interest(reason) | Refusal::Command(reason)) => {
                tracing::warn!(reason, "the node refuses what IS-IS has learnt");
            }
        }
        if is_other_bfd {
            self.settle_neighbours().await?;
        }
        Ok(())
    }

    /// Gives routes back that the kernel has dropped.
    pub(super) async fn restore_routes(&mut self) -> Result<(), Died> {
        if self.kernel.has_lost_routes() { self.use_learnt().await } else { Ok(()) }
    }
}
