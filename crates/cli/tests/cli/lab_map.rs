//! `srdma map` over Linux routers with NEXT-CSID: two leaves and two spines, configured by `srdma plan provision`; links
//! are cut, fail in one direction, and come back (D256).

use crate::signals;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use srdma_io::namespace::{Namespace, NamespaceGuard, VethEnd, unique_name, veth};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

const FABRIC: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n";
const LINKS: [(&str, &str); 6] = [
    ("h1.1", "leaf1"),
    ("h2.1", "leaf2"),
    ("leaf1", "spine1"),
    ("leaf1", "spine2"),
    ("leaf2", "spine1"),
    ("leaf2", "spine2"),
];

/// Maximum time to wait for an event.
const PATIENCE: Duration = Duration::from_secs(60);

/// The fabric in namespaces of its own.
struct Fabric {
    devices: BTreeMap<&'static str, NamespaceGuard>,
    file: PathBuf,
    directory: tempfile::TempDir,
}

impl Fabric {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("fabric.toml");
        fs::write(&file, FABRIC).expect("the fabric is written");
        let prefix = unique_name("srdma-map");
        let names = ["h1.1", "h2.1", "leaf1", "leaf2", "spine1", "spine2"];
        let created = names.map(|name| {
            let namespace = Namespace::create(&format!("{prefix}-{name}")).expect("a namespace").guarded();
            namespace.run(&["ip", "link", "set", "lo", "up"]).expect("lo is up");
            (name, namespace)
        });
        let fabric = Fabric { devices: created.into(), file, directory };
        for (one, other) in LINKS {
            let end =
                |at: &str, interface| VethEnd { namespace: &fabric.devices[at], interface, mac: None, addresses: &[] };
            veth(1500, [end(one, other), end(other, one)]).expect("a link");
        }
        names.into_iter().for_each(|name| fabric.configure(name));
        fabric
    }

    /// Configures a device; may be repeated.
    fn configure(&self, name: &str) {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["plan", "provision", "--format", "linux", "--device", name]);
        // SIDs are bound to an interface that no test cuts at this end.
        let at = match name {
            "h1.1" => "leaf1",
            "h2.1" => "leaf2",
            "leaf1" => "h1.1",
            "leaf2" => "h2.1",
            _ => "leaf1",
        };
        srdma.args(["--sid-device", at, "--fabric"]);
        let output = srdma.arg(&self.file).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let script = self.directory.path().join(name);
        fs::write(&script, output.stdout).expect("the script is written");
        self.devices[name].run(&["sh", "-e", script.to_str().expect("UTF-8")]).expect("the device is configured");
    }

    /// Takes down the end of a link at a device.
    fn cut(&self, at: &str, peer: &str) {
        self.devices[at].run(&["ip", "link", "set", peer, "down"]).expect("the link goes down");
    }

    /// Takes it up. The kernel has removed its routes.
    fn join(&self, at: &str, peer: &str) {
        self.devices[at].run(&["ip", "link", "set", peer, "up"]).expect("the link comes up");
        self.configure(at);
    }

    /// Sends what a device has for another one to a MAC address that no device has: the link fails in one direction.
    fn misdirect(&self, at: &str, peer: &str) {
        let words = "ip -6 neigh replace fe80::2 lladdr 02:00:00:00:00:99 nud permanent dev";
        let words: Vec<&str> = words.split(' ').chain([peer]).collect();
        self.devices[at].run(&words).expect("the neighbour changes");
    }

    /// The end of that.
    fn direct(&self, at: &str, peer: &str) {
        self.devices[at]
            .run(&["ip", "-6", "neigh", "del", "fe80::2", "dev", peer])
            .expect("the neighbour is forgotten");
    }

    fn map(&self, arguments: &[&str]) -> Command {
        let mut srdma = self.devices["h1.1"].command(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["map", "--nic", "h1.1", "--json", "--fabric"]).arg(&self.file).args(arguments);
        srdma
    }

    /// The route to h2.1 for a node, with the denied paths of a list.
    fn route(&self, list: Option<&Path>) -> String {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["plan", "entropy", "--from", "h1.1", "--to", "h2.1", "--route", "--fabric"]).arg(&self.file);
        srdma.args(list.into_iter().flat_map(|list| [OsStr::new("--deny-list"), list.as_os_str()]));
        let output = srdma.output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn list(&self) -> PathBuf {
        self.directory.path().join("denied.json")
    }
}

