//! The check's own reading of packets: it shares no parser with the product.
//!
//! The link of each source is captured as pcapng. The capture is read octet by octet, and each response to the source
//! is found by its offsets.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// The octets that a capture has written since the last call of [`Tap::responses`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap(Rc<RefCell<Vec<u8>>>);

impl Write for Tap {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A response to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    /// An ACK: it includes its own PSN. All others include those before it.
    pub(crate) is_ack: bool,
}

/// Interface of the direction toward the upper end, the source.
const UP: u32 = 1;

const ENHANCED_PACKET_BLOCK: u32 = 6;

impl Tap {
    /// The responses that went to the source since the last call.
    pub(crate) fn responses(&self) -> Vec<Seen> {
        let mut octets = self.0.borrow_mut();
        let mut seen = Vec::new();
        let mut rest = octets.as_slice();
        while let (Some(kind), Some(length)) = (word(rest, 0), word(rest, 4)) {
            let Some(block) = rest.get(..length as usize) else { break };
            if kind == ENHANCED_PACKET_BLOCK
                && word(block, 8) == Some(UP)
                && let Some(captured) = word(block, 20)
                && let Some(frame) = block.get(28..28 + captured as usize)
            {
                seen.extend(response(frame));
            }
            rest = &rest[length.max(12) as usize..];
        }
        octets.clear();
        seen
    }
}

/// Ethernet 14 octets, IPv6 40, UDP 8, BTH 12, AETH 4.
fn response(frame: &[u8]) -> Option<Seen> {
    const IPV6: usize = 14;
    const UDP: usize = IPV6 + 40;
    const BTH: usize = UDP + 8;
    const AETH: usize = BTH + 12;
    let is_rocev2 = frame.get(12..14)? == [0x86, 0xdd]
        && *frame.get(IPV6 + 6)? == 17
        && frame.get(UDP + 2..UDP + 4)? == 4791_u16.to_be_bytes();
    // RC Acknowledge.
    if !is_rocev2 || *frame.get(BTH)? != 0x11 {
        return None;
    }
    let number = |at: usize| {
        let octets = frame.get(at..at + 3)?;
        Some(u32::from(octets[0]) << 16 | u32::from(octets[1]) << 8 | u32::from(octets[2]))
    };
    let is_ack = frame.get(AETH)? >> 5 == 0;
    Some(Seen { qpn: number(BTH + 5)?, psn: number(BTH + 9)?, is_ack })
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..at + 4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// The signed distance from one PSN to another, which is less than 2^23.
pub(crate) fn distance(from: u32, to: u32) -> i64 {
    let ahead = i64::from(to.wrapping_sub(from) & 0xFF_FFFF);
    if ahead < 1 << 23 { ahead } else { ahead - (1 << 24) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK as the kernel's soft-RoCE writes it, with the addresses shortened to zeros.
    fn frame(opcode: u8, syndrome: u8) -> Vec<u8> {
        let mut frame = vec![0; 14 + 40 + 8 + 12 + 4 + 4];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[20] = 17;
        frame[56..58].copy_from_slice(&[0x12, 0xb7]);
        frame[62] = opcode;
        frame[67..70].copy_from_slice(&[0, 1, 2]);
        frame[71..74].copy_from_slice(&[0xff, 0xff, 0xfe]);
        frame[74] = syndrome;
        frame
    }

    #[test]
    fn responses_are_read_by_their_offsets() {
        let ack = Seen { qpn: 0x102, psn: 0xFF_FFFE, is_ack: true };
        assert_eq!(response(&frame(0x11, 0x1f)), Some(ack));
        assert_eq!(response(&frame(0x11, 0x60)), Some(Seen { is_ack: false, ..ack }), "NAK");
        assert_eq!(response(&frame(0x11, 0x23)), Some(Seen { is_ack: false, ..ack }), "RNR NAK");
        assert_eq!(response(&frame(0x0a, 0)), None, "a WRITE");
        assert_eq!(response(&frame(0x11, 0)[..70]), None);
    }

    #[test]
    fn distances_wrap() {
        assert_eq!([distance(0xFF_FFFE, 1), distance(1, 0xFF_FFFE), distance(7, 7)], [3, -3, 0]);
    }
}
