//! The multicast draft's additions to SRHs: receiver lists, and the HMAC that protects them.

use super::{IPV6, srh};
use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;
use std::net::Ipv6Addr;

/// Opcode of a WRITE Only.
pub(crate) const WRITE_ONLY: u8 = 0x0A;

/// An End.MT TLV (MT-7.2-1), padded to eight octets (D7).
pub(crate) fn end_mt_tlv(edge: Ipv6Addr, receivers: &[(Ipv6Addr, u32)]) -> Vec<u8> {
    let mut tlv = vec![124, (22 + 20 * receivers.len()) as u8, 0, 0];
    tlv.extend(edge.octets());
    tlv.extend([receivers.len() as u8, 0, 0, 0]);
    for (address, qpn) in receivers {
        tlv.extend(address.octets());
        tlv.extend((qpn << 8).to_be_bytes());
    }
    if !receivers.len().is_multiple_of(2) {
        tlv.extend([4, 2, 0, 0]);
    }
    tlv
}

/// An MR TLV (D27): for each receiver of the End.MT TLV before it, base address and rkey.
pub(crate) fn mr_tlv(edge: Ipv6Addr, regions: &[(u64, u32)]) -> Vec<u8> {
    let mut tlv = vec![125, (22 + 12 * regions.len()) as u8, 0, 0];
    tlv.extend(edge.octets());
    tlv.extend([regions.len() as u8, 0, 0, 0]);
    for (base, rkey) in regions {
        tlv.extend(base.to_be_bytes());
        tlv.extend(rkey.to_be_bytes());
    }
    if !regions.len().is_multiple_of(2) {
        tlv.extend([4, 2, 0, 0]);
    }
    tlv
}

/// An SRH as [`srh`] makes it, with an HMAC TLV (RFC 8754 section 2.1.2) behind End.MT and MR TLVs, which it covers
/// (D9). D is set: the active segment is not in the list.
pub(crate) fn signed_srh(source: Ipv6Addr, list: &[Ipv6Addr], tlvs: &[u8], (key_id, key): (u32, &[u8])) -> Vec<u8> {
    const D: [u8; 2] = [0x80, 0];
    let hmac_tlv = [&[5, 38][..], &D, &key_id.to_be_bytes(), &[0; 32]].concat();
    let mut header = srh(IPV6, list.len() as u8, list, &[tlvs, &hmac_tlv].concat());
    let mut text = source.octets().to_vec();
    text.extend([header[4], header[5]]);
    text.extend(D);
    text.extend(key_id.to_be_bytes());
    text.extend(list.iter().flat_map(Ipv6Addr::octets));
    text.extend(tlvs);
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(&text);
    let digest_at = header.len() - 32;
    header[digest_at..].copy_from_slice(&mac.finalize().into_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_capture::Reader;
    use std::path::Path;

    /// scapy's packets to an edge, from their outer IPv6 header on.
    fn golden() -> Vec<Vec<u8>> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_02_endmt_in.pcap");
        Reader::open(&file).expect("a capture").map(|packet| packet.expect("a packet").octets[14..].to_vec()).collect()
    }

    fn address(octets: &[u8]) -> Ipv6Addr {
        Ipv6Addr::from(<[u8; 16]>::try_from(octets).expect("sixteen octets"))
    }

    /// The SRH of a packet.
    fn header(packet: &[u8]) -> &[u8] {
        &packet[40..48 + 8 * usize::from(packet[41])]
    }

    /// MT-7.2-1, D7: one TLV of two receivers, of one, and of eleven.
    #[test]
    fn lists_equal_those_of_scapy() {
        for (index, count) in [(0, 2), (4, 1), (5, 11)] {
            let packet = &golden()[index];
            let tlv = &packet[64..];
            let receivers = tlv[24..].chunks(20).take(count);
            let receivers = receivers.map(|receiver| {
                (address(&receiver[..16]), u32::from_be_bytes([0, receiver[16], receiver[17], receiver[18]]))
            });
            let list = end_mt_tlv(address(&tlv[4..20]), &receivers.collect::<Vec<_>>());
            assert_eq!(srh(IPV6, 1, &[address(&packet[48..64])], &list), header(packet), "packet {}", index + 1);
        }
    }

    /// MT-9-1, D9: the HMAC that covers the lists.
    #[test]
    fn the_hmac_equals_that_of_scapy() {
        let packet = &golden()[3];
        let expected = header(packet);
        let tlvs = &expected[24..expected.len() - 40];
        let key = b"secret-key-for-tests-0123456789ab";
        let signed = signed_srh(address(&packet[8..24]), &[address(&expected[8..24])], tlvs, (42, key));
        assert_eq!(signed, expected);
    }
}
