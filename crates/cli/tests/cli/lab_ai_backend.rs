//! The lab `ai-backend`: the path placement draft's Figure 1 with Linux routers, and the headers of its section 5.2 on
//! each hop.

use crate::own_lab::Lab;
use crate::packets::{decoded, destinations};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

const FABRIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1.toml");
const ROUTERS: [&str; 6] = ["leaf1", "leaf2", "leaf3", "leaf4", "spine5", "spine6"];

/// Destinations of RoCEv2 packets on each link, by direction: section 5.2 with D80's corrections, the return path by
/// the same nodes (D86), and no packets elsewhere.
const HOPS: [(&str, &str, &str); 24] = [
    ("gpu1-nic1", "gpu1->nic1", "2001:db8:0:3::1"),
    ("nic1-leaf1", "nic1->leaf1", "5f00:0:100:500:300::"),
    ("leaf1-spine5", "leaf1->spine5", "5f00:0:500:300::"),
    ("leaf3-spine5", "spine5->leaf3", "5f00:0:300::"),
    ("nic3-leaf3", "leaf3->nic3", "2001:db8:0:3::1"),
    ("nic3-leaf3", "nic3->leaf3", "5f00:0:300:500:100::"),
    ("leaf3-spine5", "leaf3->spine5", "5f00:0:500:100::"),
    ("leaf1-spine5", "spine5->leaf1", "5f00:0:100::"),
    ("nic1-leaf1", "leaf1->nic1", "2001:db8:0:1::1"),
    ("gpu1-nic1", "nic1->gpu1", "2001:db8:0:1::1"),
    ("gpu2-nic2", "gpu2->nic2", "2001:db8:0:3::3"),
    ("nic2-leaf2", "nic2->leaf2", "5f00:0:200:600:400::"),
    ("leaf2-spine6", "leaf2->spine6", "5f00:0:600:400::"),
    ("leaf4-spine6", "spine6->leaf4", "5f00:0:400::"),
    ("nic3-leaf4", "leaf4->nic3", "2001:db8:0:3::3"),
    ("nic3-leaf4", "nic3->leaf4", "5f00:0:400:600:200::"),
    ("leaf4-spine6", "leaf4->spine6", "5f00:0:600:200::"),
    ("leaf2-spine6", "spine6->leaf2", "5f00:0:200::"),
    ("nic2-leaf2", "leaf2->nic2", "2001:db8:0:2::1"),
    ("gpu2-nic2", "nic2->gpu2", "2001:db8:0:2::1"),
    ("gpu3-nic3", "nic3->gpu3", "2001:db8:0:3::1"),
    ("gpu3-nic3", "nic3->gpu3", "2001:db8:0:3::3"),
    ("gpu3-nic3", "gpu3->nic3", "2001:db8:0:1::1"),
    ("gpu3-nic3", "gpu3->nic3", "2001:db8:0:2::1"),
];

