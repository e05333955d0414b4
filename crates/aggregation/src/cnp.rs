//! CNP aggregation: one notification per window and group, for the most congested path (MT-5.3.3-1, MT-5.3.3-2, D29).

use crate::BranchIndex;
use crate::succession::Origin;
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

/// Rules for aggregating CNPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CnpRules {
    /// When they go upstream.
    pub mode: WindowMode,
    /// The window T, to begin with.
    pub window: Duration,
    /// Bound on T, which grows while congestion lasts (MT-5.3.3-3); `window` or less: T is fixed.
    pub window_most: Duration,
    /// CNPs that count in one window for one branch; further ones are refused (MT-9-3).
    pub limit: u16,
}

impl Default for CnpRules {
    /// A trailing window of 50 microseconds, always, in which a branch may send 64.
    fn default() -> Self {
        let window = Duration::from_micros(50);
        CnpRules { mode: WindowMode::Trailing, window, window_most: window, limit: 64 }
    }
}

/// A CNP to send upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnpUp {
    /// The most congested branch.
    pub branch: BranchIndex,
    /// Number of CNPs of that branch that it represents; carried between nodes, zeroed by the root (D29).
    pub count: u32,
}

/// A branch has sent more CNPs than a window allows (MT-9-3).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("branch {branch} has sent its {limit} CNPs of this window")]
pub struct TooManyCnps {
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
/// lasts, the source gets fewer CNPs, and the first CNP after a quiet time opens a short window again.
///
/// State: four octets a branch, and 16 (MT-8-1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CnpWindow {
    rules: CnpRules,
    window: Window,
    branches: Box<[BranchCnps]>,
}

/// State per group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Window {
    /// The end of the open window, or up to when the quiet since the last one has been reckoned.
    end: Instant,
    /// Number of times that T was doubled.
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

    /// A CNP from a branch, which stands for `count` of them: 1 from a receiver, the count in the packet from a node.
    /// Zero counts as one. A CNP from a branch that does not exist is rejected.
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

    /// Takes over into another epoch. Counts of remaining branches continue, and so does the window.
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
mod tests;
