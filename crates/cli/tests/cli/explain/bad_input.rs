//! Errors for input without anything to explain.

use crate::explain::network::{Bench, N1, Of, Plan, edge};

/// A capture of another place: the addresses that were seen are named.
#[test]
fn captures_of_other_nodes_are_refused() {
    let bench = Bench::of(Plan::quiet(), Of::N2, 0, |_, _, _| true);
    let text = edge(2, &[1, 2, 3], "20us").replace("2001:db8:cc::1", "2001:db8:cc::2");
    std::fs::write(bench.path("node.toml"), text).expect("written");
    assert_eq!(
        bench.refused(&["r1.pcapng"]),
        "srdma: node.toml: no packet of the captures belongs to a group of this configuration (group 1: Proxy Address \
         2001:db8:cc::2); there are 2001:db8:cc::1 > 2001:db8:bb::1 (64 packets), 2001:db8:bb::1 > 2001:db8:cc::1 \
         (32 packets); the MAC addresses are this node's: is the configuration of another group, or the capture of \
         another time?\n"
    );
    std::fs::write(bench.path("node.toml"), N1.replace("2001:db8:cc::1", "2001:db8:cc::2")).expect("written");
    let text = bench.refused(&["r1.pcapng"]);
    assert!(
        text.ends_with(
            "none has a MAC address of this node's ports either: is it another node's capture, or \
                            configuration?\n"
        ),
        "{text}"
    );
}

/// The group is the right one, the node is not: this is no silence of the node.
#[test]
fn captures_of_other_links_are_refused() {
    let bench = Bench::of(Plan::quiet(), Of::N2, 0, |_, _, _| true);
    std::fs::write(bench.path("node.toml"), N1).expect("written");
    assert_eq!(
        bench.refused(&["r1.pcapng"]),
        "srdma: node.toml: none of the 96 packets has a MAC address of this node's ports (s1 02:00:00:00:01:01, n2 \
         02:00:00:00:01:02, n3 02:00:00:00:01:03): is it another node's capture, or configuration? If it is this \
         node's, name the port: --in PORT=FILE\n"
    );
}

#[test]
fn wrong_arguments_are_named() {
    let bench = Bench::of(Plan::quiet(), Of::N2, 0, |_, _, _| true);
    let says = |arguments: &[&str]| bench.refused(arguments);
    assert_eq!(says(&["up.pcapng", "--group", "7"]), "srdma: node.toml: no group 7, the configuration has group 1\n");
    assert_eq!(
        says(&["up.pcapng", "--branch", "2001:db8:bb::9"]),
        "srdma: node.toml: no branch 2001:db8:bb::9, there are branches 2001:db8:bb::1, 2001:db8:bb::2, \
         2001:db8:bb::3\n"
    );
    assert_eq!(
        says(&["--in", "r9=up.pcapng"]),
        "srdma: --in r9=up.pcapng: unknown port r9, node.toml has up, r1, r2, r3\n"
    );
    assert_eq!(says(&["none.pcap"]), "srdma: cannot read none.pcap: No such file or directory (os error 2)\n");
    let text = says(&["node.toml"]);
    assert!(text.contains("cannot read node.toml: expected a pcap or pcapng capture, found"), "{text}");
    assert!(says(&["up.pcapng", "--from", "soon"]).contains("expected seconds, or a number and one of ns, us, ms, s"));
    assert_eq!(
        says(&["up.pcapng", "--from", "2", "--to", "500ms"]),
        "srdma: --from 2s is after --to 500ms: the timeline would be empty\n"
    );
    assert!(says(&[]).contains("<CAPTURE>"));
}

#[test]
fn captures_without_packets_and_nodes_without_groups() {
    let mut bench = Bench::with(&edge(2, &[1], "20us"));
    bench.write("empty.pcapng", &[]);
    assert_eq!(bench.refused(&["empty.pcapng"]), "srdma: the captures have no packet\n");
    let bench = Bench::with("[node]\nloopback = '2001:db8::1'\n");
    assert_eq!(
        bench.refused(&["empty.pcapng"]),
        "srdma: node.toml: the configuration has no [[group]]: there is nothing to explain\n"
    );
}

/// A file that names the port, and a directory of captures whose packets show it, give the same result.
#[test]
fn ports_by_name_and_by_mac_address() {
    let bench = Bench::of(Plan::quiet(), Of::N2, 0, |_, _, _| true);
    let named = ["--in", "up=up.pcapng", "--in", "r1=r1.pcapng", "--port", "r2=r2.pcapng", "--in", "r3=r3.pcapng"];
    let output = bench.try_run(&named);
    assert_eq!(String::from_utf8_lossy(&output.stdout), bench.run(&[]));
}
