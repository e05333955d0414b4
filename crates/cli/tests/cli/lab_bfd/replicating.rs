//! A controller's group whose transit node replicates: its tree moves to another node when that one dies (D135).

use super::Network;
use crate::own_lab::wait_until;
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};

const TOPOLOGY: &str = include_str!("replicating.toml");
const TRANSIT: [&str; 2] = ["T1", "T2"];
const EDGES: [(&str, &str); 2] = [("N2", "2001:db8:ff:2::e"), ("N3", "2001:db8:ff:3::e")];

/// URL, token and certificate of the controller.
struct Access([String; 3]);

impl Access {
    fn of(network: &Network) -> Self {
        let output = network.lab.command("status", &["--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        Access(["url", "token_file", "ca_file"].map(|key| status["controller"][key].as_str().expect("text").to_owned()))
    }

    /// `srdma` at a host of the lab.
    fn srdma(&self, network: &Network, host: &str) -> Command {
        let Access([url, token_file, ca_file]) = self;
        let mut command = network.command(host, env!("CARGO_BIN_EXE_srdma"));
        command.env("SRDMA_CONTROLLER", url).env("SRDMA_TOKEN_FILE", token_file).env("SRDMA_CA", ca_file);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn group(&self, network: &Network, arguments: &[&str]) -> Value {
        let output = self.srdma(network, "C").args(["group"]).args(arguments).arg("--json").output().expect("it runs");
        json(&output)
    }

    fn transfer(&self, network: &Network, host: &str, verb: &str, options: &[&str]) -> Child {
        let group = format!("{}/1", self.0[0]);
        let mut command = self.srdma(network, host);
        command.args([verb, "--group", &group, "--json"]).args(options).spawn().expect("it starts")
    }
}

#[track_caller]
fn json(output: &Output) -> Value {
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    serde_json::from_str(text.lines().last().expect("a line")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The dead node's kernel answers for its addresses, so that nothing but BFD shows that it is dead. The source gives up
/// after 8 timeouts of 67 ms, long before the node's silence shows its death to the controller.
#[test]
#[ignore = "needs root"]
fn a_tree_moves_around_a_dead_replicating_node() {
    let network = Network::start("bfd-replicating", TOPOLOGY);
    let is_up = |(node, count): &(&str, usize)| {
        let sessions = network.status(node)["bfd"].as_array().cloned().unwrap_or_default();
        sessions.len() == *count && sessions.iter().all(|session| session["state"] == "up")
    };
    let nodes = [("N1", 2), ("N2", 2), ("N3", 2), ("T1", 3), ("T2", 3)];
    wait_until(|| nodes.iter().all(is_up), || network.status("N1")["bfd"].to_string());
    let access = Access::of(&network);
    let created = access.group(
        &network,
        &[
            "create",
            "--source=2001:db8:aa::1",
            "--source-qpn=0x100",
            "--designated-qpn=0xd00000",
            "--proxy=2001:db8:cc::1",
            "--psn=0xfffff0",
            "--region=0x10000,0x40000000,0x1234",
        ],
    );
    assert_eq!(created["id"], 1, "{created}");
    let receivers = ["R1", "R2"].map(|host| access.transfer(&network, host, "recv", &["--timeout=50s"]));
    // The window drains within 40 ms at the rate of the link, well below the ACK timeout.
    let options = ["--random=32MiB", "--window=48", "--ack-timeout=14", "--retries=7"];
    // Before the transfer, which a busy machine must not outlast.
    let pids = TRANSIT.map(|node| network.pid(node));
    let capture = network.lab.starts_capture();
    let source = access.transfer(&network, "S", "send", &[&options[..], &["--receivers=2", "--commit"]].concat());

    let data_packets = |node: &str| {
        let groups = network.status(node)["groups"].as_array().cloned().unwrap_or_default();
        groups.first().and_then(|group| group["data_packets"].as_u64()).unwrap_or(0)
    };
    wait_until(|| TRANSIT.iter().any(|node| data_packets(node) > 500), || network.status("N1").to_string());
    let used = TRANSIT.into_iter().find(|node| data_packets(node) > 500).expect("one is");
    let other = TRANSIT.into_iter().find(|node| *node != used).expect("two");
    let [first, second] = pids;
    network.kill_node(used, if used == TRANSIT[0] { first } else { second });

    let sent = json(&source.wait_with_output().expect("it ends"));
    for receiver in receivers {
        assert_eq!(json(&receiver.wait_with_output().expect("it ends"))["sha256"], sent["sha256"]);
    }
    capture.ends();
    for (edge, sid) in EDGES {
        let last = network.data(&format!("{used}-{edge}"), sid).into_iter().max().expect("data by the dead node");
        let around = network.data(&format!("{other}-{edge}"), sid).into_iter().filter(|time| *time > last);
        let outage_ns = around.min().expect("data around the dead node") - last;
        println!("{edge}: around {used} after {} us; {} retransmissions", outage_ns / 1_000, sent["retransmissions"]);
    }
    let group = access.group(&network, &["show", "1"]);
    assert_eq!((&group["state"], &group["receivers"]), (&Value::from("ready"), &Value::from(2)), "{group}");
}
