//! Nodes and FRR's isisd: routes come from IS-IS alone. The lab `isis-frr` has FRR between two nodes.

mod area;
mod frr_outage;
mod lan;
mod levels;
mod ring;

use crate::own_lab::{Lab, wait_until};
use crate::signals;
use nix::sys::signal::Signal;
use serde_json::Value;
use srdma_capture::Reader;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The locators that F learns, from N1 and N2 alone.
pub(crate) const LOCATORS: [&str; 2] = ["5f00:0:1::/48", "5f00:0:2::/48"];

/// MAC addresses of the interfaces toward F, and of those that F has.
pub(crate) const N1_TO_F: [u8; 6] = [0x02, 0x5D, 0, 0, 1, 1];
pub(crate) const F_TO_N1: [u8; 6] = [0x02, 0x5D, 0, 0, 1, 2];
pub(crate) const F_TO_N2: [u8; 6] = [0x02, 0x5D, 0, 0, 2, 1];
pub(crate) const N2_TO_F: [u8; 6] = [0x02, 0x5D, 0, 0, 2, 2];

impl Lab {
    /// The BFD sessions of a node that are up.
    fn sessions_up(&self, node: &str) -> usize {
        let sessions = self.status(node)["bfd"].clone();
        sessions.as_array().expect("sessions").iter().filter(|session| session["state"] == "up").count()
    }

    /// The output of `srdma isis show` for a node.
    fn show(&self, node: &str, what: &str) -> Value {
        self.show_of("isis", node, what)
    }

