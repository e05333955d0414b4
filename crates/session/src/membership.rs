//! A receiver of a controller's group: it joins, and learns its join point.

use anyhow::{Result, bail};
use srdma_api::{Client, Group, GroupState, MemoryRegion, NewReceiver, ReceiverState};
use srdma_host::PeerInfo;
use srdma_wire::Psn;
use std::net::Ipv6Addr;
use std::thread;
use std::time::Duration;

/// A receiver's membership of a group.
pub struct Membership {
    client: Client,
    group: Group,
}

/// Interval for asking the controller whether the receiver is a member.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Membership {
    /// Reads the group from its controller.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub fn find(client: Client, group: u32) -> Result<Self> {
        let group = client.group(group)?;
        Ok(Membership { client, group })
    }

    /// The group as it was when it was read.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Joins, and waits until the nodes have the receiver: returns the first PSN that it receives.
    ///
    /// # Errors
    ///
    /// If a request fails, the group is closed, or the receiver is not admitted.
    pub fn join(&self, info: &PeerInfo) -> Result<Psn> {
        let id = self.group.summary.id;
        let region = MemoryRegion { virtual_address: info.virtual_address, rkey: info.rkey };
        let new = NewReceiver {
            qpn: info.qpn.get(),
            path_mtu: info.path_mtu.into(),
            region: self.group.region.is_some().then_some(region),
            more_regions: Vec::new(),
            host: None,
            psn_offset: 0,
        };
        self.client.join(id, info.address, &new)?;
        loop {
            let group = self.client.group(id)?;
            let why = || group.failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
            if matches!(group.summary.state, GroupState::Closing | GroupState::Closed) {
                bail!("group {id} is closed{}", why());
            }
            match group.members.iter().find(|member| member.address == info.address) {
                Some(member) if member.state == ReceiverState::Member => {
                    return Ok(Psn::new(member.joined_psn.unwrap_or(group.initial_psn)));
                }
                Some(_) => thread::sleep(POLL_INTERVAL),
                None => bail!("group {id} did not admit {}{}", info.address, why()),
            }
        }
    }

    /// Leaves the group.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub fn leave(&self, address: Ipv6Addr) -> Result<()> {
        self.client.leave(self.group.summary.id, address)?;
        Ok(())
    }
}
