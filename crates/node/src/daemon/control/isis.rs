//! IS-IS in the control task: ports to its task, learnt routes and SIDs from it.

use super::Control;
use super::routing::RoutingSide;
use crate::configuration::{IsisCircuit, IsisSettings};
use crate::daemon::handle::Died;
use crate::daemon::interest;
use crate::daemon::isis::{self, Learnt, Link, Plan};
use crate::daemon::order::Refusal;
use crate::daemon::ospf;
use crate::daemon::routing::RoutingEvent;
use crate::daemon::snapshot::IsisSnapshot;
use srdma_dataplane::{BackpressureSids, BackupRoute, BfdPeer, NextHop};
use srdma_io::netlink::KernelNextHop;
use srdma_node_spec::{Entries, Owner};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The task of IS-IS.
pub(super) type IsisSide = RoutingSide<Plan, IsisSnapshot, BfdPeer>;

impl Control {
    /// Updates the tasks of routing protocols to the present configuration and interfaces.
    pub(super) async fn settle_routing(&mut self) -> Result<(), Died> {
        let isis = self.configuration.isis.clone().map(|settings| self.plan(settings));
        let ospf = self.configuration.ospf.clone().map(|settings| self.plan_of_ospf(settings));
        let has_ended = self.isis.settle(isis, isis::start).await | self.ospf.settle(ospf, ospf::start).await;
        if has_ended { self.use_learnt().await } else { Ok(()) }
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
                id: *port,
                index: self.kernel.mirror.interface(*port).filter(|(_, is_up)| *is_up).map(|(index, _)| index),
                mac: given.or(facts.map(|facts| facts.mac)).unwrap_or_default(),
                addresses: facts
                    .iter()
                    .flat_map(|facts| &facts.addresses)
                    .copied()
                    .filter(Ipv6Addr::is_unicast_link_local)
                    .collect(),
                link_mtu: config.map_or(1500, |config| config.link_mtu),
                has_bfd: circuit.bfd,
            }
        };
        Plan { links: settings.circuits.iter().map(link).collect(), settings }
    }

    /// Applies an event of the task of IS-IS.
    pub(super) async fn isis_event(&mut self, event: RoutingEvent) -> Result<(), Died> {
        if let RoutingEvent::Died = event {
            tracing::error!(target: "isis", "the IS-IS task has died; its last lines are above");
        }
        if self.isis.note(&event) { self.use_learnt().await } else { Ok(()) }
    }

    /// Applies what was learnt last, and logs once which nodes were ignored.
    pub(super) async fn use_learnt(&mut self) -> Result<(), Died> {
        let (isis, ospf) = (Arc::clone(&self.isis.learnt), Arc::clone(&self.ospf.learnt));
        self.kernel.lead(&routes_of_both(&isis, &ospf)).await;
        self.say_refusal();
        self.apply_entries(&isis).await?;
        self.apply_sids_of_ospf(&ospf).await?;
        self.hold_backed_up(&isis).await?;
        let text = "END.C or END.E is announced without the C-flag: nothing is sent there, and earlier entries are \
                    removed";
        for node in self.isis.newly_silent() {
            tracing::warn!(target: "isis", node, "{text}");
        }
        for node in self.ospf.newly_silent() {
            tracing::warn!(target: "ospf", node, "{text}");
        }
        Ok(())
    }

    /// Brings the layer of IS-IS up to date: where notifications go (D63), BFD sessions with neighbours (D110), and
    /// ways around them (D266).
    async fn apply_entries(&mut self, learnt: &Learnt) -> Result<(), Died> {
        let backpressure_sids = backpressure_sids(learnt);
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

    /// Has the mirror keep the routes that have backups when their link goes down (D285). What IS-IS does not reach any
    /// more is not kept.
    async fn hold_backed_up(&mut self, learnt: &Learnt) -> Result<(), Died> {
        let of_neighbour = |(hop, routes): (&NextHop, &Vec<BackupRoute>)| {
            let reached = routes.iter().map(|route| route.prefix).filter(|prefix| learnt.routes.contains_key(prefix));
            reached.map(|prefix| (prefix, *hop)).collect::<Vec<_>>()
        };
        self.kernel.mirror.set_backed_up(learnt.backups.iter().flat_map(of_neighbour).collect());
        let effects = self.kernel.mirror.flush(self.layers.get_mut(Owner::Kernel));
        self.apply_effects(&effects).await
    }

    /// Gives routes back that the kernel has dropped.
    pub(super) async fn restore_routes(&mut self) -> Result<(), Died> {
        if self.kernel.has_lost_routes() { self.use_learnt().await } else { Ok(()) }
    }
}

/// Of two routes to a prefix that of OSPFv3 counts (D279).
fn routes_of_both(isis: &Learnt, ospf: &Learnt) -> BTreeMap<Prefix, Vec<KernelNextHop>> {
    let mut routes = isis.routes.clone();
    routes.extend(ospf.routes.iter().map(|(prefix, hops)| (*prefix, hops.clone())));
    routes
}

/// Where notifications go, as entries of the node.
pub(super) fn backpressure_sids(learnt: &Learnt) -> BTreeMap<Prefix, BackpressureSids> {
    let of_entry = |(outer_source, end_c, end_e): (Prefix, Option<Ipv6Addr>, Option<Ipv6Addr>)| {
        (outer_source, BackpressureSids { outer_source, end_c, end_e })
    };
    learnt.sids.iter().map(of_entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D279.
    #[test]
    fn of_two_routes_that_of_ospf_counts() {
        let prefix = |last: u16| Prefix::new(Ipv6Addr::new(0x5F00, 0, last, 0, 0, 0, 0, 0), 48).expect("a prefix");
        let learnt = |index, prefixes: [u16; 2]| {
            let hop = KernelNextHop { index, gateway: None };
            let routes = prefixes.map(|last| (prefix(last), vec![hop])).into();
            Learnt { routes, ..Learnt::default() }
        };
        let routes = routes_of_both(&learnt(1, [1, 2]), &learnt(9, [2, 3]));
        let found: Vec<(Prefix, u32)> = routes.iter().map(|(prefix, hops)| (*prefix, hops[0].index)).collect();
        assert_eq!(found, [(prefix(1), 1), (prefix(2), 9), (prefix(3), 9)]);
    }
}
