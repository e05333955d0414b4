//! Text files of users: no octets make reading them panic, and what is accepted works.

use srdma_capture::Reader;
use srdma_directory::FileList;
use srdma_dissect::{Format, Settings, write_packets};
use srdma_fabric::{NodeId, SidPlan, Topology as Fabric};
use srdma_fabric_sim::Scenario;
use srdma_host::{GroupFile, PeerInfo, Trailer};
use srdma_lab::Topology;
use srdma_node::{Configuration, DenyList, PathsFile};
use srdma_placement::Loads;
use std::path::Path;

/// `node.toml`: a configuration that is accepted makes a node; any other is refused with a line.
pub fn configuration(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Configuration::parse(Path::new("node.toml"), text) {
        Ok(configuration) => drop(configuration.node().expect("a node takes what the configuration lets pass")),
        Err(error) => assert!(error.to_string().starts_with("node.toml"), "{error}"),
    }
}

/// The file of a lab.
pub fn topology(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Err(error) = Topology::parse(Path::new("lab.toml"), text) {
        assert!(error.to_string().starts_with("lab.toml"), "{error}");
    }
}

/// The file of a fabric: it is refused with a line, or loads and SIDs of a small one can be counted.
pub fn fabric(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let topology = match Fabric::from_toml(text) {
        Ok(topology) => topology,
        Err(error) => return assert!(error.to_string().starts_with("line "), "{error}"),
    };
    if topology.links().len() > 64 {
        return;
    }
    // Nothing of it overflows.
    let loads = Loads::none(&topology);
    assert!(topology.switch_ids().all(|switch| loads.through(NodeId::Switch(switch)) == 0.0));
    assert!(topology.links().iter().all(|link| link.rate_bits_per_s > 0));
    if let Ok(sids) = SidPlan::new(&topology, SidPlan::BLOCK) {
        assert!(topology.switch_ids().all(|switch| !sids.node_sid(switch).is_unspecified()));
    }
}

/// The scenario of a simulation.
pub fn scenario(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Scenario::parse(Path::new("scenario.toml"), text) {
        Ok(scenario) => assert!(scenario.seeds() > 0 && !scenario.kind().name().is_empty()),
        Err(error) => assert!(error.to_string().starts_with("scenario.toml"), "{error}"),
    }
}

/// The list of the files of a broadcast directory: whatever it lists lies below the directory, and its chunks have all
/// octets of all files once.
pub fn file_list(input: &[u8]) {
    let list = match FileList::parse(input) {
        Ok(list) => list,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let below = Path::new("/d");
    for (file, entry) in list.files().iter().enumerate() {
        let place = list.place(below, file).expect("it is in the list");
        let parts = place.components().map(|part| part.as_os_str());
        assert!(place.starts_with(below) && parts.skip(1).all(|part| part != ".." && part != "/"), "{entry:?}");
    }
    let mut octets = 0;
    for chunk in 0..list.chunks().min(64) {
        let pieces = list.pieces(chunk);
        let of_pieces: u64 = pieces.iter().map(|piece| piece.octets as u64).sum();
        assert_eq!(of_pieces, list.octets_of(chunk));
        octets += of_pieces;
    }
    assert!(list.chunks() > 64 || octets == list.total_octets());
}

/// What describes a transfer: the file of a group, what hosts tell each other of their queue pairs, and the trailer of
/// a stream.
pub fn transfer(input: &[u8]) {
    if let Ok(trailer) = Trailer::parse(input) {
        // But for the reserved octets.
        assert_eq!((&trailer.emit()[..6], &trailer.emit()[8..]), (&input[..6], &input[8..]));
    }
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Err(error) = GroupFile::parse(Path::new("group.toml"), text) {
        assert!(error.to_string().starts_with("group.toml"), "{error}");
    }
    if let Ok(info) = PeerInfo::parse(text) {
        let line = info.line().expect("it can be written");
        assert_eq!(PeerInfo::parse(&line).ok(), Some(info));
    }
}

/// A file of paths, and the deny list of a NIC.
pub fn paths(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Err(error) = PathsFile::parse(Path::new("paths.toml"), text) {
        assert!(error.to_string().starts_with("paths.toml"), "{error}");
    }
    if let Err(error) = DenyList::parse(text, "nic") {
        assert!(!error.is_empty());
    }
}

/// Octets of one line of JSON for each octet of the file, at most: an End.MT TLV in hexadecimal, field by field.
const MOST_JSON: usize = 4096;

/// `srdma decode`: every capture is shown, as text and as JSON, in bounded space.
pub fn decode(input: &[u8]) {
    let keys: [(u32, &[u8]); 2] = [(7, b"secret"), (42, b"secret")];
    let settings = Settings { hmac_keys: keys.into_iter().collect(), ..Settings::default() };
    let write = |format| {
        let mut output = Vec::new();
        let reader = Reader::new(input).ok()?;
        write_packets(&mut output, reader, &settings, format).expect("memory takes all");
        Some(output)
    };
    let Some(text) = write(Format::Text) else { return };
    let json = write(Format::Json).expect("it is a capture");
    assert!(text.len().max(json.len()) <= MOST_JSON * (input.len() + 1));
    let lines = |output: &[u8]| output.iter().filter(|octet| **octet == b'\n').count();
    assert_eq!(lines(&text), lines(&json), "a line for each packet");
}
