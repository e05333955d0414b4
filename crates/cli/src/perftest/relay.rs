//! The handshake with its connections and its group.

use super::connections::{Connections, Event};
use super::server::Server;
use crate::endpoint::{self, any_qpn, chance};
use crate::programs_group::{self, ProgramsGroup};
use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use srdma_api::{MemoryRegion, SourceRegion, SourceTransport};
use srdma_group::PsnOffset;
use srdma_perftest::{Action, Conversation, GroupEnd, Outcome, Party, Problem, Receiver, Refusal, Source};
use srdma_wire::Qpn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What was measured.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    /// The longest time between an answer to the client and its next message, behind which the test may have run.
    pub(super) longest_silence: Duration,
}

/// What fails only when it runs.
const HINT: &str = "if it is a test of both ways (-b), of latency, or of UC or UD (-c): a group does not carry it";

/// First virtual address of the group's region, as the client writes to it.
const REGION_BASE: u64 = 0x1_0000;
/// Its length: messages have at most 2 GiB, and their length is not told (D206).
const REGION_OCTETS: u64 = 1 << 32;

/// Time for a server's answer: one that is not asked for long registers memory at most.
const ANSWER: Duration = Duration::from_secs(30);

pub(super) struct Relay<'a> {
    conversation: Conversation,
    connections: Connections,
    group: ProgramsGroup,
    servers: &'a [Server],
    transport: SourceTransport,
    timeout: Duration,
    is_interrupted: Arc<AtomicBool>,
    bar: Option<ProgressBar>,
    last_progress: Instant,
    longest_silence: Duration,
}

impl<'a> Relay<'a> {
    pub(super) fn new(
        conversation: Conversation,
        connections: Connections,
        group: ProgramsGroup,
        servers: &'a [Server],
        transport: SourceTransport,
        timeout: Duration,
        is_interrupted: Arc<AtomicBool>,
    ) -> Self {
        Relay {
            conversation,
            connections,
            group,
            servers,
            transport,
            timeout,
            is_interrupted,
            bar: endpoint::bar(None, "{spinner} {msg} {elapsed}"),
            last_progress: Instant::now(),
            longest_silence: Duration::ZERO,
        }
    }

    /// Carries the handshake out to its end.
    pub(super) fn run(&mut self) -> Result<Measured> {
        let result = self.handshake();
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        result
    }

    /// Closes the group.
    pub(super) fn close(&mut self) -> Result<()> {
        self.group.close()
    }

    fn handshake(&mut self) -> Result<Measured> {
        loop {
            while let Some(action) = self.conversation.next_action() {
                match action {
                    Action::ToClient(octets) => self.send(Party::Client, &octets)?,
                    Action::ToServer(at, octets) => self.send(Party::Server(at), &octets)?,
                    Action::CreateGroup(source) => {
                        let group = self.create(source)?;
                        self.conversation.group_created(group);
                    }
                    Action::BeginGroup(receivers) => {
                        self.group.begin(&receivers.into_iter().map(receiver).collect::<Vec<_>>())?;
                        self.conversation.group_ready();
                    }
                    Action::Finish(outcome) => {
                        self.group.check()?;
                        return Ok(Measured { outcome, longest_silence: self.longest_silence });
                    }
                }
                self.last_progress = Instant::now();
            }
            if let Some(bar) = &self.bar {
                bar.set_message(self.conversation.step().to_string());
                bar.tick();
            }
            ensure!(!self.is_interrupted.load(Ordering::Relaxed), "interrupted");
            let result = match self.connections.next() {
                Some(Event::Octets(party, octets)) => {
                    if party == Party::Client && self.conversation.may_run() {
                        self.longest_silence = self.longest_silence.max(self.last_progress.elapsed());
                    }
                    self.conversation.receive(party, &octets)
                }
                Some(Event::Ended(party)) => self.conversation.ended(party),
                None if self.last_progress.elapsed() >= self.patience() => return self.timed_out(),
                None => Ok(()),
            };
            result.or_else(|refusal| self.refused(refusal))?;
        }
    }

    /// Creates the group for the client's queue pair.
    fn create(&mut self, source: Source) -> Result<GroupEnd> {
        let Source { address, qpn, initial_psn, path_mtu } = source;
        let mut chance = chance("perftest");
        let rkey = chance.below(1 << 32) as u32;
        let designated_qpn = Qpn::new(any_qpn(&mut chance)).context("24 bits")?;
        let source = programs_group::Source {
            address,
            qpn,
            designated_qpn,
            initial_psn,
            path_mtu,
            transport: self.transport,
            region: Some(SourceRegion { base: REGION_BASE, length: REGION_OCTETS, rkey }),
        };
        let proxy = self.group.create(source)?;
        Ok(GroupEnd { proxy, designated_qpn, rkey, virtual_address: REGION_BASE })
    }

    /// Sends a message. A party that does not take it has ended.
    fn send(&mut self, party: Party, octets: &[u8]) -> Result<()> {
        if self.connections.send(party, octets).is_err() {
            self.conversation.ended(party).or_else(|refusal| self.refused(refusal))?;
        }
        Ok(())
    }

    fn refused(&self, refusal: Refusal) -> Result<()> {
        let Refusal { party, step, problem } = refusal;
        let has_ended = matches!(problem, Problem::Ended | Problem::EndedInside);
        let failure = has_ended.then(|| self.group.failure()).flatten();
        let failure = failure.map(|failure| format!("; the controller: {failure}")).unwrap_or_default();
        let hint = if has_ended { self.hint() } else { String::new() };
        bail!("{} {problem} (in the step of {step}){failure}{hint}", self.name(party))
    }

    /// Time to wait for the parties that are awaited. The test runs before a message of the client; servers answer when
    /// they have received what the client has sent.
    fn patience(&self) -> Duration {
        match self.conversation.awaited().as_slice() {
            [Party::Client] => self.timeout,
            _ => self.timeout.min(ANSWER),
        }
    }

    fn timed_out(&self) -> Result<Measured> {
        let names: Vec<String> = self.conversation.awaited().into_iter().map(|party| self.name(party)).collect();
        let (step, time) = (self.conversation.step(), self.patience().as_secs_f64());
        bail!("nothing has come for {time} s from {} (in the step of {step}){}", names.join(", "), self.hint())
    }

    /// What a test may be that has begun and does not end well.
    fn hint(&self) -> String {
        if self.conversation.may_have_run() { format!("; {HINT}") } else { String::new() }
    }

    fn name(&self, party: Party) -> String {
        match party {
            Party::Client => "the client".to_owned(),
            Party::Server(at) => match self.servers.get(at) {
                Some(server) => format!("server {server}"),
                None => format!("server {at}"),
            },
        }
    }
}

/// A server's queue pair as a receiver.
fn receiver(receiver: Receiver) -> programs_group::Receiver {
    let Receiver { address, qpn, rkey, virtual_address } = receiver;
    programs_group::Receiver {
        address,
        qpn,
        region: Some(MemoryRegion { virtual_address, rkey }),
        psn_offset: PsnOffset::ZERO,
    }
}
