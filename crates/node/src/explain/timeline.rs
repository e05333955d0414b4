//! Timeline of a group, short enough to read: ordinary events are counted, repetitions merged.

use super::event::{Event, SyndromeKind};
use serde::Serialize;
use std::collections::VecDeque;

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// When, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The end of a run, or the last time that it happened.
    pub until_ns: u64,
    /// Number of repetitions in a row.
    pub times: u64,
    #[serde(flatten)]
    pub what: LineContent,
}

/// Content of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum LineContent {
    /// One thing.
    One(Event),
    /// Many things, counted: `kind` is `run` in JSON.
    Run(Run),
}

/// Many things, counted.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename = "run")]
pub struct Run {
    /// PSN at its beginning from which on the source retransmits.
    pub back_to: Option<u32>,
    /// Data packets.
    pub data: u64,
    /// PSN of the first data packet.
    pub first_psn: Option<u32>,
    /// PSN of the last one.
    pub last_psn: Option<u32>,
    /// ACKs of branches that were accepted.
    pub acks: u64,
    /// NAKs of all kinds that were accepted.
    pub naks: u64,
    /// ACKs that were replaced or repeated.
    pub stale: u64,
    /// Other responses that were rejected.
    pub refused: u64,
    /// Holds of responses.
    pub holds: u64,
    /// The longest of them, in nanoseconds.
    pub longest_hold_ns: u64,
    /// ACKs sent upstream.
    pub acks_sent: u64,
    /// NAKs of all kinds sent upstream.
    pub naks_sent: u64,
    /// CNPs of branches.
    pub cnps: u64,
    /// NAKs that the node answered itself.
    pub naks_answered: u64,
    /// Requests for data, of children and to the parent.
    pub requests: u64,
    /// Packets sent to a branch again.
    pub sent_again: u64,
    /// Responses of the captures that differ from the rules.
    pub differences: u64,
    pub minimum_before: Option<u32>,
    pub minimum_after: Option<u32>,
}

/// Lines kept at the beginning of a long timeline, and in all.
const FIRST_LINES: usize = 6;
const MOST_LINES: usize = 36;
/// Serious lines kept between the first and the last.
const SERIOUS_LINES: usize = 8;
/// The longest sequence of lines that is recognised as a repetition.
const LONGEST_PERIOD: usize = 6;

/// Lines in the order of events.
#[derive(Debug)]
pub(super) struct Timeline {
    lines: Vec<Line>,
    open: Option<Line>,
    minimum: Option<u32>,
    all: bool,
}

impl Timeline {
    /// An empty timeline; with `all` nothing is summed up.
    pub(super) fn new(all: bool) -> Self {
        Timeline { lines: Vec::new(), open: None, minimum: None, all }
    }

    /// The minimum as it is from here on.
    pub(super) fn set_minimum(&mut self, minimum: Option<u32>) {
        self.minimum = minimum;
    }

    /// Adds an event. The minimum after it must have been set.
    pub(super) fn add(&mut self, time_ns: u64, before: Option<u32>, what: Event) {
        if self.all {
            return self.lines.push(line(time_ns, LineContent::One(what)));
        }
        if !what.is_ordinary() {
            self.close();
            self.lines.push(line(time_ns, LineContent::One(what)));
            return self.fold_repeats();
        }
        let back_to = match what {
            Event::Data { psn, backward: true, .. } => Some(psn),
            _ => None,
        };
        if back_to.is_some() {
            self.close();
        }
        let minimum = self.minimum;
        let open = self.open.get_or_insert_with(|| {
            line(time_ns, LineContent::Run(Run { back_to, minimum_before: before, ..Run::default() }))
        });
        open.until_ns = time_ns;
        if let LineContent::Run(run) = &mut open.what {
            run.count(&what, 1);
            run.minimum_after = minimum;
        }
    }