impl Lab {
    /// Transfers with a capture of each link; both receivers have their sources' data.
    fn run_pairs(&self, octets: &str) -> Value {
        let captures = self.captures();
        let options = ["--json", "--size", octets, "--pcap", captures.to_str().expect("UTF-8")];
        let output = self.command("run", &options);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}{}", String::from_utf8_lossy(&output.stdout));
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let second = &result["other_pairs"][0];
        assert_eq!((&result["source_name"], &second["source_name"]), (&"gpu1".into(), &"gpu2".into()));
        for (source, receiver) in
            [(&result["source"], &result["receivers"][0]), (&second["source"], &second["receiver"])]
        {
            assert_eq!((&receiver["name"], &receiver["is_identical"]), (&"gpu3".into(), &true.into()), "{result}");
            assert_eq!(receiver["sha256"], source["sha256"].as_str().expect("a digest"), "{result}");
        }
        let digests = [&result["source"], &second["source"]].map(|of| of["sha256"].as_str().expect("a digest"));
        assert_ne!(digests[0], digests[1], "each source has data of its own");
        result
    }

    /// Compares every link in both directions with where RoCEv2 packets should be.
    fn check_hops(&self, result: &Value, hops: &[(&str, &str, &str)]) {
        for link in result["links"].as_array().expect("links") {
            let name = link["name"].as_str().expect("a name");
            let (a, b) = name.split_once('-').expect("two ends");
            for direction in [format!("{a}->{b}"), format!("{b}->{a}")] {
                let expected: Vec<_> = hops
                    .iter()
                    .filter(|(link, on, _)| *link == name && *on == direction)
                    .map(|(_, _, destination)| ((*destination).to_owned(), None))
                    .collect();
                let found: Vec<_> = destinations(self, name, &direction).into_iter().collect();
                assert_eq!(found, expected, "{direction}");
            }
        }
    }

    fn shell(&self, node: &str, line: &str) -> String {
        let words: Vec<&str> = [node, "--"].into_iter().chain(line.split_whitespace()).collect();
        let output = self.command("shell", &words);
        assert!(output.status.success(), "{node}: {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn routes_of_routers(&self) -> BTreeMap<&'static str, String> {
        ROUTERS.map(|router| (router, self.shell(router, "ip -6 route show table all"))).into()
    }

    fn check(&self) -> Output {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["plan", "provision", "--fabric", FABRIC, "--check", "ai-backend", "--json"]);
        srdma.args(["--instance", &self.suffix]).output().expect("the program runs")
    }

    /// Differences from the plan, by device and prefix.
    fn findings(&self) -> Vec<(String, String, bool)> {
        let output = self.check();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let findings = report["findings"].as_array().expect("findings");
        assert_eq!(output.status.code(), Some(i32::from(!findings.is_empty())));
        assert!(report["checked"].as_u64() > Some(60), "{report}");
        let word = |value: &Value| value.as_str().expect("a string").to_owned();
        let finding =
            |finding: &Value| (word(&finding["device"]), word(&finding["prefix"]), finding["found"].is_null());
        findings.iter().map(finding).collect()
    }
}

/// PP-5.2-1, PP-5.2-2, PP-4-3: on every hop the draft's destination, and no SRH.
#[test]
#[ignore = "needs root"]
fn each_hop_has_the_drafts_destination() {
    let lab = Lab::new("ai-backend", &[]);
    let result = lab.run_pairs("1MiB");
    lab.check_hops(&result, &HOPS);
}

/// PP-5.2-3: the first path by links; the last uA, of the NIC's port, takes off the outer header.
#[test]
#[ignore = "needs root"]
fn linux_follows_programs_by_links() {
    let by_links = [
        (
            "prefix = \"5f00:0:100::/48\"\nvia = [\"fe80::2%leaf1\"]\n\n[[node.config.route]]\nprefix = \"5f00:0:200::/48\"\n\
          via = [\"fe80::2%leaf2\"]\n\n[[node.config.route]]\nprefix = \"2001:db8:0:3::1\"",
            "prefix = \"5f00:0:e002::/48\"\nvia = [\"fe80::2%leaf1\"]\n\n[[node.config.route]]\nprefix = \"5f00:0:200::/48\"\n\
          via = [\"fe80::2%leaf2\"]\n\n[[node.config.route]]\nprefix = \"2001:db8:0:3::1\"",
        ),
        ("5f00:0:100:500:300::", "5f00:0:e002:e002:e000::"),
    ];
    let lab = Lab::new("ai-backend", &by_links);
    let result = lab.run_pairs("1MiB");
    let hops = HOPS.map(|(link, direction, destination)| {
        let destination = match (direction, destination) {
            ("nic1->leaf1", _) => "5f00:0:e002:e002:e000::",
            ("leaf1->spine5", _) => "5f00:0:e002:e000::",
            ("spine5->leaf3", _) => "5f00:0:e000::",
            (_, same) => same,
        };
        (link, direction, destination)
    });
    lab.check_hops(&result, &hops);
}

