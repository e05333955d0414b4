//! What is refused by name (D206).

use super::recording::{Recording, address, play};
use srdma_perftest::{Conversation, MOST_SERVERS, Party, Problem, Refusal, Step};

/// The refusal of a WRITE with two servers, one message of which is replaced.
fn refusal(party: Party, number: usize, replace: impl Fn(String) -> String) -> Refusal {
    let recording = Recording::read("write");
    let change = |of: Party, at: usize, message: Vec<u8>| match of == party && at == number {
        true => replace(message.iter().map(|octet| char::from(*octet)).collect())
            .chars()
            .map(|c| u8::try_from(u32::from(c)).expect("an octet"))
            .collect(),
        false => message,
    };
    play(&recording, 2, 200, change).0.expect_err("it is refused")
}

#[track_caller]
fn check(party: Party, number: usize, step: Step, problem: Problem, replace: impl Fn(String) -> String) {
    assert_eq!(refusal(party, number, replace), Refusal { party, step, problem });
}

#[test]
fn tools_that_a_group_does_not_carry_are_refused_in_the_first_message_that_shows_them() {
    let result = |name: &str| play(&Recording::read(name), 2, 200, |_, _, message| message).0;
    let refused = |step, problem| Err(Refusal { party: Party::Client, step, problem });
    assert_eq!(result("read"), refused(Step::Key, Problem::Reads));
    assert_eq!(result("write-two-queue-pairs"), refused(Step::Barrier, Problem::SeveralQueuePairs));
}

#[test]
fn versions_are_those_with_known_messages() {
    let version = |text: &'static str| move |_| format!("{text:\0<16}");
    for party in [Party::Client, Party::Server(1)] {
        for known in ["5.70", "5.98", "6.06", "6.27"] {
            let recording = Recording::read("write");
            let change = |of, at, message: Vec<u8>| match (of == party, at) {
                (true, 0) => version(known)(String::new()).into_bytes(),
                _ => message,
            };
            assert_eq!(play(&recording, 2, 200, change).0, Ok(()), "{known}");
        }
        for (text, shown) in [("5.69", "5.69"), ("6.28", "6.28"), ("0.00", "0.00"), ("99.99", "99.99")] {
            let refusal = refusal(party, 0, version(text));
            assert_eq!(refusal.to_string(), format!("has version {shown}: versions 5.70 to 6.27 are known"));
        }
        for text in ["", "6", "6.", ".06", "6.6", "6.060", "600.06", "a.06", "6.-6", "6.06 ", "+6.06", "6.06\0x"] {
            check(party, 0, Step::Version, Problem::NoMessage, version(text));
        }
        check(party, 0, Step::Version, Problem::NoMessage, |_| "6.06".repeat(4).replace("6.06", "6666"));
        // --dont_xchg_versions
        check(party, 0, Step::Version, Problem::NoVersion, |_| "0000:0001:000011".to_owned());
    }
}

#[test]
fn sizes_and_path_mtus_are_sizes_and_path_mtus() {
    for party in [Party::Client, Party::Server(0)] {
        for (number, step) in [(1, Step::BufferSize), (2, Step::CacheLine)] {
            check(party, number, step, Problem::Size(0), |_| "\0\0\0\0".to_owned());
            check(party, number, step, Problem::Size(0x7fff_ffff), |_| "\x7f\u{ff}\u{ff}\u{ff}".to_owned());
        }
        for wrong in ["0\0", "6\0", "11", "\0\0", "a\0"] {
            check(party, 3, Step::PathMtu, Problem::PathMtu, |_| wrong.to_owned());
        }
    }
}

/// The buffer is the greater one, the path MTU the smaller one of both ends: a client and all servers must arrive at the
/// same.
#[test]
fn ends_that_would_assume_different_sizes_are_refused() {
    let second = Party::Server(1);
    check(second, 1, Step::BufferSize, Problem::OtherBufferSize(0x1_0000, 0x1000), |_| "\0\x01\0\0".to_owned());
    check(second, 3, Step::PathMtu, Problem::OtherPathMtu(256, 1024), |_| "1\0".to_owned());
    let recording = Recording::read("write");
    let change = |of: Party, at, message: Vec<u8>| match (of, at) {
        // A server may have more, and all may have less.
        (Party::Server(0), 3) => b"5\0".to_vec(),
        (Party::Server(_), 2) => vec![0, 0, 0, 128],
        (Party::Client, 1) => vec![0, 1, 0, 0],
        _ => message,
    };
    let (result, transcript) = play(&recording, 2, 200, change);
    assert_eq!((result, &transcript.to_client[1][..]), (Ok(()), &[0, 1, 0, 0][..]));
    assert_eq!((&transcript.to_client[2][..], &transcript.to_client[3][..]), (&[0, 0, 0, 128][..], &b"3\0"[..]));
    let change = |of: Party, at, message: Vec<u8>| match (of, at) {
        (Party::Server(_), 3) => b"2\0".to_vec(),
        _ => message,
    };
    let (_, transcript) = play(&recording, 2, 200, change);
    assert_eq!(
        (&transcript.to_client[3][..], transcript.source.map(|source| source.path_mtu.octets())),
        (&b"2\0"[..], Some(512))
    );
}

