//! A LAN of two nodes and two of FRR's isisd: each kind is its designated system, and dies.

use super::{MULTI_TOPOLOGY, kill, text, tshark};
use crate::own_lab::{Lab, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;

const LAN: &str = include_str!("lan.toml");

/// What N1 knows of its LAN: the pseudonode, and the states of neighbours.
fn lan(lab: &Lab) -> (Value, BTreeMap<String, String>) {
    let circuits = lab.show("N1", "neighbors")["circuits"].clone();
    let circuits = circuits.as_array().expect("circuits");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let states = circuits.iter().map(|row| (text(&row["neighbour"]), text(&row["state"])));
    (circuits[0]["designated"].clone(), states.collect())
}

/// Waits until N1 has these neighbours, and the pseudonode is this one.
fn is_designated(lab: &Lab, pseudonode: &str, neighbours: &[&str]) {
    let expected = neighbours.iter().map(|last| (format!("0000.0000.{last}"), "up".to_owned())).collect();
    let expected: (Value, BTreeMap<String, String>) = (Value::from(pseudonode), expected);
    wait_until(|| lan(lab) == expected, || format!("{pseudonode}: {:?}", lan(lab)));
}

/// Waits until S and R reach each other by the SIDs of N1 and N3, across the LAN and G; then that routes are those of the
/// LAN.
fn data_pass(lab: &Lab) {
    let ping = || lab.runs("S", "ping -6 -c 3 -i 0.2 -W 1 -I 2001:db8:aa::1 2001:db8:bb::1").status.success();
    wait_until(ping, || format!("{}{}", lab.inside("N1", "ip -6 route"), lab.inside("G", "ip -6 route")));
    // Before, data may pass by routes that are about to change.
    for (node, route, gateway) in [
        ("N1", "proto 201 5f00:0:3::/48", "via fe80::14 dev lan"),
        ("G", "proto isis 5f00:0:1::/48", "via fe80::11 dev lan"),
    ] {
        let route = || lab.inside(node, &format!("ip -6 route show {route}"));
        wait_until(|| route().contains(gateway), || format!("{node}: {}", route()));
    }
}

fn lan_is_complete(lab: &Lab, pseudonode: &str) {
    is_designated(lab, pseudonode, &["0002", "000f", "0010"]);
    let locators = |numbers: &[u8]| numbers.iter().map(|number| format!("5f00:0:{number}::/48")).collect::<Vec<_>>();
    let has = |node: &str, protocol: &str, numbers: &[u8]| {
        let routes = lab.routes(node, protocol);
        locators(numbers).iter().all(|locator| routes.contains(locator))
    };
    let all = || {
        has("N1", "201", &[2, 3])
            && has("N2", "201", &[1, 3])
            && has("N3", "201", &[1, 2])
            && has("F", "isis", &[1, 2, 3])
            && has("G", "isis", &[1, 2, 3])
    };
    wait_until(all, || format!("{}{}", lab.inside("N1", "ip -6 route"), lab.inside("F", "ip -6 route")));
}

/// A transfer, with a node of ours as designated system; then that of FRR, and then ours again, as each one dies.
fn designated_systems_die(replacements: &[(&str, &str)]) {
    let mut file = LAN.to_owned();
    for (from, to) in replacements {
        assert!(file.contains(from), "{from}");
        file = file.replace(from, to);
    }
    let lab = Lab::of("isis-lan", &file);
    let output = lab.command("run", &["--json", "--keep"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert_eq!(result["receivers"][0]["is_identical"], true, "{stderr}{result}");
    lan_is_complete(&lab, "0000.0000.0002.01");
    data_pass(&lab);

    let capture = lab.starts_capture();
    // BFD alone ends the adjacency with N2: those with FRR stay, which answers no BFD.
    wait_until(|| lab.sessions_up("N1") == 1, || format!("{} sessions are up", lab.sessions_up("N1")));
    kill(lab.pid("N2"));
    let pseudonode_of_f = || lan(&lab).0.as_str().is_some_and(|lan| lan.starts_with("0000.0000.000f."));
    wait_until(pseudonode_of_f, || format!("{:?}", lan(&lab)));
    let pseudonode = lan(&lab).0;
    is_designated(&lab, pseudonode.as_str().expect("it is elected"), &["000f", "0010"]);
    let lost = lab.status("N1")["isis"]["counters"]["neighbours_lost"].as_u64().expect("a number");
    // A busy machine may have taken the session down before.
    assert!(lost >= 1, "by its holding time, not by BFD");
    data_pass(&lab);

    lab.kill_frr("frr", "isisd");
    is_designated(&lab, "0000.0000.0001.01", &["0010"]);
    data_pass(&lab);
    capture.ends();

    let capture = lab.capture("N1-LAN");
    assert_eq!(tshark(&capture, "isis && _ws.malformed"), 0);
    let of_n1 = format!("eth.src == {}", text([0x02, 0x5D, 0, 0, 1, 1]));
    let to_level_2 = "eth.dst == 01:80:c2:00:00:15";
    for what in [
        "isis.hello && isis.type == 16 && isis.hello.priority == 80",
        "isis.lsp.lsp_id == 00:00:00:00:00:01:01:00 && isis.lsp.ext_is_reachability.metric == 0",
        "isis.csnp.source_id == 00:00:00:00:00:01",
    ] {
        assert!(tshark(&capture, &format!("{of_n1} && {to_level_2} && {what}")) > 0, "{what}");
    }
    assert_eq!(tshark(&capture, &format!("{of_n1} && isis && !({to_level_2})")), 0);
    // Sub-TLV 44 (RFC 9352 section 8.2): the neighbour G, three zeros, End.X, and the SID.
    let sid_of_g = "2c:22:00:00:00:00:00:10:00:00:00:00:05:5f:00:00:00:00:01:e0:10";
    assert!(tshark(&capture, &format!("{of_n1} && isis.lsp && frame contains {sid_of_g}")) > 0, "{sid_of_g}");
}

#[test]
#[ignore = "needs root"]
fn each_designated_system_dies() {
    designated_systems_die(&[]);
}

/// The same in the topology of IPv6, which shares the pseudonode (RFC 5120 section 3.2).
#[test]
#[ignore = "needs root"]
fn each_designated_system_dies_in_the_topology_of_ipv6() {
    designated_systems_die(&MULTI_TOPOLOGY);
}
