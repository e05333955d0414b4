//! No octets make the parser or the table panic, and what is refused changes nothing.

use crate::support::{at_ms, packets};
use proptest::prelude::*;
use srdma_bfd::udp;
use srdma_bfd::{Arrival, Config, ControlPacket, Hops, Output, Peer, Refusal, Sessions, State};
use srdma_wire::Instant;
use zerocopy::IntoBytes;

fn sessions() -> Sessions {
    let mut sessions = Sessions::new(4, 1);
    let address = |text: &str| text.parse().unwrap();
    let near = Peer { hops: Hops::Single { interface: 3 }, local: address("fe80::b"), remote: address("fe80::a") };
    let far = Peer { hops: Hops::Multi, local: address("2001:db8:b::1"), remote: address("2001:db8:a::1") };
    for peer in [near, far] {
        sessions.add(peer, Config::default(), Instant::ZERO).unwrap();
    }
    sessions
}

fn drain(sessions: &mut Sessions, now: Instant) {
    let mut count = 0;
    while let Some(output) = sessions.poll(now) {
        if let Output::Packet { control, .. } = output {
            assert_eq!(ControlPacket::parse(control.emit().as_bytes()).unwrap().control, control);
        }
        count += 1;
        assert!(count <= 8, "outputs without end");
    }
    assert!(sessions.next_deadline().unwrap() > now);
}

proptest! {
    #[test]
    fn a_payload_that_is_parsed_is_emitted_again(mut octets in prop::collection::vec(any::<u8>(), 0..64), is_sane in any::<bool>()) {
        if is_sane && octets.len() >= 24 {
            (octets[0], octets[1], octets[3]) = (octets[0] & 0x1F | 0x20, octets[1] & !1, octets.len() as u8);
        }
        if let Ok(packet) = ControlPacket::parse(&octets) {
            let mut expected = octets[..24].to_vec();
            (expected[1], expected[3]) = (expected[1] & !0x04, 24);
            let emitted = packet.control.emit();
            prop_assert_eq!(emitted.as_bytes(), &expected[..]);
        }
    }

    #[test]
    fn packets_of_scapy_with_octets_changed_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), any::<bool>(),
                                          any::<bool>(), 0_u64..2_000), 1..60)
    ) {
        let mut sessions = sessions();
        let ours: Vec<_> = sessions.iter().map(|(_, session)| session.discriminator()).collect();
        let packets = packets();
        let mut now = Instant::ZERO;
        for (which, at, octet, is_cut, is_ours, ms) in changes {
            let mut octets = which.get(&packets).clone();
            if is_ours {
                octets[56..60].copy_from_slice(&ours[usize::from(octet) % 2].get().to_be_bytes());
            }
            let place = at.index(octets.len());
            if is_cut {
                octets.truncate(place);
            } else {
                octets[place] = octet;
            }
            drain(&mut sessions, now);
            let before = format!("{:?}", sessions.iter().collect::<Vec<_>>());
            let counted: u64 = sessions.refusals().iter().map(|(_, count)| count).sum();
            // By the datagram, whose checksum refuses nearly all, and by its payload.
            let results = match (octet % 2 == 0, octets.get(48..)) {
                (true, Some(payload)) => {
                    let hops = if which.index(2) == 0 { Hops::Multi } else { Hops::Single { interface: 3 } };
                    let peer = *sessions.iter().find(|(peer, _)| peer.hops == hops).unwrap().0;
                    let arrival = Arrival { hops, source: peer.remote, destination: peer.local, hop_limit: 255 };
                    sessions.receive(&arrival, payload, now)
                }
                (true, None) | (false, _) => sessions.receive_packet(3, &octets, now),
            };
            match results {
                Ok(_) => {}
                Err(Refusal::AdministrativelyDown) => prop_assert!(false, "no session is disabled"),
                Err(_) => {
                    prop_assert_eq!(format!("{:?}", sessions.iter().collect::<Vec<_>>()), before);
                    let count: u64 = sessions.refusals().iter().map(|(_, count)| count).sum();
                    prop_assert_eq!(count, counted + 1);
                }
            }
            now = now.after_ns(ms * 1_000_000);
            drain(&mut sessions, now);
        }
        prop_assert!(now < at_ms(200_000));
        prop_assert!(sessions.iter().all(|(_, session)| session.state() != State::AdminDown));
    }

    #[test]
    fn any_datagram_is_parsed_or_refused(octets in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = udp::parse(&octets, 1);
        let mut sessions = sessions();
        prop_assert!(sessions.receive_packet(1, &octets, Instant::ZERO).is_err());
    }
}
