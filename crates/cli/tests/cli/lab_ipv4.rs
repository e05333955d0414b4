//! An IPv4 VPN over SRv6 (D258, D261, D262): a site behind our node, the other one behind a Linux kernel, or behind
//! another node of ours. The hosts are kernels.

use crate::own_lab::{Lab, wait_until};
use srdma_io::namespace::Namespace;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// What is in both networks: hosts H1 and H2, our node P1, and the first lines of P2.
const SITES: &str = r#"
description = "IPv4 over SRv6 between two sites"

[[node]]
name = "H1"
kind = "router"
commands = ["ip addr add 10.1.0.2/24 dev p1", "ip route add default via 10.1.0.1"]

[[node]]
name = "P1"
kind = "srdma"
addresses = ["2001:db8:ff:1::1"]
prefixes = ["2001:db8:ff:1::/64"]
commands = ["ip addr add 10.1.0.1/24 dev h1"]

[node.config.daemon]
fast_path = FAST_PATH

[[node.config.route]]
prefix = "10.2.0.0/24"
encaps = { segments = ["2001:db8:ff:2::d4"], mode = "H.Encaps" }

[[node.config.sid]]
sid = "2001:db8:ff:1::d4"
behavior = "END_DT4"

[[node]]
name = "Core"
kind = "router"
addresses = ["2001:db8:ff:c::1"]

[[node]]
name = "H2"
kind = "router"
commands = ["ip addr add 10.2.0.2/24 dev p2", "ip route add default via 10.2.0.1"]

[[link]]
ends = ["H1", "P1"]

[[link]]
ends = ["P1", "Core"]
mtu = 1500

[[link]]
ends = ["Core", "P2"]
mtu = 1500

[[link]]
ends = ["P2", "H2"]
mtu = 1400
"#;

/// The kernel: End.DX4, and a route with seg6.
const KERNEL: &str = r#"
[[node]]
name = "P2"
kind = "router"
addresses = ["2001:db8:ff:2::1"]
prefixes = ["2001:db8:ff:2::/64"]
commands = [
    "sysctl -qw net.ipv4.ip_forward=1",
    "ip addr add 10.2.0.1/24 dev h2",
    "ip sr tunsrc set 2001:db8:ff:2::1",
    "ip -6 route add 2001:db8:ff:2::d4 encap seg6local action End.DX4 nh4 10.2.0.2 dev h2",
    "ip route add 10.1.0.0/24 encap seg6 mode encap segs 2001:db8:ff:1::d4 dev core",
]
"#;

/// Our node: End.DX4, whose neighbour only it knows, and a reduced route.
const OURS: &str = r#"
[[node]]
name = "P2"
kind = "srdma"
addresses = ["2001:db8:ff:2::1"]
prefixes = ["2001:db8:ff:2::/64"]
commands = ["ip addr add 10.2.0.1/24 dev h2"]

[[node.config.route]]
prefix = "10.1.0.0/24"
encaps = { segments = ["2001:db8:ff:1::d4"] }

[[node.config.sid]]
sid = "2001:db8:ff:2::d4"
behavior = "End.DX4"
next_hop = "10.2.0.2%h2"
"#;

/// The lab with this P2, up.
fn lab(far: &str, driver: &str, replacements: [(&str, &str); 2]) -> Lab {
    let (before, behind) = SITES.split_once("[[node]]\nname = \"H2\"").expect("H2 is there");
    let mut text = format!("{before}{far}\n[[node]]\nname = \"H2\"{behind}");
    for (from, to) in replacements {
        text = text.replace(from, to);
    }
    let lab = Lab::of("ipv4", &text);
    lab.up_with(&["--driver", driver]);
    lab
}

/// Packets that the SIDs of a node have processed.
fn processed(lab: &Lab, node: &str) -> u64 {
    let status = lab.status(node);
    let sids = status["sids"].as_array().expect("SIDs");
    sids.iter().map(|sid| sid["frames"].as_u64().expect("a number")).sum()
}

