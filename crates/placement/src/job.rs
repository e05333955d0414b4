//! Jobs: their NICs, and the transfers of their collectives.
//!
//! Ranks are numbered tensor first, then data, then pipeline, as Megatron-LM numbers them: rank = t + T·(d + D·p). A
//! group is all ranks that differ in one of the three alone; a collective runs in all groups of its kind at once.

use crate::double_tree::{TREES, parent};
use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use crate::goal::{self, GoalTrace};
use crate::group_flow::{GroupFlow, ListedGroup};
use serde::Deserialize;
use srdma_fabric::{HostId, NodeId, Topology};
use std::collections::BTreeMap;
use std::sync::Arc;

/// NICs that work together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Whose it is: the service at the end of its programs (PP-7-2); `None` if tenants are not kept apart.
    pub tenant: Option<u16>,
    /// The NIC of each rank.
    pub nics: Vec<HostId>,
    /// Sizes of the groups; together they make the number of ranks.
    pub parallel: Parallel,
    /// Traffic of the job.
    pub collectives: Vec<Collective>,
    /// A trace of its traffic in place of collectives, with as many ranks.
    pub trace: Option<Arc<GoalTrace>>,
}

/// Division of a job's ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// Ranks that share each layer.
    pub tensor: usize,
    /// Ranks that do the same with other data.
    pub data: usize,
    /// Of these, how many neighbours share experts.
    pub expert: usize,
    /// Ranks that have the layers one after the other.
    pub pipeline: usize,
}

/// Ranks of a collective. Files have their names in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// All of them.
    #[default]
    All,
    /// Those that share layers.
    Tensor,
    /// Those that do the same.
    Data,
    /// Those that share experts.
    Expert,
    /// Those that have the layers one after the other.
    Pipeline,
}

/// Something that the ranks of each group do together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Its name.
    pub name: String,
    /// Kind of the collective.
    pub kind: CollectiveKind,
    /// In which groups.
    pub group: GroupKind,
    /// The size of the buffer of each rank, in octets.
    pub octets: u64,
    /// Period in microseconds; `None`: as fast as links allow.
    pub period_us: Option<u64>,
}

/// Collectives, by how NCCL's algorithms send them. Files have their names in lower case, with hyphens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CollectiveKind {
    /// Each rank sends to the next, 2(n−1)/n of the buffer.
    AllReduceRing,
    /// In each of two binary trees each rank but the root sends half of the buffer to its parent, and gets it back.
    AllReduceTree,
    /// Each rank sends to the next, (n−1)/n of the buffer.
    AllGather,
    /// As [`CollectiveKind::AllGather`].
    ReduceScatter,
    /// Each rank sends 1/n of the buffer to every other.
    AllToAll,
    /// The first sends the buffer to the next, and so on to the last.
    Broadcast,
    /// In a binary tree each rank sends the buffer to its children.
    BroadcastTree,
    /// The first sends the buffer to every other.
    BroadcastUnicast,
    /// The first sends the buffer once, to a multicast group of all others.
    BroadcastMulticast,
    /// Each rank sends the buffer to the next; the last sends nothing.
    SendRecv,
}

impl CollectiveKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduceRing => "all-reduce-ring",
            CollectiveKind::AllReduceTree => "all-reduce-tree",
            CollectiveKind::AllGather => "all-gather",
            CollectiveKind::ReduceScatter => "reduce-scatter",
            CollectiveKind::AllToAll => "all-to-all",
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::BroadcastTree => "broadcast-tree",
            CollectiveKind::BroadcastUnicast => "broadcast-unicast",
            CollectiveKind::BroadcastMulticast => "broadcast-multicast",
            CollectiveKind::SendRecv => "send-recv",
        }
    }
}