    /// The lines, at most as many as fit a screen.
    pub(super) fn finish(mut self) -> Vec<Line> {
        self.close();
        if self.all || self.lines.len() <= MOST_LINES {
            return self.lines;
        }
        let serious = |line: &Line| match &line.what {
            LineContent::One(what) => what.is_serious(),
            LineContent::Run(_) => false,
        };
        let middle = FIRST_LINES..self.lines.len() - (MOST_LINES - FIRST_LINES - 2 * SERIOUS_LINES);
        let mut kept = Vec::new();
        let mut left = SERIOUS_LINES;
        let mut sum: Option<Line> = None;
        for (position, line) in self.lines.into_iter().enumerate() {
            let stays = !middle.contains(&position) || (left > 0 && serious(&line));
            if !stays {
                match &mut sum {
                    Some(sum) => sum.absorb(&line),
                    None => {
                        let mut first = self::line(line.time_ns, LineContent::Run(Run::default()));
                        first.absorb(&line);
                        sum = Some(first);
                    }
                }
                continue;
            }
            left -= usize::from(middle.contains(&position));
            kept.extend(sum.take());
            kept.push(line);
        }
        kept
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.lines.push(open);
            self.fold_repeats();
        }
    }

    /// Merges repetitions in the last lines.
    fn fold_repeats(&mut self) {
        let len = self.lines.len();
        for period in 1..=LONGEST_PERIOD.min(len / 2) {
            let (earlier, later) = self.lines[len - 2 * period..].split_at(period);
            if earlier.iter().zip(later).all(|(earlier, later)| earlier.is_repeated_by(later)) {
                let later: VecDeque<Line> = self.lines.drain(len - period..).collect();
                let first = len - 2 * period;
                for (earlier, later) in self.lines[first..].iter_mut().zip(later) {
                    earlier.repeat(later);
                }
                return;
            }
        }
    }
}

fn line(time_ns: u64, what: LineContent) -> Line {
    Line { time_ns, until_ns: time_ns, times: 1, what }
}

impl Line {
    fn is_repeated_by(&self, later: &Line) -> bool {
        match (&self.what, &later.what) {
            (LineContent::One(one), LineContent::One(other)) => one.is_same(other),
            (LineContent::Run(one), LineContent::Run(other)) => {
                (one.back_to, one.first_psn, one.last_psn) == (other.back_to, other.first_psn, other.last_psn)
                    && one.data > 0
                    && [one.minimum_after, other.minimum_before, other.minimum_after] == [one.minimum_before; 3]
            }
            (LineContent::One(_), LineContent::Run(_)) | (LineContent::Run(_), LineContent::One(_)) => false,
        }
    }

    fn repeat(&mut self, later: Line) {
        self.times += later.times;
        self.until_ns = later.until_ns;
        if let (LineContent::Run(run), LineContent::Run(other)) = (&mut self.what, &later.what) {
            run.add(other);
        }
    }

    /// Adds a line to a sum.
    fn absorb(&mut self, other: &Line) {
        self.until_ns = other.until_ns;
        if let LineContent::Run(run) = &mut self.what {
            match &other.what {
                LineContent::Run(other) => run.add(other),
                LineContent::One(what) => run.count(what, other.times),
            }
        }
    }
}

impl Run {
    fn add(&mut self, other: &Run) {
        self.data += other.data;
        self.first_psn = self.first_psn.or(other.first_psn);
        self.last_psn = other.last_psn.or(self.last_psn);
        self.acks += other.acks;
        self.naks += other.naks;
        self.stale += other.stale;
        self.refused += other.refused;
        self.holds += other.holds;
        self.longest_hold_ns = self.longest_hold_ns.max(other.longest_hold_ns);
        self.acks_sent += other.acks_sent;
        self.naks_sent += other.naks_sent;
        self.cnps += other.cnps;
        self.naks_answered += other.naks_answered;
        self.requests += other.requests;
        self.sent_again += other.sent_again;
        self.differences += other.differences;
        self.minimum_before = self.minimum_before.or(other.minimum_before);
        self.minimum_after = other.minimum_after.or(self.minimum_after);
    }

    fn count(&mut self, what: &Event, times: u64) {
        match what {
            Event::Data { psn, .. } => {
                self.data += times;
                self.first_psn = self.first_psn.or(Some(*psn));
                self.last_psn = Some(*psn);
            }
            Event::Response { response, .. } if response.syndrome == SyndromeKind::Ack => self.acks += times,
            Event::Response { .. } => self.naks += times,
            Event::Refused { reason: "stale_response", .. } => self.stale += times,
            Event::Refused { .. } | Event::Dropped { .. } => self.refused += times,
            Event::HoldEnded { held_ns, .. } => {
                self.holds += times;
                self.longest_hold_ns = self.longest_hold_ns.max(*held_ns);
            }
            Event::Upstream { response, .. } if response.syndrome == SyndromeKind::Ack => self.acks_sent += times,
            Event::Upstream { .. } => self.naks_sent += times,
            Event::Difference { .. } => self.differences += times,
            Event::Cnp { .. } => self.cnps += times,
            Event::NakAnswered { .. } => self.naks_answered += times,
            Event::RequestReceived { .. } | Event::RequestSent { .. } => self.requests += times,
            Event::SentAgain { .. } => self.sent_again += times,
            Event::Began { .. }
            | Event::Learnt { .. }
            | Event::HoldBegan { .. }
            | Event::CnpUp { .. }
            | Event::GapGivenUp { .. }
            | Event::EvictionRequested { .. }
            | Event::Committed { .. }
            | Event::Left => {}
        }
    }
}
