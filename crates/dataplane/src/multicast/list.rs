//! The receivers that a packet's TLVs name for this node (MT-6.2-3, D6, D8, D27).

use crate::drop::DropReason;
use srdma_group::{Receiver, ReceiverRegion};
use srdma_wire::tlv::{ReceiverView, Tlv, TlvTypes, Tlvs};
use srdma_wire::{Qpn, Srh};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// A receiver as a TLV or the group's record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedReceiver {
    pub(crate) address: Ipv6Addr,
    pub(crate) qpn: Qpn,
    pub(crate) region: Option<ReceiverRegion>,
}

impl ListedReceiver {
    /// As the group's record names it.
    pub(crate) fn of(receiver: &Receiver) -> Self {
        ListedReceiver { address: receiver.address, qpn: receiver.qpn, region: receiver.region }
    }
}

/// Memory that MR TLVs name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Naming {
    /// There is none.
    #[default]
    None,
    /// The regions of the edge's entry (D231).
    Record,
    /// A region of each receiver.
    Regions,
}

/// Receivers that a packet names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) receivers: Vec<ListedReceiver>,
    pub(crate) naming: Naming,
}

/// Collects the receivers of every End.MT TLV whose Edge Node Address is this node's, one list of all such TLVs
/// (MT-7.2-3); `None` without such a TLV. A malformed TLV for any edge makes the packet invalid, an invalid receiver
/// only at its own edge (D8).
pub(crate) fn receivers_of(
    srh: &Srh<'_>,
    types: TlvTypes,
    is_own: impl Fn(&[u8; 16]) -> bool,
) -> Result<Option<Listed>, DropReason> {
    let mut found: Option<Listed> = None;
    let mut latest = 0;
    for tlv in Tlvs::new(srh.tlvs, types) {
        match tlv.map_err(|_| DropReason::MalformedTlv)? {
            Tlv::EndMt(list, entries) if is_own(list.edge_octets()) => {
                let receivers = &mut found.get_or_insert_default().receivers;
                latest = receivers.len();
                receivers.extend(entries.iter().map(listed));
            }
            Tlv::Mr(list, regions) if is_own(list.edge_octets()) => {
                let found = found.as_mut().ok_or(DropReason::MalformedTlv)?;
                let last = found.receivers.get_mut(latest..).ok_or(DropReason::MalformedTlv)?;
                found.naming = found.naming.max(if regions.is_empty() { Naming::Record } else { Naming::Regions });
                if !regions.is_empty() && last.len() != regions.len() {
                    return Err(DropReason::MalformedTlv);
                }
                for (receiver, region) in last.iter_mut().zip(regions) {
                    let region = ReceiverRegion { base: region.virtual_address(), rkey: region.rkey() };
                    receiver.region = Some(region);
                }
            }
            Tlv::Pad1 | Tlv::PadN(_) | Tlv::Hmac(..) | Tlv::EndMt(..) | Tlv::Mr(..) | Tlv::Other(..) => {}
        }
    }
    if let Some(found) = &found {
        check(&found.receivers)?;
    }
    Ok(found)
}

fn listed(entry: &ReceiverView) -> ListedReceiver {
    ListedReceiver { address: entry.address(), qpn: entry.qpn(), region: None }
}

fn check(receivers: &[ListedReceiver]) -> Result<(), DropReason> {
    let mut seen = BTreeSet::new();
    for receiver in receivers {
        let address = receiver.address;
        let is_host = !address.is_multicast() && !address.is_unspecified() && !address.is_loopback();
        if !is_host || !receiver.qpn.is_connected() || !seen.insert(address) {
            return Err(DropReason::BadReceiver);
        }
    }
    Ok(())
}
