//! The formats compared with octets of other implementations: FRR 10.3 and scapy (`testdata/golden/README.md`).

use srdma_capture::Reader;
use srdma_isis::pdu::{Complete, Partial};
use srdma_isis::tlv::{
    CapabilityFlags, Locator, LspEntry, Neighbour, Reachability, RouterCapability, Tlvs, Topologies, TopologyId, kind,
};
use srdma_isis::{Level, Lsp, LspFlags, Pdu, PduKind, frame};
use std::collections::BTreeSet;
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
            PduKind::Hello | PduKind::LanHello(_) => panic!("the capture has no hello"),
        };
        assert_eq!(written, pdu.octets);
    }
    assert_eq!(kinds, [5, 12, 8]);
}

fn topology_of(has_id: bool) -> TopologyId {
    if has_id { TopologyId::IPV6_UNICAST } else { TopologyId::STANDARD }
}

/// Reads every TLV of a known kind and writes it again. The kinds that there were.
fn assert_written_again(lsp: &Lsp) -> BTreeSet<u8> {
    let mut kinds = BTreeSet::new();
    for tlv in lsp.tlvs().map(Result::unwrap) {
        let octets = [&[tlv.kind, tlv.value.len() as u8], tlv.value].concat();
        let mut out = Vec::new();
        match tlv.kind {
            kind::SRV6_LOCATOR => Locator::parse_all(tlv.value).unwrap()[0].emit(&mut out),
            kind::ROUTER_CAPABILITY => RouterCapability::parse(tlv.value).unwrap().emit(&mut out),
            kind::EXTENDED_IS_REACHABILITY | kind::MT_IS_REACHABILITY => {
                let topology = topology_of(tlv.kind == kind::MT_IS_REACHABILITY);
                let neighbours: Vec<_> = Neighbour::of_topology(Tlvs::new(&octets), topology).collect();
                Neighbour::emit_all(&neighbours, topology, &mut out);
            }
            kind::IPV6_REACHABILITY | kind::MT_IPV6_REACHABILITY => {
                let topology = topology_of(tlv.kind == kind::MT_IPV6_REACHABILITY);
                let prefixes: Vec<_> = Reachability::of_topology(Tlvs::new(&octets), topology).collect();
                Reachability::emit_all(&prefixes, topology, &mut out);
            }
            kind::MULTI_TOPOLOGY => Topologies::parse(Tlvs::new(&octets)).unwrap().emit(&mut out),
            _ => continue,
        }
        kinds.insert(tlv.kind);
        assert_eq!(out, octets, "TLV {} of {} {}", tlv.kind, lsp.entry.id, lsp.entry.sequence);
    }
    kinds
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
    let kinds: BTreeSet<u8> = lsps.iter().flat_map(assert_written_again).collect();
    let [mt, mt_is, mt_ipv6] = [kind::MULTI_TOPOLOGY, kind::MT_IS_REACHABILITY, kind::MT_IPV6_REACHABILITY];
    assert!([mt, mt_is, mt_ipv6].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    let locators: Vec<Locator> = lsps
        .iter()
        .flat_map(|lsp| lsp.tlvs().of_kind(kind::SRV6_LOCATOR))
        .flat_map(|value| Locator::parse_all(value).unwrap())
        .collect();
    assert!(!locators.is_empty());
    assert!(locators.iter().flat_map(|locator| &locator.sids).all(|sid| sid.structure.is_some()));
    assert!(locators.iter().flat_map(|locator| &locator.sids).count() > 0);
    assert!(locators.iter().all(|locator| locator.topology == TopologyId::STANDARD), "though it has topology 2 (D247)");
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
