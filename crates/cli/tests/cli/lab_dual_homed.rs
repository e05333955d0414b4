//! A host with links to two leaves.
//!
//! ```text
//!         far ── N6 ── C
//!               ╱  ╲
//!   R2 ── L1 ── L2
//!           ╲  ╱
//!           host
//! ```
//!
//! As a receiver (D280 to D282) it responds by the leaf that does not serve it, its link to the other one is lost, and later
//! it responds by that, all while the far host, a source, sends to it and to another receiver. As a source (D289, D290) it
//! sends by the leaf that is not its headend, to the far host and to R2, when its link to its headend is lost.

use crate::own_lab::{ControllerAccess, Lab, Running, wait_until};
use serde_json::Value;
use srdma_figures::report;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const URL: &str = "https://[2001:db8:ff:c::1]:8470";
const SHARED: &str = "2001:db8:d0::1";
const OCTETS: usize = 100 << 20;

/// The programs give up before.
const PATIENCE: Duration = Duration::from_secs(120);

/// The place of the link between L1 and the host among the links.
const LINK: usize = 5;

/// The network, with the names of the two hosts. The host of two leaves finds the Proxy Addresses by L2, or else by L1,
/// and the controller by L2. The source's links are slower than the others.
fn lab(host: &str, far: &str) -> String {
    let leaves = [leaf(1, 2, ", \"2001:db8:bb::2/128\""), leaf(2, 1, "")].concat();
    let slow = |of: &str| if of == "S1" { "rate_bits_per_s = 60_000_000" } else { "" };
    let links = [
        (far, "N6", slow(far)),
        ("N6", "C", ""),
        ("N6", "L1", ""),
        ("N6", "L2", ""),
        ("L1", "L2", ""),
        ("L1", host, slow(host)),
        ("L2", host, slow(host)),
        ("L1", "R2", ""),
    ];
    let links = links.map(|(one, other, rate)| format!("[[link]]\nends = [\"{one}\", \"{other}\"]\n{rate}\n"));
    let text = LAB.replace("LEAVES", &leaves).replace("PORT", &host.to_lowercase());
    text.replace("FAR", far).replace("HOST", host) + &links.concat()
}

/// A leaf, which shares the host with the other one.
fn leaf(number: u8, peer: u8, more_hosts: &str) -> String {
    format!(
        r#"
[[node]]
name = "L{number}"
kind = "srdma"
addresses = ["2001:db8:ff:{number}::1"]
prefixes = ["2001:db8:ff:{number}::/64"]

[[node.config.sid]]
sid = "2001:db8:ff:{number}::e"
behavior = "End.MT"

[[node.config.sid]]
sid = "2001:db8:ff:{number}::d6"
behavior = "End.DT6"

[[node.config.shared_hosts]]
hosts = "2001:db8:d0::/64"
proxies = "2001:db8:cc::/112"
peer = "2001:db8:ff:{peer}::1"
sid = "2001:db8:ff:{peer}::d6"
ports = ["PORT"]

[node.config.controller]
end_mt = "2001:db8:ff:{number}::e"
replication = "2001:db8:ff:{number}:a::/96"
link = [{{ to = "2001:db8:ff:6::1", port = "n6" }}]
hosts = ["2001:db8:d0::/64"{more_hosts}]
"#
    )
}

const LAB: &str = r#"
description = "A host behind two leaves"

[controller]
node = "C"
proxies = "2001:db8:cc::/112"
shared_hosts = ["2001:db8:d0::/64"]

[[node]]
name = "C"
kind = "router"
addresses = ["2001:db8:ff:c::1"]

[[node]]
name = "FAR"
kind = "endpoint"
addresses = ["2001:db8:aa::1"]

[[node]]
name = "N6"
kind = "srdma"
addresses = ["2001:db8:ff:6::1"]
prefixes = ["2001:db8:ff:6::/64"]
commands = ["ip -6 route add 2001:db8:d0::1 via fe80::2 dev l2 metric 10"]

[[node.config.sid]]
sid = "2001:db8:ff:6::e"
behavior = "End.MT"

[node.config.controller]
end_mt = "2001:db8:ff:6::e"
replication = "2001:db8:ff:6:a::/96"
link = [{ to = "2001:db8:ff:1::1", port = "l1" }, { to = "2001:db8:ff:2::1", port = "l2" }]
hosts = ["2001:db8:aa::/64"]
LEAVES
[[node]]
name = "HOST"
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

"#;

struct Network {
    lab: Lab,
    directory: tempfile::TempDir,
    access: ControllerAccess,
}

