//! The controller's agent in the control task: applies orders, and sends status.

use super::Control;
use crate::configuration::{Configuration, ControllerLink, ControllerSettings, HostLinks};
use crate::daemon::agent::{ControllerClient, ControllerEvent, Hint, HintClient, neighbour_of, status_of};
use crate::daemon::error::DaemonError;
use crate::daemon::handle::Died;
use crate::daemon::interest;
use crate::daemon::memory;
use crate::daemon::order::Refusal;
use crate::daemon::snapshot::{ControllerSnapshot, Snapshot};
use srdma_agent::{Agent, AllowedSids, Change, GroupTable, Plan};
use srdma_api::{Link, NodeAnswer, NodeOrder, PROTOCOL, Registration};
use srdma_dataplane::{BfdPeer, Command};
use srdma_node_spec::{Entries, Owner};
use srdma_wire::Prefix;
use std::time::Instant;

/// The connection to the controller, if one is configured.
#[derive(Debug)]
pub(super) struct ControllerSide {
    client: Option<ControllerClient>,
    hints: Option<HintClient>,
    pub(super) agent: Agent,
    started: Instant,
}

impl ControllerSide {
    /// Connects to the controller of a configuration, if it has one.
    pub(super) fn start(configuration: &Configuration) -> Result<Self, DaemonError> {
        let settings = configuration.controller.as_ref();
        let allowed =
            |settings: &ControllerSettings| AllowedSids { end_mt: settings.end_mt, replication: settings.replication };
        let start = |settings: &ControllerSettings| {
            Ok((ControllerClient::start(settings.clone())?, HintClient::start(settings.clone())?))
        };
        let threads = settings.map(start).transpose();
        let threads = threads.map_err(super::system("cannot start the threads of the controller client"))?;
        let (client, hints) = threads.unzip();
        Ok(ControllerSide {
            client,
            hints,
            agent: Agent::new(settings.map(allowed).unwrap_or_default()),
            started: Instant::now(),
        })
    }

    /// The controller's groups at this node.
    pub(super) fn table(&self) -> &GroupTable {
        &self.agent.table
    }

    /// Waits for the controller's thread; never returns without one.
    pub(super) async fn event(&mut self) -> ControllerEvent {
        if let Some(client) = &mut self.client {
            if let Some(event) = client.event().await {
                return event;
            }
            self.client = None;
            let reason = "the thread of the controller client has died; its last lines are above";
            return ControllerEvent::Failed(reason.into());
        }
        std::future::pending().await
    }

    /// Sets the status and the pending evictions from a snapshot.
    pub(super) fn observe(&mut self, snapshot: &Snapshot, settings: &ControllerSettings, host_links: &[HostLinks]) {
        let table = &self.agent.table;
        let groups = snapshot.groups.iter().filter(|group| table.contains(group.id));
        self.agent.evictions.set(groups.flat_map(|group| {
            group.to_evict.iter().map(|eviction| (group.id, eviction.receiver, eviction.cause.name()))
        }));
        let status = status_of(snapshot, settings, host_links, |group| table.contains(group));
        self.agent.set_status(status);
    }

    /// Reports the neighbour of a BFD session that has gone down, at once and in the next status.
    pub(super) fn neighbour_lost(&mut self, peer: BfdPeer, settings: &ControllerSettings) {
        let BfdPeer { port, address } = peer;
        if let (Some(hints), Some(neighbour)) =
            (&self.hints, neighbour_of(port.map(|port| port.index()), address, settings))
        {
            self.agent.add_unreachable(neighbour);
            hints.report(Hint::Unreachable(neighbour));
        }
    }

    /// Reports hosts whose links have gone down, at once and in the next status (D291).
    pub(super) fn hosts_lost(&mut self, hosts: Vec<Prefix>) {
        if let Some(hints) = self.hints.as_ref().filter(|_| !hosts.is_empty()) {
            self.agent.add_lost_hosts(&hosts);
            hints.report(Hint::LostHosts(hosts));
        }
    }

    /// The controller in the node's status.
    pub(super) fn snapshot(&self, settings: &ControllerSettings) -> ControllerSnapshot {
        ControllerSnapshot {
            url: settings.url.clone(),
            is_reached: self.agent.is_connected(),
            error: self.agent.error().map(str::to_owned),
            groups: self.agent.table.len(),
        }
    }
}

