//! Conflicts between groups, which no single record shows.

use crate::group::{Group, GroupId};
use srdma_wire::Qpn;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A conflict between two groups.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConflictError {
    /// Nodes identify groups by number.
    #[error("group {} exists twice: a number belongs to one group", .0.0)]
    Id(GroupId),
    /// A Proxy Address belongs to one group and is no host's address (D2).
    #[error(
        "Proxy Address {proxy} of group {} is {whose} in group {}: it belongs to its group alone (D2)",
        .of.0, .other.0
    )]
    Proxy {
        proxy: Ipv6Addr,
        /// Whose Proxy Address it is.
        of: GroupId,
        /// The role of the queue pair there.
        whose: String,
        other: GroupId,
    },
    /// A queue pair is connected to one Proxy Address.
    #[error(
        "queue pair {qpn} of {address} is in groups {} and {}: it is connected to one Proxy Address (D2)",
        .one.0, .other.0
    )]
    QueuePair { address: Ipv6Addr, qpn: Qpn, one: GroupId, other: GroupId },
    /// A Replication SID identifies one group.
    #[error(
        "SID {sid} replicates for groups {} and {}: a Replication SID belongs to one group (RFC 9524)",
        .one.0, .other.0
    )]
    ReplicationSid { sid: Ipv6Addr, one: GroupId, other: GroupId },
}

/// Checks that groups can be in one network.
pub fn check_conflicts(groups: &[Group]) -> Result<(), ConflictError> {
    let mut proxies = BTreeMap::new();
    let mut ids = BTreeMap::new();
    for group in groups {
        let record = group.record();
        if ids.insert(record.id, ()).is_some() {
            return Err(ConflictError::Id(record.id));
        }
        if let Some(other) = proxies.insert(record.proxy, record.id) {
            let whose = "the Proxy Address".to_string();
            return Err(ConflictError::Proxy { proxy: record.proxy, of: other, whose, other: record.id });
        }
    }
    let (mut queue_pairs, mut sids) = (BTreeMap::new(), BTreeMap::new());
    for group in groups {
        let record = group.record();
        let other = record.id;
        for (proxy, whose) in addresses(group) {
            if let Some(of) = proxies.get(&proxy).copied().filter(|of| *of != other) {
                return Err(ConflictError::Proxy { proxy, of, whose, other });
            }
        }
        let receivers = record.receivers.iter().map(|receiver| (receiver.address, receiver.qpn));
        for (address, qpn) in receivers.chain([(record.source.address, record.source.qpn)]) {
            if let Some(one) = queue_pairs.insert((address, qpn), other).filter(|one| *one != other) {
                return Err(ConflictError::QueuePair { address, qpn, one, other });
            }
        }
        for node in record.tree.nodes().iter().filter(|node| node.role.replicates()) {
            if let Some(one) = sids.insert(node.sid, other).filter(|one| *one != other) {
                return Err(ConflictError::ReplicationSid { sid: node.sid, one, other });
            }
        }
    }
    Ok(())
}

/// All addresses of a group but its Proxy Address.
fn addresses(group: &Group) -> impl Iterator<Item = (Ipv6Addr, String)> {
    let record = group.record();
    let nodes = record.tree.nodes().iter();
    let nodes = nodes.flat_map(|node| [node.loopback, node.sid].map(|address| (address, node.name.clone())));
    let receivers = record.receivers.iter().map(|receiver| (receiver.address, "a receiver".to_string()));
    nodes.chain(receivers).chain([(record.source.address, "the source".to_string())])
}
