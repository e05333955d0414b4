//! The controller: what its orders do to the node, and what it is told.

use super::Control;
use crate::configuration::{Configuration, ControllerLink, ControllerSettings};
use crate::daemon::agent::{Call, Change, Courier, Ledger, Report, Rules, Verdict, Wishes, status_of};
use crate::daemon::error::DaemonError;
use crate::daemon::event::Event;
use crate::daemon::handle::Died;
use crate::daemon::interest;
use crate::daemon::order::Refusal;
use crate::daemon::snapshot::{ControllerSnapshot, Snapshot};
use srdma_api::{Hello, Link, NodeAnswer, NodeOrder, NodeStatus, Prefix};
use srdma_dataplane::Command;
use std::time::Instant;

/// What the node has of its controller. Empty without one.
#[derive(Debug)]
pub(super) struct AgentSide {
    courier: Option<Courier>,
    pub(super) ledger: Ledger,
    wishes: Wishes,
    status: Option<NodeStatus>,
    /// Why the controller is not reached; none: it is, or was not tried yet.
    error: Option<String>,
    session: Option<u64>,
    started: Instant,
}

impl AgentSide {
    /// Begins to look for the controller of a configuration, if it has one.
    pub(super) fn start(configuration: &Configuration) -> Result<Self, DaemonError> {
        let settings = configuration.controller.as_ref();
        let rules =
            |settings: &ControllerSettings| Rules { end_mt: settings.end_mt, replication: settings.replication };
        let start = |settings: &ControllerSettings| Courier::start(settings.clone());
        Ok(AgentSide {
            courier: settings.map(start).transpose().map_err(super::system("cannot start the controller's thread"))?,
            ledger: Ledger::new(settings.map(rules).unwrap_or_default()),
            wishes: Wishes::default(),
            status: None,
            error: None,
            session: None,
            started: Instant::now(),
        })
    }

    /// Waits for the controller's thread; for ever, while there is none.
    pub(super) async fn call(&mut self) -> Call {
        if let Some(courier) = &mut self.courier {
            if let Some(call) = courier.call().await {
                return call;
            }
            self.courier = None;
            return Call::Lost("the thread that speaks with the controller has died; its last words are above".into());
        }
        std::future::pending().await
    }

    /// Takes note of what the node is like now.
    pub(super) fn observe(&mut self, snapshot: &Snapshot, settings: &ControllerSettings) {
        let given = snapshot.groups.iter().filter(|group| self.ledger.has(group.id));
        self.wishes.set(
            given.flat_map(|group| group.to_evict.iter().map(|eviction| (group.id, eviction.receiver, eviction.cause))),
        );
        self.status = Some(status_of(snapshot, settings, |group| self.ledger.has(group)));
    }

    /// What people are told of it.
    pub(super) fn snapshot(&self, settings: &ControllerSettings) -> ControllerSnapshot {
        ControllerSnapshot {
            url: settings.url.clone(),
            is_reached: self.session.is_some() && self.error.is_none(),
            error: self.error.clone(),
            groups: self.ledger.len(),
        }
    }
}

