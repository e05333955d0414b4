//! The other lines of a recording: the changes since the previous sample.

use serde::Serialize;
use srdma_api::EventKind;
use srdma_sim::moment::{BranchMoment, PlaceMoment};
use srdma_sim::{Moment, Scene};

/// State of the recording that the next sample needs.
#[derive(Default)]
pub(super) struct Recorded {
    names: Vec<String>,
    groups: Vec<u32>,
    before: Option<Moment>,
    /// Rates of the links in the previous sample.
    rates: Vec<[u64; 2]>,
}

/// Group, node, branch, point, lag, CNPs.
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
    /// Nothing of a run that takes place here.
    pub(super) fn of(scene: &Scene) -> Self {
        Recorded {
            names: scene.places.iter().map(|place| place.name.clone()).collect(),
            groups: scene.groups.iter().map(|group| group.group.record().id.0).collect(),
            before: None,
            rates: vec![[0; 2]; scene.links.len()],
        }
    }

    /// The changes up to a time; `None` if no time has passed.
    pub(super) fn sample(&mut self, moment: &Moment) -> Option<Sample> {
        if self.before.as_ref().is_some_and(|before| before.now_ns >= moment.now_ns) {
            return None;
        }
        let rates = self.rates_until(moment);
        let links = rates.iter().zip(&self.rates).enumerate().filter(|(_, (now, before))| now != before);
        let sample = Sample {
            t_ns: moment.now_ns,
            links: links.map(|(index, ([there, back], _))| (index, *there, *back)).collect(),
            branches: self.branches(moment),
            drops: self.drops(moment),
            events: self.events(moment),
        };
        self.rates = rates;
        self.before = Some(moment.clone());
        Some(sample)
    }

    /// Octets a second, there and back, since the moment before.
    fn rates_until(&self, moment: &Moment) -> Vec<[u64; 2]> {
        let before_ns = self.before.as_ref().map_or(0, |before| before.now_ns);
        let span_ns = u128::from(moment.now_ns - before_ns).max(1);
        let rate = |now: u64, before: u64| u64::try_from(u128::from(now - before) * 1_000_000_000 / span_ns);
        let link = |(index, [there, back]): (usize, &[u64; 2])| {
            let [before_there, before_back] = self.before.as_ref().map_or([0; 2], |before| before.links[index]);
            [rate(*there, before_there), rate(*back, before_back)].map(|rate| rate.unwrap_or(u64::MAX))
        };
        moment.links.iter().enumerate().map(link).collect()
    }

    fn branches(&self, moment: &Moment) -> Vec<BranchSample> {
        let mut changed = Vec::new();
        for (group, (id, tree)) in self.groups.iter().zip(&moment.groups).enumerate() {
            for (node, branches) in tree.iter().enumerate() {
                for (index, branch) in branches.iter().enumerate() {
                    let before = self.before.as_ref().map(|before| before.groups[group][node][index]);
                    if before.unwrap_or_default() != *branch {
                        let BranchMoment { point, lag, cnps } = *branch;
                        changed.push((*id, node, index, point.map(|point| point.get()), lag, cnps));
                    }
                }
            }
        }
        changed
    }

    /// The places with their names and, if there was a moment before, how they were then.
    fn places<'a>(
        &'a self,
        moment: &'a Moment,
    ) -> impl Iterator<Item = (&'a String, &'a PlaceMoment, Option<&'a PlaceMoment>)> {
        let before = |index: usize| self.before.as_ref().map(|before| &before.places[index]);
        self.names.iter().zip(&moment.places).enumerate().map(move |(index, (name, now))| (name, now, before(index)))
    }

    fn drops(&self, moment: &Moment) -> Vec<(String, &'static str, u64)> {
        let mut changed = Vec::new();
        for (name, now, before) in self.places(moment) {
            for (reason, packets) in &now.drops {
                if before.and_then(|before| before.drops.get(reason)) != Some(packets) {
                    changed.push((name.clone(), reason.name(), *packets));
                }
            }
        }
        changed
    }

    /// Nodes that went down or came back.
    fn events(&self, moment: &Moment) -> Vec<EventKind> {
        let kind = |(name, now, before): (&String, &PlaceMoment, Option<&PlaceMoment>)| {
            let was_down = before.is_some_and(|before| before.is_down);
            match (was_down, now.is_down) {
                (false, true) => Some(EventKind::NodeDown { node: name.clone() }),
                (true, false) => Some(EventKind::NodeUp { node: name.clone() }),
                (false, false) | (true, true) => None,
            }
        };
        self.places(moment).filter_map(kind).collect()
    }
}
