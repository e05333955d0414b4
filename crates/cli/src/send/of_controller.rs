//! The group of a controller, as its source uses it.

use crate::group::commit_group;
use crate::remote::{GroupUrl, TrustArguments};
use crate::source::Source;
use anyhow::{Context, Result, bail};
use srdma_api::{Client, Group, GroupState, SourceState};
use srdma_host::{GroupFile, GroupRegion, GroupSource, PathMtu};
use srdma_wire::{Psn, Qpn};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Where a group is described.
#[derive(Clone, Debug)]
pub(super) enum GroupPlace {
    File(PathBuf),
    Controller(GroupUrl),
}

impl GroupPlace {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match GroupUrl::is_meant(text) {
            true => GroupUrl::parse(text).map(GroupPlace::Controller).map_err(|error| error.to_string()),
            false => Ok(GroupPlace::File(PathBuf::from(text))),
        }
    }
}

/// How the source of a controller's group begins.
#[derive(clap::Args)]
pub(super) struct SourceArguments {
    /// With a controller's group: have the nodes take their parts first, if the group is open.
    #[arg(long, requires = "group")]
    commit: bool,
    /// With a controller's group: wait first until it has so many receivers.
    #[arg(long, value_name = "N", requires = "group")]
    receivers: Option<u32>,
    #[command(flatten)]
    trust: TrustArguments,
}

/// A group at its controller.
pub(super) struct ControlledGroup {
    client: Client,
    id: u32,
    pub(super) file: GroupFile,
}

/// How often the controller is asked whether receivers have come.
const PERIOD: Duration = Duration::from_millis(100);
/// How long a commit may take.
const COMMIT_TIME: Duration = Duration::from_secs(60);

impl ControlledGroup {
    /// Asks the controller for the group.
    pub(super) fn find(url: &GroupUrl, arguments: &SourceArguments) -> Result<Self> {
        let client = arguments.trust.client(&url.controller)?;
        let group = client.group(url.id)?;
        Ok(ControlledGroup { file: as_file(&group).context(NOT_A_GROUP)?, client, id: url.id })
    }

    /// Waits for receivers and nodes as it was told to, and until the source may send.
    pub(super) fn begin(&self, arguments: &SourceArguments) -> Result<Source> {
        let wanted = arguments.receivers.unwrap_or(0);
        let mut group = self.client.group(self.id)?;
        while group.members.len() < wanted as usize && !is_over(&group) {
            thread::sleep(PERIOD);
            group = self.client.group(self.id)?;
        }
        if arguments.commit && group.summary.state == GroupState::Open {
            group = commit_group(&self.client, self.id, COMMIT_TIME)?;
        }
        if is_over(&group) || (arguments.commit && group.summary.state == GroupState::Open) {
            let why = group.failure.map(|failure| format!(": {failure}")).unwrap_or_default();
            bail!("group {} takes nothing to send{why}", self.id);
        }
        if group.source_state == SourceState::Ended {
            bail!("the source of group {} has ended: create another group to send again", self.id);
        }
        let source = Source::start(self.client.clone(), self.id, self.file.initial_psn)?;
        if source.released() { Ok(source) } else { bail!("group {} was closed before it was ready", self.id) }
    }
}

const NOT_A_GROUP: &str = "the controller describes a group that cannot be";

fn is_over(group: &Group) -> bool {
    matches!(group.summary.state, GroupState::Closing | GroupState::Closed)
}

/// The group as a file would describe it.
fn as_file(group: &Group) -> Option<GroupFile> {
    Some(GroupFile {
        proxy: group.summary.proxy,
        designated_qpn: Qpn::new(group.designated_qpn)?,
        initial_psn: Psn::new(group.initial_psn),
        path_mtu: PathMtu::from_octets(group.path_mtu.into())?,
        region: group.region.map(|region| GroupRegion { base: region.base, length: region.length, rkey: region.rkey }),
        source: GroupSource { address: group.source.address, qpn: Qpn::new(group.source.qpn)? },
    })
}
