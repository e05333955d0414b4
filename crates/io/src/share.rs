//! Shares of an interface: several workers of a node have a driver of it, each with a part of its flows.

use crate::af_xdp::QueueGroup;

/// The part of an interface's frames that a driver takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// All that arrive.
    #[default]
    All,
    /// Its part of the flows, with the drivers that [join](Share::Joining) it, so many in all: by AF_XDP those of its
    /// queues, by AF_PACKET those that the kernel's hash gives it (`PACKET_FANOUT_HASH`).
    First(u16),
    /// Its part of the flows, with the driver that was the first; its number among all, which are counted from the
    /// first. Where there are fewer queues than drivers, the last ones only send.
    Joining(ShareGroup, u16),
    /// None: it only sends.
    Sending,
}

/// What drivers of an interface share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareGroup {
    /// The flows, by a fanout group of packet sockets.
    Fanout(FanoutGroup),
    /// The queues, by AF_XDP.
    Queues(QueueGroup),
}

/// A fanout group of packet sockets, by the number that the kernel has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutGroup(pub(crate) u16);
