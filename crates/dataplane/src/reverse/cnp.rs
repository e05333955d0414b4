//! CNP aggregation: one notification per window and group, for the most congested path (MT-5.3.3-1, MT-5.3.3-2, D29).

use super::BranchIndex;
use super::succession::Origin;
use srdma_wire::Instant;
use std::time::Duration;
use thiserror::Error;

/// When the notifications of a window go upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowMode {
    /// The first CNP goes at once and opens a window; at its end one goes for the branch with the highest count.
    Leading,
    /// The draft's literal 5.3.3: time is cut into windows, and at the end of each one CNP goes upstream. Adds up to T
    /// a hop.
    Trailing,
}

/// How congestion notifications are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnpRules {
    /// When they go upstream.
    pub mode: WindowMode,
    /// The window T.
    pub window: Duration,
    /// CNPs that count in one window for one branch; further ones are refused (MT-9-3).
    pub limit: u16,
}

impl Default for CnpRules {
    /// A leading window of 50 microseconds, in which a branch may send 64.
    fn default() -> Self {
        CnpRules { mode: WindowMode::Leading, window: Duration::from_micros(50), limit: 64 }
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
///         Closed                                     Open until T ends
///            ^                                         |   ^        |
///            '---- T ends, every CCount zero ----------'   '--------'
///                                                  T ends, some CCount not zero: send the highest, all to zero, T anew
/// ```
///
/// State: four octets a branch (MT-8-1).
#[derive(Debug)]
pub struct CnpWindow {
    rules: CnpRules,
    /// The end of the open window.
    end: Option<Instant>,
    branches: Box<[BranchCnps]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BranchCnps {
    /// CCount, at most 65,535.
    count: u16,
    /// CNPs taken in this window.
    taken: u16,
}

/// MT-8-1.
const _: () = assert!(size_of::<BranchCnps>() == 4);

impl CnpWindow {
    /// No window is open.
    pub fn new(rules: &CnpRules, branches: u16) -> Self {
        CnpWindow {
            rules: *rules,
            end: None,
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
        match (self.end, self.rules.mode) {
            (None, WindowMode::Leading) => {
                self.end = Some(now + self.rules.window);
                out.push(CnpUp { branch, count });
            }
            (None, WindowMode::Trailing) => {
                self.end = Some(end_of_window(now, self.rules.window));
                state.add(count);
            }
            (Some(_), WindowMode::Leading | WindowMode::Trailing) => state.add(count),
        }
        Ok(())
    }

    /// Ends the window when its time has come: the branch with the highest CCount, the lowest of several, sends one
    /// CNP.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<CnpUp>) {
        if self.end.is_none_or(|end| now < end) {
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
            self.end = None;
            return;
        }
        out.push(CnpUp { branch: BranchIndex(branch), count: u32::from(count) });
        self.end = Some(match self.rules.mode {
            WindowMode::Leading => now + self.rules.window,
            WindowMode::Trailing => end_of_window(now, self.rules.window),
        });
    }

    /// The end of the open window.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.end
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
    }

    /// Forgets what a branch has counted; it is no longer part of the tree.
    pub fn remove_branch(&mut self, branch: BranchIndex) {
        if let Some(state) = self.branches.get_mut(branch.index()) {
            *state = BranchCnps::default();
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
        CnpRules { mode, window: Duration::from_nanos(T_NS), limit: 5 }
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

    /// R7: a removed branch is not the most congested one.
    #[test]
    fn a_removed_branch_does_not_count() {
        let mut window = CnpWindow::new(&rules(WindowMode::Trailing), 2);
        assert_eq!((cnp(&mut window, 0, 0, 9), cnp(&mut window, 0, 1, 2)), Default::default());
        window.remove_branch(BranchIndex(0));
        assert_eq!(tick(&mut window, T_NS), [(1, 2)]);
    }

    proptest! {
        /// Against a list of all that came since the window began: one CNP a window and never two within T, for the
        /// branch that has the most.
        #[test]
        fn leading_window_equals_model(
            steps in prop::collection::vec((0_u64..700, 0_u16..4, 1_u32..4), 0..100),
        ) {
            let rules = CnpRules { limit: u16::MAX, ..rules(WindowMode::Leading) };
            let mut window = CnpWindow::new(&rules, 4);
            let (mut now_ns, mut end_ns, mut heard) = (0, None, Vec::new());
            let mut last_sent_ns: Option<u64> = None;
            for (step_ns, branch, count) in steps {
                let mut expected = Vec::new();
                now_ns += step_ns;
                if end_ns.is_some_and(|end_ns| now_ns >= end_ns) {
                    let mut sums = BTreeMap::new();
                    heard.drain(..).for_each(|(branch, count)| *sums.entry(branch).or_insert(0) += count);
                    let most = sums.iter().max_by_key(|&(&branch, &sum)| (sum, u16::MAX - branch));
                    end_ns = most.map(|_| now_ns + T_NS);
                    expected.extend(most.map(|(&branch, &sum)| (branch, sum)));
                }
                match end_ns {
                    Some(_) => heard.push((branch, count)),
                    None => {
                        expected.push((branch, count));
                        end_ns = Some(now_ns + T_NS);
                    }
                }
                let sent = cnp(&mut window, now_ns, branch, count);
                prop_assert_eq!(&sent, &expected);
                if !sent.is_empty() {
                    prop_assert!(last_sent_ns.is_none_or(|last_ns| now_ns - last_ns >= T_NS) && sent.len() == 1);
                    last_sent_ns = Some(now_ns);
                }
            }
        }
    }
}
