//! Receiver lists, and their size in packets (D7).

use crate::group::Receiver;
use serde::{Deserialize, Serialize};
use srdma_wire::tlv::MAX_RECEIVERS;
use srdma_wire::{SrhValue, View};
use std::net::Ipv6Addr;

/// A receiver's memory for the group (D27). Its length is that of the group's [`SourceRegion`](crate::SourceRegion);
/// packets have it as a [`RegionView`](srdma_wire::tlv::RegionView).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverRegion {
    /// Virtual address that corresponds to the group's base address.
    pub base: u64,
    /// Key of the region.
    pub rkey: u32,
}

/// The receivers of one edge, in the order of its TLVs.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeList {
    /// Edge Node Address.
    pub edge: Ipv6Addr,
    pub receivers: Vec<Receiver>,
}

/// Octets that the tree adds to an inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Outer IPv6 header.
    pub ipv6_octets: usize,
    /// SRH with all its TLVs.
    pub srh_octets: usize,
}

impl Overhead {
    /// Both together.
    pub fn octets(&self) -> usize {
        self.ipv6_octets + self.srh_octets
    }
}

/// Length of the group's SRH: one segment, the TLVs of `lists` (none: provisioned), and the HMAC TLV. `None` when it
/// exceeds 2,048 octets. MR TLVs have the regions that the receivers have here: all of them, or none (D231).
pub fn srh_len_octets(lists: &[EdgeList], with_regions: bool, with_hmac: bool) -> Option<usize> {
    const HMAC_OCTETS: usize = 40;
    let mut tlv_octets = if with_hmac { HMAC_OCTETS } else { 0 };
    for receivers in lists.iter().flat_map(|list| list.receivers.chunks(MAX_RECEIVERS)) {
        tlv_octets += (24 + 20 * receivers.len()).next_multiple_of(8);
        if with_regions {
            let regions = receivers.iter().filter(|receiver| receiver.region.is_some()).count();
            tlv_octets += (24 + 12 * regions).next_multiple_of(8);
        }
    }
    SrhValue::len_octets(1, tlv_octets)
}

impl Overhead {
    /// With an SRH of so many octets.
    pub fn of(srh_octets: usize) -> Self {
        Overhead { ipv6_octets: srdma_wire::Ipv6View::LEN, srh_octets }
    }
}
