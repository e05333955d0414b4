//! UDP, and RoCEv2 in it.

use super::Walk;

const ROCE_PORT: u16 = 4791;
const ICRC_OCTETS: usize = 4;

/// A UDP datagram to the end of the frame.
pub(super) fn udp(walk: &mut Walk<'_>) {
    if !walk.begin("UDP", 8) {
        return;
    }
    let is_roce = walk.peek_u16(2) == Some(ROCE_PORT);
    walk.bits(&[("Source Port", 16), ("Destination Port", 16), ("Length", 16), ("Checksum", 16)]);
    if is_roce {
        rocev2(walk);
    }
}

fn rocev2(walk: &mut Walk<'_>) {
    if !walk.begin("BTH", 12 + ICRC_OCTETS) {
        return;
    }
    let opcode = walk.peek(0).unwrap_or_default();
    walk.bits(&[
        ("OpCode", 8),
        ("SE", 1),
        ("M", 1),
        ("Pad", 2),
        ("TVer", 4),
        ("P_Key", 16),
        ("FECN", 1),
        ("BECN", 1),
        ("Reserved", 6),
        ("Destination QP", 24),
        ("AckReq", 1),
        ("Reserved (2)", 7),
        ("PSN", 24),
    ]);
    match opcode {
        0x06 | 0x0A | 0x0B | 0x0C if walk.begin("RETH", 16 + ICRC_OCTETS) => {
            walk.bits(&[("Virtual Address", 64), ("R_Key", 32), ("DMA Length", 32)]);
        }
        0x0D | 0x0F..=0x12 if walk.begin("AETH", 4 + ICRC_OCTETS) => {
            walk.bits(&[("Syndrome", 8), ("MSN", 24)]);
        }
        _ => {}
    }
    let payload = walk.rest().len().saturating_sub(ICRC_OCTETS);
    walk.begin("payload", 0);
    walk.octets("", payload);
    if walk.begin("ICRC", ICRC_OCTETS) {
        walk.octets("", ICRC_OCTETS);
    }
}
