//! The aggregation machine against a slow model, over random events: numbers that never wrap, no counts kept,
//! everything found by looking at all branches. The model was written from the rule's text, not from the machine.

use proptest::prelude::*;
use srdma_aggregation::{Acknowledgements, BranchIndex, Response, Rules, Start, Syndrome};
use srdma_wire::transport::rnr_timer;
use srdma_wire::{Instant, Psn};
use std::time::Duration;

const T_HOLD_NS: u64 = 1_000;

/// A response upstream: its kind, and the first number that it does not acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent(Syndrome, u64);

#[derive(Clone, Copy, Debug)]
struct Pend {
    kind: Syndrome,
    received_at: u64,
    /// It, or a response that supersedes it, was sent upstream.
    sent: bool,
    /// Its T_hold has ended above the minimum.
    early: bool,
}

/// A branch: `None` while it is unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Branch {
    next: Option<u64>,
    pend: Option<Pend>,
    msn: u32,
    removed: bool,
}

#[derive(Debug, Default)]
struct Model {
    branches: Vec<Branch>,
    hi: Option<u64>,
    last_data: Option<u64>,
    up: Option<u64>,
    /// The minimum at which a NAK went up, unless the data there went down since.
    nak_up_at: Option<u64>,
    /// The same for an RNR NAK, with the longest wait sent.
    rnr_up_at: Option<(u64, Duration)>,
}

impl Model {
    fn new(branches: usize, initial: Option<u64>) -> Self {
        Model {
            branches: vec![Branch { next: initial, ..Branch::default() }; branches],
            up: initial,
            ..Model::default()
        }
    }

    fn living(&self) -> impl Iterator<Item = &Branch> {
        self.branches.iter().filter(|branch| !branch.removed)
    }

    fn least_known(&self) -> Option<u64> {
        self.living().filter_map(|branch| branch.next).min()
    }

    /// R6.
    fn minimum(&self) -> Option<u64> {
        if self.living().any(|branch| branch.next.is_none()) { None } else { self.least_known() }
    }

    /// Whether the position of `x` is ambiguous in 24 bits: half the circle or more from a number it is compared with.
    fn is_ambiguous(&self, x: u64) -> bool {
        let compared = [self.hi, self.last_data, self.least_known()];
        compared.into_iter().flatten().any(|number| x.abs_diff(number) >= 1 << 23)
    }

    /// R1, then R3 or R4. False: refused.
    fn response(&mut self, now: u64, branch: usize, kind: Syndrome, n: u64, msn: u32, sent: &mut Vec<Sent>) -> bool {
        let Some(hi) = self.hi else { return false };
        if self.branches[branch].removed || n > hi + (1 << 16) || n + (1 << 22) < hi {
            return false;
        }
        let fatal = matches!(kind, Syndrome::Fatal(_));
        let (n, kind) = if n <= hi + 1 { (n, kind) } else { (hi + 1, if fatal { kind } else { Syndrome::Ack }) };
        let state = &mut self.branches[branch];
        let new = (kind != Syndrome::Ack).then_some(Pend { kind, received_at: now, sent: false, early: false });
        let failed = state.pend.is_some_and(|pend| strength(pend.kind) == 3);
        match state.next {
            Some(next) if n < next => return false,
            Some(next) if n == next => {
                let stood = state.pend.map_or(0, |pend| strength(pend.kind));
                let repeats = strength(kind) == stood && stood == 2;
                if strength(kind) > stood || repeats {
                    let received_at = state.pend.filter(|_| repeats).map_or(now, |pend| pend.received_at);
                    state.pend = Some(Pend { kind, received_at, sent: false, early: false });
                }
            }
            Some(_) | None => {
                state.next = Some(n);
                if !failed {
                    state.pend = new;
                }
            }
        }
        state.msn = msn;
        self.forward_response(Some((branch, n, kind)), sent);
        true
    }

