//! Released events, kept once for all streams, and the number of events that a client has missed.

use crate::principal::Principal;
use srdma_api::{Event, EventKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// Limit of kept events.
const MAX_EVENTS: usize = 10_000;

/// Limit of their text, octets.
const MAX_OCTETS: usize = 16 << 20;

/// Limit of the text of one event, octets: a longer one is replaced by one that reports it missed.
const MAX_EVENT_OCTETS: usize = 8 << 10;

/// Limits of a batch: events, and octets that end it.
const MAX_BATCH: usize = 64;
const MAX_BATCH_OCTETS: usize = 8 << 10;

/// The last events of a controller, in order. Streams read it in batches, each from its own position: an event is kept
/// once, however many streams there are (D101).
#[derive(Clone, Debug)]
pub struct EventLog {
    /// Identifies this start of the controller.
    run: u64,
    events: VecDeque<Arc<KeptEvent>>,
    octets: usize,
}

/// An event, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEvent {
    number: u64,
    tenant: Option<String>,
    is_gap: bool,
    /// JSON.
    text: String,
}

/// Position of a stream: the last event that it has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPosition {
    number: u64,
    /// A gap before the next event that is not reported yet, with the number of missed events if that is known.
    gap: Option<Option<u64>>,
}

/// The next events of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventBatch {
    /// In order.
    pub events: Vec<Arc<KeptEvent>>,
    /// Whether there are no further events now.
    pub is_last: bool,
}

/// The last event that a client has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCursor {
    /// The start of a controller that its number counts from; `None`: the present one.
    run: Option<u64>,
    number: u64,
}

impl EventCursor {
    /// Parses the id of an event: `RUN-NUMBER` in hexadecimal and decimal, or the number alone; 0 precedes the first.
    pub fn parse(id: &str) -> Option<Self> {
        match id.trim().split_once('-') {
            Some((run, number)) => {
                Some(EventCursor { run: Some(u64::from_str_radix(run, 16).ok()?), number: number.parse().ok()? })
            }
            None => Some(EventCursor { run: None, number: id.trim().parse().ok()? }),
        }
    }

    /// The id of an event.
    pub fn id(run: u64, number: u64) -> String {
        format!("{run:x}-{number}")
    }
}

impl KeptEvent {
    fn new(event: &Event) -> Self {
        let text = serde_json::to_string(event).unwrap_or_default();
        let is_gap = matches!(event.kind, EventKind::EventsMissed { .. });
        KeptEvent { number: event.number, tenant: event.tenant.clone(), is_gap, text }
    }

    /// Counted from the controller's start.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The event as JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the principal may read it.
    pub fn is_visible_to(&self, principal: &Principal) -> bool {
        match &self.tenant {
            _ if self.is_gap => true,
            Some(tenant) => principal.may_read(tenant).is_ok(),
            None => principal.may_read_network().is_ok(),
        }
    }
}

impl EventLog {
    /// `run`: identifies this start of the controller in the ids of its events.
    pub fn new(run: u64) -> Self {
        EventLog { run, events: VecDeque::new(), octets: 0 }
    }

    /// Identifies this start of the controller.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The number of the last event; 0 before the first.
    pub fn last(&self) -> u64 {
        self.events.back().map_or(0, |event| event.number)
    }

    /// Appends a released event, and drops the oldest beyond the limits.
    pub fn push(&mut self, event: &Event) {
        let mut kept = KeptEvent::new(event);
        if kept.text.len() > MAX_EVENT_OCTETS {
            let kind = EventKind::EventsMissed { missed: Some(1) };
            kept = KeptEvent::new(&Event { kind, ..event.clone() });
        }
        self.octets += kept.text.len();
        self.events.push_back(Arc::new(kept));
        while self.events.len() > MAX_EVENTS || self.octets > MAX_OCTETS {
            let Some(oldest) = self.events.pop_front() else { return };
            self.octets -= oldest.text.len();
        }
    }

