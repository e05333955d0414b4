//! The interest as a classic BPF program, which the kernel runs for each frame before it copies anything.
//!
//! The kernel takes the outer VLAN tag off before packet sockets see a frame, so the program only sees untagged ones.

use crate::interest::{BFD_PORTS, Interest, Match};
use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_JA, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
use srdma_wire::Prefix;

const ETHERTYPE: u32 = 12;
const MAC_CONTROL_OPCODE: u32 = 14;
const NEXT_HEADER: u32 = 20;
const DESTINATION: u32 = 38;
/// Of an IPv4 packet.
const IPV4_DESTINATION: u32 = 30;
const UDP_DESTINATION: u32 = 56;
/// Type and code.
const ICMPV6_KIND: u32 = 54;

const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86DD;
const ETHERTYPE_MAC_CONTROL: u32 = 0x8808;
const PFC_OPCODE: u32 = 0x0101;
const HOP_BY_HOP_OPTIONS: u32 = 0;
const UDP: u32 = 17;
const DESTINATION_OPTIONS: u32 = 60;
const ROCEV2_PORT: u32 = 4791;
const ICMPV6: u32 = 58;
const PARAMETER_PROBLEM_OPTION: u32 = 0x0402;

/// The longest program that the kernel takes.
const MAX_INSTRUCTIONS: usize = libc::BPF_MAXINSNS as usize;

/// The program for an interest; `None` when it has too many prefixes.
pub(super) fn program(interest: &Interest) -> Option<Vec<libc::sock_filter>> {
    if interest.everything {
        return Some(vec![accept()]);
    }
    let mut program = ipv4(interest, |program| {
        for (prefix, wanted) in longest_first(interest.ipv4()) {
            append_ipv4(program, prefix, wanted);
        }
        program.push(refuse());
    });
    program.append(&mut beginning(interest.pfc));
    for (prefix, wanted) in longest_first(interest.ipv6()) {
        append(&mut program, prefix, wanted);
    }
    program.push(refuse());
    (program.len() <= MAX_INSTRUCTIONS).then_some(program)
}

/// The program that takes all of IPv6, and of IPv4 if any is wanted, for an interest that user space looks at.
pub(super) fn coarse_program(interest: &Interest) -> Vec<libc::sock_filter> {
    let mut program = ipv4(interest, |program| program.push(accept()));
    program.append(&mut beginning(interest.pfc));
    program.push(accept());
    program
}

/// What decides on IPv4 frames, if some are wanted: `decide` appends it, and all other frames go on behind it.
fn ipv4(interest: &Interest, decide: impl Fn(&mut Vec<libc::sock_filter>)) -> Vec<libc::sock_filter> {
    if interest.ipv4().next().is_none() {
        return Vec::new();
    }
    let mut decision = Vec::new();
    decide(&mut decision);
    let behind = instruction(BPF_JMP | BPF_JA, decision.len() as u32);
    let mut program = vec![load(BPF_H, ETHERTYPE), jump_if_equal(ETHERTYPE_IPV4, 1, 0), behind];
    program.append(&mut decision);
    program
}

/// The test for one prefix of IPv4.
fn append_ipv4(program: &mut Vec<libc::sock_filter>, prefix: Prefix, wanted: Match) {
    let verdict = if matches!(wanted, Match::All | Match::RoceV2) { accept() } else { refuse() };
    let Some((address, len)) = prefix.as_ipv4() else { return };
    if len > 0 {
        program.push(load(BPF_W, IPV4_DESTINATION));
        program.push(instruction(BPF_ALU | BPF_AND | BPF_K, u32::MAX << (32 - len)));
        program.push(jump_if_equal(address.into(), 0, 1));
    }
    program.push(verdict);
}

/// Separates IPv6 frames, which continue behind it, from pause frames and all others.
fn beginning(pfc: bool) -> Vec<libc::sock_filter> {
    if !pfc {
        return vec![load(BPF_H, ETHERTYPE), jump_if_equal(ETHERTYPE_IPV6, 1, 0), refuse()];
    }
    vec![
        load(BPF_H, ETHERTYPE),
        jump_if_equal(ETHERTYPE_IPV6, 5, 0),
        jump_if_equal(ETHERTYPE_MAC_CONTROL, 0, 3),
        load(BPF_H, MAC_CONTROL_OPCODE),
        jump_if_equal(PFC_OPCODE, 0, 1),
        accept(),
        refuse(),
    ]
}

