//! Messages of the RDMA Communication Manager, as far as they name the queue pairs of a connection (IBTA volume 1,
//! chapter 12; MADs: section 13.4).
//!
//! ```text
//! | IPv6 | UDP 4791 | BTH: UD SEND Only to QP 1 | DETH 8 | MAD header 24 | message 232 | ICRC |
//!
//!  MAD header                                DETH
//! +--------+--------+--------+--------+     +-----------------------------------+
//! |Version | Class  |ClassVer| Method |     |               Q_Key               |
//! +--------+--------+--------+--------+     +--------+--------------------------+
//! |      Status     |  Class-specific |     |Reserved|         Source QP        |
//! +-----------------+-----------------+     +--------+--------------------------+
//! :          Transaction ID 8         :
//! +-----------------+-----------------+
//! |   Attribute ID  |     Reserved    |
//! +-----------------+-----------------+
//! |        Attribute Modifier         |
//! +-----------------------------------+
//!
//!  message         ConnectRequest     ConnectReply       DisconnectRequest
//!  octet  0        Local Comm. ID     Local Comm. ID     Local Comm. ID
//!         4        reserved           Remote Comm. ID    Remote Comm. ID
//!         8        Service ID 8       Local Q_Key        Remote QPN 3
//!        12        …                  Local QPN 3        private data
//!        32        Local QPN 3        …
//! ```

use crate::bth::BthView;
use crate::codepoints::ROCEV2_PORT;
use crate::icrc::{Computation, Icrc};
use crate::ipv6::{Ipv6View, NextHeader};
use crate::psn::Qpn;
use crate::udp::UdpView;
use crate::view::View;
use core::net::Ipv6Addr;

/// Opcode of UD SEND Only, which carries all of these.
const UD_SEND_ONLY: u8 = 0x64;

/// The queue pair of general services.
const GENERAL_SERVICES: u32 = 1;

/// Octets of DETH, MAD header and message.
const DETH_LEN: usize = 8;
const MAD_HEADER_LEN: usize = 24;
const MESSAGE_LEN: usize = 232;

/// Octets of the whole packet, from the IPv6 header to the ICRC.
pub const CM_PACKET_LEN: usize =
    Ipv6View::LEN + UdpView::LEN + BthView::LEN + DETH_LEN + MAD_HEADER_LEN + MESSAGE_LEN + Icrc::LEN;

/// MAD base version 1, class Communication Management, class version 2, method Send.
const MAD_BEGINNING: [u8; 4] = [1, 0x07, 2, 0x03];

const CONNECT_REQUEST: u16 = 0x0010;
const CONNECT_REPLY: u16 = 0x0013;
const DISCONNECT_REQUEST: u16 = 0x0015;

/// The queue pairs in a message. The local side is its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmMessage {
    /// REQ: the sender requests a connection to this queue pair of its own.
    ConnectRequest {
        /// The sender's name for the connection.
        local_id: u32,
        /// Its queue pair.
        local_qpn: Qpn,
    },
    /// REP: the sender has connected this queue pair of its own.
    ConnectReply {
        /// The name of the connection that the REQ had.
        remote_id: u32,
        /// The sender's queue pair.
        local_qpn: Qpn,
    },
    /// DREQ: the connection to this queue pair of the other side is over.
    DisconnectRequest {
        /// The queue pair of the message's receiver.
        remote_qpn: Qpn,
    },
}

impl CmMessage {
    /// The queue pairs in the MAD at the front of `mad`, if it is one of the three messages. A ConnectRequest may also
    /// be for a Reliable Datagram or XRC: their packets are not identified by (address, queue pair) alone.
    pub fn parse(mad: &[u8]) -> Option<Self> {
        let (header, message) = mad.split_first_chunk::<MAD_HEADER_LEN>()?;
        if header.first_chunk() != Some(&MAD_BEGINNING) {
            return None;
        }
        let attribute = u16::from_be_bytes(*header.get(16..)?.first_chunk()?);
        let word = |at: usize| Some(u32::from_be_bytes(*message.get(at..)?.first_chunk()?));
        let qpn =
            |at: usize| Some(Qpn::from_octets(*message.get(at..)?.first_chunk()?)).filter(|qpn| qpn.is_connected());
        Some(match attribute {
            CONNECT_REQUEST => {
                let transport_service = message.get(43)? >> 1 & 3;
                (transport_service <= 1).then_some(())?;
                CmMessage::ConnectRequest { local_id: word(0)?, local_qpn: qpn(32)? }
            }
            CONNECT_REPLY => CmMessage::ConnectReply { remote_id: word(4)?, local_qpn: qpn(12)? },
            DISCONNECT_REQUEST => CmMessage::DisconnectRequest { remote_qpn: qpn(8)? },
            _ => return None,
        })
    }
}

/// A message with its sender and receiver.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmPacket {
    /// The sender.
    pub source: Ipv6Addr,
    /// The receiver.
    pub destination: Ipv6Addr,
    pub message: CmMessage,
}

impl CmPacket {
    /// Whether the packet at the front of `octets`, an IPv6 header, is one to the queue pair of general services. This
    /// is asked of every packet; [`CmPacket::parse`] of those few for which the answer is yes.
    #[inline]
    pub fn may_be(octets: &[u8]) -> bool {
        const PORT: usize = Ipv6View::LEN + 2;
        const BTH: usize = Ipv6View::LEN + UdpView::LEN;
        let Some(headers) = octets.first_chunk::<{ BTH + BthView::LEN }>() else { return false };
        headers[6] == NextHeader::UDP.0
            && [headers[PORT], headers[PORT + 1]] == ROCEV2_PORT.to_be_bytes()
            && headers[BTH] == UD_SEND_ONLY
            && [headers[BTH + 5], headers[BTH + 6], headers[BTH + 7]] == [0, 0, GENERAL_SERVICES as u8]
    }

    /// The message in the IPv6 packet at the front of `octets`. `None` for other packets, incomplete ones, and those
    /// with a wrong ICRC.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let packet = octets.first_chunk::<CM_PACKET_LEN>().filter(|_| Self::may_be(octets))?;
        let (covered, icrc) = packet.split_last_chunk::<{ Icrc::LEN }>()?;
        let (ipv6, rest) = Ipv6View::split(covered).ok()?;
        let (udp, rest) = UdpView::split(rest).ok()?;
        let (bth, behind_bth) = BthView::split(rest).ok()?;
        let is_whole = usize::from(ipv6.payload_length()) == CM_PACKET_LEN - Ipv6View::LEN
            && usize::from(udp.length()) == CM_PACKET_LEN - Ipv6View::LEN;
        let mut computation = Computation::begin(ipv6, 0, udp, bth);
        computation.update(behind_bth);
        if !is_whole || bth.transport_version() != 0 || bth.pad_count() != 0 || computation.finish().0 != *icrc {
            return None;
        }
        let message = CmMessage::parse(behind_bth.get(DETH_LEN..)?)?;
        Some(CmPacket { source: ipv6.source(), destination: ipv6.destination(), message })
    }
}