    fn forward_response(&mut self, received: Option<(usize, u64, Syndrome)>, sent: &mut Vec<Sent>) {
        let Some(m) = self.minimum() else { return };
        let advanced = self.up.is_none_or(|up| m > up);
        if advanced {
            sent.push(Sent(Syndrome::Ack, m));
            self.up = Some(m);
        }
        // R4 is about what comes at m; a NAK that an RNR NAK at m kept back waits for its T_hold.
        if !advanced && received.is_some_and(|(_, n, kind)| n != m || kind == Syndrome::Ack) {
            return;
        }
        // A branch that repeats its NAK does not make known the NAKs that others still hold back.
        let is_known = |branch: usize| {
            self.branches[branch].pend.is_some_and(|pend| pend.sent && pend.kind == Syndrome::SequenceNak)
        };
        if !advanced && received.is_some_and(|(branch, _, kind)| kind == Syndrome::SequenceNak && is_known(branch)) {
            return;
        }
        let here = self.living().filter(|branch| branch.next == Some(m)).filter_map(|branch| branch.pend);
        let here: Vec<Pend> = here.collect();
        let strongest = here.iter().map(|pend| strength(pend.kind)).max().unwrap_or(0);
        let of_it: Vec<Pend> = here.into_iter().filter(|pend| strength(pend.kind) == strongest).collect();
        let known = of_it.iter().any(|pend| pend.sent);
        let rnr_came = received.is_some_and(|(_, n, kind)| n == m && strength(kind) == 2);
        match strongest {
            3 if !known => sent.push(Sent(of_it[0].kind, m)),
            2 if advanced || rnr_came => {
                let longest = of_it.iter().max_by_key(|pend| wait(pend.kind)).unwrap();
                if self.rnr_up_at.is_none_or(|(at, sent)| at != m || wait(longest.kind) > sent) {
                    sent.push(Sent(longest.kind, m));
                    self.rnr_up_at = Some((m, wait(longest.kind)));
                }
            }
            1 if !known && self.nak_up_at != Some(m) => {
                sent.push(Sent(Syndrome::SequenceNak, m));
                self.nak_up_at = Some(m);
            }
            _ => {}
        }
        // A NAK beside an RNR NAK is not known upstream; whatever else stands here is.
        if strongest != 2 {
            for branch in self.branches.iter_mut().filter(|branch| !branch.removed && branch.next == Some(m)) {
                branch.pend.iter_mut().for_each(|pend| pend.sent = true);
            }
        }
    }

    /// R2.
    fn data(&mut self, x: u64, ack_request: bool, sent: &mut Vec<Sent>) {
        let floor = self.least_known();
        if self.hi.is_none_or(|hi| x > hi) && floor.is_none_or(|floor| x <= floor + (1 << 22)) {
            self.hi = Some(floor.map_or(x, |floor| x.max(floor - 1)));
        }
        for branch in self.branches.iter_mut().filter(|branch| branch.next == Some(x)) {
            branch.pend = branch.pend.filter(|pend| strength(pend.kind) == 3);
        }
        if floor == Some(x) {
            (self.nak_up_at, self.rnr_up_at) = (None, None);
        }
        let backward = self.last_data.is_some_and(|last| x <= last);
        self.last_data = Some(x);
        let Some(m) = self.minimum() else { return };
        if !ack_request && !backward {
            return;
        }
        if x < m {
            sent.push(Sent(Syndrome::Ack, m));
        }
        let failed = self.living().filter_map(|branch| branch.pend).find(|pend| strength(pend.kind) == 3 && pend.sent);
        sent.extend(failed.map(|pend| Sent(pend.kind, m)));
    }

    /// R5.
    fn tick(&mut self, now: u64, sent: &mut Vec<Sent>) {
        let Some(m) = self.minimum() else { return };
        let mut strongest: Option<Syndrome> = None;
        let standing = self.living().filter(|branch| branch.next == Some(m)).filter_map(|branch| branch.pend);
        let stronger_stands = standing.map(|pend| strength(pend.kind)).max().unwrap_or(0) > 1;
        for branch in self.branches.iter_mut().filter(|branch| !branch.removed) {
            let Some(pend) = &mut branch.pend else { continue };
            if !pend.sent && !pend.early && strength(pend.kind) != 2 && now >= pend.received_at + T_HOLD_NS {
                // A NAK above the minimum is sent again at its own number, when the minimum comes there.
                let is_above = branch.next > Some(m) && strength(pend.kind) == 1;
                (pend.sent, pend.early) = (!is_above, is_above);
                if strongest.is_none_or(|strongest| strength(pend.kind) > strength(strongest)) {
                    strongest = Some(pend.kind);
                }
            }
        }
        match strongest {
            Some(kind @ Syndrome::Fatal(_)) => sent.push(Sent(kind, m)),
            Some(_) if !stronger_stands && self.nak_up_at != Some(m) => {
                sent.push(Sent(Syndrome::SequenceNak, m));
                self.nak_up_at = Some(m);
            }
            Some(_) | None => {}
        }
    }

