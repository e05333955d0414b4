//! A node with VLANs (D257) beside the VLAN device of an unmodified Linux kernel, which makes and takes the tags.

use crate::own_lab::{Lab, wait_until};
use serde_json::Value;

/// The guest's MAC address is made of its address.
const TOPOLOGY: &str = r#"
description = "VLANs: a guest with a VLAN device, a node that routes between its VLANs and a link without"

[[node]]
name = "Host"
kind = "guest"
addresses = ["2001:db8:a::2"]

[[node]]
name = "R"
kind = "srdma"
addresses = ["2001:db8:ff:1::1"]

[node.config.node]
loopback = "2001:db8:ff:1::1"
forwards = ["2001:db8:a::/64", "2001:db8:100::/64", "2001:db8:200::/64", "2001:db8:e::/64"]

[[node.config.port]]
name = "v100"
parent = "host"
vlan = 100
trust = "pcp"
addresses = ["2001:db8:100::1"]

[[node.config.port]]
name = "v200"
parent = "host"
vlan = 200
trust = "pcp"
addresses = ["2001:db8:200::1"]

[[node.config.neighbour]]
address = "2001:db8:100::2%v100"
mac = "52:54:00:00:00:02"

[[node.config.neighbour]]
address = "2001:db8:200::2%v200"
mac = "52:54:00:00:00:02"

[[node.config.traffic_class]]
class = 5
dscps = [40]

[[node.config.egress]]
port = "host"
rate_bits_per_s = 1_000_000_000

[[node.config.egress]]
port = "far"
rate_bits_per_s = 1_000_000_000

[[node]]
name = "Far"
kind = "endpoint"
addresses = ["2001:db8:e::2"]
commands = ["ip -6 route replace default via fe80::1 dev r"]

[[link]]
ends = ["Host", "R"]

[[link]]
ends = ["R", "Far"]

# Guests boot as hosts of a group. Its packets have no tags.
[group]
proxy = "2001:db8:cc::1"
designated_qpn = 0xd00000
initial_psn = 5
source = "Host"

[[group.node]]
node = "R"
loopback = "2001:db8:ff:1::1"
sid = "2001:db8:ff:1::f"

[[group.receiver]]
node = "Far"
edge = "R"
"#;

fn port(lab: &Lab, name: &str) -> Value {
    let status = lab.status("R");
    let found = status["ports"].as_array().expect("ports").iter().find(|port| port["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {status}")).clone()
}

/// Frames of a class that a port has sent.
fn sent_in_class(port: &Value, class: u64) -> u64 {
    let classes = port["classes"].as_array().expect("classes");
    let class = classes.iter().find(|one| one["class"] == class);
    class.map_or(0, |class| class["sent"]["frames"].as_u64().expect("a number"))
}

/// D257: Echo requests with priority 5 leave in class 5, whatever their DSCP, and replies come back with a tag, by the
/// same VLAN or another one.
#[test]
#[ignore = "needs root"]
fn a_node_routes_between_vlans_of_a_linux_kernel() {
    const PINGS: u64 = 20;
    let lab = Lab::of("vlan", TOPOLOGY);
    lab.up();
    let node_mac = port(&lab, "host")["mac"].as_str().expect("a MAC address").to_owned();
    for vlan in [100, 200] {
        lab.guest_shell(
            "Host",
            &format!(
                "set -e; /bin/ip link add link eth0 name v{vlan} type vlan id {vlan} egress-qos-map 0:5
                 /bin/ip link set v{vlan} addrgenmode none up
                 /bin/ip address add 2001:db8:{vlan}::2/64 dev v{vlan} nodad
                 /bin/ip neigh add 2001:db8:{vlan}::1 lladdr {node_mac} dev v{vlan}"
            ),
        );
    }
    lab.guest_shell("Host", "/bin/ip -6 route add 2001:db8:e::/64 via 2001:db8:100::1 dev v100");
    let replies = |text: &str| text.lines().filter(|line| line.contains(" bytes from ")).count() as u64;
    let received = |vlan: u64| -> u64 {
        let text = lab.guest_shell("Host", &format!("cat /proc/net/vlan/v{vlan}"));
        let line = text.lines().find(|line| line.contains("total frames received")).expect("a counter");
        line.split_whitespace().last().and_then(|count| count.parse().ok()).expect("a number")
    };

    let pinged = lab.guest_shell("Host", &format!("ping -6 -c {PINGS} -i 0.2 -W 5 2001:db8:e::2"));
    assert_eq!(replies(&pinged), PINGS, "{pinged}");
    assert!(received(100) >= PINGS);
    let counts = || {
        let ports = ["host", "v100", "v200", "far"].map(|name| port(&lab, name));
        (sent_in_class(&ports[3], 5), sent_in_class(&ports[0], 0), ports[1]["received"]["frames"].as_u64())
    };
    wait_until(
        || matches!(counts(), (in_five, in_zero, Some(received)) if in_five.min(in_zero).min(received) >= PINGS),
        || format!("{:?}", counts()),
    );
    let v100 = port(&lab, "v100");
    assert_eq!((&v100["vlan"]["parent"], &v100["vlan"]["id"]), (&"host".into(), &100.into()), "{v100}");
    assert_eq!((&v100["is_up"], &v100["driver"]), (&true.into(), &"AF_PACKET".into()), "{v100}");

    // Requests go out by VLAN 200, and the replies come by VLAN 100.
    let before = received(200);
    let mut ping = lab.existing("Far").command("ping");
    let pinged = ping.args(["-6", "-c", "5", "-i", "0.2", "-W", "5", "2001:db8:200::2"]).output().expect("ping runs");
    let pinged = String::from_utf8_lossy(&pinged.stdout);
    assert_eq!(replies(&pinged), 5, "{pinged}");
    assert!(received(200) >= before + 5);
    // Of a VLAN that has no port.
    lab.guest_shell(
        "Host",
        "set -e; /bin/ip link add link eth0 name v300 type vlan id 300; /bin/ip link set v300 up
         /bin/ip address add 2001:db8:300::2/64 dev v300 nodad",
    );
    lab.guest_shell("Host", &format!("/bin/ip neigh add 2001:db8:300::1 lladdr {node_mac} dev v300"));
    lab.guest_shell("Host", "/bin/ip -6 route replace 2001:db8:e::/64 via 2001:db8:300::1 dev v300; ping -6 -c 3 -i 0.2 -W 1 2001:db8:e::2 || true",
    );
    let dropped = || port(&lab, "host")["drops"]["vlan_tagged"].as_u64().unwrap_or(0);
    wait_until(|| dropped() >= 3, || port(&lab, "host")["drops"].to_string());
}
