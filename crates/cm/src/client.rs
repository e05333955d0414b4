//! The connection that the client asks for: the passive side.
//!
//! ```text
//!   Waiting ── REQ ──→ Preparing ── reply ──→ Replying ── RTU ──→ Connected
//!                          │                     │ DREQ              │ DREQ        │ disconnect
//!                          │ REJ, reject         │ REJ, silence      ↓             ↓
//!                          └─────────────────────┴───────────────→ Over ←─ DREP, silence ─ Disconnecting
//! ```

use crate::action::{Action, End, Party};
use crate::mad::Mad;
use crate::message::{Answered, DisconnectRequest, Ids, Message, Receipt, Reject, Reply, Request};
use crate::reason::Reason;
use crate::refusal::Refusal;
use crate::retry::Retry;
use crate::text;
use srdma_wire::{Instant, Qpn};
use std::net::Ipv6Addr;

/// Time that a receipt says the group may take: 69 s.
const SERVICE_TIMEOUT: u8 = 24;
/// Bounds of the interval in which a message is sent again, half a second to 17 s, whatever the client asks for.
const INTERVALS: (u8, u8) = (17, 22);

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Preparing,
    Replying(Retry),
    Connected,
    Disconnecting(Retry),
    Over,
}

/// What a message of the client's means to the exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Nothing,
    Requested,
    Connected,
    Ended(End),
}

#[derive(Clone, Debug)]
pub(crate) struct Client {
    state: State,
    /// Comm. ID of this side.
    id: u32,
    asked: Option<Asked>,
    /// Queue pair of this side, when there is one.
    qpn: Option<Qpn>,
    /// Comes again when the REQ does.
    rejection: Option<Mad>,
}

/// What the client has asked for.
#[derive(Clone, Debug)]
struct Asked {
    address: Ipv6Addr,
    transaction_id: u64,
    request: Request,
}

