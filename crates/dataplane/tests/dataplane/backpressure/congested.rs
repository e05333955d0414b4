//! A congested router: the PEs that it requests pauses from, and their start and end (CN-4.1-2, D67).

use crate::backpressure::support::*;
use crate::common::Bench;
use srdma_dataplane::*;
use srdma_frame::{Element, PortId};

const OTHER_PE: &str = "2001:db8:53::8";
const BOTTLENECK: PortId = PortId(1);

/// What goes to a PE: an outer header of the same addresses around the notification.
fn expected(end_c: &str, content: Content) -> Vec<u8> {
    ipv6(ROUTER, end_c, 6, 41, &inner(ROUTER, end_c, message(ROUTER, content)))
}

/// Frames of a thousand octets.
fn fill(bench: &mut Bench, pe: &str, class: u8, count: usize) {
    (0..count).for_each(|_| bench.take_in(2, &tunnelled(pe, class, 986)));
}

/// CN-4.1-2, D62, D67: a pause when a packet finds more than XOFF, once; again while the queue stays above XON; a resume
/// at XON. Octet by octet, the clock in the sequence numbers.
#[test]
fn a_pause_at_xoff_and_a_resume_at_xon() {
    let mut bench = router();
    bench.wait_until(7);
    fill(&mut bench, PE, 3, 4);
    assert_eq!(bench.notifications(), Vec::<Vec<u8>>::new(), "3000 octets are not more than XOFF");
    fill(&mut bench, PE, 3, 1);
    let content = Content { code: PAUSE, class: 3, level: 192, sequence: 7, hold_us: 10_000 };
    assert_eq!(bench.notifications(), [expected(END_C, content)]);
    fill(&mut bench, PE, 3, 3);
    assert_eq!(bench.notifications(), Vec::<Vec<u8>>::new(), "the pause was sent before");
    assert_eq!(bench.node.sent_pauses().collect::<Vec<_>>(), [(address(END_C), 3)]);

    (0..4).for_each(|_| assert!(bench.give_out(BOTTLENECK).is_some()));
    bench.wait_until(5007);
    assert_eq!(bench.notifications(), [expected(END_C, Content { level: 192, sequence: 5007, ..content })], "again");
    (0..2).for_each(|_| assert!(bench.give_out(BOTTLENECK).is_some()));
    assert_eq!(bench.notifications(), Vec::<Vec<u8>>::new(), "2000 octets are more than XON");
    bench.give_out(BOTTLENECK).unwrap();
    assert_eq!(bench.notifications(), [expected(END_C, resume(3, 5008))]);
    assert_eq!(bench.node.sent_pauses().count(), 0);
    bench.give_out(BOTTLENECK).unwrap();
    bench.wait_until(60_000);
    assert_eq!(bench.notifications(), Vec::<Vec<u8>>::new());
    let counters = bench.node.backpressure_counters();
    assert_eq!((counters.pauses_sent, counters.refreshes_sent, counters.resumes_sent), (1, 1, 1));
    assert_eq!((counters.not_sent, bench.pool.in_use()), (0, 0));
}

/// XON above XOFF: the resume leaves early, on the way down, and what arrives then is no reason before XOFF or XON.
#[test]
fn an_early_resume_leaves_while_the_queue_is_above_xoff() {
    let mut bench = router();
    let mut egress = EgressConfig::new(100_000_000, 1 << 20);
    egress.classes[3].backpressure = Some(BackpressureThresholds { xoff_octets: 1000, xon_octets: 4000 });
    bench.apply(Command::SetEgress { port: BOTTLENECK, egress: Box::new(egress) });
    let codes = |bench: &mut Bench| -> Vec<u8> { bench.notifications().iter().map(|packet| packet[81]).collect() };
    fill(&mut bench, PE, 3, 3);
    assert_eq!(codes(&mut bench), [PAUSE], "the third finds 2000");
    bench.give_out(BOTTLENECK).unwrap();
    assert!(codes(&mut bench).is_empty(), "it has not been above XON");
    fill(&mut bench, PE, 3, 4);
    assert!(codes(&mut bench).is_empty(), "the pause was sent before");
    (0..2).for_each(|_| assert!(bench.give_out(BOTTLENECK).is_some()));
    assert_eq!(codes(&mut bench), [RESUME], "4000 octets are no more than XON");
    fill(&mut bench, PE, 3, 1);
    bench.give_out(BOTTLENECK).unwrap();
    assert!(codes(&mut bench).is_empty(), "what comes on the way down is no reason");
    fill(&mut bench, PE, 3, 2);
    assert_eq!(codes(&mut bench), [PAUSE], "it turns before XOFF, and comes above XON");
    while bench.give_out(BOTTLENECK).is_some() {}
    assert_eq!(codes(&mut bench), [RESUME]);
    fill(&mut bench, PE, 3, 3);
    assert_eq!(codes(&mut bench), [PAUSE], "from the beginning");
}

