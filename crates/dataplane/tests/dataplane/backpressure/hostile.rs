//! Hostile input to END.C and END.E: no state grows, and no pause exceeds its limit (D62, D66).

use crate::backpressure::support::*;
use crate::common::{Bench, next_hop};
use proptest::prelude::*;
use srdma_dataplane::*;
use srdma_frame::{Element, PortId};
use std::time::Duration;

fn quiet(bench: &mut Bench) {
    while bench.give_out(GATEWAY).is_some() {}
    while bench.give_out(PortId(0)).is_some() {}
}

/// D66: from inside the SR domain only, whatever the source address.
#[test]
fn end_c_is_not_reachable_from_outside() {
    let mut bench = pe();
    bench.apply(Command::SetDomain(Domain {
        sids: vec![prefix("5f00::/32")],
        infrastructure: vec![prefix("2001:db8:53::/48")],
        proxies: Vec::new(),
    }));
    bench.apply(Command::SetBorder { port: GATEWAY, sources: vec![prefix("2001:db8:1::/48")] });
    let host = "2001:db8:1::1";
    bench.take_in(1, &notification(host, pause(3, 1, 500)));
    bench.take_in(1, &notification(ROUTER, pause(3, 1, 500)));
    bench.take_in(0, &notification(host, pause(3, 1, 500)));
    assert_eq!(bench.drops(1), [("forged_source", 1), ("sid_from_outside", 1)]);
    assert_eq!(bench.drops(0), [("foreign_source", 1)]);
    assert_eq!(bench.node.pausing_classes(GATEWAY), 0);
    bench.take_in(0, &notification(ROUTER, pause(3, 1, 500)));
    assert_eq!(bench.node.pausing_classes(GATEWAY), 1 << 3);
    quiet(&mut bench);
}

/// Hold times are limited to `greatest_hold`; repeated refreshes, by the watchdog.
#[test]
fn no_pause_is_endless() {
    let mut bench = pe();
    bench.take_in(0, &notification(ROUTER, pause(3, 1, u32::MAX)));
    bench.wait_until(999);
    assert_eq!(bench.node.pausing_classes(GATEWAY), 1 << 3);
    bench.wait_until(1000);
    assert_eq!(bench.node.pausing_classes(GATEWAY), 0);
    let mut paused_us = 0;
    for us in (1000..100_000).step_by(500) {
        bench.wait_until(us);
        bench.take_in(0, &notification(ROUTER, pause(3, us as u32, u32::MAX)));
        paused_us += if bench.node.pausing_classes(GATEWAY) == 0 { 0 } else { 500 };
        quiet(&mut bench);
    }
    assert_eq!((paused_us, bench.node.backpressure_counters().watchdog_releases), (20_000, 1));
    let storm = bench.drops(0);
    assert_eq!(storm, [("backpressure_storm", 158)]);
    bench.wait_until(102_000);
    bench.take_in(0, &notification(ROUTER, pause(3, 1, 100)));
    assert_eq!(bench.node.pausing_classes(GATEWAY), 1 << 3, "after a moment without any it is heard again");
    quiet(&mut bench);
}

/// Each origin has its limit.
#[test]
fn an_origin_is_limited() {
    let mut bench = pe();
    (0..1000).for_each(|sequence| bench.take_in(0, &notification(ROUTER, pause(3, sequence, 500))));
    assert_eq!(bench.node.backpressure_counters().pauses_received, 64);
    assert_eq!(bench.drops(0), [("backpressure_rate_limited", 936)]);
    bench.take_in(0, &notification("2001:db8:53::3", resume(3, 1)));
    assert_eq!(bench.node.backpressure_counters().resumes_received, 1);
    quiet(&mut bench);
}

/// A million a second from origins that are all different: the table holds as many as configured, their holds end in
/// time, and the node returns to its initial state.
#[test]
fn a_flood_of_origins_leaves_nothing_behind() {
    let mut bench = pe();
    bench.apply(Command::SetBackpressure(Box::new(BackpressureConfig { origins: 16, ..at_pe() })));
    for us in 0..100_000_u64 {
        bench.wait_until(us);
        let origin = std::net::Ipv6Addr::from((0x2001_0db8_0053_u128 << 80) + u128::from(us) + 1000).to_string();
        bench.take_in(0, &notification(&origin, pause(3, us as u32, 300)));
        if us % 1000 == 0 {
            assert!(bench.node.received_pauses().count() <= 16);
            quiet(&mut bench);
        }
    }
    let taken = bench.node.backpressure_counters().pauses_received;
    assert!((16..=16 * (100 / 6 + 1)).contains(&taken), "{taken}: a place is free again after 64 tokens, 6.4 ms");
    assert_eq!(bench.drops(0), [("backpressure_too_many_origins", 100_000 - taken)]);
    bench.wait_until(100_300);
    quiet(&mut bench);
    assert_eq!((bench.node.pausing_classes(GATEWAY), bench.node.received_pauses().count()), (0, 0));
    assert_eq!((bench.node.next_deadline(), bench.pool.in_use()), (None, 0));
}

