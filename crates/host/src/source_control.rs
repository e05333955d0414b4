//! Pausing a stream: the source of a group that receivers join (D30).

/// Progress of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamProgress {
    /// Packets of all messages that have begun.
    pub begun_packets: u64,
    /// Packets that were acknowledged.
    pub acknowledged_packets: u64,
    /// Messages that have completed.
    pub completed_messages: u64,
    /// Whether all messages that have begun are complete.
    pub is_drained: bool,
}

/// State of a source at its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Messages may begin.
    Sending,
    /// No message may begin; some that have begun are outstanding.
    Draining,
    /// No message may begin, and none is outstanding.
    Paused,
    /// No message may begin any more: the group is closed.
    Ended,
}

/// Decides whether a stream may begin another message.
pub trait SourceControl {
    /// Takes the stream's progress, and returns the state that applies now.
    fn update(&mut self, progress: StreamProgress) -> SessionState;
}
