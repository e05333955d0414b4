//! `srdma conform` at interfaces: our own node, and a Linux router, each in a network namespace beside the tester's.

use crate::signals;
use nix::sys::signal::Signal;
use serde_json::Value;
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_wire::MacAddress;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const SRDMA: &str = env!("CARGO_BIN_EXE_srdma");

/// The longest MTU that a profile needs.
const MTU: u32 = 1500;

/// How long the tester waits for the frames of a step, unless some are missing.
const WAIT: Duration = Duration::from_millis(100);

/// A device and the tester, linked by a veth for each port: `c-PORT` on either side.
struct Bench {
    device: NamespaceGuard,
    tester: NamespaceGuard,
    ports: &'static [&'static str],
}

impl Bench {
    /// With the MAC addresses that profiles have by default.
    fn new(ports: &'static [&'static str]) -> Self {
        let [device, tester] = [0, 1].map(|_| NamespaceGuard::unique("srdma-c").expect("a namespace"));
        device.set("ipv6/conf/all/forwarding", "1").expect("forwarding");
        for setting in ["all", "default"] {
            tester.set(&format!("ipv6/conf/{setting}/disable_ipv6"), "1").expect("no IPv6 of the tester's own");
        }
        for (port, number) in ports.iter().zip(1..) {
            let interface = format!("c-{port}");
            let end = |namespace, side| VethEnd {
                namespace,
                interface: &interface,
                mac: Some(MacAddress([2, 0, 0, 0, number, side])),
                addresses: &[],
            };
            veth(MTU, [end(&device, 1), end(&tester, 2)]).expect("a link");
        }
        Bench { device, tester, ports }
    }

    /// Runs `ip` in the device's namespace.
    fn ip(&self, line: &str) {
        let words: Vec<&str> = ["ip"].into_iter().chain(line.split_whitespace()).collect();
        self.device.run(&words).expect("Linux takes it");
    }

    /// The report on a profile, and whether all of it passed.
    fn run(&self, profile: &str) -> (Value, bool) {
        let mut command = self.tester.command(SRDMA);
        command.args(["conform", "run", profile, "--json", "--wait", &format!("{}ms", WAIT.as_millis())]);
        for port in self.ports {
            command.arg("--interface").arg(format!("{port}=c-{port}"));
        }
        let output = command.output().expect("the tester runs");
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (report, output.status.success())
    }
}

/// Ports of the profile `rfc8986`; the last one is for frames.
const RFC8986: &[&str] = &["up", "down", CIRCUIT];
const CIRCUIT: &str = "circuit";

/// A node that is ended with this value.
struct Node(Child);

/// Whether the node forwards by its fast path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FastPath {
    Off,
    On,
}

impl Node {
    /// Our node with a profile's configuration, when it is ready.
    fn start(
        bench: &Bench,
        profile: &str,
        data_threads: DataThreads,
        fast_path: FastPath,
    ) -> (Self, tempfile::TempDir) {
        let described = Command::new(SRDMA).args(["conform", "describe", profile, "--node-toml"]).output();
        let mut configuration = String::from_utf8(described.expect("described").stdout).expect("UTF-8");
        for port in bench.ports {
            let name = format!("name = \"{port}\"\n");
            let driver = data_threads.driver;
            let lines = format!("{name}interface = \"c-{port}\"\ndriver = \"{driver}\"\n");
            configuration = configuration.replace(&name, &lines);
        }
        if bench.ports.contains(&CIRCUIT) {
            bench.device.set(&format!("ipv6/conf/c-{CIRCUIT}/disable_ipv6"), "1").expect("a link of frames alone");
        }
        let directory = tempfile::tempdir().expect("a directory");
        let [file, log] = ["node.toml", "log"].map(|name| directory.path().join(name));
        let socket = directory.path().join("node.sock");
        let (workers, is_fast) = (data_threads.count, fast_path == FastPath::On);
        let socket = socket.display();
        configuration += &format!("\n[daemon]\nstatus = \"{socket}\"\nworkers = {workers}\nfast_path = {is_fast}\n");
        fs::write(&file, configuration).expect("written");
        // It has HMAC keys.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("private");
        let mut command = bench.device.command(SRDMA);
        command.args(["node", "--config"]).arg(&file).stdin(Stdio::null());
        command.stderr(fs::File::create(&log).expect("a log"));
        let node = Node(command.spawn().expect("the node runs"));
        let begin = Instant::now();
        while !fs::read_to_string(&log).expect("a log").lines().any(|line| line.ends_with(" node: ready")) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{}", fs::read_to_string(&log).expect("a log"));
            thread::sleep(Duration::from_millis(20));
        }
        (node, directory)
    }

    fn signal(&self, signal: Signal) {
        signals::send(signal, self.0.id());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The data threads of our node, and how they receive.
#[derive(Clone, Copy)]
struct DataThreads {
    count: u16,
    driver: &'static str,
}

const ONE: DataThreads = DataThreads { count: 1, driver: "auto" };

/// Flows are spread over them, or each port is received by one of them.
const SEVERAL: [DataThreads; 2] =
    [DataThreads { count: 3, driver: "af_packet" }, DataThreads { count: 3, driver: "auto" }];

fn our_node_passes(profile: &str, ports: &'static [&'static str]) {
    our_node_passes_with(profile, ports, ONE);
}