/// D254, D255: NIC 1 has the template of the paths to GPU 3 and uses the value of leaf 1, spine 6 and leaf 3. Linux
/// forwards by the address that follows; GPU 3 gets sound packets whose port and flow label are the path.
#[test]
#[ignore = "needs root"]
fn packets_tell_the_path_of_their_entropy() {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    srdma.args(["plan", "entropy", "--fabric", FABRIC, "--from", "nic1", "--to", "nic3", "--route", "2"]);
    let route = String::from_utf8(srdma.output().expect("the program runs").stdout).expect("UTF-8");
    let (_, path) = route.split_once("[[route.path]]\n").expect("a path");
    let forwards = "[node.config.node]\nforwards = [\"2001:db8:0:1::/64\"]\n";
    let steering = format!("{forwards}\n[node.config.steering]\nprobes = false\n");
    let prefix = "prefix = \"2001:db8:0:3::1\"\n";
    let explicit = format!("{prefix}encaps = {{ segments = [\"5f00:0:100:500:300::\"] }}\n");
    let template = format!("{prefix}\n[[node.config.route.path]]\n{path}");
    let lab = Lab::new("ai-backend", &[(forwards, &steering), (&explicit, &template)]);
    let result = lab.run_pairs("1MiB");
    let by_spine6 = HOPS.map(|hop| match hop {
        ("nic1-leaf1", "nic1->leaf1", _) => ("nic1-leaf1", "nic1->leaf1", "5f00:0:100:600:300::"),
        (_, "leaf1->spine5", _) => ("leaf1-spine6", "leaf1->spine6", "5f00:0:600:300::"),
        (_, "spine5->leaf3", _) => ("leaf3-spine6", "spine6->leaf3", "5f00:0:300::"),
        other => other,
    });
    lab.check_hops(&result, &by_spine6);
    let received = decoded(&lab.capture("gpu3-nic3"));
    let fields: Vec<(u64, u64)> = received
        .iter()
        .filter(|packet| packet["ipv6"][0]["destination"] == "2001:db8:0:3::1" && packet["icrc"] == "ok")
        .map(|packet| {
            let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{packet}"));
            (number(&packet["udp"]["source_port"]), number(&packet["ipv6"][0]["flow_label"]))
        })
        .collect();
    assert!(fields.len() > 256, "{} packets", fields.len());
    assert!(fields.iter().all(|fields| *fields == (49154, 0x80000)), "{:?}", fields[0]);
}

/// PP-7-2: the printed commands for a tenant, executed at leaf 3: its End.DT6 accepts packets, and uses its own table.
#[test]
#[ignore = "needs root"]
fn linux_separates_tenants() {
    let jobs = tempfile::NamedTempFile::new().expect("a file");
    let text = "[[job]]\nname = \"t\"\ntenant = 7\nnics = [\"nic1\", \"nic3\"]\n\
                [[job.collective]]\nkind = \"send-recv\"\n";
    std::fs::write(jobs.path(), text).expect("the file is written");
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    srdma.args(["plan", "provision", "--fabric", FABRIC, "--format", "linux", "--device", "leaf3"]);
    let output = srdma.args(["--sid-device", "spine5", "--jobs"]).arg(jobs.path()).output().expect("the program runs");
    let script = String::from_utf8(output.stdout).expect("UTF-8");
    let tenants: Vec<&str> = script.lines().filter(|line| line.contains("table 1007")).collect();
    assert_eq!(tenants.len(), 3, "{script}");
    // Without the route in the main table only the tenant's leads to NIC 3.
    let main = "\"ip -6 route replace 2001:db8:0:3::/64 via fe80::1 dev nic3\",\n    \"ip -6 route replace \
                2001:db8:0:4::/64 via fe80::1 dev nic4\",\n    \"ip -6 route replace 5f00:0:100::/48 nexthop via \
                fe80::2 dev spine5 nexthop via fe80::2 dev spine6\",\n    \"ip -6 route replace 5f00:0:200::/48 nexthop \
                via fe80::2 dev spine5 nexthop via fe80::2 dev spine6\",\n    \"ip -6 route replace 5f00:0:400::/48";
    let own = main.replacen("2001:db8:0:3::/64 via fe80::1 dev nic3", &tenants[0]["ip -6 route replace ".len()..], 1);
    let own = own.replacen("\"ip", &format!("\"{}\",\n    \"{}\",\n    \"ip", tenants[1], tenants[2]), 1);
    let program = ("5f00:0:100:500:300::", "5f00:0:100:500:300:f007::");
    let lab = Lab::new("ai-backend", &[(main, &own), program]);
    let result = lab.run_pairs("1MiB");
    let hops = HOPS.map(|(link, direction, destination)| {
        let destination = match direction {
            "nic1->leaf1" => "5f00:0:100:500:300:f007::",
            "leaf1->spine5" => "5f00:0:500:300:f007::",
            "spine5->leaf3" => "5f00:0:300:f007::",
            _ => destination,
        };
        (link, direction, destination)
    });
    lab.check_hops(&result, &hops);
}

