//! Packets compared with those of scapy and FRR (`testdata/bfd/README.md`), and ours read by tshark.

use crate::support::{ETHERNET_LEN, captured, control, ours, packets, payloads};
use srdma_bfd::udp::{self, MULTI_HOP_PORT, SINGLE_HOP_PORT};
use srdma_bfd::{
    Arrival, Authentication, Config, Control, ControlPacket, Diagnostic, Discriminator, Event, Hops, Peer, Session,
    State,
};
use srdma_capture::Writer;
use srdma_random::Stream;
use srdma_wire::Instant;
use std::net::Ipv6Addr;
use std::num::NonZeroU8;
use std::process::Command;
use zerocopy::IntoBytes;

/// The values of `make.py`.
fn expected() -> Vec<Control> {
    let [admin_down, down, init, up] = [State::AdminDown, State::Down, State::Init, State::Up].map(control);
    let from_code = Diagnostic::from_code;
    let up_seven_fields = Control {
        is_demand: true,
        detect_mult: NonZeroU8::MAX,
        desired_min_tx_us: u32::MAX,
        required_min_rx_us: 0,
        ..up
    };
    let other_numbers = Control {
        diagnostic: Diagnostic::REVERSE_CONCATENATED_PATH_DOWN,
        is_control_plane_independent: true,
        detect_mult: NonZeroU8::MIN,
        desired_min_tx_us: 10_000,
        required_min_rx_us: 20_000,
        required_min_echo_rx_us: 30_000,
        ..up
    };
    vec![
        Control { your_discriminator: None, ..down },
        init,
        Control { is_poll: true, ..up },
        Control { is_final: true, ..up },
        Control { diagnostic: from_code(7), ..admin_down },
        Control { diagnostic: from_code(1), your_discriminator: None, is_poll: true, ..down },
        up_seven_fields,
        other_numbers,
        up,
        up,
        up,
        up,
    ]
}

#[test]
fn payloads_are_parsed_and_emitted_again() {
    for (number, (octets, expected)) in payloads().iter().zip(expected()).enumerate() {
        let packet = ControlPacket::parse(octets).unwrap();
        assert_eq!(packet.control, expected, "packet {number}");
        if packet.authentication.is_none() {
            assert_eq!(expected.emit().as_bytes(), octets, "packet {number}");
        }
    }
}

