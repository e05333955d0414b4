//! Texts of the ids in reports.

use serde::Serialize;

/// A requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Requirement {
    /// Its id: that of `docs/spec/requirements.md`, or a section of an RFC.
    pub id: String,
    /// Text of the requirement.
    pub text: String,
}

/// The table of requirements in the repository.
const TABLE: &str = include_str!("../../../docs/spec/requirements.md");

/// Sections of RFCs that cases are about.
const SECTIONS: [(&str, &str); 24] = [
    ("RFC 1812 5.2.2", "An IPv4 packet whose header is wrong is discarded."),
    ("RFC 2473 7.2", "The end of a tunnel puts fragments of a tunnel packet together."),
    ("RFC 6040 4.2", "Decapsulation: the ECN field of the packet follows from the inner and the outer one."),
    (
        "RFC 8200 3",
        "A node that forwards decrements the hop limit, and discards and reports packets whose hop limit is used up.",
    ),
    ("RFC 8200 4.5", "Fragments are put together in any order, by source, destination and Identification."),
    ("RFC 8754 4.3.1.1", "The SRH is processed at a local SID: Segments Left, Last Entry, hop limit, next segment."),
    ("RFC 8754 4.3.2", "A packet for another node is forwarded, and its SRH is not processed."),
    ("RFC 8986 4.1", "End."),
    ("RFC 8986 4.1.1", "Upper-layer headers at a SID: refused with ICMPv6 Parameter Problem, code 4, unless allowed."),
    ("RFC 8986 4.13", "End.B6.Encaps: the next segment, in a new outer header with the policy's segment list."),
    ("RFC 8986 4.14", "End.B6.Encaps.Red: as End.B6.Encaps; the first segment in the destination address alone."),
    ("RFC 8986 4.16.1", "PSP: the penultimate segment's node removes the SRH."),
    ("RFC 8986 4.2", "End.X: forwarded by the SID's adjacency, regardless of routes."),
    ("RFC 8986 4.4", "End.DX6: decapsulated, and forwarded by the SID's adjacency."),
    ("RFC 8986 4.5", "End.DX4: decapsulated, and forwarded by the SID's adjacency."),
    ("RFC 8986 4.6", "End.DT6: decapsulated, and looked up in the SID's table."),
    ("RFC 8986 4.7", "End.DT4: decapsulated, and looked up in the SID's table of IPv4."),
    ("RFC 8986 4.8", "End.DT46: decapsulated, and looked up in the SID's table of the inner packet's version."),
    ("RFC 8986 5.1", "H.Encaps: a new outer header, with every segment in the SRH."),
    ("RFC 8986 4.9", "End.DX2: decapsulated, and the Ethernet frame sent by the SID's port."),
    ("RFC 8986 5.2", "H.Encaps.Red: a new outer header; the first segment in its destination address alone."),
    ("RFC 8986 5.4", "H.Encaps.L2.Red: an Ethernet frame, whole, in a new outer header with a reduced SRH."),
    ("RFC 9800 4.1", "NEXT-CSID: while arguments remain the destination address shifts; Segments Left stays."),
    ("RFC 9524 2.2", "End.Replicate: a copy for each branch, with the branch's SID as destination."),
];

impl Requirement {
    /// The requirement of this id, if there is one.
    pub fn of(id: &str) -> Option<Self> {
        let section = SECTIONS.iter().find(|(section, _)| *section == id).map(|(_, text)| (*text).to_owned());
        let text = section.or_else(|| rows().find(|(row, _)| *row == id).map(|(_, text)| text.to_owned()))?;
        Some(Requirement { id: id.to_owned(), text })
    }

    /// The ids of a family, such as `MT`, in the order of the table.
    pub fn of_family(family: &str) -> Vec<&'static str> {
        let is_of_it = |id: &&str| id.split_once('-').is_some_and(|(prefix, _)| prefix == family);
        rows().map(|(id, _)| id).filter(is_of_it).collect()
    }
}

/// Ids and texts of the table.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim);
        let (id, _level, _section) = (cells.next()?, cells.next()?, cells.next()?);
        let text = cells.next()?;
        (id.contains('-') && !id.starts_with('-')).then_some((id, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_texts() {
        assert!(Requirement::of("MT-6.2-1").is_some_and(|requirement| requirement.text.starts_with("End.MT needs")));
        assert!(Requirement::of("RFC 8986 4.2").is_some());
        assert_eq!(Requirement::of("XX-1-1"), None);
        assert_eq!(Requirement::of_family("MT").len(), 36);
        assert_eq!(Requirement::of_family("FC").len(), 17);
    }
}
