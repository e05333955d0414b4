//! The program that takes the frames of an [`Interest`] off an interface and leaves the rest to the kernel.

use super::assembler::{Assembler, Condition, Instruction, Register, Width};
use super::fast_path::{self, FastProgram};
use super::{Map, MapKind, XdpMode, attach_xdp, end_with_redirect, load_xdp, replace_xdp};
use super::{XDP_MD_DATA, XDP_MD_DATA_END, XDP_MD_RX_QUEUE_INDEX, XDP_PASS};
use crate::interest::{BFD_PORTS, Interest, Match};
use srdma_wire::Prefix;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::ethernet::EtherType;
use srdma_wire::ipv6::NextHeader;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The program at an interface, with its maps. Dropping it takes the program off the interface.
#[derive(Debug)]
pub(crate) struct Redirect {
    maps: Maps,
    interest: BTreeMap<Prefix, Match>,
    /// Without the fast path: kept, so that there is always a way back.
    plain: OwnedFd,
    /// With the fast path, while that runs.
    fast: Option<OwnedFd>,
    link: OwnedFd,
}

#[derive(Debug)]
struct Maps {
    /// One entry: the bits below.
    flags: Map<u32, u32>,
    /// Destinations, with a [`Match`] as number.
    prefixes: Map<[u8; 20], u32>,
    /// The same for IPv4 packets.
    ipv4_prefixes: Map<[u8; 8], u32>,
    /// The socket of each queue.
    sockets: Map<u32, u32>,
}

const EVERYTHING: u32 = 1;
const PFC: u32 = 2;

/// Prefixes that fit; the kernel allocates only those that are there.
const MAX_PREFIXES: u32 = 1 << 20;

impl Redirect {
    /// Puts the program on an interface with so many queues. Until a queue has a socket, its frames stay with the
    /// kernel.
    ///
    /// # Errors
    ///
    /// `EBUSY` and `EEXIST` when there is a program already; otherwise the kernel's error for maps, program or link.
    pub(crate) fn attach(interface_index: u32, mode: XdpMode, queues: u32, interest: &Interest) -> io::Result<Self> {
        let maps = Maps {
            flags: Map::new(MapKind::Array, 1, c"srdma_flags")?,
            prefixes: Map::new(MapKind::LpmTrie, MAX_PREFIXES, c"srdma_prefixes")?,
            ipv4_prefixes: Map::new(MapKind::LpmTrie, MAX_PREFIXES, c"srdma_ipv4")?,
            sockets: Map::new(MapKind::XskMap, queues, c"srdma_sockets")?,
        };
        let mut known = BTreeMap::new();
        maps.change(&mut known, interest)?;
        let plain = load_xdp(&maps.program(None), c"srdma_redirect")?;
        let link = attach_xdp(plain.as_fd(), interface_index, mode)?;
        Ok(Redirect { maps, interest: known, plain, fast: None, link })
    }

    /// Gives the frames of a queue to a socket that is bound to it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub(crate) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.maps.sockets.set(queue, socket.as_raw_fd() as u32)
    }

    /// Changes what the program takes, while it runs.
    ///
    /// # Errors
    ///
    /// If the kernel refuses an entry; those before it hold.
    pub(crate) fn set_interest(&mut self, interest: &Interest) -> io::Result<()> {
        self.maps.change(&mut self.interest, interest)
    }

    /// Has the program forward what it can, or, with `None`, redirect it as before; for the next frame on.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the program; the one before stays.
    pub(crate) fn set_fast_path(&mut self, fast: Option<(&fast_path::Maps, &fast_path::Port)>) -> io::Result<()> {
        let load = |(maps, port)| load_xdp(&self.maps.program(Some(FastProgram { maps, port })), c"srdma_fast");
        let fast = fast.map(load).transpose()?;
        replace_xdp(self.link.as_fd(), fast.as_ref().unwrap_or(&self.plain).as_fd())?;
        self.fast = fast;
        Ok(())
    }
}