    /// The position behind a cursor; without one, behind the last event.
    pub fn position(&self, cursor: Option<EventCursor>) -> EventPosition {
        let Some(cursor) = cursor else { return EventPosition { number: self.last(), gap: None } };
        let is_of_another = cursor.run.is_some_and(|run| run != self.run) || cursor.number > self.last();
        match cursor {
            _ if is_of_another => EventPosition { number: self.before_first(), gap: Some(None) },
            // A client that requests all kept events has missed none.
            EventCursor { run: None, number: 0 } => EventPosition { number: self.before_first(), gap: None },
            EventCursor { number, .. } => EventPosition { number, gap: None },
        }
    }

    /// The next events that the principal may read. Where some are no longer kept, the first one reports it.
    pub fn read(&self, position: &mut EventPosition, principal: &Principal, unix_ms: u64) -> EventBatch {
        let before_first = self.before_first();
        if let Some(missed) = before_first.checked_sub(position.number).filter(|missed| *missed > 0) {
            position.number = before_first;
            position.gap.get_or_insert(Some(missed));
        }
        let mut batch = EventBatch::default();
        let mut octets = 0;
        if let Some(missed) = position.gap.take() {
            let kind = EventKind::EventsMissed { missed };
            let gap = Event { number: position.number, unix_ms, tenant: None, kind };
            batch.events.push(Arc::new(KeptEvent::new(&gap)));
        }
        let first = self.events.partition_point(|event| event.number <= position.number);
        for event in self.events.range(first..) {
            if batch.events.len() >= MAX_BATCH || octets >= MAX_BATCH_OCTETS {
                return batch;
            }
            position.number = event.number;
            if event.is_visible_to(principal) {
                octets += event.text.len();
                batch.events.push(Arc::clone(event));
            }
        }
        batch.is_last = true;
        batch
    }

