//! Packets compared with scapy's (`testdata/bfd/README.md`).

use crate::support::{control, payloads};
use srdma_bfd::{Authentication, Control, ControlPacket, Diagnostic, State};
use std::num::NonZeroU8;
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
