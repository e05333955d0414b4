//! The congestion window step by step, its full table, and a model of it.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const T_NS: u64 = 1_000;

fn rules(mode: WindowMode) -> CnpRules {
    let window = Duration::from_nanos(T_NS);
    CnpRules { mode, window, window_most: window, limit: 5 }
}

/// (branch, count) of what went upstream.
fn cnp(window: &mut CnpWindow, at_ns: u64, branch: u16, count: u32) -> Vec<(u16, u32)> {
    let mut out = Vec::new();
    window.cnp(Instant::from_ns(at_ns), BranchIndex(branch), count, &mut out).unwrap();
    out.iter().map(|up| (up.branch.0, up.count)).collect()
}

fn tick(window: &mut CnpWindow, at_ns: u64) -> Vec<(u16, u32)> {
    let mut out = Vec::new();
    window.tick(Instant::from_ns(at_ns), &mut out);
    out.iter().map(|up| (up.branch.0, up.count)).collect()
}

/// D29: the first goes at once and does not count again; then one a window while counts come.
#[test]
fn leading_window() {
    let mut window = CnpWindow::new(&rules(WindowMode::Leading), 3);
    assert_eq!(window.next_deadline(), None);
    assert_eq!(cnp(&mut window, 100, 2, 1), [(2, 1)]);
    assert_eq!(window.next_deadline(), Some(Instant::from_ns(1_100)));
    assert_eq!(
        (cnp(&mut window, 200, 0, 1), cnp(&mut window, 300, 1, 1), cnp(&mut window, 400, 1, 1)),
        Default::default()
    );
    assert_eq!((window.count(BranchIndex(1)), window.count(BranchIndex(2))), (Some(2), Some(0)));
    assert_eq!(tick(&mut window, 1_099), []);
    assert_eq!(tick(&mut window, 1_100), [(1, 2)]);
    assert_eq!(window.count(BranchIndex(1)), Some(0), "all CCounts start a window at zero (MT-5.3.3-2)");
    assert_eq!(tick(&mut window, 2_100), [], "no CNP when all counts are zero");
    assert_eq!(window.next_deadline(), None);
    assert_eq!(cnp(&mut window, 2_101, 0, 1), [(0, 1)]);
}

/// MT-5.3.3-1, MT-5.3.3-2, D29 `trailing`: nothing before the window's end.
#[test]
fn trailing_window() {
    let mut window = CnpWindow::new(&rules(WindowMode::Trailing), 3);
    assert_eq!(cnp(&mut window, 1_900, 2, 1), []);
    assert_eq!(window.next_deadline(), Some(Instant::from_ns(2_000)), "windows do not begin with a CNP");
    assert_eq!(tick(&mut window, 2_000), [(2, 1)]);
    assert_eq!((cnp(&mut window, 2_500, 0, 1), cnp(&mut window, 2_600, 1, 1)), Default::default());
    assert_eq!(tick(&mut window, 3_000), [(0, 1)], "ties to the lowest branch");
    assert_eq!(tick(&mut window, 4_000), []);
    assert_eq!(window.next_deadline(), None);
}

/// D29: a CNP from a node counts as many times as its count field, so that the most congested path wins.
#[test]
fn counts_are_carried() {
    for mode in [WindowMode::Leading, WindowMode::Trailing] {
        let mut window = CnpWindow::new(&rules(mode), 2);
        cnp(&mut window, 0, 0, 1);
        (0..4).for_each(|_| assert_eq!(cnp(&mut window, 1, 0, 1), []));
        assert_eq!(cnp(&mut window, 2, 1, 40), []);
        assert_eq!(tick(&mut window, T_NS), [(1, 40)]);
        assert_eq!((cnp(&mut window, T_NS, 0, u32::MAX), cnp(&mut window, T_NS, 0, 7)), Default::default());
        assert_eq!(cnp(&mut window, T_NS, 1, 0), [], "a count of 0 is one");
        assert_eq!(window.count(BranchIndex(1)), Some(1));
        assert_eq!(tick(&mut window, 2 * T_NS), [(0, 65_535)]);
    }
}

/// MT-9-3: a branch that floods is cut off until the window ends, and takes nothing from the others.
#[test]
fn a_flood_is_limited_per_branch() {
    let mut window = CnpWindow::new(&rules(WindowMode::Leading), 2);
    let mut out = Vec::new();
    let taken = (0..1_000).filter(|_| window.cnp(Instant::ZERO, BranchIndex(0), 1, &mut out).is_ok()).count();
    assert_eq!((taken, out.len()), (5, 1));
    let refused = window.cnp(Instant::ZERO, BranchIndex(0), 1, &mut out);
    assert_eq!(refused, Err(TooManyCnps { branch: 0, limit: 5 }));
    assert_eq!(window.cnp(Instant::ZERO, BranchIndex(1), 9, &mut out), Ok(()));
    assert_eq!(tick(&mut window, T_NS), [(1, 9)]);
    assert_eq!(cnp(&mut window, T_NS, 0, 1), [], "a new window, a new limit");
    assert!(window.cnp(Instant::from_ns(T_NS), BranchIndex(2), 1, &mut out).is_err());
}

