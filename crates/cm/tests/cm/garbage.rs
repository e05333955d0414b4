//! Any octets, and messages with any field changed.

use super::peers::{CLIENT, TERMS, request, servers};
use proptest::prelude::*;
use srdma_cm::{Action, Exchange, Mad, Message};
use srdma_wire::Instant;

proptest! {
    /// No octets are a message that is written otherwise, but for what is reserved or not kept.
    #[test]
    fn what_is_read_is_written(octets in proptest::collection::vec(any::<u8>(), Mad::LEN), attribute in 0x10u8..0x17) {
        let mut octets = octets;
        octets[..4].copy_from_slice(&[1, 7, 2, 3]);
        octets[16..18].copy_from_slice(&[0, attribute]);
        if let Ok(mad) = Mad::parse(&octets) {
            let emitted = mad.emit();
            prop_assert_eq!(Mad::parse(&emitted), Ok(mad));
        }
    }

    /// Whatever comes, the exchange asks for one group at most, and answers a message by one at most, or by what ends
    /// all connections.
    #[test]
    fn answers_are_bounded(
        steps in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), 0u64..5_000_000_000), 1..60),
    ) {
        let servers = servers(3);
        let mut exchange = Exchange::new(TERMS, &servers).expect("servers");
        let (mut now, mut groups, mut finished) = (Instant::ZERO, 0, 0);
        for (kind, place, octet, wait_ns) in steps {
            now = now.after_ns(wait_ns);
            let recorded = super::golden::recorded();
            match kind % 8 {
                0 | 1 => exchange.group_ready(now),
                2 => exchange.tick(now),
                3 if place == 0 => exchange.close(now),
                _ => {
                    let mad = if kind % 2 == 0 {
                        Mad { transaction_id: 1, message: Message::Request(Box::new(request())) }
                    } else {
                        recorded[usize::from(kind / 8) % recorded.len()].mad()
                    };
                    let mut octets = mad.emit();
                    octets[24 + usize::from(place) % 232] ^= octet;
                    let party = usize::from(octet) % 4;
                    let from = if party == 0 { CLIENT } else { servers[party - 1].address };
                    if let Ok(mad) = Mad::parse(&octets) {
                        // Refused or not.
                        let _ = exchange.receive(now, from, &mad);
                    }
                }
            }
            let mut sent = 0;
            while let Some(action) = exchange.next_action() {
                match action {
                    Action::Send(..) => sent += 1,
                    Action::MakeGroup(group) => {
                        groups += 1;
                        prop_assert_eq!(group.receivers.len(), 3);
                    }
                    Action::Connected => {}
                    Action::Finish(_) => finished += 1,
                }
            }
            prop_assert!(sent <= 2 + 2 * servers.len());
            prop_assert!(groups <= 1 && finished <= 1);
        }
    }
}
