//! Stall detection (D25): for each branch, the number of times that the data at its expected PSN were sent down without
//! progress, and the time of the first. False evictions are worse than late ones: where two readings are possible, the
//! clock begins with the later one.
//!
//! ```text
//!            new data go down                          the data at `next` go down again: one more
//!              (not looked at)                           .--------.
//!                   |                                    |        v
//!   Idle -----------+-- the data at `next` again ---> Waiting since, sends -- r times over T_stall --.
//!     ^                                                ^      |                                      v
//!     |                                                |      '------- the receiver failed -------> Due
//!     '-- progress: caught up      progress, with more |                                            |  ^
//!         (from any state)         data on their way --'                                    request |  | T_stall
//!                                  (from any state)                                                 v  |
//!                                                                                                  Requested
//! ```
//!
//! A branch without a response since a restart has no `next`: for it any step back of the data counts. A pending
//! response is no progress: a receiver that is never ready holds its group back like a dead one, unless the policy has
//! a time for receivers that are not ready (D196). Each RNR NAK then begins the count anew, and the branch is due when
//! the first of them is older than that time.

mod not_ready;

use crate::expected_psns::ExpectedPsns;
use crate::optional_psn::OptionalPsn;
use crate::rules::StallRules;
use crate::succession::Origin;
use not_ready::NotReady;
use srdma_wire::{Instant, Psn};

/// The progress of one branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// It had all data at its last response: the data at its expected PSN have been sent once at most, not later than
    /// the latest data that a branch without arrears was sent.
    Idle,
    /// The data at its expected PSN have been sent `sends` times since `since`, in ticks; at most [`MOST_SENDS`].
    Waiting { since: u32, sends: u8 },
    /// Its eviction is due.
    Due,
    /// Its eviction was requested at `since`.
    Requested { since: u32 },
}

/// State of the data that a branch expects after its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// They have not been sent to any branch.
    CaughtUp,
    /// They have been sent.
    InFlight,
    /// They were lost upstream, or may never have been sent to this branch, while later ones were sent.
    Missing,
}

/// The greatest [`StallRules::sends`].
const MOST_SENDS: u8 = 15;
/// Bound on the lag of an expected PSN behind the data (R1).
const FAR: u32 = 1 << 22;
/// Bits of a tick count that a branch remembers; the others are those of the present.
const TICK_BITS: u32 = 27;
const TICK_MASK: u32 = (1 << TICK_BITS) - 1;

/// A [`Watch`] in four octets (MT-8-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Packed(u32);

impl Packed {
    const IDLE: u32 = MOST_SENDS as u32 + 1;
    const DUE: u32 = MOST_SENDS as u32 + 2;
    const REQUESTED: u32 = MOST_SENDS as u32 + 3;

    fn new(watch: Watch) -> Self {
        let (since, code) = match watch {
            Watch::Idle => (0, Self::IDLE),
            Watch::Waiting { since, sends } => (since, u32::from(sends.min(MOST_SENDS))),
            Watch::Due => (0, Self::DUE),
            Watch::Requested { since } => (since, Self::REQUESTED),
        };
        Packed(since << (32 - TICK_BITS) | code)
    }

    fn watch(self) -> Watch {
        let since = self.0 >> (32 - TICK_BITS);
        match self.0 & ((1 << (32 - TICK_BITS)) - 1) {
            Self::IDLE => Watch::Idle,
            Self::DUE => Watch::Due,
            Self::REQUESTED => Watch::Requested { since },
            sends => Watch::Waiting { since, sends: sends as u8 },
        }
    }
}

impl Watch {
    /// An unknown branch.
    pub(super) const NEW: Watch = Watch::Waiting { since: 0, sends: 0 };

    /// The expected PSN of the branch has advanced.
    fn progress(self, now: u32, progress: Progress) -> Watch {
        match (self, progress) {
            (Watch::Idle | Watch::Waiting { .. } | Watch::Due | Watch::Requested { .. }, Progress::CaughtUp) => {
                Watch::Idle
            }
            (Watch::Idle | Watch::Waiting { .. } | Watch::Due | Watch::Requested { .. }, Progress::InFlight) => {
                Watch::Waiting { since: now, sends: 1 }
            }
            (Watch::Idle | Watch::Waiting { .. } | Watch::Due | Watch::Requested { .. }, Progress::Missing) => {
                Watch::Waiting { since: now, sends: 0 }
            }
        }
    }

