//! The two ends of the tree, reduced to their effect on the reverse path.

use crate::queue::{Data, Kind, Message};

/// Reaction of a requester to NAKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceHabit {
    /// Goes back for every NAK at or above what it has completed.
    Strict,
    /// As soft-RoCE: once it has gone back it ignores NAKs until an ACK comes.
    SoftRoce,
}

/// Reaction of a responder to duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverHabit {
    /// As soft-RoCE: every duplicate is answered with an ACK of the newest.
    AnswersDuplicates,
    /// Answers duplicates only if they request an ACK.
    AnswersRequests,
}

/// A go-back-N requester.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// Packets that are completed.
    pub(crate) completed: u8,
    /// The next packet to send.
    pub(crate) next: u8,
    /// No packet from here on has ever been sent.
    pub(crate) fresh: u8,
    /// It has gone back and received no ACK since.
    pub(crate) gone_back: bool,
    /// A receiver failed, and the connection with it.
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

    /// Processes a response; the source accepts what it acknowledges.
    pub(crate) fn receive(&mut self, message: Message, habit: SourceHabit) {
        if message.confirms < self.completed {
            return;
        }
        self.completed = message.confirms;
        self.next = self.next.max(message.confirms);
        self.fresh = self.fresh.max(message.confirms);
        match message.kind {
            Kind::Ack => self.gone_back = false,
            Kind::Nak if habit == SourceHabit::SoftRoce && self.gone_back => {}
            Kind::Nak => self.go_back(habit),
            Kind::Rnr => self.next = self.completed,
            Kind::Fatal => self.failed = true,
        }
    }

    /// Everything that is not completed is sent again.
    pub(crate) fn go_back(&mut self, habit: SourceHabit) {
        self.gone_back = habit == SourceHabit::SoftRoce;
        self.next = self.completed;
    }
}

/// A responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Receiver {
    /// Packets that it has.
    pub(crate) has: u8,
    pub(crate) nak_sent: bool,
    /// It answers nothing any more.
    pub(crate) dead: bool,
}

/// Fate of a packet between an edge node and a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// It arrives, and the receiver is not ready for it.
    NotReady,
    /// It arrives, and the receiver fails at it.
    Fails,
}

impl Receiver {
    /// Takes a packet; gives the answer.
    pub(crate) fn receive(&mut self, data: Data, fate: Fate, habit: ReceiverHabit) -> Option<Message> {
        let message = |kind, confirms| Some(Message { kind, confirms, epoch: 0 });
        if self.dead || fate == Fate::Lost {
            return None;
        }
        if data.packet < self.has {
            let answers = habit == ReceiverHabit::AnswersDuplicates || data.ack_request;
            return if answers { message(Kind::Ack, self.has) } else { None };
        }
        if data.packet > self.has {
            let first = !std::mem::replace(&mut self.nak_sent, true);
            return if first { message(Kind::Nak, self.has) } else { None };
        }
        match fate {
            Fate::NotReady => return message(Kind::Rnr, self.has),
            Fate::Fails => {
                self.dead = true;
                return message(Kind::Fatal, self.has);
            }
            Fate::Arrives | Fate::Lost => {}
        }
        self.has += 1;
        self.nak_sent = false;
        if data.ack_request { message(Kind::Ack, self.has) } else { None }
    }
}

impl Fate {
    /// From the lowest two bits.
    pub(crate) fn of(code: u8) -> Self {
        match code & 3 {
            0 => Fate::Arrives,
            1 => Fate::Lost,
            2 => Fate::NotReady,
            _ => Fate::Fails,
        }
    }
}
