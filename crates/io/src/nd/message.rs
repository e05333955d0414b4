//! Neighbor Solicitations and Advertisements (RFC 4861 sections 4.3, 4.4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Type 135/136 |    Code 0     |           Checksum            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |R|S|O|            Reserved; the flags only in 136              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                    Target Address (16 octets)                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Options: type, length in units of 8 octets, value ...
//! ```

use srdma_wire::checksum::Sum;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::{EtherType, Ipv6, Ipv6View, MacAddress, View};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// ICMPv6 type of a Neighbor Solicitation.
pub(super) const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

/// Octets in front of IPv6, of IPv6, and of the fixed part of the messages.
const ETHERNET: usize = 14;
const IPV6: usize = 40;
const FIXED: usize = 24;

/// Options, both eight octets long: type, length 1, MAC address.
const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;

/// Flags of an advertisement.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

/// The sender of a solicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Solicitation {
    /// Its address; unspecified for duplicate address detection (RFC 4862).
    source: Ipv6Addr,
    mac: MacAddress,
}

impl Solicitation {
    /// Reads a frame that is a valid solicitation (RFC 4861 section 7.1.1).
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let sender = MacAddress(*frame.get(6..12)?.first_chunk()?);
        let (ipv6, rest) = Ipv6View::split(frame.get(ETHERNET..)?).ok()?;
        let message = rest.get(..ipv6.payload_length().into())?;
        let length = u32::try_from(message.len()).ok()?;
        let mut sum = Sum::pseudo_header(ipv6.source_octets(), ipv6.destination_octets(), length, NextHeader::ICMPV6);
        sum.add(message);
        let (fixed, options) = message.split_first_chunk::<FIXED>()?;
        let is_valid = ipv6.next_header() == NextHeader::ICMPV6
            && ipv6.hop_limit == 255
            && fixed[..2] == [SOLICITATION, 0]
            && sum.checksum() == 0;
        let source_mac = link_layer_address(options)?;
        let is_alone = ipv6.source().is_unspecified();
        let target = target(frame)?;
        let may_be_alone = source_mac.is_none() && ipv6.destination() == solicited_node(target);
        (is_valid && !ipv6.source().is_multicast() && (!is_alone || may_be_alone))
            .then(|| Solicitation { source: ipv6.source(), mac: source_mac.unwrap_or(sender) })
    }

    /// Whether this is duplicate address detection (RFC 4862).
    pub(super) fn is_alone(&self) -> bool {
        self.source.is_unspecified()
    }

    /// The answer, as a frame: the target is at `mac`. Duplicate address detection is answered to all nodes: the target
    /// is taken.
    pub(super) fn advertisement(&self, target: Ipv6Addr, mac: MacAddress) -> Vec<u8> {
        let (destination, to, flags) = match self.is_alone() {
            true => (ALL_NODES, MacAddress::of_multicast_group(ALL_NODES), OVERRIDE),
            false => (self.source, self.mac, SOLICITED | OVERRIDE),
        };
        let mut message = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
        message.extend(target.octets());
        message.extend([TARGET_LINK_LAYER_ADDRESS, 1]);
        message.extend(mac.0);
        let header = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: message.len() as u16,
            next_header: NextHeader::ICMPV6,
            hop_limit: 255,
            source: target,
            destination,
        };
        let length = message.len() as u32;
        let mut sum = Sum::pseudo_header(&target.octets(), &destination.octets(), length, NextHeader::ICMPV6);
        sum.add(&message);
        message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        let header = header.emit();
        [&to.0[..], &mac.0, &EtherType::IPV6.0.to_be_bytes(), header.as_bytes(), &message].concat()
    }
}

/// The target address of a solicitation, valid or not.
pub(super) fn target(frame: &[u8]) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = *frame.get(ETHERNET + IPV6 + 8..)?.first_chunk()?;
    Some(octets.into())
}

/// The solicited-node group of an address (RFC 4291 section 2.7.1).
pub(super) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, a, b, c])
}

