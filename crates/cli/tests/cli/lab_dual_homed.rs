//! A receiver with links to two leaves (D280 to D282): it responds by the leaf that does not serve it, its link to the
//! other one is lost, and later it responds by that, all while a source sends to it and to another receiver.
//!
//! ```text
//!         S1 ── N6 ── C
//!              ╱  ╲
//!   R2 ── L1 ── L2
//!           ╲  ╱
//!            R1
//! ```

use crate::own_lab::{ControllerAccess, Lab, Running, wait_until};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const NAME: &str = "dual-homed";
const URL: &str = "https://[2001:db8:ff:c::1]:8470";
const SHARED: &str = "2001:db8:d0::1";
const OCTETS: usize = 100 << 20;

/// The programs give up before.
const PATIENCE: Duration = Duration::from_secs(120);

/// The place of the link between L1 and R1 among the links.
const LINK: usize = 5;

/// The network. R1 finds the Proxy Addresses by L2, or else by L1, and the controller by L2.
const LAB: &str = r#"
description = "A receiver behind two leaves"

[controller]
node = "C"
proxies = "2001:db8:cc::/112"
shared_hosts = ["2001:db8:d0::/64"]

[[node]]
name = "C"
kind = "router"
addresses = ["2001:db8:ff:c::1"]

[[node]]
name = "S1"
kind = "endpoint"
addresses = ["2001:db8:aa::1"]

[[node]]
name = "N6"
kind = "srdma"
addresses = ["2001:db8:ff:6::1"]
prefixes = ["2001:db8:ff:6::/64"]
commands = ["ip -6 route add 2001:db8:d0::1 via fe80::2 dev l2 metric 10"]

[node.config.controller]
replication = "2001:db8:ff:6:a::/96"
link = [{ to = "2001:db8:ff:1::1", port = "l1" }, { to = "2001:db8:ff:2::1", port = "l2" }]
hosts = ["2001:db8:aa::/64"]

[[node]]
name = "L1"
kind = "srdma"
addresses = ["2001:db8:ff:1::1"]
prefixes = ["2001:db8:ff:1::/64"]

[[node.config.sid]]
sid = "2001:db8:ff:1::e"
behavior = "End.MT"

[[node.config.sid]]
sid = "2001:db8:ff:1::d6"
behavior = "End.DT6"

[[node.config.shared_hosts]]
hosts = "2001:db8:d0::/64"
proxies = "2001:db8:cc::/112"
peer = "2001:db8:ff:2::1"
sid = "2001:db8:ff:2::d6"
ports = ["r1"]

[node.config.controller]
end_mt = "2001:db8:ff:1::e"
link = [{ to = "2001:db8:ff:6::1", port = "n6" }]
hosts = ["2001:db8:d0::/64", "2001:db8:bb::2/128"]

[[node]]
name = "L2"
kind = "srdma"
addresses = ["2001:db8:ff:2::1"]
prefixes = ["2001:db8:ff:2::/64"]

[[node.config.sid]]
sid = "2001:db8:ff:2::e"
behavior = "End.MT"

[[node.config.sid]]
sid = "2001:db8:ff:2::d6"
behavior = "End.DT6"

[[node.config.shared_hosts]]
hosts = "2001:db8:d0::/64"
proxies = "2001:db8:cc::/112"
peer = "2001:db8:ff:1::1"
sid = "2001:db8:ff:1::d6"
ports = ["r1"]

[node.config.controller]
end_mt = "2001:db8:ff:2::e"
link = [{ to = "2001:db8:ff:6::1", port = "n6" }]
hosts = ["2001:db8:d0::/64"]

[[node]]
name = "R1"
kind = "router"
addresses = ["2001:db8:d0::1"]
commands = [
    "ip -6 route add 2001:db8:cc::/112 via fe80::1 dev l2 metric 10",
    "ip -6 route add 2001:db8:cc::/112 via fe80::1 dev l1 metric 20",
    "ip -6 route add 2001:db8:ff:c::1 via fe80::1 dev l2 metric 10",
]

[[node]]
name = "R2"
kind = "endpoint"
addresses = ["2001:db8:bb::2"]

[[link]]
ends = ["S1", "N6"]
rate_bits_per_s = 60_000_000

[[link]]
ends = ["N6", "C"]

[[link]]
ends = ["N6", "L1"]

[[link]]
ends = ["N6", "L2"]

[[link]]
ends = ["L1", "L2"]

[[link]]
ends = ["L1", "R1"]

[[link]]
ends = ["L2", "R1"]

[[link]]
ends = ["L1", "R2"]
"#;

struct Network {
    lab: Lab,
    directory: tempfile::TempDir,
    access: ControllerAccess,
}