    /// The data at the expected PSN are sent after later data. `first`: for the first time; else, for an idle
    /// branch, they were sent at `mark` at the latest.
    fn sent(self, now: u32, mark: u32, first: bool) -> Watch {
        match self {
            Watch::Idle if first => Watch::Waiting { since: now, sends: 1 },
            Watch::Idle => Watch::Waiting { since: mark, sends: 2 },
            Watch::Waiting { sends: 0, .. } => Watch::Waiting { since: now, sends: 1 },
            Watch::Waiting { since, sends } => Watch::Waiting { since, sends: sends.saturating_add(1).min(MOST_SENDS) },
            Watch::Due | Watch::Requested { .. } => self,
        }
    }

    /// Time has come to look.
    fn checked(self, now: u32, t_stall: u32, sends_wanted: u8) -> Watch {
        let over = |since: u32| now.wrapping_sub(since) & TICK_MASK >= t_stall;
        match self {
            Watch::Waiting { since, sends } if sends >= sends_wanted && over(since) => Watch::Due,
            Watch::Requested { since } if over(since) => Watch::Due,
            Watch::Idle | Watch::Waiting { .. } | Watch::Due | Watch::Requested { .. } => self,
        }
    }

    /// The receiver has responded that it is not ready. `too_long`: for longer than the policy permits.
    fn not_ready(self, now: u32, too_long: bool) -> Watch {
        match (self, too_long) {
            (Watch::Idle | Watch::Waiting { .. } | Watch::Due, true) => Watch::Due,
            (Watch::Requested { since }, true) => Watch::Requested { since },
            (Watch::Idle | Watch::Waiting { .. } | Watch::Due | Watch::Requested { .. }, false) => {
                Watch::Waiting { since: now, sends: 0 }
            }
        }
    }

    /// The receiver has failed (D24).
    fn failed(self) -> Watch {
        match self {
            Watch::Idle | Watch::Waiting { .. } | Watch::Due => Watch::Due,
            Watch::Requested { since } => Watch::Requested { since },
        }
    }

    /// Its eviction was requested.
    fn asked(self, now: u32) -> Watch {
        match self {
            Watch::Due => Watch::Requested { since: now },
            Watch::Idle | Watch::Waiting { .. } | Watch::Requested { .. } => self,
        }
    }
}

/// The stall watch of all receivers of a node that requests evictions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StallWatch {
    rules: StallRules,
    /// A tick has 2^`shift` nanoseconds: T_stall has 2^16 to 2^17 of them.
    shift: u8,
    /// T_stall in ticks, and one more: an interval that began during a tick may have begun at its end.
    t_stall: u32,
    group: Group,
    branches: Box<[Packed]>,
    not_ready: Option<NotReady>,
}

/// State per group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    /// When new data last went down that an idle branch expected.
    mark: u32,
    /// Of the data from here on, up to `gap_end`, some have not gone down, although later ones have.
    gap: OptionalPsn,
    gap_end: OptionalPsn,
    /// Some branch has everything.
    idle: bool,
    /// Some eviction is due.
    due: bool,
}

impl StallWatch {
    /// State per group and per branch (MT-8-1).
    pub(super) const OCTETS_PER_GROUP: usize = size_of::<Group>();
    pub(super) const OCTETS_PER_BRANCH: usize = size_of::<Packed>();

    /// `branches` branches that have everything, of which nothing is known.
    pub(super) fn new(rules: StallRules, branches: usize) -> Self {
        let t_stall_ns = u64::try_from(rules.t_stall.as_nanos()).unwrap_or(u64::MAX).max(1);
        let shift = t_stall_ns.ilog2().saturating_sub(16) as u8;
        let group = Group { mark: 0, gap: OptionalPsn::NONE, gap_end: OptionalPsn::NONE, idle: true, due: false };
        StallWatch {
            rules,
            shift,
            t_stall: (t_stall_ns >> shift) as u32 + 2,
            group,
            branches: vec![Packed::new(Watch::Idle); branches].into_boxed_slice(),
            not_ready: rules.t_not_ready.map(|limit| NotReady::new(limit, branches)),
        }
    }

