//! The exchange with its messages and its group.

use super::controller::{Controller, Done};
use super::messages::Messages;
use crate::output::print_line;
use crate::programs_group;
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Serialize;
use srdma_api::SourceTransport;
use srdma_cm::{Action, DatagramError, End, Exchange, Exchanges, Group, Party, Receiver, Source};
use srdma_group::PsnOffset;
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
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
    connected: IpAddr,
    proxy: IpAddr,
}

/// Serves clients, one after the other.
pub(super) struct Service {
    exchanges: Exchanges,
    messages: Messages,
    says_json: bool,
    begin: Clock,
    /// Of the present exchange.
    state: State,
    refused: BTreeMap<String, u64>,
}

/// The state of an exchange.
struct State {
    controller: Controller,
    /// The service waits for its client since then.
    since: Clock,
    client: Option<Ipv6Addr>,
    servers: Vec<Ipv6Addr>,
    connected: Option<Clock>,
    end: Option<End>,
    /// When all connections were over.
    ended: Option<Clock>,
    /// Why there is no group.
    failure: Option<anyhow::Error>,
}

impl State {
    fn new(exchange: &Exchange, controller: Controller) -> Self {
        State {
            controller,
            since: Clock::now(),
            servers: exchange.servers().collect(),
            client: None,
            connected: None,
            end: None,
            ended: None,
            failure: None,
        }
    }
}

impl Service {
    pub(super) fn new(exchange: Exchange, messages: Messages, controller: Controller, says_json: bool) -> Self {
        Service {
            state: State::new(&exchange, controller),
            exchanges: Exchanges::new(exchange),
            messages,
            says_json,
            begin: Clock::now(),
            refused: BTreeMap::new(),
        }
    }

    /// The next client is served by this exchange.
    pub(super) fn succeed(&mut self, exchange: Exchange, controller: Controller) {
        self.state = State::new(&exchange, controller);
        self.exchanges.succeed(exchange);
    }

    /// No client has connected.
    pub(super) fn has_no_client(&self) -> bool {
        !self.exchanges.current().has_begun()
    }

    /// Messages that were refused since the last call, by their reasons.
    pub(super) fn take_refused(&mut self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.refused)
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.begin.elapsed()
    }

    /// Answers until a client has been served, or the time to wait for one is over; `None`: it was interrupted before
    /// one connected.
    pub(super) fn run(&mut self, wait: Duration, is_interrupted: &AtomicBool) -> Result<Option<Served>> {
        let mut is_closing = false;
        loop {
            let now = self.now();
            let exchange = self.exchanges.current_mut();
            if is_interrupted.load(Ordering::Relaxed) && !std::mem::replace(&mut is_closing, true) {
                if !exchange.has_begun() {
                    return Ok(None);
                }
                exchange.close(now);
            }
            ensure!(exchange.has_begun() || self.state.since.elapsed() < wait, "no client has connected");
            while let Some(done) = self.state.controller.done() {
                match done {
                    Done::Made(Ok(())) => exchange.group_ready(now),
                    Done::Made(Err(error)) => {
                        exchange.group_failed(now, &format!("{error:#}"));
                        self.state.failure = Some(error);
                    }
                    Done::Closed(closed) => return self.state.result(closed).map(Some),
                }
            }
            if self.state.ended.is_some_and(|ended| ended.elapsed() >= CLOSING) {
                let closed = Err(anyhow!("the group is not closed yet: look for it by srdma group list"));
                return self.state.result(closed).map(Some);
            }
            exchange.tick(now);
            let until = exchange.next_deadline().since(now);
            self.act()?;
            self.receive(until.min(LOOK_INTERVAL))?;
            self.act()?;
        }
    }

    fn receive(&mut self, timeout: Duration) -> Result<()> {
        for (from, message) in self.messages.receive(timeout)? {
            let now = self.now();
            let reason = match message {
                Ok(mad) => self.exchanges.receive(now, from, &mad).err().map(|refusal| refusal.name()),
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
        Ok(())
    }

    fn act(&mut self) -> Result<()> {
        while let Some(action) = self.exchanges.next_action() {
            match action {
                Action::Send(to, mad) => self.messages.send(to, &mad),
                Action::MakeGroup(group) => self.state.make(&group),
                Action::Connected => {
                    let connected = self.state.connects()?.to_canonical();
                    let proxy = self.messages.proxy().to_canonical();
                    print_line(&if self.says_json {
                        serde_json::to_string(&Connected { connected, proxy })?
                    } else {
                        format!("{connected} is connected")
                    })?;
                }
                Action::Finish(end) => self.state.ends(end),
            }
        }
        Ok(())
    }
}

impl State {
    fn make(&mut self, group: &Group) {
        let Group { source, designated_qpn, initial_psn, receivers } = group;
        let Source { address, qpn, path_mtu, ack_timeout, retries } = *source;
        self.client = Some(address);
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

    /// The client is connected; gives its address.
    fn connects(&mut self) -> Result<Ipv6Addr> {
        self.connected = Some(Clock::now());
        self.client.context("a client has connected")
    }

    fn ends(&mut self, end: End) {
        self.controller.close(end == End::Disconnected);
        self.end = Some(end);
        self.ended = Some(Clock::now());
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
                Some(address) => format!("server {}", address.to_canonical()),
                None => format!("server {at}"),
            },
        }
    }
}
