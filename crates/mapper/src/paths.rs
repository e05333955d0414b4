//! The paths of a NIC that are probed: to the last switch of every other NIC, and to each switch on the way (D256).

use srdma_fabric::entropy::{AddressError, ValueError};
use srdma_fabric::{Encoding, HostId, LinkId, NodeId, Path, Program, ProgramError, SidPlan, Template, Topology};
use srdma_wire::Entropy;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Paths of a mapper, at most: the session of a probe has 16 bits.
const MAX_PATHS: usize = 65_536;

/// A path from the NIC to a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedPath {
    /// The links, from the NIC on.
    pub links: Vec<LinkId>,
    /// The names of the switches.
    pub switches: Vec<String>,
    /// The value of a path that begins so.
    pub entropy: Entropy,
    /// The program of its probes: there and back over the same links.
    pub program: Program,
    /// The path without its last link; `None` for that to the NIC's own switch.
    pub shorter: Option<usize>,
    /// A path of the NIC ends at its last switch.
    pub is_whole: bool,
}

/// The paths of a NIC.
#[derive(Clone, Debug)]
pub struct Paths {
    nic: HostId,
    template: Template,
    paths: Vec<MappedPath>,
    by_links: BTreeMap<Vec<LinkId>, usize>,
}

/// Reason for which the paths of a NIC cannot be probed.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathsError {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// More than the session of a probe distinguishes.
    #[error("the NIC has more than {MAX_PATHS} paths: too many for one mapper")]
    TooManyPaths,
}

impl Paths {
    /// The paths of a NIC, the shortest first. Failed links count as others do.
    ///
    /// # Errors
    ///
    /// Those of [`Template::new`] and [`Template::paths`]; more than 65,536 paths.
    pub fn new(topology: &Topology, sids: &SidPlan, nic: HostId, encoding: Encoding) -> Result<Self, PathsError> {
        let template = Template::new(topology)?;
        // By number of links first.
        let mut found: BTreeMap<(usize, Vec<LinkId>), (Entropy, bool)> = BTreeMap::new();
        let mut known: BTreeSet<Vec<NodeId>> = BTreeSet::new();
        for to in topology.host_ids().filter(|to| *to != nic) {
            // NICs of the same switches have the same paths.
            let attached: Vec<NodeId> = topology.attached_to(to).map(NodeId::Switch).collect();
            if !known.insert(attached) {
                continue;
            }
            for (entropy, path) in template.paths(nic, to)? {
                let switches = path.links.len().saturating_sub(1);
                for length in 1..=switches {
                    let own = found.entry((length, path.links[..length].to_vec())).or_insert((entropy, false));
                    own.1 |= length == switches;
                }
                if found.len() > MAX_PATHS {
                    return Err(PathsError::TooManyPaths);
                }
            }
        }
        let mut paths = Paths { nic, template, paths: Vec::new(), by_links: BTreeMap::new() };
        for ((_, links), (entropy, is_whole)) in found {
            let there_and_back: Vec<LinkId> = links.iter().chain(links.iter().rev()).copied().collect();
            let path = Path { from: nic, to: nic, links: there_and_back };
            let names = path.hops(topology).take(links.len());
            let switches = names.map(|(switch, _)| topology.name(NodeId::Switch(switch)).to_owned()).collect();
            let program = Program::encode(sids, topology, &path, encoding, None)?;
            let shorter = links.split_last().and_then(|(_, shorter)| paths.by_links.get(shorter).copied());
            paths.by_links.insert(links.clone(), paths.paths.len());
            paths.paths.push(MappedPath { links, switches, entropy, program, shorter, is_whole });
        }
        Ok(paths)
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// A path.
    ///
    /// # Panics
    ///
    /// If there is no such path.
    pub fn path(&self, index: usize) -> &MappedPath {
        &self.paths[index]
    }

    /// All paths.
    pub fn iter(&self) -> impl Iterator<Item = &MappedPath> {
        self.paths.iter()
    }

    /// The values of all paths to another NIC, each with whether it is excluded: its path is denied. If all are, none
    /// is excluded.
    ///
    /// # Errors
    ///
    /// Those of [`Template::paths`].
    pub fn excluded(&self, to: HostId, is_denied: impl Fn(usize) -> bool) -> Result<Vec<(Entropy, bool)>, ValueError> {
        let mut values = Vec::new();
        for (entropy, path) in self.template.paths(self.nic, to)? {
            let links = path.links.split_last().map_or(&[][..], |(_, before)| before);
            let is_excluded = self.by_links.get(links).is_some_and(|index| is_denied(*index));
            values.push((entropy, is_excluded));
        }
        if values.iter().all(|(_, is_excluded)| *is_excluded) {
            values.iter_mut().for_each(|(_, is_excluded)| *is_excluded = false);
        }
        Ok(values)
    }

    /// The links that have failed: the last ones of the shortest denied paths, in ascending order.
    pub fn failed_links(&self, is_denied: impl Fn(usize) -> bool) -> Vec<LinkId> {
        let begins = |(index, path): (usize, &MappedPath)| {
            let is_first = is_denied(index) && path.shorter.is_none_or(|shorter| !is_denied(shorter));
            path.links.last().copied().filter(|_| is_first)
        };
        let mut links: Vec<LinkId> = self.paths.iter().enumerate().filter_map(begins).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// The segments of a path's probes.
    pub(crate) fn segments(&self, index: usize) -> Vec<Ipv6Addr> {
        let program = &self.paths[index].program;
        [program.destination].into_iter().chain(program.segments.iter().copied()).collect()
    }
}