fn our_node_passes_with(profile: &str, ports: &'static [&'static str], data_threads: DataThreads) {
    let bench = Bench::new(ports);
    let (_node, _directory) = Node::start(&bench, profile, data_threads, FastPath::Off);
    passes(&bench, profile);
}

#[track_caller]
fn passes(bench: &Bench, profile: &str) {
    let (report, passes) = bench.run(profile);
    for case in report["cases"].as_array().expect("cases") {
        assert_eq!(case["verdict"], "pass", "{case:#}");
    }
    assert!(passes);
}

/// The same with the fast path (D235); returns how many frames it has sent.
fn our_node_passes_by_its_fast_path(profile: &str, ports: &'static [&'static str]) -> u64 {
    let bench = Bench::new(ports);
    for port in ports {
        bench.tester.run(&["ethtool", "-K", &format!("c-{port}"), "gro", "on"]).expect("NAPI at the far end");
    }
    let (_node, directory) = Node::start(&bench, profile, ONE, FastPath::On);
    let status = || {
        let socket = directory.path().join("node.sock");
        let output = Command::new(SRDMA).arg("status").arg(socket).arg("--json").output().expect("the status");
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        status["ports"].as_array().expect("ports").clone()
    };
    for port in status() {
        assert_eq!(port["fast_path"]["is_on"], port["name"].as_str().expect("a name") != CIRCUIT, "{port:#}");
    }
    passes(&bench, profile);
    // A snapshot is half a second old at most.
    thread::sleep(Duration::from_secs(1));
    status().iter().filter_map(|port| port["fast_path"]["sent"]["frames"].as_u64()).sum()
}

/// MT-5.2-3, MT-5.3.1-3, MT-5.3.2-4, MT-5.3.3-2 and what else an edge can show, on links.
#[test]
#[ignore = "needs root"]
fn our_edge_passes_on_links() {
    our_node_passes("end-mt", &["up", "down"]);
}

/// MT-3-2, MT-5.3.1-4, MT-5.3.3-4.
#[test]
#[ignore = "needs root"]
fn our_root_and_transit_node_pass_on_links() {
    our_node_passes("end-replicate", &["up", "left", "right"]);
}

/// The same of nodes that have several data threads (D208).
#[test]
#[ignore = "needs root"]
fn our_nodes_of_several_data_threads_pass_on_links() {
    for data_threads in SEVERAL {
        our_node_passes_with("end-mt", &["up", "down"], data_threads);
        our_node_passes_with("end-replicate", &["up", "left", "right"], data_threads);
        our_node_passes_with("usid", &["up", "down"], data_threads);
    }
}

/// PP-4-3, PP-5.2-2, PP-5.2-3.
#[test]
#[ignore = "needs root"]
fn our_router_passes_on_links() {
    our_node_passes("usid", &["up", "down"]);
}

/// A node that gets no processor for longer than a step is waited for: the tester's host may be busy.
#[test]
#[ignore = "needs root"]
fn a_router_that_halts_now_and_then_passes_on_links() {
    let ports = &["up", "down"];
    let bench = Bench::new(ports);
    let (node, _directory) = Node::start(&bench, "usid", ONE, FastPath::Off);
    let (running, over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while over.recv_timeout(WAIT) == Err(RecvTimeoutError::Timeout) {
                node.signal(Signal::SIGSTOP);
                thread::sleep(3 * WAIT);
                node.signal(Signal::SIGCONT);
            }
        });
        let (report, passes) = bench.run("usid");
        drop(running);
        assert!(passes, "{report:#}");
    });
}