    /// The state in another epoch. Earlier data were not sent to branches that are new and unknown.
    pub(super) fn succeed(&mut self, rules: StallRules, origins: &[Origin], highest: Option<Psn>) {
        let mut next = Self::new(rules, origins.len());
        let same_clock = (next.shift, next.t_stall) == (self.shift, self.t_stall);
        let watch = |(branch, origin): (usize, &Origin)| match origin {
            _ if branch < usize::from(rules.nodes) => Watch::Idle,
            Origin::Kept(index) if same_clock => self.watch(index.index()),
            Origin::Kept(_) | Origin::Unknown => Watch::NEW,
            Origin::At(_) => Watch::Idle,
        };
        let watches = || origins.iter().enumerate().map(watch);
        next.group = Group { idle: true, due: watches().any(|watch| watch == Watch::Due), ..self.group.clone() };
        next.branches = watches().map(Packed::new).collect();
        if let (Some(next), Some(known)) = (&mut next.not_ready, &self.not_ready) {
            next.succeed(known, origins);
        }
        if let (Some(highest), true) = (highest, origins.contains(&Origin::Unknown)) {
            (next.group.gap, next.group.gap_end) = (highest.minus(FAR).into(), highest.next().into());
        }
        *self = next;
    }

    /// Progress of a branch.
    fn watch(&self, branch: usize) -> Watch {
        self.branches.get(branch).map_or(Watch::NEW, |packed| packed.watch())
    }

    /// A branch has moved to `next`. `first_word`: it was unknown, and what went down before may have gone to others.
    pub(super) fn progress(&mut self, now: Instant, branch: usize, next: Psn, highest: Option<Psn>, first_word: bool) {
        let progress = if highest.is_none_or(|highest| next.is_after(highest)) {
            self.group.idle = true;
            Progress::CaughtUp
        } else if first_word || self.is_in_gap(next) {
            Progress::Missing
        } else {
            Progress::InFlight
        };
        let now = self.ticks(now);
        self.set(branch, |watch| watch.progress(now, progress));
        if let Some(not_ready) = &mut self.not_ready {
            not_ready.forget(branch);
        }
    }

    /// A branch has responded that its receiver is not ready for the data that it expects (D196).
    pub(super) fn not_ready(&mut self, now: Instant, branch: usize) {
        let Some(not_ready) = &mut self.not_ready else { return };
        let too_long = not_ready.note(now, branch);
        let ticks = self.ticks(now);
        self.group.due |= self.set(branch, |watch| watch.not_ready(ticks, too_long)) == Watch::Due;
    }

    /// New data were sent down, where `before` was the highest PSN; `least` is the minimum PSN, once all branches have
    /// responded.
    #[inline]
    pub(super) fn new_data(&mut self, now: Instant, psn: Psn, before: Option<Psn>, least: Option<Psn>) {
        match before.map(Psn::next) {
            // The data sent before a restart are unknown.
            None => (self.group.gap, self.group.gap_end) = (psn.minus(FAR).into(), psn.into()),
            Some(expected) if psn.is_after(expected) => {
                if self.group.gap.get().is_none() {
                    self.group.gap = expected.into();
                }
                self.group.gap_end = psn.into();
            }
            Some(_) => {}
        }
        if self.group.gap_end.get().zip(least).is_some_and(|(end, least)| !least.is_before(end)) {
            (self.group.gap, self.group.gap_end) = (OptionalPsn::NONE, OptionalPsn::NONE);
        }
        if self.group.idle || before.is_none() {
            (self.group.idle, self.group.mark) = (false, self.ticks(now));
        }
    }

    /// Data have gone down that are not above the highest. `unknown`: branches that any of them is for. Gives when to
    /// look at the branches that have been sent enough.
    pub(super) fn old_data(
        &mut self,
        now: Instant,
        psn: Psn,
        expected_psns: &ExpectedPsns,
        unknown: impl Iterator<Item = usize>,
    ) -> Option<Instant> {
        let first = self.is_in_gap(psn);
        if self.group.gap.get() == Some(psn) {
            let rest = psn.next();
            let is_over = self.group.gap_end.get() == Some(rest);
            self.group.gap = if is_over { OptionalPsn::NONE } else { rest.into() };
        }
        if expected_psns.minimum().is_some_and(|least| psn.is_before(least)) {
            return unknown.filter_map(|branch| self.sent(now, branch, false)).min();
        }
        let known = expected_psns.at(psn).filter_map(|branch| self.sent(now, branch, first)).min();
        let unknown = unknown.filter_map(|branch| self.sent(now, branch, false)).min();
        [known, unknown].into_iter().flatten().min()
    }

