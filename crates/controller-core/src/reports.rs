//! Bounds of what nodes and clients report: names, texts, and the number of entries. What is stored, sent to others, or
//! printed does not exceed them (D101).

use crate::refusal::Refusal;
use srdma_api::ProblemType;
use srdma_api::{MAX_EVICTION_REQUESTS, NodeAnswer, NodeStatus, Sync};

/// Length of a cause, a reason, or a text of a status, octets; the rest is cut off.
const MAX_TEXT_OCTETS: usize = 256;

/// Length of a node's name, octets.
const MAX_NAME_OCTETS: usize = 64;

/// Limits of entries of a status; further ones are cut off.
const MAX_PORTS: usize = 1024;
const MAX_GROUPS: usize = 16_384;
const MAX_BRANCHES: usize = 65_536;
const MAX_DROPS: usize = 256;
const MAX_PROGRAMS: usize = 4096;
const MAX_UNREACHABLE: usize = 4096;
pub(crate) const MAX_LOST_HOSTS: usize = 4096;

/// Whether a node may have this name: it stands in paths, logs and terminals.
pub(crate) fn is_node_name(name: &str) -> bool {
    let is_permitted = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'_' | b'-');
    (1..=MAX_NAME_OCTETS).contains(&name.len()) && name.bytes().all(is_permitted)
}

/// Checks the name of a node.
pub(crate) fn check_node_name(name: &str) -> Result<(), Refusal> {
    if is_node_name(name) {
        return Ok(());
    }
    let text = "name: expected 1 to 64 letters, digits, dots, hyphens and underscores of ASCII";
    Err(Refusal::new(ProblemType::InvalidRequest, text))
}

/// Whether a text has neither control characters nor those that change the direction of text.
pub fn is_printable(text: &str) -> bool {
    text.chars().all(is_printable_char)
}

