//! Who may pause a stream: the source of a group that others join (D30).

/// How far a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceState {
    /// Packets of all messages that were begun.
    pub begun_packets: u64,
    /// Packets that were acknowledged.
    pub acknowledged_packets: u64,
    /// Messages that have completed.
    pub completed_messages: u64,
    /// Whether all that was begun has completed.
    pub is_quiet: bool,
}

/// Whether a stream may begin another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It may.
    Open,
    /// Not now. What has begun goes on.
    Shut,
    /// Never again: there is nobody any more to send to.
    Closed,
}

/// What a stream asks before it begins a message.
pub trait Gate {
    /// Hears how far the stream is, and says what it may.
    fn pass(&mut self, state: SourceState) -> Passage;
}
