//! Nodes and FRR's ospf6d: routes come from OSPFv3 alone. The lab `ospf-frr` has FRR between two nodes.

use crate::lab_isis::{F_TO_N1, F_TO_N2, FRR, LOCATORS, N1_TO_F, N2_TO_F, kill, tshark};
use crate::own_lab::{Lab, wait_until};
use serde_json::{Value, json};
use srdma_capture::Reader;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The loopback of F, and its prefix.
const OF_F: &str = "2001:db8:ff:3::1";

/// Waits until both nodes and F are full, and all three have routes to the locators of others.
fn converges(lab: &Lab) {
    let has = |node: &str, protocol, prefixes: &[&str]| {
        let routes = lab.routes(node, protocol);
        prefixes.iter().all(|prefix| routes.contains(*prefix))
    };
    let is_full = |node: &str| lab.show_of("ospf", node, "neighbors")["circuits"][0]["state"] == "full";
    let is_through = || {
        ["N1", "N2"].iter().all(|node| is_full(node))
            && full_at_f(lab) == 2
            && has("F", "ospf", &LOCATORS)
            && has("N1", "201", &[LOCATORS[1], OF_F])
            && has("N2", "201", &[LOCATORS[0], OF_F])
    };
    let what = || format!("{}{}", lab.show_of("ospf", "N1", "neighbors"), lab.inside("F", "ip -6 route"));
    wait_until(is_through, what);
}

/// The number of neighbours that F calls full.
fn full_at_f(lab: &Lab) -> usize {
    let mut vtysh = Command::new("ip");
    vtysh.args(["netns", "exec", &lab.namespace("F"), "vtysh", "--vty_socket"]).arg(lab.state().join(FRR));
    let output = vtysh.args(["-c", "show ipv6 ospf6 neighbor"]).output().expect("vtysh runs");
    String::from_utf8_lossy(&output.stdout).matches("Full").count()
}

/// Whether N2 handles notifications, and which of its SIDs N1 uses for them.
fn used_sids(lab: &Lab) -> (bool, Vec<String>) {
    let nodes = lab.show_of("ospf", "N1", "sids")["nodes"].clone();
    let of_n2 = nodes.as_array().expect("nodes").iter().find(|node| node["hostname"] == "N2").expect("N2").clone();
    let used = of_n2["sids"].as_array().expect("SIDs").iter().filter(|sid| sid["is_used"] == true);
    let sids = used.map(|sid| sid["sid"].as_str().expect("a SID").to_owned()).collect();
    (of_n2["handles_notifications"] == true, sids)
}

/// The LSAs of one router that a MAC address sends in a capture, from behind their age on: by RFC 5340 sections A.3.5 and
/// A.4.2, read here without our own parser.
fn lsas(capture: &Path, source: [u8; 6], router: u8) -> BTreeSet<Vec<u8>> {
    let frames = Reader::open(capture).expect("a capture").map(|packet| packet.expect("a packet").octets);
    let is_update = |frame: &Vec<u8>| frame[6..12] == source && frame[20] == 89 && frame[55] == 4;
    let mut found = BTreeSet::new();
    for frame in frames.filter(|frame| frame.len() > 74 && is_update(frame)) {
        let end = 54 + usize::from(u16::from_be_bytes([frame[56], frame[57]]));
        let mut at = 54 + 16 + 4;
        while at < end {
            let length = usize::from(u16::from_be_bytes([frame[at + 18], frame[at + 19]]));
            let lsa = &frame[at..at + length];
            // Link-LSAs stay on their link.
            let is_of_area = lsa[2] & 0x60 == 0x20;
            if is_of_area && lsa[8..12] == [10, 0, 0, router] {
                found.insert(lsa[2..].to_vec());
            }
            at += length;
        }
    }
    found
}

