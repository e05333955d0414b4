//! Comparison of observed frames with expected ones.

use crate::fields::{Field, fields, summary};
use crate::{Expected, Frame};
use serde::Serialize;

/// A field in which a frame is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Header and field, such as `IPv6 Hop Limit`.
    pub field: String,
    /// The octet of the frame that it begins in: of the frame that came out, or if it has no such field, of the one
    /// that was expected.
    pub offset: usize,
    /// Expected value; absent: there must be no such field.
    pub expected: Option<String>,
    /// Observed value; absent: there is no such field.
    pub got: Option<String>,
}

/// Difference between the observed and the expected frames of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Finding {
    /// A frame that is not what it must be.
    Differs {
        /// The port where it came out.
        port: String,
        /// The fields that differ.
        differences: Vec<Difference>,
        /// The expected frame, in hexadecimal.
        expected: String,
        /// The frame that came out.
        got: String,
    },
    /// An expected frame that was not received.
    Missing {
        /// The port where it must.
        port: String,
        /// The frame in words.
        summary: String,
        /// The frame in hexadecimal.
        expected: String,
    },
    /// A frame that came out at another port.
    WrongPort {
        /// The expected port.
        port: String,
        /// The port where it did.
        got_port: String,
        /// The frame in words.
        summary: String,
    },
    /// A frame that came out once more than it must.
    Duplicate {
        port: String,
        /// The frame in words.
        summary: String,
    },
    /// An unexpected frame.
    Unexpected {
        port: String,
        /// The frame in words.
        summary: String,
        /// The frame in hexadecimal.
        got: String,
    },
}

/// Compares the observed frames of one step with the expected ones; no findings for a correct device.
pub fn compare(expected: &[Expected], observed: &[Frame]) -> Vec<Finding> {
    let observed: Vec<Frame> = observed.iter().filter(|frame| !is_housekeeping(&frame.octets)).map(trimmed).collect();
    let mut left: Vec<&Frame> = observed.iter().collect();
    let mut matched: Vec<&Frame> = Vec::new();
    let mut unmet: Vec<&Expected> = Vec::new();
    for expected in expected {
        let is_it = |frame: &&Frame| frame.port == expected.port && is_met(expected, &frame.octets);
        match left.iter().position(is_it) {
            Some(at) => matched.push(left.remove(at)),
            None => unmet.push(expected),
        }
    }
    let mut findings = Vec::new();
    unmet.retain(|expected| match left.iter().position(|frame| is_met(expected, &frame.octets)) {
        Some(at) => {
            let frame = left.remove(at);
            let (port, got_port) = (expected.port.to_owned(), frame.port.to_owned());
            findings.push(Finding::WrongPort { port, got_port, summary: summary(&frame.octets) });
            false
        }
        None => true,
    });
    left.retain(|frame| {
        let is_known = matched.iter().any(|known| known == frame);
        if is_known {
            let (port, summary) = (frame.port.to_owned(), summary(&frame.octets));
            findings.push(Finding::Duplicate { port, summary });
        }
        !is_known
    });
    findings.extend(pair(&unmet, &mut left));
    for frame in left {
        let port = frame.port.to_owned();
        findings.push(Finding::Unexpected { port, summary: summary(&frame.octets), got: hex::encode(&frame.octets) });
    }
    findings
}

/// Whether as many frames were observed as are expected, be they right or wrong.
pub(crate) fn is_complete(expected: &[Expected], observed: &[Frame]) -> bool {
    !compare(expected, observed).iter().any(|finding| matches!(finding, Finding::Missing { .. }))
}

