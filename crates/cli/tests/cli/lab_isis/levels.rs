//! A node at both levels (D263) between FRR at level 1, at level 2 and at both.

use super::{text, tshark};
use crate::own_lab::{Lab, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;

/// MAC addresses of N1's interfaces toward A1, B2 and C12.
const TO_A: [u8; 6] = [0x02, 0x5D, 0, 0, 1, 2];
const TO_B: [u8; 6] = [0x02, 0x5D, 0, 0, 2, 1];
const TO_C: [u8; 6] = [0x02, 0x5D, 0, 0, 3, 1];

/// Port, level and neighbour of N1's adjacencies that are up.
fn adjacencies(lab: &Lab) -> BTreeSet<(String, u64, String)> {
    let circuits = lab.show("N1", "neighbors")["circuits"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let up = circuits.as_array().expect("circuits").iter().filter(|row| row["state"] == "up").cloned();
    up.map(|row| (text(&row["port"]), row["level"].as_u64().expect("a level"), text(&row["neighbour"]))).collect()
}

/// The adjacencies that N1 should have.
fn all_adjacencies() -> BTreeSet<(String, u64, String)> {
    let of = |port: &str, level, last| (port.to_owned(), level, format!("0000.0000.000{last}"));
    BTreeSet::from([of("a1", 1, "a"), of("b2", 2, "b"), of("c12", 1, "c"), of("c12", 2, "c")])
}

/// Level and kind of N1's route to a prefix.
fn route(lab: &Lab, prefix: &str) -> Option<(u64, String)> {
    let routes = lab.show("N1", "routes")["routes"].clone();
    let found = routes.as_array().expect("routes").iter().find(|route| route["prefix"] == prefix)?.clone();
    Some((found["level"].as_u64()?, found["kind"].as_str()?.to_owned()))
}

#[test]
#[ignore = "needs root"]
fn a_node_joins_two_areas_of_frr() {
    let lab = Lab::of("isis-levels", include_str!("levels.toml"));
    lab.up();
    let capture = lab.starts_capture();
    wait_until(|| adjacencies(&lab) == all_adjacencies(), || format!("{:?}", adjacencies(&lab)));
    // S and R reach each other: A1 by the attached bit, B2 by what N1 announces of level 1.
    let ping = || lab.runs("S", "ping -6 -c 3 -i 0.2 -W 1 -I 2001:db8:a0::1 2001:db8:b0::1").status.success();
    wait_until(ping, || format!("{}{}", lab.inside("A1", "ip -6 route"), lab.inside("B2", "ip -6 route")));
    let out = lab.inside("A1", "ip -6 route show proto isis default");
    assert!(out.contains("via fe80::2 dev n1"), "{out}");
    // What is within `leak_down` comes to A1 and C12 by itself, and nothing else of level 2.
    let routes = || lab.routes("A1", "isis");
    let has = |routes: &BTreeSet<String>, prefix: &str| routes.contains(prefix);
    wait_until(|| has(&routes(), "2001:db8:ff:b::1"), || format!("{:?}", routes()));
    assert!(!has(&routes(), "2001:db8:b0::/64"), "{:?}", routes());
    wait_until(|| has(&lab.routes("B2", "isis"), "2001:db8:ff:c::1"), || format!("{:?}", lab.routes("B2", "isis")));
    // C12 is at both levels and has the same prefixes there: level 1 is preferred.
    let expected = [("2001:db8:ff:a::1/128", 1), ("2001:db8:ff:c::1/128", 1), ("2001:db8:b0::/64", 2)];
    for (prefix, level) in expected {
        let wanted = || route(&lab, prefix) == Some((level, "up".to_owned()));
        wait_until(wanted, || format!("{prefix}: {:?}", route(&lab, prefix)));
    }
    assert_eq!(route(&lab, "::/0"), None, "N1 is attached itself");
    assert_eq!(lab.show("N1", "system")["is_attached"], true);

    // Without B2 no other area is left, and N1 follows the bit of C12, which FRR sets as long as level 2 has an adjacency.
    lab.kill_frr("frr-b", "isisd");
    let out = || route(&lab, "::/0");
    wait_until(|| out() == Some((1, "out of area".to_owned())), || format!("{:?}", out()));
    assert_eq!(lab.show("N1", "system")["is_attached"], false);
    wait_until(|| !has(&routes(), "2001:db8:ff:b::1"), || format!("{:?}", routes()));
    capture.ends();

    for (link, mac, kind) in [("A1-N1", TO_A, 17), ("N1-B2", TO_B, 17), ("N1-C12", TO_C, 15), ("N1-C12", TO_C, 16)] {
        let capture = lab.capture(link);
        assert_eq!(tshark(&capture, "isis && _ws.malformed"), 0, "{link}");
        let of_n = format!("eth.src == {} && isis.type == {kind}", text(mac));
        let of_both = format!("{of_n} && isis.hello.circuit_type == 3");
        assert!(tshark(&capture, &of_both) > 0 && tshark(&capture, &of_both) == tshark(&capture, &of_n), "{link}");
    }
    let lsp_of_n = |mac| format!("eth.src == {} && isis.lsp.lsp_id == 00:00:00:00:00:01:00:00", text(mac));
    let has = |link: &str, mac, what: &str| tshark(&lab.capture(link), &format!("{} && {what}", lsp_of_n(mac))) > 0;
    // Up: no up/down bit, and R of RFC 7794. Down: both.
    let (up, down) = ("isis.lsp.ipv6_reachability.distribution == 0", "isis.lsp.ipv6_reachability.distribution == 1");
    let again = "isis.lsp.prefix_attribute.flags.r == 1";
    assert!(has(
        "N1-B2",
        TO_B,
        &format!("isis.type == 20 && isis.lsp.ipv6_reachability.ipv6_prefix == 2001:db8:a0:: && {up} && {again}")
    ));
    assert!(!has("N1-B2", TO_B, down));
    assert!(has(
        "A1-N1",
        TO_A,
        &format!("isis.type == 18 && isis.lsp.ipv6_reachability.ipv6_prefix == 2001:db8:ff:b::1 && {down} && {again}")
    ));
    assert!(has("A1-N1", TO_A, "isis.type == 18 && isis.lsp.att == 1") && has("A1-N1", TO_A, "isis.lsp.att == 0"));
    assert!(!has("N1-B2", TO_B, "isis.lsp.att != 0"));
}
