/// Counters of backpressure at a node, besides drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackpressureCounters {
    /// Pauses requested when a queue was above XOFF.
    pub pauses_sent: u64,
    /// Refreshed requests for pauses.
    pub refreshes_sent: u64,
    /// Resumes sent.
    pub resumes_sent: u64,
    /// Notifications that were not sent: no frame, no route or queue full.
    pub not_sent: u64,
    /// Packets that entered a queue above XOFF, in a tunnel of a PE whose END.C is not known (D63).
    pub unknown_ingress: u64,
    /// Pauses accepted at this PE, refreshes included.
    pub pauses_received: u64,
    /// Resumes accepted.
    pub resumes_received: u64,
    /// Pauses that ended by their hold time.
    pub expired: u64,
    /// Priorities of ports that the watchdog has released (D62).
    pub watchdog_releases: u64,
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
            ("pauses_received", self.pauses_received),
            ("resumes_received", self.resumes_received),
            ("expired", self.expired),
            ("watchdog_releases", self.watchdog_releases),
        ]
        .into_iter()
    }
}