/// End.DX6, End.DX2, binding SIDs and frames, with the fast path too, which leaves them to the element (D233-D235, D243).
/// The kernel has no IPv6 on the link of the frames.
#[test]
#[ignore = "needs root"]
fn our_router_passes_rfc8986_on_links() {
    for driver in ["auto", "af_packet"] {
        our_node_passes_with("rfc8986", RFC8986, DataThreads { count: 1, driver });
    }
    assert!(our_node_passes_by_its_fast_path("rfc8986", RFC8986) > 0, "nothing was forwarded by the program");
}

/// PP-4-3, PP-5.2-2, PP-5.2-3 by the fast path, drops and ICMPv6 errors by the element.
#[test]
#[ignore = "needs root"]
fn our_router_passes_on_links_by_its_fast_path() {
    assert!(our_node_passes_by_its_fast_path("usid", &["up", "down"]) > 0, "nothing was forwarded by the program");
}

/// End.DX4, End.DT4, End.DT46, and H.Encaps of IPv4, with the fast path too, which leaves them to the element (D258,
/// D262).
#[test]
#[ignore = "needs root"]
fn our_router_passes_ipv4_on_links() {
    for driver in ["auto", "af_packet"] {
        our_node_passes_with("ipv4", &["up", "down"], DataThreads { count: 1, driver });
    }
    assert_eq!(our_node_passes_by_its_fast_path("ipv4", &["up", "down"]), 0);
}

/// FC-4-1, FC-4-6, FC-5-1: congestion is made by a pause of the link.
#[test]
#[ignore = "needs root"]
fn our_switch_passes_on_links() {
    our_node_passes("fast-cnp", &["hosts", "core", "outside"]);
}

/// CN-4.1-1, CN-4.2-1.
#[test]
#[ignore = "needs root"]
fn our_provider_edge_passes_on_links() {
    our_node_passes("end-c", &["wan", "gateway"]);
    our_node_passes("end-e", &["wan", "dc"]);
}

/// A Linux router between the tester's links. Its End.X and End.DX6 take a next hop only by an address of the link; the
/// MAC address behind it is the tester's, as any.
fn linux_router(bench: &Bench) {
    let settings = ["ipv6/conf/all/seg6_enabled", "ipv6/conf/c-up/seg6_enabled", "ipv6/conf/c-down/seg6_enabled"];
    for setting in settings {
        bench.device.set(setting, "1").expect("seg6");
    }
    bench.device.set("ipv6/icmp/ratelimit", "0").expect("as many errors as there are");
    bench.ip("-6 address add 2001:db8:ff:1::1/128 dev lo nodad");
    bench.ip("sr tunsrc set 2001:db8:ff:1::1");
    bench.ip("-6 address add 2001:db8:99::1/64 dev c-down nodad");
    for (address, port, mac) in [
        ("fe80::9", "c-up", "02:00:00:00:01:02"),
        ("fe80::9", "c-down", "02:00:00:00:02:02"),
        ("2001:db8:99::9", "c-down", "02:00:00:00:02:02"),
    ] {
        bench.ip(&format!("-6 neighbour add {address} lladdr {mac} dev {port} nud permanent"));
    }
}

/// The profile `usid` as routes of a Linux router.
fn add_usid(bench: &Bench) {
    for prefix in ["5f00:0:200::/48", "2001:db8:ff:2::e", "2001:db8:b::1"] {
        bench.ip(&format!("-6 route add {prefix} via fe80::9 dev c-down"));
    }
    for prefix in ["5f00:0:300::/48", "2001:db8:ff:3::e", "2001:db8:a::1", "2001:db8:ff:9::1"] {
        bench.ip(&format!("-6 route add {prefix} via fe80::9 dev c-up"));
    }
    bench.ip("-6 route add 2001:db8:c::1 via fe80::9 dev c-down table 100");
    for (sid, action) in [
        ("5f00:0:100::/48", "End flavors next-csid,psp lblen 32 nflen 16"),
        ("5f00:0:e001::/48", "End.X nh6 2001:db8:99::9 flavors next-csid lblen 32 nflen 16"),
        ("2001:db8:ff:1::e", "End"),
        ("2001:db8:ff:1::f", "End flavors psp"),
        ("2001:db8:ff:1::a", "End.X nh6 2001:db8:99::9"),
        // Linux has no PSP for End.X.
        ("2001:db8:ff:1::1a", "End.X nh6 2001:db8:99::9"),
        ("2001:db8:ff:1::d6", "End.DT6 table 254"),
        ("2001:db8:ff:1::d7", "End.DT6 table 100"),
    ] {
        bench.ip(&format!("-6 route add {sid} encap seg6local action {action} dev c-down"));
    }
    for (host, segments) in [
        ("2001:db8:e1::1", "5f00:0:200:300::"),
        ("2001:db8:e3::1", "2001:db8:ff:2::e,2001:db8:ff:3::e,2001:db8:ff:4::d6"),
    ] {
        bench.ip(&format!("-6 route add {host} encap seg6 mode encap.red segs {segments} dev c-down"));
    }
}