impl Control {
    /// Handles an event of the controller's thread.
    pub(super) async fn controller_event(&mut self, event: ControllerEvent) -> Result<(), Died> {
        match event {
            ControllerEvent::Register(reply) => {
                if let Some(settings) = self.configuration.controller.clone() {
                    reply.send(Box::new(self.controller.agent.registration(self.registration(&settings))));
                }
            }
            ControllerEvent::Registered => {
                self.controller.agent.registered();
                let groups = self.controller.table().len();
                tracing::info!(controller = self.controller_url(), groups, "registered");
            }
            ControllerEvent::Report(reply) => {
                let now_ns = self.controller.started.elapsed().as_nanos() as u64;
                reply.send(self.controller.agent.report(now_ns));
            }
            ControllerEvent::Orders(orders, reply) => {
                if self.controller.agent.answered() {
                    tracing::info!(controller = self.controller_url(), "the controller is reachable again");
                }
                reply.send(self.carry_out_all(orders).await?);
            }
            ControllerEvent::Lease(end) => self.data.lease(end).await?,
            ControllerEvent::Failed(reason) => {
                if self.controller.agent.failed(reason.clone()) {
                    tracing::warn!(reason, "no connection to the controller: the node keeps its groups");
                }
            }
        }
        Ok(())
    }

    fn controller_url(&self) -> Option<&str> {
        self.configuration.controller.as_ref().map(|settings| settings.url.as_str())
    }

    fn registration(&self, settings: &ControllerSettings) -> Registration {
        let ports = &self.configuration.spec.node.ports;
        let least = ports.iter().map(|port| port.link_mtu).min().unwrap_or(1280);
        let link = |link: &ControllerLink| {
            let of_port = link.port.and_then(|port| ports.get(port.index())).map_or(least, |port| port.link_mtu);
            Link { to: link.to, mtu: link.mtu.unwrap_or(of_port), cost: link.cost }
        };
        Registration {
            protocol: PROTOCOL,
            name: settings.name.clone(),
            loopback: self.configuration.spec.node.loopback,
            end_mt: settings.end_mt,
            replication: settings.replication,
            links: settings.links.iter().map(link).collect(),
            hosts: settings.hosts.clone(),
            groups: Vec::new(),
            repairs: memory::buffer_octets(&self.configuration) > 0,
        }
    }

    async fn carry_out_all(&mut self, orders: Vec<NodeOrder>) -> Result<Vec<NodeAnswer>, Died> {
        if orders.is_empty() {
            return Ok(Vec::new());
        }
        tracing::debug!(orders = orders.len(), "orders of the controller");
        let mut answers = Vec::new();
        for order in orders {
            answers.extend(self.carry_out(order).await?);
        }
        self.settle_neighbours().await?;
        Ok(answers)
    }

    /// Has the kernel resolve the neighbours that the entries of all owners lead to. Prepared entries count as well.
    pub(super) async fn settle_neighbours(&mut self) -> Result<(), Died> {
        let mut entries = self.layers.above(Owner::Kernel);
        entries.extend(entries_of(self.controller.table().commands_with_prepared()));
        let effects = self.kernel.configure(&self.configuration, &entries, self.layers.get_mut(Owner::Kernel));
        self.apply_effects(&effects).await?;
        self.settle_with_kernel().await;
        Ok(())
    }

    /// Executes an order; returns its answer, if it has one.
    async fn carry_out(&mut self, order: NodeOrder) -> Result<Option<NodeAnswer>, Died> {
        let groups = &self.layers.get(Owner::File).groups;
        let is_of_file = |group: u32| groups.contains_key(&group);
        match self.controller.table().plan(order, is_of_file) {
            Plan::Nothing => Ok(None),
            Plan::Answer(answer) => Ok(Some(answer)),
            Plan::Apply(change) => self.apply(*change).await,
        }
    }

    async fn apply(&mut self, change: Change) -> Result<Option<NodeAnswer>, Died> {
        let (after, answer) = self.controller.table().apply(&change);
        let interest = |table: &GroupTable| {
            change.changes_interest().then(|| {
                let entries = self.layers.preview(Owner::Controller, &entries_of(table.commands()));
                interest::of(&self.configuration, &entries)
            })
        };
        let (before, wanted) = (interest(self.controller.table()), interest(&after));
        let reason = match self.data.change(wanted, change.commands.clone()).await? {
            Ok(()) => None,
            // No command was applied.
            Err(Refusal::Interest(reason)) => Some(reason),
            Err(Refusal::Command(reason)) => change.refused(reason.clone()).map(|_| reason),
        };
        let Some(reason) = reason else {
            self.controller.agent.table = after;
            self.layers.set(Owner::Controller, entries_of(self.controller.table().commands()));
            if let Err(Refusal::Interest(reason) | Refusal::Command(reason)) =
                self.data.change(None, change.afterwards).await?
            {
                tracing::warn!(reason, "cannot remove the former entry of a group");
            }
            return Ok(answer);
        };
        // Missing entries need no removal.
        let _ = self.data.change(before, change.undo.clone()).await?;
        tracing::warn!(reason, "an order of the controller was refused");
        Ok(change.refused(reason))
    }
}

/// Entries of the group table: groups and their SIDs.
pub(super) fn entries_of(commands: Vec<Command>) -> Entries {
    let mut entries = Entries::default();
    for command in commands {
        if let Command::AddGroup(entry) = command {
            entries.add_group(&entry);
        }
    }
    entries
}
