//! A group whose branches lead across transit nodes that only forward: what becomes of it when one of them dies.

use super::{EDGES, MARGIN_NS, Network, TRANSIT, detected_after_ns, frames, wait_until};
use serde_json::Value;
use srdma_figures::report;
use std::fs;
use std::process::Stdio;

const TOPOLOGY: &str = include_str!("transit.toml");

/// Most time from the last packet through a dead transit node to the first one around it, in nanoseconds.
const LIMIT_NS: u64 = 200_000_000;

impl Network {
    /// Waits until all sessions are up, and the routes between headend and edges have next hops by these nodes.
    fn converges(&self, used: &[&str]) {
        let has_both = |(node, locator): &(&str, &str)| {
            let route = self.inside(node, &["ip", "-6", "route", "show", locator]);
            used.iter().all(|transit| route.contains(&format!("dev {}", transit.to_lowercase())))
        };
        let routes = [
            ("N1", "2001:db8:ff:2::/64"),
            ("N1", "2001:db8:ff:3::/64"),
            ("N2", "2001:db8:ff:1::/64"),
            ("N3", "2001:db8:ff:1::/64"),
        ];
        let is_through = || self.has_all_sessions() && routes.iter().all(has_both);
        wait_until(is_through, || {
            format!("{}{}", self.lab.status("N1")["bfd"], self.inside("N1", &["ip", "-6", "route"]))
        });
    }

    /// Frames that the headend has sent toward a transit node.
    fn sent_to(&self, transit: &str) -> u64 {
        let ports = self.lab.status("N1")["ports"].clone();
        let port = ports.as_array().expect("ports").iter().find(|port| port["name"] == transit.to_lowercase());
        port.expect("a port")["sent"]["frames"].as_u64().expect("a number")
    }
}

/// Two paths of equal cost, of which the data thread takes the other one at once (D109).
#[test]
#[ignore = "needs root"]
fn equal_paths_go_around_a_dead_transit_node() {
    data_go_around_a_dead_node(TOPOLOGY, &TRANSIT, "equal paths");
}

/// The path by T2 is longer, so that IS-IS has to compute it (D110).
#[test]
#[ignore = "needs root"]
fn routes_of_isis_go_around_a_dead_transit_node() {
    let longer = TOPOLOGY.replace(r#"{ port = "t2", bfd = true }"#, r#"{ port = "t2", bfd = true, metric = 30 }"#);
    data_go_around_a_dead_node(&longer, &TRANSIT[..1], "routes of IS-IS");
}

/// The kernel of the dead node still answers for its addresses, so that nothing but BFD shows that it is dead. The
/// source goes on sending all the time.
fn data_go_around_a_dead_node(text: &str, used: &[&str], around: &str) {
    let network = Network::start("bfd-transit", text);
    network.converges(used);
    let epoch = network.lab.status("N1")["groups"][0]["epoch"].as_u64().expect("a number");
    let pids = network.transit_pids();
    let capture = network.lab.starts_capture();
    let group = network.lab.state().join("group.toml");
    let mut source = network.command("S", env!("CARGO_BIN_EXE_srdma"));
    source.args(["send", "--random", "32MiB", "--path-mtu", "1024", "--window", "256", "--json"]);
    source.args(["--ack-timeout", "14", "--retries", "6", "--group"]).arg(&group);
    let source = source.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let is_busy = |transit: &str| network.sent_to(transit) > 1_000;
    wait_until(|| TRANSIT.iter().any(|transit| is_busy(transit)), || network.lab.status("N1")["ports"].to_string());
    let busy = TRANSIT.into_iter().find(|transit| is_busy(transit)).expect("one is");
    let other = TRANSIT.into_iter().find(|transit| *transit != busy).expect("two");
    network.kill_transit(busy, pids);

    let output = source.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "the source has lost its connection: {text}{errors}");
    let sent: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    let received = |node: &str| {
        let text = fs::read_to_string(network.lab.state().join("out").join(node)).unwrap_or_default();
        text.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok())
    };
    for node in ["R1", "R2"] {
        let has_all =
            || received(node).is_some_and(|received| received["sha256"] == sent["sha256"].as_str().expect("a digest"));
        wait_until(has_all, || format!("{node}: {:?} {sent}", received(node)));
    }
    capture.ends();

    let outages: Vec<u64> = EDGES.into_iter().filter_map(|edge| network.outage_ns(busy, other, edge)).collect();
    println!("{} retransmissions", sent["retransmissions"]);
    // At least one edge got data by the dead node.
    let outage = report(format!("dead transit node, {around}"), "ms", outages.iter().map(|ns| *ns as f64 / 1e6));
    assert!(outages.iter().all(|outage_ns| *outage_ns <= LIMIT_NS), "{outage}");
    let seen = frames(&network.lab.capture(&format!("N1-{busy}")));
    // The headend is at the first end of its links.
    let after_ns = detected_after_ns(&seen, 3784, "fe80::1");
    report(format!("the same: detected by BFD, {around}"), "ms", [after_ns as f64 / 1e6]);
    assert!((150_000_000..150_000_000 + MARGIN_NS).contains(&after_ns), "{after_ns}");
    // D90: no receiver is evicted, and no node has lost its group.
    let group = network.lab.status("N1")["groups"][0].clone();
    assert_eq!((&group["epoch"], &group["eviction_requests"]), (&epoch.into(), &Value::from(0)));
}