/// PP-4-5: transfers leave no state at the routers. PP-4-2: `--check` names a SID that a lab lacks.
#[test]
#[ignore = "needs root"]
fn routers_keep_no_state_and_missing_sids_are_named() {
    let lab = Lab::new("ai-backend", &[]);
    let output = lab.command("run", &["--size", "1MiB", "--keep"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let after = lab.routes_of_routers();
    assert_eq!(lab.findings(), []);
    let fresh = Lab::new("ai-backend", &[]);
    fresh.up();
    assert_eq!(after, fresh.routes_of_routers());

    lab.shell("leaf3", "ip -6 route del 5f00:0:300::/48");
    lab.shell("spine5", "ip -6 route replace 5f00:0:e002::/48 encap seg6local action End dev leaf1");
    lab.shell("leaf2", "ip -6 route replace 5f00:0:500::/48 via fe80::2 dev spine6");
    let expected = [("leaf2", "5f00:0:500::/48", false), ("leaf3", "5f00:0:300::/48", true)]
        .into_iter()
        .chain([("spine5", "5f00:0:e002::/48", false)])
        .map(|(device, prefix, is_missing)| (device.to_owned(), prefix.to_owned(), is_missing));
    assert_eq!(lab.findings(), expected.collect::<Vec<_>>());
}

/// PP-4-6, section 5.3: spine 5 marks, and NIC 1 takes the path by spine 6. All data arrive; NIC 1 sends to the fabric
/// only data, acknowledgements, probes that come back to it (D87), and neighbour discovery: no router gets a message
/// about the path.
#[test]
#[ignore = "needs root"]
fn a_flow_leaves_a_marking_spine_without_signalling() {
    let lab = Lab::new("ai-backend-steered", &[]);
    let result = lab.run_pairs("4MiB");
    let paths = ["5f00:0:100:500:300::", "5f00:0:100:600:300::"].map(|path| (path.to_owned(), None));
    assert_eq!(destinations(&lab, "nic1-leaf1", "nic1->leaf1"), BTreeSet::from(paths));
    let by_spine_6 = destinations(&lab, "leaf3-spine6", "spine6->leaf3");
    assert_eq!(by_spine_6, BTreeSet::from([("5f00:0:300::".to_owned(), None)]));

    let packets = decoded(&lab.capture("nic1-leaf1"));
    let sent: Vec<&Value> = packets.iter().filter(|packet| packet["interface"] == "nic1->leaf1").collect();
    let outer = |packet: &Value| packet["ipv6"][0]["destination"].as_str().unwrap_or_default().to_owned();
    let is_data = |packet: &&&Value| packet["icrc"] == "ok";
    let last = sent.iter().rfind(is_data).expect("data");
    assert_eq!(outer(last), "5f00:0:100:600:300::", "it stays there");
    let first_moved = sent.iter().filter(is_data).position(|packet| outer(packet) == "5f00:0:100:600:300::");
    assert!(first_moved > Some(0), "it begins with the best ranked path");
    let icrc = |packet: &Value| packet["icrc"].as_str().expect("a verdict").to_owned();
    let others: BTreeSet<String> =
        sent.iter().filter(|packet| icrc(packet) != "ok").map(|packet| outer(packet)).collect();
    let is_link_local = |address: &String| address.starts_with("fe80::") || address.starts_with("ff02::");
    let probes: BTreeSet<String> = others.iter().filter(|address| !is_link_local(address)).cloned().collect();
    let loops = ["5f00:0:100:500:300:500:100:0", "5f00:0:100:600:300:600:100:0"].map(str::to_owned);
    assert_eq!(probes, BTreeSet::from(loops), "{others:?}");
    // Also what the kernel itself sends when an interface comes up: router solicitations, and MLD reports.
    let discovery = BTreeSet::from(["133", "135", "136", "143"].map(str::to_owned));
    let to_link_locals = to_link_locals(&lab.capture("nic1-leaf1"));
    assert!(to_link_locals.is_subset(&discovery), "{to_link_locals:?}");
    assert!(result["source"]["error"].is_null(), "{result}");
}

/// PP-4-3, PP-4-6: GPU 1 is its own headend, and takes the path by spine 6 when spine 5 marks; NIC 1 only forwards.
#[test]
#[ignore = "needs root"]
fn a_host_can_be_its_own_headend() {
    let directory = tempfile::tempdir().expect("a directory");
    let paths = directory.path().join("paths.toml");
    let text = "[steering]\nprobe_address = \"2001:db8:0:1::ff\"\nhold = \"60s\"\nhold_most = \"60s\"\n\
                [[path]]\nsegments = [\"5f00:0:100:500:300::\"]\n[[path]]\nsegments = [\"5f00:0:100:600:300::\"]\n";
    std::fs::write(&paths, text).expect("the paths are written");
    let options = format!(
        "options = [\"--raw=nic1\", \"--next-hop-mac={NIC1}\", \"--paths={}\", \"--rate-control=dcqcn\"",
        paths.display()
    );
    let lab = Lab::new(
        "ai-backend-steered",
        &[
            ("options = [\"--rate-control=dcqcn\"", &options),
            ("forwards = [\"2001:db8:0:1::/64\"]", "forwards = [\"2001:db8:0:1::/64\", \"5f00:0:100::/48\"]"),
            (STEERED, "[[node.config.route]]\nprefix = \"2001:db8:0:3::1\"\nvia = [\"fe80::2%leaf1\"]\n"),
        ],
    );
    lab.run_pairs("4MiB");
    let programs = ["5f00:0:100:500:300::", "5f00:0:100:600:300::"].map(|path| (path.to_owned(), None));
    assert_eq!(destinations(&lab, "gpu1-nic1", "gpu1->nic1"), BTreeSet::from(programs.clone()));
    assert_eq!(destinations(&lab, "nic1-leaf1", "nic1->leaf1"), BTreeSet::from(programs));
    let packets = decoded(&lab.capture("gpu1-nic1"));
    let outer = |packet: &Value| packet["ipv6"][0]["destination"].as_str().unwrap_or_default().to_owned();
    let sent = packets.iter().filter(|packet| packet["interface"] == "gpu1->nic1");
    let data: Vec<String> = sent.clone().filter(|packet| packet["icrc"] == "ok").map(outer).collect();
    assert_eq!(data.first().map(String::as_str), Some("5f00:0:100:500:300::"));
    assert_eq!(data.last().map(String::as_str), Some("5f00:0:100:600:300::"));
    assert!(sent.map(outer).any(|destination| destination == "5f00:0:100:600:300:600:100:0"), "paths are probed");
}

/// The MAC address of NIC 1 toward GPU 1.
const NIC1: &str = "02:5d:00:00:00:02";

/// The configuration that makes NIC 1 a headend with steering.
const STEERED: &str = "[node.config.steering]
probe_address = \"2001:db8:0:1::ff\"
hold = \"60s\"
hold_most = \"60s\"

[[node.config.route]]
prefix = \"2001:db8:0:3::1\"

[[node.config.route.path]]
segments = [\"5f00:0:100:500:300::\"]

[[node.config.route.path]]
segments = [\"5f00:0:100:600:300::\"]
";

/// The ICMPv6 types of all packets to link-local addresses, by tshark; anything else has none.
fn to_link_locals(capture: &std::path::Path) -> BTreeSet<String> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-Y", "ipv6.dst == fe80::/10 || ipv6.dst == ff00::/8", "-T", "fields", "-e", "icmpv6.type", "-r"]);
    let output = tshark.arg(capture).output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}
