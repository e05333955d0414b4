use super::*;
use std::collections::BTreeMap;
use std::time::Duration;

const A: PortId = PortId(0);
const B: PortId = PortId(1);

/// Class 3 is priority 3 of both ports, class 4 priority 3 of the first, class 5 priority 5 of the second.
fn config() -> BackpressureConfig {
    let mapping =
        |traffic_class, ports: &[PortId], priority| PriorityMapping { traffic_class, ports: ports.to_vec(), priority };
    BackpressureConfig {
        priorities: vec![mapping(3, &[A, B], 3), mapping(4, &[A, A], 3), mapping(5, &[B], 5)],
        greatest_hold: Duration::from_millis(1),
        watchdog: Duration::from_millis(5),
        origins: 4,
        ..BackpressureConfig::new()
    }
}

/// A PE: the pauses that it has received, and the port priorities that are paused.
struct Pe {
    received: ReceivedPauses,
    paused: BTreeMap<(u16, usize), bool>,
    changes: Vec<String>,
}

impl Pe {
    fn new() -> Self {
        Pe { received: ReceivedPauses::new(&config()), paused: BTreeMap::new(), changes: Vec::new() }
    }

    fn receive(
        &mut self,
        us: u64,
        origin: usize,
        ask: Ask,
        class: u8,
        sequence: u32,
        hold_us: u32,
    ) -> Result<(), DropReason> {
        self.tick(us);
        let congested = std::net::Ipv6Addr::LOCALHOST;
        let notification = Notification { ask, traffic_class: class, level: 0, sequence, hold_us, congested };
        let (paused, changes) = (&mut self.paused, &mut self.changes);
        let received = self.received.receive(at(us), origin, &notification, pauser(paused, changes))?;
        received.effect
    }

    fn pause(&mut self, us: u64, origin: usize, class: u8, sequence: u32, hold_us: u32) -> Result<(), DropReason> {
        self.receive(us, origin, Ask::Pause, class, sequence, hold_us)
    }

    fn resume(&mut self, us: u64, origin: usize, class: u8, sequence: u32) -> Result<(), DropReason> {
        self.receive(us, origin, Ask::Resume, class, sequence, 0)
    }

    /// Every deadline up to a time.
    fn tick(&mut self, us: u64) {
        while let Some(next) = self.received.next_deadline().filter(|next| *next <= at(us)) {
            self.received.tick(next, pauser(&mut self.paused, &mut self.changes));
        }
    }

    fn paused(&mut self, us: u64) -> Vec<(u16, usize)> {
        self.tick(us);
        self.paused.iter().filter(|(_, paused)| **paused).map(|(port_priority, _)| *port_priority).collect()
    }
}

/// Port 7 has no PFC.
fn pauser<'p>(
    paused: &'p mut BTreeMap<(u16, usize), bool>,
    changes: &'p mut Vec<String>,
) -> impl FnMut(PortId, usize, bool) -> bool + 'p {
    |port, priority, is_paused| {
        if paused.insert((port.0, priority), is_paused) != Some(is_paused) {
            changes.push(format!("{} {}{}", if is_paused { "pause" } else { "resume" }, port.0, priority));
        }
        true
    }
}

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1000)
}

/// D61, D62: the ports of the class are paused for the duration in the notification, or until a resume.
#[test]
fn a_pause_lasts_for_its_hold_time_or_until_a_resume() {
    let mut pe = Pe::new();
    assert_eq!(pe.pause(0, 0, 3, 10, 500), Ok(()));
    assert_eq!(pe.paused(499), [(0, 3), (1, 3)]);
    assert_eq!((pe.paused(500), pe.received.expired), (vec![], 1));
    assert_eq!(pe.pause(600, 0, 5, 20, 500), Ok(()));
    assert_eq!(pe.pause(900, 0, 5, 21, 500), Ok(()), "a refresh");
    assert_eq!(pe.paused(1399), [(1, 5)]);
    assert_eq!(pe.resume(1399, 0, 5, 22), Ok(()));
    assert_eq!((pe.paused(1399), pe.received.expired), (vec![], 1));
    assert_eq!(pe.changes.join(", "), "pause 03, pause 13, resume 03, resume 13, pause 15, resume 15");
}

/// D62: several congested nodes, and classes that share a priority, are OR-ed.
#[test]
fn pauses_of_several_nodes_are_ored() {
    let mut pe = Pe::new();
    for (origin, class, sequence) in [(0, 3, 1), (1, 3, 900), (2, 4, 5)] {
        assert_eq!(pe.pause(0, origin, class, sequence, 500), Ok(()));
    }
    pe.resume(100, 0, 3, 2).unwrap();
    assert_eq!(pe.paused(100), [(0, 3), (1, 3)]);
    pe.resume(200, 1, 3, 901).unwrap();
    assert_eq!(pe.paused(200), [(0, 3)], "for class 4");
    assert_eq!(pe.paused(500), []);
    assert_eq!(pe.received.iter().count(), 0);
}

