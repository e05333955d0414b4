//! The fast path of a node on real links: the same packets as through the element, and nothing lost where it cannot be.

use crate::daemon::bench::{Bench, HOSTS, PATIENCE, UP, golden};
use crate::daemon::forwarding::{CONFIGURATION, end_mt, is_copy};
use srdma_node::daemon::{PortSnapshot, Snapshot, read_status};
use std::path::Path;
use std::time::{Duration, Instant};

/// What uN makes of the kernel's packets (PP-5.2-2).
pub(crate) fn micro() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let to = |container: &str, prefix: [u8; 6]| {
        golden(container).into_iter().filter(|packet| packet[24..].starts_with(&prefix)).collect::<Vec<_>>()
    };
    let sent = to("kernel_t1_usid_red_2r1-r2", [0x5F, 0, 0, 0, 2, 0]);
    let expected = to("kernel_t1_usid_red_3r2-r3", [0x5F, 0, 0, 0, 3, 0]);
    assert!(!sent.is_empty() && sent.len() == expected.len());
    (sent, expected)
}

/// A node with the fast path, which is on at all ports but those that `more` takes out.
fn bench(driver: &str, more: &str) -> Bench {
    let bench = Bench::new(driver, CONFIGURATION);
    let text = std::fs::read_to_string(bench.file()).expect("the node's file");
    let text = text.replace("[daemon]\n", "[daemon]\nfast_path = true\n") + more;
    std::fs::write(bench.file(), text).expect("written");
    bench
}

/// Waits for a state of the node, as it reports it.
#[track_caller]
fn wait_until(status: &Path, what: &str, is_so: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let end = Instant::now() + PATIENCE;
    loop {
        let snapshot = read_status(status).expect("the node's status");
        if is_so(&snapshot) {
            return snapshot;
        }
        assert!(Instant::now() < end, "{what}: {:#?}", snapshot.ports);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_on(port: &PortSnapshot) -> bool {
    port.fast_path.as_ref().is_some_and(|fast_path| fast_path.is_on)
}

fn forwarded(snapshot: &Snapshot) -> u64 {
    snapshot.ports[HOSTS].fast_path.as_ref().map_or(0, |fast_path| fast_path.sent.frames)
}

fn gro(bench: &Bench, state: &str) {
    for port in [UP, HOSTS] {
        bench.in_host(port, &["ethtool", "-K", "eth0", "gro", state]);
    }
}

/// D235, D237: Packets are forwarded by the program, those that need the element by that, and both are counted; a peer
/// that can take no redirected frames is noticed before and while the node runs, and everything goes through the
/// element then.
#[test]
#[ignore = "needs root"]
fn packets_are_the_kernels_and_a_target_that_takes_none_is_noticed() {
    let bench = bench("af_xdp", "");
    let (mut left, mut right) = (bench.host(UP), bench.host(HOSTS));
    let mut node = bench.start();
    node.wait_for("ready");
    let (sent, expected) = micro();
    let is_expected = |packet: &[u8]| packet[24..].starts_with(&[0x5F, 0, 0, 0, 3, 0]);
    let mut exchange = || {
        sent.iter().for_each(|packet| left.send(packet));
        assert_eq!(right.receive(expected.len(), is_expected), expected);
    };
    let status = bench.status();
    let all_off = |snapshot: &Snapshot| !snapshot.ports.iter().any(is_on);
    let all_on = |snapshot: &Snapshot| snapshot.ports.iter().all(is_on);

    let before = wait_until(&status, "off without GRO", all_off);
    let reason = before.ports[HOSTS].fast_path.as_ref().and_then(|fast_path| fast_path.reason.clone());
    assert!(reason.as_ref().is_some_and(|reason| reason.contains("takes no redirected frames")), "{reason:?}");
    exchange();

    gro(&bench, "on");
    wait_until(&status, "on with GRO", all_on);
    exchange();
    let frames = expected.len() as u64;
    let after = wait_until(&status, "forwarded by the program", |snapshot| forwarded(snapshot) == frames);
    // Both exchanges, wherever their packets went.
    let micro = after.sids.iter().find(|sid| sid.sid == "5f00:0:200::/48").expect("the SID");
    assert_eq!((micro.processed.frames, after.ports[HOSTS].sent.frames), (2 * frames, 2 * frames));

    gro(&bench, "off");
    wait_until(&status, "off without GRO again", all_off);
    exchange();
    assert_eq!(forwarded(&wait_until(&status, "shown", |_| true)), frames);

    // What is not the program's: End.MT.
    gro(&bench, "on");
    wait_until(&status, "on again", all_on);
    let (packet, copies) = end_mt();
    left.send(&packet);
    assert_eq!(right.receive(2, is_copy), copies);
    assert_eq!(forwarded(&wait_until(&status, "shown", |_| true)), frames);
}

/// D236: A change of the configuration is in effect, in the program as well, when the node reports it.
#[test]
#[ignore = "needs root"]
fn a_reload_changes_what_is_forwarded() {
    let bench = bench("af_xdp", "");
    let (mut left, mut right) = (bench.host(UP), bench.host(HOSTS));
    gro(&bench, "on");
    let mut node = bench.start();
    node.wait_for("ready");
    let status = bench.status();
    wait_until(&status, "on", |snapshot| snapshot.ports.iter().all(is_on));
    let text = std::fs::read_to_string(bench.file()).expect("the node's file");
    let other = "02:00:00:00:00:0a";
    std::fs::write(bench.file(), text.replace("02:00:00:00:00:09", other)).expect("written");
    node.wait_for("reloaded");
    let (sent, expected) = micro();
    sent.iter().for_each(|packet| left.send(packet));
    let is_expected = |packet: &[u8]| packet[24..].starts_with(&[0x5F, 0, 0, 0, 3, 0]);
    assert_eq!(right.receive(expected.len(), is_expected), expected);
    let frames = expected.len() as u64;
    wait_until(&status, "forwarded by the program", |snapshot| forwarded(snapshot) == frames);
    // Traffic classes take the port out, and what leads there goes through the element.
    let classes = "[[egress]]\nport = 'hosts'\nrate_bits_per_s = 1000000000\n";
    std::fs::write(bench.file(), text + classes).expect("written");
    node.wait_for("reloaded");
    let after = wait_until(&status, "off at the port", |snapshot| !is_on(&snapshot.ports[HOSTS]));
    assert!(is_on(&after.ports[UP]));
    sent.iter().for_each(|packet| left.send(packet));
    assert_eq!(right.receive(expected.len(), is_expected), expected);
    assert_eq!(forwarded(&wait_until(&status, "shown", |_| true)), frames);
}

#[test]
#[ignore = "needs root"]
fn other_drivers_and_ports_that_are_excluded_have_no_fast_path() {
    for (driver, reason) in [("af_xdp_generic", "AF_XDP generic"), ("af_packet", "AF_PACKET")] {
        let bench = bench(driver, "");
        gro(&bench, "on");
        let mut node = bench.start();
        node.wait_for("ready");
        let snapshot = wait_until(&bench.status(), "off", |snapshot| !snapshot.ports.iter().any(is_on));
        for port in &snapshot.ports {
            let found = port.fast_path.as_ref().and_then(|fast_path| fast_path.reason.as_ref());
            assert!(found.is_some_and(|found| found.contains(reason)), "{found:?}");
        }
    }
}