/// The output of a ping, and how many replies came.
fn ping(host: &Namespace, options: &str, to: &str) -> (String, usize) {
    let options = options.split_whitespace();
    let output = host.command("ping").args(["-4", "-n"]).args(options).arg(to).output().expect("ping runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let replies = text.lines().filter(|line| line.contains(" bytes from ")).count();
    (text, replies)
}

/// Sends octets over TCP from one host to the other, and checks that they arrive as they are.
fn transfer(from: &Namespace, to: &Namespace, address: &str) {
    const OCTETS: usize = 4 << 20;
    let data: Vec<u8> = (0..OCTETS).map(|number| (number % 251) as u8).collect();
    let listener = to.enter(|| TcpListener::bind("0.0.0.0:5001").expect("a listener")).expect("the host is there");
    let sent = data.clone();
    let address = format!("{address}:5001").parse().expect("an address");
    let mut stream = from
        .enter(|| TcpStream::connect_timeout(&address, Duration::from_secs(20)).expect("a connection"))
        .expect("the host is there");
    let sender = std::thread::spawn(move || stream.write_all(&sent).expect("octets are sent"));
    let (mut receiver, _) = listener.accept().expect("a connection");
    receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let mut received = Vec::new();
    receiver.read_to_end(&mut received).expect("octets");
    sender.join().expect("the sender ends");
    assert!(received == data, "{} octets of {OCTETS}", received.len());
}

/// Both ways: pings of several lengths, one that has to be fragmented, MTUs that are told, and TCP.
fn both_ways(lab: &Lab) {
    let [h1, h2] = ["H1", "H2"].map(|host| lab.existing(host));
    wait_until(|| ping(&h1, "-c 1 -W 1", "10.2.0.2").1 == 1, || format!("{}", lab.status("P1")));
    for (host, to) in [(&h1, "10.2.0.2"), (&h2, "10.1.0.2")] {
        for size in [0, 56, 1300] {
            let (text, replies) = ping(host, &format!("-c 5 -i 0.05 -W 5 -s {size}"), to);
            assert_eq!(replies, 5, "{text}");
        }
    }
    // RFC 1191: 1,500 octets do not fit behind an outer header; the node says what does.
    let (text, replies) = ping(&h1, "-c 2 -i 0.2 -W 1 -s 1472 -M do", "10.2.0.2");
    assert!(replies == 0 && text.contains("Frag needed and DF set (mtu = 1436)"), "{text}");
    // D261: without DF the node fragments, and the host at the other end puts the pieces together.
    let (text, replies) = ping(&h1, "-c 3 -i 0.2 -W 5 -s 3000 -M dont", "10.2.0.2");
    assert_eq!(replies, 3, "{text}");
    transfer(&h1, &h2, "10.2.0.2");
    transfer(&h2, &h1, "10.1.0.2");
    // RFC 1812: the last hop before the time to live ends, by the address of the port.
    let (text, _) = ping(&h1, "-c 1 -W 2 -t 1", "10.2.0.2");
    assert!(text.contains("From 10.1.0.1") && text.contains("Time to live exceeded"), "{text}");
}

/// End.DT4 and H.Encaps of our node beside End.DX4 and seg6 of Linux.
#[test]
#[ignore = "needs root"]
fn a_vpn_between_a_node_and_a_linux_kernel() {
    for (driver, fast_path) in [("auto", "false"), ("af_packet", "false"), ("auto", "true")] {
        let lab = lab(KERNEL, driver, [("FAST_PATH", fast_path), ("END_DT4", "End.DT4")]);
        both_ways(&lab);
        wait_until(|| processed(&lab, "P1") > 100, || format!("{driver}: {}", lab.status("P1")["sids"]));
    }
}

/// End.DT46 and End.DX4 of our nodes.
#[test]
#[ignore = "needs root"]
fn a_vpn_between_two_nodes() {
    let lab = lab(OURS, "auto", [("FAST_PATH", "false"), ("END_DT4", "End.DT46")]);
    both_ways(&lab);
    for node in ["P1", "P2"] {
        wait_until(|| processed(&lab, node) > 100, || format!("{node}: {}", lab.status(node)["sids"]));
    }
}
