//! Any octets: no panic, a name for each refusal, and bounded memory.

use super::recording::{Recording, play};
use proptest::prelude::*;
use srdma_perftest::{Action, Conversation, Party};

/// Each octet of each message, replaced: the conversation ends, or goes on as if it had been meant.
#[test]
fn each_octet_of_each_message_may_be_wrong() {
    let mut refused = 0;
    for name in ["write", "send"] {
        let recording = Recording::read(name);
        for party in [Party::Client, Party::Server(0), Party::Server(1)] {
            for (number, message) in recording.client.iter().enumerate() {
                for octet in 0..message.len() {
                    for wrong in [0, b'0', b':', b'd', b'g', 0xff] {
                        let change = |of: Party, at: usize, mut message: Vec<u8>| {
                            if of == party && at == number {
                                message[octet] = wrong;
                            }
                            message
                        };
                        let (result, transcript) = play(&recording, 2, 200, change);
                        let Err(refusal) = result else { continue };
                        // A size may differ from the other servers', a GID be the same as another's.
                        assert!(refusal.party == party || octet >= 50 || number < 4, "{refusal:?}");
                        assert!(!refusal.to_string().is_empty() && transcript.outcome.is_none());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 15_000, "{refused}");
}

proptest! {
    #[test]
    fn octets_in_any_order_end_in_a_refusal_or_wait(
        pieces in prop::collection::vec((0_usize..4, prop::collection::vec(any::<u8>(), 0..130), any::<bool>()), 0..40),
        good in 0_usize..15,
    ) {
        let recording = Recording::read("write");
        let mut conversation = Conversation::new(3).expect("three servers");
        let mut is_over = false;
        // So many good messages of all first.
        for number in 0..good {
            let _ = conversation.receive(Party::Client, &recording.client[number]);
            for at in 0..3 {
                let message = super::recording::of_server(&recording.server[number], at);
                is_over |= conversation.receive(Party::Server(at), &message).is_err();
            }
            drain(&mut conversation);
        }
        for (party, octets, has_ended) in pieces {
            let party = if party == 3 { Party::Client } else { Party::Server(party) };
            let received = conversation.receive(party, &octets);
            prop_assert!(!is_over || received.is_ok(), "it is refused once");
            is_over |= received.is_err();
            if has_ended {
                is_over |= conversation.ended(party).is_err();
            }
            prop_assert!(drain(&mut conversation) <= 8);
        }
    }
}

fn drain(conversation: &mut Conversation) -> usize {
    let mut count = 0;
    while let Some(action) = conversation.next_action() {
        count += 1;
        match action {
            Action::CreateGroup(_) => conversation.group_created(super::recording::group()),
            Action::BeginGroup(_) => conversation.group_ready(),
            Action::ToClient(_) | Action::ToServer(..) | Action::Finish(_) => {}
        }
    }
    count
}