impl Job {
    /// The groups of a kind, each with its ranks in order.
    pub fn groups(&self, kind: GroupKind) -> Vec<Vec<usize>> {
        let Parallel { tensor, data, expert, pipeline } = self.parallel;
        let rank = |t: usize, d: usize, p: usize| t + tensor * (d + data * p);
        let mut groups = Vec::new();
        match kind {
            GroupKind::All => groups.push((0..self.nics.len()).collect()),
            GroupKind::Tensor => each(pipeline, data, |p, d| groups.push((0..tensor).map(|t| rank(t, d, p)).collect())),
            GroupKind::Data => each(pipeline, tensor, |p, t| groups.push((0..data).map(|d| rank(t, d, p)).collect())),
            GroupKind::Expert => each(pipeline, tensor, |p, t| {
                let data: Vec<usize> = (0..data).map(|d| rank(t, d, p)).collect();
                groups.extend(data.chunks(expert).map(<[usize]>::to_vec));
            }),
            GroupKind::Pipeline => {
                each(data, tensor, |d, t| groups.push((0..pipeline).map(|p| rank(t, d, p)).collect()));
            }
        }
        groups
    }

    /// The names of its collectives; that of a trace is `trace`.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let trace = self.trace.iter().map(|_| goal::PART);
        self.collectives.iter().map(|collective| collective.name.as_str()).chain(trace)
    }

    /// The flows of those collectives whose names are chosen, with what they belong to. Where a collective is as fast
    /// as links allow, that is the slowest link of the job's NICs.
    pub fn wanted(&self, topology: &Topology, is_chosen: impl Fn(&str) -> bool) -> Vec<ListedFlow> {
        let slowest = self.slowest(topology);
        let of_collectives =
            self.collectives.iter().map(|collective| (collective.name.as_str(), self.flows(collective, slowest)));
        let of_trace = self.trace.iter().map(|trace| (goal::PART, trace.flows(&self.nics, slowest)));
        let chosen = of_collectives.chain(of_trace).filter(|(part, _)| is_chosen(part));
        let listed = |(part, flows): (&str, Vec<Flow>)| {
            let (job, part) = (self.name.clone(), part.to_owned());
            let listed = move |flow| ListedFlow { flow, job: job.clone(), part: part.clone(), tenant: self.tenant };
            flows.into_iter().map(listed)
        };
        chosen.flat_map(listed).collect()
    }

    /// The multicast groups of those collectives whose names are chosen, with what they belong to.
    pub fn wanted_groups(&self, topology: &Topology, is_chosen: impl Fn(&str) -> bool) -> Vec<ListedGroup> {
        let slowest = self.slowest(topology);
        let chosen = self.collectives.iter().filter(|collective| is_chosen(&collective.name));
        let listed = |collective: &Collective| {
            let (job, part) = (self.name.clone(), collective.name.clone());
            let groups = self.group_flows(collective, slowest).into_iter();
            groups.map(move |group| ListedGroup { group, job: job.clone(), part: part.clone() })
        };
        chosen.flat_map(listed).collect()
    }

    /// Whether a collective is carried by multicast groups.
    pub fn has_groups(&self) -> bool {
        self.collectives.iter().any(|collective| collective.kind == CollectiveKind::BroadcastMulticast)
    }

    /// The rate of the slowest link of its NICs.
    fn slowest(&self, topology: &Topology) -> u64 {
        let ports = self.nics.iter().flat_map(|nic| topology.ports(NodeId::Host(*nic)));
        ports.map(|port| topology.links()[port.link.index()].rate_bits_per_s).min().unwrap_or(0)
    }

    /// Maximum number of flows of a collective, computed without generating them.
    pub fn most_flows(&self, collective: &Collective) -> u64 {
        let Parallel { tensor, data, expert, pipeline } = self.parallel;
        let ranks = self.nics.len() as u64;
        let n = match collective.group {
            GroupKind::All => ranks,
            GroupKind::Tensor => tensor as u64,
            GroupKind::Data => data as u64,
            GroupKind::Expert => expert as u64,
            GroupKind::Pipeline => pipeline as u64,
        };
        let of_a_rank = match collective.kind {
            _ if n < 2 => 0,
            CollectiveKind::AllToAll => n - 1,
            CollectiveKind::AllReduceTree => 2 * TREES as u64,
            CollectiveKind::AllReduceRing
            | CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::Broadcast
            | CollectiveKind::BroadcastTree
            | CollectiveKind::BroadcastUnicast
            | CollectiveKind::BroadcastMulticast
            | CollectiveKind::SendRecv => 1,
        };
        ranks.saturating_mul(of_a_rank)
    }

    /// The multicast groups of a collective, given the rate of a NIC. A NIC of several ranks receives once.
    pub fn group_flows(&self, collective: &Collective, nic_bits_per_s: u64) -> Vec<GroupFlow> {
        if collective.kind != CollectiveKind::BroadcastMulticast {
            return Vec::new();
        }
        let rate_bits_per_s = match collective.period_us {
            Some(period_us) => ((collective.octets as f64 * 8e6 / period_us.max(1) as f64).round() as u64).max(1),
            None => nic_bits_per_s,
        };
        let groups = self.groups(collective.group).into_iter().filter_map(|group| {
            let (first, others) = group.split_first()?;
            Some(GroupFlow::new(self.nics[*first], others.iter().map(|rank| self.nics[*rank]), rate_bits_per_s))
        });
        groups.filter(|group| !group.to.is_empty()).collect()
    }

    /// The flows of a collective, given the rate of a NIC. Ranks that share a NIC send nothing to one another.
    pub fn flows(&self, collective: &Collective, nic_bits_per_s: u64) -> Vec<Flow> {
        let groups = self.groups(collective.group);
        let pairs: Vec<(usize, usize, f64)> = groups.iter().flat_map(|group| sends(collective.kind, group)).collect();
        let mut out = vec![0.0_f64; self.nics.len()];
        pairs.iter().for_each(|(from, _, buffers)| out[*from] += buffers);
        let most = out.iter().copied().fold(0.0, f64::max);
        let per_buffer = match collective.period_us {
            Some(period_us) => collective.octets as f64 * 8e6 / period_us.max(1) as f64,
            // The rank that sends most fills its link.
            None if most > 0.0 => nic_bits_per_s as f64 / most,
            None => 0.0,
        };
        let flow = |(from, to, buffers): (usize, usize, f64)| {
            let (from, to) = (self.nics[from], self.nics[to]);
            let rate_bits_per_s = ((buffers * per_buffer).round() as u64).max(1);
            (from != to).then_some(Flow { from, to, rate_bits_per_s })
        };
        pairs.into_iter().filter_map(flow).collect()
    }
}

