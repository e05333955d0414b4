//! Changes that can be requested, those that wait, and the reasons for rejecting one.

use crate::group::{Group, GroupError, Receiver, Record};
use crate::lists::ReceiverRegion;
use crate::psn_offset::PsnOffset;
use crate::tree::{NodeRole, Tree, TreeError};
use srdma_wire::{Psn, Qpn};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// A receiver that joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// Unicast address.
    pub address: Ipv6Addr,
    /// Its own queue pair.
    pub qpn: Qpn,
    /// Its memory region, if the group carries WRITE.
    pub region: Option<ReceiverRegion>,
    /// Its memory for the group's further regions (D191).
    pub more_regions: Vec<ReceiverRegion>,
    /// Distance of its queue pair's PSNs from the group's (D270).
    pub psn_offset: PsnOffset,
    /// Loopback of its edge.
    pub edge: Ipv6Addr,
    /// When it joins.
    pub admission: Admission,
}

/// When a newcomer joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// As soon as the source is quiet.
    #[default]
    AtOnce,
    /// It is reserved when the source is quiet, and joins when it has said that it is ready to receive from J on
    /// (D187).
    WhenReady,
}

/// A node that is added to the tree, or an edge of it that becomes a bud node (D246).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// Its display name.
    pub name: String,
    pub loopback: Ipv6Addr,
    /// Its SID for the group's data.
    pub sid: Ipv6Addr,
    /// Loopback of its parent.
    pub parent: Ipv6Addr,
    /// SID of the parent for encapsulated responses, if the parent is not a neighbour (D12).
    pub parent_sid: Option<Ipv6Addr>,
    /// Its role.
    pub role: NodeRole,
    /// IPv6 multicast group for data to the children (D3).
    pub multicast: Option<Ipv6Addr>,
    /// The node has a retransmission buffer (D150).
    pub can_repair: bool,
}

/// A node that moves to another parent, with its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehoming {
    /// Loopback of the node.
    pub node: Ipv6Addr,
    /// Loopback of its new parent.
    pub parent: Ipv6Addr,
    /// SID of the new parent for encapsulated responses, if it is not a neighbour (D12).
    pub parent_sid: Option<Ipv6Addr>,
    /// Nodes that are added to the tree for it, between the new parent and the tree.
    pub new_nodes: Vec<NewNode>,
    /// Largest IPv6 packet that every link of the tree carries then, in octets; `None`: unchanged.
    pub link_mtu: Option<u16>,
}

/// Receivers that move to other edges, to which they are attached as well (D280).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Address of each receiver, and loopback of its next edge.
    pub receivers: Vec<(Ipv6Addr, Ipv6Addr)>,
    /// Nodes that the tree needs for them.
    pub new_nodes: Vec<NewNode>,
    /// As for a re-homing.
    pub link_mtu: Option<u16>,
}

/// Another headend, to which the source is attached as well, with a tree from it (D289).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// All nodes of the group then.
    pub tree: Tree,
    /// Receivers that move with it, and the loopbacks of their next edges; the others keep theirs.
    pub receivers: Vec<(Ipv6Addr, Ipv6Addr)>,
    /// As for a re-homing.
    pub link_mtu: Option<u16>,
}

/// Reason for which a change is rejected.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The group is closed or closing.
    #[error("the group is closed")]
    Closed,
    /// Too many changes wait.
    #[error("{MOST_WAITING} changes wait already: ask again when one is done")]
    Busy,
    #[error("no receiver is named")]
    Nothing,
    #[error("{0} is not a receiver of the group")]
    NotAReceiver(Ipv6Addr),
    /// Fewer receivers than the policy permits would remain (D25).
    #[error("{left} receivers would be left, `min_receivers` is {least}: close the group, or lower the policy's bound")]
    TooFew {
        /// Receivers that would remain.
        left: usize,
        /// The minimum of the policy.
        least: usize,
    },
    /// Not in the tree.
    #[error("{0} is not the loopback of a node of the tree")]
    NotANode(Ipv6Addr),
    /// The headend has no parent.
    #[error("{0} is the headend: it cannot hang below another node")]
    Headend(Ipv6Addr),
    /// Nothing to replace.
    #[error("{0} is the headend already")]
    IsHeadend(Ipv6Addr),
    /// A tree was computed for another record.
    #[error("the record has changed since the tree was computed")]
    Outdated,
    /// Nothing to change.
    #[error("{node} hangs below {parent} already")]
    InPlace { node: Ipv6Addr, parent: Ipv6Addr },
    #[error("receiver {receiver} is at edge {edge} already")]
    AtEdge { receiver: Ipv6Addr, edge: Ipv6Addr },
    #[error("{parent} hangs below {node} itself, so it cannot be its parent")]
    Loop {
        node: Ipv6Addr,
        /// The requested parent.
        parent: Ipv6Addr,
    },
    /// The next epoch's number does not exist.
    #[error("epoch {0} is the last: close the group and create another")]
    LastEpoch(u32),
    /// The nodes would not form a tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The record would be invalid.
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// Limit of waiting changes.
pub(super) const MOST_WAITING: usize = 64;

