//! A connection to a receiver that listens: the active side.
//!
//! ```text
//!   Idle ── request ──→ Requesting ── REP ──→ Connected ── disconnect ──→ Disconnecting
//!                           │ REJ, silence,       │ REJ, DREQ                 │ DREP, DREQ, REJ, silence
//!                           │ disconnect          │                           │
//!                           └─────────────────────┴────────→ Over ←───────────┘
//! ```

use crate::action::{Action, End, Party};
use crate::mad::Mad;
use crate::message::{Answered, DisconnectRequest, Ids, Message, Reject, Reply, Request};
use crate::reason::Reason;
use crate::refusal::Refusal;
use crate::retry::Retry;
use crate::text;
use srdma_wire::{Instant, Qpn};
use std::net::Ipv6Addr;

/// Interval in which a message is sent again: 1.07 s.
const INTERVAL: u8 = 18;
/// Times that it is.
pub(crate) const TIMES: u8 = 15;

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Requesting(Retry),
    Connected,
    Disconnecting(Retry),
    Over,
}

/// What a message of the server's means to the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Nothing,
    Replied,
    Ended(End),
}

#[derive(Clone, Debug)]
pub(crate) struct Server {
    state: State,
    /// Its number among the servers.
    at: usize,
    address: Ipv6Addr,
    /// Comm. ID of this side.
    id: u32,
    ca_guid: u64,
    qpn: Option<Qpn>,
    reply: Option<Reply>,
}

impl Server {
    pub(crate) fn new(at: usize, address: Ipv6Addr, id: u32, ca_guid: u64) -> Self {
        Server { state: State::Idle, at, address, id, ca_guid, qpn: None, reply: None }
    }

    pub(crate) fn address(&self) -> Ipv6Addr {
        self.address
    }

    /// Comm. ID of this side.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Idle | State::Over)
    }

    pub(crate) fn reply(&self) -> Option<&Reply> {
        self.reply.as_ref()
    }

    pub(crate) fn due(&self) -> Instant {
        match &self.state {
            State::Requesting(retry) | State::Disconnecting(retry) => retry.due(),
            State::Idle | State::Connected | State::Over => Instant::NEVER,
        }
    }

    /// Whether a message with these IDs is one about this connection. The other side's ID is known from its REP.
    pub(crate) fn is_meant(&self, from: Ipv6Addr, ids: Ids) -> bool {
        self.address == from
            && self.id == ids.remote
            && self.reply.as_ref().is_none_or(|reply| reply.ids.local == ids.local)
    }

    fn send(&self, transaction_id: u64, message: Message, out: &mut Vec<Action>) -> Mad {
        let mad = Mad { transaction_id, message };
        out.push(Action::Send(self.address, Box::new(mad.clone())));
        mad
    }

    pub(crate) fn request(&mut self, now: Instant, request: Request, out: &mut Vec<Action>) {
        if self.state == State::Idle {
            self.qpn = Some(request.local_qpn);
            let mad = self.send(u64::from(self.id), Message::Request(Box::new(request)), out);
            self.state = State::Requesting(Retry::new(mad, now, INTERVAL, TIMES));
        }
    }

    /// The exchange ends.
    pub(crate) fn disconnect(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.state = match (&self.state, &self.reply) {
            (State::Connected, Some(reply)) => {
                let ids = reply.ids.swapped();
                let message = Message::DisconnectRequest(DisconnectRequest { ids, remote_qpn: reply.local_qpn });
                let mad = self.send(u64::from(self.id), message, out);
                State::Disconnecting(Retry::new(mad, now, INTERVAL, TIMES))
            }
            (State::Requesting(_), _) => {
                // Its ID is not known: a timeout is found by the CA GUID.
                let ids = Ids { local: self.id, remote: 0 };
                let mut reject = Reject::new(ids, Answered::REQUEST, Reason::TIMEOUT, "");
                reject.information_length = 8;
                reject.information[..8].copy_from_slice(&self.ca_guid.to_be_bytes());
                self.send(u64::from(self.id), Message::Reject(reject), out);
                State::Over
            }
            (State::Idle | State::Over, _) | (State::Connected, None) => State::Over,
            (State::Disconnecting(retry), _) => State::Disconnecting(retry.clone()),
        };
    }

    pub(crate) fn receive(&mut self, now: Instant, mad: &Mad, out: &mut Vec<Action>) -> Result<Happened, Refusal> {
        let party = Party::Server(self.at);
        match &mad.message {
            Message::Reply(reply) => match &self.state {
                State::Requesting(_) => {
                    self.send(mad.transaction_id, Message::ReadyToUse(reply.ids.swapped()), out);
                    self.reply = Some(reply.clone());
                    self.state = State::Connected;
                    Ok(Happened::Replied)
                }
                // The RTU was lost.
                State::Connected if self.reply.as_ref() == Some(reply) => {
                    self.send(mad.transaction_id, Message::ReadyToUse(reply.ids.swapped()), out);
                    Ok(Happened::Nothing)
                }
                State::Connected | State::Idle | State::Disconnecting(_) | State::Over => Err(Refusal::OutOfState),
            },
            Message::Receipt(receipt) => match &mut self.state {
                State::Requesting(retry) if receipt.message == Answered::REQUEST => {
                    retry.prolong(now, receipt.service_timeout);
                    Ok(Happened::Nothing)
                }
                State::Requesting(_) | State::Idle | State::Connected | State::Disconnecting(_) | State::Over => {
                    Err(Refusal::OutOfState)
                }
            },
            Message::Reject(reject) => match self.state {
                State::Requesting(_) | State::Connected => {
                    self.state = State::Over;
                    Ok(Happened::Ended(End::Rejected(party, reject.reason, text::of(&reject.private_data))))
                }
                State::Disconnecting(_) => {
                    self.state = State::Over;
                    Ok(Happened::Nothing)
                }
                State::Idle | State::Over => Err(Refusal::OutOfState),
            },
            Message::DisconnectRequest(request) => {
                let happened = match self.state {
                    State::Connected => Happened::Ended(End::Left(party)),
                    State::Disconnecting(_) | State::Over => Happened::Nothing,
                    State::Idle | State::Requesting(_) => return Err(Refusal::OutOfState),
                };
                if self.qpn != Some(request.remote_qpn) {
                    return Err(Refusal::OtherQueuePair);
                }
                self.send(mad.transaction_id, Message::DisconnectReply(request.ids.swapped()), out);
                self.state = State::Over;
                Ok(happened)
            }
            Message::DisconnectReply(_) => match self.state {
                State::Disconnecting(_) => {
                    self.state = State::Over;
                    Ok(Happened::Nothing)
                }
                State::Idle | State::Requesting(_) | State::Connected | State::Over => Err(Refusal::OutOfState),
            },
            Message::Request(_) | Message::ReadyToUse(_) => Err(Refusal::OutOfState),
        }
    }

    /// Time passes.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Action>) -> Happened {
        let is_requesting = matches!(self.state, State::Requesting(_));
        match &mut self.state {
            State::Requesting(retry) | State::Disconnecting(retry) => match retry.tick(now) {
                Some(true) => {
                    out.push(Action::Send(self.address, Box::new(retry.mad.clone())));
                    Happened::Nothing
                }
                Some(false) => {
                    self.state = State::Over;
                    if is_requesting { Happened::Ended(End::Silent(Party::Server(self.at))) } else { Happened::Nothing }
                }
                None => Happened::Nothing,
            },
            State::Idle | State::Connected | State::Over => Happened::Nothing,
        }
    }
}