fn longest_first(prefixes: impl Iterator<Item = (Prefix, Match)>) -> Vec<(Prefix, Match)> {
    let mut prefixes: Vec<_> = prefixes.collect();
    prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.prefix_len()));
    prefixes
}

/// The test for one prefix: the verdict if it has the destination, else on to the next.
fn append(program: &mut Vec<libc::sock_filter>, prefix: Prefix, wanted: Match) {
    let verdict = verdict(wanted);
    let mut tests = Vec::new();
    for (word, value) in prefix.address().octets().as_chunks::<4>().0.iter().enumerate() {
        let bits = usize::from(prefix.prefix_len()).saturating_sub(32 * word).min(32);
        if bits == 0 {
            break;
        }
        tests.push(load(BPF_W, DESTINATION + 4 * word as u32));
        if bits < 32 {
            tests.push(instruction(BPF_ALU | BPF_AND | BPF_K, u32::MAX << (32 - bits)));
        }
        tests.push(jump_if_equal(u32::from_be_bytes(*value), 0, 0));
    }
    let end = tests.len() + verdict.len();
    for (position, test) in tests.iter_mut().enumerate() {
        if test.code == JUMP_IF_EQUAL {
            test.jf = (end - position - 1) as u8;
        }
    }
    program.append(&mut tests);
    program.extend(verdict);
}

fn verdict(wanted: Match) -> Vec<libc::sock_filter> {
    match wanted {
        Match::All => vec![accept()],
        Match::Kernel => vec![refuse()],
        Match::UnknownOption => vec![
            load(BPF_B, NEXT_HEADER),
            jump_if_equal(ICMPV6, 0, 3),
            load(BPF_H, ICMPV6_KIND),
            jump_if_equal(PARAMETER_PROBLEM_OPTION, 0, 1),
            accept(),
            refuse(),
        ],
        Match::Own => vec![
            load(BPF_B, NEXT_HEADER),
            jump_if_equal(UDP, 0, 3),
            load(BPF_H, UDP_DESTINATION),
            jump_if_equal(BFD_PORTS[0].into(), 4, 0),
            jump_if_equal(BFD_PORTS[1].into(), 3, 4),
            jump_if_equal(ICMPV6, 0, 3),
            load(BPF_H, ICMPV6_KIND),
            jump_if_equal(PARAMETER_PROBLEM_OPTION, 0, 1),
            accept(),
            refuse(),
        ],
        Match::RoceV2 => vec![
            load(BPF_B, NEXT_HEADER),
            jump_if_equal(HOP_BY_HOP_OPTIONS, 4, 0),
            jump_if_equal(DESTINATION_OPTIONS, 3, 0),
            jump_if_equal(UDP, 0, 3),
            load(BPF_H, UDP_DESTINATION),
            jump_if_equal(ROCEV2_PORT, 0, 1),
            accept(),
            refuse(),
        ],
    }
}

const JUMP_IF_EQUAL: u16 = (BPF_JMP | BPF_JEQ | BPF_K) as u16;

fn load(size: u32, offset: u32) -> libc::sock_filter {
    instruction(BPF_LD | size | BPF_ABS, offset)
}

fn jump_if_equal(value: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter { code: JUMP_IF_EQUAL, jt: then, jf: otherwise, k: value }
}

fn accept() -> libc::sock_filter {
    instruction(BPF_RET | BPF_K, u32::MAX)
}

fn refuse() -> libc::sock_filter {
    instruction(BPF_RET | BPF_K, 0)
}

