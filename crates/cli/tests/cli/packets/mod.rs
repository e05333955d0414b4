//! Contents of a lab's captures, by `srdma decode`.

use crate::own_lab::Lab;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The packets of a capture, one object each.
pub(crate) fn decoded(path: &Path) -> Vec<Value> {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    srdma.args(["decode", "--json", "--hmac-key", "42=7365637265746b6579"]).arg(path);
    let output = srdma.output().expect("the program runs");
    assert!(output.status.success(), "{path:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The outermost destinations of a link's RoCEv2 packets in one direction, and the Segments Left of their SRHs.
pub(crate) fn destinations(lab: &Lab, link: &str, direction: &str) -> BTreeSet<(String, Option<u64>)> {
    let packets = decoded(&lab.capture(link));
    let packets = packets.iter().filter(|packet| packet["interface"] == direction && packet["icrc"] == "ok");
    let destination = |packet: &Value| packet["ipv6"][0]["destination"].as_str().expect("an address").to_owned();
    packets.map(|packet| (destination(packet), packet["srh"][0]["segments_left"].as_u64())).collect()
}
