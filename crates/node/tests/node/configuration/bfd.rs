//! `[[bfd]]`: peers, addresses and intervals, and contradictions (D109).

use super::errors::EDGE;
use super::parse;
use srdma_dataplane::{BfdPeer, BfdSession};
use srdma_frame::PortId;
use srdma_node::{Configuration, InterfaceFacts, Purpose};
use srdma_wire::MacAddress;
use std::collections::BTreeMap;
use std::path::Path;

fn sessions(more: &str) -> Vec<BfdSession> {
    parse(&format!("{EDGE}{more}")).expect("right").spec.entries.bfd.into_values().collect()
}

#[track_caller]
fn refused(more: &str, message: &str) {
    let error = parse(&format!("{EDGE}{more}")).expect_err("wrong");
    assert!(error.ends_with(message), "{error}");
}

#[test]
fn a_session_has_50_ms_three_times_and_the_loopback() {
    let [session] = sessions("[[bfd]]\npeer = '2001:db8:9::1'\n")[..] else { panic!("one session") };
    let config = session.config;
    assert_eq!(
        (config.desired_min_tx_us(), config.required_min_rx_us(), config.detect_mult().get()),
        (50_000, 50_000, 3)
    );
    let peer = BfdPeer { port: None, address: "2001:db8:9::1".parse().expect("an address") };
    assert_eq!((session.peer, session.local.to_string(), session.is_enabled), (peer, "2001:db8:1::1".to_owned(), true));
}

#[test]
fn neighbours_and_peers_are_distinguished() {
    let local = "local = '2001:db8:1::1'\n";
    let section = format!("[[bfd]]\nneighbour = '2001:db8:4::1%up'\n{local}");
    let [session] = sessions(&section)[..] else { panic!("one session") };
    assert_eq!(session.peer.port, Some(PortId(0)));
    refused(&format!("{section}{section}"), "there is a BFD session with 2001:db8:4::1 already");
    refused("[[bfd]]\n", "expected exactly one of neighbour (one hop) and peer (any number of hops)");
    refused("[[bfd]]\npeer = 'fe80::1'\n", "peer fe80::1 is link-local: expected neighbour = \"fe80::1%PORT\"");
    refused("[[bfd]]\nneighbour = 'fe80::1%up'\n", "port up has no address to send to fe80::1 from: expected `local`");
    refused("[[bfd]]\nneighbour = 'fe80::1%left'\n", "unknown port left: ports are up");
}

#[test]
fn intervals_have_bounds() {
    let peer = "[[bfd]]\npeer = '2001:db8:9::1'\n";
    let with = |more: &str| sessions(&format!("{peer}{more}"))[0].config;
    assert_eq!(with("desired_min_tx = '10ms'\n").desired_min_tx_us(), 10_000);
    assert_eq!(with("required_min_rx = '60s'\ndetect_mult = 255\n").required_min_rx_us(), 60_000_000);
    refused(&format!("{peer}desired_min_tx = '9ms'\n"), "expected a time from 10ms to 60s");
    refused(&format!("{peer}required_min_rx = '61s'\n"), "expected a time from 10ms to 60s");
    assert!(parse(&format!("{EDGE}{peer}detect_mult = 0\n")).is_err());
}

/// The kernel's address of the port, once it is there.
#[test]
fn the_kernel_provides_the_local_address() {
    let text = "[node]\nloopback = '2001:db8::1'\n[[port]]\nname = 'eth0'\n[[bfd]]\nneighbour = 'fe80::1%eth0'\n";
    let sessions = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|address| address.parse().expect("an address")).collect();
        let facts = InterfaceFacts { mac: MacAddress([2; 6]), addresses, link_mtu: 1500 };
        let known = BTreeMap::from([("eth0".to_owned(), facts)]);
        let parsed = Configuration::parse_for(Path::new("node.toml"), text, Purpose::Interfaces(&known));
        parsed
            .expect("right")
            .spec
            .entries
            .bfd
            .into_values()
            .map(|session| session.local.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(sessions(&["2001:db8:5::9", "fe80::9"]), ["fe80::9"]);
    assert_eq!(sessions(&["2001:db8:5::9"]), [""; 0]);
}