/// What N1 and N2 have said is what F sends to the other one.
fn flooded_as_they_are(lab: &Lab) {
    for (from, at, to, by, last) in [("N1-F", N1_TO_F, "F-N2", F_TO_N2, 1), ("F-N2", N2_TO_F, "N1-F", F_TO_N1, 2)] {
        let said = lsas(&lab.capture(from), at, last);
        let flooded = lsas(&lab.capture(to), by, last);
        let kinds: BTreeSet<u16> = flooded.iter().map(|lsa| u16::from_be_bytes([lsa[0], lsa[1]])).collect();
        assert!([0x2001, 0x2009, 0xA00C, 0xA021, 0xA02A].iter().all(|kind| kinds.contains(kind)), "{kinds:x?}");
        assert!(flooded.is_subset(&said), "F floods what N{last} has not said");
        let has = |octets: &[u8]| flooded.iter().any(|lsa| lsa.windows(octets.len()).any(|window| window == octets));
        assert!(has(&[0, 20, 0, 4, 0x20, 0, 0, 0]), "SRv6 Capabilities with C");
        let u_n = [0, 0, 0, 48, 0x5F, 0, 0, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 4, 32, 16, 0, 80];
        assert!(has(&u_n), "uN with the structure of F3216");
        // End.X of the link to F, router 3, whose metric is 10.
        let end_x = [0, 31, 0, 32, 0, 5, 0, 0, 0, 0, 0, 0, 0x5F, 0, 0, 0, 0, last, 0xE0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(has(&end_x) && has(&[1, 0, 0, 10]) && has(&[10, 0, 0, 3, 0, 31]), "End.X");
    }
}

/// Data go through tunnels between the nodes, by locators that F has learnt from prefixes. F floods the LSAs that it does
/// not understand as they are (RFC 9513, CN-5.2-1), and tshark finds no malformed packet.
#[test]
#[ignore = "needs root"]
fn data_go_by_locators_of_ospf() {
    let lab = Lab::new("ospf-frr", &[]);
    let captures = lab.captures();
    let output = lab.command("run", &["--json", "--keep", "--pcap", captures.to_str().expect("UTF-8")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert_eq!(result["receivers"][0]["is_identical"], true, "{stderr}{result}");
    for link in ["N1-F", "F-N2"] {
        let capture = lab.capture(link);
        assert!(tshark(&capture, "ipv6.dst == 5f00:0:2:d6:: || ipv6.dst == 5f00:0:1:d6::") > 100, "{link}");
        assert!(tshark(&capture, "ospf.msg.hello") > 1 && tshark(&capture, "ospf.msg.lsupdate") > 1, "{link}");
        assert_eq!(tshark(&capture, "ospf && _ws.malformed"), 0, "{link}");
        assert_eq!(tshark(&capture, "ospf && _ws.expert.severity == error"), 0, "{link}");
    }
    flooded_as_they_are(&lab);
    converges(&lab);
    let expected = vec!["5f00:0:2:c000::".to_owned(), "5f00:0:2:d000::".to_owned()];
    wait_until(|| used_sids(&lab) == (true, expected.clone()), || format!("{:?}", used_sids(&lab)));
    let drops = lab.status("N1")["ospf"]["drops"].clone();
    assert!(drops.get("malformed").is_none() && drops.get("checksum").is_none(), "{drops}");

    // The flag disappears and the SIDs stay (D65).
    lab.configure("N2", "congestion_notification = true", "congestion_notification = false");
    wait_until(|| used_sids(&lab) == (false, Vec::new()), || format!("{:?}", used_sids(&lab)));
}

/// Routes learnt from F disappear with it, and all of them come back.
#[test]
#[ignore = "needs root"]
fn ospf6d_may_be_killed() {
    let lab = Lab::new("ospf-frr", &[]);
    let output = lab.command("up", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    converges(&lab);
    let capture = lab.starts_capture();
    lab.kill_frr(FRR, "ospf6d");
    lab.kill_frr(FRR, "zebra");
    let nothing = BTreeSet::new();
    wait_until(
        || lab.routes("N1", "201") == nothing && lab.routes("N2", "201") == nothing,
        || lab.inside("N1", "ip -6 route"),
    );
    let is_down = || lab.show_of("ospf", "N1", "neighbors")["circuits"][0]["state"] == "down";
    let has_none = || lab.show_of("ospf", "N1", "routes")["routes"] == json!([]);
    wait_until(|| is_down() && has_none(), || "N1 has a neighbour".to_owned());
    lab.start_frr("zebra");
    lab.start_frr("ospf6d");
    converges(&lab);
    capture.ends();
    let log = std::fs::read_to_string(lab.state().join("log/N1.log")).expect("a log");
    let count = |text: &str| log.matches(&format!("ospf: neighbour {text} port=f neighbour=10.0.0.3")).count();
    // FRR 8.4 may begin the exchange anew, after it has requested LSAs of its own from before.
    assert!(count("full") >= 2 && count("down") + 1 == count("full"), "{log}");

    for link in ["N1-F", "F-N2"] {
        assert_eq!(tshark(&lab.capture(link), "ospf && _ws.malformed"), 0, "{link}");
    }
}

/// A node that is killed is forgotten after RouterDeadInterval, by F and by the node behind it.
#[test]
#[ignore = "needs root"]
fn a_killed_node_is_forgotten() {
    let lab = Lab::new("ospf-frr", &[]);
    let output = lab.command("up", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    converges(&lab);
    kill(lab.pid("N2"));
    let knows = |node: &str, protocol: &str| lab.routes(node, protocol).contains(LOCATORS[1]);
    wait_until(|| !knows("N1", "201") && !knows("F", "ospf"), || lab.inside("N1", "ip -6 route"));
    assert!(lab.routes("N1", "201").contains(OF_F), "F is there");
    let nodes = lab.show_of("ospf", "N1", "sids")["nodes"].clone();
    let of_n2 = nodes.as_array().expect("nodes").iter().find(|node| node["hostname"] == "N2").expect("its LSAs age");
    assert_eq!(of_n2["distance"], Value::Null);
}