fn instruction(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Interprets the instructions that these programs use, as the kernel does.
    fn run(program: &[libc::sock_filter], octets: &[u8]) -> bool {
        let (mut accumulator, mut next) = (0, 0);
        loop {
            let instruction = program[next];
            next += 1;
            let loaded = |len: usize| {
                let octets = octets.get(instruction.k as usize..)?.get(..len)?;
                Some(octets.iter().fold(0, |value, octet| value << 8 | u32::from(*octet)))
            };
            match u32::from(instruction.code) {
                code if code == BPF_RET | BPF_K => return instruction.k != 0,
                code if code == BPF_ALU | BPF_AND | BPF_K => accumulator &= instruction.k,
                code if code == BPF_JMP | BPF_JA => next += instruction.k as usize,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    let is_equal = accumulator == instruction.k;
                    next += usize::from(if is_equal { instruction.jt } else { instruction.jf });
                }
                code => {
                    let len = [(BPF_W, 4), (BPF_H, 2), (BPF_B, 1)];
                    let (_, len) = len.into_iter().find(|(size, _)| code == BPF_LD | size | BPF_ABS).unwrap();
                    match loaded(len) {
                        Some(value) => accumulator = value,
                        None => return false,
                    }
                }
            }
        }
    }

    fn prefix(text: &str, len: u8) -> Prefix {
        Prefix::new(text.parse().unwrap(), len).unwrap()
    }

    fn packet(destination: Ipv6Addr, next_header: u8, port: u16) -> Vec<u8> {
        let mut octets = vec![0; 14 + 40 + 8];
        octets[12..14].copy_from_slice(&[0x86, 0xDD]);
        octets[20] = next_header;
        octets[38..54].copy_from_slice(&destination.octets());
        octets[56..58].copy_from_slice(&port.to_be_bytes());
        octets
    }

    #[test]
    fn the_longest_prefix_decides() {
        // Every length, each with a verdict of its own, all inside each other.
        let address: Ipv6Addr = "2001:db8:1234:5678:9abc:def0:1234:5678".parse().unwrap();
        let wanted = |len: u8| [Match::All, Match::Kernel, Match::RoceV2][usize::from(len % 3)];
        let prefixes: Vec<_> = (0..=128).map(|len| (Prefix::new(address, len).unwrap(), wanted(len))).collect();
        let program = program(&Interest { prefixes, ..Interest::default() }).unwrap();
        for shared in 0..=128 {
            let flipped = 1_u128.checked_shl(127 - u32::from(shared.min(127))).unwrap_or(0);
            let destination = if shared == 128 { address } else { (u128::from(address) ^ flipped).into() };
            let cases =
                [(17, 4791, true), (17, 53, false), (58, 4791, false), (0, 0, true), (60, 0, true), (43, 4791, false)];
            for (next_header, port, is_rocev2) in cases {
                let expected = match wanted(shared) {
                    Match::All => true,
                    Match::Kernel | Match::UnknownOption | Match::Own => false,
                    Match::RoceV2 => is_rocev2,
                };
                assert_eq!(run(&program, &packet(destination, next_header, port)), expected, "{shared} {port}");
            }
        }
    }

    /// D47: Parameter Problem code 2, of all ICMPv6.
    #[test]
    fn refused_options_are_distinguished_from_other_errors() {
        let loopback: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let prefixes = vec![(Prefix::host(loopback), Match::UnknownOption)];
        let program = program(&Interest { prefixes, ..Interest::default() }).unwrap();
        for (next_header, kind, code, is_wanted) in
            [(58, 4, 2, true), (58, 4, 1, false), (58, 3, 2, false), (58, 128, 0, false), (17, 4, 2, false)]
        {
            let mut octets = packet(loopback, next_header, 4791);
            octets[54..56].copy_from_slice(&[kind, code]);
            assert_eq!(run(&program, &octets), is_wanted, "{next_header} {kind} {code}");
        }
    }

    /// D109: BFD over a single hop and several, and what Fast CNP needs.
    #[test]
    fn a_nodes_own_packets_are_bfd_and_refused_options() {
        let own: Ipv6Addr = "fe80::1".parse().unwrap();
        let prefixes = vec![(Prefix::host(own), Match::Own), (prefix("fe80::", 10), Match::Kernel)];
        let interest = Interest { prefixes, ..Interest::default() };
        let program = program(&interest).unwrap();
        let selection = super::super::Selection::of(&interest);
        let other: Ipv6Addr = "fe80::2".parse().unwrap();
        let cases = [
            (own, 17, 3784, true),
            (own, 17, 4784, true),
            (own, 17, 3785, false),
            (own, 6, 3784, false),
            (own, 58, 3784, false),
            (other, 17, 3784, false),
        ];
        let mut packets: Vec<_> =
            cases.map(|(to, next_header, port, wanted)| (packet(to, next_header, port), wanted)).into();
        let mut refused = packet(own, 58, 0);
        refused[54..56].copy_from_slice(&[4, 2]);
        packets.push((refused, true));
        for (octets, is_wanted) in packets {
            assert_eq!(run(&program, &octets), is_wanted, "{octets:?}");
            assert_eq!(super::super::is_wanted(&octets, &selection), is_wanted, "{octets:?}");
        }
    }

    #[test]
    fn of_other_ethertypes_only_pfc_is_accepted_on_request() {
        let pause = [&[0; 12][..], &[0x88, 0x08, 1, 1], &[0; 44]].concat();
        let old_pause = [&[0; 12][..], &[0x88, 0x08, 0, 1], &[0; 44]].concat();
        let arp = [&[0; 12][..], &[0x08, 0x06], &[0; 46]].concat();
        for pfc in [false, true] {
            let prefixes = vec![(prefix("::", 0), Match::All)];
            let interest = Interest { prefixes, pfc, everything: false };
            for program in [program(&interest).unwrap(), coarse_program(&interest)] {
                assert_eq!(run(&program, &pause), pfc);
                assert!(!run(&program, &old_pause) && !run(&program, &arp) && !run(&program, &[0; 10]));
                assert!(run(&program, &packet(Ipv6Addr::LOCALHOST, 17, 9)));
            }
        }
    }

    /// D258: the interest in IPv4 says nothing about IPv6, and the other way round.
    #[test]
    fn ipv4_packets_have_prefixes_of_their_own() {
        let ipv4 = |address: [u8; 4], len, wanted| (Prefix::of_ipv4(Ipv4Addr::from(address), len).unwrap(), wanted);
        let prefixes = vec![
            ipv4([10, 0, 0, 0], 8, Match::All),
            ipv4([10, 1, 0, 0], 16, Match::Kernel),
            ipv4([10, 1, 1, 1], 32, Match::All),
            ipv4([10, 1, 2, 2], 32, Match::RoceV2),
        ];
        let packet_to = |destination: [u8; 4]| {
            let mut octets = vec![0; 14 + 20 + 8];
            octets[12] = 0x08;
            octets[30..34].copy_from_slice(&destination);
            octets
        };
        let cases = [
            ([10, 9, 9, 9], true),
            ([10, 1, 0, 1], false),
            ([10, 1, 1, 1], true),
            ([10, 1, 2, 2], true),
            ([11, 0, 0, 1], false),
            ([0, 0, 0, 0], false),
        ];
        let all = (prefix("::", 0), Match::All);
        for more in [vec![], vec![all]] {
            let interest = Interest { prefixes: [prefixes.clone(), more.clone()].concat(), ..Interest::default() };
            let (fine, coarse) = (program(&interest).unwrap(), coarse_program(&interest));
            let selection = super::super::Selection::of(&interest);
            for (destination, wanted) in cases {
                let octets = packet_to(destination);
                assert_eq!(run(&fine, &octets), wanted, "{destination:?}");
                assert!(run(&coarse, &octets));
                assert_eq!(super::super::is_wanted(&octets, &selection), wanted, "{destination:?}");
            }
            let mapped = packet(Ipv4Addr::new(10, 9, 9, 9).to_ipv6_mapped(), 17, 9);
            assert_eq!(run(&fine, &mapped), !more.is_empty());
            assert_eq!(super::super::is_wanted(&mapped, &selection), !more.is_empty());
            // D274: responses between nodes to a Proxy Address of IPv4, whose IPv6 packets are of interest as RoCEv2.
            for port in [4791, 9] {
                let response = packet(Ipv4Addr::new(10, 1, 2, 2).to_ipv6_mapped(), 17, port);
                assert_eq!(run(&fine, &response), port == 4791);
                assert_eq!(super::super::is_wanted(&response, &selection), port == 4791);
            }
        }
        let everything = Interest { prefixes: vec![ipv4([0; 4], 0, Match::All)], ..Interest::default() };
        assert!(run(&program(&everything).unwrap(), &packet_to([9; 4])));
        let ipv6 = Interest { prefixes: vec![all], ..Interest::default() };
        for program in [program(&ipv6).unwrap(), coarse_program(&ipv6)] {
            assert!(!run(&program, &packet_to([10, 9, 9, 9])));
        }
    }

    #[test]
    fn too_many_prefixes_have_no_program() {
        let host = |number: u16| (Prefix::host(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, number)), Match::All);
        let interest = |count| Interest { prefixes: (0..count).map(host).collect(), ..Interest::default() };
        assert!(program(&interest(400)).is_some());
        assert!(program(&interest(1000)).is_none());
    }
}
