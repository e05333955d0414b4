//! Pings to SIDs (RFC 9259 section 3.1).

use super::Node;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::headers::{IPV6, beyond, ipv6};
use srdma_frame::{Frame, Pool};
use srdma_wire::Ipv6;
use srdma_wire::checksum::Sum;
use srdma_wire::ipv6::NextHeader;
use zerocopy::IntoBytes;

/// The longest echo reply, IPv6 header included; longer requests are dropped.
const MAX_REPLY: usize = 2048;

/// ICMPv6 type of an echo reply.
const ECHO_REPLY: u8 = 129;

/// Where the ICMPv6 message of a reply begins in its frame.
const MESSAGE: usize = IPV6 + Ipv6::LEN;

impl Node {
    /// Answers an echo request to a SID, whose ICMPv6 header is at `at`, from that SID.
    #[cold]
    pub(super) fn echo(&mut self, context: &PacketContext, frame: Frame, pool: &mut Pool, at: usize) {
        let reply = echo_reply(&frame, pool, at);
        match reply {
            Ok(reply) if self.icmp_errors.take(context.now) => {
                let reply_context = PacketContext { port: None, ..*context };
                match Frame::from_octets(reply.octets(), pool) {
                    Some(reply) => {
                        self.send_in_table(&reply_context, reply, pool);
                    }
                    None => self.ports.count_drop(None, DropReason::NoBuffer),
                }
                frame.release(pool);
            }
            Ok(_) => self.ports.drop_frame(context, frame, pool, DropReason::EchoRateLimited),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }
}

/// An echo reply, Ethernet header included.
struct EchoReply {
    octets: [u8; IPV6 + MAX_REPLY],
    len: usize,
}

impl EchoReply {
    fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

fn echo_reply(request: &Frame, pool: &Pool, at: usize) -> Result<EchoReply, DropReason> {
    let view = ipv6(request.head(pool))?;
    let (source, destination) = (view.destination(), view.source());
    let message_len = request.len().checked_sub(at).ok_or_else(|| beyond(request.head(pool)))?;
    if MESSAGE + message_len > IPV6 + MAX_REPLY {
        return Err(DropReason::UpperLayer);
    }
    let mut reply = EchoReply { octets: [0; IPV6 + MAX_REPLY], len: MESSAGE };
    let mut skip = at;
    for piece in request.pieces(pool) {
        let wanted = piece.get(skip..).unwrap_or(&[]);
        skip = skip.saturating_sub(piece.len());
        reply.octets[reply.len..reply.len + wanted.len()].copy_from_slice(wanted);
        reply.len += wanted.len();
    }
    let sum_of = |octets: &[u8]| {
        let (source, destination) = (source.octets(), destination.octets());
        let mut sum = Sum::pseudo_header(&source, &destination, message_len as u32, NextHeader::ICMPV6);
        sum.add(octets);
        sum.checksum()
    };
    let message = reply.octets.get_mut(MESSAGE..reply.len).ok_or(DropReason::Truncated)?;
    if message.len() < 8 {
        return Err(DropReason::Truncated);
    }
    // A right checksum makes the sum of the message with it zero.
    if ![0, 0xFFFF].contains(&sum_of(message)) {
        return Err(DropReason::UpperLayer);
    }
    (message[0], message[2], message[3]) = (ECHO_REPLY, 0, 0);
    let checksum = sum_of(message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let header = Ipv6 {
        traffic_class: view.traffic_class() & !3,
        flow_label: 0,
        payload_length: message_len as u16,
        next_header: NextHeader::ICMPV6,
        hop_limit: 64,
        source,
        destination,
    };
    reply.octets[IPV6..MESSAGE].copy_from_slice(header.emit().as_bytes());
    Ok(reply)
}
