//! Fast CNPs across the border of a WAN: by END.E of the ingress PE (CN-4.2-1, CN-4.2-2, D63, D64).

use crate::common::{Bench, golden, next_hop};
use crate::fast_cnp::packets::*;
use srdma_dataplane::{
    BackpressureSids, Command, Connection, Domain, FastCnpConfig, Notified, RouteAction, SidBehavior, TableId,
};
use srdma_frame::PortId;
use srdma_wire::{Instant, Qpn};

const CAPTURE: &str = "scapy_05_endc_ende.pcap";

/// The END.E of the capture, its ingress PE and its congested router.
const END_E: &str = "5f00:0:9:d000::";
const PE: &str = "2001:db8:53::9";
const ROUTER: &str = "2001:db8:53::2";

/// An outer header of the congested router's around a packet: no SRH.
fn around(source: &str, destination: &str, inner: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | inner[0] & 0xF, inner[1] & 0xF0, 0, 0, 0, inner.len() as u8, 41, 64];
    packet.extend(address(source).octets());
    packet.extend(address(destination).octets());
    packet.extend(inner);
    packet
}

/// The same with an SRH, whose one segment is reached.
fn around_with_srh(source: &str, destination: &str, inner: &[u8]) -> Vec<u8> {
    let mut packet = around(source, destination, inner);
    let srh = [&[41, 2, 4, 0, 0, 0, 0, 0][..], &address(destination).octets()].concat();
    packet[5] += srh.len() as u8;
    packet[6] = 43;
    packet.splice(40..40, srh);
    packet
}

fn without_flow_label(mut packet: Vec<u8>) -> Vec<u8> {
    packet[1] &= 0xF0;
    packet[2..4].fill(0);
    packet
}

/// The PE of the capture: its DC behind port 0, in a table of its own; the WAN behind port 1.
fn pe() -> Bench {
    let mut bench = Bench::new(PE, 2);
    let action = RouteAction::Via(vec![next_hop(0)]);
    bench.apply(Command::AddRoute { table: TableId(7), prefix: prefix("2001:db8:1::/48"), action });
    bench.route("::/0", 1);
    bench.apply(Command::AddSid { prefix: prefix(END_E), behavior: SidBehavior::EndE(TableId(7)) });
    bench
}

/// The same with the boundary of its SR domain, the DC outside of it.
fn guarded_pe() -> Bench {
    let mut bench = pe();
    bench.apply(Command::SetDomain(Domain {
        sids: vec![prefix("5f00::/32")],
        infrastructure: vec![prefix("2001:db8:53::/48")],
        proxies: Vec::new(),
    }));
    bench.apply(Command::SetBorder { port: PortId(0), sources: vec![prefix("2001:db8:1::/48")] });
    bench
}

/// CN-4.2-1: the outer headers that scapy has put around a Fast CNP are removed, with an SRH and without, and the VRF's
/// table gives the next hop: across a border that lets no other Fast CNP out (D64, FC-5-1).
#[test]
fn end_e_passes_the_fast_cnp_on_to_the_sender() {
    let capture = golden(CAPTURE);
    let expected = vec![(0, forwarded(capture[2].clone()))];
    for mut bench in [pe(), guarded_pe()] {
        assert_eq!(bench.send(1, &capture[0]), expected);
        assert_eq!(bench.send(1, &around_with_srh(ROUTER, END_E, &capture[2])), expected);
        assert_eq!(bench.drops(1), []);
    }
}

/// FC-5-1: END.E is the one exception. The same Fast CNP by End.DT6, or in no tunnel at all, stays inside.
#[test]
fn only_fast_cnps_from_end_e_leave_by_the_border() {
    let mut bench = guarded_pe();
    let inner = &golden(CAPTURE)[2];
    bench.apply(Command::AddSid { prefix: prefix("5f00:0:9:d6::"), behavior: SidBehavior::EndDt6(TableId(7)) });
    assert!(bench.send(1, &around(ROUTER, "5f00:0:9:d6::", inner)).is_empty());
    bench.route("2001:db8:1::/48", 0);
    assert!(bench.send(1, inner).is_empty());
    assert_eq!(bench.drops(1), [("fast_cnp_at_border", 2)]);
    assert_eq!(bench.send(1, &golden(CAPTURE)[0]).len(), 1);
}

/// D66: only from inside the SR domain, whatever the source address.
#[test]
fn end_e_is_not_reachable_from_outside() {
    let mut bench = guarded_pe();
    let inner = &golden(CAPTURE)[2];
    assert!(bench.send(0, &around(SENDER, END_E, inner)).is_empty());
    assert!(bench.send(0, &around(ROUTER, END_E, inner)).is_empty());
    assert!(bench.send(1, &around(SENDER, END_E, inner)).is_empty());
    assert_eq!(bench.drops(0), [("forged_source", 1), ("sid_from_outside", 1)]);
    assert_eq!(bench.drops(1), [("foreign_source", 1)]);
}

/// Packets that are not in a tunnel have drop reasons.
#[test]
fn end_e_accepts_only_tunnels() {
    let mut bench = pe();
    let inner = &golden(CAPTURE)[2];
    let mut bare = data(ROUTER, END_E, 7);
    bare[6] = 59;
    bench.send(1, &bare);
    let mut left = around_with_srh(ROUTER, END_E, inner);
    left[43] = 1;
    left[44] = 1;
    left[41] = 4;
    left[5] += 16;
    left.splice(64..64, address("5f00::1").octets());
    bench.send(1, &left);
    bench.send(1, &around(ROUTER, END_E, &inner[..60]));
    let nowhere = around(ROUTER, END_E, &fast_cnp(ROUTER, "2001:db8:7::1", RECEIVER, 7));
    bench.send(1, &nowhere);
    let names: Vec<&str> = bench.drops(1).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["truncated", "no_route", "segments_left", "upper_layer"]);
}