/// Bidirectional formatting characters are those of Unicode Standard Annex 9, section 2; U+2028 and U+2029 end lines.
fn is_printable_char(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A node's report within the bounds: texts and statuses are cut.
pub(crate) fn bounded(mut sync: Sync) -> Result<Sync, Refusal> {
    let requests = sync.eviction_requests.len();
    if requests > MAX_EVICTION_REQUESTS {
        let text = format!("eviction_requests: {requests} in one report, the limit is {MAX_EVICTION_REQUESTS}");
        return Err(Refusal::new(ProblemType::InvalidRequest, text));
    }
    sync.eviction_requests.iter_mut().for_each(|request| bound(&mut request.cause));
    for answer in &mut sync.answers {
        match answer {
            NodeAnswer::Refused { reason, .. } => bound(reason),
            NodeAnswer::Prepared { .. } | NodeAnswer::Committed { .. } | NodeAnswer::Removed { .. } => {}
        }
    }
    if let Some(status) = &mut sync.status {
        bound_status(status);
    }
    Ok(sync)
}

fn bound_status(status: &mut NodeStatus) {
    let NodeStatus { ports, groups, drops, programs, unreachable, lost_hosts } = status;
    cut(ports, MAX_PORTS);
    ports.iter_mut().for_each(|port| bound(&mut port.name));
    cut(groups, MAX_GROUPS);
    let mut free = MAX_BRANCHES;
    for group in groups {
        cut(&mut group.branches, free);
        free -= group.branches.len();
    }
    let counted = std::mem::take(drops).into_iter().take(MAX_DROPS);
    *drops = counted.map(|(name, count)| (bounded_text(&name), count)).collect();
    cut(programs, MAX_PROGRAMS);
    cut(unreachable, MAX_UNREACHABLE);
    cut(lost_hosts, MAX_LOST_HOSTS);
    programs.iter_mut().for_each(bound);
}

/// Room that is not needed is given back, since a status is kept.
fn cut<T>(list: &mut Vec<T>, limit: usize) {
    list.truncate(limit);
    list.shrink_to_fit();
}

fn bound(text: &mut String) {
    if text.len() > MAX_TEXT_OCTETS || !is_printable(text) {
        *text = bounded_text(text);
    }
}

fn bounded_text(text: &str) -> String {
    let mut bounded = String::new();
    for character in text.chars() {
        let character = if is_printable_char(character) { character } else { char::REPLACEMENT_CHARACTER };
        if bounded.len() + character.len_utf8() > MAX_TEXT_OCTETS {
            break;
        }
        bounded.push(character);
    }
    bounded
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_api::{BranchStatus, EvictionRequest, GroupStatus, PortStatus};

    fn request(cause: String) -> EvictionRequest {
        EvictionRequest { group: 1, receiver: "2001:db8:bb::1".parse().unwrap(), cause }
    }

    #[test]
    fn names_of_nodes_are_plain() {
        for name in ["N1", "leaf-1.example", "a_b", &"x".repeat(64)] {
            assert!(is_node_name(name), "{name}");
        }
        for name in ["", "a b", "a/b", "\x1b[2J", "a\nb", "ä", "\u{202e}b", &"x".repeat(65)] {
            assert!(!is_node_name(name), "{name:?}");
        }
    }

    #[test]
    fn texts_of_nodes_are_cut_and_printable() {
        let causes = ["stalled".to_owned(), "\x1b]0;owned\x07\u{202e}x".to_owned(), "ä".repeat(2_000_000)];
        let sync = Sync { eviction_requests: causes.map(request).into(), ..Sync::default() };
        let bounded = bounded(sync).unwrap();
        let causes: Vec<&str> = bounded.eviction_requests.iter().map(|request| request.cause.as_str()).collect();
        assert_eq!(causes[0], "stalled");
        assert_eq!(causes[1], "\u{fffd}]0;owned\u{fffd}\u{fffd}x");
        assert_eq!(causes[2], "ä".repeat(128));
    }

    #[test]
    fn a_report_with_too_many_eviction_requests_is_refused() {
        let sync = |count| Sync { eviction_requests: vec![request(String::new()); count], ..Sync::default() };
        assert!(bounded(sync(MAX_EVICTION_REQUESTS)).is_ok());
        assert_eq!(bounded(sync(MAX_EVICTION_REQUESTS + 1)).unwrap_err().kind, ProblemType::InvalidRequest);
    }

    #[test]
    fn a_status_is_cut() {
        let address = "2001:db8::1".parse().unwrap();
        let branch =
            BranchStatus { address, expected_psn: None, lag: None, cnps: 0, packets_resent: None, is_repairing: false };
        let port = PortStatus { name: "p".repeat(999), to: None, is_up: true, received_octets: 0, sent_octets: 0 };
        let group = GroupStatus {
            group: 1,
            highest_psn: None,
            awaits_first_psn: false,
            repair: None,
            branches: vec![branch; MAX_BRANCHES / 2 + 1],
        };
        let status = NodeStatus {
            ports: vec![port; MAX_PORTS + 1],
            groups: vec![group; 3],
            drops: (0..MAX_DROPS + 1).map(|number| (format!("{number:0999}"), 1)).collect(),
            programs: vec!["p".repeat(999); MAX_PROGRAMS + 1],
            unreachable: vec![std::net::Ipv6Addr::LOCALHOST; MAX_UNREACHABLE + 1],
            lost_hosts: vec!["::/0".parse().unwrap(); MAX_LOST_HOSTS + 1],
        };
        let status = bounded(Sync { status: Some(status), ..Sync::default() }).unwrap().status.unwrap();
        assert_eq!((status.ports.len(), status.programs.len()), (MAX_PORTS, MAX_PROGRAMS));
        assert_eq!((status.unreachable.len(), status.lost_hosts.len()), (MAX_UNREACHABLE, MAX_LOST_HOSTS));
        assert!(status.drops.len() <= MAX_DROPS);
        let branches: Vec<usize> = status.groups.iter().map(|group| group.branches.len()).collect();
        assert_eq!(branches, [MAX_BRANCHES / 2 + 1, MAX_BRANCHES / 2 - 1, 0]);
        let mut texts = status.ports.iter().map(|port| &port.name).chain(status.drops.keys()).chain(&status.programs);
        assert!(texts.all(|text| text.len() <= MAX_TEXT_OCTETS));
    }
}
