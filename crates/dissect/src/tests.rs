//! Damaged files and packets, within the process: too many for a process each. The tests of `srdma decode` test the
//! output from outside.

use super::layer::Layer;
use super::record::{IcrcVerdict, Within};
use super::{Format, Keys, Record, Settings, dissector, text, write_packets};
use srdma_capture::{Interface, LinkType, Packet, Reader};
use srdma_testkit::seeds;
use std::path::Path;
use std::sync::Arc;

/// The captures of a directory under `testdata`, with their names.
fn captures(directory: &str) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(directory);
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let captures = entries
        .filter(|path| path.extension().is_some_and(|extension| extension.to_string_lossy().starts_with("pcap")));
    let mut captures: Vec<_> =
        captures.map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file"))).collect();
    captures.sort();
    assert!(!captures.is_empty());
    captures
}

fn all_captures() -> Vec<(String, Vec<u8>)> {
    ["golden", "golden/rxe", "capture", "decode", "cm"].into_iter().flat_map(captures).collect()
}

fn settings() -> Settings {
    let hmac_keys = Keys::from_iter([(42, b"secret-key-for-tests-0123456789ab".as_slice())]);
    Settings { hmac_keys, link_rate_bits_per_s: Some(1), ..Settings::default() }
}

/// The lines that `octets` make as a file, if it is a capture at all.
fn lines(octets: &[u8], format: Format) -> Option<Vec<String>> {
    let mut output = Vec::new();
    write_packets(&mut output, Reader::new(octets).ok()?, &settings(), format).expect("memory takes all");
    Some(String::from_utf8(output).expect("UTF-8").lines().map(str::to_owned).collect())
}

fn assert_objects(octets: &[u8], place: &str) {
    let Some(lines) = lines(octets, Format::Json) else { return };
    for line in lines {
        let object: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert!(object["layers"].is_array(), "{place}: {line}");
    }
}

/// Distance between the damaged octets of a capture: `least`, or more with fewer seeds than a capture has octets.
fn step(octets: &[u8], least: usize) -> usize {
    (octets.len() / seeds::count(50_000) as usize).max(least)
}

#[test]
fn every_capture_cut_at_every_7th_octet_is_dissected() {
    for (name, octets) in all_captures() {
        for len in (0..octets.len()).step_by(step(&octets, 7)) {
            assert_objects(&octets[..len], &format!("{name} cut at {len}"));
        }
    }
}

#[test]
fn every_capture_with_flipped_octets_is_dissected() {
    for (name, octets) in all_captures() {
        let least = if octets.len() < 8_000 { 3 } else { 3 * 31 };
        for position in (0..octets.len()).step_by(step(&octets, least)) {
            for flip in [0x01, 0x80, 0xFF] {
                let mut damaged = octets.clone();
                damaged[position] ^= flip;
                assert_objects(&damaged, &format!("{name}, octet {position} flipped by {flip:#x}"));
                assert!(lines(&damaged, Format::Text).is_none_or(|lines| lines.iter().all(|line| !line.is_empty())));
            }
        }
    }
}

/// Every packet cut at every octet of its headers: the damage lies within the packet, and nothing is found that the
/// whole packet has not.
#[test]
fn a_cut_packet_has_the_first_layers_of_the_whole() {
    for (name, octets) in all_captures() {
        for packet in Reader::new(octets.as_slice()).expect("a capture") {
            let packet = packet.expect("undamaged");
            let whole = dissector::dissect(&packet, &settings());
            let names = |layers: &[Layer]| Vec::from_iter(layers.iter().map(Layer::name));
            for len in 0..packet.octets.len().min(400) {
                let mut cut = packet.clone();
                cut.octets.truncate(len);
                let part = dissector::dissect(&cut, &settings());
                let place = format!("{name} frame {} cut at {len}", packet.frame);
                let named = names(&part.layers);
                // A layer that is not fully dissected may be cut before its beginning.
                let headers = named.iter().filter(|name| **name != "payload").count();
                assert_eq!(named[..headers], names(&whole.layers)[..headers], "{place}");
                assert!(part.error.iter().all(|error| error.within == Within::Packet), "{place}");
                assert!(part.error.iter().all(|error| error.offset <= len as u64), "{place}");
                assert!(part.icrc == IcrcVerdict::Absent || part.icrc == whole.icrc, "{place}");
            }
        }
    }
}

/// A chain of headers that never ends is followed so far and no further.
#[test]
fn endless_headers_end() {
    let mut octets = vec![0; 14];
    octets[12..].copy_from_slice(&[0x86, 0xDD]);
    octets.extend([0x60, 0, 0, 0, 0x40, 0, 60, 64]);
    octets.extend([0; 32]);
    octets.extend([60, 0, 1, 4, 0, 0, 0, 0].repeat(2048));
    let interface = Arc::new(Interface { index: 0, name: None, link_type: LinkType::ETHERNET });
    let original_len = octets.len() as u32;
    let packet = Packet { frame: 1, offset: 0, time_ns: 0, interface, octets, original_len };
    let dissection = dissector::dissect(&packet, &settings());
    assert_eq!(dissection.layers.len(), 256);
    let error = dissection.error.expect("too many layers");
    assert_eq!((error.offset, error.reason.as_str()), (14 + 40 + 254 * 8, "expected at most 256 layers"));
}

/// The name of an interface comes from the file: control characters are escaped, and a packet takes one line.
#[test]
fn control_characters_in_names_are_escaped() {
    let name = Some("N6\n\u{1b}[2J–N4".to_owned());
    let interface = Arc::new(Interface { index: 0, name: name.clone(), link_type: LinkType::ETHERNET });
    let packet = Packet { frame: 1, offset: 0, time_ns: 0, interface, octets: vec![0; 14], original_len: 14 };
    let dissection = dissector::dissect(&packet, &settings());
    let record = Record {
        frame: 1,
        time_ns: Some(0),
        interface: name,
        length_octets: Some(14),
        captured_octets: Some(14),
        dissection,
    };
    let line = text::line(&record, 0);
    assert!(line.starts_with("    1  0.000000000  N6\\n\\u{1b}[2J–N4  "), "{line}");
}