/// Distance of the source from J, in packets, at which the mark of a join is removed. Equal to the distance at which
/// nodes detect old PSNs (R1).
const JOIN_OVER: i32 = 1 << 22;

/// A waiting change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Evict(BTreeSet<Ipv6Addr>),
    Rehome {
        rehoming: Rehoming,
        /// Epoch of the stored record when it was requested.
        of_epoch: u32,
    },
    Move {
        moving: Move,
        /// As for a re-homing.
        of_epoch: u32,
    },
    Replace {
        replacement: Replacement,
        /// As for a re-homing.
        of_epoch: u32,
    },
    Join {
        newcomers: Vec<Newcomer>,
        new_nodes: Vec<NewNode>,
        link_mtu: Option<u16>,
        /// As for a re-homing.
        of_epoch: u32,
    },
    /// Everything before this PSN has been acknowledged to the source: old join points can be removed.
    Settle(Psn),
    /// Nodes are renewed, as by every change.
    Renew,
}

impl Wanted {
    /// The receivers that it evicts.
    pub(super) fn evicted(self) -> BTreeSet<Ipv6Addr> {
        match self {
            Wanted::Evict(receivers) => receivers,
            Wanted::Rehome { .. }
            | Wanted::Move { .. }
            | Wanted::Replace { .. }
            | Wanted::Join { .. }
            | Wanted::Settle(_)
            | Wanted::Renew => BTreeSet::new(),
        }
    }

    /// Whether it re-homes this node.
    fn moves(&self, node: Ipv6Addr) -> bool {
        match self {
            Wanted::Rehome { rehoming, .. } => rehoming.node == node,
            Wanted::Evict(_)
            | Wanted::Move { .. }
            | Wanted::Replace { .. }
            | Wanted::Join { .. }
            | Wanted::Settle(_)
            | Wanted::Renew => false,
        }
    }

    /// The newcomers that have to say that they are ready.
    pub(super) fn reserved(&self) -> impl Iterator<Item = Ipv6Addr> {
        let newcomers = match self {
            Wanted::Join { newcomers, .. } => newcomers.as_slice(),
            Wanted::Evict(_)
            | Wanted::Rehome { .. }
            | Wanted::Move { .. }
            | Wanted::Replace { .. }
            | Wanted::Settle(_)
            | Wanted::Renew => &[],
        };
        newcomers.iter().filter(|one| one.admission == Admission::WhenReady).map(|one| one.address)
    }