/// The Source Link-Layer Address, if there is one; `None`: the options are not valid.
fn link_layer_address(mut options: &[u8]) -> Option<Option<MacAddress>> {
    let mut found = None;
    while let [kind, units, ..] = options {
        let (option, rest) =
            options.split_at_checked(usize::from(*units) * 8).filter(|(option, _)| !option.is_empty())?;
        if *kind == SOURCE_LINK_LAYER_ADDRESS {
            found = Some(MacAddress(*option[2..].first_chunk()?));
        }
        options = rest;
    }
    options.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "2001:db8:cc::1";
    const SENDER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    /// A solicitation, as a frame, its checksum filled in.
    fn solicitation(source: &str, destination: Ipv6Addr, options: &[u8]) -> Vec<u8> {
        let mut frame = [&[0x33, 0x33, 0xFF, 0, 0, 1][..], &SENDER.0, &[0x86, 0xDD, 0x60, 0, 0, 0, 0]].concat();
        frame.extend([(FIXED + options.len()) as u8, 58, 255]);
        frame.extend(address(source).octets());
        frame.extend(destination.octets());
        frame.extend([135, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend(address(TARGET).octets());
        frame.extend(options);
        checksum(&mut frame);
        frame
    }

    fn checksum(frame: &mut [u8]) {
        frame[56..58].fill(0);
        let [source, destination] = [22, 38].map(|at| *frame[at..].first_chunk::<16>().unwrap());
        let mut sum = Sum::pseudo_header(&source, &destination, (frame.len() - 54) as u32, NextHeader::ICMPV6);
        sum.add(&frame[54..]);
        let checksum = sum.checksum().to_be_bytes();
        frame[56..58].copy_from_slice(&checksum);
    }

    fn group() -> Ipv6Addr {
        solicited_node(address(TARGET))
    }

    #[test]
    fn groups_have_the_last_three_octets() {
        assert_eq!(solicited_node(address("4037::01:800:200e:8c6c")), address("ff02::1:ff0e:8c6c"));
    }

    #[test]
    fn a_solicitation_is_answered_to_its_sender() {
        let frame = solicitation("fe80::2", group(), &[1, 1, 2, 0, 0, 0, 0, 9]);
        let found = Solicitation::parse(&frame).unwrap();
        assert_eq!(found, Solicitation { source: address("fe80::2"), mac: MacAddress([2, 0, 0, 0, 0, 9]) });
        assert_eq!(target(&frame), Some(address(TARGET)));
        let answer = found.advertisement(address(TARGET), OURS);
        assert_eq!(answer[..14], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xDD]);
        assert_eq!((answer[21], &answer[38..54]), (255, &address("fe80::2").octets()[..]));
        assert_eq!((answer[54], answer[55], answer[58]), (136, 0, 0x60), "not a router, solicited, override");
        assert_eq!(answer[62..78], address(TARGET).octets());
        assert_eq!(answer[78..], [2, 1, 2, 0, 0, 0, 0, 1]);
        // A unicast one, whose sender is known already, needs no option.
        let probe = Solicitation::parse(&solicitation("fe80::2", address(TARGET), &[])).unwrap();
        assert_eq!(probe.mac, SENDER);
    }

    /// RFC 4861 section 7.2.4: duplicate address detection is answered to all nodes, and not as solicited.
    #[test]
    fn duplicate_address_detection_is_answered_to_all_nodes() {
        let answer =
            Solicitation::parse(&solicitation("::", group(), &[])).unwrap().advertisement(address(TARGET), OURS);
        assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
        assert_eq!((&answer[38..54], answer[58]), (&ALL_NODES.octets()[..], 0x20));
    }

    /// RFC 4861 section 7.1.1.
    #[test]
    fn invalid_solicitations_are_refused() {
        let good = solicitation("fe80::2", group(), &[1, 1, 2, 0, 0, 0, 0, 9]);
        let changed = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            checksum(&mut frame);
            Solicitation::parse(&frame)
        };
        assert!(changed(85, 8).is_some());
        assert_eq!(changed(21, 254), None, "it has come from beyond the link");
        assert_eq!(changed(54, 136), None);
        assert_eq!(changed(55, 1), None, "another code");
        assert_eq!(changed(79, 0), None, "an option without length");
        assert_eq!(changed(79, 2), None, "an option beyond the end");
        assert_eq!(changed(22, 0xFF), None, "a multicast source");
        let mut damaged = good.clone();
        damaged[85] ^= 1;
        assert_eq!(Solicitation::parse(&damaged), None, "the checksum");
        assert_eq!(Solicitation::parse(&solicitation("::", address(TARGET), &[])), None);
        assert_eq!(Solicitation::parse(&solicitation("::", group(), &[1, 1, 2, 0, 0, 0, 0, 9])), None);
        for len in 0..good.len() {
            assert_eq!(Solicitation::parse(&good[..len]), None);
        }
    }
}
