//! `srdma plan provision`: the configuration of each system, beside text written by hand after the draft's Figure 1 and
//! the documentation of each system.

use serde_json::{Value, json};
use srdma_node::{Configuration, InterfaceFacts, Purpose};
use srdma_node_spec::file::NodeFile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FABRIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1.toml");

fn provision(arguments: &[&str]) -> Output {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    srdma.args(["plan", "provision", "--fabric"]).args(arguments).output().expect("the program runs")
}

fn text(arguments: &[&str]) -> String {
    let output = provision(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A file, replaced at once: another test may be reading it.
fn written(name: &str, text: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = tempfile::NamedTempFile::new_in(&directory).expect("a file");
    std::fs::write(file.path(), text).expect("the file is written");
    let path = directory.join(name);
    file.persist(&path).expect("the file is renamed");
    path
}

/// Tenant 7 has NICs 1 and 3.
fn jobs() -> String {
    let text = "[[job]]\nname = \"t\"\ntenant = 7\nnics = [\"nic1\", \"nic3\"]\n\
                [[job.collective]]\nkind = \"send-recv\"\n";
    written("tenant-jobs.toml", text).to_str().expect("UTF-8").to_owned()
}

/// PP-4-2, PP-5.1-1: iproute2's words, after ip-route(8); the /128 takes programs at their end.
#[test]
fn linux_gets_sids_and_routes() {
    let expected = "\
#!/bin/sh -e
# spine5
sysctl -qw net.ipv6.conf.all.forwarding=1
ip link show sr0 >/dev/null 2>&1 || ip link add sr0 type dummy
ip link set sr0 up
ip -6 address replace 2001:db8:ff02:5::1/128 dev lo
ip -6 address replace fe80::2/64 dev leaf1 nodad
ip -6 address replace fe80::2/64 dev leaf2 nodad
ip -6 address replace fe80::2/64 dev leaf3 nodad
ip -6 address replace fe80::2/64 dev leaf4 nodad
ip -6 route replace 5f00:0:100::/48 via fe80::1 dev leaf1
ip -6 route replace 5f00:0:200::/48 via fe80::1 dev leaf2
ip -6 route replace 5f00:0:300::/48 via fe80::1 dev leaf3
ip -6 route replace 5f00:0:400::/48 via fe80::1 dev leaf4
ip -6 route replace 5f00:0:600::/48 nexthop via fe80::1 dev leaf1 nexthop via fe80::1 dev leaf2 \
nexthop via fe80::1 dev leaf3 nexthop via fe80::1 dev leaf4
ip -6 route replace 5f00:0:500::/48 encap seg6local action End flavors next-csid,psp dev sr0
ip -6 route replace 5f00:0:500::/128 encap seg6local action End.DT6 table main dev sr0
";
    let by_nodes = ["--encoding", "un", "--format", "linux"];
    assert_eq!(text(&[&[FABRIC, "--device", "spine5"], &by_nodes[..]].concat()), expected);
    let nic = "\
#!/bin/sh -e
# nic1
sysctl -qw net.ipv6.conf.all.forwarding=1
ip -6 address replace 2001:db8:0:1::2/128 dev lo
ip -6 address replace fe80::1/64 dev leaf1 nodad
ip -6 address replace fe80::1/64 dev leaf2 nodad
ip -6 route replace 5f00:0:100::/48 via fe80::2 dev leaf1
ip -6 route replace 5f00:0:200::/48 via fe80::2 dev leaf2
";
    assert_eq!(text(&[&[FABRIC, "--device", "nic1"], &by_nodes[..]].concat()), nic);
}

/// PP-5.2-3, PP-7-2: uA, and End.DT6 of a tenant in a table of its own.
#[test]
fn linux_gets_sids_of_links_and_tenants() {
    let jobs = jobs();
    let of_links = ["--encoding", "ua", "--format", "linux", "--jobs", &jobs, "--sid-device", "spine5"];
    let made = text(&[&[FABRIC, "--device", "leaf3"], &of_links[..]].concat());
    let routes: Vec<&str> = made.lines().filter(|line| line.contains(" route ")).collect();
    let expected = [
        "ip -6 route replace 2001:db8:0:3::/64 table 1007 via fe80::1 dev nic3",
        "ip -6 route replace 2001:db8:0:4::/64 via fe80::1 dev nic4",
        "ip -6 route replace 5f00:0:e000::/48 encap seg6local action End.X nh6 fe80::1 oif nic3 flavors next-csid dev spine5",
        "ip -6 route replace 5f00:0:e000::/128 encap seg6local action End.DX6 nh6 2001:db8:0:3::2 dev spine5",
        "ip -6 route replace 5f00:0:e001::/48 encap seg6local action End.X nh6 fe80::1 oif nic4 flavors next-csid dev spine5",
        "ip -6 route replace 5f00:0:e001::/128 encap seg6local action End.DX6 nh6 2001:db8:0:4::2 dev spine5",
        "ip -6 route replace 5f00:0:e002::/48 encap seg6local action End.X nh6 fe80::2 oif spine5 flavors next-csid dev spine5",
        "ip -6 route replace 5f00:0:e003::/48 encap seg6local action End.X nh6 fe80::2 oif spine6 flavors next-csid dev spine5",
        "ip -6 route replace 5f00:0:f007::/48 encap seg6local action End.DT6 table 1007 dev spine5",
    ];
    assert_eq!(routes, expected);
    assert!(!made.contains("sr0"), "{made}");
}

/// The shipped lab's routers have exactly the printed configuration.
#[test]
fn the_shipped_lab_has_the_printed_configuration() {
    let shipped = include_str!("../../../../labs/ai-backend.toml");
    let lab = srdma_lab::Topology::parse(Path::new("ai-backend.toml"), shipped).expect("a lab");
    for (device, at) in [("leaf", "spine5"), ("spine", "leaf1")] {
        for node in lab.nodes.iter().filter(|node| node.name.starts_with(device)) {
            let made = text(&[FABRIC, "--device", &node.name, "--format", "linux", "--sid-device", at]);
            let made: Vec<Vec<&str>> =
                made.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect()).collect();
            assert_eq!(node.commands, made, "{}", node.name);
        }
    }
}

/// FRR: doc/user/static.rst and doc/user/zebra.rst of FRRouting/frr.
#[test]
fn frr_gets_its_configuration() {
    let jobs = jobs();
    let made = text(&[FABRIC, "--device", "leaf3", "--format", "frr", "--jobs", &jobs]);
    let expected = "\
! leaf3
hostname leaf3
!
interface lo
 ipv6 address 2001:db8:ff01:3::1/128
exit
!
interface nic3
 ipv6 address fe80::2/64
exit
!
interface nic4
 ipv6 address fe80::2/64
exit
!
interface spine5
 ipv6 address fe80::1/64
exit
!
interface spine6
 ipv6 address fe80::1/64
exit
!
vrf Vrf7
 ipv6 route 2001:db8:0:3::/64 fe80::1 nic3 nexthop-vrf default
exit-vrf
!
ipv6 route 2001:db8:0:4::/64 fe80::1 nic4
ipv6 route 5f00:0:100::/48 fe80::2 spine5
ipv6 route 5f00:0:100::/48 fe80::2 spine6
ipv6 route 5f00:0:200::/48 fe80::2 spine5
ipv6 route 5f00:0:200::/48 fe80::2 spine6
ipv6 route 5f00:0:400::/48 fe80::2 spine5
ipv6 route 5f00:0:400::/48 fe80::2 spine6
ipv6 route 5f00:0:500::/48 fe80::2 spine5
ipv6 route 5f00:0:600::/48 fe80::2 spine6
!
segment-routing
 srv6
  locators
   locator MAIN
    prefix 5f00:0:300::/48 block-len 32 node-len 16 func-bits 16
    behavior usid
    format usid-f3216
   exit
   !
  exit
  !
  static-sids
   sid 5f00:0:300::/48 locator MAIN behavior uN
   sid 5f00:0:e000::/48 locator MAIN behavior uA interface nic3 nexthop fe80::1
   sid 5f00:0:e001::/48 locator MAIN behavior uA interface nic4 nexthop fe80::1
   sid 5f00:0:e002::/48 locator MAIN behavior uA interface spine5 nexthop fe80::2
   sid 5f00:0:e003::/48 locator MAIN behavior uA interface spine6 nexthop fe80::2
   sid 5f00:0:f007::/48 locator MAIN behavior uDT6 vrf Vrf7
   sid 5f00:0:300:f007::/64 locator MAIN behavior uDT6 vrf Vrf7
  exit
  !
 exit
 !
exit
!
";
    assert_eq!(made, expected);
}

/// SONiC: doc/srv6/srv6_static_config_hld.md of sonic-net/SONiC, and its STATIC_ROUTE table.
#[test]
fn sonic_gets_its_configuration() {
    let jobs = jobs();
    let options = ["--format", "sonic", "--encoding", "un", "--interfaces", "Ethernet{port}", "--jobs", &jobs];
    let made = text(&[&[FABRIC, "--device", "leaf3"], &options[..]].concat());
    let made: Value = serde_json::from_str(&made).expect("JSON");
    let leaf = &made["leaf3"];
    let locator = json!({"prefix": "5f00:0:300::", "block_len": "32", "node_len": "16", "func_len": "0"});
    assert_eq!(leaf["SRV6_MY_LOCATORS"], json!({"MAIN": locator}));
    let sids = json!({
        "MAIN|5f00:0:300::/48": {"action": "uN", "decap_dscp_mode": "pipe"},
        "MAIN|5f00:0:300:f007::/64": {"action": "uDT46", "decap_vrf": "Vrf7", "decap_dscp_mode": "pipe"},
    });
    assert_eq!(leaf["SRV6_MY_SIDS"], sids);
    assert_eq!(leaf["VRF"], json!({"Vrf7": {}}));
    let routes = json!({
        "Vrf7|2001:db8:0:3::/64": {"nexthop": "fe80::1", "ifname": "Ethernet0", "nexthop-vrf": "default"},
        "default|2001:db8:0:4::/64": {"nexthop": "fe80::1", "ifname": "Ethernet1"},
        "default|5f00:0:100::/48": {"nexthop": "fe80::2,fe80::2", "ifname": "Ethernet2,Ethernet3"},
        "default|5f00:0:200::/48": {"nexthop": "fe80::2,fe80::2", "ifname": "Ethernet2,Ethernet3"},
        "default|5f00:0:400::/48": {"nexthop": "fe80::2,fe80::2", "ifname": "Ethernet2,Ethernet3"},
        "default|5f00:0:500::/48": {"nexthop": "fe80::2", "ifname": "Ethernet2"},
        "default|5f00:0:600::/48": {"nexthop": "fe80::2", "ifname": "Ethernet3"},
    });
    assert_eq!(leaf["STATIC_ROUTE"], routes);
    assert_eq!(leaf["INTERFACE"]["Ethernet2|fe80::1/64"], json!({}));
    let by_links = text(&[FABRIC, "--device", "leaf3", "--format", "sonic", "--encoding", "ua"]);
    let by_links: Value = serde_json::from_str(&by_links).expect("JSON");
    let expected = json!({"action": "uA", "interface": "spine5", "adj": "fe80::2", "decap_dscp_mode": "pipe"});
    assert_eq!(by_links["leaf3"]["SRV6_MY_SIDS"]["MAIN|5f00:0:e002::/48"], expected);
}

/// A file for each device is read by the node, which has the SIDs then.
#[test]
fn our_node_reads_its_configuration() {
    let parallel = written(
        "parallel.toml",
        "kind = \"links\"\nswitch = [{ name = \"a\" }, { name = \"b\" }]\nhost = [{ name = \"x\" }, { name = \"y\" }]\n\
         link = [{ ends = [\"x\", \"a\"] }, { ends = [\"y\", \"b\"] }, { ends = [\"a\", \"b\"] }, \
         { ends = [\"a\", \"b\"] }]\n",
    );
    let jobs = jobs();
    let of_figure1 = ["--jobs", &jobs];
    let fabrics: [(&str, &[&str], usize); 2] = [(FABRIC, &of_figure1, 10), (parallel.to_str().unwrap(), &[], 4)];
    for (fabric, more, files) in fabrics {
        let directory = tempfile::tempdir().expect("a directory");
        let out = directory.path().to_str().expect("UTF-8");
        let options = ["--format", "node", "--interfaces", "eth{port}", "--out", out];
        text(&[&[fabric], &options[..], more].concat());
        let mut count = 0;
        for entry in std::fs::read_dir(directory.path()).expect("the directory") {
            let path = entry.expect("an entry").path();
            let facts = |number: u8| InterfaceFacts {
                mac: srdma_wire::MacAddress([2, 0, 0, 0, 0, number]),
                addresses: Vec::new(),
                link_mtu: 9000,
            };
            let known: BTreeMap<String, InterfaceFacts> =
                (0..4).map(|number| (format!("eth{number}"), facts(number))).collect();
            let read = Configuration::read_for(&path, Purpose::Interfaces(&known));
            let configuration = read.unwrap_or_else(|error| panic!("{error}"));
            configuration.node().expect("a node");
            let written = NodeFile::of(&configuration.spec).to_toml().expect("TOML");
            let again = Configuration::parse_for(&path, &written, Purpose::Interfaces(&known));
            let again = again.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again.spec.entries, configuration.spec.entries, "{written}");
            count += 1;
        }
        assert_eq!(count, files);
    }
}

#[test]
fn refusals_name_the_error_and_its_position() {
    let refusal = |arguments: &[&str]| {
        let output = provision(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert!(refusal(&[FABRIC, "--device", "leaf9"]).contains("--device leaf9: no such switch or NIC"));
    assert!(refusal(&[FABRIC, "--interfaces", "x"]).contains("would both be interface x"));
    assert!(refusal(&[FABRIC, "--check", "no-such-lab"]).contains("lab no-such-lab is not up"));
    assert!(refusal(&[FABRIC, "--json"]).contains("--check"));
}
