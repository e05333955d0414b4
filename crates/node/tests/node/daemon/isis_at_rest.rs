//! Cost of IS-IS for a node with the LSPs of a thousand systems, while nothing changes.

use crate::daemon::bench::{Bench, Host, PATIENCE, Running, UP};
use crate::daemon::isis::HELLO;
use srdma_figures::{Figure, report};
use srdma_isis::tlv::{CapabilityFlags, EndSid, Leak, Locator, LspEntry, Neighbour, RouterCapability, TopologyId};
use srdma_isis::{Level, Lsp, LspFlags, LspId, NodeId, SystemId, frame};
use srdma_node::daemon::read_status;
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

const SYSTEMS: u16 = 1000;

/// The neighbour, and the first of the systems.
const FIRST: u16 = 9;

const CONFIGURATION: &str = "\
[isis]
net = '49.0001.0000.0000.0001.00'
circuit = [{ port = 'uplink' }]
";

/// Number of seconds that are measured.
const SECONDS: usize = 11;

fn node(number: u16) -> NodeId {
    let [high, low] = number.to_be_bytes();
    NodeId::of(SystemId([0, 0, 0, 0, high, low]))
}

/// The LSP of a system in a row of them, with the C-flag, END.C and END.E; the first has ours beside it.
fn lsp(number: u16) -> Vec<u8> {
    let before = if number == FIRST { 1 } else { number - 1 };
    let after = (number + 1 < FIRST + SYSTEMS).then_some(number + 1);
    let beside = |other| Neighbour { node: node(other), metric: 10, end_x: Vec::new() };
    let mut tlvs = Vec::new();
    let beside: Vec<Neighbour> = [before].into_iter().chain(after).map(beside).collect();
    Neighbour::emit_all(&beside, TopologyId::STANDARD, &mut tlvs);
    let srv6 = Some(CapabilityFlags::CONGESTION_NOTIFICATION);
    RouterCapability { srv6, ..RouterCapability::default() }.emit(&mut tlvs);
    let address = |function| Ipv6Addr::new(0x5f00, 0, number, function, 0, 0, 0, 0);
    let sid = |behavior, function| EndSid { behavior, sid: address(function), structure: None };
    let prefix = Prefix::new(address(0), 48).expect("a prefix");
    let sids = vec![sid(0x8001, 0xC), sid(0x8002, 0xE)];
    Locator { topology: TopologyId::STANDARD, metric: 0, leak: Leak::None, algorithm: 0, prefix, sids }.emit(&mut tlvs);
    let id = LspId { node: node(number), fragment: 0 };
    let entry = LspEntry { lifetime_s: 1200, id, sequence: 1, checksum: 0 };
    let lsp = Lsp::new(Level::Two, entry, LspFlags { is_level_2: true, ..LspFlags::default() }, &tlvs);
    frame::wrap(MacAddress([2, 0, 0, 0, 0, 9]), lsp.octets()).expect("short")
}

/// [`HELLO`] with an interface address (TLV 232), fe80::9: without one the node has no next hop, and the kernel no
/// route.
fn hello() -> Vec<u8> {
    let mut octets = hex::decode(HELLO).expect("digits");
    // The length of the frame, and that of the PDU.
    for (place, length) in [(12..14, [0, 0x31]), (34..36, [0, 0x2E])] {
        assert_eq!(octets[place.clone()], length, "a length is where it was");
        octets[place].copy_from_slice(&[0, length[1] + 18]);
    }
    octets.extend([232, 16]);
    octets.extend(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 9).octets());
    octets
}

/// Processor time in each of some seconds; the neighbour sends hellos meanwhile.
fn measure(systems: u16, node: &Running, neighbour: &mut Host) -> Figure {
    let in_a_second = |_| {
        neighbour.send_frame(&hello());
        let before = node.processor_time();
        std::thread::sleep(Duration::from_secs(1));
        (node.processor_time() - before).as_secs_f64() * 1e3
    };
    report(format!("{systems} systems"), "ms", (0..SECONDS).map(in_a_second))
}

/// Nothing is computed again while nothing changes: a node with a thousand systems works as little as one without any.
#[test]
#[ignore = "needs root"]
fn a_thousand_systems_at_rest_cost_nothing() {
    let bench = Bench::new("af_packet", CONFIGURATION);
    let mut neighbour = bench.host(UP);
    let mut node = bench.start();
    node.wait_for("ready");
    let alone = measure(0, &node, &mut neighbour);
    neighbour.send_frame(&hello());
    node.wait_for("neighbour up port=\"uplink\" neighbour=\"0000.0000.0009\"");
    let end = Instant::now() + PATIENCE;
    let is_known = || {
        let isis = read_status(&bench.status()).expect("it answers").isis.expect("it speaks IS-IS");
        (isis.lsps.len(), isis.routes.len()) == (usize::from(SYSTEMS) + 1, usize::from(SYSTEMS))
    };
    while !is_known() {
        assert!(Instant::now() < end, "not all LSPs come");
        neighbour.send_frame(&hello());
        for number in FIRST..FIRST + SYSTEMS {
            neighbour.send_frame(&lsp(number));
            // No more than the node's socket takes.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let in_kernel = || bench.in_node(&["ip", "-6", "route", "show", "table", "all", "proto", "201"]).lines().count();
    while in_kernel() < usize::from(SYSTEMS) {
        assert!(Instant::now() < end, "{} routes are in the kernel", in_kernel());
        neighbour.send_frame(&hello());
        std::thread::sleep(Duration::from_millis(200));
    }
    let known = measure(SYSTEMS, &node, &mut neighbour);
    assert!(known.median < alone.median + 5.0, "{alone} {known}");
}
