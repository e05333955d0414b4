//! Exchanges of planes on a Clos of three tiers, where a pod has more flows in a plane than its open links there carry.
//!
//! ```text
//!              leaf a        leaf z        leaf y        leaf b
//!   plane p    a ─────────── first ────────────────────▶ b           leaves the pod of a, and plane p
//!   plane q    a ── inside ▶ z                                       stays in the pod, and takes its place
//!   plane p                  z ◀── second ── y                       makes room for it at z
//!   plane q                                  y ─── last ▶ b          makes room at y and b
//! ```
//!
//! The two planes change places on all flows of such a cycle: each leaf keeps its number of flows in both, and plane p
//! carries one flow less out of the pod. No leaf gets a flow into plane p that leaves its pod for one that stays. Where
//! a pod has too many incoming flows, all arrows are the other way around. The shortest cycle is searched in breadth,
//! and after it a path that ends on both sides at leaves with room for a flow more.

use super::improve::Before;
use super::{FlowId, MORE, Placed, Placement, Way};
use crate::flow::Flow;
use crate::load::Direction;
use std::collections::BTreeSet;

/// Exchanges that are tried for one link.
const EXCHANGES: usize = 256;

/// Flows of a cycle, at most.
const DEPTH: usize = 12;

/// A flow of a walk, and the leaf from which it goes on.
#[derive(Clone, Copy)]
struct Step {
    flow: FlowId,
    leaf: u32,
    /// Whether the next flow may leave its pod: in the other plane, or stay in it: in the first one.
    is_free: bool,
    /// The step before it.
    before: usize,
    depth: usize,
}

/// Where a walk ends.
#[derive(Clone, Copy)]
enum Until {
    /// At the other leaf of its first flow.
    Back,
    /// At a leaf with room for one more flow below this load.
    Room(f64),
}

/// The flows of a step and of those before it, from the first on.
fn flows_until(steps: &[Step], mut at: usize) -> Vec<FlowId> {
    let mut flows = vec![steps[at].flow];
    while at > 0 {
        at = steps[at].before;
        flows.push(steps[at].flow);
    }
    flows.reverse();
    flows
}