    /// The output of a protocol's `show` for a node.
    pub(crate) fn show_of(&self, protocol: &str, node: &str, what: &str) -> Value {
        let socket = self.state().join("node").join(node).with_extension("sock");
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.args([protocol, "show", what, "--json"]).arg(socket).output().expect("the program runs");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    pub(crate) fn runs(&self, node: &str, line: &str) -> Output {
        let words = line.split_whitespace();
        Command::new("ip").args(["netns", "exec", &self.namespace(node)]).args(words).output().expect("ip runs")
    }

    /// The output of a command in the namespace of a node.
    pub(crate) fn inside(&self, node: &str, line: &str) -> String {
        let output = self.runs(node, line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The prefixes that a kernel has of a protocol's routes.
    pub(crate) fn routes(&self, node: &str, protocol: &str) -> BTreeSet<String> {
        let routes = self.inside(node, &format!("ip -6 route show proto {protocol}"));
        routes.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    }

    /// Whether N2 handles notifications, and which of its SIDs N1 uses for them.
    fn used_sids(&self) -> (bool, Vec<String>) {
        let nodes = self.show("N1", "sids")["nodes"].clone();
        let of_n2 = nodes.as_array().expect("nodes").iter().find(|node| node["hostname"] == "N2").expect("N2").clone();
        let used = of_n2["sids"].as_array().expect("SIDs").iter().filter(|sid| sid["is_used"] == true);
        let sids = used.map(|sid| sid["sid"].as_str().expect("a SID").to_owned()).collect();
        (of_n2["handles_notifications"] == true, sids)
    }

    /// Changes the configuration of a node, which notices by itself.
    pub(crate) fn configure(&self, node: &str, from: &str, to: &str) {
        let file = self.state().join("node").join(node).with_extension("toml");
        let text = fs::read_to_string(&file).expect("a configuration");
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replace(from, to)).expect("written");
    }

    /// Waits until both nodes have their adjacency, and all three have routes to the locators of others.
    fn converges(&self) {
        let has = |node: &str, protocol, locators: &[&str]| {
            locators.iter().all(|locator| self.routes(node, protocol).contains(*locator))
        };
        let is_up = |node: &str| self.show(node, "neighbors")["circuits"][0]["state"] == "up";
        let is_through = || {
            ["N1", "N2"].iter().all(|node| is_up(node))
                && has("F", "isis", &LOCATORS)
                && has("N1", "201", &LOCATORS[1..])
                && has("N2", "201", &LOCATORS[..1])
        };
        let what = || format!("{}{}", self.show("N1", "neighbors"), self.inside("F", "ip -6 route"));
        wait_until(is_through, what);
    }

    /// Starts a daemon of FRR as the lab does.
    pub(crate) fn start_frr(&self, daemon: &str) {
        let directory = self.state().join(FRR);
        let directory = directory.display();
        self.inside(
            "F",
            &format!(
                "/usr/lib/frr/{daemon} -d -P 0 -f {directory}/frr.conf -i {directory}/{daemon}.pid \
                 -z {directory}/zserv --vty_socket {directory} --log file:{directory}/{daemon}.log"
            ),
        );
    }

    /// Kills a daemon of FRR in a directory of the lab's.
    pub(crate) fn kill_frr(&self, directory: &str, daemon: &str) {
        kill(self.frr_pid(directory, daemon));
    }
}

/// The directory of F.
pub(crate) const FRR: &str = "frr";

/// Kills a process, and waits until it is gone.
pub(crate) fn kill(pid: u32) {
    signals::send(Signal::SIGKILL, pid);
    wait_until(|| !Path::new("/proc").join(pid.to_string()).exists(), || format!("{pid} does not end"));
}

/// The LSPs at level 2 that a MAC address sends in a capture, without their lifetime, which each system counts down: by
/// ISO 10589 sections 9.5 and 9.9, read here without our own parser.
fn lsps(capture: &Path, source: [u8; 6]) -> BTreeSet<Vec<u8>> {
    let frames = Reader::open(capture).expect("a capture").map(|packet| packet.expect("a packet").octets);
    let is_lsp = |frame: &Vec<u8>| frame[6..12] == source && frame[14..18] == [0xFE, 0xFE, 3, 0x83] && frame[21] == 20;
    let pdu = |frame: Vec<u8>| {
        let length = usize::from(u16::from_be_bytes([frame[25], frame[26]]));
        let mut pdu = frame[17..17 + length].to_vec();
        pdu[10..12].fill(0);
        pdu
    };
    frames.filter(|frame| frame.len() > 44 && is_lsp(frame)).map(pdu).collect()
}

/// Those of one system.
fn of_system(lsps: &BTreeSet<Vec<u8>>, last: u8) -> BTreeSet<Vec<u8>> {
    lsps.iter().filter(|pdu| pdu[12..18] == [0, 0, 0, 0, 0, last]).cloned().collect()
}

pub(crate) fn tshark(capture: &Path, filter: &str) -> usize {
    let output = Command::new("tshark").arg("-r").arg(capture).args(["-Y", filter]).output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().count()
}

/// Data go through tunnels between the nodes, by locators that F has learnt from what it does not understand.
#[test]
#[ignore = "needs root"]
fn data_go_by_learnt_locators() {
    let lab = Lab::new("isis-frr", &[]);
    let captures = lab.captures();
    let output = lab.command("run", &["--json", "--keep", "--pcap", captures.to_str().expect("UTF-8")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert_eq!(result["receivers"][0]["is_identical"], true, "{stderr}{result}");
    for link in ["N1-F", "F-N2"] {
        let capture = lab.capture(link);
        assert!(tshark(&capture, "ipv6.dst == 5f00:0:2:d6:: || ipv6.dst == 5f00:0:1:d6::") > 100, "{link}");
        assert_eq!(tshark(&capture, "isis && _ws.malformed"), 0, "{link}");
    }
    lab.converges();
    assert_eq!(lab.used_sids(), (true, vec!["5f00:0:2:c000::".to_owned(), "5f00:0:2:d000::".to_owned()]));

    // The flag disappears and the SIDs stay (D65): one event for that, and one for its return.
    lab.configure("N2", "congestion_notification = true", "congestion_notification = false");
    wait_until(|| lab.used_sids() == (false, Vec::new()), || format!("{:?}", lab.used_sids()));
    lab.configure("N2", "congestion_notification = false", "congestion_notification = true");
    wait_until(|| lab.used_sids().1.len() == 2, || format!("{:?}", lab.used_sids()));
    let log = fs::read_to_string(lab.state().join("log/N1.log")).expect("a log");
    assert_eq!(log.matches("END.C or END.E is announced without the C-flag").count(), 1, "{log}");
}

/// What makes the lab multi-topology.
const MULTI_TOPOLOGY: [(&str, &str); 2] = [
    (" is-type level-2-only\n", " is-type level-2-only\n topology ipv6-unicast\n"),
    ("hello = \"300ms\"\n", "hello = \"300ms\"\nmulti_topology = true\n"),
];

/// A MAC address as tshark has it.
fn text(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}

/// RFC 5120, D247: the same in the topology of IPv6, which F announces beside that of IPv4.
#[test]
#[ignore = "needs root"]
fn data_go_by_the_topology_of_ipv6() {
    let lab = Lab::new("isis-frr", &MULTI_TOPOLOGY);
    let output = lab.command("run", &["--json", "--keep"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert_eq!(result["receivers"][0]["is_identical"], true, "{stderr}{result}");
    lab.converges();
    assert_eq!(lab.show("N1", "system")["topology"], 2);
    // All LSPs are sent again.
    let capture = lab.starts_capture();
    lab.kill_frr(FRR, "isisd");
    wait_until(|| lab.show("N1", "neighbors")["circuits"][0]["state"] == "down", || "N1 is up".to_owned());
    lab.start_frr("isisd");
    lab.converges();
    capture.ends();
    for (link, node, frr) in [("N1-F", N1_TO_F, F_TO_N1), ("F-N2", N2_TO_F, F_TO_N2)] {
        let capture = lab.capture(link);
        assert_eq!(tshark(&capture, "isis && _ws.malformed"), 0, "{link}");
        for source in [node, frr].map(text) {
            let has = |what: &str| tshark(&capture, &format!("eth.src == {source} && isis.lsp && {what}")) > 0;
            let of_ipv6 = [222, 229, 237].map(|kind| has(&format!("isis.lsp.clv.type == {kind}")));
            let standard = [22, 236].map(|kind| has(&format!("isis.lsp.clv.type == {kind}")));
            assert_eq!((of_ipv6, standard), ([true; 3], [false; 2]), "{link}, {source}");
            assert!(has("isis.lsp.mtid == 2"), "{link}, {source}");
        }
        assert!(tshark(&capture, &format!("eth.src == {} && isis.hello.clv_mt == 2", text(node))) > 0, "{link}");
    }
}

/// Without a common topology there is no adjacency on a link, and the node says so (RFC 5120 section 3.1).
#[test]
#[ignore = "needs root"]
fn frr_in_the_standard_topology_alone_is_no_neighbour() {
    let lab = Lab::new("isis-frr", &MULTI_TOPOLOGY[1..]);
    assert!(lab.command("up", &[]).status.success());
    let refused = || lab.status("N1")["isis"]["drops"]["hello_other_topology"].as_u64().unwrap_or(0);
    wait_until(|| refused() > 3, || lab.show("N1", "neighbors").to_string());
    assert_eq!(lab.show("N1", "neighbors")["circuits"][0]["state"], "down");
}

/// Routes learnt from F disappear with it, and all of them come back. F floods unknown TLVs unchanged (CN-5.1-1,
/// CN-5.1-2), and tshark finds no malformed packet.
#[test]
#[ignore = "needs root"]
fn frr_may_be_killed_and_floods_our_lsps_as_they_are() {
    let lab = Lab::new("isis-frr", &[]);
    let output = lab.command("up", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    lab.converges();
    let capture = lab.starts_capture();
    lab.kill_frr(FRR, "isisd");
    lab.kill_frr(FRR, "zebra");
    let nothing = BTreeSet::new();
    wait_until(
        || lab.routes("N1", "201") == nothing && lab.routes("N2", "201") == nothing,
        || lab.inside("N1", "ip -6 route"),
    );
    let is_down = || lab.show("N1", "neighbors")["circuits"][0]["state"] == "down";
    wait_until(|| is_down() && lab.show("N1", "routes")["routes"] == serde_json::json!([]), || "N1 is up".to_owned());
    lab.start_frr("zebra");
    lab.start_frr("isisd");
    lab.converges();
    capture.ends();
    let log = fs::read_to_string(lab.state().join("log/N1.log")).expect("a log");
    let count = |text: &str| log.matches(&format!("isis: neighbour {text} port=f neighbour=0000.0000.0003")).count();
    assert_eq!((count("up"), count("down")), (2, 1), "{log}");

    for (from, at, to, by, last) in [("N1-F", N1_TO_F, "F-N2", F_TO_N2, 1), ("F-N2", N2_TO_F, "N1-F", F_TO_N1, 2)] {
        let said = of_system(&lsps(&lab.capture(from), at), last);
        let flooded = of_system(&lsps(&lab.capture(to), by), last);
        assert!(!flooded.is_empty(), "F has flooded nothing of system {last}");
        assert!(flooded.is_subset(&said), "F floods what N{last} has not said");
        // The C-flag, and uN with the structure of F3216.
        let has = |octets: &[u8]| flooded.iter().all(|pdu| pdu.windows(octets.len()).any(|window| window == octets));
        assert!(has(&[25, 2, 0x20, 0]), "SRv6 Capabilities with C");
        assert!(has(&[0, 48, 0x5F, 0, 0, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 1, 4, 32, 16, 0, 80]), "uN");
    }
    for link in ["N1-F", "F-N2"] {
        let capture = lab.capture(link);
        assert!(tshark(&capture, "isis.lsp") > 0 && tshark(&capture, "isis.hello") > 0, "{link}");
        assert_eq!(tshark(&capture, "isis && _ws.malformed"), 0, "{link}");
    }
}
