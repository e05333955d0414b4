//! SRHs and their TLVs in the captures.

use crate::golden::captures::{frames, innermost, ipv6};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::srh::Srh;
use srdma_wire::tlv::{Tlv, TlvTypes, Tlvs, receiver_lists};
use srdma_wire::{Ipv6View, View};
use std::fmt::Write;

const TYPES: TlvTypes = TlvTypes { end_mt: 124, mr: 125 };

fn with_srh(name: &str, frame: usize, check: impl FnOnce(&Ipv6View, Srh<'_>)) {
    let frames = frames(name);
    let (ipv6, rest) = Ipv6View::split(ipv6(&frames[frame - 1]).unwrap()).unwrap();
    assert_eq!(ipv6.next_header(), NextHeader::ROUTING, "{name} frame {frame}");
    let (srh, _) = Srh::split(rest).unwrap();
    check(ipv6, srh);
}

/// One line for an SRH: Segment List, Segments Left, then each TLV.
fn describe(srh: &Srh<'_>) -> String {
    let mut line = String::new();
    for index in 0..=srh.header.last_entry() {
        write!(line, "{} ", srh.segment(index).unwrap()).unwrap();
    }
    write!(line, "left {}", srh.header.segments_left).unwrap();
    for tlv in Tlvs::new(srh.tlvs, TYPES) {
        match tlv.unwrap() {
            Tlv::Pad1 => line.push_str(" | Pad1"),
            Tlv::PadN(len) => write!(line, " | PadN {len}").unwrap(),
            Tlv::Hmac(view, hmac) => {
                let d = if view.destination_not_covered() { "D " } else { "" };
                write!(line, " | HMAC {d}key {} {:02x}{:02x}… {}", view.key_id(), hmac[0], hmac[1], hmac.len())
                    .unwrap();
            }
            Tlv::EndMt(list, receivers) => {
                write!(line, " | End.MT {}", list.edge()).unwrap();
                for receiver in receivers {
                    write!(line, " {}={}", receiver.address(), receiver.qpn()).unwrap();
                }
            }
            Tlv::Mr(list, regions) => write!(line, " | MR {} {}", list.edge(), regions.len()).unwrap(),
            Tlv::Other(kind, value) => write!(line, " | type {kind} {}", value.len()).unwrap(),
        }
    }
    line
}

/// End.MT and HMAC TLVs as scapy laid them out: one edge, two, with HMAC of either cover, padded, the largest, the
/// full form of the Segment List, multicast mode (MT-7.2-1, MT-7.2-3, D3, D4, D7, D9).
#[test]
fn end_mt() {
    let one = "| End.MT 2001:db8:a::1 2001:db8:2::1=0x111 2001:db8:2::2=0x222";
    let two = format!("{one} | End.MT 2001:db8:a::3 2001:db8:4::4=0x444 2001:db8:4::5=0x555");
    let eleven: String = (0..11).map(|n| format!(" 2001:db8:2::{n:x}={:#x}", 0x100 + n)).collect();
    let eleven = eleven.replace("2001:db8:2::0=", "2001:db8:2::=");
    let expected = [
        format!("2001:db8:ff::100 left 1 {one}"),
        format!("2001:db8:ff::100 left 1 {two}"),
        format!("2001:db8:ff::100 left 1 {two} | HMAC D key 42 13d1… 32"),
        format!("2001:db8:ff::100 left 1 {two} | HMAC D key 42 81fe… 32"),
        "2001:db8:ff::100 left 1 | End.MT 2001:db8:a::1 2001:db8:2::1=0x111 | PadN 4".to_owned(),
        format!("2001:db8:ff::100 left 1 | End.MT 2001:db8:a::1{eleven} | PadN 4"),
        format!("2001:db8:ff::100 5f00:0:1:e000:: left 1 {one}"),
        format!("2001:db8:ff::100 left 1 {two}"),
    ];
    for (index, expected) in expected.iter().enumerate() {
        with_srh("scapy_02_endmt_in.pcap", index + 1, |_, srh| assert_eq!(describe(&srh), *expected));
    }
}

/// The octets that `cover = "tlvs"` adds to the HMAC text (D9): both TLVs, whole, not the HMAC TLV behind them.
#[test]
fn receiver_lists_of_a_signed_packet() {
    with_srh("scapy_02_endmt_in.pcap", 4, |_, srh| {
        let lists: Vec<_> = receiver_lists(srh.tlvs, TYPES).map(|list| list.unwrap()).collect();
        assert_eq!(lists.concat(), srh.tlvs[..128]);
        assert_eq!(lists.len(), 2);
    });
}

/// HMAC TLVs of the Linux kernel, whose reduced form keeps D clear.
#[test]
fn kernel_hmacs() {
    for (name, segments) in [("kernel_t9_hmac", 3), ("kernel_t10_hmac_red", 2)] {
        with_srh(&format!("{name}_1h1-r1.pcap"), 1, |_, srh| {
            let line = describe(&srh);
            assert_eq!((srh.segments.len(), srh.header.flags), (segments, 0x08), "{line}");
            assert!(line.contains("| HMAC key 42 ") && line.ends_with(" 32"), "{line}");
        });
    }
}

/// Segments Left falls from link to link and the destination is the active segment: full form, reduced form, and an
/// SRH that two kernels inserted and left empty.
#[test]
fn kernel_routers_walk_the_list() {
    let walks = [
        ("kernel_t4_encap3", &[2, 1, 0][..], 3),
        ("kernel_t3_red3", &[2, 1, 0], 2),
        ("kernel_t8_inline", &[2, 1, 0, 0], 3),
        ("kernel_t2_usid_encap", &[0, 0, 0], 1),
    ];
    for (name, left, segments) in walks {
        for (link, left) in ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"].iter().zip(left) {
            with_srh(&format!("{name}_{link}.pcap"), 1, |ipv6, srh| {
                assert_eq!((srh.header.segments_left, srh.segments.len()), (*left, segments), "{name} {link}");
                if let Some(active) = srh.segment(*left)
                    && name != "kernel_t2_usid_encap"
                {
                    assert_eq!(ipv6.destination(), active, "{name} {link}");
                }
            });
        }
    }
}

/// Neither encapsulation nor any hop changes the inner packet, except its hop limit.
#[test]
fn the_inner_packet_arrives_as_it_was_sent() {
    for name in ["kernel_t1_usid_red", "kernel_t5_psp", "kernel_t6_b6", "kernel_t7_usid2"] {
        let inner: Vec<Vec<u8>> = ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"]
            .iter()
            .map(|link| {
                let frame = &frames(&format!("{name}_{link}.pcap"))[0];
                let mut packet = innermost(ipv6(frame).unwrap()).to_vec();
                packet[7] = 0;
                packet
            })
            .collect();
        assert!(inner.windows(2).all(|pair| pair[0] == pair[1]), "{name}");
    }
}
