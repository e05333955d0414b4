//! Reading the captures, and finding what they carry.

use srdma_capture::Reader;
use srdma_wire::ipv6::{Ipv6View, NextHeader};
use srdma_wire::{EtherType, Ethernet, View};
use std::path::{Path, PathBuf};

pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden")
}

/// The frames of one capture, Ethernet header included.
pub(crate) fn frames(name: &str) -> Vec<Vec<u8>> {
    let packets = Reader::open(&directory().join(name)).unwrap();
    let frames: Vec<_> = packets.map(|packet| packet.unwrap().octets).collect();
    assert!(!frames.is_empty(), "{name} has frames");
    frames
}

/// Every capture, as the name that [`frames`] takes.
pub(crate) fn names() -> Vec<String> {
    let mut names = Vec::new();
    for (folder, prefix) in [(directory(), ""), (directory().join("rxe"), "rxe/")] {
        for entry in folder.read_dir().unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".pcap") {
                names.push(format!("{prefix}{name}"));
            }
        }
    }
    names.sort();
    names
}

/// The packet behind the Ethernet header, when it is IPv6.
pub(crate) fn ipv6(frame: &[u8]) -> Option<&[u8]> {
    let (ethernet, packet) = Ethernet::parse(frame).unwrap();
    (ethernet.ethertype == EtherType::IPV6).then_some(packet)
}

/// The innermost IPv6 packet of an IPv6 packet, by a walk of its own.
pub(crate) fn innermost(mut packet: &[u8]) -> &[u8] {
    loop {
        let (ipv6, mut rest) = Ipv6View::split(packet).unwrap();
        let mut next_header = ipv6.next_header();
        while let NextHeader::HOP_BY_HOP | NextHeader::ROUTING | NextHeader::DESTINATION_OPTIONS = next_header {
            next_header = NextHeader(rest[0]);
            rest = &rest[8 + 8 * usize::from(rest[1])..];
        }
        if next_header != NextHeader::IPV6 {
            return packet;
        }
        packet = rest;
    }
}

/// The innermost packet of one frame of one capture; frames count from 1.
pub(crate) fn innermost_of(name: &str, frame: usize) -> Vec<u8> {
    innermost(ipv6(&frames(name)[frame - 1]).unwrap()).to_vec()
}
