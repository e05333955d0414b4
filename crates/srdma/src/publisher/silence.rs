//! How long a group has not responded (D197).

use crate::provider::SourceQueue;
use srdma_wire::Instant;
use std::time::Duration;

/// The responses so far, and when the last one had come, while packets are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Silence(Option<Since>);

#[derive(Clone, Copy, Debug)]
struct Since {
    responses: u64,
    until: Instant,
}

impl Silence {
    /// Whether a source that waits for acknowledgements has had no response for this time. A receiver without a free
    /// slot responds. A device has no counters of a queue pair, and gives up by itself (D184).
    pub(super) fn lasts(&mut self, now: Instant, time: Duration, is_waiting: bool, queue: &dyn SourceQueue) -> bool {
        let Some(packets) = queue.packets().filter(|_| is_waiting) else {
            self.0 = None;
            return false;
        };
        let responses = packets.acknowledged + packets.naks + packets.rnr_naks;
        let known = self.0.filter(|since| since.responses == responses);
        let since = *self.0.insert(known.unwrap_or(Since { responses, until: now + time }));
        now >= since.until
    }

    /// The time until which a response has to come.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.map(|since| since.until)
    }
}
