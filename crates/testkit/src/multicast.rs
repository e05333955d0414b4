//! Reference model of End.MT: copy the inner packet, replace, recompute everything.

use crate::checksums;
use std::net::Ipv6Addr;

/// A receiver: address, queue pair, and where the group's memory is at it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    pub address: Ipv6Addr,
    /// Queue pair number.
    pub qpn: u32,
    /// Virtual address and key that stand for the group's.
    pub region: Option<(u64, u32)>,
    /// The PSN of its copies minus that of the packet.
    pub psn_offset: u32,
}

/// The copy of an inner packet for one receiver (multicast draft section 6.2, S07–S10; D5, D11, D27): source address
/// becomes the Proxy Address, destination, queue pair and PSN the receiver's, and the RETH of a WRITE First or Only is moved
/// from `group_base` to the receiver's region. The ICRC must have been good.
pub fn copy_for(inner: &[u8], receiver: &Receiver, group_base: u64) -> Vec<u8> {
    let mut copy = inner.to_vec();
    let proxy: Vec<u8> = copy[24..40].to_vec();
    copy[7] -= 1;
    copy[8..24].copy_from_slice(&proxy);
    copy[24..40].copy_from_slice(&receiver.address.octets());
    copy[53..56].copy_from_slice(&receiver.qpn.to_be_bytes()[1..]);
    let psn = u32::from_be_bytes([0, copy[57], copy[58], copy[59]]).wrapping_add(receiver.psn_offset);
    copy[57..60].copy_from_slice(&psn.to_be_bytes()[1..]);
    let opcode = copy[48];
    if let (Some((base, rkey)), 0x06 | 0x0A | 0x0B) = (receiver.region, opcode) {
        let address = u64::from_be_bytes(copy[60..68].try_into().expect("eight octets"));
        copy[60..68].copy_from_slice(&(base + (address - group_base)).to_be_bytes());
        copy[68..72].copy_from_slice(&rkey.to_be_bytes());
    }
    let end = copy.len() - 4;
    let icrc = checksums::icrc(&copy[..end]);
    copy[end..].copy_from_slice(&icrc);
    if copy[46..48] != [0, 0] {
        let checksum = checksums::udp(&copy);
        copy[46..48].copy_from_slice(&checksum.to_be_bytes());
    }
    copy
}