    /// The data at the expected PSN of a branch were sent to it again, not to the others. Returns the time of the next
    /// check of the branch.
    pub(super) fn resent(&mut self, now: Instant, branch: usize) -> Option<Instant> {
        if branch < self.branches.len() { self.sent(now, branch, false) } else { None }
    }

    fn sent(&mut self, now: Instant, branch: usize, first: bool) -> Option<Instant> {
        let (ticks, mark, t_stall, sends) = (self.ticks(now), self.group.mark, self.t_stall, self.rules.sends);
        let watch = self.set(branch, |watch| watch.sent(ticks, mark, first).checked(ticks, t_stall, sends));
        self.group.due |= watch == Watch::Due;
        self.deadline_of(now, watch)
    }

    /// A receiver has failed: its eviction is wanted at once (D24).
    pub(super) fn failed(&mut self, branch: usize) {
        self.group.due |= self.set(branch, Watch::failed) == Watch::Due;
    }

    /// A branch has gone.
    pub(super) fn forget(&mut self, branch: usize) {
        self.set(branch, |_| Watch::NEW);
        if let Some(not_ready) = &mut self.not_ready {
            not_ready.forget(branch);
        }
    }

    /// Looks at every branch; gives when to look again.
    pub(super) fn tick(&mut self, now: Instant) -> Option<Instant> {
        let (ticks, t_stall, sends) = (self.ticks(now), self.t_stall, self.rules.sends);
        let mut next: Option<Instant> = None;
        for branch in 0..self.branches.len() {
            let watch = self.set(branch, |watch| watch.checked(ticks, t_stall, sends));
            self.group.due |= watch == Watch::Due;
            next = [next, self.deadline_of(now, watch)].into_iter().flatten().min();
        }
        next
    }

    /// Whether some branch must be checked when time has passed.
    pub(super) fn is_waiting(&self) -> bool {
        (0..self.branches.len()).any(|branch| self.deadline_of(Instant::ZERO, self.watch(branch)).is_some())
    }