impl Maps {
    /// Updates the maps from their `known` content to that of `interest`. A longer prefix is added before, and removed
    /// after, the shorter one that contains it.
    fn change(&self, known: &mut BTreeMap<Prefix, Match>, interest: &Interest) -> io::Result<()> {
        let wanted: BTreeMap<Prefix, Match> = interest.prefixes.iter().copied().collect();
        let mut added: Vec<(Prefix, Match)> = wanted
            .iter()
            .filter(|(prefix, how)| known.get(prefix) != Some(how))
            .map(|(prefix, how)| (*prefix, *how))
            .collect();
        added.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.prefix_len()));
        for (prefix, how) in added {
            let was_in_ipv6 = known.get(&prefix).is_some_and(|before| is_in_ipv6(prefix, *before));
            if was_in_ipv6 && !is_in_ipv6(prefix, how) {
                self.prefixes.remove(key(prefix))?;
            }
            if let Some(key) = ipv4_key(prefix) {
                self.ipv4_prefixes.set(key, number(how))?;
            }
            if is_in_ipv6(prefix, how) {
                self.prefixes.set(key(prefix), number(how))?;
            }
            known.insert(prefix, how);
        }
        let mut removed: Vec<Prefix> = known.keys().filter(|prefix| !wanted.contains_key(prefix)).copied().collect();
        removed.sort_by_key(Prefix::prefix_len);
        for prefix in removed {
            if let Some(key) = ipv4_key(prefix) {
                self.ipv4_prefixes.remove(key)?;
            }
            if known.remove(&prefix).is_some_and(|how| is_in_ipv6(prefix, how)) {
                self.prefixes.remove(key(prefix))?;
            }
        }
        let flags = if interest.everything { EVERYTHING } else { 0 } | if interest.pfc { PFC } else { 0 };
        self.flags.set(0, flags)
    }

    /// The program.
    ///
    /// `R6` is its context, `R7` the flags, then the frame from the last link-layer tag on: the EtherType is 12 octets
    /// behind it; `R9` is the end of the frame. The verifier requires a comparison with the end before every new field.
    /// With `fast`, frames go through the fast path first, which knows the interest by itself.
    fn program(&self, fast: Option<FastProgram<'_>>) -> Vec<Instruction> {
        use Condition::{AnyBit, Equal, Greater, NotEqual};
        use Register::{R0, R1, R2, R4, R6, R7, R8, R9, R10};
        use Width::{Four, One, Two};

        let mut program = Assembler::default();
        let (pass, redirect) = (program.label(), program.label());
        let (untagged, ipv6, ipv4) = (program.label(), program.label(), program.label());
        let rocev2 = program.label();
        let (unknown_option, element) = (program.label(), program.label());

        program.copy(R6, R1);
        if let Some(fast) = fast {
            fast.emit(&mut program, element);
        }
        program.place(element);
        program.store_value(Four, R10, -4, 0);
        program.look_up(self.flags.fd.as_fd(), -4);
        program.jump_if(R0, Equal, 0, pass);
        program.load(Four, R7, R0, 0);
        program.jump_if(R7, AnyBit, EVERYTHING as i32, redirect);

        program.load(Four, R8, R6, XDP_MD_DATA);
        program.load(Four, R9, R6, XDP_MD_DATA_END);
        has_octets(&mut program, 14, pass);
        program.load(Two, R2, R8, 12);
        program.jump_if(R2, NotEqual, network_order(EtherType::VLAN.0), untagged);
        has_octets(&mut program, 18, pass);
        program.add(R8, 4);
        program.load(Two, R2, R8, 12);

        program.place(untagged);
        program.jump_if(R2, Equal, network_order(EtherType::IPV6.0), ipv6);
        program.jump_if(R2, Equal, network_order(EtherType::IPV4.0), ipv4);
        program.jump_if(R2, NotEqual, network_order(MAC_CONTROL), pass);
        has_octets(&mut program, 16, pass);
        program.load(Two, R2, R8, 14);
        program.jump_if(R2, NotEqual, network_order(PRIORITY_FLOW_CONTROL), pass);
        program.jump_if(R7, AnyBit, PFC as i32, redirect);
        program.jump(pass);

        program.place(ipv4);
        has_octets(&mut program, 34, pass);
        program.store_value(Four, R10, -24, 32);
        program.load(Four, R2, R8, 30);
        program.store(Four, R10, -20, R2);
        program.look_up(self.ipv4_prefixes.fd.as_fd(), -24);
        program.jump_if(R0, Equal, 0, pass);
        program.load(Four, R1, R0, 0);
        program.jump_if(R1, Equal, number(Match::All) as i32, redirect);
        program.jump_if(R1, Equal, number(Match::RoceV2) as i32, redirect);
        program.jump(pass);

        program.place(ipv6);
        has_octets(&mut program, 54, pass);
        program.store_value(Four, R10, -24, 128);
        for word in 0..4 {
            program.load(Four, R2, R8, 38 + 4 * word);
            program.store(Four, R10, -20 + 4 * word, R2);
        }
        program.look_up(self.prefixes.fd.as_fd(), -24);
        program.jump_if(R0, Equal, 0, pass);
        program.load(Four, R1, R0, 0);
        program.jump_if(R1, Equal, number(Match::All) as i32, redirect);
        program.jump_if(R1, Equal, number(Match::RoceV2) as i32, rocev2);
        program.jump_if(R1, Equal, number(Match::UnknownOption) as i32, unknown_option);
        program.jump_if(R1, NotEqual, number(Match::Own) as i32, pass);

        program.load(One, R2, R8, 20);
        program.jump_if(R2, Equal, i32::from(NextHeader::ICMPV6.0), unknown_option);
        program.jump_if(R2, NotEqual, i32::from(NextHeader::UDP.0), pass);
        has_octets(&mut program, 62, pass);
        program.load(Two, R2, R8, 56);
        for port in BFD_PORTS {
            program.jump_if(R2, Equal, network_order(port), redirect);
        }
        program.jump(pass);

        program.place(unknown_option);
        program.load(One, R2, R8, 20);
        program.jump_if(R2, NotEqual, i32::from(NextHeader::ICMPV6.0), pass);
        has_octets(&mut program, 56, pass);
        program.load(Two, R2, R8, 54);
        program.jump_if(R2, NotEqual, network_order(PARAMETER_PROBLEM_OPTION), pass);
        program.jump(redirect);

        program.place(rocev2);
        program.load(One, R2, R8, 20);
        program.jump_if(R2, Equal, i32::from(NextHeader::HOP_BY_HOP.0), redirect);
        program.jump_if(R2, Equal, i32::from(NextHeader::DESTINATION_OPTIONS.0), redirect);
        program.jump_if(R2, NotEqual, i32::from(NextHeader::UDP.0), pass);
        has_octets(&mut program, 62, pass);
        program.load(Two, R2, R8, 56);
        program.jump_if(R2, NotEqual, network_order(ROCEV2_PORT), pass);

        program.place(redirect);
        program.load(Four, R2, R6, XDP_MD_RX_QUEUE_INDEX);
        end_with_redirect(&mut program, self.sockets.fd.as_fd(), XDP_PASS, pass);

        /// Leaves for `otherwise` unless so many octets lie between `R8` and `R9`.
        fn has_octets(program: &mut Assembler, octets: i32, otherwise: super::assembler::Label) {
            program.copy(R4, R8);
            program.add(R4, octets);
            program.jump_if_register(R4, Greater, R9, otherwise);
        }
        program.finish()
    }
}

