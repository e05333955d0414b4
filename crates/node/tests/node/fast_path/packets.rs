//! Random packets: most of them right, some a little wrong, some damaged.

use super::nodes::mac;
use srdma_testkit::random::Random;
use std::net::Ipv6Addr;

/// Beginnings of destinations; the rest is small numbers, so that flows differ.
const DESTINATIONS: [&str; 36] = [
    "2001:db8:a::",
    "2001:db8:b::",
    "2001:db8:c::",
    "2001:db8:d::",
    "2001:db8:e::",
    "2001:db8:10::",
    "2001:db8:11::",
    "2001:db8:12::",
    "2001:db8:77::",
    "2001:db8:bb::",
    "2001:db8:e1::",
    "2001:db8:e2::",
    "2001:db8:e3::",
    "2001:db8:e4::",
    "2001:db8:e5::",
    "2001:db8:e6::",
    "2001:db8:e7::",
    "2001:db9::",
    "2001:db8:ff::",
    "5f00:0:300::",
    "5f00:0:400::",
    "fe80::",
    "fec0::",
    "::",
    "64:ff9b::",
    "ff3e::",
    "fc00:0:0:7::",
    "5f00:0:100:300::",
    "5f00:0:100:200::",
    "5f00:0:200:100:400::",
    "5f00:0:200::",
    "5f00:0:100::",
    "fc00:0:0:1:2::",
    "fc00:0:0:1:7:1::",
    "fc00:0:0:2:7::",
    "fc00:0:0:1::",
];

const SIDS: u64 = 14;

fn destination(random: &mut Random) -> [u8; 16] {
    if random.happens(450) {
        return Ipv6Addr::new(0x2001, 0xdb8, 0xf, random.between(1, SIDS) as u16, 0, 0, 0, 0).octets();
    }
    let text: &str = random.one_of(&DESTINATIONS);
    let mut octets = text.parse::<Ipv6Addr>().expect("an address").octets();
    if random.happens(700) {
        octets[15] = random.below(256) as u8;
    }
    octets
}

fn source(random: &mut Random) -> [u8; 16] {
    let text: &str = match random.below(100) {
        0 => "::",
        1 => "ff02::1",
        2 => "fe80::",
        3 => "fec0::",
        4..70 => "2001:db8:ff::",
        70..80 => "2001:db8:b::",
        _ => "2001:db8:aaaa::",
    };
    let mut octets = text.parse::<Ipv6Addr>().expect("an address").octets();
    if text != "::" {
        octets[14] = random.below(4) as u8;
        octets[15] = random.below(256) as u8;
    }
    octets
}

