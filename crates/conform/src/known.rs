//! Known departures of devices from the documents.

use crate::Finding;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Departure {
    pub name: &'static str,
    pub devices: &'static str,
    /// Behaviour of the devices, a sentence.
    pub sentence: &'static str,
}

/// A departure, and how it looks in which cases.
struct Known {
    departure: Departure,
    cases: &'static [&'static str],
    looks: Looks,
}

/// Common pattern of all findings of a case.
enum Looks {
    /// No frame instead of an expected one.
    Missing,
    /// An unexpected frame.
    Unexpected,
    /// The expected frame, cut short.
    Cut,
    /// Only fields differ whose names begin so.
    Fields(&'static [&'static str]),
}

const fn linux(name: &'static str, sentence: &'static str) -> Departure {
    Departure { name, devices: "Linux", sentence }
}

const MARK_LOST: Departure = linux(
    "congestion-mark",
    "at decapsulation the inner ECN field stays as it is: a tunnel's congestion mark is lost (RFC 6040 section 4.2)",
);

/// Measured on Linux 6.18.
const KNOWN: [Known; 14] = [
    Known {
        departure: linux(
            "silent-refusals",
            "a packet that a SID refuses is dropped without the ICMPv6 error that RFC 8986 requires",
        ),
        cases: &[
            "end-segments-left-too-large",
            "end-last-entry-too-large",
            "end-upper-layer",
            "end-does-not-decapsulate",
            "end-x-upper-layer",
            "end-dt6-segments-left",
            "end-dt6-upper-layer",
            "end-dx6-segments-left",
            "end-dx6-upper-layer",
            "end-dx2-segments-left",
            "end-dx2-upper-layer",
            "end-b6-encaps-segments-left-too-large",
            "end-b6-encaps-no-segment",
            "end-b6-encaps-upper-layer",
        ],
        looks: Looks::Missing,
    },
    Known {
        departure: MARK_LOST,
        cases: &["end-dt6-congested-tunnel", "end-dx6-congested-tunnel"],
        looks: Looks::Fields(&["IPv6 ECN"]),
    },
    Known {
        departure: MARK_LOST,
        cases: &["end-dt6-congested-not-capable", "end-dx6-congested-not-capable"],
        looks: Looks::Unexpected,
    },
    Known {
        departure: linux(
            "inner-hop-limit",
            "encapsulation leaves the inner hop limit as it is, and decrements the outer one (RFC 8986 4.13, 5.1)",
        ),
        cases: &[
            "h-encaps-red-one-segment",
            "h-encaps-red-three-segments",
            "h-encaps-red-congested",
            "h-encaps-one-segment",
            "h-encaps-three-segments",
            "h-encaps-packet-with-srh",
            "h-encaps-congested",
            "end-b6-encaps",
            "end-b6-encaps-last-segment",
            "end-b6-encaps-tag-and-tlvs",
            "end-b6-encaps-congested",
        ],
        looks: Looks::Fields(&["IPv6 (2) Hop Limit"]),
    },
    Known {
        departure: linux(
            "silent-headend",
            "a packet for encapsulation whose hop limit is used up is dropped without an ICMPv6 error",
        ),
        cases: &["h-encaps-red-hop-limit", "h-encaps-hop-limit", "end-b6-encaps-hop-limit"],
        looks: Looks::Missing,
    },
    Known {
        departure: linux(
            "fragments",
            "SIDs do not put fragments together: the first is decapsulated, and its part forwarded (RFC 2473 7.2)",
        ),
        cases: &["end-dx6-fragments"],
        looks: Looks::Cut,
    },
    Known {
        departure: linux("no-reduced-binding-sid", "there is no End.B6.Encaps.Red (RFC 8986 section 4.14)"),
        cases: &["end-b6-encaps-red", "end-b6-encaps-red-one-segment", "end-b6-encaps-red-no-segment"],
        looks: Looks::Missing,
    },
    Known {
        departure: linux(
            "routed-frames",
            "H.Encaps.L2 takes frames whose IPv6 packets are routed, and no others (RFC 8986 section 5.3)",
        ),
        cases: &["h-encaps-l2-red-other-mac", "h-encaps-l2-red-arp", "h-encaps-l2-red-tagged"],
        looks: Looks::Missing,
    },
    Known {
        departure: linux(
            "no-usd",
            "uN has no USD: the last node of a program needs an End.DT6 beside it (RFC 8986 section 4.16.3)",
        ),
        cases: &["un-decapsulates", "un-congested-tunnel"],
        looks: Looks::Missing,
    },
    Known {
        departure: linux(
            "no-psp-behind-a-carrier",
            "when the last segment is taken from the SRH at a carrier's end, the SRH is kept (RFC 8986 section 4.16.1)",
        ),
        cases: &["un-last-container", "ua-last-container"],
        looks: Looks::Fields(&["SRH ", "IPv6 Payload Length", "IPv6 Next Header"]),
    },
    Known {
        departure: linux("no-psp-of-end-x", "End.X has no PSP: the SRH is kept (RFC 8986 section 4.16.1)"),
        cases: &["end-x-psp"],
        looks: Looks::Fields(&["SRH ", "IPv6 Payload Length", "IPv6 Next Header"]),
    },
    Known {
        departure: linux(
            "one-hop-a-node",
            "the hop limit is decremented once, however many SIDs of a node follow one another (RFC 9800)",
        ),
        cases: &["un-then-ua"],
        looks: Looks::Fields(&["IPv6 Hop Limit"]),
    },
    Known {
        departure: linux(
            "quotes-what-it-made",
            "Time Exceeded quotes the packet as the SID has changed it, not as it came (RFC 4443 section 3.3)",
        ),
        cases: &["un-hop-limit", "end-hop-limit"],
        looks: Looks::Fields(&["ICMPv6 body", "ICMPv6 Checksum"]),
    },
    Known {
        departure: linux(
            "pad1",
            "an SRH that ends with Pad1 is taken for damaged, and dropped (RFC 8754 section 2.1.1.1)",
        ),
        cases: &["end-pad1"],
        looks: Looks::Missing,
    },
];

