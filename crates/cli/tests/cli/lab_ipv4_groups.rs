//! Groups of IPv4 hosts (D272 to D275) in the network of `figure1-controller`: `srdma send` and `srdma recv` over IPv4
//! sockets of kernels, which find the Proxy Address by ARP or by a gateway. What hosts send and receive is judged by
//! scapy, and by a program that computes ICRCs apart from ours.

use crate::own_lab::{ControllerAccess, Lab};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const URL: &str = "https://[2001:db8:ff:c::1]:8470";
const PROXY: &str = "10.255.0.1";
const SOURCE: &str = "10.1.0.1";
/// Octets of a transfer.
const OCTETS: usize = 1 << 20;

/// Each host: its address, its node, and how it finds the Proxy Address there.
const HOSTS: [(&str, &str, &str, Way); 6] = [
    ("S1", SOURCE, "n6", Way::Arp),
    ("R1", "10.2.1.1", "n1", Way::Gateway),
    ("R2", "10.2.2.1", "n1", Way::Arp),
    ("R3", "10.2.3.1", "n2", Way::Gateway),
    ("R4", "10.2.4.1", "n3", Way::Arp),
    ("R5", "10.2.5.1", "n3", Way::Gateway),
];
const RECEIVERS: [&str; 5] = ["R1", "R2", "R3", "R4", "R5"];

#[derive(Clone, Copy)]
enum Way {
    /// A route on its link.
    Arp,
    /// The node's address.
    Gateway,
}

/// The node's address on the link of a host.
fn gateway(address: &str) -> String {
    format!("{}.254", address.rsplit_once('.').expect("an address").0)
}

/// The shipped lab, whose hosts and their nodes have IPv4 addresses as well.
fn file() -> String {
    let path = Path::new(ROOT).join("labs/figure1-controller.toml");
    let mut text = fs::read_to_string(path).expect("the lab is there");
    let mut replace = |from: String, to: String| {
        assert!(text.contains(&from), "{from}");
        text = text.replace(&from, &to);
    };
    for (host, address, node, way) in HOSTS {
        let route = match way {
            Way::Arp => format!("dev {node}"),
            Way::Gateway => format!("via {}", gateway(address)),
        };
        let commands = format!("\"ip addr add {address}/24 dev {node}\", \"ip route add 10.255.0.0/24 {route}\"");
        let head = format!("name = \"{host}\"\nkind = \"endpoint\"\n");
        replace(head.clone(), format!("{head}commands = [{commands}]\n"));
    }
    for (node, name) in [("n6", "N6"), ("n1", "N1"), ("n2", "N2"), ("n3", "N3")] {
        let hosts = || HOSTS.iter().filter(|(_, _, at, _)| *at == node);
        let command = |(host, address, ..): &(&str, &str, &str, Way)| {
            format!("\"ip addr add {}/24 dev {}\"", gateway(address), host.to_lowercase())
        };
        let commands: Vec<String> = hosts().map(command).collect();
        let head = format!("name = \"{name}\"\nkind = \"srdma\"\n");
        replace(head.clone(), format!("{head}commands = [{}]\n", commands.join(", ")));
        let prefixes: Vec<String> =
            hosts().map(|(_, address, ..)| format!("\"{}\"", gateway(address).replace(".254", ".0/24"))).collect();
        let listed = match node {
            "n6" => "\"2001:db8:aa::/64\"",
            "n1" => "\"2001:db8:bb::1/128\"",
            "n2" => "\"2001:db8:bb::3/128\"",
            _ => "\"2001:db8:bb::4/128\"",
        };
        replace(format!("hosts = [{listed}"), format!("hosts = [{}, {listed}", prefixes.join(", ")));
    }
    text
}

struct Network {
    lab: Lab,
    directory: tempfile::TempDir,
    access: ControllerAccess,
}

