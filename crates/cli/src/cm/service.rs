//! The exchange with its messages and its group.

use super::controller::{Controller, Done};
use super::messages::Messages;
use crate::output::print_line;
use crate::programs_group;
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Serialize;
use srdma_api::SourceTransport;
use srdma_cm::{Action, DatagramError, End, Exchange, Group, Party, Receiver, Source};
use srdma_group::PsnOffset;
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Clock};

/// Interval for looking whether the controller has answered, and whether the process is interrupted.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Time for the group to be closed when all connections are over: a controller may still be making it.
const CLOSING: Duration = Duration::from_secs(30);

/// A client that has disconnected.
pub(super) struct Served {
    pub(super) client: Ipv6Addr,
    /// Time for which it was connected.
    pub(super) connected: Duration,
}

/// The line when the client is connected, for `--json`.
#[derive(Serialize)]
struct Connected {
    connected: Ipv6Addr,
}

pub(super) struct Service {
    exchange: Exchange,
    messages: Messages,
    controller: Controller,
    says_json: bool,
    begin: Clock,
    client: Option<Ipv6Addr>,
    servers: Vec<Ipv6Addr>,
    connected: Option<Clock>,
    end: Option<End>,
    /// When all connections were over.
    ended: Option<Clock>,
    /// Why there is no group.
    failure: Option<anyhow::Error>,
    refused: BTreeMap<String, u64>,
}

impl Service {
    pub(super) fn new(exchange: Exchange, messages: Messages, controller: Controller, says_json: bool) -> Self {
        Service {
            servers: exchange.servers().collect(),
            exchange,
            messages,
            controller,
            says_json,
            begin: Clock::now(),
            client: None,
            connected: None,
            end: None,
            ended: None,
            failure: None,
            refused: BTreeMap::new(),
        }
    }

    /// Messages that were refused, by their reasons.
    pub(super) fn into_refused(self) -> BTreeMap<String, u64> {
        self.refused
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.begin.elapsed()
    }

    /// Answers until a client has been served, or the time to wait for one is over.
    pub(super) fn run(&mut self, wait: Duration, is_interrupted: &AtomicBool) -> Result<Served> {
        let mut is_closing = false;
        loop {
            if is_interrupted.load(Ordering::Relaxed) && !std::mem::replace(&mut is_closing, true) {
                self.exchange.close(self.now());
            }
            ensure!(self.exchange.has_begun() || self.begin.elapsed() < wait, "no client has connected");
            while let Some(done) = self.controller.done() {
                match done {
                    Done::Made(Ok(())) => self.exchange.group_ready(self.now()),
                    Done::Made(Err(error)) => {
                        self.exchange.group_failed(self.now(), &format!("{error:#}"));
                        self.failure = Some(error);
                    }
                    Done::Closed(closed) => return self.result(closed),
                }
            }
            if self.ended.is_some_and(|ended| ended.elapsed() >= CLOSING) {
                return self.result(Err(anyhow!("the group is not closed yet: look for it by srdma group list")));
            }
            self.exchange.tick(self.now());
            self.act()?;
            let until = self.exchange.next_deadline().since(self.now());
            for (from, message) in self.messages.receive(until.min(LOOK_INTERVAL))? {
                let reason = match message {
                    Ok(mad) => self.exchange.receive(self.now(), from, &mad).err().map(|refusal| refusal.name()),
                    Err(DatagramError::Mad(_)) => Some("mad"),
                    Err(DatagramError::Icrc) => Some("icrc"),
                    Err(DatagramError::Length(_)) => Some("length"),
                    Err(DatagramError::NoMad(..)) => Some("no_mad"),
                    Err(DatagramError::NoGeneralServices) => Some("no_general_services"),
                };
                if let Some(reason) = reason {
                    *self.refused.entry(reason.to_owned()).or_default() += 1;
                }
            }
            self.act()?;
        }
    }

    fn act(&mut self) -> Result<()> {
        while let Some(action) = self.exchange.next_action() {
            match action {
                Action::Send(to, mad) => self.messages.send(to, &mad),
                Action::MakeGroup(group) => {
                    self.client = Some(group.source.address);
                    self.make(&group);
                }
                Action::Connected => {
                    self.connected = Some(Clock::now());
                    let connected = self.client.context("a client has connected")?;
                    print_line(&if self.says_json {
                        serde_json::to_string(&Connected { connected })?
                    } else {
                        format!("{connected} is connected")
                    })?;
                }
                Action::Finish(end) => {
                    self.controller.close(end == End::Disconnected);
                    self.end = Some(end);
                    self.ended = Some(Clock::now());
                }
            }
        }
        Ok(())
    }

    fn make(&self, group: &Group) {
        let Group { source, designated_qpn, initial_psn, receivers } = group;
        let Source { address, qpn, path_mtu, ack_timeout, retries } = *source;
        let source = programs_group::Source {
            address,
            qpn,
            designated_qpn: *designated_qpn,
            initial_psn: *initial_psn,
            path_mtu,
            transport: SourceTransport { ack_timeout, retries },
            region: None,
        };
        let receiver = |receiver: &Receiver| programs_group::Receiver {
            address: receiver.address,
            qpn: receiver.qpn,
            region: None,
            psn_offset: PsnOffset::between(*initial_psn, receiver.expected_psn),
        };
        self.controller.make(source, receivers.iter().map(receiver).collect());
    }

    fn result(&mut self, closed: Result<()>) -> Result<Served> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match self.end.take() {
            Some(End::Disconnected) => closed?,
            Some(End::Left(party)) => bail!("{} has disconnected", self.name(party)),
            Some(End::Rejected(party, reason, text)) => {
                let text = text.map(|text| format!(": {text}")).unwrap_or_default();
                bail!("{} has rejected the connection: {reason}{text}", self.name(party));
            }
            Some(End::Silent(party)) => bail!("{} does not answer", self.name(party)),
            Some(End::Late) => bail!("the receivers were not ready in time"),
            Some(End::NoGroup) => bail!("there is no group"),
            Some(End::Closed) | None => bail!("interrupted"),
        }
        let client = self.client.context("a client has connected")?;
        Ok(Served { client, connected: self.connected.map(|connected| connected.elapsed()).unwrap_or_default() })
    }

    fn name(&self, party: Party) -> String {
        match party {
            Party::Client => "the client".to_owned(),
            Party::Server(at) => match self.servers.get(at) {
                Some(address) => format!("server {address}"),
                None => format!("server {at}"),
            },
        }
    }
}
