//! From the start of a node to its end.

use crate::daemon::bench::{Bench, HOSTS, UP};
use crate::daemon::forwarding::{CONFIGURATION, end_mt, is_copy};
use nix::sys::signal::Signal;
use srdma_node::daemon::read_status;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Resources that must be gone when the node is.
fn additions(bench: &Bench) -> String {
    let routes = bench.in_node(&["ip", "-6", "route", "show", "table", "all", "proto", "200"]);
    let neighbours = bench.in_node(&["ip", "-6", "neigh", "show", "proto", "200"]);
    let links = bench.in_node(&["ip", "link", "show"]);
    let programs: String = links.lines().filter(|line| line.contains("xdp")).collect();
    format!("{routes}{neighbours}{programs}")
}

#[test]
#[ignore = "needs root"]
fn a_node_that_ends_leaves_nothing_behind() {
    for driver in ["af_packet", "af_xdp"] {
        let bench = Bench::new(driver, CONFIGURATION);
        let mut node = bench.start();
        node.wait_for("ready");
        assert_ne!(additions(&bench), "", "{driver}");
        let snapshot = read_status(&bench.status()).expect("it answers");
        assert_eq!((snapshot.name.as_str(), snapshot.groups.len()), ("node", 1));
        node.signal(Signal::SIGTERM);
        node.wait_for("stopped");
        assert_eq!(node.ends(), Some(0), "{driver}");
        assert_eq!(additions(&bench), "", "{driver}");
        assert!(!bench.status().exists());
    }
}

#[test]
#[ignore = "needs root"]
fn a_started_node_removes_entries_of_a_killed_one() {
    let bench = Bench::new("af_packet", CONFIGURATION);
    let mut node = bench.start();
    node.wait_for("ready");
    node.signal(Signal::SIGKILL);
    assert_eq!(node.ends(), None);
    assert_ne!(additions(&bench), "");
    bench.configure("af_packet", "");
    let mut node = bench.start();
    node.wait_for("ready");
    assert_eq!(additions(&bench), "");
}

#[test]
#[ignore = "needs root"]
fn the_second_node_on_an_interface_is_refused() {
    let bench = Bench::new("auto", CONFIGURATION);
    let mut first = bench.start();
    first.wait_for("ready");
    let mut second = bench.start();
    second.wait_for("interface uplink is already used by process");
    assert_eq!(second.ends(), Some(3));
}

/// A name that any user can bind keeps no node from its interfaces (D108).
#[test]
#[ignore = "needs root"]
fn an_abstract_socket_is_no_claim() {
    let bench = Bench::new("auto", CONFIGURATION);
    let squat = |name: &str| {
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        bench.node.enter(|| UnixListener::bind_addr(&address)).expect("entered").expect("bound")
    };
    let _squatted = ["srdma/namespace", "srdma/interface/uplink"].map(squat);
    bench.start().wait_for("ready");
}

/// Not one packet of an unchanged group is lost while another one comes and goes, and wrong files are refused.
#[test]
#[ignore = "needs root"]
fn a_reload_loses_nothing() {
    const ROUNDS: usize = 40;
    const PACKETS: usize = 50;
    let bench = Bench::new("auto", CONFIGURATION);
    let (mut left, mut right) = (bench.host(UP), bench.host(HOSTS));
    let mut node = bench.start();
    node.wait_for("ready");
    let other = CONFIGURATION[CONFIGURATION.find("[[group]]").expect("a group")..]
        .replace("id = 1", "id = 2")
        .replace("ff::100", "ff::200");
    let (packet, copies) = end_mt();
    for round in 0..ROUNDS {
        match round % 3 {
            0 => bench.configure("auto", &format!("{CONFIGURATION}{other}")),
            1 => bench.configure("auto", "[[group]]\nid = 1"),
            _ => bench.configure("auto", CONFIGURATION),
        }
        node.signal(Signal::SIGHUP);
        (0..PACKETS).for_each(|_| left.send(&packet));
        for received in right.receive(2 * PACKETS, is_copy).chunks(2) {
            assert_eq!(received, copies);
        }
        match round % 3 {
            0 => drop(node.wait_for("reloaded")),
            1 => drop(node.wait_for("not reloaded, the old configuration stays")),
            _ => drop(node.wait_for("reloaded")),
        }
    }
}

#[test]
#[ignore = "needs root"]
fn a_changed_file_is_noticed() {
    let bench = Bench::new("auto", CONFIGURATION);
    let mut node = bench.start();
    node.wait_for("ready");
    bench.configure("auto", "");
    node.wait_for("reloaded cause=file ");
    bench.configure("auto", "zzz = 1");
    assert!(node.wait_for("not reloaded").contains("node.toml:"));
}

#[test]
#[ignore = "needs root"]
fn an_interface_may_be_removed_and_added_again() {
    let bench = Bench::new("auto", CONFIGURATION);
    let mut left = bench.host(UP);
    let mut node = bench.start();
    node.wait_for("ready");
    bench.in_node(&["ip", "link", "delete", "hosts"]);
    node.wait_for("waiting for the interface port=\"hosts\" interface=\"hosts\"");
    bench.link(HOSTS);
    node.wait_for("attached port=\"hosts\" interface=\"hosts\"");
    let mut right = bench.host(HOSTS);
    let (packet, copies) = end_mt();
    left.send(&packet);
    assert_eq!(right.receive(2, is_copy), copies);

    bench.in_node(&["ip", "link", "set", "hosts", "down"]);
    node.wait_for("link down port=\"hosts\"");
    bench.in_node(&["ip", "link", "set", "hosts", "up"]);
    node.wait_for("link up port=\"hosts\"");
    left.send(&packet);
    assert_eq!(right.receive(2, is_copy), copies);
}
