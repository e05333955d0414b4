//! BFD: control packets, their datagrams, and a table of sessions that is given both and time that passes.

use crate::choices::Choices;
use srdma_bfd::{Arrival, Config, ControlPacket, Diagnostic, Hops, Output, Peer, Refusal, Sessions, State, udp};
use srdma_wire::Instant;
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

const NEAR: Peer = Peer {
    hops: Hops::Single { interface: 3 },
    remote: Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 0xA),
    local: Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 0xB),
};
const FAR: Peer = Peer {
    hops: Hops::Multi,
    remote: Ipv6Addr::new(0x2001, 0xDB8, 0xA, 0, 0, 0, 0, 1),
    local: Ipv6Addr::new(0x2001, 0xDB8, 0xB, 0, 0, 0, 0, 1),
};

/// Any octets as a payload, as an IPv6 packet, and as a script for two sessions.
pub fn bfd(input: &[u8]) {
    payload(input);
    if let Ok((arrival, payload)) = udp::parse(input, 3) {
        let peer = Peer { hops: arrival.hops, remote: arrival.destination, local: arrival.source };
        if let Ok(packet) = ControlPacket::parse(payload) {
            let emitted = udp::emit(&peer, 49_152, &packet.control);
            let (again, payload) = udp::parse(&emitted, 3).expect("a packet that was just written");
            assert_eq!(again, Arrival { hop_limit: 255, ..arrival });
            assert_eq!(ControlPacket::parse(payload).expect("a packet that was just written").control, packet.control);
        }
    }
    script(&mut Choices::new(input));
}

/// A packet that is parsed is emitted unchanged, but for its authentication section.
fn payload(input: &[u8]) {
    if let Ok(packet) = ControlPacket::parse(input) {
        let mut expected = input[..24].to_vec();
        (expected[1], expected[3]) = (expected[1] & !0x04, 24);
        assert_eq!(packet.control.emit().as_bytes(), expected);
    }
}

/// The sessions send a bounded number of packets at a time; what is refused changes nothing; a session that is Up has
/// taken a packet within its detection time.
fn script(choices: &mut Choices<'_>) {
    let mut now = Instant::ZERO;
    let mut sessions = Sessions::new(2, 1);
    let ours = [NEAR, FAR].map(|peer| sessions.add(peer, Config::default(), now).expect("there is room for two"));
    let mut taken = [now; 2];
    while !choices.is_empty() {
        let which = choices.below(2);
        let discriminator = ours[which];
        match choices.below(8) {
            0 => now = now.after_ns(u64::from(choices.u32()) * 1_000),
            1 => now = now.after_ns(u64::from(choices.octet()) * 1_000_000),
            2 => {
                let (tx_us, rx_us) = (10_000 + u32::from(choices.u16()), 10_000 + u32::from(choices.u16()));
                let config = Config::new(tx_us, rx_us, choices.octet().max(1)).expect("intervals of 10 ms at least");
                assert!(sessions.configure(discriminator, config));
            }
            3 if choices.rarely(4) => {
                sessions.disable(discriminator, Diagnostic::from_code(choices.octet()));
            }
            3 => assert!(sessions.enable(discriminator)),
            4..8 => {
                let mut octets = choices.octets(24).to_vec();
                if let Some(yours) = octets.get_mut(8..12).filter(|_| choices.rarely(2)) {
                    yours.copy_from_slice(&discriminator.get().to_be_bytes());
                }
                let peer = [NEAR, FAR][which];
                let arrival = Arrival { hops: peer.hops, source: peer.remote, destination: peer.local, hop_limit: 255 };
                let before = sessions.clone();
                match sessions.receive(&arrival, &octets, now) {
                    Ok((found, _)) => {
                        assert_eq!(found, discriminator);
                        taken[which] = now;
                    }
                    Err(Refusal::AdministrativelyDown) => {}
                    Err(reason) => {
                        assert_eq!(sessions.refusals().get(reason), before.refusals().get(reason) + 1);
                        assert!(sessions.iter().map(seen).eq(before.iter().map(seen)), "{reason}");
                    }
                }
            }
            _ => unreachable!("a number below 8"),
        }
        drain(&mut sessions, now);
        for (which, discriminator) in ours.into_iter().enumerate() {
            let session = sessions.get(discriminator).expect("no session is removed");
            if session.state() == State::Up {
                let detection_ns = session.detection_time_ns().expect("the peer of a session that is Up is known");
                assert!(now < taken[which].after_ns(detection_ns), "Up without a packet");
            }
        }
    }
}

/// All that can be seen of a session.
fn seen((_, session): (&Peer, &srdma_bfd::Session)) -> impl PartialEq + use<> {
    let state = (session.state(), session.diagnostic(), session.remote_state(), session.remote_discriminator());
    (state, session.next_deadline(), session.detection_time_ns(), session.interval_ns())
}

fn drain(sessions: &mut Sessions, now: Instant) {
    let mut count = 0;
    while let Some(output) = sessions.poll(now) {
        if let Output::Packet { control, .. } = output {
            assert!(!(control.is_poll && control.is_final));
            payload(control.emit().as_bytes());
        }
        count += 1;
        assert!(count <= 8, "outputs without end");
    }
    assert!(sessions.next_deadline().is_none_or(|next| next > now), "a deadline that does not pass");
}
