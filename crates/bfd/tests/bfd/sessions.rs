//! The table of sessions (D92).

use crate::support::at_ms;
use srdma_bfd::{AddError, Config, Diagnostic, Hops, MOST_SESSIONS, Output, Peer, Sessions};
use srdma_wire::Instant;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

const NOW: Instant = Instant::ZERO;

fn peer(interface: u32, number: u16) -> Peer {
    let address = |last: u16| Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, last);
    Peer { hops: Hops::Single { interface }, local: address(1), remote: address(number) }
}

#[test]
fn discriminators_and_ports_are_unique_and_the_table_is_bounded() {
    let mut sessions = Sessions::new(usize::MAX, 7);
    for number in 0..MOST_SESSIONS as u16 {
        sessions.add(peer(1, number), Config::default(), NOW).unwrap();
    }
    assert_eq!(sessions.add(peer(2, 1), Config::default(), NOW), Err(AddError::Full));
    assert_eq!(sessions.len(), MOST_SESSIONS);
    let discriminators: BTreeSet<_> = sessions.iter().map(|(_, session)| session.discriminator()).collect();
    let top_octets: BTreeSet<_> = discriminators.iter().map(|discriminator| discriminator.get() >> 24).collect();
    assert_eq!((discriminators.len(), top_octets.len()), (MOST_SESSIONS, 256));
    let mut ports = BTreeSet::new();
    while let Some(output) = sessions.poll(NOW) {
        let Output::Packet { source_port, .. } = output else { panic!("nothing has happened") };
        assert!(source_port >= 49_152 && ports.insert(source_port), "port {source_port}");
    }
    assert_eq!(ports.len(), MOST_SESSIONS);
}

#[test]
fn a_peer_has_one_session() {
    let mut sessions = Sessions::new(10, 7);
    let first = sessions.add(peer(1, 2), Config::default(), NOW).unwrap();
    let again = Peer { local: "2001:db8::1".parse().unwrap(), ..peer(1, 2) };
    assert_eq!(sessions.add(again, Config::default(), NOW), Err(AddError::PeerTaken(first)));
    sessions.add(peer(2, 2), Config::default(), NOW).unwrap();
    let multi = Peer { hops: Hops::Multi, ..peer(1, 2) };
    sessions.add(multi, Config::default(), NOW).unwrap();
    sessions.add(Peer { hops: Hops::Multi, ..again }, Config::default(), NOW).unwrap();
    assert!(matches!(sessions.add(multi, Config::default(), NOW), Err(AddError::PeerTaken(_))));
    assert_eq!(sessions.len(), 4);
    assert!(sessions.remove(first).is_some() && sessions.remove(first).is_none());
    sessions.add(again, Config::default(), NOW).unwrap();
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let run = |seed| {
        let mut sessions = Sessions::new(10, seed);
        for number in 0..10 {
            sessions.add(peer(1, number), Config::default(), NOW).unwrap();
        }
        let mut outputs = Vec::new();
        while let Some(now) = sessions.next_deadline().filter(|at| *at < at_ms(10_000)) {
            while let Some(output) = sessions.poll(now) {
                outputs.push((now, output));
            }
        }
        outputs
    };
    assert!(run(1).len() > 100);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_session_that_is_removed_sends_no_more() {
    let mut sessions = Sessions::new(10, 7);
    let first = sessions.add(peer(1, 2), Config::default(), NOW).unwrap();
    assert_eq!(sessions.next_deadline(), Some(NOW));
    assert!(sessions.enable(first) && sessions.configure(first, Config::new(20_000, 20_000, 3).unwrap()));
    sessions.remove(first);
    assert_eq!((sessions.next_deadline(), sessions.poll(at_ms(10_000))), (None, None));
    assert!(!sessions.enable(first) && !sessions.configure(first, Config::default()));
    assert_eq!(sessions.disable(first, Diagnostic::ADMINISTRATIVELY_DOWN), None);
    assert!(sessions.is_empty() && sessions.get(first).is_none());
}
