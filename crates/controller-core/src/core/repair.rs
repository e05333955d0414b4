//! Times to detect and repair failures, against the time after which the source gives up (D120).

use super::{Core, Group};
use srdma_api::{POLL_INTERVAL_MS, SourceTransport};
use srdma_group::OnFailure;
use std::time::Duration;

/// Interval at which a driver searches for dead nodes.
pub const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// Interval at which nodes report.
const POLL_INTERVAL: Duration = Duration::from_millis(POLL_INTERVAL_MS as u64);

impl Core {
    /// The failures of a committed group whose repair takes longer than its source waits.
    pub(super) fn repair_warnings(&self, group: &Group) -> Vec<String> {
        let given = group.row.request.transport;
        let transport = given.unwrap_or(SourceTransport::USUAL);
        let Some(budget) = transport.retry_budget().filter(|_| group.lifecycle.is_some()) else { return Vec::new() };
        let assumed = if given.is_some() { "" } else { ", assumed" };
        let slow = self.repairs(group).into_iter().filter(|(_, time, _)| *time >= budget);
        let warning = |(failure, time, remedy): (&str, Duration, &str)| {
            format!(
                "{failure} is repaired after up to {} ms, and the source gives up after {} ms (ACK timeout {}, {} \
                 retries{assumed}): raise its ACK timeout, or lower {remedy}",
                time.as_millis(),
                budget.as_millis(),
                transport.ack_timeout,
                transport.retries
            )
        };
        slow.map(warning).collect()
    }

    /// The failures that the controller repairs in this group: what fails, the longest time until the orders for the
    /// repair leave, and the settings that it depends on. With the policy `strict` the source's retry limit decides
    /// about receivers and their edges.
    fn repairs(&self, group: &Group) -> Vec<(&'static str, Duration, &'static str)> {
        let nodes = group.lifecycle.iter().filter_map(|lifecycle| lifecycle.newest());
        let mut nodes = nodes.flat_map(|group| group.record().tree.nodes());
        let has_transit = nodes.any(|node| node.role.replicates() && node.parent.is_some());
        let (policy, dead) = (group.row.request.policy, self.settings.node_dead_after + SEARCH_INTERVAL);
        let reroute = ("a dead transit node", dead, "node_dead_after_ms");
        let receiver = ("a stalled receiver", policy.t_stall + POLL_INTERVAL, "t_stall");
        let edge = ("a dead edge", dead + POLL_INTERVAL + policy.t_stall, "node_dead_after_ms and t_stall");
        let evictions = match policy.on_failure {
            OnFailure::Strict => Vec::new(),
            OnFailure::Evict => vec![receiver, edge],
        };
        // Without a second node no dead headend is replaced (D289).
        let can_replace = self.network.attached_to(group.row.request.source.address).count() > 1;
        let replace = ("a dead headend", dead, "node_dead_after_ms");
        let moves = [has_transit.then_some(reroute), can_replace.then_some(replace)];
        moves.into_iter().flatten().chain(evictions).collect()
    }
}
