//! The group of a controller, as its source uses it.

use crate::client::SourceClient;
use anyhow::{Context, Result, bail};
use srdma_api::{Client, Group, GroupState, SourceState};
use srdma_host::{GroupFile, GroupSource};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::thread;
use std::time::Duration;

/// Conditions for the source of a group to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeginOptions {
    /// Wait for this number of receivers.
    pub receivers: u32,
    /// Commit the group if it is open.
    pub commit: bool,
}

/// A group at its controller.
pub struct ControlledGroup {
    client: Client,
    id: u32,
    file: GroupFile,
    most_packets: Option<u32>,
}

/// Interval for asking the controller whether receivers have joined.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time for a commit: the longest wait of the API.
const COMMIT_TIMEOUT_MS: u32 = 60_000;

impl ControlledGroup {
    /// Reads the group from its controller.
    ///
    /// # Errors
    ///
    /// If the request fails, or the group's values are invalid.
    pub fn find(client: Client, id: u32) -> Result<Self> {
        let group = client.group(id)?;
        let file = as_file(&group).context("the controller describes an invalid group")?;
        let repair = Some(group.policy.repair).filter(|repair| !repair.is_off());
        let most_packets = repair.map(|repair| repair.window_packets(file.path_mtu));
        Ok(ControlledGroup { client, id, file, most_packets })
    }

    /// The group as a group file describes it.
    pub fn file(&self) -> &GroupFile {
        &self.file
    }

    /// Packets that the source may have in flight: the nodes repair so many (D160). `None` if they do not repair.
    pub fn most_packets(&self) -> Option<u32> {
        self.most_packets
    }

    /// Waits for receivers and nodes, and until the source may send. `on_wait` gets the number of receivers that are
    /// ready, at first and at each change, while there are too few.
    ///
    /// # Errors
    ///
    /// If a request fails, the group or its source has ended, or the group is not committed.
    pub fn begin(&self, options: BeginOptions, mut on_wait: impl FnMut(usize)) -> Result<SourceClient> {
        let mut group = self.client.group(self.id)?;
        let mut reported = None;
        while ready(&group) < options.receivers as usize && !is_over(&group) {
            if reported.replace(ready(&group)) != Some(ready(&group)) {
                on_wait(ready(&group));
            }
            thread::sleep(POLL_INTERVAL);
            group = self.client.group(self.id)?;
        }
        if options.commit && group.summary.state == GroupState::Open {
            group = self.client.commit_group(self.id, COMMIT_TIMEOUT_MS)?;
        }
        if is_over(&group) || (options.commit && group.summary.state == GroupState::Open) {
            let why = group.failure.map(|failure| format!(": {failure}")).unwrap_or_default();
            bail!("group {} does not accept data{why}", self.id);
        }
        if group.source_state == SourceState::Ended {
            bail!("the source of group {} has ended: create another group to send again", self.id);
        }
        let source = SourceClient::start(self.client.clone(), self.id, self.file.initial_psn)?;
        if source.wait_until_sending() { Ok(source) } else { bail!("group {} was closed before it was ready", self.id) }
    }
}

/// Receivers that a commit takes: those that join in two steps when they are ready (D187).
fn ready(group: &Group) -> usize {
    group.members.iter().filter(|member| !member.awaits_ready).count()
}

fn is_over(group: &Group) -> bool {
    matches!(group.summary.state, GroupState::Closing | GroupState::Closed)
}

fn as_file(group: &Group) -> Option<GroupFile> {
    Some(GroupFile {
        proxy: group.summary.proxy,
        designated_qpn: Qpn::new(group.designated_qpn)?,
        initial_psn: Psn::new(group.initial_psn),
        path_mtu: PathMtu::from_octets(group.path_mtu.into())?,
        region: group.region.map(Into::into),
        source: GroupSource { address: group.source.address, qpn: Qpn::new(group.source.qpn)? },
    })
}