impl Control<'_> {
    /// The controller's thread has something, or asks something.
    pub(super) async fn answer_call(&mut self, call: Call) -> Result<(), Died> {
        match call {
            Call::Greet(reply) => {
                if let Some(settings) = self.configuration.controller.clone() {
                    reply.send(Box::new(self.hello(&settings)));
                }
            }
            Call::Greeted(session) => {
                self.agent.ledger.follow_store(session.store);
                self.agent.wishes.forget();
                self.agent.session = Some(session.session);
                self.agent.error = None;
                let groups = self.agent.ledger.len();
                self.say_of_controller(|url| format!("controller {url}: greeted, with {groups} of its groups"));
            }
            Call::Report(reply) => {
                let now_ns = self.agent.started.elapsed().as_nanos() as u64;
                reply.send(Report { wishes: self.agent.wishes.take(now_ns), status: self.agent.status.take() });
            }
            Call::Orders(orders, reply) => {
                self.heard_of_controller();
                reply.send(self.obey_all(orders).await?);
            }
            Call::Lost(reason) => {
                if self.agent.error.is_none() {
                    self.say(Event::Controller { text: format!("{reason}: the node goes on with what it has") });
                }
                self.agent.error = Some(reason);
            }
        }
        Ok(())
    }

    /// The controller answers again, and knows the session still.
    fn heard_of_controller(&mut self) {
        if self.agent.error.take().is_some() {
            self.say_of_controller(|url| format!("controller {url} answers again"));
        }
    }

    fn say_of_controller(&mut self, text: impl FnOnce(&str) -> String) {
        if let Some(settings) = &self.configuration.controller {
            let text = text(&settings.url);
            self.say(Event::Controller { text });
        }
    }

    fn hello(&self, settings: &ControllerSettings) -> Hello {
        let ports = &self.configuration.node.ports;
        let least = ports.iter().map(|port| port.link_mtu).min().unwrap_or(1280);
        let link = |link: &ControllerLink| {
            let of_port = link.port.and_then(|port| ports.get(port.index())).map_or(least, |port| port.link_mtu);
            Link { to: link.to, mtu: link.mtu.unwrap_or(of_port), cost: link.cost }
        };
        let prefix = |prefix: &srdma_dataplane::Prefix| Prefix::new(prefix.address(), prefix.prefix_len());
        Hello {
            name: settings.name.clone(),
            loopback: self.configuration.node.loopback,
            end_mt: settings.end_mt,
            replication: settings.replication.as_ref().and_then(prefix),
            links: settings.links.iter().map(link).collect(),
            hosts: settings.hosts.iter().filter_map(prefix).collect(),
            store: self.agent.ledger.store(),
            groups: self.agent.ledger.held(),
        }
    }

    async fn obey_all(&mut self, orders: Vec<NodeOrder>) -> Result<Vec<NodeAnswer>, Died> {
        if orders.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = Vec::new();
        for order in orders {
            answers.extend(self.obey(order).await?);
        }
        let effects = self.kernel.configure(&self.configuration, &self.agent.ledger.foreseen());
        self.tell(&effects).await?;
        self.settle_with_kernel().await;
        Ok(answers)
    }

    /// Carries an order out, and says what became of it.
    async fn obey(&mut self, order: NodeOrder) -> Result<Option<NodeAnswer>, Died> {
        let commands = &self.configuration.commands;
        let is_of_file = |group: u32| {
            commands.iter().any(|command| matches!(command, Command::AddGroup(entry) if entry.id.0 == group))
        };
        match self.agent.ledger.weigh(order, is_of_file) {
            Verdict::Nothing => Ok(None),
            Verdict::Answer(answer) => Ok(Some(answer)),
            Verdict::Tell(change) => self.tell_order(*change).await,
        }
    }

    async fn tell_order(&mut self, change: Change) -> Result<Option<NodeAnswer>, Died> {
        let (after, answer) = self.agent.ledger.taken(&change);
        let interest =
            |ledger: &Ledger| change.is_felt().then(|| interest::of(&self.configuration, &ledger.commands()));
        let (before, wanted) = (interest(&self.agent.ledger), interest(&after));
        let reason = match self.data.change(wanted, change.commands.clone()).await? {
            Ok(()) => None,
            // Nothing was carried out.
            Err(Refusal::Interest(reason)) => Some(reason),
            Err(Refusal::Command(reason)) => change.refused(reason.clone()).map(|_| reason),
        };
        let Some(reason) = reason else {
            self.agent.ledger = after;
            if let Err(Refusal::Interest(reason) | Refusal::Command(reason)) =
                self.data.change(None, change.afterwards).await?
            {
                self.say(Event::Failed { what: format!("what a group had before does not go: {reason}") });
            }
            return Ok(answer);
        };
        // What is not there need not be taken back.
        let _ = self.data.change(before, change.undo.clone()).await?;
        self.say(Event::Failed { what: format!("an order of the controller is refused: {reason}") });
        Ok(change.refused(reason))
    }
}