/// D62: older and repeated sequence numbers change nothing, across wrap-around too; state older than the hold time is
/// discarded, so that notifications of a restarted node are accepted.
#[test]
fn old_notifications_change_nothing() {
    let mut pe = Pe::new();
    assert_eq!(pe.pause(0, 0, 3, u32::MAX, 500), Ok(()));
    assert_eq!(pe.resume(1, 0, 3, u32::MAX), Err(DropReason::BackpressureStale), "the same again");
    assert_eq!(pe.resume(1, 0, 3, u32::MAX - 7), Err(DropReason::BackpressureStale));
    assert_eq!(pe.paused(1), [(0, 3), (1, 3)]);
    assert_eq!(pe.resume(2, 0, 3, 0), Ok(()));
    assert_eq!(pe.pause(3, 0, 3, u32::MAX - 1, 500), Err(DropReason::BackpressureStale), "overtaken by the resume");
    assert_eq!(pe.paused(3), []);
    assert_eq!(pe.pause(3, 1, 3, 5, 100), Ok(()), "another node has numbers of its own");
    assert_eq!(pe.pause(3, 0, 4, 5, 100), Ok(()), "and so has another class");
    assert_eq!(pe.pause(500, 0, 3, 5, 100), Ok(()), "restarted, and nothing is known of before");
    assert_eq!(pe.paused(500), [(0, 3), (1, 3)]);
}

/// No hold time, an infinite one, a class without a mapping.
#[test]
fn implausible_notifications_are_refused() {
    let mut pe = Pe::new();
    assert_eq!(pe.pause(0, 0, 3, 1, 0), Err(DropReason::BackpressureNoHold));
    assert_eq!(pe.pause(0, 0, 9, 1, 500), Err(DropReason::BackpressureUnmapped));
    assert_eq!(pe.resume(0, 0, 9, 1), Err(DropReason::BackpressureUnmapped));
    assert_eq!(pe.resume(0, 0, 3, 1), Ok(()), "for a pause that is not known");
    assert!(pe.changes.is_empty());
    assert_eq!(pe.pause(0, 0, 3, 1, u32::MAX), Ok(()));
    assert_eq!((pe.paused(999).len(), pe.paused(1000).len()), (2, 0), "the greatest hold time");
}

/// D62: a priority that is held without end is released, and is not paused again until it was free of received for a
/// moment. The other priority is unaffected.
#[test]
fn the_watchdog_bounds_one_pause() {
    let mut pe = Pe::new();
    let mut last = 0;
    for us in (0..20_000).step_by(100) {
        let effect = pe.pause(us, (us / 100 % 2) as usize, 3, us as u32, 500);
        assert_eq!(effect, if us < 5000 { Ok(()) } else { Err(DropReason::BackpressureStorm) }, "after {us} us");
        if !pe.paused(us).is_empty() {
            last = us;
        }
    }
    assert_eq!((last, pe.received.watchdog_releases), (4900, 2));
    assert_eq!(pe.pause(20_000, 0, 5, 1, 500), Ok(()));
    assert_eq!(pe.paused(20_000), [(1, 5)]);
    assert_eq!(pe.paused(20_600), []);
    assert_eq!(pe.pause(20_600, 0, 3, 1, 500), Ok(()), "all pauses had ended");
    assert_eq!(pe.paused(20_600), [(0, 3), (1, 3)]);
}

/// Whatever arrives, no priority is paused without a request within the greatest hold time.
#[test]
fn no_pause_is_longer_than_requested() {
    let mut random = 1_u64;
    let mut next = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let mut pe = Pe::new();
    // For each node and class: the last sequence number, its time of receipt, the end of its hold; slow and plain.
    let mut asked: BTreeMap<(usize, u8), (u32, u64, bool)> = BTreeMap::new();
    for step in 0..20_000_u64 {
        let us = step * 37;
        let (origin, class) = (next(4) as usize, 3 + next(3) as u8);
        let (sequence, hold_us) = ((us as u32).wrapping_sub(next(200) as u32), 1 + next(1500) as u32);
        let ask = if next(3) == 0 { Ask::Resume } else { Ask::Pause };
        asked.retain(|_, (_, until, _)| *until > us);
        let known = asked.get(&(origin, class)).copied();
        let is_new = known.is_none_or(|(last, _, _)| sequence.wrapping_sub(last) as i32 > 0);
        if is_new {
            match (ask, known) {
                (Ask::Pause, _) => {
                    asked.insert((origin, class), (sequence, us + u64::from(hold_us.min(1000)), true));
                }
                (Ask::Resume, Some((_, until, _))) => {
                    asked.insert((origin, class), (sequence, until, false));
                }
                (Ask::Resume, None) => {}
            }
        }
        let taken = pe.receive(us, origin, ask, class, sequence, hold_us);
        assert_eq!(taken == Err(DropReason::BackpressureStale), !is_new, "step {step}");
        let held = |classes: &[u8]| {
            asked.iter().any(|((_, class), (_, until, is_paused))| *is_paused && *until > us && classes.contains(class))
        };
        let is_paused = |port_priority| pe.paused.get(&port_priority) == Some(&true);
        for (port_priority, classes) in [((0, 3), &[3, 4][..]), ((1, 3), &[3]), ((1, 5), &[5])] {
            assert!(
                !is_paused(port_priority) || held(classes),
                "step {step}: {port_priority:?} is paused without a reason"
            );
        }
    }
    assert!(pe.received.expired > 100 && pe.changes.len() > 1000);
}
