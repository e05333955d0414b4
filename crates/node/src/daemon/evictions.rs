//! Eviction requests of the node (D25). Without a controller the operator grants them, by a new epoch in the files of
//! the group.

use super::snapshot::{EvictionCause, EvictionSnapshot, Snapshot};
use srdma_aggregation::EvictionCause as Cause;
use srdma_dataplane::Event;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Eviction requests, by group.
#[derive(Debug, Default)]
pub(super) struct Evictions(BTreeMap<u32, OfGroup>);

#[derive(Debug, Default)]
struct OfGroup {
    requests: u64,
    receivers: BTreeMap<Ipv6Addr, EvictionCause>,
}

impl Evictions {
    /// Applies an event of the node.
    pub(super) fn observe(&mut self, event: Event) {
        match event {
            Event::EvictionRequested { group, receiver, cause } => {
                let group = self.0.entry(group.0).or_default();
                group.requests += 1;
                let cause = match cause {
                    Cause::Stalled => EvictionCause::Stalled,
                    Cause::Failed(_) => EvictionCause::Failed,
                };
                group.receivers.insert(receiver, cause);
            }
        }
    }

    /// Fills in the groups of the snapshot. Discards groups and receivers that have left, and receivers without a lag.
    pub(super) fn show(&mut self, snapshot: &mut Snapshot) {
        self.0.retain(|id, _| snapshot.groups.iter().any(|group| group.id == *id));
        for group in &mut snapshot.groups {
            let Some(requested) = self.0.get_mut(&group.id) else { continue };
            requested.receivers.retain(|receiver, _| {
                group.branches.iter().any(|branch| branch.address == *receiver && branch.lag != Some(0))
            });
            group.eviction_requests = requested.requests;
            let receivers = requested.receivers.iter();
            group.to_evict =
                receivers.map(|(receiver, cause)| EvictionSnapshot { receiver: *receiver, cause: *cause }).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::{ConfigurationSnapshot, DaemonState};
    use super::*;
    use crate::Configuration;
    use srdma_group::GroupId;
    use std::path::Path;

    const EDGE: &str = "\
[node]
loopback = '2001:db8:1::1'
[[port]]
name = 'up'
mac = '02:00:00:00:00:01'
[[neighbour]]
address = '2001:db8:4::1%up'
mac = '02:00:00:00:00:04'
[[route]]
prefix = '2001:db8:bb::/64'
via = ['2001:db8:4::1%up']
[[sid]]
sid = '2001:db8:1::e'
behavior = 'End.MT'
[[group]]
id = 7
proxy = '2001:db8:cc::1'
designated_qpn = 0xd00000
initial_psn = 5
role = 'edge'
sid = '2001:db8:1::e'
parent = { loopback = '2001:db8:4::1' }
receiver = [{ address = '2001:db8:bb::1', qpn = 2 }, { address = '2001:db8:bb::2', qpn = 2 }]
";

    fn snapshot() -> Snapshot {
        let node = Configuration::parse(Path::new("node.toml"), EDGE).expect("right").node().expect("right");
        let state = DaemonState {
            name: "n1".to_owned(),
            started_unix_s: 0,
            uptime_ns: 0,
            ports: Vec::new(),
            controller: None,
            configuration: ConfigurationSnapshot::default(),
            dropped_log_lines: 0,
        };
        Snapshot::of(&node, &state)
    }

    fn wanted(group: u32, receiver: u16, cause: Cause) -> Event {
        let receiver = Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, receiver);
        Event::EvictionRequested { group: GroupId(group), receiver, cause }
    }

    /// D25: each request counts, a receiver is shown once, while it holds its group back.
    #[test]
    fn requests_count_and_receivers_are_shown_while_they_lag() {
        let mut evictions = Evictions::default();
        for _ in 0..3 {
            evictions.observe(wanted(7, 1, Cause::Stalled));
        }
        evictions.observe(wanted(7, 2, Cause::Failed(0x61)));
        evictions.observe(wanted(7, 9, Cause::Stalled));
        evictions.observe(wanted(8, 1, Cause::Stalled));
        let shown = |evictions: &mut Evictions, lag: [u32; 2]| {
            let mut snapshot = snapshot();
            for (branch, lag) in snapshot.groups[0].branches.iter_mut().zip(lag) {
                branch.lag = Some(lag);
            }
            evictions.show(&mut snapshot);
            let group = &snapshot.groups[0];
            let receivers = group.to_evict.iter().map(|one| format!("{} {}", one.receiver, one.cause.name()));
            (group.eviction_requests, receivers.collect::<Vec<_>>())
        };
        let both = ["2001:db8:bb::1 stalled", "2001:db8:bb::2 failed"].map(str::to_owned).to_vec();
        assert_eq!(shown(&mut evictions, [4, 4]), (5, both));
        assert_eq!(shown(&mut evictions, [4, 0]), (5, vec!["2001:db8:bb::1 stalled".to_owned()]));
        assert_eq!(shown(&mut evictions, [4, 4]), (5, vec!["2001:db8:bb::1 stalled".to_owned()]));
        assert_eq!(evictions.0.len(), 1, "groups that the node does not have are discarded");
    }
}
