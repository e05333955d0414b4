//! The labs in which srdma nodes and Linux routers share a path: `usid`, `usid-kernel-ends`, `sr-policy` and `srh-hmac`.

use crate::own_lab::Lab;
use crate::packets::{decoded, destinations};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A megabyte of path MTU 4096, and the packet with its checksum.
const PACKETS: u64 = 257;

impl Lab {
    /// Transfers, with a capture of each link, and gives the result, good or bad.
    fn run(&self, arguments: &[&str]) -> Value {
        let captures = self.captures();
        let options = ["--json", "--size", "1MiB", "--pcap", captures.to_str().expect("UTF-8")];
        let output = self.command("run", &[&options, arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
        assert_eq!(output.status.success(), result["receivers"][0]["is_identical"] == true, "{stderr}{result}");
        result
    }

    /// Transfers, and checks that the data arrive and that what passed the links is whole, for us and for others.
    fn run_well(&self, arguments: &[&str]) -> Value {
        let result = self.run(arguments);
        assert_eq!(result["receivers"][0]["is_identical"], true, "{result}");
        assert_eq!(result["receivers"][0]["octets"], 1 << 20, "{result}");
        assert_eq!(
            result["receivers"][0]["sha256"],
            result["source"]["sha256"].as_str().expect("a digest"),
            "{result}"
        );
        for node in result["nodes"].as_array().expect("nodes") {
            assert_eq!(node["drops"], serde_json::json!({}), "{node}");
        }
        for link in result["links"].as_array().expect("links") {
            let name = link["name"].as_str().expect("a name");
            check_capture(&self.capture(name));
        }
        result
    }
}

fn check_capture(path: &Path) {
    let packets = decoded(path);
    let is_ok = |packet: &&Value| packet["icrc"] == "ok";
    assert!(packets.iter().filter(is_ok).count() as u64 > PACKETS, "{path:?} has too few RoCEv2 packets");
    for packet in packets {
        let is_bad = |of: &str| packet[of].as_str().expect("a verdict") == "bad";
        assert!(!is_bad("icrc") && !is_bad("hmac") && packet["error"].is_null(), "{path:?}: {packet}");
    }
    let tshark = Command::new("tshark").arg("-r").arg(path).args(["-Y", "_ws.malformed"]).output();
    let tshark = tshark.expect("tshark runs");
    assert!(tshark.status.success(), "{path:?}: {}", String::from_utf8_lossy(&tshark.stderr));
    assert_eq!(String::from_utf8_lossy(&tshark.stdout), "", "{path:?}");
}

/// The packets that a behaviour of a node took.
fn packets(result: &Value, node: &str, behavior: &str) -> u64 {
    let nodes = result["nodes"].as_array().expect("nodes");
    let node = nodes.iter().find(|other| other["name"] == node).expect("the node");
    let sids = node["sids"].as_array().expect("SIDs");
    sids.iter().filter(|sid| sid["behavior"] == behavior).map(|sid| sid["packets"].as_u64().expect("a number")).sum()
}

/// Linux routers take a program of uSIDs from the destination address; at its end the node decapsulates, by USD and by
/// End.DT6 (RFC 9800 section 4.1, RFC 8986 section 4.16.3).
#[test]
#[ignore = "needs root"]
fn linux_routers_follow_our_programs() {
    for operation in ["write", "send"] {
        let lab = Lab::new("usid", &[]);
        let result = lab.run_well(&["--op", operation]);
        assert!(packets(&result, "P2", "uN") >= PACKETS, "{result}");
        assert!(packets(&result, "P1", "End.DT6") > 0, "{result}");
        for (link, direction, program) in [
            ("P1-L1", "P1->L1", "5f00:0:200:300:400:500::"),
            ("L1-SP", "L1->SP", "5f00:0:300:400:500::"),
            ("SP-L2", "SP->L2", "5f00:0:400:500::"),
            ("L2-P2", "L2->P2", "5f00:0:500::"),
            ("L2-P2", "P2->L2", "5f00:0:400:300:200:100:d600:0"),
            ("P1-L1", "L1->P1", "5f00:0:100:d600::"),
        ] {
            assert_eq!(destinations(&lab, link, direction), BTreeSet::from([(program.to_owned(), None)]), "{link}");
        }
    }
}

/// H.Encaps.Red and H.Encaps of the kernel, uN and uA of ours, End.DT6 of the kernel.
#[test]
#[ignore = "needs root"]
fn our_nodes_follow_the_programs_of_linux_routers() {
    for operation in ["write", "send"] {
        let lab = Lab::new("usid-kernel-ends", &[]);
        let result = lab.run_well(&["--op", operation]);
        for node in ["L1", "SP", "L2"] {
            assert!(packets(&result, node, "uN") >= PACKETS, "{result}");
        }
        let acks = packets(&result, "SP", "uA");
        assert!(acks > 0, "{result}");
        assert!(packets(&result, "L1", "uN") >= PACKETS + acks, "{result}");
        for (link, direction, program, segments_left) in [
            ("L1-SP", "L1->SP", "5f00:0:300:400:500::", None),
            ("L2-P2", "L2->P2", "5f00:0:500::", None),
            ("SP-L2", "L2->SP", "5f00:0:e002:200:100::", Some(0)),
            ("L1-SP", "SP->L1", "5f00:0:200:100::", Some(0)),
            ("P1-L1", "L1->P1", "5f00:0:100::", Some(0)),
        ] {
            let expected = BTreeSet::from([(program.to_owned(), segments_left)]);
            assert_eq!(destinations(&lab, link, direction), expected, "{link}");
        }
    }
}

/// Segment lists by way of a Linux router and of a node, End.DX6 of Linux and of ours, and a binding SID between them (D233,
/// D234): a flow has one list, and the other one when the first segment of its own cannot be reached.
#[test]
#[ignore = "needs root"]
fn policies_lead_through_linux_routers_and_ours() {
    let unreachable = "2001:db8:dead::e\", \"2001:db8:ff:4::d8";
    for (invalid, used, first) in [
        ("2001:db8:ff:3::e\", \"2001:db8:ff:4::d8", "K", "2001:db8:ff:2::e"),
        ("2001:db8:ff:2::e\", \"2001:db8:ff:4::d8", "MID", "2001:db8:ff:3::e"),
    ] {
        let lab = Lab::new("sr-policy", &[(invalid, unreachable)]);
        let result = lab.run(&[]);
        assert_eq!(result["receivers"][0]["is_identical"], true, "{result}");
        for node in result["nodes"].as_array().expect("nodes") {
            assert_eq!(node["drops"], serde_json::json!({}), "{node}");
        }
        let acks = packets(&result, "P1", "End.DX6");
        assert!(acks > 0, "{result}");
        assert_eq!(packets(&result, "P1", "End.DT6"), acks, "{result}");
        assert_eq!(packets(&result, "MID", "End.B6.Encaps.Red"), acks, "{result}");
        for by in ["K", "MID"] {
            let data = |segment: &str, left| {
                let destinations = [(segment.to_owned(), Some(left))];
                if by == used { BTreeSet::from(destinations) } else { BTreeSet::new() }
            };
            assert_eq!(destinations(&lab, &format!("P1-{by}"), &format!("P1->{by}")), data(first, 1));
            assert_eq!(destinations(&lab, &format!("{by}-P2"), &format!("{by}->P2")), data("2001:db8:ff:4::d8", 0));
        }
        let binding = BTreeSet::from([("2001:db8:ff:3::b6".to_owned(), Some(1))]);
        assert_eq!(destinations(&lab, "MID-P2", "P2->MID"), binding);
        let policy = ("2001:db8:ff:1::d6".to_owned(), Some(0));
        assert_eq!(destinations(&lab, "P1-MID", "MID->P1"), BTreeSet::from([policy]));
    }
}

/// End, End.X and End.DT6 of both, and each verifies what the other signs, also where the SRH is reduced.
#[test]
#[ignore = "needs root"]
fn each_side_verifies_signatures_of_the_other() {
    let reduced = [("mode encap\n", "mode encap.red\n"), ("\"H.Encaps\"", "\"H.Encaps.Red\"")];
    for replacements in [&[][..], &reduced] {
        let lab = Lab::new("srh-hmac", replacements);
        let result = lab.run_well(&[]);
        assert!(packets(&result, "N1", "End") >= PACKETS, "{result}");
        assert!(packets(&result, "N1", "End.X") > 0, "{result}");
        assert!(packets(&result, "P2", "End.DT6") >= PACKETS, "{result}");
        for (link, direction, segment, segments_left) in [
            ("P1-N1", "P1->N1", "2001:db8:ff:2::e", 2),
            ("N1-K2", "N1->K2", "2001:db8:ff:3::a", 1),
            ("K2-P2", "K2->P2", "2001:db8:ff:4::d6", 0),
            ("K2-P2", "P2->K2", "2001:db8:ff:3::e", 2),
            ("N1-K2", "K2->N1", "2001:db8:ff:2::a", 1),
            ("P1-N1", "N1->P1", "2001:db8:ff:1::d6", 0),
        ] {
            let expected = BTreeSet::from([(segment.to_owned(), Some(segments_left))]);
            assert_eq!(destinations(&lab, link, direction), expected, "{link}");
        }
    }
}

const SOON: (&str, &str) = ("[run]", "[run]\ntimeout_s = 2");

/// Packets that a Linux router signs with another key are refused, and counted.
#[test]
#[ignore = "needs root"]
fn our_node_refuses_signatures_with_another_key() {
    let result = Lab::new("srh-hmac", &[SOON, ("7365637265746b6579", "7365637265746b6578")]).run(&[]);
    assert_eq!(result["receivers"][0]["is_identical"], false, "{result}");
    assert!(result["nodes"][0]["drops"]["hmac_mismatch"].as_u64() > Some(0), "{result}");
    assert_eq!(packets(&result, "P2", "End.DT6"), 0, "{result}");
}

/// A Linux router refuses what we do not sign: data arrive, but no ACK gets further than to the router.
#[test]
#[ignore = "needs root"]
fn linux_routers_refuse_unsigned_packets() {
    let result = Lab::new("srh-hmac", &[SOON, ("hmac_key_id = 42", "")]).run(&[]);
    assert!(packets(&result, "P2", "End.DT6") > 0, "{result}");
    assert_eq!(packets(&result, "N1", "End.X"), 0, "{result}");
    assert!(result["source"]["error"].is_string(), "{result}");
}
