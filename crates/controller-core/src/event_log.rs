//! Released events, kept for clients that reconnect, and the number of events that such a client has missed.

use srdma_api::{Event, EventKind};
use std::collections::VecDeque;

/// Limit of kept events.
const MAX_EVENTS: usize = 10_000;

/// The last events of a controller, in order.
#[derive(Clone, Debug)]
pub struct EventLog {
    /// Identifies this start of the controller.
    run: u64,
    events: VecDeque<Event>,
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

impl EventLog {
    pub(crate) fn new(run: u64) -> Self {
        EventLog { run, events: VecDeque::new() }
    }

    /// Identifies this start of the controller.
    pub fn run(&self) -> u64 {
        self.run
    }

    pub(crate) fn push(&mut self, event: Event) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Events behind a cursor. Where some are missing the first one reports it.
    pub fn after(&self, cursor: EventCursor, unix_ms: u64) -> Vec<Event> {
        let last = self.events.back().map_or(0, |event| event.number);
        let before_first = self.events.front().map_or(0, |event| event.number - 1);
        let is_of_another = cursor.run.is_some_and(|run| run != self.run) || cursor.number > last;
        let (after, gap) = match (is_of_another, before_first.checked_sub(cursor.number)) {
            (true, _) => (0, Some(None)),
            // A client that requests all kept events has missed none.
            (false, Some(missed)) if missed > 0 && cursor != (EventCursor { run: None, number: 0 }) => {
                (0, Some(Some(missed)))
            }
            (false, _) => (cursor.number, None),
        };
        let gap = gap.map(|missed| Event {
            number: before_first,
            unix_ms,
            tenant: None,
            kind: EventKind::EventsMissed { missed },
        });
        gap.into_iter().chain(self.events.iter().filter(|event| event.number > after).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: u64 = 0xabc;

    /// The numbers of the events behind a cursor, and of those reported missing, if `kept` are kept.
    fn after(id: &str, kept: std::ops::RangeInclusive<u64>) -> (Vec<u64>, Option<Option<u64>>) {
        let mut log = EventLog::new(RUN);
        for number in kept {
            log.push(Event { number, unix_ms: 0, tenant: None, kind: EventKind::NodeUp { node: "N1".to_owned() } });
        }
        let events = log.after(EventCursor::parse(id).unwrap(), 0);
        let missed = events.iter().find_map(|event| match event.kind {
            EventKind::EventsMissed { missed } => Some(missed),
            _ => None,
        });
        (events.iter().map(|event| event.number).collect(), missed)
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
}
