//! D205: what unmodified tools have said to each other, said to one conversation between them.

use super::recording::{Recording, Transcript, address, play, unchanged};
use srdma_perftest::{Operation, Outcome};

fn finished(recording: &Recording, servers: usize, piece: usize) -> Transcript {
    let (result, transcript) = play(recording, servers, piece, unchanged);
    assert_eq!(result, Ok(()));
    transcript
}

/// A recorded key with the Proxy Address, the Designated QPN, and memory if it is for the client: written by hand.
fn of_group(message: &[u8], memory: Option<(&str, &str)>) -> Vec<u8> {
    if message.len() != 108 {
        return message.to_vec();
    }
    let text = std::str::from_utf8(message).expect("text");
    let mut fields: Vec<&str> = text.split(':').collect();
    fields[2] = "d00001";
    if let Some((rkey, virtual_address)) = memory {
        (fields[4], fields[5]) = (rkey, virtual_address);
    }
    let gid = "20:01:0d:b8:00:cc:00:00:00:00:00:00:00:00:00:01";
    format!("{}:{gid}:{}", fields[..6].join(":"), fields[22..].join(":")).into_bytes()
}

#[test]
fn each_message_reaches_the_other_side_with_the_group_in_keys() {
    for name in ["write", "send", "write-all", "send-all"] {
        let recording = Recording::read(name);
        for piece in [1, 7, 200] {
            let transcript = finished(&recording, 1, piece);
            let expected: Vec<Vec<u8>> = recording.client.iter().map(|message| of_group(message, None)).collect();
            assert_eq!(transcript.to_servers, [expected], "{name}");
            let memory = Some(("12345678", "0000000000010000"));
            // The last message of a server is not passed on, and what it answers to figures is nothing.
            let answers = recording.server.iter().filter(|message| *message != b"done\0");
            let expected: Vec<Vec<u8>> = answers
                .map(|message| if message.len() == 8 { vec![0; 8] } else { of_group(message, memory) })
                .collect();
            assert_eq!(transcript.to_client, expected, "{name}");
        }
    }
}

#[test]
fn the_group_has_the_clients_queue_pair_and_those_of_all_servers() {
    let transcript = finished(&Recording::read("write"), 5, 108);
    let source = transcript.source.expect("a group");
    assert_eq!((source.address, source.qpn.get()), (address("2001:db8::1"), 0x11));
    assert_eq!((source.initial_psn.get(), source.path_mtu.octets()), (0x2a_f965, 1024));
    let receivers: Vec<_> =
        transcript.receivers.iter().map(|receiver| (receiver.address, receiver.qpn.get())).collect();
    let expected = [
        ("2001:db8::2", 0x11),
        ("2001:db8::11", 0x21),
        ("2001:db8::12", 0x22),
        ("2001:db8::13", 0x23),
        ("2001:db8::14", 0x24),
    ];
    assert_eq!(receivers, expected.map(|(text, qpn)| (address(text), qpn)));
    let memory: Vec<_> =
        transcript.receivers.iter().map(|receiver| (receiver.rkey, receiver.virtual_address)).collect();
    let virtual_address = 0x7ff6_3b1d_4000;
    let expected = [0x2cc, 0x101, 0x102, 0x103, 0x104].map(|rkey| (rkey, virtual_address));
    assert_eq!(memory, expected);
    assert!(transcript.to_servers.windows(2).all(|two| two[0] == two[1]), "all are told the same");
}

#[test]
fn the_result_of_a_write_is_the_clients() {
    let figures = finished(&Recording::read("write"), 2, 108).outcome.expect("an outcome").figures.expect("figures");
    assert_eq!((figures.message_octets, figures.iterations), (65536, 20));
    // The client printed 11.86 MB/sec, of 2^20 octets, and 0.000190 Mpps.
    assert!((figures.messages_per_second - 190.0).abs() < 1.0, "{figures:?}");
    assert!((figures.octets_per_second() / f64::from(1 << 20) - 11.86).abs() < 0.01, "{figures:?}");

    let outcome = finished(&Recording::read("send"), 2, 108).outcome;
    assert_eq!(outcome, Some(Outcome { operation: Operation::Send, figures: None }));
    let all = finished(&Recording::read("write-all"), 2, 108).outcome.and_then(|outcome| outcome.figures);
    assert_eq!(all.map(|figures| (figures.message_octets, figures.iterations)), Some((1 << 23, 5)));
}

/// Nothing in their messages differs: they fail when they run, since a group carries data one way.
#[test]
fn tests_of_both_ways_and_of_datagrams_look_like_others() {
    assert_eq!(
        finished(&Recording::read("write-both-ways"), 3, 108).outcome.map(|o| o.operation),
        Some(Operation::Write)
    );
    assert_eq!(
        finished(&Recording::read("send-datagrams"), 3, 108).outcome.map(|o| o.operation),
        Some(Operation::Send)
    );
}
