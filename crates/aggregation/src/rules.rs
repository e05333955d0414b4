//! The rules of a node: which reading of the drafts it follows.

use std::time::Duration;

/// Rules for aggregating responses. The default is the forwarding rule R1-R7; the rest exists to be measured beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// The draft's literal 5.3.1: every ACK from below makes an ACK of the minimum (D19).
    pub literal_ack: bool,
    /// The draft's literal 5.3.2: every NAK from below makes a NAK of the minimum at once (D20).
    pub literal_nak: bool,
    /// Withhold a copy whose PSN is below the receiver's expected PSN; rule R2 responds for it (D22).
    pub prune_retransmit: bool,
    /// Time that a NAK or fatal NAK above the minimum waits for the minimum to reach it (R5, D20, D24). The sum over
    /// the levels of the tree is to stay below a quarter of the source's ACK timeout.
    pub t_hold: Duration,
    /// When the ACK of a minimum is retransmitted.
    pub repeat: Repeat,
    /// Whether the group's data pass this node. Only then can it bound what a branch may acknowledge (D15) and answer
    /// for the branches (R2); a node that only sees responses has to forward each of them, see
    /// [`Rules::responses_only`].
    pub forwards_data: bool,
    /// At an edge node of a group whose policy is `evict`: it requests the eviction of receivers that are stalled
    /// (D25), and of those that have failed, whose failure it does not forward then (D24).
    pub evict: Option<StallRules>,
}

/// Conditions of a stall: the data of the expected PSN were sent `sends` times over `t_stall` without progress (D25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StallRules {
    /// Also the interval after which an eviction request that was not granted is repeated.
    pub t_stall: Duration,
    /// At most 15.
    pub sends: u8,
    /// A receiver whose responses are RNR NAKs is alive: it is stalled after this time without progress instead (D196).
    /// `None`: they say no more than silence.
    pub t_not_ready: Option<Duration>,
    /// Number of branches that are nodes, the first ones: those request the eviction of their own receivers, and send
    /// no failure of theirs upstream (D246).
    pub nodes: u16,
}

/// When the ACK of a minimum is retransmitted. All but the first are rejected variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// R2: when data going down show that the source has gone back.
    OnBackwardData,
    /// Never: upstream on advance only. The last ACK, once lost, is lost for ever, and the source is stuck.
    Never,
    /// When each branch at the minimum has repeated itself. No syndrome at all once one of them has died.
    AllRepeated,
    /// When as many repeats have come from the branches at the minimum as there are of them.
    RepeatCount,
}

impl Rules {
    /// The draft's text taken literally, where it is not impossible: sections 5.3.1 and 5.3.2 (D19, D20).
    pub fn literal() -> Self {
        Rules { literal_ack: true, literal_nak: true, ..Rules::default() }
    }

    /// For a node that aggregates responses of a group whose data it does not forward (D15).
    pub fn responses_only() -> Self {
        Rules { forwards_data: false, ..Rules::literal() }
    }
}

/// The rules as the machine of R1-R7 uses them, resolved when they are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Policy {
    /// [`Rules::t_hold`].
    pub(crate) t_hold: Duration,
    /// [`Rules::prune_retransmit`].
    pub(crate) prune_retransmit: bool,
    /// From this branch on a failure is not sent upstream; the eviction of the receiver is requested (D24).
    pub(crate) evicts_from: Option<u16>,
    /// This node sends an ACK when data below the minimum are retransmitted (R2). The literal rule leaves that to the
    /// receivers, which cannot respond to a copy that was withheld from them (D22).
    pub(crate) resends_ack: bool,
}

impl Policy {
    pub(crate) fn of(rules: &Rules) -> Self {
        Policy {
            t_hold: rules.t_hold,
            prune_retransmit: rules.prune_retransmit,
            evicts_from: rules.evict.map(|stall| stall.nodes),
            resends_ack: rules.repeat == Repeat::OnBackwardData && (!rules.literal_ack || rules.prune_retransmit),
        }
    }

    /// Whether this node requests the eviction of a failed branch.
    #[inline]
    pub(crate) fn evicts(&self, branch: usize) -> bool {
        self.evicts_from.is_some_and(|first| branch >= usize::from(first))
    }
}

impl Default for Rules {
    /// R1-R7, retransmissions to all, `t_hold` of 200 microseconds: many round trips of a data centre, and on a tree of
    /// three levels still less than a hundredth of the shortest ACK timeout in common use (67 ms).
    fn default() -> Self {
        Rules {
            literal_ack: false,
            literal_nak: false,
            prune_retransmit: false,
            t_hold: Duration::from_micros(200),
            repeat: Repeat::OnBackwardData,
            forwards_data: true,
            evict: None,
        }
    }
}