/// D48, D64: a host without Fast CNP support gets a standard CNP, from the receiver's address and to its own queue
/// pair; a Fast CNP from an unlisted source, or of an unknown connection, is dropped.
#[test]
fn the_pe_translates() {
    let mut bench = guarded_pe();
    let switches = vec![prefix("2001:db8:53::/48")];
    turn_on(
        &mut bench,
        FastCnpConfig { translated: vec![prefix("2001:db8:1::/48")], switches, ..FastCnpConfig::new() },
    );
    let (host, peer) = (address(SENDER), address(RECEIVER));
    let [host_qpn, peer_qpn] = [0x77, 0xABCD].map(|qpn| Qpn::new(qpn).unwrap());
    bench.apply(Command::AddConnection(Connection { host, host_qpn, peer, peer_qpn }));
    let expected = vec![(0, forwarded(cnp(RECEIVER, SENDER, 0x77)))];
    assert_eq!(bench.send(1, &around(ROUTER, END_E, &fast_cnp(ROUTER, SENDER, RECEIVER, 0xABCD))), expected);
    assert!(bench.send(1, &around(ROUTER, END_E, &fast_cnp(ROUTER, SENDER, RECEIVER, 0xABCE))).is_empty());
    assert!(bench.send(1, &around(ROUTER, END_E, &fast_cnp("2001:db8:dd::1", SENDER, RECEIVER, 0xABCD))).is_empty());
    assert_eq!(bench.drops(1), [("fast_cnp_foreign_source", 1), ("fast_cnp_no_connection", 1)]);
    assert_eq!(bench.node.fast_cnp_counters().translated, 1);
}

/// A router of the WAN with the PE's END.E configured.
fn router() -> Bench {
    let mut bench = Bench::new(ROUTER, 2);
    bench.route("5f00:0:9::/48", 0);
    bench.route("::/0", 1);
    turn_on(&mut bench, FastCnpConfig { interval: std::time::Duration::from_nanos(1), ..config() });
    let sids = BackpressureSids { outer_source: prefix(PE), end_c: None, end_e: Some(address(END_E)) };
    bench.apply(Command::SetBackpressureSids(vec![sids]));
    bench
}

/// CN-4.2-2: a packet that the PE has put into a tunnel, with an SRH or without, meets congestion: the Fast CNP goes to
/// the END.E, in a header like that of the capture. One that is in no tunnel goes to the sender by itself.
#[test]
fn a_congested_router_notifies_the_sender_by_end_e() {
    let expected = around(ROUTER, END_E, &fast_cnp(ROUTER, SENDER, RECEIVER, 0xABCD));
    let captured = &golden(CAPTURE)[0];
    assert_eq!(expected[4..40], captured[4..40], "but for DSCP and flow label scapy's header is the same");
    let mut bench = router();
    let inner = data(SENDER, RECEIVER, 0xABCD);
    for (step, packet) in
        [around(PE, "5f00:0:a:d6::", &inner), around_with_srh(PE, "5f00:0:a:d6::", &inner)].iter().enumerate()
    {
        bench.now = Instant::from_ns(1000 * step as u64);
        let (mark, sent) = congested(&mut bench, packet);
        let [(0, octets)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((mark, without_flow_label(octets.clone())), (Notified::Sender, expected.clone()));
    }
    bench.now = Instant::from_ns(1_000_000);
    let direct = (1, fast_cnp(ROUTER, SENDER, RECEIVER, 0xABCD));
    assert_eq!(congested(&mut bench, &inner), (Notified::Sender, vec![direct]));
    let counters = bench.node.fast_cnp_counters();
    assert_eq!((counters.sent, counters.sent_by_end_e, counters.unknown_ingress), (3, 2, 0));
}

/// D63: without a SID for a tunnel's source there is no way back, whatever routes there are. The packet is marked, it
/// is counted, and the flow's turn is not used up.
#[test]
fn without_an_entry_the_packet_is_marked() {
    let mut bench = router();
    let unknown = around("2001:db8:53::8", "5f00:0:a:d6::", &data(SENDER, RECEIVER, 7));
    assert_eq!(congested(&mut bench, &unknown), (Notified::Marking, vec![]));
    assert_eq!(congested(&mut bench, &unknown), (Notified::Marking, vec![]));
    let counters = bench.node.fast_cnp_counters();
    assert_eq!((counters.sent, counters.unknown_ingress, counters.refused_by_flow), (0, 2, 0));
    let known = around(PE, "5f00:0:a:d6::", &data(SENDER, RECEIVER, 7));
    assert_eq!(congested(&mut bench, &known).0, Notified::Sender);
    bench.apply(Command::SetBackpressureSids(Vec::new()));
    bench.now = Instant::from_ns(1000);
    let direct = (1, fast_cnp(ROUTER, SENDER, RECEIVER, 7));
    assert_eq!(congested(&mut bench, &unknown), (Notified::Sender, vec![direct]), "as it began");
}

/// A PE that is congested itself notifies its sender directly, across its border.
#[test]
fn a_congested_pe_notifies_its_own_sender() {
    let mut bench = guarded_pe();
    turn_on(&mut bench, config());
    let sids = BackpressureSids { outer_source: prefix(PE), end_c: None, end_e: Some(address(END_E)) };
    bench.apply(Command::SetBackpressureSids(vec![sids]));
    let packet = around(PE, "5f00:0:a:d6::", &data(SENDER, RECEIVER, 7));
    let sent = (0, fast_cnp(PE, SENDER, RECEIVER, 7));
    assert_eq!(congested(&mut bench, &packet), (Notified::Sender, vec![sent]));
}