/// A pause is requested from each PE whose packets arrive above XOFF, for the class of the queue and no other.
#[test]
fn every_ingress_pe_is_notified() {
    let mut bench = router();
    fill(&mut bench, PE, 4, 9);
    fill(&mut bench, PE, 3, 4);
    assert_eq!(bench.notifications(), Vec::<Vec<u8>>::new(), "class 4 has no backpressure");
    bench.take_in(2, &with_srh(tunnelled(OTHER_PE, 3, 900)));
    bench.take_in(2, &tunnelled(PE, 3, 986));
    let (one, other) = (pause(3, 0, 10_000), pause(3, 1, 10_000));
    let sent = bench.notifications();
    assert_eq!(sent.len(), 2);
    for (packet, (end_c, content)) in sent.iter().zip([("5f00:0:8:c000::", one), (END_C, other)]) {
        let level = packet[40 + 40 + 6];
        assert_eq!(*packet, expected(end_c, Content { level, ..content }));
    }
    while bench.give_out(BOTTLENECK).is_some() {}
    assert_eq!(bench.notifications().len(), 2, "both are resumed");
}

/// D63: no pause is requested for a packet in no tunnel, in a tunnel of an unknown source, or made by the node itself.
#[test]
fn unknown_sources_cause_no_notification() {
    let mut bench = router();
    fill(&mut bench, "2001:db8:53::7", 3, 6);
    bench.take_in(2, &ipv6(PE, EGRESS, 3, 59, &[0; 900]));
    assert_eq!(bench.notifications(), Vec::<Vec<u8>>::new());
    let counters = bench.node.backpressure_counters();
    assert_eq!((counters.pauses_sent, counters.unknown_ingress), (0, 2));
}

/// Off initially, and again when disabled.
#[test]
fn it_is_off_by_default() {
    let mut bench = router();
    bench.apply(Command::RemoveBackpressure);
    fill(&mut bench, PE, 3, 9);
    assert_eq!((bench.notifications().len(), bench.node.backpressure()), (0, None));
    bench.apply(Command::SetBackpressure(Box::default()));
    fill(&mut bench, PE, 3, 1);
    assert_eq!(bench.notifications().len(), 1);
    while bench.give_out(BOTTLENECK).is_some() {}
    assert_eq!(bench.notifications().len(), 1);
}

/// Two queues of one class are one reason; the PE is resumed when both are at XON.
#[test]
fn two_queues_are_one_reason() {
    let mut bench = router();
    bench.route("5f00:0:b::/48", 2);
    let to_other_queue = |bench: &mut Bench| {
        let mut packet = tunnelled(PE, 3, 986);
        packet[24..40].copy_from_slice(&address("5f00:0:b:d6::").octets());
        (0..5).for_each(|_| bench.take_in(0, &packet));
    };
    fill(&mut bench, PE, 3, 5);
    to_other_queue(&mut bench);
    assert_eq!(bench.notifications().len(), 1);
    while bench.give_out(BOTTLENECK).is_some() {}
    assert_eq!(bench.notifications().len(), 0);
    while bench.give_out(PortId(2)).is_some() {}
    assert_eq!(bench.notifications().len(), 1);
}

/// The refresh finds a queue whose frames were discarded.
#[test]
fn a_queue_without_a_link_is_no_reason() {
    let mut bench = router();
    fill(&mut bench, PE, 3, 5);
    assert_eq!(bench.notifications().len(), 1);
    assert_eq!(bench.node.drop_queue(BOTTLENECK, &mut bench.pool), 5);
    bench.wait_until(5000);
    assert_eq!(bench.notifications(), [expected(END_C, resume(3, 5000))]);
    assert_eq!(bench.node.next_deadline(), None);
}

/// A notification that could not be sent is tried again with the next packet.
#[test]
fn a_pause_without_a_route_is_retried() {
    let mut bench = router();
    bench.apply(Command::RemoveRoute { table: TableId(0), prefix: prefix("5f00::/16") });
    fill(&mut bench, PE, 3, 6);
    let counters = bench.node.backpressure_counters();
    assert_eq!((counters.pauses_sent, counters.not_sent), (0, 2));
    bench.route("5f00::/16", 0);
    fill(&mut bench, PE, 3, 1);
    assert_eq!(bench.notifications().len(), 1);
    while bench.give_out(BOTTLENECK).is_some() {}
}

/// The SIDs of PEs change: pauses in effect are sent again at once, to the new SIDs.
#[test]
fn sids_change_while_pauses_are_in_effect() {
    let mut bench = router();
    fill(&mut bench, OTHER_PE, 3, 5);
    fill(&mut bench, PE, 3, 1);
    assert_eq!(bench.notifications().len(), 2);
    let sids = BackpressureSids { outer_source: prefix(PE), end_c: Some(address(END_C)), end_e: None };
    bench.apply(Command::SetBackpressureSids(vec![sids]));
    assert_eq!(bench.node.sent_pauses().collect::<Vec<_>>(), [(address(END_C), 3)]);
    bench.wait_until(1);
    assert_eq!(bench.notifications().len(), 1);
    while bench.give_out(BOTTLENECK).is_some() {}
    assert_eq!(bench.notifications().len(), 1);
}

/// A PE's own queues pause its gateway by PFC: it sends no notification to itself.
#[test]
fn a_pe_does_not_notify_itself() {
    let mut bench = router();
    bench.apply(Command::AddSid { prefix: prefix(END_C), behavior: SidBehavior::EndC });
    fill(&mut bench, PE, 3, 9);
    assert_eq!(bench.notifications().len(), 0);
    assert_eq!(bench.node.backpressure_counters(), BackpressureCounters::default());
    while bench.give_out(BOTTLENECK).is_some() {}
}