/// The profile `rfc8986` as routes of a Linux router, which has no End.B6.Encaps.Red.
fn add_rfc8986(bench: &Bench) {
    for sid in ["2001:db8:ff:1::b7", "2001:db8:ff:1::b8"] {
        bench.ip(&format!("-6 route add blackhole {sid}"));
    }
    bench.ip("-6 route add 2001:db8:ff:2::e via fe80::9 dev c-down");
    for prefix in ["2001:db8:a::1", "2001:db8:ff:9::1"] {
        bench.ip(&format!("-6 route add {prefix} via fe80::9 dev c-up"));
    }
    for (sid, action) in [
        ("2001:db8:ff:1::d6", "End.DX6 nh6 2001:db8:99::9"),
        ("2001:db8:ff:1::d2", "End.DX2 oif c-circuit"),
        ("2001:db8:ff:1::b6", "End.B6.Encaps srh segs 2001:db8:ff:2::e,2001:db8:ff:4::d6"),
    ] {
        bench.ip(&format!("-6 route add {sid} encap seg6local action {action} dev c-down"));
    }
    for (host, segments) in [
        ("2001:db8:e1::1", "2001:db8:ff:2::e"),
        ("2001:db8:e3::1", "2001:db8:ff:2::e,2001:db8:dead::1,2001:db8:ff:4::d6"),
    ] {
        bench.ip(&format!("-6 route add {host} encap seg6 mode encap segs {segments} dev c-down"));
    }
    let segments = "2001:db8:ff:2::e,2001:db8:ff:4::d6";
    bench.ip(&format!("-6 route add 2001:db8:e2::1 encap seg6 mode l2encap.red segs {segments} dev c-down"));
}

/// Runs a profile against a Linux router: every case that does not pass is a known departure; returns their names, and
/// the report.
fn departures_of_linux(
    profile: &str,
    ports: &'static [&'static str],
    configure: fn(&Bench),
) -> (BTreeSet<String>, Value) {
    let bench = Bench::new(ports);
    linux_router(&bench);
    configure(&bench);
    let (report, passes) = bench.run(profile);
    assert!(!passes);
    let mut names = BTreeSet::new();
    for case in report["cases"].as_array().expect("cases") {
        if case["verdict"].as_str().expect("a verdict") != "pass" {
            let departure = &case["departure"];
            assert_eq!(departure["devices"], "Linux", "{case:#}");
            names.insert(departure["name"].as_str().expect("a name").to_owned());
        }
    }
    (names, report)
}

/// The departures of Linux from the RFCs are found and named, and no others: End, uN, End.X, End.DT6 and H.Encaps.Red
/// conform otherwise.
#[test]
#[ignore = "needs root"]
fn the_departures_of_linux_are_found_and_named() {
    let (names, report) = departures_of_linux("usid", &["up", "down"], add_usid);
    // Those that have been there for as long as these behaviours; others may go with a later kernel.
    for name in ["silent-refusals", "congestion-mark", "inner-hop-limit", "no-usd", "pad1"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    for requirement in ["RFC 8754 4.3.2", "PP-7-2"] {
        let requirements = report["requirements"].as_array().expect("requirements");
        let found = requirements.iter().find(|found| found["id"] == requirement).expect("the requirement");
        assert_eq!(found["verdict"], "pass", "{found}");
    }
}

/// The same for End.DX6, End.DX2, End.B6.Encaps, H.Encaps and H.Encaps.L2.Red.
#[test]
#[ignore = "needs root"]
fn the_departures_of_linux_from_rfc8986_are_found_and_named() {
    let (names, _) = departures_of_linux("rfc8986", RFC8986, add_rfc8986);
    for name in ["silent-refusals", "congestion-mark", "inner-hop-limit", "routed-frames"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}
