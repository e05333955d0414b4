//! `srdma lab`: whole networks of this machine, by the built program. All of it needs root, except refusals.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// An instance of a shipped lab that is this test's own, and that is gone at its end.
struct Instance {
    lab: &'static str,
    suffix: String,
}

impl Instance {
    fn of(lab: &'static str) -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        Instance { lab, suffix: format!("t{}-{number}", std::process::id()) }
    }

    fn lab(&self, command: &str, arguments: &[&str]) -> Output {
        srdma(&[&["lab", command, self.lab, "--instance", &self.suffix], arguments].concat())
    }

    /// Runs the lab with these options, each receiver having so many octets at the end, and gives its result.
    fn run(&self, octets: u64, arguments: &[&str]) -> Value {
        let output = self.lab("run", &[&["--json", "--size", &octets.to_string()], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}\n{}", String::from_utf8_lossy(&output.stdout));
        let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
        let receivers = result["receivers"].as_array().expect("receivers");
        assert_eq!(receivers.len(), 5, "{result}");
        for receiver in receivers {
            assert_eq!(receiver["is_identical"], true, "{receiver}");
            assert_eq!(receiver["octets"], octets, "{receiver}");
            assert_eq!(receiver["sha256"], result["source"]["sha256"].as_str().expect("a digest"), "{receiver}");
        }
        assert_eq!(self.namespaces(), 0, "the run has left namespaces");
        result
    }

    fn namespaces(&self) -> usize {
        let list = Command::new("ip").args(["netns", "list"]).output().expect("ip runs");
        let prefix = format!("srdma-{}-{}-", self.lab, self.suffix);
        String::from_utf8_lossy(&list.stdout).lines().filter(|line| line.starts_with(&prefix)).count()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.lab("down", &[]);
    }
}

fn srdma(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).args(arguments).output().expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn impossible_requests_are_refused() {
    let output = srdma(&["lab", "run", "no-such-lab"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "srdma: there is no lab no-such-lab and no such file: shipped labs are ";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
    let output = srdma(&["lab", "run", "figure1", "--loss", "N6-N7=0.1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("srdma: --loss: there is no link N6-N7: links are S1-N6, "),
        "{}",
        stderr(&output)
    );
    let output = srdma(&["lab", "run", "figure1", "--compare", "unicast"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "srdma: --compare needs RDMA guests, and S1 of lab figure1 has the software endpoint";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
    let output = srdma(&["lab", "status", "figure1", "--instance", "is-not-up"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("srdma: lab figure1-is-not-up is not up"), "{}", stderr(&output));
}

#[test]
#[ignore = "needs root"]
fn up_and_down_twice_leave_no_resources() {
    let instance = Instance::of("figure1");
    for _ in 0..2 {
        let output = instance.lab("up", &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(instance.namespaces(), 13);
        let output = instance.lab("up", &[]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let status = instance.lab("status", &["--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("the status is JSON");
        let processes: Vec<&Value> =
            status["nodes"].as_array().unwrap().iter().flat_map(|node| node["processes"].as_array().unwrap()).collect();
        assert_eq!(processes.len(), 11, "five receivers and six nodes: {status}");
        assert!(processes.iter().all(|process| process["is_running"] == true), "{status}");
        let output = instance.lab("shell", &["N6", "--", "ip", "-6", "route", "get", "2001:db8:bb::5"]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("dev n5"), "{output:?}");
        let output = instance.lab("down", &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(instance.namespaces(), 0);
    }
    let output = instance.lab("down", &[]);
    assert!(output.status.success() && stderr(&output).ends_with("is not up\n"), "{}", stderr(&output));
}

#[test]
#[ignore = "needs root"]
fn down_cleans_up_after_a_lab_that_was_killed() {
    let instance = Instance::of("figure1");
    let arguments = ["lab", "run", "figure1", "--instance", &instance.suffix, "--size", "1GiB", "--rate", "10M"];
    let mut lab = Command::new(env!("CARGO_BIN_EXE_srdma")).args(arguments).spawn().expect("the program runs");
    let begin = std::time::Instant::now();
    while instance.namespaces() < 13 {
        assert!(begin.elapsed().as_secs() < 60, "the lab does not come up");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    lab.kill().expect("it runs");
    lab.wait().expect("it has been killed");
    let output = instance.lab("down", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(instance.namespaces(), 0);
}

/// MT-5.2-1, D7, D27
#[test]
#[ignore = "needs root"]
fn every_receiver_of_figure_1_has_the_data() {
    for operation in ["write", "send"] {
        for list in ["tlv", "provisioned"] {
            let result = Instance::of("figure1").run(4 << 20, &["--op", operation, "--list", list]);
            let acknowledgements = |name: &str, way: &str| {
                let node = result["nodes"].as_array().unwrap().iter().find(|node| node["name"] == name).unwrap();
                node[way].as_u64().unwrap()
            };
            // Five answers have become one.
            let of_receivers: u64 = ["N1", "N2", "N3"].map(|edge| acknowledgements(edge, "acks_received")).iter().sum();
            let seen = result["source"]["acks_received"].as_u64().unwrap();
            assert_eq!(seen, acknowledgements("N6", "acks_sent"), "{result}");
            assert!(seen * 3 < of_receivers, "{result}");
        }
    }
}

/// D246: receivers at the headend, at a node that replicates, and at an edge, with loss that the nodes repair and without.
#[test]
#[ignore = "needs root"]
fn every_receiver_of_a_collapsed_spine_has_the_data() {
    for (operation, list) in [("write", "tlv"), ("send", "provisioned")] {
        let result = Instance::of("collapsed-spine").run(4 << 20, &["--op", operation, "--list", list]);
        let nodes = result["nodes"].as_array().expect("nodes");
        let of = |name: &str, key: &str| nodes.iter().find(|node| node["name"] == name).expect("a node")[key].clone();
        let behaviors = ["L2", "L3"].map(|name| of(name, "sids")[0]["behavior"].clone());
        assert_eq!(behaviors, ["End.Replicate", "End.MT"], "{result}");
        assert_eq!(result["source"]["acks_received"], of("L1", "acks_sent"), "{result}");
    }
    let lossy = ["L1-R1", "L1-L2", "L2-R2", "L2-L3", "L3-R4"].map(|link| ["--loss".to_owned(), format!("{link}=0.01")]);
    let lossy: Vec<&str> = lossy.iter().flatten().map(String::as_str).collect();
    let result = Instance::of("collapsed-spine").run(4 << 20, &lossy);
    for node in result["nodes"].as_array().expect("nodes") {
        assert!(
            node["repair"]["packets_resent"].as_u64().expect("a count") > 0,
            "each has lossy links below: {result}"
        );
    }
    Instance::of("collapsed-spine").run(1 << 20, &["--restart", "L2", "--rate", "S1-L1=40M"]);
}

#[test]
#[ignore = "needs root"]
fn every_driver_carries_the_data() {
    for (driver, name) in
        [("af_packet", "AF_PACKET"), ("af_xdp", "AF_XDP native"), ("af_xdp_generic", "AF_XDP generic")]
    {
        let result = Instance::of("figure1").run(4 << 20, &["--driver", driver]);
        for node in result["nodes"].as_array().unwrap() {
            assert_eq!(node["drivers"], serde_json::json!([name]), "{node}");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn losses_are_repaired() {
    let result = Instance::of("figure1").run(4 << 20, &["--loss", "N4-N1=0.01", "--loss", "N3-R5=0.01"]);
    let lost = |name: &str| {
        let link = result["links"].as_array().unwrap().iter().find(|link| link["name"] == name).unwrap();
        link["lost_packets"].as_u64().unwrap()
    };
    assert!(lost("N4-N1") + lost("N3-R5") > 0, "a thousand packets passed each of them: {result}");
    assert_eq!(lost("N6-N4"), 0, "{result}");
    assert!(result["source"]["retransmissions"].as_u64().unwrap() > 0, "{result}");
}

/// D150: with 1 % loss on every link the nodes send again what was lost, and the source what was lost on its own link
/// and what no node has in time.
#[test]
#[ignore = "needs root"]
fn the_tree_repairs_losses() {
    let result = Instance::of("figure1-lossy").run(8 << 20, &[]);
    let links = result["links"].as_array().expect("links");
    let lost_on = |link: &&Value| link["lost_packets"].as_u64().expect("a count");
    assert!(links.iter().all(|link| lost_on(&link) > 0), "thousands of frames passed each of them: {result}");
    let nodes = result["nodes"].as_array().expect("nodes");
    let count = |name: &str| -> Vec<u64> { nodes.iter().filter_map(|node| node["repair"][name].as_u64()).collect() };
    let resent = count("packets_resent");
    assert_eq!(resent.len(), 6, "every node repairs: {result}");
    assert!(resent.iter().all(|resent| *resent > 0), "each has lossy links below: {result}");
    assert!(count("requests_sent").iter().sum::<u64>() > 0, "{result}");
    // Losses below the root cost the source nothing: it is sent NAKs for what was lost on its own link alone, without
    // repair for losses on each of the eleven. Some are repeated, where it is slow to go back on a busy machine. A NAK or
    // a timeout costs it its window of 128 packets at most.
    let own = links.iter().find(|link| link["name"] == "S1-N6").expect("the source's link");
    let source = |name: &str| result["source"][name].as_u64().expect("a count");
    let (naks, given_up) = (source("naks_received"), count("gaps_given_up").iter().sum::<u64>());
    assert!(naks <= 2 * lost_on(&own) + given_up, "{naks} NAKs: {result}");
    assert!(source("retransmissions") <= 128 * (naks + source("timeouts")), "{result}");
}

/// D17
#[test]
#[ignore = "needs root"]
fn a_killed_and_restarted_node_costs_no_octet() {
    for node in ["N4", "N1", "N6"] {
        Instance::of("figure1").run(4 << 20, &["--restart", node, "--rate", "S1-N6=40M"]);
    }
}

/// Nodes of three data threads, which hand packets of the group over to each other (D208): with loss, with the flows of
/// a port spread over all of them, and with a port received by one of them.
#[test]
#[ignore = "needs root"]
fn a_group_crosses_nodes_of_several_data_threads() {
    for driver in ["af_packet", "auto"] {
        let arguments = ["--workers", "3", "--driver", driver, "--loss", "N6-N5=0.01"];
        Instance::of("figure1").run(1 << 20, &arguments);
    }
}

/// The packets in the captures are undamaged, by our dissection and by tshark.
#[test]
#[ignore = "needs root"]
fn captures_have_no_damaged_packets() {
    let directory = tempfile::tempdir().unwrap();
    let instance = Instance::of("figure1");
    let result = instance.run(256 << 10, &["--pcap", directory.path().to_str().unwrap()]);
    for link in result["links"].as_array().unwrap() {
        let name = link["name"].as_str().unwrap();
        let path = directory.path().join(format!("{name}.pcapng"));
        check_decoded(&path);
        check_by_tshark(&path);
    }
}

fn check_decoded(path: &Path) {
    let output = srdma(&["decode", "--json", path.to_str().unwrap()]);
    assert!(output.status.success(), "{path:?}: {}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let packets: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(packets.iter().any(|packet| packet["icrc"] == "ok"), "{path:?} has no RoCEv2 packet");
    for packet in packets {
        let icrc = packet["icrc"].as_str().expect("a verdict");
        assert!(icrc != "bad" && packet["error"].is_null(), "{path:?}: {packet}");
    }
}

fn check_by_tshark(path: &Path) {
    let filter = "_ws.malformed";
    let output = Command::new("tshark").arg("-r").arg(path).args(["-Y", filter]).output().expect("tshark runs");
    assert!(output.status.success(), "{path:?}: {}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{path:?}");
}