#[test]
fn keys_are_those_of_one_connected_queue_pair_with_a_global_ipv6_address() {
    for party in [Party::Client, Party::Server(1)] {
        let gid = |gid: &'static str| {
            move |key: String| {
                let (front, back) = (&key[..50], &key[98..]);
                format!("{front}{gid}:{back}")
            }
        };
        let octets = |address: &str| {
            let octets = self::address(address).octets().map(|octet| format!("{octet:02x}")).join(":");
            &*Box::leak(octets.into_boxed_str())
        };
        check(party, 4, Step::Key, Problem::Ipv4Gid, gid("00:00:00:00:00:00:00:00:00:00:ff:ff:0a:00:00:01"));
        for text in ["::", "::1", "fe80::5054:ff:fe00:1", "ff02::1"] {
            check(party, 4, Step::Key, Problem::Gid(address(text)), gid(octets(text)));
        }
        check(party, 4, Step::Key, Problem::ReservedQpn(1), |key| format!("{}000001{}", &key[..10], &key[16..]));
        check(party, 4, Step::Key, Problem::Reads, |key| key.replacen("0000:0001:", "0000:0010:", 1));
        // InfiniBand: 59 octets, and no GID.
        let without_gid = |_| "0001:0001:000011:2af965:00000263:00007f5bee7fe000:00000000\0".to_owned();
        check(party, 4, Step::Key, Problem::NoGid, without_gid);
        check(party, 5, Step::Barrier, Problem::OtherKey, |key| key.replacen("0000:", "0001:", 1));
        check(party, 5, Step::Barrier, Problem::SeveralQueuePairs, |key| format!("{}000012{}", &key[..10], &key[16..]));
    }
    let same = address("2001:db8::2");
    check(Party::Server(1), 4, Step::Key, Problem::SameGid(same), |key| key.replace(":11:00000000:", ":02:00000000:"));
    let client = address("2001:db8::1");
    check(Party::Server(0), 4, Step::Key, Problem::SameGid(client), |key| {
        key.replace(":02:00000000:", ":01:00000000:")
    });
}

#[test]
fn messages_come_in_turn_and_in_order() {
    // Twice as much as is due.
    for number in 0..13 {
        for party in [Party::Client, Party::Server(0)] {
            let refusal = refusal(party, number, |message| message.repeat(2));
            assert_eq!(refusal.problem, Problem::OutOfTurn, "{party:?} {number}");
        }
    }
    check(Party::Client, 5, Step::Barrier, Problem::OutOfOrder, |_| "done\0".to_owned());
    check(Party::Client, 7, Step::Barrier, Problem::OutOfOrder, |_| "done\0".to_owned());
    check(Party::Client, 6, Step::Barrier, Problem::OutOfOrder, |_| "\0\0\0\0\0\x01\0\0".to_owned());
    check(Party::Client, 13, Step::Barrier, Problem::OutOfOrder, |_| "done\0".to_owned());
    check(Party::Client, 14, Step::Barrier, Problem::OutOfOrder, |_| "\0\0\0\0\0\x01\0\0".to_owned());
    check(Party::Client, 5, Step::Barrier, Problem::NoMessage, |_| "GET / HTTP/1.1\r\n\r\n".to_owned());
    // A server that says goodbye before the client.
    check(Party::Server(1), 5, Step::Barrier, Problem::OutOfOrder, |key| key + "done\0");
    check(Party::Server(1), 4, Step::Key, Problem::OutOfTurn, |key| key + "done\0");
    check(Party::Server(1), 14, Step::Barrier, Problem::OutOfTurn, |_| "dont\0".to_owned());
}

#[test]
fn barriers_are_bounded() {
    let mut recording = Recording::read("send");
    let (client, server) = (recording.client[5].clone(), recording.server[5].clone());
    recording.client.splice(5..5, std::iter::repeat_n(client, 64));
    recording.server.splice(5..5, std::iter::repeat_n(server, 64));
    let result = play(&recording, 2, 200, |_, _, message| message).0;
    assert_eq!(result, Err(Refusal { party: Party::Client, step: Step::Barrier, problem: Problem::TooManyBarriers }));
}

#[test]
fn there_are_servers_and_not_too_many() {
    assert!(Conversation::new(0).is_none() && Conversation::new(MOST_SERVERS + 1).is_none());
    assert!(Conversation::new(MOST_SERVERS).is_some());
}
