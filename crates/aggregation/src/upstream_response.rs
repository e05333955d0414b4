//! A response that a node sends upstream, with the rule that it follows from.

use crate::response::Response;
use std::fmt;

/// A response for the node above or, at the root, for the source.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamResponse {
    pub response: Response,
    /// The rule that it follows from.
    pub rule: Rule,
}

/// The rule that a response upstream follows from. R1 and R6 are not among them, for they send nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// R2: data below the minimum were sent down, and went back or requested an ACK.
    R2,
    /// R2, D24: the same, and a failure that was forwarded is sent again.
    FailureAgain,
    /// R3: the minimum has advanced; the ACK of it, then the strongest of what is pending there.
    R3,
    /// R4: something new is pending at a minimum that went upstream before.
    R4,
    /// R5, D24: a NAK or a failure above the minimum was held for T_hold.
    R5,
    /// R7: branches were removed, or a new epoch is in effect.
    R7,
    /// D19, D20: the draft's literal 5.3.1 and 5.3.2, forwarded because it came.
    Literal,
    /// A variant of retransmission that R2 replaces.
    Repetition,
    /// D154: data are missing at this node itself, whose parent does not repair.
    Gap,
    /// D26: the headend's own response to a request that a group cannot carry.
    RefusedRequest,
}

impl Rule {
    /// The rule as it is written for people, and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::R2 => "R2",
            Rule::FailureAgain => "R2, failure again",
            Rule::R3 => "R3",
            Rule::R4 => "R4",
            Rule::R5 => "R5",
            Rule::R7 => "R7",
            Rule::Literal => "literal",
            Rule::Repetition => "repetition",
            Rule::Gap => "gap",
            Rule::RefusedRequest => "refused request",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