impl Network {
    fn start(driver: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let lab = Lab::of("ipv4-groups", &file());
        lab.up_with(&["--driver", driver]);
        let access = lab.controller();
        let network = Network { lab, directory, access };
        fs::write(network.path("data"), data()).expect("written");
        network
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `srdma` in the namespace of a host.
    fn inside(&self, node: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.lab.namespace(node), env!("CARGO_BIN_EXE_srdma")]);
        self.access.set(&mut command);
        command
    }

    fn group(&self, arguments: &[&str]) -> Output {
        self.inside("C").arg("group").args(arguments).arg("--json").output().expect("it runs")
    }

    fn creates(&self, proxy: &str) -> Output {
        let of_source = ["create", "--source", SOURCE, "--source-qpn", "0x100", "--designated-qpn", "0xd00000"];
        let others = ["--proxy", proxy, "--psn", "0xfffff0", "--region", "0x10000,0x40000000,0x1234"];
        self.group(&[&of_source[..], &others].concat())
    }

    /// Options of a packet driver at a host.
    fn raw(&self, host: &str) -> [String; 4] {
        let (_, _, node, _) = HOSTS.iter().find(|(name, ..)| *name == host).expect("a host");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.lab.namespace(&node.to_uppercase()), "cat"]);
        let output = command.arg(format!("/sys/class/net/{}/address", host.to_lowercase())).output().expect("ip runs");
        let mac = String::from_utf8(output.stdout).expect("text").trim().to_owned();
        ["--raw".to_owned(), (*node).to_owned(), "--next-hop-mac".to_owned(), mac]
    }

    fn starts(&self, host: &str, arguments: &[&str]) -> Child {
        let mut command = self.inside(host);
        command.args(arguments).args(["--json", "--timeout", "50s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// The receivers end, and have what the source has sent.
    fn have_all(&self, receivers: impl IntoIterator<Item = (&'static str, Child)>, source: &Value) {
        let digest = Value::from(source["sha256"].as_str().expect("a digest"));
        for (host, receiver) in receivers {
            let received = result(receiver, host);
            assert_eq!((&received["sha256"], &received["matches"]), (&digest, &Value::Bool(true)), "{host}");
            assert!(fs::read(self.path(host)).expect("a copy") == data(), "{host}");
        }
    }
}

fn data() -> Vec<u8> {
    (0..OCTETS as u64 / 8).flat_map(|word| (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ word).to_le_bytes()).collect()
}

/// The last line of JSON of a program that ends well.
#[track_caller]
fn result(child: Child, who: &str) -> Value {
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{who}: {text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

/// Counts the RoCEv2 packets of a capture by addresses, those of IPv4 after a look at each: header checksum by scapy,
/// ICRC by icrc.py, and that it is an atomic datagram.
const JUDGE: &str = r#"
import collections, sys
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.utils import PcapReader
from icrc import icrc

counts = collections.Counter()
for packet in PcapReader(sys.argv[1]):
    if packet.haslayer(ARP):
        counts["arp %d" % packet[ARP].op + " " + packet[ARP].pdst] += 1
    if not packet.haslayer(IP) or not packet[IP].haslayer(UDP) or packet[UDP].dport != 4791:
        continue
    octets = bytes(packet[IP])[: packet[IP].len]
    assert (packet[IP].id, packet[IP].flags, packet[UDP].chksum) == (0, "DF", 0), packet.show(dump=True)
    again = IP(octets)
    del again.chksum
    assert IP(bytes(again)).chksum == packet[IP].chksum, packet.show(dump=True)
    assert octets[-4:] == icrc(octets[:-4]), packet.show(dump=True)
    counts[packet[IP].src + " " + packet[IP].dst] += 1
for key, count in sorted(counts.items()):
    print(key, count)
"#;

/// What is on a link.
fn judged(capture: &Path) -> String {
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", JUDGE]).arg(capture).env("PYTHONPATH", Path::new(ROOT).join("tools/golden"));
    let output = python.output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn count(judged: &str, key: &str) -> u64 {
    let line = judged.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    line.unwrap_or(0)
}

/// D31, D272 to D275: a group of five receivers by WRITE, with both packet drivers.
#[test]
#[ignore = "needs root"]
fn hosts_of_ipv4_have_a_group() {
    for driver in ["auto", "af_packet"] {
        let network = Network::start(driver);
        let capturing = network.lab.starts_capture();
        let mixed = network.creates("2001:db8:cc::1");
        let refusal = String::from_utf8_lossy(&mixed.stderr).into_owned();
        assert!(
            refusal.contains("10.1.0.1 and Proxy Address 2001:db8:cc::1 are not both IPv4 or both IPv6"),
            "{refusal}"
        );
        let created = network.creates(PROXY);
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let created: Value = serde_json::from_slice(&created.stdout).expect("JSON");
        let group = created["id"].to_string();
        let url = format!("{URL}/{group}");
        let receivers = RECEIVERS.map(|host| {
            let copy = network.path(host);
            (host, network.starts(host, &["recv", "--group", &url, "--out", copy.to_str().expect("UTF-8")]))
        });
        let file = network.path("data");
        let arguments = ["send", file.to_str().expect("UTF-8"), "--group", &url, "--receivers", "5", "--commit"];
        let source = result(network.starts("S1", &[&arguments[..], &["--message", "256KiB"]].concat()), "S1");
        network.have_all(receivers, &source);
        capturing.ends();
        let packets = (OCTETS / 4096) as u64;
        let at_source = judged(&network.lab.capture("S1-N6"));
        assert!(count(&at_source, &format!("{SOURCE} {PROXY}")) >= packets, "{at_source}");
        assert!(count(&at_source, &format!("{PROXY} {SOURCE}")) >= 1, "{at_source}");
        assert!(count(&at_source, &format!("arp 1 {PROXY}")) >= 1, "{at_source}");
        for (host, address, node, way) in &HOSTS[1..] {
            let link = format!("{}-{host}", node.to_uppercase());
            let at_receiver = judged(&network.lab.capture(&link));
            assert!(count(&at_receiver, &format!("{PROXY} {address}")) >= packets, "{host}: {at_receiver}");
            assert!(count(&at_receiver, &format!("{address} {PROXY}")) >= 1, "{host}: {at_receiver}");
            let asked = count(&at_receiver, &format!("arp 1 {PROXY}"));
            assert_eq!(asked > 0, matches!(way, Way::Arp), "{host}: {at_receiver}");
        }
        // Between nodes there is no IPv4.
        assert_eq!(judged(&network.lab.capture("N6-N4")), "");
        assert!(
            network.lab.status("N4")["groups"][0]["acks_received"].as_u64() > Some(0),
            "{}",
            network.lab.status("N4")
        );
    }
}

/// D293: with packet sockets at the source and at one of two receivers; what needs extension headers is refused.
#[test]
#[ignore = "needs root"]
fn packet_sockets_of_ipv4_have_a_group() {
    let network = Network::start("auto");
    let created = network.creates(PROXY);
    let created: Value = serde_json::from_slice(&created.stdout).expect("JSON");
    let url = format!("{URL}/{}", created["id"]);
    let [of_source, of_receiver] = ["S1", "R1"].map(|host| network.raw(host));
    let with = |arguments: &[&str], raw: &[String; 4]| -> Vec<String> {
        arguments.iter().map(|word| (*word).to_owned()).chain(raw.iter().cloned()).collect()
    };
    let refused = with(&["recv", "--group", &url, "--return-traces", "20us"], &of_receiver);
    let refused = network.inside("R1").args(refused).output().expect("it runs");
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("an IPv4 address: --return-traces is for IPv6"), "{text}");

    let capturing = network.lab.starts_capture();
    let receivers = [("R1", true), ("R3", false)].map(|(host, is_raw)| {
        let copy = network.path(host);
        let mut arguments = vec!["recv", "--group", &url, "--out", copy.to_str().expect("UTF-8")];
        arguments.extend(of_receiver.iter().map(String::as_str).filter(|_| is_raw));
        (host, network.starts(host, &arguments))
    });
    let file = network.path("data");
    let arguments = ["send", file.to_str().expect("UTF-8"), "--group", &url, "--receivers", "2", "--commit"];
    let arguments = with(&arguments, &of_source);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let source = result(network.starts("S1", &arguments), "S1");
    network.have_all(receivers, &source);
    capturing.ends();
    let packets = (OCTETS / 4096) as u64;
    let at_source = judged(&network.lab.capture("S1-N6"));
    assert!(count(&at_source, &format!("{SOURCE} {PROXY}")) >= packets, "{at_source}");
    let at_receiver = judged(&network.lab.capture("N1-R1"));
    assert!(count(&at_receiver, &format!("{PROXY} 10.2.1.1")) >= packets, "{at_receiver}");
    assert!(count(&at_receiver, &format!("10.2.1.1 {PROXY}")) >= 1, "{at_receiver}");
    assert_eq!(source["send_errors"], 0, "{source}");
}
