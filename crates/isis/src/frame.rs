//! IS-IS on Ethernet: an 802.3 frame with LLC, to the group address of all intermediate systems.
//!
//! ```text
//! | destination 6 | source 6 | length 2       | FE FE 03 | PDU … | padding |
//! | destination 6 | source 6 | EtherType 8870 | FE FE 03 | PDU … | padding |
//! ```
//!
//! The second form is for PDUs that are longer than the length field allows, such as hellos padded to the MTU of a
//! link with jumbo frames. It is read and never written.

use crate::pdu::Level;
use srdma_wire::MacAddress;

/// Destination of the PDUs of point-to-point circuits: all intermediate systems (RFC 5309 section 4).
pub const ALL_INTERMEDIATE_SYSTEMS: MacAddress = MacAddress([0x09, 0x00, 0x2B, 0x00, 0x00, 0x05]);

/// The groups of level 1 and of level 2 on LANs (ISO 10589 section 8.4.8). Frames to any group are taken on all
/// circuits.
const ALL_LEVEL_1: MacAddress = MacAddress([0x01, 0x80, 0xC2, 0x00, 0x00, 0x14]);
const ALL_LEVEL_2: MacAddress = MacAddress([0x01, 0x80, 0xC2, 0x00, 0x00, 0x15]);

/// All groups that an interface has to let in.
pub const GROUPS: [MacAddress; 3] = [ALL_INTERMEDIATE_SYSTEMS, ALL_LEVEL_1, ALL_LEVEL_2];

const LLC: [u8; 3] = [0xFE, 0xFE, 0x03];

/// Octets in front of the PDU.
pub const FRAME_HEADER_LEN: usize = 6 + 6 + 2 + LLC.len();

/// The largest value of the length field of 802.3; greater ones are EtherTypes.
const GREATEST_LENGTH: usize = 1500;

/// The EtherType in place of a length.
const LONG: u16 = 0x8870;

/// The largest PDU of a frame without an extension for jumbo frames.
pub const GREATEST_PDU: usize = GREATEST_LENGTH - LLC.len();

/// Destination of the PDUs of a level on LANs.
pub const fn group_of(level: Level) -> MacAddress {
    match level {
        Level::One => ALL_LEVEL_1,
        Level::Two => ALL_LEVEL_2,
    }
}

/// A frame around a PDU of a point-to-point circuit; `None` if the PDU is longer than [`GREATEST_PDU`].
pub fn wrap(source: MacAddress, pdu: &[u8]) -> Option<Vec<u8>> {
    wrap_to(ALL_INTERMEDIATE_SYSTEMS, source, pdu)
}

/// A frame around a PDU; `None` if the PDU is longer than [`GREATEST_PDU`].
pub fn wrap_to(destination: MacAddress, source: MacAddress, pdu: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(LLC.len() + pdu.len()).ok().filter(|length| usize::from(*length) <= GREATEST_LENGTH)?;
    let mut frame = Vec::with_capacity(FRAME_HEADER_LEN + pdu.len());
    frame.extend(destination.0);
    frame.extend(source.0);
    frame.extend(length.to_be_bytes());
    frame.extend(LLC);
    frame.extend(pdu);
    Some(frame)
}

/// The sender of a frame.
pub fn source_of(frame: &[u8]) -> Option<MacAddress> {
    frame.get(6..)?.first_chunk::<6>().copied().map(MacAddress)
}

/// The PDU of a frame, without what pads it; `None` if it is no frame of IS-IS.
pub fn unwrap(frame: &[u8]) -> Option<&[u8]> {
    let (destination, rest) = frame.split_first_chunk::<6>()?;
    let (_source, rest) = rest.split_first_chunk::<6>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    if !GROUPS.contains(&MacAddress(*destination)) {
        return None;
    }
    let within = match u16::from_be_bytes(*length) {
        LONG => rest,
        length if usize::from(length) <= GREATEST_LENGTH => rest.get(..usize::from(length))?,
        _ => return None,
    };
    within.strip_prefix(&LLC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_no_part_of_the_pdu() {
        let mut frame = wrap(MacAddress([2, 0, 0, 0, 0, 1]), &[0x83, 1, 2]).unwrap();
        frame.resize(60, 0);
        assert_eq!(unwrap(&frame), Some([0x83, 1, 2].as_slice()));
    }

    #[test]
    fn longer_frames_have_an_ethertype() {
        let mut frame = wrap(MacAddress([2, 0, 0, 0, 0, 1]), &[0x83, 1, 2]).unwrap();
        frame[12..14].copy_from_slice(&[0x88, 0x70]);
        frame.resize(9014, 7);
        let pdu = unwrap(&frame).unwrap();
        assert_eq!((pdu.len(), &pdu[..3]), (9014 - FRAME_HEADER_LEN, [0x83, 1, 2].as_slice()));
    }

    #[test]
    fn other_frames_are_ignored() {
        let frame = wrap(MacAddress([2, 0, 0, 0, 0, 1]), &[0x83]).unwrap();
        for (at, octet) in [(0, 0x33), (12, 0x86), (13, 200), (14, 0xAA)] {
            let mut other = frame.clone();
            other[at] = octet;
            assert_eq!(unwrap(&other), None, "octet {at}");
        }
        assert_eq!(wrap(MacAddress([2, 0, 0, 0, 0, 1]), &[0; GREATEST_PDU + 1]), None);
    }
}
