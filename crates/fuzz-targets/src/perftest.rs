//! The handshake of perftest between one client and several servers (D205).

use crate::choices::Choices;
use srdma_perftest::{Action, Conversation, GroupEnd, Key, Party, Step};
use srdma_wire::Qpn;
use std::net::Ipv6Addr;

/// Messages that are in order, damaged, or any octets, and ends of connections, from all parties in any order. A
/// refusal comes once, nothing is to be done behind it, and no message is longer than a key.
pub fn perftest(input: &[u8]) {
    let mut choices = Choices::new(input);
    let servers = 1 + choices.below(3);
    let Some(mut conversation) = Conversation::new(servers) else { return };
    let mut is_refused = false;
    while !choices.is_empty() {
        let party = match choices.below(servers + 1) {
            0 => Party::Client,
            at => Party::Server(at - 1),
        };
        let result = match choices.below(5) {
            0 | 1 => conversation.receive(party, &message(&mut choices, conversation.step(), party)),
            2 => {
                let mut message = message(&mut choices, conversation.step(), party);
                let place = choices.below(message.len());
                message[place] ^= choices.octet();
                conversation.receive(party, &message)
            }
            3 => {
                let octets: Vec<u8> = (0..choices.below(130)).map(|_| choices.octet()).collect();
                conversation.receive(party, &octets)
            }
            _ => conversation.ended(party),
        };
        assert!(!(is_refused && result.is_err()), "refused twice");
        if let Err(refusal) = result {
            assert!(!refusal.to_string().is_empty());
            is_refused = true;
        }
        let mut actions = 0;
        while let Some(action) = conversation.next_action() {
            assert!(!is_refused, "{action:?}");
            actions += 1;
            act(&mut conversation, action, servers);
        }
        assert!(actions <= 2 * servers + 2);
    }
}

fn act(conversation: &mut Conversation, action: Action, servers: usize) {
    match action {
        Action::ToClient(octets) => assert!((2..=Key::LEN).contains(&octets.len())),
        Action::ToServer(at, octets) => assert!(at < servers && (2..=Key::LEN).contains(&octets.len())),
        Action::CreateGroup(source) => {
            assert!(source.qpn.is_connected() && source.address.to_ipv4_mapped().is_none());
            let proxy = Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, 1);
            let designated_qpn = Qpn::from_octets([0xd0, 0, 1]);
            conversation.group_created(GroupEnd { proxy, designated_qpn, rkey: 7, virtual_address: 0x1_0000 });
        }
        Action::BeginGroup(receivers) => {
            assert!(receivers.len() == servers && receivers.iter().all(|receiver| receiver.qpn.is_connected()));
            conversation.group_ready();
        }
        Action::Finish(_) => {}
    }
}

/// A message that a party may send in a step.
fn message(choices: &mut Choices<'_>, step: Step, party: Party) -> Vec<u8> {
    let at = match party {
        Party::Client => 0,
        Party::Server(at) => at + 1,
    };
    let key = format!(
        "0000:0001:0000{:02x}:2af965:000002{at:02x}:00007f5bee7fe000:20:01:0d:b8{}:{:02x}:00000000:\0",
        0x11 + at,
        ":00".repeat(11),
        1 + at
    );
    match step {
        Step::Version => b"6.06\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        Step::BufferSize | Step::CacheLine => vec![0, 0, 0x10, 0],
        Step::PathMtu => b"3\0".to_vec(),
        Step::Figures => vec![0, 0, 0, 0, 0, 1, 0, 0],
        Step::Done => b"done\0".to_vec(),
        Step::Key => key.into_bytes(),
        Step::Barrier => match choices.below(4) {
            0 | 1 => key.into_bytes(),
            2 => vec![0, 0, 0, 0, 0, 1, 0, 0],
            _ => b"done\0".to_vec(),
        },
    }
}