/// EtherType of MAC Control (IEEE 802.3), and its opcode for priority flow control (IEEE 802.1Qbb).
const MAC_CONTROL: u16 = 0x8808;
const PRIORITY_FLOW_CONTROL: u16 = 0x0101;

/// Type and code of ICMPv6 Parameter Problem, unrecognised IPv6 option (RFC 4443 section 3.4).
const PARAMETER_PROBLEM_OPTION: u16 = 0x0402;

/// The number that a load of two octets gives.
fn network_order(value: u16) -> i32 {
    i32::from(value.to_be())
}

/// The trie's value for a match. Zero is the value of an empty entry.
fn number(how: Match) -> u32 {
    match how {
        Match::Kernel => 0,
        Match::All => 1,
        Match::RoceV2 => 2,
        Match::UnknownOption => 3,
        Match::Own => 4,
    }
}

/// Whether a prefix is one of IPv6 packets too, as those of IPv4 are with [`Match::RoceV2`].
fn is_in_ipv6(prefix: Prefix, how: Match) -> bool {
    !prefix.is_ipv4() || how == Match::RoceV2
}

/// `struct bpf_lpm_trie_key`: the length in host byte order, the address in network byte order.
fn key(prefix: Prefix) -> [u8; 20] {
    let mut key = [0; 20];
    key[..4].copy_from_slice(&u32::from(prefix.prefix_len()).to_ne_bytes());
    key[4..].copy_from_slice(&prefix.address().octets());
    key
}

/// The same of a prefix of IPv4, if it is one.
fn ipv4_key(prefix: Prefix) -> Option<[u8; 8]> {
    let (address, len) = prefix.as_ipv4()?;
    let mut key = [0; 8];
    key[..4].copy_from_slice(&u32::from(len).to_ne_bytes());
    key[4..].copy_from_slice(&address.octets());
    Some(key)
}
