//! VLAN ports (IEEE 802.1Q, D257): a port whose frames have a tag, on the link of another port, its parent.
//!
//! ```text
//!  parent ──▶ tag? ──▶ VID 0: the parent, or its port for priority tags; else the port of the VLAN, or a drop
//!  VLAN port ──▶ queue of the parent, tagged with the VID and the traffic class
//! ```
//!
//! Frames without a tag skip all of it: a VLAN port has a plain queue without room, like a port with classes.

use crate::config::PortConfig;
use crate::drop::DropReason;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::EtherType;
use srdma_wire::ethernet::Vlan;

/// The highest VLAN identifier; 4,095 is reserved.
pub const MAX_VLAN_ID: u16 = 4094;

/// Octets of the two MAC addresses, behind which a tag stands.
const ADDRESSES: usize = 12;

/// The VLAN of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortVlan {
    /// The port whose link carries the frames, itself without VLAN.
    pub parent: PortId,
    /// VLAN identifier; 0: priority tags.
    pub id: u16,
}

/// The field that decides on the traffic class of received frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The DSCP.
    #[default]
    Dscp,
    /// The priority code point of the tag; the DSCP of frames without one.
    Pcp,
}

/// Why a port cannot have a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VlanError {
    /// An identifier above the highest.
    #[error("VLAN identifiers end with {MAX_VLAN_ID}, {0} is none")]
    Id(u16),
    /// The parent does not exist, or stands behind the port.
    #[error("its parent, port {0}, does not exist before it")]
    NoParent(u16),
    /// The parent is a VLAN port itself.
    #[error("its parent, port {0}, has a VLAN itself")]
    Nested(u16),
    /// Another port has the VLAN at this parent.
    #[error("port {0} has VLAN {1} at this parent")]
    Taken(u16, u16),
}

/// A port among [`Vlans`].
#[derive(Debug, Default)]
struct Member {
    vlan: Option<PortVlan>,
    trust: Trust,
    /// VLANs on its link, with their ports.
    children: Vec<(u16, PortId)>,
}

/// The VLANs of all ports, by [`PortId`].
#[derive(Debug, Default)]
pub(crate) struct Vlans {
    /// Whether a port has a VLAN: otherwise no frame has to be looked up among the members.
    is_used: bool,
    members: Vec<Member>,
}

impl Vlans {
    /// Why the next port cannot have its VLAN.
    pub(crate) fn check(&self, port: &PortConfig) -> Result<(), VlanError> {
        let Some(PortVlan { parent, id }) = port.vlan else { return Ok(()) };
        if id > MAX_VLAN_ID {
            return Err(VlanError::Id(id));
        }
        let Some(member) = self.members.get(parent.index()) else { return Err(VlanError::NoParent(parent.0)) };
        if member.vlan.is_some() {
            return Err(VlanError::Nested(parent.0));
        }
        match member.children.iter().find(|(other, _)| *other == id) {
            Some((_, port)) => Err(VlanError::Taken(port.0, id)),
            None => Ok(()),
        }
    }

    /// Adds the next port. One whose VLAN does not pass the [check](Self::check) receives nothing.
    pub(crate) fn add(&mut self, port: &PortConfig) {
        let number = PortId(self.members.len() as u16);
        self.is_used |= port.vlan.is_some();
        if self.check(port).is_ok()
            && let Some(PortVlan { parent, id }) = port.vlan
        {
            self.members[parent.index()].children.push((id, number));
        }
        self.members.push(Member { vlan: port.vlan, trust: port.trust, children: Vec::new() });
    }

    /// The port whose link carries the frames of a port, and the identifier in their tags.
    #[inline]
    pub(crate) fn carrier(&self, port: PortId) -> (PortId, Option<u16>) {
        if !self.is_used {
            return (port, None);
        }
        match self.members.get(port.index()).and_then(|member| member.vlan) {
            Some(vlan) => (vlan.parent, Some(vlan.id)),
            None => (port, None),
        }
    }

    /// Whether VLAN ports have their frames on the link of a port.
    pub(crate) fn is_parent(&self, port: PortId) -> bool {
        self.members.get(port.index()).is_some_and(|member| !member.children.is_empty())
    }

    /// Whether a port has a VLAN, or carries one.
    pub(crate) fn concerns(&self, port: PortId) -> bool {
        self.carrier(port).1.is_some() || self.is_parent(port)
    }

    /// The port to which a frame with this tag belongs that came by the link of `port`, and its class if the tag
    /// decides on it. Frames with a priority tag belong to the port itself, unless it has a port for them.
    pub(crate) fn arrival(&self, port: PortId, tag: &Vlan) -> Option<(PortId, Option<u8>)> {
        let link = self.members.get(port.index())?;
        let child = link.children.iter().find(|(id, _)| *id == tag.id).map(|(_, child)| *child);
        let arrival = child.or((tag.id == 0).then_some(port))?;
        let class = match self.members.get(arrival.index())?.trust {
            Trust::Pcp => Some(tag.priority),
            Trust::Dscp => None,
        };
        Some((arrival, class))
    }
}

/// Whether a frame has a tag.
pub(crate) fn is_tagged(head: &[u8]) -> bool {
    head.get(ADDRESSES..ADDRESSES + 2) == Some(&EtherType::VLAN.0.to_be_bytes())
}

/// Takes the tag out of a frame that [has one](is_tagged).
pub(crate) fn take_tag(frame: &mut Frame, pool: &mut Pool) -> Result<Vlan, DropReason> {
    let head = frame.head_mut(pool);
    let behind = head.get(ADDRESSES + 2..).ok_or(DropReason::Truncated)?;
    let (tag, _) = Vlan::parse(behind).map_err(|_| DropReason::Truncated)?;
    head.copy_within(..ADDRESSES, Vlan::LEN);
    frame.pull(Vlan::LEN);
    Ok(tag)
}

/// Puts a tag into a frame; `false` when there is no headroom for it.
pub(crate) fn put_tag(frame: &mut Frame, id: u16, class: usize, pool: &mut Pool) -> bool {
    if !frame.push(Vlan::LEN) {
        return false;
    }
    let head = frame.head_mut(pool);
    let priority = (class as u16) << 13;
    head.copy_within(Vlan::LEN..Vlan::LEN + ADDRESSES, 0);
    head[ADDRESSES..ADDRESSES + 2].copy_from_slice(&EtherType::VLAN.0.to_be_bytes());
    head[ADDRESSES + 2..ADDRESSES + 4].copy_from_slice(&(priority | id).to_be_bytes());
    true
}