/// Each frame that is missing beside the one at its port that is most like it.
fn pair(unmet: &[&Expected], left: &mut Vec<&Frame>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for expected in unmet {
        let at_port = (0..left.len()).filter(|at| left[*at].port == expected.port);
        let compared = at_port.map(|at| (at, differences(&expected.completed(&left[at].octets), &left[at].octets)));
        match compared.min_by_key(|(_, differences)| differences.len()) {
            Some((at, differences)) => {
                let frame = left.remove(at);
                let octets = expected.completed(&frame.octets);
                let (port, expected, got) = (frame.port.to_owned(), hex::encode(&octets), hex::encode(&frame.octets));
                findings.push(Finding::Differs { port, differences, expected, got });
            }
            None if expected.may_be_missing => {}
            None => {
                let (port, summary) = (expected.port.to_owned(), summary(&expected.octets));
                findings.push(Finding::Missing { port, summary, expected: hex::encode(&expected.octets) });
            }
        }
    }
    findings
}

fn is_met(expected: &Expected, observed: &[u8]) -> bool {
    expected.octets.len() == observed.len() && expected.completed(observed) == observed
}

/// The fields in which two frames differ, in the order of the frame that came out.
fn differences(expected: &[u8], got: &[u8]) -> Vec<Difference> {
    let (expected_fields, got_fields) = (fields(expected), fields(got));
    let named = |fields: &[Field], name: &str| fields.iter().find(|field| field.name == name).cloned();
    let mut differences = Vec::new();
    for field in &got_fields {
        let must = named(&expected_fields, &field.name);
        let is_same =
            must.as_ref().is_some_and(|must| must.len_bits == field.len_bits && must.bits(expected) == field.bits(got));
        if !is_same {
            let expected = must.map(|must| must.value(expected));
            let (field, offset, got) = (field.name.clone(), field.offset(), Some(field.value(got)));
            differences.push(Difference { field, offset, expected, got });
        }
    }
    for field in expected_fields {
        if named(&got_fields, &field.name).is_none() {
            let (offset, value) = (field.offset(), field.value(expected));
            differences.push(Difference { field: field.name, offset, expected: Some(value), got: None });
        }
    }
    differences
}

/// Unsolicited frames of devices: Neighbor Discovery, ARP, multicast listeners, LLDP and the like.
fn is_housekeeping(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x86, 0xDD]) => {
            const AT: usize = super::expected::ETHERNET;
            const HOP_BY_HOP: u8 = 0;
            let next_header = frame.get(AT + 6).copied();
            let (next_header, at) = match (next_header, frame.get(AT + 41)) {
                (Some(HOP_BY_HOP), Some(len)) => (frame.get(AT + 40).copied(), AT + 48 + 8 * usize::from(*len)),
                _ => (next_header, AT + 40),
            };
            let kind = frame.get(at).copied().unwrap_or_default();
            next_header == Some(crate::octets::ICMPV6) && matches!(kind, 130..=137 | 143)
        }
        Some([0x08, 0x00]) => {
            let destination = frame.get(IPV4_DESTINATION..IPV4_DESTINATION + 4);
            destination.is_none_or(|destination| destination[0] >> 4 == 14 || destination == [0xFF; 4])
        }
        Some([0x88, 0x08] | [0x81, 0x00]) => false,
        _ => true,
    }
}

/// Offset of the destination address of an IPv4 packet.
const IPV4_DESTINATION: usize = super::expected::ETHERNET + 16;