/// A running mapper.
struct Mapper {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Mapper {
    /// Waits for so many changes, all of this kind; their paths.
    fn changes(&mut self, kind: &str, count: usize) -> Vec<Value> {
        let change = |_| {
            let line = self.lines.next().expect("it runs").expect("a line");
            let event: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(event["event"], kind, "{event}");
            event["path"].clone()
        };
        let mut paths: Vec<Value> = (0..count).map(change).collect();
        paths.sort_by_key(Value::to_string);
        paths
    }

    /// Ends it by SIGTERM; its report and exit code.
    fn end(mut self) -> (Value, Option<i32>) {
        signals::send(Signal::SIGTERM, self.child.id());
        let report = self.lines.next().expect("a report").expect("a line");
        (serde_json::from_str(&report).expect("JSON"), self.child.wait().expect("it ends").code())
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the file of the deny list has this content.
#[track_caller]
fn wait_for_list(fabric: &Fabric, expected: &Value) {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(fabric.list()).unwrap_or_default();
        if serde_json::from_str::<Value>(&text).is_ok_and(|list| list == *expected) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{text}: expected {expected}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// D87, D256: probes come back from the kernel's routers over every path, and nothing is denied.
#[test]
#[ignore = "needs root"]
fn a_sound_fabric_has_no_denied_path() {
    let fabric = Fabric::new();
    let output = fabric.map(&["--duration", "2s", "--timeout", "200ms"]).output().expect("the program runs");
    let report = report(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    // Leaf 1, both spines, and leaf 2 by each.
    assert_eq!((&report["paths"], &report["denied"], &report["failed_links"]), (&json!(5), &json!([]), &json!([])));
    let counters = &report["counters"];
    assert!(counters["probes_returned"].as_u64().expect("a number") > 40, "{report}");
    assert_eq!(counters["probes_foreign"], 0, "{report}");
    assert_eq!(counters["probes_not_sent"], 0, "{report}");
    assert!(report["round_trip_ns"].as_u64().expect("a time") < 100_000_000, "{report}");
}

/// The same by links: the last uA, of the NIC's port, takes off the outer header.
#[test]
#[ignore = "needs root"]
fn probes_by_links_return_over_linux_routers() {
    let fabric = Fabric::new();
    let leaf1 = ["ip", "-6", "route", "add", "5f00:0:e000::/38", "via", "fe80::2", "dev", "leaf1"];
    fabric.devices["h1.1"].run(&leaf1).expect("the uA of leaf 1 are reached");
    let output = fabric.map(&["--links", "--duration", "2s", "--timeout", "200ms"]).output().expect("the program runs");
    let report = report(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!((&report["paths"], &report["denied"]), (&json!(5), &json!([])));
    assert!(report["counters"]["probes_returned"].as_u64().expect("a number") > 40, "{report}");
    assert_eq!(report["counters"]["probes_lost"], 0, "{report}");
}

/// D256: the paths over a cut link are denied, the link is named, steering excludes its value; when it is joined again they
/// are allowed. The same for a link that fails in one direction.
#[test]
#[ignore = "needs root"]
fn a_cut_link_is_denied_and_allowed_again() {
    let fabric = Fabric::new();
    let list = fabric.list();
    let list = list.to_str().expect("UTF-8");
    let options = ["--interval", "50ms", "--timeout", "100ms", "--deny-list", list];
    let mut child = fabric.map(&options).stdout(Stdio::piped()).spawn().expect("the program runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut mapper = Mapper { child, lines };
    wait_for_list(&fabric, &json!({ "nic": "h1.1", "failed_links": [], "denied": [], "excluded": {} }));

    // Far from the host: only the paths to leaf 2 by spine 2 are concerned.
    fabric.cut("spine2", "leaf2");
    assert_eq!(mapper.changes("denied", 1), [json!(["leaf1", "spine2", "leaf2"])]);
    let far = json!({
        "nic": "h1.1",
        "failed_links": ["leaf2-spine2"],
        "denied": [{ "path": ["leaf1", "spine2", "leaf2"], "probe": "5f00:0:1:4802:2:4802:1:0" }],
        "excluded": { "h2.1": [1] },
    });
    wait_for_list(&fabric, &far);
    let route = fabric.route(Some(&fabric.list()));
    assert!(route.contains("denied = [1] }"), "{route}");
    fabric.join("spine2", "leaf2");
    assert_eq!(mapper.changes("allowed", 1), [json!(["leaf1", "spine2", "leaf2"])]);

    // In one direction, above the first leaf: the spine cannot be reached either.
    fabric.misdirect("leaf1", "spine1");
    let both = [json!(["leaf1", "spine1", "leaf2"]), json!(["leaf1", "spine1"])];
    assert_eq!(mapper.changes("denied", 2), both);
    let near = json!({
        "nic": "h1.1",
        "failed_links": ["leaf1-spine1"],
        "denied": [{ "path": ["leaf1", "spine1", "leaf2"], "probe": "5f00:0:1:4801:2:4801:1:0" }],
        "excluded": { "h2.1": [0] },
    });
    wait_for_list(&fabric, &near);
    fabric.direct("leaf1", "spine1");
    assert_eq!(mapper.changes("allowed", 2), both);
    wait_for_list(&fabric, &json!({ "nic": "h1.1", "failed_links": [], "denied": [], "excluded": {} }));

    let (report, code) = mapper.end();
    assert_eq!(code, Some(0), "{report}");
    assert_eq!((&report["counters"]["denied"], &report["counters"]["allowed"]), (&json!(3), &json!(3)));
}

/// D256: without its own link the host has no path; nothing is excluded then, and the exit code says so.
#[test]
#[ignore = "needs root"]
fn a_host_without_its_link_excludes_nothing() {
    let fabric = Fabric::new();
    fabric.cut("h1.1", "leaf1");
    let list = fabric.list();
    let list = list.to_str().expect("UTF-8");
    let options = ["--duration", "3s", "--deny-list", list];
    let output = fabric.map(&options).output().expect("the program runs");
    let report = report(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report["failed_links"], json!(["h1.1-leaf1"]), "{report}");
    assert_eq!(report["denied"].as_array().map(Vec::len), Some(2), "{report}");
    assert!(report["counters"]["probes_not_sent"].as_u64() >= Some(15), "{report}");
    let list: Value = serde_json::from_str(&fs::read_to_string(list).expect("the list")).expect("JSON");
    assert_eq!(list["excluded"], json!({}));
}

/// What is wrong with the arguments is named; none of it needs root.
#[test]
fn refusals_name_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("fabric.toml");
    fs::write(&file, FABRIC).expect("the fabric is written");
    let file = file.to_str().expect("UTF-8");
    let refused = |arguments: &[&str]| {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.arg("map").args(arguments).output().expect("the program runs");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert!(refused(&["--fabric", "nowhere.toml", "--nic", "h1.1"]).contains("cannot read nowhere.toml"));
    assert!(refused(&["--fabric", file, "--nic", "h9"]).contains("--nic h9: no such NIC in this fabric"));
    assert!(refused(&["--fabric", file, "--nic", "leaf1"]).contains("--nic leaf1: a switch; expected a NIC"));
    let address = ["--fabric", file, "--nic", "h1.1", "--address", "2001:db8:ffff::9"];
    assert!(refused(&address).contains("cannot receive probes at [2001:db8:ffff::9]:1021"), "{}", refused(&address));
    assert!(refused(&["--fabric", file, "--nic", "h1.1", "--interval", "5"]).contains("expected a number and one of"));
}

/// A node with a host behind it, on the NIC of the mapper. It probes nothing itself.
struct RunningNode {
    child: Child,
    socket: PathBuf,
}

impl RunningNode {
    fn start(fabric: &Fabric, host: &Namespace) -> Self {
        let nic: &Namespace = &fabric.devices["h1.1"];
        let end = |namespace, interface| VethEnd { namespace, interface, mac: None, addresses: &[] };
        veth(1500, [end(nic, "host"), end(host, "nic")]).expect("a link");
        nic.run(&["ip", "-6", "address", "add", "fe80::1/64", "dev", "host", "nodad"]).expect("an address");
        for words in [
            "ip -6 address add 2001:db8:aa::1/64 dev nic nodad",
            "ip -6 address add fe80::2/64 dev nic nodad",
            "ip -6 route add default via fe80::1 dev nic",
        ] {
            host.run(&words.split(' ').collect::<Vec<_>>()).expect("the host is configured");
        }
        let socket = fabric.directory.path().join("node.sock");
        let list = fabric.list();
        let file = format!(
            "[node]\nloopback = '2001:db8:ff:1::1'\nforwards = ['2001:db8:2:1::/64']\n[daemon]\nstatus = '{}'\n\
             [[port]]\nname = 'host'\n[[port]]\nname = 'leaf1'\n\
             [steering]\nprobes = false\ndeny_list = {{ file = '{}', nic = 'h1.1' }}\n{}",
            socket.display(),
            list.display(),
            fabric.route(None)
        );
        let config = fabric.directory.path().join("node.toml");
        fs::write(&config, file).expect("the configuration is written");
        let mut srdma = nic.command(env!("CARGO_BIN_EXE_srdma"));
        let child = srdma.args(["node", "--config"]).arg(&config).spawn().expect("the program runs");
        let node = RunningNode { child, socket };
        let start = Instant::now();
        while node.status().is_none() {
            assert!(start.elapsed() < PATIENCE, "the node does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        node
    }

    fn status(&self) -> Option<Value> {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.args(["status", "--json"]).arg(&self.socket).output().expect("the program runs");
        serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success())
    }

    /// Waits until the paths to h2.1, by spine 1 and spine 2, are denied or not.
    #[track_caller]
    fn wait_for_denied(&self, expected: [bool; 2]) {
        let start = Instant::now();
        loop {
            let status = self.status().expect("a status");
            let paths = status["steering"]["destinations"][0]["paths"].as_array().expect("paths");
            if paths.iter().map(|path| path["state"] == "denied").eq(expected) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{paths:?}: expected {expected:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Flows of the host to h2.1, one for each source port, and what of them arrives.
struct Flows {
    senders: Vec<UdpSocket>,
    receiver: UdpSocket,
}

impl Flows {
    const COUNT: usize = 32;

    fn new(fabric: &Fabric, host: &Namespace) -> Self {
        let bound = |namespace: &Namespace, address: &str| {
            namespace.enter(|| UdpSocket::bind(address).expect("a socket")).expect("in the namespace")
        };
        let receiver = bound(&fabric.devices["h2.1"], "[2001:db8:2:1::2]:7000");
        receiver.set_nonblocking(true).expect("a socket that does not wait");
        Flows { senders: (0..Self::COUNT).map(|_| bound(host, "[2001:db8:aa::1]:0")).collect(), receiver }
    }

    /// Sends a datagram of each flow; the number that arrives.
    fn send(&self) -> usize {
        for sender in &self.senders {
            sender.send_to(b"srdma", "[2001:db8:2:1::2]:7000").expect("it is sent");
        }
        std::thread::sleep(Duration::from_millis(200));
        let mut octets = [0; 16];
        std::iter::from_fn(|| self.receiver.recv(&mut octets).ok()).count()
    }
}

/// D241, D256: the flows of a running node leave the path that the mapper denies, without a reload, and none is lost; when
/// the path is allowed again the node may use it.
#[test]
#[ignore = "needs root"]
fn flows_of_a_running_node_leave_denied_paths() {
    let fabric = Fabric::new();
    let host = Namespace::create(&unique_name("srdma-map-host")).expect("a namespace").guarded();
    host.run(&["ip", "link", "set", "lo", "up"]).expect("lo is up");
    let list = fabric.list();
    let options = ["--interval", "50ms", "--timeout", "100ms", "--deny-list", list.to_str().expect("UTF-8")];
    let node = RunningNode::start(&fabric, &host);
    let flows = Flows::new(&fabric, &host);
    let start = Instant::now();
    while flows.send() < Flows::COUNT {
        assert!(start.elapsed() < PATIENCE, "neighbours are not resolved");
    }
    fabric.cut("spine2", "leaf2");
    let arrived = flows.send();
    assert!((1..Flows::COUNT).contains(&arrived), "{arrived}: flows take both spines, one of which is dead");

    let mut child = fabric.map(&options).stdout(Stdio::piped()).spawn().expect("the program runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut mapper = Mapper { child, lines };
    assert_eq!(mapper.changes("denied", 1), [json!(["leaf1", "spine2", "leaf2"])]);
    node.wait_for_denied([false, true]);
    flows.send();
    assert_eq!(flows.send(), Flows::COUNT, "no flow takes the dead path");

    fabric.join("spine2", "leaf2");
    assert_eq!(mapper.changes("allowed", 1), [json!(["leaf1", "spine2", "leaf2"])]);
    node.wait_for_denied([false, false]);
    assert_eq!(flows.send(), Flows::COUNT);

    // A list that is none is refused by name, and the one before stays.
    drop(mapper);
    fs::write(&list, "{}").expect("written");
    let start = Instant::now();
    loop {
        let status = node.status().expect("a status");
        let error = status["configuration"]["last_reload"]["error"].as_str().unwrap_or_default();
        if error.contains("no deny list of srdma map") {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{}", status["configuration"]);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(flows.send(), Flows::COUNT);
}
