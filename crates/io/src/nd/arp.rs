//! ARP requests and replies (RFC 826).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    Hardware type: Ethernet    |      Protocol type: IPv4      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | HW length 6   | Prot. length 4|    Operation: request 1       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | Sender: MAC address 6, IPv4 address 4                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | Target: MAC address 6, IPv4 address 4                         |
//! ```

use srdma_wire::{EtherType, MacAddress};
use std::net::Ipv4Addr;

/// EtherType of ARP.
pub(super) const ARP: u16 = 0x0806;

const ETHERNET: usize = 14;
const LEN: usize = 28;

/// Ethernet, IPv4, the lengths of their addresses.
const TYPES: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: [u8; 2] = [0, 1];
const REPLY: [u8; 2] = [0, 2];

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    mac: MacAddress,
    /// Of the sender; 0.0.0.0 in a probe of address conflict detection (RFC 5227).
    sender: Ipv4Addr,
    pub(super) target: Ipv4Addr,
}

impl Request {
    /// Reads a frame that is a request. One for the sender's own address is an announcement, and needs no answer.
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let message: &[u8; LEN] = frame.get(ETHERNET..)?.first_chunk()?;
        let address = |at: usize| Ipv4Addr::from([message[at], message[at + 1], message[at + 2], message[at + 3]]);
        let mac = MacAddress(*message[8..].first_chunk()?);
        let (sender, target) = (address(14), address(24));
        let is_request = message[..6] == TYPES && message[6..8] == REQUEST;
        let has_sender = !mac.is_group() && !sender.is_multicast() && !sender.is_broadcast();
        (is_request && has_sender && sender != target).then_some(Request { mac, sender, target })
    }

    /// The answer, as a frame: the target is at `mac`. A probe learns that its address is taken.
    pub(super) fn reply(&self, mac: MacAddress) -> Vec<u8> {
        let ethernet = [&self.mac.0[..], &mac.0, &EtherType(ARP).0.to_be_bytes()].concat();
        let (sender, target) = (self.target.octets(), self.sender.octets());
        [&ethernet[..], &TYPES, &REPLY, &mac.0, &sender, &self.mac.0, &target].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As scapy makes it, like the reply below: 10.1.0.1 asks for 10.1.0.100.
    const ASKED: [u8; 42] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 1, 0,
        1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 10, 1, 0, 100,
    ];
    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn changed(at: usize, octet: u8) -> Option<Request> {
        let mut frame = ASKED;
        frame[at] = octet;
        Request::parse(&frame)
    }

    #[test]
    fn a_request_is_answered_to_its_sender() {
        let reply = Request::parse(&ASKED).unwrap().reply(OURS);
        let expected = [
            2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 1, 0, 100, 2, 0, 0,
            0, 0, 9, 10, 1, 0, 1,
        ];
        assert_eq!(reply, expected);
        assert_eq!(Request::parse(&reply), None, "a reply is not answered");
    }

    #[test]
    fn others_are_not() {
        for (at, octet) in [(15, 6), (16, 0x86), (18, 8), (19, 16), (21, 3), (22, 3), (28, 224)] {
            assert_eq!(changed(at, octet), None, "{at}");
        }
        assert_eq!(changed(31, 100), None, "an announcement");
        for len in 0..ASKED.len() {
            assert_eq!(Request::parse(&ASKED[..len]), None);
        }
    }

    /// RFC 5227 section 2.1.1.
    #[test]
    fn a_probe_is_answered() {
        let mut probe = ASKED;
        probe[28..32].fill(0);
        assert_eq!(Request::parse(&probe).unwrap().reply(OURS)[38..42], [0; 4]);
    }
}