impl Client {
    pub(crate) fn new(id: u32) -> Self {
        Client { state: State::Waiting, id, asked: None, qpn: None, rejection: None }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Waiting | State::Over)
    }

    pub(crate) fn due(&self) -> Instant {
        match &self.state {
            State::Replying(retry) | State::Disconnecting(retry) => retry.due(),
            State::Waiting | State::Preparing | State::Connected | State::Over => Instant::NEVER,
        }
    }

    /// What it has asked for.
    pub(crate) fn request(&self) -> Option<&Request> {
        self.asked.as_ref().map(|asked| &asked.request)
    }

    fn ids(&self) -> Option<Ids> {
        Some(Ids { local: self.id, remote: self.asked.as_ref()?.request.local_id })
    }

    /// Whether a message with these IDs is one about this connection. A client that gives up knows no ID of this side.
    pub(crate) fn is_meant(&self, from: Ipv6Addr, ids: Ids, is_rejection: bool) -> bool {
        self.asked.as_ref().is_some_and(|asked| {
            asked.address == from
                && asked.request.local_id == ids.local
                && (ids.remote == self.id || is_rejection && ids.remote == 0)
        })
    }

    fn send(&self, message: Message, out: &mut Vec<Action>) {
        if let Some(asked) = &self.asked {
            let mad = Mad { transaction_id: asked.transaction_id, message };
            out.push(Action::Send(asked.address, Box::new(mad)));
        }
    }

    /// A REQ that was checked, or one that comes again.
    pub(crate) fn requested(
        &mut self,
        from: Ipv6Addr,
        transaction_id: u64,
        request: &Request,
        out: &mut Vec<Action>,
    ) -> Result<Happened, Refusal> {
        let is_same = self.asked.as_ref().is_some_and(|asked| asked.address == from && asked.request == *request);
        let receipt = |client: &Self, out: &mut Vec<Action>| {
            if let Some(ids) = client.ids() {
                let receipt = Receipt { ids, message: Answered::REQUEST, service_timeout: SERVICE_TIMEOUT };
                client.send(Message::Receipt(receipt), out);
            }
        };
        match &self.state {
            State::Waiting => {
                self.asked = Some(Asked { address: from, transaction_id, request: request.clone() });
                self.state = State::Preparing;
                receipt(self, out);
                Ok(Happened::Requested)
            }
            _ if !is_same => Err(Refusal::Busy),
            State::Preparing => {
                receipt(self, out);
                Ok(Happened::Nothing)
            }
            State::Replying(retry) => {
                out.push(Action::Send(from, Box::new(retry.mad.clone())));
                Ok(Happened::Nothing)
            }
            State::Over => match &self.rejection {
                Some(rejection) => {
                    out.push(Action::Send(from, Box::new(rejection.clone())));
                    Ok(Happened::Nothing)
                }
                None => Err(Refusal::OutOfState),
            },
            State::Connected | State::Disconnecting(_) => Err(Refusal::OutOfState),
        }
    }

    /// The group is ready.
    pub(crate) fn reply(&mut self, now: Instant, reply: Reply, out: &mut Vec<Action>) {
        let (State::Preparing, Some(asked)) = (&self.state, &self.asked) else { return };
        self.qpn = Some(reply.local_qpn);
        let code = asked.request.local_response_timeout.clamp(INTERVALS.0, INTERVALS.1);
        let mad = Mad { transaction_id: asked.transaction_id, message: Message::Reply(reply) };
        out.push(Action::Send(asked.address, Box::new(mad.clone())));
        self.state = State::Replying(Retry::new(mad, now, code, asked.request.max_retries));
    }

    /// There is no group.
    pub(crate) fn reject(&mut self, reason: Reason, private_text: &str, out: &mut Vec<Action>) {
        let (State::Preparing, Some(asked), Some(ids)) = (&self.state, &self.asked, self.ids()) else { return };
        let reject = Reject::new(ids, Answered::REQUEST, reason, private_text);
        let mad = Mad { transaction_id: asked.transaction_id, message: Message::Reject(reject) };
        out.push(Action::Send(asked.address, Box::new(mad.clone())));
        self.rejection = Some(mad);
        self.state = State::Over;
    }

    /// The exchange ends.
    pub(crate) fn disconnect(&mut self, now: Instant, out: &mut Vec<Action>) {
        match &self.state {
            State::Replying(_) | State::Connected => {
                let (Some(asked), Some(ids)) = (&self.asked, self.ids()) else { return };
                let message =
                    Message::DisconnectRequest(DisconnectRequest { ids, remote_qpn: asked.request.local_qpn });
                let mad = Mad { transaction_id: u64::from(self.id), message };
                out.push(Action::Send(asked.address, Box::new(mad.clone())));
                self.state = State::Disconnecting(Retry::new(mad, now, INTERVALS.0, asked.request.max_retries));
            }
            State::Preparing => self.reject(Reason::CONSUMER, "the group was closed", out),
            State::Waiting => self.state = State::Over,
            State::Disconnecting(_) | State::Over => {}
        }
    }

    /// A message about this connection that is no REQ.
    pub(crate) fn receive(&mut self, now: Instant, mad: &Mad, out: &mut Vec<Action>) -> Result<Happened, Refusal> {
        match &mad.message {
            Message::ReadyToUse(_) => match self.state {
                State::Replying(_) => {
                    self.state = State::Connected;
                    Ok(Happened::Connected)
                }
                State::Connected => Ok(Happened::Nothing),
                State::Waiting | State::Preparing | State::Disconnecting(_) | State::Over => Err(Refusal::OutOfState),
            },
            Message::Receipt(receipt) => match &mut self.state {
                State::Replying(retry) if receipt.message == Answered::REPLY => {
                    retry.prolong(now, receipt.service_timeout);
                    Ok(Happened::Nothing)
                }
                State::Replying(_)
                | State::Waiting
                | State::Preparing
                | State::Connected
                | State::Disconnecting(_)
                | State::Over => Err(Refusal::OutOfState),
            },
            Message::Reject(reject) => match self.state {
                State::Preparing | State::Replying(_) => {
                    self.state = State::Over;
                    let text = text::of(&reject.private_data);
                    Ok(Happened::Ended(End::Rejected(Party::Client, reject.reason, text)))
                }
                State::Waiting | State::Connected | State::Disconnecting(_) | State::Over => Err(Refusal::OutOfState),
            },
            Message::DisconnectRequest(request) => self.disconnected(mad.transaction_id, request, out),
            Message::DisconnectReply(_) => match self.state {
                State::Disconnecting(_) => {
                    self.state = State::Over;
                    Ok(Happened::Nothing)
                }
                State::Waiting | State::Preparing | State::Replying(_) | State::Connected | State::Over => {
                    Err(Refusal::OutOfState)
                }
            },
            Message::Request(_) | Message::Reply(_) => Err(Refusal::OutOfState),
        }
    }

    fn disconnected(
        &mut self,
        transaction_id: u64,
        request: &DisconnectRequest,
        out: &mut Vec<Action>,
    ) -> Result<Happened, Refusal> {
        let (Some(asked), Some(ids)) = (&self.asked, self.ids()) else { return Err(Refusal::UnknownConnection) };
        let happened = match self.state {
            // An RTU that was lost is none that the client has not sent.
            State::Replying(_) | State::Connected => Happened::Ended(End::Disconnected),
            State::Disconnecting(_) | State::Over => Happened::Nothing,
            State::Waiting | State::Preparing => return Err(Refusal::OutOfState),
        };
        if self.qpn != Some(request.remote_qpn) {
            return Err(Refusal::OtherQueuePair);
        }
        let mad = Mad { transaction_id, message: Message::DisconnectReply(ids) };
        out.push(Action::Send(asked.address, Box::new(mad)));
        self.state = State::Over;
        Ok(happened)
    }

    /// Time passes.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<Action>) -> Happened {
        let is_replying = matches!(self.state, State::Replying(_));
        match &mut self.state {
            State::Replying(retry) | State::Disconnecting(retry) => match (retry.tick(now), &self.asked) {
                (Some(true), Some(asked)) => {
                    out.push(Action::Send(asked.address, Box::new(retry.mad.clone())));
                    Happened::Nothing
                }
                (Some(false), _) | (Some(true), None) => {
                    self.state = State::Over;
                    if is_replying { Happened::Ended(End::Silent(Party::Client)) } else { Happened::Nothing }
                }
                (None, _) => Happened::Nothing,
            },
            State::Waiting | State::Preparing | State::Connected | State::Over => Happened::Nothing,
        }
    }
}
