//! CNP aggregation: one notification per window and group, for the most congested path (MT-5.3.3-1, MT-5.3.3-2, D29).

use super::BranchIndex;
use super::succession::Origin;
use srdma_wire::Instant;
use std::time::Duration;
use thiserror::Error;

/// When the notifications of a window go upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowMode {
    /// The first CNP goes at once and opens a window; at its end one goes for the branch with the highest count.
    Leading,
    /// The draft's literal 5.3.3: time is cut into windows, and at the end of each one CNP goes upstream. Adds up to T
    /// a hop.
    Trailing,
}

/// How congestion notifications are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CnpRules {
    /// When they go upstream.
    pub mode: WindowMode,
    /// The window T, to begin with.
    pub window: Duration,
    /// How far T grows while congestion lasts (MT-5.3.3-3); not above `window`: T is fixed.
    pub window_most: Duration,
    /// CNPs that count in one window for one branch; further ones are refused (MT-9-3).
    pub limit: u16,
}

impl Default for CnpRules {
    /// A leading window of 50 microseconds, always, in which a branch may send 64.
    fn default() -> Self {
        let window = Duration::from_micros(50);
        CnpRules { mode: WindowMode::Leading, window, window_most: window, limit: 64 }
    }
}

/// A CNP to send upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnpUp {
    /// The most congested branch.
    pub branch: BranchIndex,
    /// How many CNPs of that branch this one stands for; carried between nodes, zeroed by the root (D29).
    pub count: u32,
}

/// A branch has sent more CNPs than a window allows (MT-9-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("branch {branch} has sent its {limit} CNPs of this window")]
pub struct TooManyCnps {
    /// The branch.
    pub branch: u16,
    /// The limit of the window.
    pub limit: u16,
}

/// The congestion notifications of one group at one node.
///
/// ```text
///              CNP: leading: send it at once            CNP: CCount[branch] += its count
///            .--- trailing: CCount[branch] += count ---.   .--------.
///            |                                         v   |        v
///         Closed, T                                  Open until T ends
///          ^ |  ^                                      |   ^        |
///          '-'  '-- T ends, every CCount zero: halve T-'   '--------'
///     quiet for T:                                 T ends, some CCount not zero: send the highest, all to zero, T anew
///     halve T                                                                    and twice as long
/// ```
///
/// T stays between the window that the rules begin with and the longest that they allow (MT-5.3.3-3): where congestion
/// lasts, the source hears of it less often, and the first CNP after a quiet time opens a short window again.
///
/// State: four octets a branch, and 16 (MT-8-1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CnpWindow {
    rules: CnpRules,
    window: Window,
    branches: Box<[BranchCnps]>,
}

/// What is kept once per group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Window {
    /// The end of the open window, or up to when the quiet since the last one has been reckoned.
    end: Instant,
    /// How often T has been doubled.
    doublings: u8,
    is_open: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct BranchCnps {
    /// CCount, at most 65,535.
    count: u16,
    /// CNPs taken in this window.
    taken: u16,
}

/// T never grows by more than this power of two.
const MOST_DOUBLINGS: u8 = 20;

impl CnpWindow {
    /// State per group and per branch (MT-8-1).
    pub(super) const OCTETS_PER_GROUP: usize = size_of::<Window>();
    pub(super) const OCTETS_PER_BRANCH: usize = size_of::<BranchCnps>();

    /// No window is open.
    pub fn new(rules: &CnpRules, branches: u16) -> Self {
        CnpWindow {
            rules: *rules,
            window: Window { end: Instant::ZERO, doublings: 0, is_open: false },
            branches: vec![BranchCnps::default(); usize::from(branches)].into_boxed_slice(),
        }
    }

    /// A CNP from a branch, which stands for `count` of them: 1 from a receiver, what the packet says from a node. None
    /// is taken as one. A branch that does not exist is allowed no CNP.
    pub fn cnp(
        &mut self,
        now: Instant,
        branch: BranchIndex,
        count: u32,
        out: &mut Vec<CnpUp>,
    ) -> Result<(), TooManyCnps> {
        self.tick(now, out);
        let limit = self.rules.limit;
        let refusal = TooManyCnps { branch: branch.0, limit };
        let state = self.branches.get_mut(branch.index()).filter(|state| state.taken < limit).ok_or(refusal)?;
        state.taken += 1;
        let count = count.max(1);
        match (self.window.is_open, self.rules.mode) {
            (false, WindowMode::Leading) => {
                out.push(CnpUp { branch, count });
                self.open_after_quiet(now);
            }
            (false, WindowMode::Trailing) => {
                state.add(count);
                self.open_after_quiet(now);
            }
            (true, WindowMode::Leading | WindowMode::Trailing) => state.add(count),
        }
        Ok(())
    }

