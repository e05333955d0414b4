//! What somebody has seen of the events who comes back for those behind, and what they have missed.

use crate::core::unix_ms;
use srdma_api::{Event, News};
use std::collections::VecDeque;

/// The last event that somebody has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which start of a controller it was counted from; none: nobody says, and it is taken for this one.
    run: Option<u64>,
    number: u64,
}

impl Seen {
    /// Reads the id of an event: `RUN-NUMBER` in hexadecimal and decimal, or the number alone; 0 is before the first.
    pub(crate) fn parse(id: &str) -> Option<Seen> {
        match id.trim().split_once('-') {
            Some((run, number)) => {
                Some(Seen { run: Some(u64::from_str_radix(run, 16).ok()?), number: number.parse().ok()? })
            }
            None => Some(Seen { run: None, number: id.trim().parse().ok()? }),
        }
    }

    /// The id of an event of a controller's run.
    pub(crate) fn id(run: u64, number: u64) -> String {
        format!("{run:x}-{number}")
    }

    /// What is told whoever has seen this, of the events that a run has kept. The first says so if some are missing.
    pub(crate) fn behind(self, own_run: u64, kept: &VecDeque<Event>) -> Vec<Event> {
        let last = kept.back().map_or(0, |event| event.number);
        let before_first = kept.front().map_or(0, |event| event.number - 1);
        let is_of_another = self.run.is_some_and(|run| run != own_run) || self.number > last;
        let (after, gap) = match (is_of_another, before_first.checked_sub(self.number)) {
            (true, _) => (0, Some(None)),
            // Who asks for everything that is kept has seen nothing before.
            (false, Some(missed)) if missed > 0 && self != (Seen { run: None, number: 0 }) => (0, Some(Some(missed))),
            (false, _) => (self.number, None),
        };
        let told = gap.map(|missed| Event {
            number: before_first,
            unix_ms: unix_ms(),
            tenant: None,
            news: News::EventsMissed { missed },
        });
        told.into_iter().chain(kept.iter().filter(|event| event.number > after).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: u64 = 0xabc;

    /// The numbers of what is told, and what is said to be missed, when so many events are kept.
    fn told(id: &str, kept: std::ops::RangeInclusive<u64>) -> (Vec<u64>, Option<Option<u64>>) {
        let news = || News::NodeUp { node: "N1".to_owned() };
        let event = |number| Event { number, unix_ms: 0, tenant: None, news: news() };
        let events = Seen::parse(id).unwrap().behind(RUN, &kept.map(event).collect());
        let missed = events.iter().find_map(|event| match event.news {
            News::EventsMissed { missed } => Some(missed),
            _ => None,
        });
        (events.iter().map(|event| event.number).collect(), missed)
    }

    #[test]
    fn what_is_behind_is_told_once() {
        assert_eq!(told("abc-3", 1..=5), (vec![4, 5], None));
        assert_eq!(told("abc-5", 1..=5), (vec![], None));
        assert_eq!(told("3", 1..=5), (vec![4, 5], None));
        assert_eq!(told("0", 4..=5), (vec![4, 5], None), "all that is kept");
        assert_eq!(told("abc-3", 4..=5), (vec![4, 5], None), "nothing lies between 3 and 4");
    }

    #[test]
    fn a_gap_is_said() {
        assert_eq!(told("abc-1", 4..=5), (vec![3, 4, 5], Some(Some(2))));
        assert_eq!(told("1", 4..=5), (vec![3, 4, 5], Some(Some(2))));
    }

    #[test]
    fn another_controllers_events_are_not_taken_for_its_own() {
        assert_eq!(told("abd-3", 1..=5), (vec![0, 1, 2, 3, 4, 5], Some(None)));
        assert_eq!(told("7", 1..=5), (vec![0, 1, 2, 3, 4, 5], Some(None)), "it has not counted so far");
        #[expect(clippy::reversed_empty_ranges, reason = "nothing has happened yet")]
        let nothing = 1..=0;
        assert_eq!(told("abd-3", nothing), (vec![0], Some(None)));
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        assert_eq!(Seen::parse(&Seen::id(RUN, 17)), Some(Seen { run: Some(RUN), number: 17 }));
        for wrong in ["", "-", "x-1", "1-x", "1-2-3", "-1"] {
            assert_eq!(Seen::parse(wrong), None, "{wrong}");
        }
    }
}
