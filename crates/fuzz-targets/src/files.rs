//! Text files of users: no octets make reading them panic, and what is accepted works.

use srdma_capture::Reader;
use srdma_dissect::{Format, Settings, write_packets};
use srdma_lab::Topology;
use srdma_node::Configuration;
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