fn each(outer: usize, inner: usize, mut visit: impl FnMut(usize, usize)) {
    (0..outer).for_each(|one| (0..inner).for_each(|other| visit(one, other)));
}

/// The transfers in a group, and the number of buffers.
fn sends(kind: CollectiveKind, group: &[usize]) -> Vec<(usize, usize, f64)> {
    let n = group.len();
    let share = (n as f64 - 1.0) / n.max(1) as f64;
    let ring = |buffers: f64| (0..n).map(|rank| (group[rank], group[(rank + 1) % n], buffers)).collect();
    let chain = || (1..n).map(|rank| (group[rank - 1], group[rank], 1.0)).collect();
    match kind {
        _ if n < 2 => Vec::new(),
        CollectiveKind::AllReduceRing => ring(2.0 * share),
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => ring(share),
        CollectiveKind::AllReduceTree => {
            let mut buffers: BTreeMap<(usize, usize), f64> = BTreeMap::new();
            for (tree, rank) in (0..TREES).flat_map(|tree| (0..n).map(move |rank| (tree, rank))) {
                let Some(parent) = parent(n as u32, tree, rank as u32) else { continue };
                let (child, parent) = (group[rank], group[parent as usize]);
                for pair in [(child, parent), (parent, child)] {
                    *buffers.entry(pair).or_default() += 1.0 / f64::from(TREES);
                }
            }
            buffers.into_iter().map(|((from, to), buffers)| (from, to, buffers)).collect()
        }
        CollectiveKind::AllToAll => {
            let pairs = group.iter().flat_map(|from| group.iter().map(move |to| (*from, *to, 1.0 / n as f64)));
            pairs.filter(|(from, to, _)| from != to).collect()
        }
        CollectiveKind::Broadcast | CollectiveKind::SendRecv => chain(),
        CollectiveKind::BroadcastTree => {
            let above = |rank: usize| Some((group[parent(n as u32, 0, rank as u32)? as usize], group[rank], 1.0));
            (1..n).filter_map(above).collect()
        }
        CollectiveKind::BroadcastUnicast => (1..n).map(|rank| (group[0], group[rank], 1.0)).collect(),
        CollectiveKind::BroadcastMulticast => Vec::new(),
    }
}
