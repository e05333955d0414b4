//! Differences between the configuration of a node on interfaces and that of a run over captures.

use super::errors::TRANSIT;
use super::parse;
use srdma_frame::PortId;
use srdma_io::Choice;
use srdma_node::{Configuration, InterfaceFacts, Purpose};
use srdma_toml_error::FileError;
use srdma_wire::MacAddress;
use std::collections::BTreeMap;
use std::path::Path;

fn parse_for(text: &str, known: &BTreeMap<String, InterfaceFacts>) -> Result<Configuration, String> {
    let parsed = Configuration::parse_for(Path::new("/etc/srdma/leaf1.toml"), text, Purpose::Interfaces(known));
    parsed.map_err(|error: FileError| error.to_string())
}

fn facts() -> BTreeMap<String, InterfaceFacts> {
    let facts = InterfaceFacts {
        mac: MacAddress([2, 0, 0, 0, 0, 9]),
        addresses: vec!["fe80::9".parse().expect("an address")],
        link_mtu: 4200,
    };
    BTreeMap::from([("eth0".to_owned(), facts)])
}

#[test]
fn the_kernel_provides_absent_keys() {
    let text = "[node]\nloopback = '2001:db8::1'\n[[port]]\nname = 'p'\ninterface = 'eth0'";
    let port = |text: &str| parse_for(text, &facts()).expect("right").spec.node.ports.remove(0);
    let learnt = port(text);
    assert_eq!((learnt.mac.0[5], learnt.link_mtu, learnt.addresses.len()), (9, 4200, 1));
    let given = port(&format!("{text}\nmac = '02:00:00:00:00:01'\nlink_mtu = 1500\naddresses = []"));
    assert_eq!((given.mac.0[5], given.link_mtu, given.addresses.len()), (1, 1500, 0));
    let absent = port(&text.replace("eth0", "eth1"));
    assert_eq!((absent.mac.0, absent.link_mtu, absent.addresses.len()), ([0; 6], 1500, 0));
}

#[test]
fn captures_need_a_mac_address() {
    let error = parse("[node]\nloopback = '2001:db8::1'\n[[port]]\nname = 'p'").expect_err("no MAC address");
    assert_eq!(error, "node.toml:4: missing key `mac`, which captures do not contain");
}

/// The device of the kernel gives a VLAN port its facts; without one it has its parent's.
#[test]
fn vlan_ports_have_their_facts_from_the_vlan_device_or_the_parent() {
    let text = "[node]\nloopback = '2001:db8::1'\n[[port]]\nname = 'up'\ninterface = 'eth0'\n[[port]]\nname = 'a'\n\
                parent = 'up'\nvlan = 100\n[[port]]\nname = 'b'\nparent = 'up'\nvlan = 200\n";
    let facts = |last: u8, link_mtu| InterfaceFacts {
        mac: MacAddress([2, 0, 0, 0, 0, last]),
        addresses: vec![std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into())],
        link_mtu,
    };
    let known = [("eth0".to_owned(), facts(1, 4608)), ("eth0.100".to_owned(), facts(2, 1500))].into();
    let configuration =
        Configuration::parse_for(Path::new("node.toml"), text, Purpose::Interfaces(&known)).expect("right");
    let ports = &configuration.spec.node.ports;
    let of = |port: usize| (ports[port].mac.0[5], ports[port].link_mtu, ports[port].addresses.len());
    assert_eq!([of(0), of(1), of(2)], [(1, 4608, 1), (2, 1500, 1), (1, 4608, 0)]);
    let interfaces: Vec<_> =
        configuration.interfaces.iter().map(|port| (port.name.as_str(), port.parent, port.carries_vlans)).collect();
    let parent = Some(PortId(0));
    assert_eq!(interfaces, [("eth0", None, true), ("eth0.100", parent, false), ("eth0.200", parent, false)]);
}

#[test]
fn ports_and_interfaces_are_one_to_one() {
    let text = "[node]\nloopback = '2001:db8::1'\n[[port]]\nname = 'p'\ninterface = 'eth0'\n\
                driver = 'af_xdp_generic'\n[[port]]\nname = 'eth1'";
    let configuration = parse_for(text, &facts()).expect("right");
    let interfaces: Vec<_> = configuration.interfaces.iter().map(|port| (port.name.as_str(), port.driver)).collect();
    assert_eq!(interfaces, [("eth0", Choice::XdpGeneric), ("eth1", Choice::Auto)]);
    let refused = |from: &str, to: &str| parse_for(&text.replace(from, to), &facts()).expect_err("wrong");
    assert_eq!(refused("'eth1'", "'eth0'"), "/etc/srdma/leaf1.toml:8: interface eth0 is already that of port p");
    assert_eq!(
        refused("'eth0'", "'eth/0'"),
        "/etc/srdma/leaf1.toml:5: invalid value: string \"eth/0\", expected an interface's name of 1 to 15 characters, \
         without blanks, '/' and ':'",
    );
    assert_eq!(
        refused("af_xdp_generic", "dpdk"),
        "/etc/srdma/leaf1.toml:6: unknown value `dpdk`, expected one of `auto`, `af_xdp`, `af_xdp_generic`, `af_packet`",
    );
}

#[test]
fn the_daemon_is_named_after_its_file() {
    let text = "[node]\nloopback = '2001:db8::1'\n";
    let daemon = |more: &str| parse_for(&format!("{text}{more}"), &facts()).map(|configuration| configuration.daemon);
    let settings = daemon("").expect("right");
    assert_eq!((settings.name.as_str(), settings.metrics, settings.cpu), ("leaf1", None, None));
    assert_eq!(settings.status, Path::new("/run/srdma/leaf1.sock"));
    let settings = daemon("[daemon]\nname = 'n1'\nmetrics = '[::1]:9164'\ncpu = 1").expect("right");
    assert_eq!(settings.status, Path::new("/run/srdma/n1.sock"));
    assert_eq!((settings.metrics.map(|address| address.port()), settings.cpu), (Some(9164), Some(1)));
    let error = daemon("[daemon]\nstatus = 'n1.sock'").expect_err("relative");
    assert_eq!(error, "/etc/srdma/leaf1.toml:4: status is n1.sock, expected an absolute path");
}

#[test]
fn keys_known_to_the_kernel_may_be_absent() {
    let open = TRANSIT.replacen("[node]\n", "[node]\nopen = true\n", 1);
    let without = open.replace("[[neighbour]]\naddress = '2001:db8:1::1%down'\nmac = '02:00:00:00:00:03'\n", "");
    assert!(parse(&without).is_err());
    parse_for(&without, &facts()).expect("the kernel may know the neighbour");
    let error = parse_for(&open.replace("downstream = ['2001:db8:1::e']", "downstream = ['2001:db8:4::f']"), &facts());
    assert_eq!(
        error.expect_err("its own SID"),
        "/etc/srdma/leaf1.toml:32: downstream SID 2001:db8:4::f cannot be reached: it is a SID of behavior End.Replicate",
    );
}
