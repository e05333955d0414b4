//! END.C at a PE: effect of a notification on the gateway (CN-4.1-1, CN-4.1-3, D61, D62). The expected pauses are from
//! scapy.

use crate::backpressure::support::*;
use crate::common::Bench;
use srdma_dataplane::*;
use srdma_frame::{Element, PortId};

/// A pause and a resume of class 3, made by scapy.
fn expected_frames() -> [Vec<u8>; 2] {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/scapy_06_pfc.pcap");
    let reader = srdma_capture::Reader::new(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap();
    let mut frames = reader.map(|packet| packet.unwrap().octets);
    [frames.next().unwrap(), frames.next().unwrap()]
}

fn gateway_frames(bench: &mut Bench) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| bench.give_out(GATEWAY)).collect()
}

const NOTHING: Vec<Vec<u8>> = Vec::new();

/// CN-4.1-1: pause and resume, octet by octet, with an SRH in the outer header and without.
#[test]
fn a_notification_pauses_the_gateway() {
    for dress in [|packet| packet, with_srh] {
        let mut bench = pe();
        let [pause_frame, resume_frame] = expected_frames();
        bench.take_in(0, &dress(notification(ROUTER, pause(3, 1, 500))));
        assert_eq!(gateway_frames(&mut bench), [pause_frame]);
        assert_eq!(bench.node.pausing_classes(GATEWAY), 1 << 3);
        let pauses: Vec<ReceivedPause> = bench.node.received_pauses().collect();
        let until = srdma_wire::Instant::from_ns(500_000);
        assert_eq!(pauses, [ReceivedPause { congested: address(ROUTER), traffic_class: 3, until }]);
        bench.take_in(0, &dress(notification(ROUTER, resume(3, 2))));
        assert_eq!(gateway_frames(&mut bench), [resume_frame]);
        assert_eq!((bench.node.received_pauses().count(), bench.node.pausing_classes(GATEWAY)), (0, 0));
        let counters = bench.node.backpressure_counters();
        assert_eq!((counters.pauses_received, counters.resumes_received), (1, 1));
        assert_eq!((bench.drops(0), bench.pool.in_use()), (vec![], 0));
    }
}

/// D62: refreshed at half of the longest PFC pause, 168 us of 336; and resumed when the hold time is over, to the
/// microsecond.
#[test]
fn a_pause_is_refreshed_for_its_hold_time() {
    let mut bench = pe();
    let [pause_frame, resume_frame] = expected_frames();
    bench.take_in(0, &notification(ROUTER, pause(3, 1, 500)));
    let mut seen = Vec::new();
    for us in 0..=1000 {
        bench.wait_until(us);
        seen.extend(gateway_frames(&mut bench).into_iter().map(|frame| (us, frame)));
    }
    let times: Vec<u64> = seen.iter().map(|(us, _)| *us).collect();
    assert_eq!(times, [0, 168, 336, 500]);
    assert!(seen[..3].iter().all(|(_, frame)| *frame == pause_frame));
    assert_eq!((&seen[3].1, bench.node.backpressure_counters().expired), (&resume_frame, 1));
    assert_eq!(bench.node.next_deadline(), None);
}

/// D62: the gateway is resumed at the end of the last pause; XOFF of the PE is an additional reason.
#[test]
fn pauses_of_several_nodes_are_ored() {
    let mut bench = pe();
    bench.take_in(0, &notification(ROUTER, pause(3, 1, 500)));
    bench.take_in(0, &notification("2001:db8:53::3", pause(3, 77, 900)));
    assert_eq!(gateway_frames(&mut bench).len(), 1);
    bench.take_in(0, &notification(ROUTER, resume(3, 2)));
    assert_eq!(gateway_frames(&mut bench), NOTHING);
    bench.wait_until(899);
    assert_eq!(bench.node.pausing_classes(GATEWAY), 1 << 3);
    bench.wait_until(900);
    assert_eq!(
        (gateway_frames(&mut bench).pop(), bench.node.pausing_classes(GATEWAY)),
        (Some(expected_frames()[1].clone()), 0)
    );
}