    fn before_first(&self) -> u64 {
        self.events.front().map_or(0, |event| event.number - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Role;

    const RUN: u64 = 0xabc;

    fn principal(role: Role, tenant: Option<&str>) -> Principal {
        Principal { name: "x".to_owned(), role, tenant: tenant.map(str::to_owned), node: None }
    }

    fn node_up(number: u64, node: &str) -> Event {
        Event { number, unix_ms: 0, tenant: None, kind: EventKind::NodeUp { node: node.to_owned() } }
    }

    fn log(kept: impl Iterator<Item = u64>) -> EventLog {
        let mut log = EventLog::new(RUN);
        kept.for_each(|number| log.push(&node_up(number, "N1")));
        log
    }

    /// The numbers of the next events, and of those reported missing.
    fn read(log: &EventLog, position: &mut EventPosition) -> (Vec<u64>, Option<Option<u64>>) {
        let batch = log.read(position, &principal(Role::Admin, None), 0);
        let missed = batch.events.iter().find_map(|event| match serde_json::from_str::<Event>(event.text()).unwrap() {
            Event { kind: EventKind::EventsMissed { missed }, .. } => Some(missed),
            _ => None,
        });
        (batch.events.iter().map(|event| event.number).collect(), missed)
    }

    /// The same behind a cursor, if `kept` are kept.
    fn after(id: &str, kept: std::ops::RangeInclusive<u64>) -> (Vec<u64>, Option<Option<u64>>) {
        let log = log(kept);
        read(&log, &mut log.position(EventCursor::parse(id)))
    }

    #[test]
    fn events_behind_the_cursor_are_sent_once() {
        assert_eq!(after("abc-3", 1..=5), (vec![4, 5], None));
        assert_eq!(after("abc-5", 1..=5), (vec![], None));
        assert_eq!(after("3", 1..=5), (vec![4, 5], None));
        assert_eq!(after("0", 4..=5), (vec![4, 5], None), "all that are kept");
        assert_eq!(after("abc-3", 4..=5), (vec![4, 5], None), "4 follows 3");
    }

    #[test]
    fn a_gap_is_reported() {
        assert_eq!(after("abc-1", 4..=5), (vec![3, 4, 5], Some(Some(2))));
        assert_eq!(after("1", 4..=5), (vec![3, 4, 5], Some(Some(2))));
    }

    #[test]
    fn a_cursor_of_another_run_is_recognized() {
        assert_eq!(after("abd-3", 1..=5), (vec![0, 1, 2, 3, 4, 5], Some(None)));
        assert_eq!(after("7", 1..=5), (vec![0, 1, 2, 3, 4, 5], Some(None)), "the number exceeds the last");
        #[expect(clippy::reversed_empty_ranges, reason = "no events yet")]
        let nothing = 1..=0;
        assert_eq!(after("abd-3", nothing), (vec![0], Some(None)));
    }

    #[test]
    fn ids_are_parsed_as_they_are_written() {
        let cursor = EventCursor { run: Some(RUN), number: 17 };
        assert_eq!(EventCursor::parse(&EventCursor::id(RUN, 17)), Some(cursor));
        for wrong in ["", "-", "x-1", "1-x", "1-2-3", "-1"] {
            assert_eq!(EventCursor::parse(wrong), None, "{wrong}");
        }
    }

    /// D101: a stream that is too slow skips what is no longer kept, and receives a report of it.
    #[test]
    fn a_slow_stream_skips_events_and_reports_them() {
        let mut log = log(1..=3);
        let mut position = log.position(None);
        assert_eq!(read(&log, &mut position), (vec![], None), "from now on");
        (4..=MAX_EVENTS as u64 + 10).for_each(|number| log.push(&node_up(number, "N1")));
        let (numbers, missed) = read(&log, &mut position);
        assert_eq!((numbers.len(), missed), (MAX_BATCH, Some(Some(7))), "4 to 10 are no longer kept");
        assert_eq!(numbers[..2], [10, 11]);
        assert_eq!(read(&log, &mut position).0[0], 10 + MAX_BATCH as u64);
    }

    /// D101
    #[test]
    fn kept_events_and_batches_are_bounded_in_octets() {
        let mut log = log(std::iter::empty());
        let long = "x".repeat(MAX_EVENT_OCTETS - 100);
        (1..=MAX_EVENTS as u64).for_each(|number| log.push(&node_up(number, &long)));
        let sum: usize = log.events.iter().map(|event| event.text.len()).sum();
        assert!(sum == log.octets && sum <= MAX_OCTETS && sum > MAX_OCTETS - MAX_EVENT_OCTETS, "{sum}");
        let batch = log.read(&mut log.position(EventCursor::parse("0")), &principal(Role::Admin, None), 0);
        assert!(!batch.is_last && batch.events.len() == 2);
        log.push(&node_up(MAX_EVENTS as u64 + 1, &"x".repeat(4 << 20)));
        let mut position = EventPosition { number: MAX_EVENTS as u64, gap: None };
        assert_eq!(read(&log, &mut position), (vec![MAX_EVENTS as u64 + 1], Some(Some(1))));
    }

    #[test]
    fn a_principal_reads_its_own_events_alone() {
        let mut log = log(1..=200);
        let kind = EventKind::GroupCreated { group: 7 };
        log.push(&Event { number: 201, unix_ms: 0, tenant: Some("a".to_owned()), kind });
        let count = |role, tenant| {
            let (principal, mut position) = (principal(role, tenant), log.position(EventCursor::parse("0")));
            let mut count = 0;
            loop {
                let batch = log.read(&mut position, &principal, 0);
                count += batch.events.len();
                if batch.is_last {
                    return count;
                }
            }
        };
        assert_eq!(count(Role::Read, None), 201);
        assert_eq!((count(Role::Tenant, Some("a")), count(Role::Tenant, Some("b"))), (1, 0));
        assert_eq!(count(Role::Node, None), 0);
    }
}