impl Network {
    fn start(name: &'static str, lab: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let lab = Lab::of(name, lab);
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

    /// The present headend.
    fn headend(&self) -> Value {
        self.group(&["show", "1"])["tree"]["nodes"][0]["name"].clone()
    }

    /// The edge of the host, as a receiver.
    fn edge(&self) -> Value {
        let group = self.group(&["show", "1"]);
        let nodes = group["tree"]["nodes"].as_array().cloned().unwrap_or_default();
        let is_it = |branch: &Value| branch["address"] == SHARED;
        let has_it = |node: &Value| node["branches"].as_array().is_some_and(|branches| branches.iter().any(is_it));
        nodes.into_iter().find(has_it).map(|node| node["name"].clone()).unwrap_or_default()
    }

    /// Packets of the host that a node has passed on, or that were passed on to it.
    fn passed(&self, node: &str, way: &str) -> u64 {
        self.lab.status(node)["shared_hosts"][0][way]["frames"].as_u64().unwrap_or(0)
    }

    /// Takes the carrier from both ends of the link between L1 and the host, or gives it back.
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

/// A transfer from S1 to R1 and R2.
struct Transfer {
    sender: Running,
    receivers: [(&'static str, Running); 2],
    data: Vec<u8>,
}

impl Transfer {
    /// Begins one from a source of this address.
    fn begin(network: &Network, source: &str) -> Self {
        let data = data();
        fs::write(network.path("data"), &data).expect("written");
        let source = ["create", "--source", source, "--source-qpn", "0x100", "--designated-qpn", "0xd00000"];
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
        Transfer { sender, receivers, data }
    }

    /// Nothing is lost to the application.
    #[track_caller]
    fn ends(self, network: &Network) {
        let sent = self.sender.output("S1", PATIENCE);
        let digest = Value::from(sent["sha256"].as_str().expect("a digest"));
        for (host, receiver) in self.receivers {
            let result = receiver.output(host, PATIENCE);
            assert_eq!((&result["sha256"], &result["matches"]), (&digest, &Value::Bool(true)), "{host}");
            assert!(fs::read(network.path(host)).expect("a copy") == self.data, "{host}");
        }
    }
}

/// The link of a host to L1 is there again, and the host sends by it.
fn send_by_l1(network: &Network, host: &str) {
    network.set_link("up");
    let route = ["-6", "route", "add", "2001:db8:cc::/112", "via", "fe80::1", "dev", "l1", "metric", "5"];
    assert!(network.inside(host, "ip").args(route).status().expect("ip runs").success());
}

/// D280, D281, D282, D291.
#[test]
#[ignore = "needs root"]
fn a_receiver_outlives_its_link_to_a_leaf() {
    let network = Network::start("dual-homed", &lab("R1", "S1"));
    let transfer = Transfer::begin(&network, "2001:db8:aa::1");

    // L1, whose loopback is the lower one, serves R1, which responds by L2.
    let count = |node, way| network.passed(node, way);
    wait_until(|| count("L2", "passed_on") > 20, || format!("nothing passed on: {}", network.lab.status("L2")));
    assert_eq!(network.edge(), "L1");
    wait_until(|| count("L1", "from_peer") > 20, || format!("nothing from L2: {}", network.lab.status("L1")));

    let cut = Instant::now();
    network.set_link("down");
    wait_until(|| network.edge() == "L2", || format!("R1 is not at L2: {}", network.group(&["show", "1"])));
    report("receiver behind two leaves: the other edge, after a lost link", "ms", [cut.elapsed().as_secs_f64() * 1e3]);

    // It stays at L2.
    send_by_l1(&network, "R1");
    wait_until(|| count("L1", "passed_on") > 20, || format!("nothing passed on: {}", network.lab.status("L1")));
    let before = count("L2", "passed_on");
    let group = network.group(&["show", "1"]);
    assert_eq!((network.edge(), &group["receivers"]), (Value::from("L2"), &Value::from(2)), "{group}");

    transfer.ends(&network);
    assert_eq!(count("L2", "passed_on"), before, "L2 serves R1");
    assert!(count("L2", "from_peer") > 20, "{}", network.lab.status("L2"));
}

/// D289, D290, D291: R2 is at L1 before and after; R1 is at N6.
#[test]
#[ignore = "needs root"]
fn a_source_outlives_its_link_to_its_headend() {
    let network = Network::start("dual-homed-source", &lab("S1", "R1"));
    let transfer = Transfer::begin(&network, SHARED);

    // L1, whose loopback is the lower one, is the headend of S1, which sends by L2.
    let count = |node, way| network.passed(node, way);
    wait_until(|| count("L1", "from_peer") > 100, || format!("nothing from L2: {}", network.lab.status("L1")));
    assert_eq!(network.headend(), "L1");

    let cut = Instant::now();
    network.set_link("down");
    wait_until(|| network.headend() == "L2", || format!("L2 is no headend: {}", network.group(&["show", "1"])));
    report("source behind two leaves: the other headend, after a lost link", "ms", [cut.elapsed().as_secs_f64() * 1e3]);
    let is_steady = || network.group(&["show", "1"])["state"] == "ready";
    wait_until(is_steady, || format!("the group is not ready: {}", network.group(&["show", "1"])));

    // L2 stays the headend.
    send_by_l1(&network, "S1");
    wait_until(|| count("L2", "from_peer") > 100, || format!("nothing from L1: {}", network.lab.status("L2")));
    let group = network.group(&["show", "1"]);
    assert_eq!((network.headend(), &group["receivers"]), (Value::from("L2"), &Value::from(2)), "{group}");

    transfer.ends(&network);
}