impl Departure {
    /// The known departure that the findings of a case are, if they are one.
    pub(crate) fn of(case: &str, findings: &[(usize, Finding)]) -> Option<Self> {
        let is_it =
            |known: &&Known| known.cases.contains(&case) && findings.iter().all(|(_, finding)| known.looks.is(finding));
        KNOWN.iter().find(is_it).map(|known| known.departure)
    }
}

impl Looks {
    fn is(&self, finding: &Finding) -> bool {
        match (self, finding) {
            (Looks::Missing, Finding::Missing { .. }) | (Looks::Unexpected, Finding::Unexpected { .. }) => true,
            (Looks::Fields(names), Finding::Differs { differences, .. }) => {
                differences.iter().all(|difference| names.iter().any(|name| difference.field.starts_with(name)))
            }
            (Looks::Cut, Finding::Differs { differences, .. }) => {
                differences.iter().all(|difference| difference.expected.is_some() && difference.got.is_none())
            }
            (Looks::Missing | Looks::Unexpected | Looks::Cut | Looks::Fields(_), _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Difference;

    fn differs(field: &str) -> Vec<(usize, Finding)> {
        let difference = Difference { field: field.to_owned(), offset: 0, expected: None, got: None };
        let (port, expected, got) = ("down".to_owned(), String::new(), String::new());
        vec![(1, Finding::Differs { port, differences: vec![difference], expected, got })]
    }

    #[test]
    fn a_departure_is_identified_by_its_case_and_its_fields() {
        let name = |case, field| Departure::of(case, &differs(field)).map(|departure| departure.name);
        assert_eq!(name("end-dt6-congested-tunnel", "IPv6 ECN"), Some("congestion-mark"));
        assert_eq!(name("end-dt6-congested-tunnel", "IPv6 Hop Limit"), None);
        assert_eq!(name("end-dt6", "IPv6 ECN"), None);
        assert_eq!(name("end-dx6-fragments", "BTH OpCode"), None, "the field is there");
    }
}
