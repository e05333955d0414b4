//! The trees in a log of NCCL (`NCCL_DEBUG=INFO`, with `GRAPH` and `NET` among `NCCL_DEBUG_SUBSYS`, as by default or
//! `ALL`), of all processes of a job in one file.
//!
//! ```text
//! node1:27225:27907 [3] NCCL INFO Trees [0] -1/-1/-1->3->2 [1] 0/7/-1->3->-1      [channel] children->rank->parent
//! node1:27225:27907 [3] NCCL INFO Channel 01/0 : 3[3] -> 7[3] [send] via NET/IB/1/GDRDMA                   by NIC 1
//! ```
//!
//! Ranks are numbered server by server. Each pair of ranks of different servers exchanges the same in all trees. Where
//! no line names the NIC of an end, it is that of the rank's place in its server. The form is that of `src/init.cc` and
//! `src/transport/net.cc` of NCCL 2.18 and later, as in logs that NVIDIA/nccl-tests issue 252 and NVIDIA/nccl issues
//! 952 and 1344 quote.

use super::{JOB, NcclAlgorithm};
use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use srdma_fabric::{HostId, NodeId, Topology};
use srdma_toml_error::LineError;
use std::collections::{BTreeMap, BTreeSet};

/// Ranks of a job, at most.
const MOST_RANKS: u32 = 1 << 20;

/// What a log says.
#[derive(Default)]
struct Log {
    /// For each channel and rank its parent, and the line that says so.
    parents: BTreeMap<(u32, u32), (Option<u32>, usize)>,
    /// The NIC by which a rank sends (true) or receives for another one: channel, rank, other rank.
    nics: BTreeMap<(u32, u32, u32, bool), usize>,
}

/// Reads the trees of a job whose servers are named by prefixes of their NICs' names: NIC n of `h1.3.` is the n-th
/// host, from 0, whose name begins so.
///
/// # Errors
///
/// Names the line in error, the found and the expected value.
pub fn flows_from_nccl_log(text: &str, topology: &Topology, servers: &[String]) -> Result<Vec<ListedFlow>, LineError> {
    let log = Log::parse(text)?;
    let ranks: BTreeSet<u32> = log.parents.keys().map(|(_, rank)| *rank).collect();
    let last_line = text.lines().count().max(1);
    let Some(last) = ranks.last() else {
        return wrong(last_line, "no line has trees: expected `NCCL INFO Trees`, as with NCCL_DEBUG=INFO");
    };
    let channels: BTreeSet<u32> = log.parents.keys().map(|(channel, _)| *channel).collect();
    let all = (0..=*last).flat_map(|rank| channels.iter().map(move |channel| (*channel, rank)));
    if let Some((channel, rank)) = all.into_iter().find(|at| !log.parents.contains_key(at)) {
        let problem = format!("rank {rank} has no tree of channel {channel}: expected the logs of all ranks");
        return wrong(last_line, problem);
    }
    let per_server = ranks.len() / servers.len().max(1);
    if servers.len() < 2 || per_server * servers.len() != ranks.len() {
        let problem = format!(
            "{} ranks and {} servers: expected as many ranks on each of two or more",
            ranks.len(),
            servers.len()
        );
        return wrong(last_line, problem);
    }
    let nics: Vec<Vec<HostId>> = servers.iter().map(|server| topology.hosts_beginning(server)).collect();
    let nic = |channel: u32, [rank, other]: [u32; 2], is_sender: bool, line: usize| {
        let (server, place) = (rank as usize / per_server, rank as usize % per_server);
        let of_server = &nics[server];
        let by_place = place * of_server.len() / per_server;
        let number = log.nics.get(&(channel, rank, other, is_sender)).copied().unwrap_or(by_place);
        of_server.get(number).copied().map_or_else(
            || {
                let (name, found) = (&servers[server], of_server.len());
                wrong(line, format!("NIC {number} is needed, but {found} hosts of this fabric begin with {name}"))
            },
            Ok,
        )
    };
    let mut pairs: Vec<[HostId; 2]> = Vec::new();
    for ((channel, rank), (parent, line)) in &log.parents {
        let Some(parent) = *parent else { continue };
        if parent > *last {
            return wrong(*line, format!("rank {parent} is the parent of {rank}, but the last rank is {last}"));
        }
        if parent as usize / per_server == *rank as usize / per_server {
            continue;
        }
        for [from, to] in [[*rank, parent], [parent, *rank]] {
            let pair = [nic(*channel, [from, to], true, *line)?, nic(*channel, [to, from], false, *line)?];
            if pair[0] == pair[1] {
                return wrong(*line, "two servers stand for the same NIC".to_owned());
            }
            pairs.push(pair);
        }
    }
    Ok(listed(topology, &pairs))
}