/// D66: a node without a configuration of notifications applies the default limits.
#[test]
fn end_e_is_limited_by_default() {
    let mut bench = pe();
    bench.apply(Command::RemoveBackpressure);
    bench.apply(Command::AddSid { prefix: prefix("5f00:0:9:d000::"), behavior: SidBehavior::EndE(TableId(0)) });
    let inner = ipv6(ROUTER, "2001:db8:1::1", 0, 59, &[0; 8]);
    (0..300).for_each(|_| bench.take_in(0, &ipv6(ROUTER, "5f00:0:9:d000::", 0, 41, &inner)));
    assert_eq!(bench.drops(0), [("backpressure_rate_limited", 300 - 256)]);
    quiet(&mut bench);
}

/// D66: END.E has a limit for each origin as well, and a table of its own: it does not crowd out END.C.
#[test]
fn end_e_is_limited() {
    let mut bench = pe();
    let config = BackpressureConfig { origins: 2, end_e_per_second: 1000, end_e_at_once: 3, ..at_pe() };
    bench.apply(Command::SetBackpressure(Box::new(config)));
    bench.apply(Command::AddSid { prefix: prefix("5f00:0:9:d000::"), behavior: SidBehavior::EndE(TableId(1)) });
    let action = RouteAction::Via(vec![next_hop(1)]);
    bench.apply(Command::AddRoute { table: TableId(1), prefix: prefix("2001:db8:1::/48"), action });
    for origin in ["2001:db8:53::2", "2001:db8:53::3", "2001:db8:53::4"] {
        let inner = ipv6(origin, "2001:db8:1::1", 0, 59, &[0; 8]);
        (0..5).for_each(|_| bench.take_in(0, &ipv6(origin, "5f00:0:9:d000::", 0, 41, &inner)));
    }
    assert_eq!(bench.drops(0), [("backpressure_rate_limited", 4), ("backpressure_too_many_origins", 5)]);
    assert_eq!(std::iter::from_fn(|| bench.give_out(GATEWAY)).count(), 6);
    bench.take_in(0, &notification("2001:db8:53::5", pause(3, 1, 500)));
    assert_eq!(bench.node.pausing_classes(GATEWAY), 1 << 3);
    quiet(&mut bench);
}

const ORIGINS: [&str; 3] = ["2001:db8:53::2", "2001:db8:53::3", "2001:db8:53::4"];

/// A notification, some of whose octets are anything, from one of a few origins, after some time.
fn step() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let content = (0..3_u8, 2..5_u8, 0..2000_u32, prop_oneof![Just(0), 1..3000_u32, Just(u32::MAX)]);
    let damage = prop::collection::vec((0..112_usize, any::<u8>()), 0..3);
    (0..400_u64, prop::sample::select(&ORIGINS[..]), content, damage, any::<bool>()).prop_map(
        |(wait, origin, (code, class, sequence, hold_us), damage, is_damaged)| {
            let content = Content { code, class, level: 0, sequence, hold_us };
            let mut packet = notification(origin, content);
            for (place, octet) in damage.into_iter().filter(|_| is_damaged) {
                packet[place] = octet;
            }
            (wait, packet)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any input in any order: a pause that was sent ends within the greatest hold time of the last packet, none
    /// lasts longer than the watchdog allows, and every packet is accepted or counted.
    #[test]
    fn any_notifications(steps in prop::collection::vec(step(), 1..200)) {
        let mut bench = pe();
        let config = BackpressureConfig { watchdog: Duration::from_millis(5), ..at_pe() };
        bench.apply(Command::SetBackpressure(Box::new(config)));
        let (mut us, mut since) = (0, None);
        for (wait, packet) in &steps {
            us += wait;
            bench.wait_until(us);
            // What ends before the packet, and begins with it, is another pause.
            since = since.filter(|_| bench.node.pausing_classes(GATEWAY) != 0);
            bench.take_in(0, packet);
            quiet(&mut bench);
            since = (bench.node.pausing_classes(GATEWAY) != 0).then_some(since.unwrap_or(us));
            prop_assert!(since.is_none_or(|since| us - since <= 5000), "paused since {since:?}, now {us}");
        }
        bench.wait_until(us + 1000);
        quiet(&mut bench);
        prop_assert_eq!((bench.node.pausing_classes(GATEWAY), bench.node.received_pauses().count()), (0, 0));
        bench.wait_until(us + 10_000);
        prop_assert_eq!((bench.node.next_deadline(), bench.pool.in_use()), (None, 0));
    }
}