/// Without what Ethernet pads short frames with.
fn trimmed(frame: &Frame) -> Frame {
    let mut frame = frame.clone();
    const IPV6_END: usize = super::expected::ETHERNET + 40;
    if frame.octets.len() > IPV6_END && frame.octets[12..14] == [0x86, 0xDD] {
        let payload_length = usize::from(u16::from_be_bytes([frame.octets[18], frame.octets[19]]));
        frame.octets.truncate(IPV6_END + payload_length);
    }
    if frame.octets.len() > IPV4_DESTINATION && frame.octets[12..14] == [0x08, 0x00] {
        let total_length = usize::from(u16::from_be_bytes([frame.octets[16], frame.octets[17]]));
        frame.octets.truncate(super::expected::ETHERNET + total_length);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::octets::{ipv6, with_hop_limit};

    const A: &str = "a";
    const B: &str = "b";

    fn octets(hop_limit: u8) -> Vec<u8> {
        let packet = ipv6("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap(), 59, &[1, 2, 3, 4]);
        [vec![2; 12], vec![0x86, 0xDD], with_hop_limit(packet, hop_limit)].concat()
    }

    fn frame(port: &'static str, hop_limit: u8) -> Frame {
        Frame { port, octets: octets(hop_limit) }
    }

    fn expected(hop_limit: u8) -> Expected {
        Expected::exactly(A, octets(hop_limit))
    }

    #[test]
    fn expected_frames_are_accepted_in_any_order() {
        assert_eq!(compare(&[expected(1), expected(2)], &[frame(A, 2), frame(A, 1)]), []);
        assert_eq!(compare(&[], &[]), []);
        let padded = Frame { port: A, octets: [octets(1), vec![0; 2]].concat() };
        assert_eq!(compare(&[expected(1)], &[padded]), []);
        let lldp = Frame { port: A, octets: [vec![2; 12], vec![0x88, 0xCC, 0]].concat() };
        assert_eq!(compare(&[expected(1)], &[lldp, frame(A, 1)]), []);
    }

    #[test]
    fn a_field_that_differs_is_named() {
        let findings = compare(&[expected(63)], &[frame(A, 64)]);
        let [Finding::Differs { port, differences, .. }] = &findings[..] else { panic!("{findings:?}") };
        let hop_limit = Difference {
            field: "IPv6 Hop Limit".to_owned(),
            offset: 14 + 7,
            expected: Some("63".to_owned()),
            got: Some("64".to_owned()),
        };
        assert_eq!((port.as_str(), &differences[..]), (A, &[hop_limit][..]));
    }

    /// IGMP and what is broadcast are a device's own affair; padding is no part of a packet.
    #[test]
    fn ipv4_packets_are_compared() {
        let frame = |ttl: u8, destination: [u8; 4], padding: usize| {
            let header = [0x45, 0, 0, 20, 0, 0, 0, 0, ttl, 17, 0, 0, 10, 0, 0, 1];
            Frame { port: A, octets: [&[2; 12][..], &[0x08, 0], &header, &destination, &vec![0; padding]].concat() }
        };
        let expected = Expected::exactly(A, frame(63, [10, 0, 0, 2], 0).octets);
        let others = [frame(1, [224, 0, 0, 22], 4), frame(64, [255; 4], 300), frame(63, [10, 0, 0, 2], 26)];
        assert_eq!(compare(std::slice::from_ref(&expected), &others), []);
        let findings = compare(&[expected], &[frame(64, [10, 0, 0, 2], 0)]);
        let [Finding::Differs { differences, .. }] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!((differences.len(), differences[0].field.as_str()), (1, "IPv4 Time to Live"));
    }

    #[test]
    fn optional_values_are_accepted() {
        let free = expected(63).free_hop_limit(14);
        let optional = free.clone().or_nothing();
        let free = [free];
        assert_eq!(compare(&free, &[frame(A, 7)]), []);
        assert_eq!(compare(&free, &[]).len(), 1);
        assert_eq!(compare(&[optional], &[]), []);
    }

    #[test]
    fn missing_additional_and_misdirected_frames_are_distinguished() {
        assert!(matches!(compare(&[expected(1)], &[])[..], [Finding::Missing { .. }]));
        assert!(matches!(compare(&[expected(1)], &[frame(A, 1), frame(A, 1)])[..], [Finding::Duplicate { .. }]));
        assert!(matches!(compare(&[expected(1)], &[frame(B, 1)])[..], [Finding::WrongPort { .. }]));
        assert!(matches!(compare(&[], &[frame(B, 1)])[..], [Finding::Unexpected { .. }]));
    }
}