fn octets(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// A payload and its type.
fn payload(random: &mut Random, depth: u32) -> (u8, Vec<u8>) {
    match random.below(100) {
        0..30 => {
            let len = match random.below(20) {
                0 => random.between(0, 20),
                1 => random.between(1200, 1500),
                2 => random.between(3300, 4300),
                _ => random.between(16, 80),
            };
            let mut udp = octets(random, 24);
            if random.happens(500) {
                udp[2..4].copy_from_slice(&4791u16.to_be_bytes());
            }
            udp.resize(len as usize, 0x5a);
            (17, udp)
        }
        30..40 => {
            let len = random.below(40) as usize;
            (59, octets(random, len))
        }
        40..45 => (4, ipv4(random)),
        45..65 if depth < 3 => (41, packet(random, depth + 1)),
        65..95 if depth < 3 => (43, routing_header(random, depth)),
        95..98 if depth < 3 => {
            let (next, rest) = payload(random, depth + 1);
            let kind = random.one_of(&[0, 60]);
            (kind, [&[next, 0, 1, 4, 0, 0, 0, 0][..], &rest].concat())
        }
        _ => {
            let kind = random.below(256) as u8;
            (kind, octets(random, 32))
        }
    }
}

fn routing_header(random: &mut Random, depth: u32) -> Vec<u8> {
    let (next, rest) = match random.happens(600) {
        true if random.happens(150) => (4, ipv4(random)),
        true => (41, packet(random, depth + 1)),
        false => payload(random, depth + 1),
    };
    let segments = match random.happens(20) {
        true => random.between(18, 22),
        false => random.between(1, 4),
    };
    let tlvs = if random.happens(100) { 8 * random.between(1, 3) } else { 0 };
    let segments_left = match random.below(10) {
        0..4 => 0,
        4 => segments,
        5 => random.below(8),
        _ => random.below(segments),
    };
    let mut octets = vec![next, (2 * segments + tlvs / 8) as u8, 4, segments_left as u8, segments as u8 - 1, 0, 0, 0];
    for _ in 0..segments {
        octets.extend_from_slice(&destination(random));
    }
    octets.resize(octets.len() + tlvs as usize, 0);
    if random.happens(60) {
        let at = random.between(1, 4) as usize;
        octets[at] = random.below(8) as u8;
    }
    octets.extend(rest);
    octets
}

/// An IPv6 packet.
fn packet(random: &mut Random, depth: u32) -> Vec<u8> {
    let (next, payload) = payload(random, depth);
    let (class, label) = (random.below(256) as u32, random.below(1 << 20) as u32);
    let version = if random.happens(5) { 4 } else { 6 };
    let mut octets = (version << 28 | class << 20 | label).to_be_bytes().to_vec();
    let len = match random.below(100) {
        0 => payload.len() + random.between(1, 9) as usize,
        1 => payload.len().saturating_sub(random.between(1, 9) as usize),
        _ => payload.len(),
    };
    octets.extend_from_slice(&(len as u16).to_be_bytes());
    octets.extend_from_slice(&[next, random.one_of(&[0, 1, 2, 3, 64, 64, 64, 64, 255, 255])]);
    octets.extend_from_slice(&source(random));
    octets.extend_from_slice(&destination(random));
    octets.extend(payload);
    octets
}

/// An IPv4 packet, often with a right checksum.
fn ipv4(random: &mut Random) -> Vec<u8> {
    let len = match random.below(10) {
        0 => random.between(1400, 1600),
        _ => random.between(0, 60),
    } as usize;
    let (tos, ttl, protocol) =
        (random.below(256) as u8, random.one_of(&[0, 1, 2, 64, 255]), random.one_of(&[1, 6, 17]));
    let mut octets = [&[0x45, tos][..], &(20 + len as u16).to_be_bytes(), &[0, 1, 0, 0, ttl, protocol, 0, 0]].concat();
    octets[6] = random.one_of(&[0x40, 0x40, 0, 0x20]);
    octets.extend([10, 9, 0, random.below(256) as u8, 10, random.between(1, 5) as u8, 0, random.below(256) as u8]);
    let sum: u32 = octets.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    octets[10..12].copy_from_slice(&(!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes());
    octets.extend((0..len).map(|_| random.below(256) as u8));
    if random.happens(50) {
        let at = random.below(20) as usize;
        octets[at] = random.below(256) as u8;
    }
    octets
}

/// A frame that comes in at a port.
pub(super) fn frame(random: &mut Random, port: u16) -> Vec<u8> {
    let to = match random.below(100) {
        0 => [2, 0, 0, 0, 0, 0x70],
        1 => [0x33, 0x33, 0, 0, 0, 1],
        _ => mac(port).0,
    };
    let ethertype = match random.below(100) {
        0..5 => [8, 0],
        5 => [0x81, 0],
        _ => [0x86, 0xdd],
    };
    let mut octets = [&to[..], &[2, 0, 0, 0, 9, 9], &ethertype].concat();
    let packet = match ethertype {
        [8, 0] if random.happens(900) => ipv4(random),
        _ => packet(random, 0),
    };
    octets.extend(packet);
    match random.below(100) {
        0 => octets.resize(octets.len() + random.between(1, 20) as usize, 0),
        1 => octets.truncate(random.between(14, octets.len() as u64) as usize),
        2 | 3 => {
            let at = random.between(14, octets.len() as u64 - 1) as usize;
            octets[at] = random.below(256) as u8;
        }
        _ => {}
    }
    octets
}