/// The counts of remaining branches continue in the next epoch, those of others are removed (R7).
#[test]
fn counts_outlive_an_epoch() {
    let mut window = CnpWindow::new(&rules(WindowMode::Trailing), 3);
    let counts = (cnp(&mut window, 0, 0, 9), cnp(&mut window, 0, 1, 2), cnp(&mut window, 0, 2, 3));
    assert_eq!(counts, Default::default());
    let origins = [Origin::Unknown, Origin::Kept(BranchIndex(2)), Origin::Kept(BranchIndex(1))];
    window.succeed(&rules(WindowMode::Trailing), &origins);
    assert_eq!(window.next_deadline(), Some(Instant::from_ns(T_NS)));
    assert_eq!(tick(&mut window, T_NS), [(1, 3)]);
}

fn adaptive(mode: WindowMode) -> CnpRules {
    CnpRules { window_most: Duration::from_nanos(6 * T_NS), limit: u16::MAX, ..rules(mode) }
}

/// MT-5.3.3-3: every state under every event, for both modes: whether a window is open, T in units of the first one,
/// and what goes upstream. Windows of the trailing mode end at multiples of T.
#[test]
fn the_full_table() {
    let open = |doublings, is_open, count: u16| {
        move |mode| {
            let mut window = CnpWindow::new(&adaptive(mode), 1);
            window.window = Window { end: Instant::from_ns(100 * T_NS), doublings, is_open };
            window.branches[0].count = count;
            window
        }
    };
    let states: [(&str, &dyn Fn(WindowMode) -> CnpWindow); 6] = [
        ("Closed, T 1", &open(0, false, 0)),
        ("Closed, T 6", &open(3, false, 0)),
        ("Open, T 1, quiet", &open(0, true, 0)),
        ("Open, T 1, counts", &open(0, true, 7)),
        ("Open, T 6, quiet", &open(3, true, 0)),
        ("Open, T 6, counts", &open(3, true, 7)),
    ];
    let mut table = String::new();
    for mode in [WindowMode::Leading, WindowMode::Trailing] {
        for (name, make) in states {
            table += &format!("{mode:?}, {name}\n");
            let events: [(&str, u64, bool); 4] = [
                ("CNP", 99 * T_NS, true),
                ("T ends", 100 * T_NS, false),
                ("CNP after 7 quiet", 107 * T_NS, true),
                ("CNP after 1000 quiet", 1_100 * T_NS, true),
            ];
            for (event, at_ns, is_cnp) in events {
                let mut window = make(mode);
                let up = if is_cnp { cnp(&mut window, at_ns, 0, 1) } else { tick(&mut window, at_ns) };
                let up: Vec<String> = up.iter().map(|(_, count)| format!("CNP of {count}")).collect();
                let length = window.length().as_nanos() as u64 / T_NS;
                let state = match window.next_deadline() {
                    Some(end) => format!("Open to {}, T {length}", end.as_ns() / T_NS),
                    None => format!("Closed, T {length}"),
                };
                table += &format!("    {event:<21} {state:<20} {}\n", up.join(", "));
            }
        }
    }
    let table: Vec<&str> = table.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(table.join("\n"), @r"
    Leading, Closed, T 1
        CNP                   Open to 100, T 1     CNP of 1
        T ends                Closed, T 1
        CNP after 7 quiet     Open to 108, T 1     CNP of 1
        CNP after 1000 quiet  Open to 1101, T 1    CNP of 1
    Leading, Closed, T 6
        CNP                   Open to 105, T 6     CNP of 1
        T ends                Closed, T 6
        CNP after 7 quiet     Open to 111, T 4     CNP of 1
        CNP after 1000 quiet  Open to 1101, T 1    CNP of 1
    Leading, Open, T 1, quiet
        CNP                   Open to 100, T 1
        T ends                Closed, T 1
        CNP after 7 quiet     Open to 108, T 1     CNP of 1
        CNP after 1000 quiet  Open to 1101, T 1    CNP of 1
    Leading, Open, T 1, counts
        CNP                   Open to 100, T 1
        T ends                Open to 102, T 2     CNP of 7
        CNP after 7 quiet     Open to 109, T 2     CNP of 7
        CNP after 1000 quiet  Open to 1102, T 2    CNP of 7
    Leading, Open, T 6, quiet
        CNP                   Open to 100, T 6
        T ends                Closed, T 4
        CNP after 7 quiet     Open to 111, T 4     CNP of 1
        CNP after 1000 quiet  Open to 1104, T 4    CNP of 1
    Leading, Open, T 6, counts
        CNP                   Open to 100, T 6
        T ends                Open to 106, T 6     CNP of 7
        CNP after 7 quiet     Open to 113, T 6     CNP of 7
        CNP after 1000 quiet  Open to 1106, T 6    CNP of 7
    Trailing, Closed, T 1
        CNP                   Open to 100, T 1
        T ends                Closed, T 1
        CNP after 7 quiet     Open to 108, T 1
        CNP after 1000 quiet  Open to 1101, T 1
    Trailing, Closed, T 6
        CNP                   Open to 102, T 6
        T ends                Closed, T 6
        CNP after 7 quiet     Open to 108, T 4
        CNP after 1000 quiet  Open to 1101, T 1
    Trailing, Open, T 1, quiet
        CNP                   Open to 100, T 1
        T ends                Closed, T 1
        CNP after 7 quiet     Open to 108, T 1
        CNP after 1000 quiet  Open to 1101, T 1
    Trailing, Open, T 1, counts
        CNP                   Open to 100, T 1
        T ends                Open to 102, T 2     CNP of 7
        CNP after 7 quiet     Open to 108, T 2     CNP of 7
        CNP after 1000 quiet  Open to 1102, T 2    CNP of 7
    Trailing, Open, T 6, quiet
        CNP                   Open to 100, T 6
        T ends                Closed, T 4
        CNP after 7 quiet     Open to 108, T 4
        CNP after 1000 quiet  Open to 1104, T 4
    Trailing, Open, T 6, counts
        CNP                   Open to 100, T 6
        T ends                Open to 102, T 6     CNP of 7
        CNP after 7 quiet     Open to 108, T 6     CNP of 7
        CNP after 1000 quiet  Open to 1104, T 6    CNP of 7
    ");
}

proptest! {
    /// Against a list of all that came since the window began: one CNP a window and never two within the first T, for
    /// the branch that has the most; T is doubled where a window has counts, halved where it has none and for each T
    /// that passes without (MT-5.3.3-1 to MT-5.3.3-3).
    #[test]
    fn window_equals_model(
        trailing in any::<bool>(),
        most in 0_u64..40,
        steps in prop::collection::vec((prop_oneof![9 => 0_u64..700, 1 => 0_u64..60_000], 0_u16..4, 1_u32..4), 0..100),
    ) {
        let mode = if trailing { WindowMode::Trailing } else { WindowMode::Leading };
        let rules = CnpRules { limit: u16::MAX, window_most: Duration::from_nanos(most * T_NS / 2), ..rules(mode) };
        let most_ns = T_NS.max(most * T_NS / 2);
        let mut window = CnpWindow::new(&rules, 4);
        // Lengths that T may have, and which of them it has.
        let lengths: Vec<u64> = (0..7).map(|power| (T_NS << power).min(most_ns)).collect();
        let mut at = 0;
        let (mut now_ns, mut end_ns, mut quiet_since_ns, mut counted) = (0, None, 0, Vec::new());
        let mut last_sent_ns: Option<u64> = None;
        for (step_ns, branch, count) in steps {
            let mut expected = Vec::new();
            now_ns += step_ns;
            let next_end = |now_ns: u64, length: u64| {
                if trailing { (now_ns / length + 1) * length } else { now_ns + length }
            };
            if end_ns.is_some_and(|end_ns| now_ns >= end_ns) {
                let mut sums = BTreeMap::new();
                counted.drain(..).for_each(|(branch, count)| *sums.entry(branch).or_insert(0) += count);
                match sums.iter().max_by_key(|&(&branch, &sum)| (sum, u16::MAX - branch)) {
                    Some((&branch, &sum)) => {
                        expected.push((branch, sum));
                        at = if lengths[at] < most_ns { at + 1 } else { at };
                        end_ns = Some(next_end(now_ns, lengths[at]));
                    }
                    None => {
                        at = at.saturating_sub(1);
                        (end_ns, quiet_since_ns) = (None, now_ns);
                    }
                }
            }
            if end_ns.is_none() {
                while at > 0 && now_ns >= quiet_since_ns + lengths[at] {
                    quiet_since_ns += lengths[at];
                    at -= 1;
                }
                end_ns = Some(next_end(now_ns, lengths[at]));
                if trailing {
                    counted.push((branch, count));
                } else {
                    expected.push((branch, count));
                }
            } else {
                counted.push((branch, count));
            }
            let sent = cnp(&mut window, now_ns, branch, count);
            prop_assert_eq!(&sent, &expected);
            prop_assert_eq!(window.next_deadline(), end_ns.map(Instant::from_ns));
            prop_assert!((T_NS..=most_ns).contains(&(window.length().as_nanos() as u64)));
            if !sent.is_empty() {
                let is_apart = last_sent_ns.is_none_or(|last_ns| trailing || now_ns - last_ns >= T_NS);
                prop_assert!(is_apart && sent.len() == 1);
                last_sent_ns = Some(now_ns);
            }
        }
    }
}