impl Placement<'_> {
    /// Takes a flow out of the plane of a direction between a pod and a core, where a pod has more flows in that plane
    /// than its open links there carry below a limit: of this pod first, and then of others, in whose way they are.
    pub(super) fn exchange_planes(&mut self, direction: Direction, limit: f64) -> Option<Vec<FlowId>> {
        let user = *self.users[direction.index()].first()?;
        let Placed { flow, along, choice } = self.flows[user.0 as usize].as_ref()?;
        let (rate_bits_per_s, plane) = (flow.rate_bits_per_s, (*choice)?.plane);
        let position = along.iter().position(|own| *own == direction).filter(|_| along.len() == 6)?;
        let end = [2, 3].iter().position(|own| *own == position)?;
        let clos = self.clos.as_ref()?;
        let pod = clos.pod_of(clos.leaf_at(flow, end));
        let others = (0..clos.pods()).flat_map(|pod| [(pod, 0), (pod, 1)]).filter(|other| *other != (pod, end));
        let full = |(pod, end)| self.excess(end, pod, plane, rate_bits_per_s, limit) > 0;
        let places: Vec<(u32, usize)> = [(pod, end)].into_iter().chain(others).filter(|place| full(*place)).collect();
        let mut left = EXCHANGES;
        for (pod, end) in places {
            let clos = self.clos.as_ref()?;
            let users = clos.core_links(end, pod, plane).flat_map(|link| self.users[link.index()].iter().copied());
            let users: Vec<FlowId> = users.collect();
            let moved = users.into_iter().find_map(|first| self.exchange_plane_of(first, end, limit, &mut left));
            if moved.is_some() {
                return moved;
            }
        }
        None
    }

    /// How many flows of a rate a pod has in a plane, above what its open links to cores carry below a limit.
    fn excess(&self, end: usize, pod: u32, plane: u16, rate_bits_per_s: u64, limit: f64) -> usize {
        let Some(clos) = &self.clos else { return 0 };
        let (mut room, mut used) = (0, 0);
        for link in clos.core_links(end, pod, plane).filter(|link| !self.is_drained[link.link.index()]) {
            let rate = self.topology.links()[link.link.index()].rate_bits_per_s as f64;
            room += ((limit + MORE) * rate / rate_bits_per_s as f64) as usize;
            used += self.users[link.index()].len();
        }
        used.saturating_sub(room)
    }

    /// Tries exchanges that take a flow out of its plane: cycles, and paths that end on both sides where there is room.
    fn exchange_plane_of(&mut self, first: FlowId, end: usize, limit: f64, left: &mut usize) -> Option<Vec<FlowId>> {
        let plane = self.flows[first.0 as usize].as_ref()?.choice?.plane;
        let others = self.clos.as_ref()?.other_planes(plane);
        for other in others {
            *left = left.checked_sub(1).filter(|_| !self.has_to_end())?;
            let planes = [plane, other];
            let cycle = self.walk(first, end, planes, false, Until::Back);
            if let Some(moved) = cycle.and_then(|cycle| self.swap(&cycle, planes, limit)) {
                return Some(moved);
            }
            let ahead = self.walk(first, end, planes, false, Until::Room(limit));
            let Some(ahead) = ahead else { continue };
            let behind = self.walk(first, 1 - end, planes, true, Until::Room(limit));
            let Some(behind) = behind else { continue };
            let path = [ahead, behind[1..].to_vec()].concat();
            if let Some(moved) = self.swap(&path, planes, limit) {
                return Some(moved);
            }
        }
        None
    }

    /// The fewest flows, from one on, that change planes together so that leaves keep their numbers of flows in both:
    /// around to the other leaf of the first, or to a leaf with room. `is_free`: another flow that leaves its pod may
    /// take the place of the first.
    fn walk(
        &self,
        first: FlowId,
        end: usize,
        [plane, other]: [u16; 2],
        is_free: bool,
        until: Until,
    ) -> Option<Vec<FlowId>> {
        let clos = self.clos.as_ref()?;
        let begin = self.flow(first)?;
        let [leaf, last] = [end, 1 - end].map(|end| clos.leaf_at(begin, end));
        let mut visited = BTreeSet::new();
        let mut steps = vec![Step { flow: first, leaf, is_free, before: 0, depth: 0 }];
        let mut next = 0;
        while let Some(Step { leaf, is_free, depth, .. }) = steps.get(next).copied() {
            // By the other plane from a leaf at this end, by the first plane from one at the far end.
            let is_back = depth % 2 == 1;
            let (at, by) = if is_back { (1 - end, plane) } else { (end, other) };
            let link = clos.leaf_link(at, leaf, by);
            if let Until::Room(limit) = until
                && (is_free || !is_back)
                && self.share(begin, link) <= limit + MORE
            {
                return Some(flows_until(&steps, next));
            }
            for id in &self.users[link.index()] {
                let Some(flow) = self.flow(*id) else { continue };
                let (leaves, far) = (clos.leaves_pod(flow), clos.leaf_at(flow, 1 - at));
                let is_allowed = is_free || leaves == is_back;
                if *id == first || !is_allowed || flow.rate_bits_per_s != begin.rate_bits_per_s {
                    continue;
                }
                let step = Step { flow: *id, leaf: far, is_free: leaves == is_back, before: next, depth: depth + 1 };
                if matches!(until, Until::Back) && !is_back && far == last {
                    steps.push(step);
                    return Some(flows_until(&steps, steps.len() - 1));
                }
                if depth < DEPTH && visited.insert((is_back, far, step.is_free)) {
                    steps.push(step);
                }
            }
            next += 1;
        }
        None
    }

    /// Lets flows of two planes change places; `None`, and nothing has changed, if a link of a leaf would carry too
    /// much, or the other plane more than its links to cores carry.
    fn swap(&mut self, flows: &[FlowId], [plane, other]: [u16; 2], limit: f64) -> Option<Vec<FlowId>> {
        let mut before: Before = Vec::new();
        before.extend(flows.iter().filter_map(|id| Some((*id, self.take(*id)?))));
        let into = |placed: &Placed| if placed.choice.is_some_and(|own| own.plane == plane) { other } else { plane };
        let moves: Vec<(FlowId, Flow, u16)> = before.iter().map(|(id, own)| (*id, own.flow, into(own))).collect();
        let is_put = moves
            .iter()
            .all(|(id, flow, plane)| self.seek_in_plane(flow, *plane).map(|way| self.put(*id, *flow, way)).is_some());
        if is_put && moves.iter().all(|(id, flow, into)| self.fits(*id, flow, *into == other, limit)) {
            return Some(before.into_iter().map(|(id, _)| id).collect());
        }
        self.revert(&mut before, 0);
        None
    }

    /// Whether no link of a leaf on a flow's path carries more than a limit, and, if asked, no pod has too many flows
    /// in its plane.
    fn fits(&self, id: FlowId, flow: &Flow, with_pods: bool, limit: f64) -> bool {
        let (Some(clos), Some(placed)) = (&self.clos, &self.flows[id.0 as usize]) else { return false };
        let Some(choice) = placed.choice else { return false };
        let is_full = |end| {
            let leaf = clos.leaf_at(flow, end);
            let share = self.loads.share_with(self.topology, clos.leaf_link(end, leaf, choice.plane), 0);
            let is_pod_full = with_pods
                && clos.leaves_pod(flow)
                && self.excess(end, clos.pod_of(leaf), choice.plane, flow.rate_bits_per_s, limit) > 0;
            share > limit + MORE || is_pod_full
        };
        ![0, 1].into_iter().any(is_full)
    }

    /// Of the choices in a plane the one whose most loaded link carries least; `None` if all are drained.
    pub(super) fn seek_in_plane(&self, flow: &Flow, plane: u16) -> Option<Way> {
        let clos = self.clos.as_ref()?;
        let ways = clos.choices(flow).filter(|choice| choice.plane == plane);
        let priced = ways.map(|choice| {
            let along = clos.along(flow, choice);
            let most = along.iter().map(|direction| self.share(flow, *direction)).fold(0.0, f64::max);
            (most, (along, Some(choice)))
        });
        let open = priced.filter(|(most, _)| most.is_finite());
        open.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, way)| way)
    }

    fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.flows[id.0 as usize].as_ref().map(|placed| &placed.flow)
    }
}