impl Network {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let lab = Lab::of(NAME, LAB);
        lab.up();
        let access = lab.controller();
        Network { lab, directory, access }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn inside(&self, node: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.lab.namespace(node), program]);
        self.access.set(&mut command);
        command
    }

    fn starts(&self, host: &str, arguments: &[&str]) -> Running {
        let mut command = self.inside(host, env!("CARGO_BIN_EXE_srdma"));
        command.args(arguments).args(["--json", "--timeout", "100s"]);
        Running::piped(command)
    }

    #[track_caller]
    fn group(&self, arguments: &[&str]) -> Value {
        let mut command = self.inside("C", env!("CARGO_BIN_EXE_srdma"));
        let output = command.arg("group").args(arguments).arg("--json").output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The edge of R1.
    fn edge(&self) -> Value {
        let group = self.group(&["show", "1"]);
        let nodes = group["tree"]["nodes"].as_array().cloned().unwrap_or_default();
        let is_r1 = |branch: &Value| branch["address"] == SHARED;
        let has_r1 = |node: &Value| node["branches"].as_array().is_some_and(|branches| branches.iter().any(is_r1));
        nodes.into_iter().find(has_r1).map(|node| node["name"].clone()).unwrap_or_default()
    }

    /// Packets of R1 that a node has passed on, or that were passed on to it.
    fn passed(&self, node: &str, way: &str) -> u64 {
        self.lab.status(node)["shared_hosts"][0][way]["frames"].as_u64().unwrap_or(0)
    }

    /// Takes the carrier from both ends of the link between L1 and R1, or gives it back.
    fn set_link(&self, state: &str) {
        for end in ["a", "b"] {
            let wire = format!("l{LINK}{end}");
            let wires = self.lab.namespace("wires");
            let done = Command::new("ip").args(["-n", &wires, "link", "set", &wire, state]).status();
            assert!(done.expect("ip runs").success());
        }
    }
}

fn data() -> Vec<u8> {
    (0..OCTETS as u64 / 8).flat_map(|word| (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ word).to_le_bytes()).collect()
}

/// D280, D281, D282: nothing is lost to the application.
#[test]
#[ignore = "needs root"]
fn a_receiver_outlives_its_link_to_a_leaf() {
    let network = Network::start();
    let data = data();
    fs::write(network.path("data"), &data).expect("written");
    let source = ["create", "--source", "2001:db8:aa::1", "--source-qpn", "0x100", "--designated-qpn", "0xd00000"];
    let others = ["--proxy", "2001:db8:cc::1", "--psn", "0xfffff0", "--region", "0x10000,0x40000000,0x1234"];
    assert_eq!(network.group(&[&source[..], &others].concat())["id"], 1);
    let url = format!("{URL}/1");
    let receivers = ["R1", "R2"].map(|host| {
        let copy = network.path(host);
        (host, network.starts(host, &["recv", "--group", &url, "--out", copy.to_str().expect("UTF-8")]))
    });
    let file = network.path("data");
    let arguments = ["send", file.to_str().expect("UTF-8"), "--group", &url, "--receivers", "2", "--commit"];
    let sender = network.starts("S1", &[&arguments[..], &["--message", "256KiB"]].concat());

    // L1, whose loopback is the lower one, serves R1, which responds by L2.
    let count = |node, way| network.passed(node, way);
    wait_until(|| count("L2", "passed_on") > 20, || format!("nothing passed on: {}", network.lab.status("L2")));
    assert_eq!(network.edge(), "L1");
    wait_until(|| count("L1", "from_peer") > 20, || format!("nothing from L2: {}", network.lab.status("L1")));

    network.set_link("down");
    wait_until(|| network.edge() == "L2", || format!("R1 is not at L2: {}", network.group(&["show", "1"])));

    // The link is there again, and R1 responds by it. It stays at L2.
    network.set_link("up");
    let route = ["-6", "route", "add", "2001:db8:cc::/112", "via", "fe80::1", "dev", "l1", "metric", "5"];
    assert!(network.inside("R1", "ip").args(route).status().expect("ip runs").success());
    wait_until(|| count("L1", "passed_on") > 20, || format!("nothing passed on: {}", network.lab.status("L1")));
    let before = count("L2", "passed_on");
    let group = network.group(&["show", "1"]);
    assert_eq!((network.edge(), &group["receivers"]), (Value::from("L2"), &Value::from(2)), "{group}");

    let sent = sender.output("S1", PATIENCE);
    for (host, receiver) in receivers {
        let result = receiver.output(host, PATIENCE);
        assert_eq!((&result["sha256"], &result["matches"]), (&sent["sha256"], &Value::Bool(true)), "{host}");
        assert!(fs::read(network.path(host)).expect("a copy") == data, "{host}");
    }
    assert_eq!(count("L2", "passed_on"), before, "L2 serves R1");
    assert!(count("L2", "from_peer") > 20, "{}", network.lab.status("L2"));
}
