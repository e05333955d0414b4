//! Pings to SIDs (RFC 9259 section 3.1).

use super::Node;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::headers::{IPV6, ipv6};
use crate::icmp::{self, MESSAGE};
use srdma_frame::{Frame, Pool};

/// The longest echo reply, IPv6 header included; longer requests are dropped.
const MAX_REPLY: usize = 2048;

/// ICMPv6 type of an echo reply.
const ECHO_REPLY: u8 = 129;

impl Node {
    /// Answers an echo request to a SID, whose ICMPv6 header is at `at`, from that SID.
    #[cold]
    pub(super) fn echo(&mut self, context: &PacketContext, mut frame: Frame, pool: &mut Pool, at: usize) {
        let mut octets = [0; IPV6 + MAX_REPLY];
        match echo_reply(&mut frame, pool, at, &mut octets) {
            Ok(reply) if self.icmp_errors.take(context.now) => {
                match Frame::from_octets(reply, pool) {
                    Some(reply) => self.send_in_table(&PacketContext { port: None, ..*context }, reply, pool),
                    None => self.ports.count_drop(None, DropReason::NoBuffer),
                }
                frame.release(pool);
            }
            Ok(_) => self.ports.drop_frame(context, frame, pool, DropReason::EchoRateLimited),
            Err(reason) => self.ports.drop_frame(context, frame, pool, reason),
        }
    }
}

/// The reply to a request, which then begins with its ICMPv6 message, in `octets`, Ethernet header included.
fn echo_reply<'o>(
    request: &mut Frame,
    pool: &Pool,
    at: usize,
    octets: &'o mut [u8; IPV6 + MAX_REPLY],
) -> Result<&'o [u8], DropReason> {
    let view = ipv6(request.head(pool))?;
    let (sid, peer, traffic_class) = (view.destination(), view.source(), view.traffic_class() & !3);
    request.pull(at);
    let len = MESSAGE + request.copy_to(&mut octets[MESSAGE..], pool).ok_or(DropReason::UpperLayer)?;
    let reply = &mut octets[..len];
    let message = &mut reply[MESSAGE..];
    if message.len() < 8 {
        return Err(DropReason::Truncated);
    }
    if ![0, 0xFFFF].contains(&icmp::checksum(message, peer, sid)) {
        return Err(DropReason::UpperLayer);
    }
    (message[0], message[2], message[3]) = (ECHO_REPLY, 0, 0);
    icmp::complete(reply, sid, peer, traffic_class);
    Ok(reply)
}
