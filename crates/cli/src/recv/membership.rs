//! A receiver of a controller's group: it joins by itself, and is told where it joined.

use crate::remote::{GroupUrl, TrustArguments};
use anyhow::{Result, bail};
use srdma_api::{Client, Group, GroupState, MemoryRegion, NewReceiver, ReceiverState};
use srdma_host::PeerInfo;
use srdma_wire::Psn;
use std::net::Ipv6Addr;
use std::thread;
use std::time::Duration;

/// A group of a controller.
#[derive(clap::Args)]
pub(super) struct GroupArguments {
    /// A controller's group, such as http://localhost:8470/7: joins it, with the path MTU that it has.
    #[arg(long, value_name = "URL", conflicts_with_all = ["peer", "peer_qpn", "psn", "path_mtu"])]
    group: Option<String>,
    /// With --group: leave the group at the end.
    #[arg(long, requires = "group")]
    leave: bool,
    #[command(flatten)]
    trust: TrustArguments,
}

impl GroupArguments {
    /// The group that is meant, as it is now.
    pub(super) fn find(&self) -> Result<Option<Membership>> {
        let Some(text) = &self.group else { return Ok(None) };
        let url = GroupUrl::parse(text)?;
        let client = self.trust.client(&url.controller)?;
        let group = client.group(url.id)?;
        Ok(Some(Membership { client, group, leaves: self.leave }))
    }
}

/// What a receiver has to do with its group.
pub(super) struct Membership {
    client: Client,
    pub(super) group: Group,
    leaves: bool,
}

/// How often the controller is asked whether the receiver is a member.
const PERIOD: Duration = Duration::from_millis(50);

impl Membership {
    /// Joins, and waits until the nodes know of it: returns the PSN that comes first.
    pub(super) fn join(&self, info: &PeerInfo) -> Result<Psn> {
        let id = self.group.summary.id;
        let region = MemoryRegion { virtual_address: info.virtual_address, rkey: info.rkey };
        let new = NewReceiver {
            qpn: info.qpn.get(),
            path_mtu: info.path_mtu.octets() as u16,
            region: self.group.region.is_some().then_some(region),
        };
        self.client.join(id, info.address, &new)?;
        loop {
            let group = self.client.group(id)?;
            if matches!(group.summary.state, GroupState::Closing | GroupState::Closed) {
                let why = group.failure.map(|failure| format!(": {failure}")).unwrap_or_default();
                bail!("group {id} is closed{why}");
            }
            match group.members.iter().find(|member| member.address == info.address) {
                Some(member) if member.state == ReceiverState::Member => {
                    return Ok(Psn::new(member.joined_psn.unwrap_or(group.initial_psn)));
                }
                Some(_) => thread::sleep(PERIOD),
                None => {
                    let why = group.failure.map(|failure| format!(": {failure}")).unwrap_or_default();
                    bail!("group {id} did not take {} in{why}", info.address);
                }
            }
        }
    }

    /// Leaves, if it was told to.
    pub(super) fn end(&self, address: Ipv6Addr) -> Result<()> {
        if self.leaves {
            self.client.leave(self.group.summary.id, address)?;
        }
        Ok(())
    }
}
