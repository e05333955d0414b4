//! Traces of a group's paths, of which the most loaded one's goes upstream (D242).

use super::Node;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::groups::{GroupState, PathTrace};
use crate::ioam::sample_of;
use srdma_aggregation::{BranchIndex, LinkMeasurement};
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::Parent;
use srdma_wire::Instant;
use std::time::Duration;

impl Node {
    /// A branch has responded: once in an interval a node with receivers sends the trace of the most loaded link to one
    /// of them.
    #[inline]
    pub(super) fn trace_receivers(&mut self, now: Instant, group: u32, pool: &mut Pool) {
        if let Some(interval) = self.ioam.group_interval() {
            self.trace_most_loaded(now, group, interval, pool);
        }
    }

    fn trace_most_loaded(&mut self, now: Instant, group: u32, interval: Duration, pool: &mut Pool) {
        let Some(state) = self.groups.get_mut(group).filter(|state| state.entry.role.has_receivers()) else { return };
        let (nodes, branches) = (state.entry.nodes_below() as u16, state.entry.branches.len() as u16);
        if !state.loads(interval).is_due(now) {
            return;
        }
        let mut most: Option<(BranchIndex, PortId, LinkMeasurement)> = None;
        for branch in (nodes..branches).map(BranchIndex) {
            if let Some((port, measured)) = self.measure(now, group, branch, interval)
                && most.is_none_or(|(_, _, most)| measured.load > most.load)
            {
                most = Some((branch, port, measured));
            }
        }
        let Some((branch, port, measured)) = most else { return };
        // Beside nodes below, whose paths may be more loaded.
        let is_most = |state: &mut GroupState| state.loads(interval).report(now, branch, measured.load) == Some(true);
        if nodes > 0 && !self.groups.get_mut(group).is_some_and(is_most) {
            return;
        }
        if let Some(trace) = self.ioam.trace_of_link(port, &measured)
            && let Some(trace) = PathTrace::new(measured.load, &trace)
        {
            self.send_trace(now, group, &trace, pool);
        }
    }

    /// Sends on the trace that a node below has sent, with the data of the link toward it, if its path is the most
    /// loaded one. `None` for any other packet.
    pub(super) fn send_on_trace(
        &mut self,
        context: &PacketContext,
        frame: &Frame,
        pool: &mut Pool,
        group: u32,
    ) -> Option<Result<(), DropReason>> {
        let interval = self.ioam.group_interval()?;
        let (types, now) = (self.config.fast_cnp_types, context.now);
        let found = self.groups.path_trace(context, frame, pool, group, types, (&self.tables, &self.security))?;
        let (branch, mut trace) = match found {
            Ok(found) => found,
            Err(reason) => return Some(Err(reason)),
        };
        let measured = self.measure(now, group, branch, interval);
        trace.load = measured.map_or(0, |(_, measured)| measured.load).max(trace.load);
        let loads = self.groups.get_mut(group)?.loads(interval);
        match loads.report(now, branch, trace.load) {
            Some(true) => {}
            Some(false) => return Some(Ok(())),
            None => return Some(Err(DropReason::CnpRateLimited)),
        }
        if let Some((port, measured)) = measured {
            self.ioam.add_link(port, &measured, trace.octets_mut());
        }
        self.send_trace(now, group, &trace, pool);
        Some(Ok(()))
    }

    /// Measures the link to a branch.
    fn measure(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        interval: Duration,
    ) -> Option<(PortId, LinkMeasurement)> {
        let port = self.tables.adjacency(self.branch_adjacency(group, branch)?).port;
        let sample = sample_of(now, port, &self.ports.egress)?;
        Some((port, self.groups.get_mut(group)?.loads(interval).measure(branch, sample)?))
    }

    /// To the parent, or to a source that knows Fast CNP.
    fn send_trace(&mut self, now: Instant, group: u32, trace: &PathTrace, pool: &mut Pool) {
        let Some(entry) = self.groups.get(group).map(|state| &state.entry) else { return };
        let is_taken = match entry.parent {
            Parent::Source(source) => self.fast_cnp.is_capable(source.address),
            Parent::Node { .. } => true,
        };
        if is_taken
            && self.groups.check_lease(now, group).is_ok()
            && let Some(up) = self.groups.upward(group, &self.tables, self.config.loopback)
        {
            let packet = up.trace(trace, (entry.proxy, entry.designated_qpn), self.config.fast_cnp_types, pool);
            self.send_response(now, packet, pool);
        }
    }
}