    /// Whether some eviction is due.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.group.due
    }

    /// Calls `ask` for every branch whose eviction is due; returns the time of the next request.
    pub(super) fn ask(&mut self, now: Instant, mut ask: impl FnMut(usize)) -> Option<Instant> {
        self.group.due = false;
        let ticks = self.ticks(now);
        let mut next = None;
        for branch in 0..self.branches.len() {
            if self.watch(branch) == Watch::Due {
                ask(branch);
                let watch = self.set(branch, |watch| watch.asked(ticks));
                next = self.deadline_of(now, watch);
            }
        }
        next
    }

    fn is_in_gap(&self, psn: Psn) -> bool {
        let (Some(from), Some(end)) = (self.group.gap.get(), self.group.gap_end.get()) else {
            return false;
        };
        !psn.is_before(from) && psn.is_before(end)
    }

    /// Nodes are not watched: they remain idle.
    fn set(&mut self, branch: usize, change: impl FnOnce(Watch) -> Watch) -> Watch {
        if branch < usize::from(self.rules.nodes) {
            return Watch::Idle;
        }
        let Some(packed) = self.branches.get_mut(branch) else {
            return Watch::NEW;
        };
        let watch = change(packed.watch());
        *packed = Packed::new(watch);
        watch
    }

    /// Time of the next check of a branch. After 2^10 times T_stall without a check the computed waiting time of a
    /// branch is too short.
    fn deadline_of(&self, now: Instant, watch: Watch) -> Option<Instant> {
        let since = match watch {
            Watch::Waiting { since, sends } if sends >= self.rules.sends => since,
            Watch::Requested { since } => since,
            Watch::Idle | Watch::Waiting { .. } | Watch::Due => return None,
        };
        let waited = self.ticks(now).wrapping_sub(since) & TICK_MASK;
        let left = u64::from(self.t_stall.saturating_sub(waited));
        Some(Instant::from_ns(((now.as_ns() >> self.shift).saturating_add(left)) << self.shift))
    }

    #[inline]
    fn ticks(&self, now: Instant) -> u32 {
        (now.as_ns() >> self.shift) as u32 & TICK_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_testkit::table::table;
    use std::time::Duration;

    const WATCHES: [Watch; 8] = [
        Watch::Idle,
        Watch::Waiting { since: 0, sends: 0 },
        Watch::Waiting { since: 10, sends: 1 },
        Watch::Waiting { since: 10, sends: 3 },
        Watch::Waiting { since: 80, sends: 3 },
        Watch::Due,
        Watch::Requested { since: 10 },
        Watch::Requested { since: 80 },
    ];

    fn name(watch: Watch) -> String {
        match watch {
            Watch::Idle => "Idle".into(),
            Watch::Waiting { since, sends } => format!("{sends}x, {since}"),
            Watch::Due => "Due".into(),
            Watch::Requested { since } => format!("Requested {since}"),
        }
    }

    /// Every state under every event at tick 100; three sends over 50 ticks are a stall, the last new data for idle
    /// branches went down at tick 40 (D25).
    #[test]
    fn the_full_table() {
        let cells = |next: &dyn Fn(Watch) -> Watch| WATCHES.map(|watch| name(next(watch)));
        let mut rows = vec![[&[String::new()][..], &cells(&|watch| watch)].concat()];
        let mut row =
            |event: &str, next: &dyn Fn(Watch) -> Watch| rows.push([&[event.into()][..], &cells(next)].concat());
        row("caught up", &|watch| watch.progress(100, Progress::CaughtUp));
        row("on their way", &|watch| watch.progress(100, Progress::InFlight));
        row("missing", &|watch| watch.progress(100, Progress::Missing));
        row("sent again", &|watch| watch.sent(100, 40, false));
        row("sent at last", &|watch| watch.sent(100, 40, true));
        row("looked at", &|watch| watch.checked(100, 50, 3));
        row("failed", &Watch::failed);
        row("asked", &|watch| watch.asked(100));
        insta::assert_snapshot!(table(&rows), @r"
                     Idle    0x, 0   1x, 10  3x, 10  3x, 80  Due           Requested 10 Requested 80
        caught up    Idle    Idle    Idle    Idle    Idle    Idle          Idle         Idle
        on their way 1x, 100 1x, 100 1x, 100 1x, 100 1x, 100 1x, 100       1x, 100      1x, 100
        missing      0x, 100 0x, 100 0x, 100 0x, 100 0x, 100 0x, 100       0x, 100      0x, 100
        sent again   2x, 40  1x, 100 2x, 10  4x, 10  4x, 80  Due           Requested 10 Requested 80
        sent at last 1x, 100 1x, 100 2x, 10  4x, 10  4x, 80  Due           Requested 10 Requested 80
        looked at    Idle    0x, 0   1x, 10  Due     3x, 80  Due           Due          Requested 80
        failed       Due     Due     Due     Due     Due     Due           Requested 10 Requested 80
        asked        Idle    0x, 0   1x, 10  3x, 10  3x, 80  Requested 100 Requested 10 Requested 80
        ");
    }

    /// MT-8-1: four octets hold every state.
    #[test]
    fn four_octets_hold_every_state() {
        let clocks = [0, 1, TICK_MASK - 1, TICK_MASK];
        let waiting = clocks.map(|since| (0..=MOST_SENDS).map(move |sends| Watch::Waiting { since, sends }));
        let others = clocks.map(|since| Watch::Requested { since }).into_iter().chain([Watch::Idle, Watch::Due]);
        for watch in waiting.into_iter().flatten().chain(others) {
            assert_eq!(Packed::new(watch).watch(), watch);
        }
    }

    /// However long T_stall is, a tick is less than its 2^16th part and T_stall less than a 2^9th of what is
    /// remembered.
    #[test]
    fn ticks_fit_the_time() {
        for t_stall_ns in [1, 999, 65_536, 1_000_000, 1_000_000_000, 3_600_000_000_000, u64::MAX] {
            let rules = StallRules { t_stall: Duration::from_nanos(t_stall_ns), sends: 3, t_not_ready: None, nodes: 0 };
            let watch = StallWatch::new(rules, 1);
            assert!(1 << watch.shift <= (t_stall_ns >> 16).max(1), "{t_stall_ns}");
            assert!(watch.t_stall <= (1 << 17) + 1 && u128::from(watch.t_stall) << watch.shift > t_stall_ns.into());
        }
    }
}
