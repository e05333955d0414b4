//! Models of requester and responder, reduced to what the reverse path can distinguish.

use crate::queue::{Data, Kind, Message};

/// Handling of NAKs by a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakHandling {
    /// Goes back for every NAK at or above the completed packets.
    Strict,
    /// Like soft-RoCE: after going back it ignores NAKs until it receives an ACK.
    SoftRoce,
    /// Sends the packet of the NAK again alone (D228).
    Selective,
}

/// Which receivers keep packets behind a gap (D228).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// None.
    InOrder,
    /// All.
    OutOfOrder,
    /// The first one, the third one and so on.
    Mixed,
}

impl Reception {
    pub(crate) fn keeps(self, receiver: usize) -> bool {
        match self {
            Reception::InOrder => false,
            Reception::OutOfOrder => true,
            Reception::Mixed => receiver.is_multiple_of(2),
        }
    }
}

/// Handling of duplicates by a responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateHandling {
    /// Like soft-RoCE: every duplicate causes an ACK of the newest packet.
    AllDuplicates,
    /// Only a duplicate that requests an ACK causes one.
    OnRequest,
}

/// A requester.
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
    /// The first packet that is not completed is to be sent again alone.
    pub(crate) repeats: bool,
    /// The connection failed with a receiver.
    pub(crate) failed: bool,
}

impl Source {
    /// Takes the next packet to send, the last of each message with a request for an ACK.
    pub(crate) fn send(&mut self, total: u8, message: u8) -> Data {
        if std::mem::take(&mut self.repeats) {
            return Data { packet: self.completed, ack_request: true };
        }
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
        self.repeats &= message.confirms == self.completed;
        self.completed = message.confirms;
        self.next = self.next.max(message.confirms);
        self.fresh = self.fresh.max(message.confirms);
        match message.kind {
            Kind::Ack => self.gone_back = false,
            Kind::Nak if handling == NakHandling::SoftRoce && self.gone_back => {}
            Kind::Nak if handling == NakHandling::Selective => self.repeats = self.next > self.completed,
            Kind::Nak => self.go_back(handling),
            Kind::Rnr => (self.next, self.repeats) = (self.completed, false),
            Kind::Fatal => self.failed = true,
        }
    }

    /// Retransmits all packets that are not completed.
    pub(crate) fn go_back(&mut self, handling: NakHandling) {
        self.gone_back = handling == NakHandling::SoftRoce;
        self.repeats = false;
        self.next = self.completed;
    }
}

/// A responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Receiver {
    /// Number of received packets.
    pub(crate) has: u8,
    /// Packets behind a gap, a bit each.
    kept: u8,
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
    /// Handles a packet; returns the response. One that `keeps` what comes behind a gap takes it when the gap is
    /// filled.
    pub(crate) fn receive(
        &mut self,
        data: Data,
        delivery: Delivery,
        handling: DuplicateHandling,
        keeps: bool,
    ) -> Option<Message> {
        let message = |kind, confirms| Some(Message { kind, confirms, epoch: 0 });
        if self.dead || delivery == Delivery::Lost {
            return None;
        }
        if data.packet < self.has {
            let responds = handling == DuplicateHandling::AllDuplicates || data.ack_request;
            return if responds { message(Kind::Ack, self.has) } else { None };
        }
        if data.packet > self.has {
            self.kept |= u8::from(keeps) << data.packet;
            let first = !std::mem::replace(&mut self.nak_sent, true);
            return if first { message(Kind::Nak, self.has) } else { None };
        }
        match delivery {
            Delivery::NotReady => {
                self.kept = 0;
                return message(Kind::Rnr, self.has);
            }
            Delivery::Fails => {
                self.dead = true;
                return message(Kind::Fatal, self.has);
            }
            Delivery::Arrives | Delivery::Lost => {}
        }
        self.has += 1;
        let before = self.has;
        while self.kept >> self.has & 1 == 1 {
            self.kept &= !(1 << self.has);
            self.has += 1;
        }
        self.nak_sent = self.kept != 0;
        if self.nak_sent {
            return message(Kind::Nak, self.has);
        }
        if data.ack_request || self.has > before { message(Kind::Ack, self.has) } else { None }
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
