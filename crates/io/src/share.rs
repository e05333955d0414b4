//! Shares of an interface: several workers of a node have a driver of it, each with a part of its flows.

/// The part of an interface's frames that a driver takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// All that arrive.
    #[default]
    All,
    /// Its part of the flows, by the kernel's hash (`PACKET_FANOUT_HASH`), with the drivers that
    /// [join](Share::Joining) it. Drivers that cannot share take all.
    First,
    /// Its part of the flows, in the fanout group that a first driver has opened.
    Joining(FanoutGroup),
    /// None: it only sends.
    Sending,
}

/// A fanout group of packet sockets, by the number that the kernel has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutGroup(pub(crate) u16);
