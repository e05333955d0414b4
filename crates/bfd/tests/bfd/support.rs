//! Packets of others (`testdata/bfd`), and values for tests.

use srdma_bfd::{Control, Diagnostic, Discriminator, State};
use srdma_capture::Reader;
use srdma_wire::Instant;
use std::num::NonZeroU8;
use std::path::Path;

pub(crate) const ETHERNET_LEN: usize = 14;

/// The IPv6 packets of scapy.
pub(crate) fn packets() -> Vec<Vec<u8>> {
    let packets = captured("packets.pcap");
    assert_eq!(packets.len(), 12);
    packets
}

/// The IPv6 packets of a capture.
pub(crate) fn captured(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/bfd").join(name);
    let frames = Reader::open(&path).unwrap().map(|packet| packet.unwrap().octets);
    frames.map(|octets| octets[ETHERNET_LEN..].to_vec()).collect()
}

/// Their payloads of UDP.
pub(crate) fn payloads() -> Vec<Vec<u8>> {
    packets().into_iter().map(|octets| octets[48..].to_vec()).collect()
}

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// The discriminators of scapy's packets.
pub(crate) fn theirs() -> Discriminator {
    Discriminator::new(0x0A0A_0A0A).unwrap()
}

pub(crate) fn ours() -> Discriminator {
    Discriminator::new(0x0B0B_0B0B).unwrap()
}

/// A packet of a peer of default configuration that knows us.
pub(crate) fn control(state: State) -> Control {
    Control {
        diagnostic: Diagnostic::NONE,
        state,
        is_poll: false,
        is_final: false,
        is_control_plane_independent: false,
        is_demand: false,
        detect_mult: NonZeroU8::new(3).unwrap(),
        my_discriminator: theirs(),
        your_discriminator: Some(ours()),
        desired_min_tx_us: if state == State::Up { 50_000 } else { 1_000_000 },
        required_min_rx_us: 50_000,
        required_min_echo_rx_us: 0,
    }
}
