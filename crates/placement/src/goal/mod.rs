//! Traces in GOAL, the language of LogGOPSim and ATLAHS: what each rank sends, receives and computes, in which order
//! (D218).
//!
//! ```text
//! num_ranks 2
//!
//! rank 0 {
//!   l1: calc 1500 cpu 0          // nanoseconds
//!   l2: send 4096b to 1 tag 7
//!   l2 requires l1               // begins when l1 has ended
//! }
//!
//! rank 1 {
//!   l1: recv 4096b from 0 tag 7  // -1: from any rank, with any tag
//!   l2: calc 100
//!   l2 irequires l1              // begins when l1 has begun
//! }
//! ```
//!
//! [`GoalTrace`] is the text as a value, of which it is known that it ends; [`Replay`] carries it out in a network.

mod parse;
mod replay;

pub use replay::Replay;

use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use srdma_fabric::{HostId, NodeId, Topology};
use srdma_toml_error::LineError;
use std::collections::BTreeMap;

/// The name of a trace among the collectives of jobs.
pub(crate) const PART: &str = "trace";

/// Maximum number of ranks: a short text must not make more of them.
const MOST_RANKS: u32 = 1 << 20;

/// The longest message, in octets: hosts of simulations have no longer memory.
const MOST_OCTETS: u64 = 1 << 30;

/// The longest time that a rank computes without a pause, in nanoseconds: an hour.
const MOST_NS: u64 = 3_600_000_000_000;

/// The operations of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalTrace {
    ranks: Vec<Rank>,
}

/// The operations of a rank, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rank {
    operations: Vec<Operation>,
    /// What waits for an operation, by that operation.
    dependents: Vec<Dependent>,
    /// Number of processors.
    cpus: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Operation {
    kind: Kind,
    /// The processor, from 0 without gaps.
    cpu: u32,
    /// Number of operations that it waits for.
    waits_for: u32,
    /// Its first dependent; the last one is before the first of the next operation.
    first_dependent: u32,
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Send {
        to: u32,
        octets: u64,
        tag: u32,
    },
    /// `None`: any.
    Receive {
        from: Option<u32>,
        tag: Option<u32>,
    },
    Compute {
        ns: u64,
    },
}

/// An operation that waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dependent {
    operation: u32,
    /// For its begin; otherwise for its end.
    for_begin: bool,
}

impl GoalTrace {
    /// Reads a trace.
    ///
    /// # Errors
    ///
    /// Names the line in error, the found and the expected value. A trace that would never end is refused, with the
    /// line that waits in vain.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let trace = parse::parse(text)?;
        replay::check(&trace)?;
        Ok(trace)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// Number of operations of all ranks.
    pub fn operations(&self) -> usize {
        self.ranks.iter().map(|rank| rank.operations.len()).sum()
    }

    /// The pairs of ranks with messages, and the octets of all messages together.
    pub fn octets(&self) -> BTreeMap<(u32, u32), u64> {
        let mut octets: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (from, rank) in (0..).zip(&self.ranks) {
            for operation in &rank.operations {
                if let Kind::Send { to, octets: more, .. } = operation.kind
                    && to != from
                {
                    let sum = octets.entry((from, to)).or_default();
                    *sum = sum.saturating_add(more);
                }
            }
        }
        octets
    }

    /// Its flows, with the NIC of each rank, of this rate. The rank that sends most fills its link.
    pub fn flows(&self, nics: &[HostId], nic_bits_per_s: u64) -> Vec<Flow> {
        let octets = self.octets();
        let mut out = vec![0_u64; self.ranks.len()];
        octets.iter().for_each(|((from, _), octets)| out[*from as usize] += octets);
        let per_octet = nic_bits_per_s as f64 / out.iter().copied().max().unwrap_or(0).max(1) as f64;
        let flow = |((from, to), octets): ((u32, u32), u64)| {
            let [from, to] = [from, to].map(|rank| nics.get(rank as usize).copied());
            let rate_bits_per_s = ((octets as f64 * per_octet).round() as u64).max(1);
            let (from, to) = from.zip(to).filter(|(from, to)| from != to)?;
            Some(Flow { from, to, rate_bits_per_s })
        };
        octets.into_iter().filter_map(flow).collect()
    }

    fn operation(&self, rank: u32, operation: u32) -> &Operation {
        &self.ranks[rank as usize].operations[operation as usize]
    }

    /// What waits for an operation of a rank.
    fn dependents(&self, rank: u32, operation: u32) -> &[Dependent] {
        let rank = &self.ranks[rank as usize];
        let first = |operation: u32| rank.operations.get(operation as usize).map(|own| own.first_dependent as usize);
        let end = first(operation + 1).unwrap_or(rank.dependents.len());
        &rank.dependents[first(operation).unwrap_or(end)..end]
    }
}

/// The flows of a trace whose ranks are at the first NICs of a fabric, in its order.
///
/// # Errors
///
/// Those of [`GoalTrace::parse`], and more ranks than NICs.
pub fn flows_from_goal(text: &str, topology: &Topology) -> Result<Vec<ListedFlow>, LineError> {
    let trace = GoalTrace::parse(text)?;
    let nics: Vec<HostId> = topology.host_ids().take(trace.ranks()).collect();
    if nics.len() < trace.ranks() {
        let problem = format!("{} ranks, but the fabric has {} NICs: expected one for each", trace.ranks(), nics.len());
        return Err(LineError { line: 1, problem });
    }
    let ports = nics.iter().flat_map(|nic| topology.ports(NodeId::Host(*nic)));
    let slowest = ports.map(|port| topology.links()[port.link.index()].rate_bits_per_s).min().unwrap_or(0);
    let listed = |flow| ListedFlow { flow, job: "goal".to_owned(), part: PART.to_owned(), tenant: None };
    Ok(trace.flows(&nics, slowest).into_iter().map(listed).collect())
}
