//! Messages in flight on a link.

use srdma_aggregation::{Response, Syndrome};
use srdma_repair::Request;
use srdma_wire::Psn;

/// Up to eight messages, an octet each, the oldest in the lowest octet. 0 is no message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Queue(u64);

impl Queue {
    /// Number of messages.
    pub(crate) fn len(self) -> usize {
        (64 - self.0.leading_zeros() as usize).div_ceil(8)
    }

    /// Whether there are no messages.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The message at a position, which must exist.
    pub(crate) fn get(self, position: usize) -> u8 {
        self.0.to_le_bytes()[position]
    }

    /// The messages in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        self.0.to_le_bytes().into_iter().take_while(|&code| code != 0)
    }

    /// Adds a message at the end, or at its sorted position in an unordered queue. False if there are `most` already.
    pub(crate) fn push(&mut self, code: u8, keeps_order: bool, most: usize) -> bool {
        let len = self.len();
        if len >= most.min(8) {
            return false;
        }
        let mut octets = self.0.to_le_bytes();
        octets[len] = code;
        if !keeps_order {
            octets[..=len].sort_unstable();
        }
        self.0 = u64::from_le_bytes(octets);
        true
    }

    /// Removes a message.
    pub(crate) fn remove(&mut self, position: usize) {
        let mut octets = self.0.to_le_bytes();
        octets.copy_within(position + 1.., position);
        octets[7] = 0;
        self.0 = u64::from_le_bytes(octets);
    }
}

/// A data packet: its number from the group's first, and whether it requests an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) packet: u8,
    pub(crate) ack_request: bool,
}

impl Data {
    /// A packet beyond those of any configuration.
    pub(crate) const TOO_HIGH: u8 = 0x3F;

    pub(crate) fn code(self) -> u8 {
        0x80 | self.packet << 1 | u8::from(self.ack_request)
    }

    pub(crate) fn of(code: u8) -> Self {
        Data { packet: (code & 0x7F) >> 1, ack_request: code & 1 == 1 }
    }
}

/// The kinds of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Ack,
    Nak,
    Rnr,
    Fatal,
}

/// A response: its kind, the number of packets that it acknowledges, and the epoch of the node that sends it (two bits
/// are enough for the changes of a configuration).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) confirms: u8,
    pub(crate) epoch: u8,
}

/// Upper bound of the packets of a configuration.
pub(crate) const TOO_MANY: u8 = 7;

/// What goes up: a response, or a request of a node that repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Upward {
    Response(Message),
    Request(Missing),
}

/// A request: the first missing packet, their number from 1 to 3, and the epoch of the node that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Missing {
    pub(crate) packet: u8,
    pub(crate) count: u8,
    pub(crate) epoch: u8,
}

impl Upward {
    pub(crate) fn code(self) -> u8 {
        match self {
            Upward::Response(message) => message.code(),
            Upward::Request(Missing { packet, count, epoch }) => packet << 4 | count << 2 | epoch,
        }
    }

    pub(crate) fn of(code: u8) -> Self {
        if code & 0x80 != 0 {
            return Upward::Response(Message::of(code));
        }
        Upward::Request(Missing { packet: code >> 4, count: code >> 2 & 3, epoch: code & 3 })
    }

    pub(crate) fn epoch(self) -> u8 {
        match self {
            Upward::Response(message) => message.epoch,
            Upward::Request(missing) => missing.epoch,
        }
    }

    pub(crate) fn in_epoch(self, epoch: u8) -> Self {
        match self {
            Upward::Response(message) => Upward::Response(Message { epoch, ..message }),
            Upward::Request(missing) => Upward::Request(Missing { epoch, ..missing }),
        }
    }
}

impl Missing {
    pub(crate) fn request(self, initial: Psn) -> Request {
        Request { psn: initial.plus(u32::from(self.packet)), count: u32::from(self.count) }
    }

    pub(crate) fn from_request(request: Request, initial: Psn) -> Self {
        let packet = u8::try_from(request.psn.distance_from(initial)).unwrap_or(TOO_MANY).min(TOO_MANY);
        assert!((1..=3).contains(&request.count), "a request that has no code: {request:?}");
        Missing { packet, count: request.count as u8, epoch: 0 }
    }
}

impl Message {
    pub(crate) fn code(self) -> u8 {
        0x80 | (self.kind as u8) << 5 | self.confirms << 2 | self.epoch
    }

    pub(crate) fn of(code: u8) -> Self {
        let kind = match code >> 5 & 3 {
            0 => Kind::Ack,
            1 => Kind::Nak,
            2 => Kind::Rnr,
            _ => Kind::Fatal,
        };
        Message { kind, confirms: code >> 2 & 7, epoch: code & 3 }
    }

    /// The response for a node, in a group with this initial PSN.
    pub(crate) fn response(self, initial: Psn) -> Response {
        let next = initial.plus(u32::from(self.confirms));
        let (psn, syndrome) = match self.kind {
            Kind::Ack => (next.previous(), Syndrome::Ack),
            Kind::Nak => (next, Syndrome::SequenceNak),
            Kind::Rnr => (next, Syndrome::RnrNak(1)),
            Kind::Fatal => (next, Syndrome::Fatal(1)),
        };
        Response { psn, msn: 0, syndrome }
    }

    /// The response of a node. An impossible PSN becomes one that is too high, so that it violates safety.
    pub(crate) fn from_response(response: Response, initial: Psn) -> Self {
        let distance = response.expected_psn().distance_from(initial);
        let kind = match response.syndrome {
            Syndrome::Ack => Kind::Ack,
            Syndrome::SequenceNak => Kind::Nak,
            Syndrome::RnrNak(_) => Kind::Rnr,
            Syndrome::Fatal(_) => Kind::Fatal,
        };
        Message { kind, confirms: u8::try_from(distance).unwrap_or(TOO_MANY).min(TOO_MANY), epoch: 0 }
    }
}
