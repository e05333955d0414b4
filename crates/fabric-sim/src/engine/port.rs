//! Ports of elements, and times of events.

use srdma_frame::PortId;
use srdma_sim::link::LinkModel;
use srdma_wire::units::PS_PER_NS;

/// The other end of a link.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    /// The position of its element in its partition.
    pub(super) element: u32,
    pub(super) port: PortId,
    pub(super) partition: u16,
}

/// A port of an element, as its link sees it.
#[derive(Clone, Copy)]
pub(super) struct Port {
    /// The other end; `None` without a link.
    pub(super) peer: Option<Peer>,
    /// The port is in `sending`.
    pub(super) is_sending: bool,
    /// Time at which the transmitter becomes free.
    pub(super) free_at_ps: u64,
    pub(super) rate_bits_per_s: u64,
    pub(super) delay_ps: u64,
    /// Frames sent here are lost.
    pub(super) is_down: bool,
}

impl Port {
    pub(super) const NONE: Port =
        Port { peer: None, is_sending: false, free_at_ps: 0, rate_bits_per_s: 0, delay_ps: 0, is_down: false };

    /// A port at a link.
    pub(super) fn new(peer: Peer, model: LinkModel) -> Self {
        let delay_ps = model.delay_ns * PS_PER_NS;
        Port { peer: Some(peer), rate_bits_per_s: model.rate_bits_per_s, delay_ps, ..Port::NONE }
    }
}

/// A time in whole nanoseconds, then a port: the order of events of an element. One word, for fast comparison; the time
/// has 48 bits, three days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ArrivalTime(u64);

impl ArrivalTime {
    const PORT_BITS: u32 = 16;

    const LAST_NS: u64 = u64::MAX >> Self::PORT_BITS;

    pub(super) fn new(time_ns: u64, port: PortId) -> Self {
        ArrivalTime(time_ns.min(Self::LAST_NS) << Self::PORT_BITS | u64::from(port.0))
    }

    /// Before all events at this time.
    pub(super) fn before(time_ns: u64) -> Self {
        ArrivalTime::new(time_ns, PortId(0))
    }

    pub(super) fn time_ns(self) -> u64 {
        self.0 >> Self::PORT_BITS
    }

    pub(super) fn port(self) -> PortId {
        PortId(self.0 as u16)
    }
}
