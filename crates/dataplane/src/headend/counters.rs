//! Counters of a headend, besides those of its steering.

/// Packets of a headend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadendCounters {
    /// Packets that were encapsulated.
    pub encapsulated: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes that have come back in time.
    pub probes_answered: u64,
    /// Probes that have come back after they were given up.
    pub probes_late: u64,
    /// Probes that were given up.
    pub probes_silent: u64,
    /// Received probes of other headends, and duplicates.
    pub probes_foreign: u64,
    /// Probes for which there was no buffer.
    pub probes_not_sent: u64,
    /// CNPs received.
    pub cnps: u64,
    /// Fast CNPs of switches received.
    pub fast_cnps: u64,
    /// Negative acknowledgements for a gap received.
    pub naks: u64,
    /// Acknowledgements by which a way there and back was timed.
    pub acks_timed: u64,
    /// CNPs and negative acknowledgements of which it is not known to which flow they belong.
    pub unmatched: u64,
    /// CNPs, Fast CNPs and negative acknowledgements that were damaged, or Fast CNPs that are not as they must be.
    pub damaged: u64,
    /// RoCEv2 packets that came marked CE.
    pub marked_received: u64,
    /// RoCEv2 packets that came trimmed.
    pub trimmed_received: u64,
    /// Packets that a host has sent again right after a change of path (D83).
    pub sent_again_after_move: u64,
    /// Packets that a host has sent again for other reasons.
    pub sent_again: u64,
}

impl HeadendCounters {
    /// Each counter under the name that metrics and JSON have for it.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let HeadendCounters {
            encapsulated,
            probes_sent,
            probes_answered,
            probes_late,
            probes_silent,
            probes_foreign,
            probes_not_sent,
            cnps,
            fast_cnps,
            naks,
            acks_timed,
            unmatched,
            damaged,
            marked_received,
            trimmed_received,
            sent_again_after_move,
            sent_again,
        } = *self;
        [
            ("encapsulated", encapsulated),
            ("probes_sent", probes_sent),
            ("probes_answered", probes_answered),
            ("probes_late", probes_late),
            ("probes_silent", probes_silent),
            ("probes_foreign", probes_foreign),
            ("probes_not_sent", probes_not_sent),
            ("cnps", cnps),
            ("fast_cnps", fast_cnps),
            ("naks", naks),
            ("acks_timed", acks_timed),
            ("unmatched", unmatched),
            ("damaged", damaged),
            ("marked_received", marked_received),
            ("trimmed_received", trimmed_received),
            ("sent_again_after_move", sent_again_after_move),
            ("sent_again", sent_again),
        ]
        .into_iter()
    }
}
