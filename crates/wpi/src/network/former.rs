//! Groups that a driver of this node has left when it was killed (D213): they have no source, and occupy a Proxy
//! Address.

use super::{MAX_GROUPS, Network, blocking};
use srdma_api::{Client, ClientError, Group, GroupState};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Interval for trying again while the controller is not reached.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// RoCEv2: the kernel chooses the source address by the route to it.
const ROCEV2_PORT: u16 = 4791;

/// Closes groups of an earlier driver of this node, when the controller is reached. This driver begins none meanwhile.
pub(crate) async fn close_former_groups(network: Arc<Network>) {
    while !network.is_stopping() {
        let Ok(all) = network.groups.acquire_many(MAX_GROUPS).await else { return };
        let shared = Arc::clone(&network);
        let closed = blocking(move || close_groups(&shared.client, shared.address)).await;
        drop(all);
        match closed {
            Ok(Ok(())) => return,
            Ok(Err(error)) => tracing::debug!("groups of an earlier driver are not known: {error}"),
            Err(_) => return,
        }
        sleep(RETRY_INTERVAL).await;
    }
}

fn close_groups(client: &Client, own: Option<Ipv6Addr>) -> Result<(), ClientError> {
    let mut after = None;
    loop {
        let page = client.groups(None, after, None)?;
        for summary in page.groups.iter().filter(|group| group.name.starts_with("wpi ")) {
            let group = match client.group(summary.id) {
                Ok(group) => group,
                // It has ended meanwhile.
                Err(error) if error.problem().is_some() => continue,
                Err(error) => return Err(error),
            };
            if is_former(&group, own.or_else(|| address_toward(summary.proxy))) {
                tracing::info!("group {} of an earlier driver of this node is closed", summary.id);
                client.close_group(summary.id)?;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Whether this node is the source of a group that is not closed.
fn is_former(group: &Group, own: Option<Ipv6Addr>) -> bool {
    let is_there = !matches!(group.summary.state, GroupState::Closing | GroupState::Closed);
    is_there && own == Some(group.source.address)
}

/// The address of this node toward another one, such as a Proxy Address. Nothing is sent.
pub(crate) fn address_toward(peer: Ipv6Addr) -> Option<Ipv6Addr> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((peer, ROCEV2_PORT)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V6(address) => Some(address).filter(|address| address.to_ipv4_mapped().is_none()),
        IpAddr::V4(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_kernel_chooses_the_address() {
        assert_eq!(address_toward(Ipv6Addr::LOCALHOST), Some(Ipv6Addr::LOCALHOST));
        assert_eq!(address_toward(Ipv4Addr::LOCALHOST.to_ipv6_mapped()), None);
    }
}
