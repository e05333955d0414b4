//! The formats compared with octets of other implementations: FRR 10.3 and scapy (`testdata/golden/README.md`).

use srdma_capture::Reader;
use srdma_isis::pdu::{Complete, Partial};
use srdma_isis::tlv::{CapabilityFlags, Locator, LspEntry, Neighbour, Reachability, RouterCapability, kind};
use srdma_isis::{Level, Lsp, LspFlags, Pdu, PduKind, frame};
use std::path::Path;

fn frames(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(name);
    let frames: Vec<_> = Reader::open(&path).unwrap().map(|packet| packet.unwrap().octets).collect();
    assert!(!frames.is_empty());
    frames
}

fn lsps(name: &str) -> Vec<Lsp> {
    let frames = frames(name);
    let pdus = frames.iter().map(|octets| Pdu::parse(frame::unwrap(octets).unwrap()).unwrap());
    pdus.filter_map(|pdu| match pdu.kind {
        PduKind::Lsp(level) => Some(Lsp::parse(&pdu, level).unwrap()),
        _ => None,
    })
    .collect()
}

#[test]
fn every_pdu_of_frr_is_parsed_and_emitted_again() {
    let mut kinds = [0; 3];
    for octets in frames("frr103_isis_srv6_lsp.pcap") {
        let pdu = Pdu::parse(frame::unwrap(&octets).unwrap()).unwrap();
        let written = match pdu.kind {
            PduKind::Lsp(level) => {
                kinds[0] += 1;
                let lsp = Lsp::parse(&pdu, level).unwrap();
                let tlvs = &pdu.octets[27..];
                Lsp::new(level, lsp.entry, lsp.flags, tlvs).octets().to_vec()
            }
            PduKind::Complete(level) => {
                kinds[1] += 1;
                Complete::parse(&pdu).unwrap().emit(level, &[])
            }
            PduKind::Partial(level) => {
                kinds[2] += 1;
                Partial::parse(&pdu).unwrap().emit(level, &[])
            }
            PduKind::Hello => panic!("the capture has no hello"),
        };
        assert_eq!(written, pdu.octets);
    }
    assert_eq!(kinds, [5, 12, 8]);
}

/// Reads every TLV of a kind and writes it again.
fn assert_written_again(lsp: &Lsp) {
    for tlv in lsp.tlvs().map(Result::unwrap) {
        let mut out = Vec::new();
        match tlv.kind {
            kind::SRV6_LOCATOR => Locator::parse_all(tlv.value).unwrap()[0].emit(&mut out),
            kind::ROUTER_CAPABILITY => RouterCapability::parse(tlv.value).unwrap().emit(&mut out),
            kind::EXTENDED_IS_REACHABILITY => Neighbour::emit_all(&Neighbour::parse_all(tlv.value).unwrap(), &mut out),
            kind::IPV6_REACHABILITY => Reachability::emit_all(&Reachability::parse_all(tlv.value).unwrap(), &mut out),
            _ => continue,
        }
        assert_eq!(out[2..], *tlv.value, "TLV {} of {} {}", tlv.kind, lsp.entry.id, lsp.entry.sequence);
    }
}

#[test]
fn srv6_tlvs_of_scapy_are_parsed_and_emitted_again() {
    let lsps = lsps("scapy_08_isis.pcap");
    assert_eq!(lsps.len(), 4);
    for lsp in &lsps[..3] {
        assert_written_again(lsp);
    }
    let tlvs = || lsps[0].tlvs();
    let capability = RouterCapability::parse(tlvs().of_kind(kind::ROUTER_CAPABILITY).next().unwrap()).unwrap();
    let both = CapabilityFlags::OAM.with(CapabilityFlags::CONGESTION_NOTIFICATION);
    assert_eq!(capability.srv6, Some(both), "O and C (CN-5.1-1)");
    let locator = &Locator::parse_all(tlvs().of_kind(kind::SRV6_LOCATOR).next().unwrap()).unwrap()[0];
    let sids: Vec<_> = locator.sids.iter().map(|sid| (sid.behavior, sid.sid.to_string())).collect();
    let expected = [(48, "5f00:0:9::"), (32769, "5f00:0:9:c000::"), (32770, "5f00:0:9:d000::")];
    assert_eq!(sids, expected.map(|(behavior, sid)| (behavior, sid.to_owned())), "CN-5.1-2, D65");
    assert_eq!(lsps[1].entry.sequence, 2);
}

#[test]
fn the_drafts_figure_3_is_no_sid() {
    let lsps = lsps("scapy_08_isis.pcap");
    let locators = Locator::parse_all(lsps[3].tlvs().of_kind(kind::SRV6_LOCATOR).next().unwrap()).unwrap();
    assert_eq!(locators[0].sids, [], "read as its figure has it, the draft's sub-TLV is malformed (D65)");
}

#[test]
fn srv6_tlvs_of_frr_are_parsed_and_emitted_again() {
    let lsps = lsps("frr103_isis_srv6_lsp.pcap");
    lsps.iter().for_each(assert_written_again);
    let locators: Vec<Locator> = lsps
        .iter()
        .flat_map(|lsp| lsp.tlvs().of_kind(kind::SRV6_LOCATOR))
        .flat_map(|value| Locator::parse_all(value).unwrap())
        .collect();
    assert!(!locators.is_empty());
    assert!(locators.iter().flat_map(|locator| &locator.sids).all(|sid| sid.structure.is_some()));
    assert!(locators.iter().flat_map(|locator| &locator.sids).count() > 0);
}

#[test]
fn a_purge_needs_no_checksum_and_other_lsps_do() {
    let octets = frames("scapy_08_isis.pcap").remove(0);
    let mut pdu = frame::unwrap(&octets).unwrap().to_vec();
    pdu[40] ^= 1;
    let broken = Pdu::parse(&pdu).unwrap();
    assert!(Lsp::parse(&broken, Level::Two).is_err());
    pdu[10..12].fill(0);
    let purge = Pdu::parse(&pdu).unwrap();
    assert_eq!(Lsp::parse(&purge, Level::Two).unwrap().entry.lifetime_s, 0);
}

#[test]
fn entries_and_flags_come_back() {
    let entry =
        LspEntry { lifetime_s: 1199, id: "0000.0000.0009".parse().map(lsp_of).unwrap(), sequence: 7, checksum: 0 };
    let flags = LspFlags { is_attached: true, is_overloaded: true, is_level_2: true };
    let lsp = Lsp::new(Level::Two, entry, flags, &[]);
    let read = Lsp::parse(&Pdu::parse(lsp.octets()).unwrap(), Level::Two).unwrap();
    assert_eq!(read, lsp);
    assert_eq!(read.flags, flags);
}

fn lsp_of(system: srdma_isis::SystemId) -> srdma_isis::LspId {
    srdma_isis::LspId { node: srdma_isis::NodeId::of(system), fragment: 0 }
}
