//! A controller's group whose transit node replicates: its tree moves to another node when that one dies (D135).

use super::{EDGES, Network, TRANSIT};
use crate::own_lab::{ControllerAccess, wait_until};
use serde_json::Value;
use srdma_figures::report;
use std::process::{Child, Command, Output, Stdio};

const TOPOLOGY: &str = include_str!("replicating.toml");

impl Network {
    /// `srdma` at a host, with access to the controller.
    fn srdma(&self, access: &ControllerAccess, host: &str) -> Command {
        let mut command = self.command(host, env!("CARGO_BIN_EXE_srdma"));
        access.set(&mut command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn group(&self, access: &ControllerAccess, arguments: &[&str]) -> Value {
        json(&self.srdma(access, "C").args(["group"]).args(arguments).arg("--json").output().expect("it runs"))
    }

    fn transfer(&self, access: &ControllerAccess, host: &str, verb: &str, options: &[&str]) -> Child {
        let group = format!("{}/1", access.url());
        self.srdma(access, host).args([verb, "--group", &group, "--json"]).args(options).spawn().expect("it starts")
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
    wait_until(|| network.has_all_sessions(), || network.lab.status("N1")["bfd"].to_string());
    let access = network.lab.controller();
    let created = network.group(
        &access,
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
    let receivers = ["R1", "R2"].map(|host| network.transfer(&access, host, "recv", &["--timeout=50s"]));
    // The window drains within 40 ms at the rate of the link, well below the ACK timeout.
    let options = ["--random=32MiB", "--window=48", "--ack-timeout=14", "--retries=7"];
    let pids = network.transit_pids();
    let capture = network.lab.starts_capture();
    let source = network.transfer(&access, "S", "send", &[&options[..], &["--receivers=2", "--commit"]].concat());

    let data_packets = |node: &str| {
        let groups = network.lab.status(node)["groups"].as_array().cloned().unwrap_or_default();
        groups.first().and_then(|group| group["data_packets"].as_u64()).unwrap_or(0)
    };
    wait_until(|| TRANSIT.iter().any(|node| data_packets(node) > 500), || network.lab.status("N1").to_string());
    let used = TRANSIT.into_iter().find(|node| data_packets(node) > 500).expect("one is");
    let other = TRANSIT.into_iter().find(|node| *node != used).expect("two");
    network.kill_transit(used, pids);

    let sent = json(&source.wait_with_output().expect("it ends"));
    let digest = sent["sha256"].as_str().expect("a digest");
    for receiver in receivers {
        assert_eq!(json(&receiver.wait_with_output().expect("it ends"))["sha256"], digest);
    }
    capture.ends();
    let outage_ns = |edge| network.outage_ns(used, other, edge).expect("data by the dead node");
    report("dead node that replicates, new epoch of the group", "ms", EDGES.map(|edge| outage_ns(edge) as f64 / 1e6));
    println!("{} retransmissions", sent["retransmissions"]);
    let group = network.group(&access, &["show", "1"]);
    assert_eq!((&group["state"], &group["receivers"]), (&Value::from("ready"), &Value::from(2)), "{group}");
}
