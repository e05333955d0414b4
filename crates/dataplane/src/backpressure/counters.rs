/// Counters of notifications, besides drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackpressureCounters {
    /// Pauses requested when a queue was above XOFF.
    pub pauses_sent: u64,
    /// Refreshed requests for pauses.
    pub refreshes_sent: u64,
    /// Pauses taken back.
    pub resumes_sent: u64,
    /// Notifications for which there was no frame, no way or no room in the queue.
    pub not_sent: u64,
    /// Packets that found a queue above XOFF, in a tunnel from a PE whose END.C is not known (D63).
    pub unknown_ingress: u64,
    /// Pauses taken at this PE, refreshed ones included.
    pub pauses_taken: u64,
    /// Resumes taken.
    pub resumes_taken: u64,
    /// Pauses that ended because their hold time was over.
    pub expired: u64,
    /// Priorities of ports that were let go because they had been paused for too long (D62).
    pub barred: u64,
}

impl BackpressureCounters {
    /// The counters with their names, as metrics and JSON write them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("pauses_sent", self.pauses_sent),
            ("refreshes_sent", self.refreshes_sent),
            ("resumes_sent", self.resumes_sent),
            ("not_sent", self.not_sent),
            ("unknown_ingress", self.unknown_ingress),
            ("pauses_taken", self.pauses_taken),
            ("resumes_taken", self.resumes_taken),
            ("expired", self.expired),
            ("barred", self.barred),
        ]
        .into_iter()
    }
}
