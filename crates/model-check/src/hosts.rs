//! Models of requester and responder, reduced to what the reverse path can distinguish.

use crate::queue::{Data, Kind, Message};

/// Handling of NAKs by a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakHandling {
    /// Goes back for every NAK at or above the completed packets.
    Strict,
    /// Like soft-RoCE: after going back it ignores NAKs until it receives an ACK.
    SoftRoce,
}

/// Handling of duplicates by a responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateHandling {
    /// Like soft-RoCE: every duplicate causes an ACK of the newest packet.
    AllDuplicates,
    /// Only a duplicate that requests an ACK causes one.
    OnRequest,
}

/// A go-back-N requester.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// Number of completed packets.
    pub(crate) completed: u8,
    /// The next packet to send.
    pub(crate) next: u8,
    /// The first packet that was never sent.
    pub(crate) fresh: u8,
    /// It has gone back and received no ACK since.
    pub(crate) gone_back: bool,
    /// The connection failed with a receiver.
    pub(crate) failed: bool,
}

impl Source {
    /// Takes the next packet to send, the last of each message with a request for an ACK.
    pub(crate) fn send(&mut self, total: u8, message: u8) -> Data {
        let packet = self.next;
        self.next += 1;
        self.fresh = self.fresh.max(self.next);
        Data { packet, ack_request: self.next == total || self.next.is_multiple_of(message) }
    }

    /// Handles a response.
    pub(crate) fn receive(&mut self, message: Message, handling: NakHandling) {
        if message.confirms < self.completed {
            return;
        }
        self.completed = message.confirms;
        self.next = self.next.max(message.confirms);
        self.fresh = self.fresh.max(message.confirms);
        match message.kind {
            Kind::Ack => self.gone_back = false,
            Kind::Nak if handling == NakHandling::SoftRoce && self.gone_back => {}
            Kind::Nak => self.go_back(handling),
            Kind::Rnr => self.next = self.completed,
            Kind::Fatal => self.failed = true,
        }
    }

    /// Retransmits all packets that are not completed.
    pub(crate) fn go_back(&mut self, handling: NakHandling) {
        self.gone_back = handling == NakHandling::SoftRoce;
        self.next = self.completed;
    }
}

/// A responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Receiver {
    /// Number of received packets.
    pub(crate) has: u8,
    pub(crate) nak_sent: bool,
    /// It does not respond any more.
    pub(crate) dead: bool,
}

/// Delivery of a packet from an edge node to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Delivery {
    Arrives,
    Lost,
    /// It arrives, and the receiver sends an RNR NAK.
    NotReady,
    /// It arrives, and the receiver fails with a fatal NAK.
    Fails,
}

impl Receiver {
    /// Handles a packet; returns the response.
    pub(crate) fn receive(&mut self, data: Data, delivery: Delivery, handling: DuplicateHandling) -> Option<Message> {
        let message = |kind, confirms| Some(Message { kind, confirms, epoch: 0 });
        if self.dead || delivery == Delivery::Lost {
            return None;
        }
        if data.packet < self.has {
            let responds = handling == DuplicateHandling::AllDuplicates || data.ack_request;
            return if responds { message(Kind::Ack, self.has) } else { None };
        }
        if data.packet > self.has {
            let first = !std::mem::replace(&mut self.nak_sent, true);
            return if first { message(Kind::Nak, self.has) } else { None };
        }
        match delivery {
            Delivery::NotReady => return message(Kind::Rnr, self.has),
            Delivery::Fails => {
                self.dead = true;
                return message(Kind::Fatal, self.has);
            }
            Delivery::Arrives | Delivery::Lost => {}
        }
        self.has += 1;
        self.nak_sent = false;
        if data.ack_request { message(Kind::Ack, self.has) } else { None }
    }
}

impl Delivery {
    /// From the lowest two bits.
    pub(crate) fn of(code: u8) -> Self {
        match code & 3 {
            0 => Delivery::Arrives,
            1 => Delivery::Lost,
            2 => Delivery::NotReady,
            _ => Delivery::Fails,
        }
    }
}
