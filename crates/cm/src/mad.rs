//! The MAD around a message (IBTA volume 1, section 13.4).

use crate::message::{
    DisconnectRequest, Ids, MESSAGE_LEN, Message, Octets, Receipt, Reject, Reply, Request, ReservedQpn, array_at, put,
};
use thiserror::Error;

/// Base version 1, class Communication Management, class version 2, method Send.
const BEGINNING: [u8; 4] = [1, 0x07, 2, 0x03];

const HEADER_LEN: usize = 24;

const REQUEST: u16 = 0x0010;
const RECEIPT: u16 = 0x0011;
const REJECT: u16 = 0x0012;
const REPLY: u16 = 0x0013;
const READY_TO_USE: u16 = 0x0014;
const DISCONNECT_REQUEST: u16 = 0x0015;
const DISCONNECT_REPLY: u16 = 0x0016;

/// A message in its MAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mad {
    /// Chosen by the side that begins; answers have it as well.
    pub transaction_id: u64,
    /// The message.
    pub message: Message,
}

/// Why octets are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MadError {
    /// Another number of octets.
    #[error("a MAD has 256 octets, found {0}")]
    Length(usize),
    /// Another class, version or method.
    #[error("expected version, class, class version and method 1, 7, 2, 3, found {0:?}")]
    Class([u8; 4]),
    /// An attribute that is no message of these.
    #[error("unknown message: attribute {0:#06x}")]
    Attribute(u16),
    /// A reserved queue pair number.
    #[error("the queue pair {0:#x} is reserved")]
    ReservedQpn(u32),
}

impl From<ReservedQpn> for MadError {
    fn from(ReservedQpn(qpn): ReservedQpn) -> Self {
        MadError::ReservedQpn(qpn)
    }
}

impl Mad {
    /// Length in octets.
    pub const LEN: usize = HEADER_LEN + MESSAGE_LEN;

    /// Reads a MAD.
    ///
    /// # Errors
    ///
    /// Why the octets are no message.
    pub fn parse(octets: &[u8]) -> Result<Self, MadError> {
        let octets: &[u8; Mad::LEN] = octets.try_into().map_err(|_| MadError::Length(octets.len()))?;
        let beginning = array_at(octets, 0);
        if beginning != BEGINNING {
            return Err(MadError::Class(beginning));
        }
        let message: Octets = array_at(octets, HEADER_LEN);
        let message = match u16::from_be_bytes(array_at(octets, 16)) {
            REQUEST => Message::Request(Box::new(Request::parse(&message)?)),
            RECEIPT => Message::Receipt(Receipt::parse(&message)),
            REJECT => Message::Reject(Reject::parse(&message)),
            REPLY => Message::Reply(Reply::parse(&message)?),
            READY_TO_USE => Message::ReadyToUse(Ids::parse(&message)),
            DISCONNECT_REQUEST => Message::DisconnectRequest(DisconnectRequest::parse(&message)?),
            DISCONNECT_REPLY => Message::DisconnectReply(Ids::parse(&message)),
            other => return Err(MadError::Attribute(other)),
        };
        Ok(Mad { transaction_id: u64::from_be_bytes(array_at(octets, 8)), message })
    }

    /// The octets. Private data of messages in which it is not kept are zeros.
    pub fn emit(&self) -> [u8; Mad::LEN] {
        let mut message: Octets = [0; MESSAGE_LEN];
        let attribute = match &self.message {
            Message::Request(request) => {
                request.emit(&mut message);
                REQUEST
            }
            Message::Receipt(receipt) => {
                receipt.emit(&mut message);
                RECEIPT
            }
            Message::Reject(reject) => {
                reject.emit(&mut message);
                REJECT
            }
            Message::Reply(reply) => {
                reply.emit(&mut message);
                REPLY
            }
            Message::ReadyToUse(ids) => {
                ids.emit(&mut message);
                READY_TO_USE
            }
            Message::DisconnectRequest(request) => {
                request.emit(&mut message);
                DISCONNECT_REQUEST
            }
            Message::DisconnectReply(ids) => {
                ids.emit(&mut message);
                DISCONNECT_REPLY
            }
        };
        let mut octets = [0; Mad::LEN];
        put(&mut octets, 0, BEGINNING);
        put(&mut octets, 8, self.transaction_id.to_be_bytes());
        put(&mut octets, 16, attribute.to_be_bytes());
        put(&mut octets, HEADER_LEN, message);
        octets
    }
}