#[test]
fn authentication_sections_are_parsed() {
    let payloads = payloads();
    let authentication = |number: usize| ControlPacket::parse(&payloads[number]).unwrap().authentication;
    assert_eq!(authentication(0), None);
    assert_eq!(authentication(10), Some(Authentication { kind: 1, data: b"\x07secret" }));
    let Some(Authentication { kind: 5, data }) = authentication(11) else { panic!("meticulous keyed SHA-1") };
    assert_eq!((data.len(), &data[..6]), (26, &[7, 0, 1, 2, 3, 4][..]));
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn near() -> Peer {
    Peer { hops: Hops::Single { interface: 3 }, local: address("fe80::a"), remote: address("fe80::b") }
}

fn far() -> Peer {
    Peer { hops: Hops::Multi, local: address("2001:db8:a::1"), remote: address("2001:db8:b::1") }
}

/// Addresses, ports, hop limit and checksum (RFC 5881 sections 4 and 5, RFC 5883 section 4).
#[test]
fn datagrams_are_emitted_and_parsed() {
    let packets = packets();
    let values = expected();
    for number in 0..7 {
        assert_eq!(udp::emit(&near(), 49_152, &values[number])[..], packets[number], "packet {number}");
    }
    assert_eq!(udp::emit(&far(), 65_535, &values[7])[..], packets[7]);
    for (number, octets) in packets.iter().enumerate() {
        let (peer, hop_limit) = match number {
            7 => (far(), 255),
            8 => (far(), 61),
            9 => (near(), 254),
            _ => (near(), 255),
        };
        let arrival = Arrival { hops: peer.hops, source: peer.local, destination: peer.remote, hop_limit };
        assert_eq!(udp::parse(octets, 3), Ok((arrival, &octets[48..])), "packet {number}");
    }
}

#[test]
fn packets_of_frr_are_parsed_and_emitted_again() {
    for octets in captured("frr84.pcap") {
        let (arrival, payload) = udp::parse(&octets, 3).unwrap();
        assert_eq!((arrival.hops, arrival.hop_limit), (Hops::Single { interface: 3 }, 255));
        let packet = ControlPacket::parse(payload).unwrap();
        assert_eq!(packet.authentication, None);
        assert_eq!(packet.control.emit().as_bytes(), payload);
    }
}

/// FRR comes up, is stopped, changes its intervals, is shut down and started; we disable the session; the link is cut.
#[test]
fn a_session_follows_frr() {
    let ours = Discriminator::new(0x1DAB_A2F9).unwrap();
    let mut session = Session::new(Config::default(), ours, Stream::new(1, "test"), Instant::ZERO);
    let mut states = String::new();
    let mut events = Vec::new();
    for octets in captured("frr84.pcap") {
        let packet = ControlPacket::parse(&octets[48..]).unwrap();
        events.extend(session.receive(&packet, Instant::ZERO).unwrap());
        states += &format!("{:?} {}, ", session.state(), packet.control.diagnostic.code());
    }
    let expected = "Init 0, Up 0, Up 0, Up 0, Up 0, Down 1, Up 1, Up 0, Up 0, Down 0, Down 0, Init 0, Up 0, Down 3, \
                    Init 3, Init 3, Up 3, Down 1, Init 1, ";
    assert_eq!(states, expected);
    let down = |is_administrative| {
        let diagnostic = Diagnostic::NEIGHBOR_SIGNALED_DOWN;
        Event::Down { diagnostic, is_administrative }
    };
    let up = Event::Up;
    assert_eq!(events, [up, down(false), up, down(true), up, down(false), up, down(false)]);
}

#[test]
fn tshark_reads_our_packets() {
    let mut written = Writer::new(Vec::new()).unwrap();
    let interface = written.add_interface("p0").unwrap();
    let yours = Discriminator::new(1).unwrap();
    let packets = [
        udp::emit(&near(), 50_000, &Control { your_discriminator: None, ..control(State::Down) }),
        udp::emit(&near(), 50_000, &Control { is_poll: true, ..control(State::Up) }),
        udp::emit(&far(), 50_001, &Control { is_final: true, your_discriminator: Some(yours), ..expected()[7] }),
    ];
    let mut ethernet = [0_u8; ETHERNET_LEN];
    ethernet[12..].copy_from_slice(&[0x86, 0xDD]);
    for packet in packets {
        written.write_packet(interface, 0, &[&ethernet, &packet]).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bfd.pcapng");
    std::fs::write(&path, written.finish().unwrap()).unwrap();
    let fields = [
        "udp.dstport",
        "udp.checksum.status",
        "ipv6.hlim",
        "bfd.sta",
        "bfd.flags.p",
        "bfd.flags.f",
        "bfd.detect_time_multiplier",
        "bfd.my_discriminator",
        "bfd.your_discriminator",
        "bfd.desired_min_tx_interval",
        "bfd.required_min_rx_interval",
        "bfd.required_min_echo_interval",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-o", "udp.check_checksum:TRUE", "-T", "fields"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().expect("tshark is installed, as `cargo xtask ci` sees to");
    let found = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Vec<String>> = found.lines().map(|row| row.split('\t').map(normal).collect()).collect();
    let row = |values: [u32; 12]| values.map(|value| value.to_string()).to_vec();
    let (ours, theirs, single, multi) = (0x0B0B_0B0B, 0x0A0A_0A0A, SINGLE_HOP_PORT.into(), MULTI_HOP_PORT.into());
    assert_eq!(
        rows,
        [
            row([single, 1, 255, 1, 0, 0, 3, theirs, 0, 1_000_000, 50_000, 0]),
            row([single, 1, 255, 3, 1, 0, 3, theirs, ours, 50_000, 50_000, 0]),
            row([multi, 1, 255, 3, 0, 1, 1, theirs, 1, 10_000, 20_000, 30_000]),
        ],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(ours, self::ours().get());
}

/// A field as a decimal number: versions of tshark differ in the form.
fn normal(field: &str) -> String {
    let number = match field {
        "True" => Some(1),
        "False" => Some(0),
        _ => match field.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => field.parse().ok(),
        },
    };
    number.map_or_else(|| field.to_owned(), |number| number.to_string())
}
