//! The samples, the other lines of a recording: changes since the previous snapshot.

use serde::Serialize;
use srdma_api::EventKind;
use srdma_sim::snapshot::{BranchSnapshot, ElementSnapshot};
use srdma_sim::{RunDescription, Snapshot};

/// State that the next sample is compared with.
#[derive(Default)]
pub(super) struct Recorded {
    names: Vec<String>,
    groups: Vec<u32>,
    previous: Option<Snapshot>,
    /// Rates of the links in the previous sample.
    rates: Vec<[u64; 2]>,
}

/// Group, node, branch, expected PSN, lag, CNPs.
type BranchSample = (u32, usize, usize, Option<u32>, Option<u32>, u64);

#[derive(Serialize)]
pub(super) struct Sample {
    t_ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<(usize, u64, u64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<BranchSample>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drops: Vec<(String, &'static str, u64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventKind>,
}

impl Recorded {
    /// The state before the first snapshot of a run.
    pub(super) fn of(description: &RunDescription) -> Self {
        Recorded {
            names: description.elements.iter().map(|element| element.name.clone()).collect(),
            groups: description.groups.iter().map(|group| group.group.record().id.0).collect(),
            previous: None,
            rates: vec![[0; 2]; description.links.len()],
        }
    }

    /// The changes up to a snapshot; `None` if no time has passed.
    pub(super) fn sample(&mut self, snapshot: &Snapshot) -> Option<Sample> {
        if self.previous.as_ref().is_some_and(|before| before.now_ns >= snapshot.now_ns) {
            return None;
        }
        let rates = self.rates_until(snapshot);
        let links = rates.iter().zip(&self.rates).enumerate().filter(|(_, (now, before))| now != before);
        let sample = Sample {
            t_ns: snapshot.now_ns,
            links: links.map(|(index, ([there, back], _))| (index, *there, *back)).collect(),
            branches: self.branches(snapshot),
            drops: self.drops(snapshot),
            events: self.events(snapshot),
        };
        self.rates = rates;
        self.previous = Some(snapshot.clone());
        Some(sample)
    }

    /// Octets per second in both directions since the previous snapshot.
    fn rates_until(&self, snapshot: &Snapshot) -> Vec<[u64; 2]> {
        let before_ns = self.previous.as_ref().map_or(0, |before| before.now_ns);
        let span_ns = u128::from(snapshot.now_ns - before_ns).max(1);
        let rate = |now: u64, before: u64| u64::try_from(u128::from(now - before) * 1_000_000_000 / span_ns);
        let link = |(index, [there, back]): (usize, &[u64; 2])| {
            let [before_there, before_back] = self.previous.as_ref().map_or([0; 2], |before| before.links[index]);
            [rate(*there, before_there), rate(*back, before_back)].map(|rate| rate.unwrap_or(u64::MAX))
        };
        snapshot.links.iter().enumerate().map(link).collect()
    }

    fn branches(&self, snapshot: &Snapshot) -> Vec<BranchSample> {
        let mut changed = Vec::new();
        for (group, (id, tree)) in self.groups.iter().zip(&snapshot.groups).enumerate() {
            for (node, branches) in tree.iter().enumerate() {
                for (index, branch) in branches.iter().enumerate() {
                    let before = self.previous.as_ref().map(|before| before.groups[group][node][index]);
                    if before.unwrap_or_default() != *branch {
                        let BranchSnapshot { expected_psn, lag, cnps } = *branch;
                        changed.push((*id, node, index, expected_psn.map(|psn| psn.get()), lag, cnps));
                    }
                }
            }
        }
        changed
    }

    /// The elements with their names, their states, and their states in the previous snapshot.
    fn elements<'a>(
        &'a self,
        snapshot: &'a Snapshot,
    ) -> impl Iterator<Item = (&'a String, &'a ElementSnapshot, Option<&'a ElementSnapshot>)> {
        let before = |index: usize| self.previous.as_ref().map(|before| &before.elements[index]);
        self.names
            .iter()
            .zip(&snapshot.elements)
            .enumerate()
            .map(move |(index, (name, now))| (name, now, before(index)))
    }

    fn drops(&self, snapshot: &Snapshot) -> Vec<(String, &'static str, u64)> {
        let mut changed = Vec::new();
        for (name, now, before) in self.elements(snapshot) {
            for (reason, packets) in &now.drops {
                if before.and_then(|before| before.drops.get(reason)) != Some(packets) {
                    changed.push((name.clone(), reason.name(), *packets));
                }
            }
        }
        changed
    }

    /// Nodes that went down or up.
    fn events(&self, snapshot: &Snapshot) -> Vec<EventKind> {
        let kind = |(name, now, before): (&String, &ElementSnapshot, Option<&ElementSnapshot>)| {
            let was_down = before.is_some_and(|before| before.is_down);
            match (was_down, now.is_down) {
                (false, true) => Some(EventKind::NodeDown { node: name.clone() }),
                (true, false) => Some(EventKind::NodeUp { node: name.clone() }),
                (false, false) | (true, true) => None,
            }
        };
        self.elements(snapshot).filter_map(kind).collect()
    }
}