/// Malformed input has its drop reasons, and pauses nothing.
#[test]
fn refused_notifications_are_counted_by_reason() {
    let capture = crate::common::golden("scapy_05_endc_ende.pcap");
    let bad = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message = message(ROUTER, pause(3, 5, 500));
        change(&mut message);
        ipv6(ROUTER, END_C, 6, 41, &inner(ROUTER, END_C, message))
    };
    let damaged = {
        let mut packet = notification(ROUTER, pause(3, 5, 500));
        packet[80 + 11] ^= 1;
        packet
    };
    let for_another = ipv6(ROUTER, END_C, 6, 41, &inner(ROUTER, "5f00:0:9:c001::", message(ROUTER, pause(3, 5, 500))));
    let from_another = ipv6(PE, END_C, 6, 41, &inner(ROUTER, END_C, message(ROUTER, pause(3, 5, 500))));
    let in_no_tunnel = inner(ROUTER, END_C, message(ROUTER, pause(3, 5, 500)));
    for (packet, reason) in [
        (capture[1].clone(), "backpressure_malformed"),
        (bad(&|message| message[0] = 201), "backpressure_malformed"),
        (bad(&|message| message[1] = 2), "backpressure_malformed"),
        (bad(&|message| message[4] = 2), "backpressure_version"),
        (damaged, "backpressure_checksum"),
        (bad(&|message| message[31] ^= 1), "backpressure_foreign_origin"),
        (for_another, "backpressure_foreign_origin"),
        (from_another, "backpressure_foreign_origin"),
        (notification(ROUTER, pause(4, 5, 500)), "backpressure_unmapped"),
        (notification(ROUTER, pause(3, 5, 0)), "backpressure_no_hold"),
        (in_no_tunnel, "upper_layer"),
    ] {
        let mut bench = pe();
        bench.take_in(0, &packet);
        assert_eq!((bench.drops(0), gateway_frames(&mut bench)), (vec![(reason, 1)], NOTHING));
        assert_eq!((bench.node.received_pauses().count(), bench.node.backpressure_counters().pauses_received), (0, 0));
    }
}

/// D62: an old sequence number changes nothing until the hold time is over.
#[test]
fn old_notifications_are_dropped() {
    let mut bench = pe();
    bench.take_in(0, &notification(ROUTER, pause(3, 100, 500)));
    gateway_frames(&mut bench);
    for old in [resume(3, 100), resume(3, 99), resume(3, 100_u32.wrapping_sub(1 << 31).wrapping_add(1))] {
        bench.take_in(0, &notification(ROUTER, old));
    }
    assert_eq!((gateway_frames(&mut bench), bench.drops(0)), (NOTHING, vec![("backpressure_stale", 3)]));
    bench.wait_until(500);
    gateway_frames(&mut bench);
    bench.take_in(0, &notification(ROUTER, pause(3, 4, 500)));
    assert_eq!(gateway_frames(&mut bench).len(), 1, "a router that has restarted");
}

/// D61: a class whose port has no PFC cannot be paused; nor can any at a node without a mapping.
#[test]
fn without_pfc_or_a_mapping_nothing_is_paused() {
    let mut bench = pe();
    bench.apply(Command::RemoveEgress(GATEWAY));
    bench.take_in(0, &notification(ROUTER, pause(3, 1, 500)));
    assert_eq!(bench.drops(0), [("backpressure_unmapped", 1)]);
    bench.apply(Command::RemoveBackpressure);
    bench.take_in(0, &notification(ROUTER, pause(3, 2, 500)));
    assert_eq!(bench.drops(0), [("backpressure_off", 1), ("backpressure_unmapped", 1)]);
}

/// Paused classes are resumed when backpressure is disabled or reconfigured.
#[test]
fn disabling_it_resumes_the_gateway() {
    for command in [Command::RemoveBackpressure, Command::SetBackpressure(Box::new(at_pe()))] {
        let mut bench = pe();
        bench.take_in(0, &notification(ROUTER, pause(3, 1, 500)));
        assert_eq!(gateway_frames(&mut bench).len(), 1);
        bench.apply(command);
        assert_eq!(gateway_frames(&mut bench), [expected_frames()[1].clone()]);
    }
}

#[test]
fn impossible_requests_are_refused() {
    let mut bench = pe();
    let refused = |bench: &mut Bench, change: &dyn Fn(&mut BackpressureConfig)| {
        let mut config = at_pe();
        change(&mut config);
        bench.node.apply(Command::SetBackpressure(Box::new(config))).unwrap_err().to_string()
    };
    let no_port = refused(&mut bench, &|config| config.priorities[0].ports.push(PortId(9)));
    assert_eq!(no_port, "port 9 does not exist, the node has 2");
    let no_priority = refused(&mut bench, &|config| config.priorities[0].priority = 8);
    assert_eq!(no_priority, "backpressure: traffic class 3: there is no PFC priority 8, they end with 7");
    bench.take_in(0, &notification(ROUTER, pause(3, 1, 500)));
    assert_eq!(gateway_frames(&mut bench).len(), 1, "the previous configuration stays");
}

/// From the router's queue to the gateway, and back.
#[test]
fn a_pe_applies_the_notifications_of_a_router() {
    let (mut router, mut pe) = (router(), pe());
    (0..5).for_each(|_| router.take_in(2, &tunnelled(PE, 3, 986)));
    for packet in router.notifications() {
        pe.take_in(0, &packet);
    }
    let [pause_frame, resume_frame] = expected_frames();
    assert_eq!(gateway_frames(&mut pe), [pause_frame]);
    while router.give_out(PortId(1)).is_some() {}
    for packet in router.notifications() {
        pe.take_in(0, &packet);
    }
    assert_eq!((gateway_frames(&mut pe), pe.drops(0)), (vec![resume_frame], vec![]));
}
