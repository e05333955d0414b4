//! Probes: format, path, and the effect of missing answers (D85, D87).

use crate::placed::support::*;
use srdma_dataplane::headend::{Incoming, Probing, loop_program};
use srdma_steering::Cause;

/// The packet behind the outer headers, which the last node of the program forwards.
fn inner(probe: &[u8]) -> Vec<u8> {
    let srh = if probe[6] == 43 { 8 + usize::from(probe[41]) * 8 } else { 0 };
    probe[40 + srh..].to_vec()
}

/// The spine that a probe passes.
fn is_by(probe: &[u8], program: &str) -> bool {
    destination_of(probe) == loop_program(&[address(program)]).unwrap()[0].to_string()
}

/// Sends, and brings probes back, for so many microseconds; those by `dead` are lost. Returns the destinations that were
/// used, and when.
fn run(nic: &mut Nic, us: u64, dead: &[&str]) -> Vec<(u64, String)> {
    let mut under_way: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut used = Vec::new();
    let first = nic.now.as_ns() / 1000;
    for step in 0..us / 5 {
        for probe in nic.probes() {
            if !dead.iter().any(|dead| is_by(&probe, dead)) {
                under_way.push((step + 2, inner(&probe)));
            }
        }
        for (_, probe) in under_way.extract_if(.., |(at, _)| *at <= step) {
            assert_eq!(nic.receive(&probe), Incoming::Probe);
        }
        let destination = nic.destination(step as u32 & 0x7F_FFFF);
        if used.last().is_none_or(|(_, before)| *before != destination) {
            used.push((nic.now.as_ns() / 1000 - first, destination));
        }
        nic.pass_us(5);
    }
    used
}

/// D87: to the sender itself, by the path and back, in the urgent class.
#[test]
fn a_probe_travels_both_ways() {
    let mut nic = Nic::new(|_| ());
    assert!(nic.probes().is_empty(), "no flow takes these paths");
    nic.destination(1);
    let probe = nic.probes().remove(0);
    assert_eq!(destination_of(&probe), "5f00:0:100:500:300:500:100:0");
    assert_eq!((probe[6], probe[0] & 0xF, probe[1] & 0xF0), (41, 0xC, 0x20), "CS6, ECT(0)");
    let inner = inner(&probe);
    assert_eq!([&inner[8..24], &inner[24..40]], [address(NIC1).octets(); 2]);
    assert_eq!(inner[40..44], [0x03, 0xFD, 0x03, 0xFD], "UDP port 1021");
    nic.pass_us(10);
    assert_eq!(nic.receive(&inner), Incoming::Probe);
    assert_eq!(nic.headend.counters().probes_answered, 1);
    let (now, set) = (nic.now, nic.set);
    let found: Vec<_> =
        nic.headend.paths(now, set).map(|path| (path.report.state.name(), path.round_trip_ns)).collect();
    assert_eq!(found, [("good", Some(10_000)), ("unknown", None)]);
}

/// A duplicate or forged probe is ignored.
#[test]
fn only_probes_that_were_sent_count() {
    let mut nic = Nic::new(|_| ());
    nic.destination(1);
    let probe = inner(&nic.probes().remove(0));
    nic.receive(&probe);
    assert_eq!(nic.receive(&probe), Incoming::Probe);
    let forged = srdma_wire::ProbePacket {
        address: address(NIC1),
        traffic_class: 0,
        hop_limit: 64,
        port: 1021,
        probe: srdma_wire::Probe { sequence: 0, sent: nic.now, session: 1 },
    };
    nic.receive(&forged.emit());
    let counters = nic.headend.counters();
    assert_eq!((counters.probes_answered, counters.probes_foreign), (1, 2));
}

/// D85: static SIDs never withdraw; a path that is dead is found and left within three intervals and a time there and
/// back, and taken again once it was good for long.
#[test]
fn a_dead_path_is_left_and_taken_again() {
    let mut nic = Nic::new(|config| config.steering.hold_most_ns = 4_000_000);
    assert_eq!(run(&mut nic, 10_000, &[]), [(0, BY_SPINE5.to_owned())]);
    let used = run(&mut nic, 10_000, &[BY_SPINE5]);
    assert_eq!((used.len(), used[1].1.as_str()), (2, BY_SPINE6));
    assert!(used[1].0 <= 3_010, "left after {} us", used[1].0);
    assert_eq!(nic.headend.steering().counters().moves_by(Cause::Silence), 1);
    let used = run(&mut nic, 40_000, &[]);
    assert_eq!((used.len(), used[1].1.as_str()), (2, BY_SPINE5));
    assert!((10_000..=25_000).contains(&used[1].0), "back after {} us", used[1].0);
    assert_eq!(nic.headend.steering().counters().moves_by(Cause::Return), 1);
}

/// A single probe that is lost is nothing.
#[test]
fn one_lost_probe_moves_no_flow() {
    let mut nic = Nic::new(|_| ());
    run(&mut nic, 10_000, &[]);
    let is_lost = |nic: &mut Nic| {
        nic.pass_us(5);
        nic.probes().iter().any(|probe| is_by(probe, BY_SPINE5))
    };
    while !is_lost(&mut nic) {}
    assert_eq!(run(&mut nic, 10_000, &[]).len(), 1);
    assert!((1..=2).contains(&nic.headend.counters().probes_silent), "those by spine 6 that were lost with it too");
    assert_eq!(nic.headend.steering().counters().all_moves(), 0);
}

/// Both are dead: the flow stays with one of them, and moves when the other works.
#[test]
fn the_first_path_that_recovers_is_used() {
    let mut nic = Nic::new(|_| ());
    run(&mut nic, 10_000, &[]);
    run(&mut nic, 10_000, &[BY_SPINE5, BY_SPINE6]);
    assert_eq!(run(&mut nic, 10_000, &[BY_SPINE5]).last().unwrap().1, BY_SPINE6);
}

/// Paths of destinations without traffic are not probed, and those of many take turns.
#[test]
fn probes_are_few() {
    let mut nic = Nic::new(|_| ());
    run(&mut nic, 20_000, &[]);
    let sent = nic.headend.counters().probes_sent;
    assert!((38..=44).contains(&sent), "{sent} probes of two paths in 20 ms");
    for _ in 0..2_000 {
        let mut probes = nic.probes();
        for probe in probes.drain(..) {
            nic.receive(&inner(&probe));
        }
        nic.pass_us(100);
    }
    let quiet = nic.headend.counters().probes_sent - sent;
    assert!(quiet <= 210, "{quiet} probes within 200 ms, 100 of them active");
    assert_eq!(nic.headend.next_deadline(), None, "no deadline without traffic");
    nic.destination(7);
    assert!(nic.headend.next_deadline().is_some());
}

#[test]
fn a_path_without_a_reverse_is_probed_by_the_given_segments() {
    let by_links = path("5f00:0:100:e001:300::", SPINE5, 0);
    let mut given = path("5f00:0:100:e002:300::", SPINE6, 0);
    given.probing = Probing::By(vec![address("5f00:0:100:e002:300:e007:100:0")]);
    let mut never = path(BY_SPINE5, SPINE5, 0);
    never.probing = Probing::Never;
    let mut nic = Nic::with(|_| (), &[by_links, given, never]);
    nic.destination(1);
    let mut probes = nic.probes();
    nic.pass_us(5);
    probes.extend(nic.probes());
    assert_eq!(probes.len(), 1);
    assert_eq!(destination_of(&probes[0]), "5f00:0:100:e002:300:e007:100:0");
}