/// Flows of one rate, by which the NIC that sends most fills its link.
fn listed(topology: &Topology, pairs: &[[HostId; 2]]) -> Vec<ListedFlow> {
    let mut sends: BTreeMap<HostId, u64> = BTreeMap::new();
    pairs.iter().for_each(|[from, _]| *sends.entry(*from).or_default() += 1);
    let rate = |nic: HostId| {
        let ports = topology.ports(NodeId::Host(nic)).iter();
        ports.map(|port| topology.links()[port.link.index()].rate_bits_per_s).min().unwrap_or(0)
    };
    let rate_bits_per_s = sends.iter().map(|(nic, count)| rate(*nic) / count).min().unwrap_or(0).max(1);
    let flow = |[from, to]: &[HostId; 2]| ListedFlow {
        flow: Flow { from: *from, to: *to, rate_bits_per_s },
        job: JOB.to_owned(),
        part: NcclAlgorithm::Tree.name().to_owned(),
        tenant: None,
    };
    pairs.iter().map(flow).collect()
}

impl Log {
    fn parse(text: &str) -> Result<Self, LineError> {
        let mut log = Log::default();
        for (line, own) in (1..).zip(text.lines()) {
            let Some((_, message)) = own.split_once("NCCL INFO ") else { continue };
            if let Some(trees) = message.strip_prefix("Trees ") {
                log.trees(trees, line)?;
            } else if let Some(channel) = message.strip_prefix("Channel ") {
                log.channel(channel);
            }
        }
        Ok(log)
    }

    /// `[0] 1/-1/-1->0->-1 [1] …`
    fn trees(&mut self, text: &str, line: usize) -> Result<(), LineError> {
        let mut words = text.split_whitespace();
        while let (Some(channel), Some(tree)) = (words.next(), words.next()) {
            let parsed = channel.strip_prefix('[').and_then(|channel| channel.strip_suffix(']')?.parse::<u32>().ok());
            let mut parts = tree.split("->").skip(1);
            let rank = parts.next().and_then(|rank| rank.parse::<u32>().ok()).filter(|rank| *rank < MOST_RANKS);
            let up = parts.next().and_then(|up| up.parse::<i64>().ok());
            let (Some(channel), Some(rank), Some(up)) = (parsed, rank, up) else {
                return wrong(line, format!("{channel} {tree}: expected a tree such as [0] 1/-1/-1->0->-1"));
            };
            let parent = u32::try_from(up).ok();
            let (known, _) = *self.parents.entry((channel, rank)).or_insert((parent, line));
            if known != parent {
                let problem =
                    format!("rank {rank} has another tree of channel {channel} above: expected one communicator");
                return wrong(line, problem);
            }
        }
        Ok(())
    }

    /// `01/0 : 3[3] -> 7[3] [send] via NET/IB/1/GDRDMA`; other lines about channels are of no interest.
    fn channel(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        let rank = |word: &str| word.split('[').next()?.parse::<u32>().ok();
        let mut next = || words.next().unwrap_or_default();
        let channel = next().split('/').next().and_then(|channel| channel.parse::<u32>().ok());
        let (_, from, _, to, way, _, net) = (next(), rank(next()), next(), rank(next()), next(), next(), next());
        let nic = net.strip_prefix("NET/").and_then(|net| net.split(['/', '(']).nth(1)?.parse::<usize>().ok());
        if let (Some(channel), Some(from), Some(to), Some(nic)) = (channel, from, to, nic) {
            match way {
                "[send]" => drop(self.nics.insert((channel, from, to, true), nic)),
                "[receive]" => drop(self.nics.insert((channel, to, from, false), nic)),
                _ => {}
            }
        }
    }
}

fn wrong<T>(line: usize, problem: impl Into<String>) -> Result<T, LineError> {
    Err(LineError { line, problem: problem.into() })
}
