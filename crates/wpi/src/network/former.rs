//! Groups without a source (D213): those that a driver of this node has left when it was killed, and those that could
//! not be closed, since the controller was away. They occupy Proxy Addresses.

use super::{MAX_GROUPS, Network, blocking};
use srdma_api::{Client, ClientError, Group, GroupState};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Interval for trying again while the controller is not reached.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Interval for looking for groups that could not be closed.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// RoCEv2: the kernel chooses the source address by the route to it.
const ROCEV2_PORT: u16 = 4791;

/// Which groups of this node have no source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// All: this driver has just started, and has none.
    Former,
    /// Those of which the controller says so.
    Silent,
}

/// Closes groups of this node without a source, as long as the driver runs. It is in no group itself meanwhile.
pub(crate) async fn close_former_groups(network: Arc<Network>) {
    let mut which = Which::Former;
    while !network.is_stopping() {
        let all = match which {
            Which::Former => network.groups.acquire_many(MAX_GROUPS).await.ok(),
            // Those that are in progress are not held up.
            Which::Silent => network.groups.try_acquire_many(MAX_GROUPS).ok(),
        };
        let mut pause = LOOK_INTERVAL;
        if let Some(all) = all {
            let shared = Arc::clone(&network);
            let closed = blocking(move || close_groups(&shared.client, shared.address, which)).await;
            drop(all);
            match closed {
                Ok(Ok(())) => which = Which::Silent,
                Ok(Err(error)) => {
                    tracing::debug!("groups without a source are not known: {error}");
                    pause = RETRY_INTERVAL;
                }
                Err(_) => return,
            }
        }
        sleep(pause).await;
    }
}

fn close_groups(client: &Client, own: Option<Ipv6Addr>, which: Which) -> Result<(), ClientError> {
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
            if has_no_source(&group, own.or_else(|| address_toward(summary.proxy)), which) {
                tracing::info!("group {}, which has no source any more, is closed", summary.id);
                client.close_group(summary.id)?;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Whether a group is one of this node, and has no source.
fn has_no_source(group: &Group, own: Option<Ipv6Addr>, which: Which) -> bool {
    let is_there = !matches!(group.summary.state, GroupState::Closing | GroupState::Closed);
    is_there && own == Some(group.source.address) && (which == Which::Former || group.source_is_silent)
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

    fn group(change: impl FnOnce(&mut Group)) -> Group {
        let value = serde_json::json!({
            "id": 7, "name": "wpi m 00", "tenant": "t", "state": "ready", "proxy": "2001:db8:cc::1", "receivers": 1,
            "epoch": 1, "version": 1, "source": { "address": "2001:db8::1", "qpn": 300 }, "designated_qpn": 400,
            "initial_psn": 0, "path_mtu": 4096, "policy": srdma::Policy::default(), "members": [], "awaited": []
        });
        let mut group: Group = serde_json::from_value(value).expect("a group");
        change(&mut group);
        group
    }

    #[test]
    fn groups_of_others_and_of_living_sources_stay() {
        let own = "2001:db8::1".parse().ok();
        let silent = group(|group| group.source_is_silent = true);
        let live = group(|_| {});
        assert!(has_no_source(&silent, own, Which::Silent) && has_no_source(&silent, own, Which::Former));
        assert!(!has_no_source(&live, own, Which::Silent));
        assert!(has_no_source(&live, own, Which::Former), "this driver has none");
        for which in [Which::Silent, Which::Former] {
            assert!(!has_no_source(&silent, "2001:db8::2".parse().ok(), which) && !has_no_source(&silent, None, which));
            let closing = group(|group| group.summary.state = GroupState::Closing);
            assert!(!has_no_source(&closing, own, which));
        }
    }

    #[test]
    fn the_kernel_chooses_the_address() {
        assert_eq!(address_toward(Ipv6Addr::LOCALHOST), Some(Ipv6Addr::LOCALHOST));
        assert_eq!(address_toward(Ipv4Addr::LOCALHOST.to_ipv6_mapped()), None);
    }
}