    /// Ends the window when its time has come: the branch with the highest CCount, the lowest of several, sends one
    /// CNP.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<CnpUp>) {
        if !self.window.is_open || now < self.window.end {
            return;
        }
        let mut most = (0, 0);
        for (branch, state) in (0..).zip(&self.branches) {
            if state.count > most.1 {
                most = (branch, state.count);
            }
        }
        self.branches.fill(BranchCnps::default());
        let (branch, count) = most;
        if count == 0 {
            self.window = Window { end: now, doublings: self.window.doublings.saturating_sub(1), is_open: false };
            return;
        }
        out.push(CnpUp { branch: BranchIndex(branch), count: u32::from(count) });
        if self.length() < self.rules.window_most {
            self.window.doublings = (self.window.doublings + 1).min(MOST_DOUBLINGS);
        }
        self.open(now);
    }

    /// The end of the open window.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.window.is_open.then_some(self.window.end)
    }

    /// T as it is now.
    pub fn length(&self) -> Duration {
        self.doubled(self.window.doublings).min(self.rules.window_most.max(self.rules.window))
    }

    fn doubled(&self, doublings: u8) -> Duration {
        self.rules.window.saturating_mul(1 << doublings.min(MOST_DOUBLINGS))
    }

    fn open(&mut self, now: Instant) {
        self.window.is_open = true;
        self.window.end = match self.rules.mode {
            WindowMode::Leading => now + self.length(),
            WindowMode::Trailing => end_of_window(now, self.length()),
        };
    }

    /// T is halved for each T that has passed since a window was open.
    fn open_after_quiet(&mut self, now: Instant) {
        while self.window.doublings > 0 && now - self.window.end >= self.length() {
            self.window.end += self.length();
            self.window.doublings -= 1;
        }
        self.open(now);
    }

    /// The CCount of a branch in the open window.
    pub fn count(&self, branch: BranchIndex) -> Option<u32> {
        self.branches.get(branch.index()).map(|state| u32::from(state.count))
    }

    /// Takes over into another epoch. Counts of branches that are kept go on, and so does the window.
    pub fn succeed(&mut self, rules: &CnpRules, origins: &[Origin]) {
        let kept = |origin: &Origin| match origin {
            Origin::Kept(index) => self.branches.get(index.index()).copied().unwrap_or_default(),
            Origin::At(_) | Origin::Unknown => BranchCnps::default(),
        };
        self.branches = origins.iter().map(kept).collect();
        self.rules = *rules;
        // Where the rules allow less now, T is halved from what they allow.
        while self.window.doublings > 0 && self.doubled(self.window.doublings - 1) >= rules.window_most {
            self.window.doublings -= 1;
        }
    }
}

impl BranchCnps {
    fn add(&mut self, count: u32) {
        self.count = self.count.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
    }
}

/// The literal rule cuts time into windows that begin whether a CNP comes or not.
fn end_of_window(now: Instant, window: Duration) -> Instant {
    let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
    Instant::from_ns((now.as_ns() / window_ns).saturating_add(1).saturating_mul(window_ns))
}

#[cfg(test)]
mod tests {
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

    /// D29: a CNP from a node stands for as many as it says, so that the most congested path wins.
    #[test]
    fn counts_are_carried() {
        for mode in [WindowMode::Leading, WindowMode::Trailing] {
            let mut window = CnpWindow::new(&rules(mode), 2);
            cnp(&mut window, 0, 0, 1);
            (0..4).for_each(|_| assert_eq!(cnp(&mut window, 1, 0, 1), []));
            assert_eq!(cnp(&mut window, 2, 1, 40), []);
            assert_eq!(tick(&mut window, T_NS), [(1, 40)]);
            assert_eq!((cnp(&mut window, T_NS, 0, u32::MAX), cnp(&mut window, T_NS, 0, 7)), Default::default());
            assert_eq!(cnp(&mut window, T_NS, 1, 0), [], "none said is one");
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

    /// The counts of branches that are kept go on in the next epoch, those of others are gone (R7).
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
            let (mut now_ns, mut end_ns, mut quiet_since_ns, mut heard) = (0, None, 0, Vec::new());
            let mut last_sent_ns: Option<u64> = None;
            for (step_ns, branch, count) in steps {
                let mut expected = Vec::new();
                now_ns += step_ns;
                let next_end = |now_ns: u64, length: u64| if trailing { (now_ns / length + 1) * length } else { now_ns + length };
                if end_ns.is_some_and(|end_ns| now_ns >= end_ns) {
                    let mut sums = BTreeMap::new();
                    heard.drain(..).for_each(|(branch, count)| *sums.entry(branch).or_insert(0) += count);
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
                        heard.push((branch, count));
                    } else {
                        expected.push((branch, count));
                    }
                } else {
                    heard.push((branch, count));
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
}
