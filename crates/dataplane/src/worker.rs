//! Workers: several nodes that are one to their neighbours. Each has its own ports' queues, pool and thread (D208).
//!
//! Plain packets are processed by the worker that receives them. The state of a group has one owner, and so have BFD
//! sessions and packets that are reassembled: another worker that receives such a packet hands it over, as it is then,
//! with what was found out about it.
//!
//! ```text
//!   wire ─▶ worker 0 ─▶ wire
//!             │  ▲
//!             ▼  │  packets of groups that the other owns
//!   wire ─▶ worker 1 ─▶ wire
//! ```
//!
//! The owner of a group follows from its Proxy Address alone: no worker asks another.

use crate::context::PacketContext;
use crate::headers::Place;
use srdma_frame::Frame;
use srdma_wire::Instant;
use std::net::Ipv6Addr;

/// The largest number of workers of a node.
pub const MAX_WORKERS: u16 = 64;

/// The worker that owns BFD sessions.
pub(crate) const FIRST: u16 = 0;

/// A worker among those of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    index: u16,
    count: u16,
}

impl Worker {
    /// The only one of a node.
    pub const ALONE: Worker = Worker { index: 0, count: 1 };

    /// The workers of a node that has `count` of them, at least one and at most [`MAX_WORKERS`].
    pub fn all(count: u16) -> impl Iterator<Item = Worker> {
        let count = count.clamp(1, MAX_WORKERS);
        (0..count).map(move |index| Worker { index, count })
    }

    /// Its position among the workers of the node.
    pub fn index(self) -> usize {
        usize::from(self.index)
    }

    /// Number of workers of the node.
    pub fn count(self) -> usize {
        usize::from(self.count)
    }

    /// Whether it is the only one.
    #[inline]
    pub fn is_alone(self) -> bool {
        self.count == 1
    }

    /// Whether it owns what belongs to no group, such as BFD sessions.
    pub fn is_first(self) -> bool {
        self.index == FIRST
    }

    /// Whether it owns the group with this Proxy Address.
    pub fn owns(self, proxy: Ipv6Addr) -> bool {
        self.owner_of(&proxy.octets()) == self.index
    }

    /// The worker that owns the group with this Proxy Address.
    #[inline]
    pub(crate) fn owner_of(self, proxy: &[u8; 16]) -> u16 {
        self.owner_of_bits(u128::from_be_bytes(*proxy))
    }

    /// The worker that reassembles the packet of this source and Identification (D297).
    #[cold]
    pub(crate) fn reassembler_of(self, source: &[u8; 16], identification: u32) -> u16 {
        self.owner_of_bits(u128::from_be_bytes(*source) ^ u128::from(identification))
    }

    #[inline]
    fn owner_of_bits(self, bits: u128) -> u16 {
        // The finaliser of splitmix64 (Steele, Lea and Flood 2014).
        let mut mixed = (bits as u64) ^ ((bits >> 64) as u64).rotate_left(32);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(self.count)) >> 64) as u16
    }

    /// The same for any other worker of the node.
    pub(crate) fn other(self, index: u16) -> Option<u16> {
        (index != self.index).then_some(index)
    }
}

impl Default for Worker {
    fn default() -> Self {
        Worker::ALONE
    }
}

/// A packet for another worker of the node.
#[derive(Debug)]
pub struct Handover {
    /// Index of that worker.
    pub to: usize,
    /// For [`Node::take_over`](crate::Node::take_over).
    pub note: HandoverNote,
    /// The packet.
    pub frame: Frame,
}

/// What the worker that received a packet has found out about it.
#[derive(Clone, Copy, Debug)]
pub struct HandoverNote {
    pub(crate) context: PacketContext,
    pub(crate) kind: HandoverKind,
}

/// The processing that a handed-over packet needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandoverKind {
    /// Its destination is a Proxy Address.
    Proxied,
    /// Its destination is an End.Replicate SID.
    Replicate,
    /// Its destination is an End.MT SID.
    EndMt { require_hmac: bool },
    /// Its destination is an IPv6 multicast group.
    Multicast,
    /// Its destination is the node itself.
    Local,
    /// It is a fragment to a SID, whose Fragment header is there.
    Fragment(Place),
}

impl HandoverNote {
    /// The context of the packet at the time at which another worker processes it.
    pub(crate) fn context_at(&self, now: Instant) -> PacketContext {
        PacketContext { now, ..self.context }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_one_owner_and_owners_share_evenly() {
        for count in [1, 2, 3, 8, MAX_WORKERS] {
            let mut owned = vec![0_u32; usize::from(count)];
            for group in 0..10_000_u32 {
                let proxy = Ipv6Addr::from(0x2001_0db8_00ff_u128 << 80 | u128::from(group));
                let owners: Vec<Worker> = Worker::all(count).filter(|worker| worker.owns(proxy)).collect();
                let [owner] = owners[..] else { panic!("{} owners", owners.len()) };
                owned[owner.index()] += 1;
            }
            let even = 10_000 / u32::from(count);
            assert!(owned.iter().all(|owned| owned.abs_diff(even) <= even / 2 + 20), "{count}: {owned:?}");
        }
    }

    #[test]
    fn a_node_has_at_least_one_worker_and_no_more_than_there_may_be() {
        assert_eq!(Worker::all(0).collect::<Vec<_>>(), [Worker::ALONE]);
        assert_eq!(Worker::all(u16::MAX).count(), usize::from(MAX_WORKERS));
    }
}
