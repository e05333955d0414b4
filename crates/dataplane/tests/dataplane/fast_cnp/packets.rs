//! Packets octet by octet, their ICRCs by the reference model, and nodes for them.

use crate::common::Bench;
pub(crate) use crate::common::{address, prefix};
use srdma_dataplane::{Command, FastCnpConfig, Notified};
use srdma_frame::Frame;
use srdma_testkit::packets;

pub(crate) use packets::with_options;

/// The switch of the golden captures; the sender and the receiver of their data packet.
pub(crate) const SWITCH: &str = "2001:db8:53::1";
pub(crate) const SENDER: &str = "2001:db8:1::1";
pub(crate) const RECEIVER: &str = "2001:db8:2::1";

/// A switch with the sender behind port 0 and everything else behind port 1.
pub(crate) fn switch() -> Bench {
    let mut bench = Bench::new(SWITCH, 2);
    bench.route("2001:db8:1::/48", 0);
    bench.route("::/0", 1);
    bench
}

/// All senders may be notified, those of 2001:db8:1::/48 support Fast CNP, and other switches are accepted.
pub(crate) fn config() -> FastCnpConfig {
    FastCnpConfig {
        senders: vec![prefix("::/0")],
        capable: vec![prefix("2001:db8:1::/48")],
        switches: vec![prefix("2001:db8:53::/48")],
        ..FastCnpConfig::new()
    }
}

pub(crate) fn turn_on(bench: &mut Bench, config: FastCnpConfig) {
    bench.apply(Command::SetFastCnp(Box::new(config)));
}

/// The notified sender of an IPv6 packet that meets congestion, and the packets sent.
pub(crate) fn congested(bench: &mut Bench, packet: &[u8]) -> (Notified, Vec<(u16, Vec<u8>)>) {
    let octets = [&[2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xDD][..], packet].concat();
    let frame = Frame::from_octets(&octets, &mut bench.pool).unwrap();
    let notified = bench.node.notify(bench.now, &frame, &mut bench.pool);
    assert_eq!(frame.to_vec(&bench.pool), octets, "the packet itself is left alone");
    frame.release(&mut bench.pool);
    (notified, bench.drain())
}

/// A packet under a good ICRC, its PSN 0.
pub(crate) fn rocev2(source: &str, destination: &str, opcode: u8, qpn: u32, rest: &[u8]) -> Vec<u8> {
    packets::rocev2(address(source), address(destination), opcode, qpn, 0, rest)
}

/// A SEND Only of four octets.
pub(crate) fn data(source: &str, destination: &str, qpn: u32) -> Vec<u8> {
    rocev2(source, destination, 0x04, qpn, &[1, 2, 3, 4])
}

/// A standard CNP.
pub(crate) fn cnp(source: &str, destination: &str, qpn: u32) -> Vec<u8> {
    let mut packet = rocev2(source, destination, 0x81, qpn, &[0; 16]);
    (packet[0], packet[1]) = (0x6C, 0);
    packet
}

/// A Fast CNP with option 1.
pub(crate) fn fast_cnp(source: &str, destination: &str, original: &str, qpn: u32) -> Vec<u8> {
    fast_cnp_with(source, destination, original, qpn, 0)
}

/// The same with a rate in Mbit/s (D240).
pub(crate) fn fast_cnp_with(source: &str, destination: &str, original: &str, qpn: u32, rate: u32) -> Vec<u8> {
    let mut payload = [0; 16];
    payload[8..12].copy_from_slice(&rate.to_be_bytes());
    let mut packet = rocev2(source, destination, 0x81, qpn, &payload);
    (packet[0], packet[1]) = (0x6C, 0);
    let option = [&[0x9E, 16][..], &address(original).octets(), &[1, 2, 0, 0]].concat();
    with_options(packet, &option)
}

/// The Fast CNP by which a receiver returns the trace of a data packet: an empty trace of namespace 1 with node ids and
/// room for one, and the receiver's own address behind it.
pub(crate) fn returned_trace(receiver: &str, destination: &str, qpn: u32) -> Vec<u8> {
    let trace = [0, 0, 0, 1, 0x08, 1, 0x80, 0, 0, 0, 0, 0, 0, 0];
    let padded = [&[1, 0, 0x9E, 30][..], &trace, &address(receiver).octets(), &[1, 2, 0, 0]].concat();
    with_options(cnp(receiver, destination, qpn), &padded)
}

/// A packet one hop further on.
pub(crate) fn forwarded(mut packet: Vec<u8>) -> Vec<u8> {
    packet[7] -= 1;
    packet
}