    pub(super) fn needs_quiet_source(&self) -> bool {
        match self {
            Wanted::Join { .. } => true,
            Wanted::Evict(_)
            | Wanted::Rehome { .. }
            | Wanted::Move { .. }
            | Wanted::Replace { .. }
            | Wanted::Settle(_)
            | Wanted::Renew => false,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting(VecDeque<Wanted>);

impl Waiting {
    /// Merges evictions and renewals; of two re-homings of a node, and of two replacements of the headend, the later
    /// one remains.
    pub(super) fn push(&mut self, wanted: Wanted) -> Result<(), ChangeError> {
        for waits in &mut self.0 {
            match (waits, &wanted) {
                (Wanted::Evict(set), Wanted::Evict(more)) => {
                    set.extend(more);
                    return Ok(());
                }
                (waits @ Wanted::Rehome { .. }, Wanted::Rehome { rehoming, .. }) if waits.moves(rehoming.node) => {
                    *waits = wanted;
                    return Ok(());
                }
                (waits @ Wanted::Replace { .. }, Wanted::Replace { .. }) => {
                    *waits = wanted;
                    return Ok(());
                }
                (Wanted::Settle(psn), Wanted::Settle(newer)) => {
                    *psn = *newer;
                    return Ok(());
                }
                (Wanted::Renew, Wanted::Renew) => return Ok(()),
                (
                    Wanted::Evict(_)
                    | Wanted::Rehome { .. }
                    | Wanted::Move { .. }
                    | Wanted::Replace { .. }
                    | Wanted::Join { .. }
                    | Wanted::Settle(_)
                    | Wanted::Renew,
                    _,
                ) => {}
            }
        }
        if self.0.len() >= MOST_WAITING {
            return Err(ChangeError::Busy);
        }
        self.0.push_back(wanted);
        Ok(())
    }

    /// The waiting changes in the order in which they are tried. Changes that need a quiet source come last: the source
    /// may be waiting for a dead receiver or node that another change removes.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, &Wanted)> {
        let any = self.0.iter().enumerate().filter(|(_, wanted)| !wanted.needs_quiet_source());
        any.chain(self.0.iter().enumerate().filter(|(_, wanted)| wanted.needs_quiet_source()))
    }

    pub(super) fn remove(&mut self, position: usize) -> Option<Wanted> {
        self.0.remove(position)
    }

    /// Puts a change back that could not be completed.
    pub(super) fn put_back(&mut self, wanted: Wanted) {
        self.0.push_front(wanted);
    }

    /// Removes these changes; returns whether any was removed.
    pub(super) fn remove_those_that_need_a_quiet_source(&mut self) -> bool {
        let before = self.0.len();
        self.0.retain(|wanted| !wanted.needs_quiet_source());
        self.0.len() < before
    }

    /// Separates the evictions of those that are no members yet: they wait for the joins.
    pub(super) fn separate_evictions(&mut self, is_member: impl Fn(&Ipv6Addr) -> bool) {
        let mut later = BTreeSet::new();
        for wanted in &mut self.0 {
            match wanted {
                Wanted::Evict(set) if set.iter().any(&is_member) => {
                    later.extend(set.extract_if(.., |receiver| !is_member(receiver)));
                }
                Wanted::Evict(_)
                | Wanted::Rehome { .. }
                | Wanted::Move { .. }
                | Wanted::Replace { .. }
                | Wanted::Join { .. }
                | Wanted::Settle(_)
                | Wanted::Renew => {}
            }
        }
        if !later.is_empty() {
            self.0.push_back(Wanted::Evict(later));
        }
    }

    /// The receivers with a waiting join.
    pub(super) fn newcomers(&self) -> BTreeSet<Ipv6Addr> {
        let joins = self.0.iter().flat_map(|wanted| match wanted {
            Wanted::Join { newcomers, .. } => newcomers.as_slice(),
            Wanted::Evict(_)
            | Wanted::Rehome { .. }
            | Wanted::Move { .. }
            | Wanted::Replace { .. }
            | Wanted::Settle(_)
            | Wanted::Renew => &[],
        });
        joins.map(|newcomer| newcomer.address).collect()
    }

    /// The waiting newcomers that join when they are ready.
    pub(super) fn reserved(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.0.iter().flat_map(Wanted::reserved)
    }

    /// Removes these newcomers from the joins that wait, if they join when they are ready; returns those that were
    /// found. The nodes that were to be added for them alone are left out by the draft.
    pub(super) fn withdraw(&mut self, receivers: &BTreeSet<Ipv6Addr>) -> BTreeSet<Ipv6Addr> {
        let found: BTreeSet<Ipv6Addr> = self.reserved().filter(|address| receivers.contains(address)).collect();
        self.0.retain_mut(|wanted| match wanted {
            Wanted::Join { newcomers, .. } => {
                newcomers.retain(|newcomer| !found.contains(&newcomer.address));
                !newcomers.is_empty()
            }
            Wanted::Evict(_)
            | Wanted::Rehome { .. }
            | Wanted::Move { .. }
            | Wanted::Replace { .. }
            | Wanted::Settle(_)
            | Wanted::Renew => true,
        });
        found
    }

    /// The receivers with a waiting eviction.
    pub(super) fn evictions(&self) -> BTreeSet<Ipv6Addr> {
        let sets = self.0.iter().filter_map(|wanted| match wanted {
            Wanted::Evict(set) => Some(set),
            Wanted::Rehome { .. }
            | Wanted::Move { .. }
            | Wanted::Replace { .. }
            | Wanted::Join { .. }
            | Wanted::Settle(_)
            | Wanted::Renew => None,
        });
        sets.flatten().copied().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Whether the mark of a receiver's join can be removed when everything before `psn` is acknowledged to the source.
pub(super) fn is_over(receiver: &Receiver, psn: Psn) -> bool {
    receiver.joined.is_some_and(|join| psn.distance_from(join.psn) >= JOIN_OVER)
}

/// Whether this is the address of a receiver of the group.
pub(super) fn is_receiver(group: &Group, address: Ipv6Addr) -> bool {
    group.record().receivers.iter().any(|receiver| receiver.address == address)
}

/// Checks that enough receivers of the group remain (D25).
pub(super) fn check_eviction(group: &Group, gone: &BTreeSet<Ipv6Addr>) -> Result<(), ChangeError> {
    let Record { receivers, policy, .. } = group.record();
    let left = receivers.iter().filter(|receiver| !gone.contains(&receiver.address)).count();
    let least = (policy.min_receivers as usize).max(1);
    if left < receivers.len().min(least) { Err(ChangeError::TooFew { left, least }) } else { Ok(()) }
}