    /// R7.
    fn remove(&mut self, branch: usize, sent: &mut Vec<Sent>) {
        if !std::mem::replace(&mut self.branches[branch].removed, true) {
            self.branches[branch].next = None;
            self.branches[branch].pend = None;
            self.forward_response(None, sent);
        }
    }
}

fn strength(kind: Syndrome) -> u32 {
    match kind {
        Syndrome::Ack => 0,
        Syndrome::SequenceNak => 1,
        Syndrome::RnrNak(_) => 2,
        Syndrome::Fatal(_) => 3,
    }
}

fn wait(kind: Syndrome) -> Duration {
    if let Syndrome::RnrNak(timer) = kind { rnr_timer(timer) } else { Duration::ZERO }
}

#[derive(Clone, Debug)]
enum Event {
    /// Data at an offset from the number after the highest.
    Data {
        offset: i64,
        ack_request: bool,
    },
    /// A response whose expected lies at an offset from the number after the highest.
    Response {
        branch: usize,
        kind: Syndrome,
        offset: i64,
    },
    /// A response at an offset from the branch's own expected.
    Near {
        branch: usize,
        kind: Syndrome,
        offset: i64,
    },
    Wait {
        ns: u64,
    },
    Remove {
        branch: usize,
    },
}

fn kind() -> impl Strategy<Value = Syndrome> {
    prop_oneof![
        10 => Just(Syndrome::Ack),
        6 => Just(Syndrome::SequenceNak),
        3 => prop::sample::select(vec![0, 1, 13, 14, 31]).prop_map(Syndrome::RnrNak),
        1 => (1_u8..4).prop_map(Syndrome::Fatal),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let near =
        prop_oneof![30 => -12_i64..3, 1 => Just(1 << 16), 1 => Just(-(1 << 22)), 1 => -(1_i64 << 22) - 3..1 << 17];
    let data = prop_oneof![20 => Just(0_i64), 12 => -10_i64..2, 1 => Just((1 << 22) + 1), 1 => -(1_i64 << 21)..1 << 21];
    prop_oneof![
        10 => (data, any::<bool>()).prop_map(|(offset, ack_request)| Event::Data { offset, ack_request }),
        5 => (0_usize..6, kind(), near).prop_map(|(branch, kind, offset)| Event::Response { branch, kind, offset }),
        9 => (0_usize..6, kind(), -1_i64..4).prop_map(|(branch, kind, offset)| Event::Near { branch, kind, offset }),
        3 => (1_u64..2 * T_HOLD_NS).prop_map(|ns| Event::Wait { ns }),
        1 => (0_usize..40).prop_map(|branch| Event::Remove { branch }),
    ]
}

/// Numbers begin around the wrap, or anywhere; far enough from 0 that none is negative.
fn base() -> impl Strategy<Value = u64> {
    prop_oneof![(1_u64 << 24) - 40..(1 << 24) + 5, 1_u64 << 24..1 << 25]
}

fn psn(number: u64) -> Psn {
    Psn::new((number & 0xFF_FFFF) as u32)
}

fn wire(sent: &[Sent]) -> Vec<(Syndrome, Psn)> {
    sent.iter().map(|&Sent(syndrome, n)| (syndrome, psn(if syndrome == Syndrome::Ack { n - 1 } else { n }))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(srdma_testkit::seeds::count(3_000) as u32))]

    /// R1-R7, D15-D18, D20, D21, D23, D24; MT-5.3.1-2, MT-5.3.1-3, MT-5.3.2-2 to MT-5.3.2-4.
    #[test]
    fn machine_equals_model(
        base in base(),
        branches in 1_usize..7,
        committed in any::<bool>(),
        events in prop::collection::vec(event(), 0..120),
    ) {
        let rules = Rules { t_hold: Duration::from_nanos(T_HOLD_NS), ..Rules::default() };
        let start = if committed { Start::Committed(psn(base)) } else { Start::Unknown };
        let mut machine = Acknowledgements::new(&rules, branches as u16, start);
        let mut model = Model::new(branches, committed.then_some(base));
        let mut now_ns = 0;
        for (msn, event) in (0..).zip(events) {
            let (mut out, mut sent) = (Vec::new(), Vec::new());
            let highest = model.hi.map_or(base, |hi| hi + 1);
            let now = Instant::from_ns(now_ns);
            match event {
                Event::Data { offset, ack_request } => {
                    let x = highest.checked_add_signed(offset).unwrap();
                    if model.is_ambiguous(x) {
                        continue;
                    }
                    machine.data(now, psn(x), ack_request, &mut out);
                    model.data(x, ack_request, &mut sent);
                }
                Event::Response { branch, .. } | Event::Near { branch, .. } if branch >= branches => continue,
                Event::Response { branch, kind, offset } => {
                    let n = highest.checked_add_signed(offset).unwrap();
                    let (index, response) = (BranchIndex(branch as u16), response(kind, n, msn));
                    let taken = machine.response(now, index, response, &mut out).is_ok();
                    prop_assert_eq!(taken, model.response(now_ns, branch, kind, n, msn, &mut sent));
                }
                Event::Near { branch, kind, offset } => {
                    let expected = model.branches[branch].next.unwrap_or(highest);
                    let n = expected.checked_add_signed(offset).unwrap();
                    let (index, response) = (BranchIndex(branch as u16), response(kind, n, msn));
                    let taken = machine.response(now, index, response, &mut out).is_ok();
                    prop_assert_eq!(taken, model.response(now_ns, branch, kind, n, msn, &mut sent));
                }
                Event::Wait { ns } => {
                    now_ns += ns;
                    machine.tick(Instant::from_ns(now_ns), &mut out);
                    model.tick(now_ns, &mut sent);
                }
                Event::Remove { branch } if branch >= branches => continue,
                Event::Remove { branch } => {
                    machine.remove_branch(BranchIndex(branch as u16), &mut out);
                    model.remove(branch, &mut sent);
                }
            }
            let of_machine: Vec<_> = out.iter().map(|sent| (sent.response.syndrome, sent.response.psn)).collect();
            prop_assert_eq!(of_machine, wire(&sent));
            // D18: the MSN is that of a branch at the minimum.
            let at_minimum = model.living().filter(|branch| branch.next == model.least_known());
            let msns: Vec<u32> = at_minimum.map(|branch| branch.msn).collect();
            prop_assert!(out.iter().all(|sent| msns.contains(&sent.response.msn)));
            prop_assert_eq!(machine.minimum_psn(), model.least_known().map(psn));
            prop_assert_eq!(machine.highest_psn(), model.hi.map(psn));
            for (index, branch) in (0..).zip(&model.branches) {
                prop_assert_eq!(machine.expected_psn(BranchIndex(index)), branch.next.map(psn));
            }
            deadline_is_in_time(&machine, &model)?;
        }
    }
}

fn response(kind: Syndrome, n: u64, msn: u32) -> Response {
    Response { psn: psn(if kind == Syndrome::Ack { n - 1 } else { n }), msn, syndrome: kind }
}

/// A hold that is to end has a deadline no later than its end; a NAK at the minimum has none when one was sent
/// upstream.
fn deadline_is_in_time(machine: &Acknowledgements, model: &Model) -> Result<(), TestCaseError> {
    let Some(m) = model.minimum() else { return Ok(()) };
    let waiting = model.living().filter(|branch| branch.next != Some(m) || model.nak_up_at != Some(m));
    let held =
        waiting.filter_map(|branch| branch.pend).filter(|pend| !pend.sent && !pend.early && strength(pend.kind) != 2);
    if let Some(end) = held.map(|pend| pend.received_at + T_HOLD_NS).min() {
        prop_assert!(machine.next_deadline().is_some_and(|deadline| deadline <= Instant::from_ns(end)));
    }
    Ok(())
}
