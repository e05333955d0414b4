//! In-network repair: a node of the multicast tree retransmits what was lost below it, and requests from its parent
//! what was lost above it. One machine for each group and node; values only: no frame, no octet, no clock. The packets
//! that it keeps are of a type of the caller's.
//!
//! ```text
//!            data                      request(e, count)
//!              |                               ^
//!   +----------v-------------------------------+------------+
//!   | Repair   m                expected          end       |    m: minimum PSN (acknowledged by all branches)
//!   |          v                    v              v        |    expected: first PSN that was not received
//!   |  Buffer  [x][x][x][x][x][x][x][ ][x][x][ ][x]         |    end: the one after the highest PSN received
//!   |                 ^             ^                       |
//!   |              Behind(cur)    Level        Unknown, Blind: all data pass
//!   +----------+----+------------------------+--------------+
//!              |    ^                        |         ^
//!    poll: data|    | ACK, NAK, RNR NAK   data|         | request(e, count)
//!              v    |                        v         |
//!            receiver, or a node           a child that repairs
//!            that does not repair
//! ```
//!
//! * Data are kept from m on. A branch is sent them in order: at a PSN that is missing it waits, so that no receiver
//!   sees a gap that was above this node.
//! * A NAK takes back the branch alone. The aggregation takes it for an ACK of what is before it.
//! * A gap is requested from the parent at once, by a request that acknowledges nothing. If the parent does not repair,
//!   the source is sent a NAK when all branches have acknowledged what is before the gap.
//! * What is not acknowledged in time is sent again: a probe.
//!
//! The rules have ids in the decisions, D150 to D161; the aggregation itself is `srdma_aggregation`, whose rules R1-R7
//! hold unchanged. Safety rests on them alone: this machine sends data downstream and requests upstream, and the only
//! response that it adds is a NAK of the minimum, which the aggregation has acknowledged before.

mod arrivals;
mod branch;
mod buffer;
mod counters;
mod gaps;
mod probes;
mod repair;
mod request;
mod responses;
mod round_trip;
mod rules;
mod selected;
mod without_time;

pub use arrivals::{Arrival, Placement};
pub use branch::BranchKind;
pub use counters::{BranchCounters, Counters};
pub use repair::{Effects, Repair, Sending};
pub use request::Request;
pub use rules::RepairRules;
