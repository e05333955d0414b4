//! The octets after the BTH of a Congestion Notification Packet (IBTA annex A17.9.3; FC-3-1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                 Reserved (count inside a tree)                |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              Reserved (load of a path inside a tree)          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |             Reserved (rate that a Fast CNP notifies)          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Reserved (congested flows)  |     Reserved (CNP period)     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::View;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 16 octets after a CNP's BTH.
///
/// An end host sends and receives them as zero. Between the nodes of a multicast tree the first four have the count of
/// CNPs that this one represents (D29). In a Fast CNP to a sender that processes it, the third word may have a rate
/// (D240), and the fourth one of a receiver's CNP the extent of its congestion (D284).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CnpView {
    count: U32,
    load: U32,
    rate_mbit_per_s: U32,
    flows: U16,
    period_us: U16,
}

impl View for CnpView {
    const NAME: &'static str = "CNP";
    const LEN: usize = 4 + 4 + 4 + 2 + 2;
}

impl CnpView {
    const ZERO: Self = CnpView {
        count: U32::ZERO,
        load: U32::ZERO,
        rate_mbit_per_s: U32::ZERO,
        flows: U16::ZERO,
        period_us: U16::ZERO,
    };

    /// The payload of a CNP that represents `count` of them; 0 on the last hop to a host.
    pub fn with_count(count: u32) -> Self {
        CnpView { count: U32::new(count), ..Self::ZERO }
    }

    /// The payload of a CNP that represents none, but carries the trace of a path with this load (D242).
    pub fn with_load(load: u32) -> Self {
        CnpView { load: U32::new(load), ..Self::ZERO }
    }

    /// The payload of a Fast CNP that notifies a rate, in Mbit/s; 0: none (D240).
    pub fn with_rate(rate_mbit_per_s: u32) -> Self {
        CnpView { rate_mbit_per_s: U32::new(rate_mbit_per_s), ..Self::ZERO }
    }

    /// The payload of a CNP of a receiver with so many congested flows, each of which gets one CNP in so many
    /// microseconds (D284); 0 flows: it does not tell.
    pub fn with_incast(flows: u16, period_us: u16) -> Self {
        CnpView { flows: U16::new(flows), period_us: U16::new(period_us), ..Self::ZERO }
    }

    /// Number of CNPs that this one represents, between nodes of a tree.
    pub fn count(&self) -> u32 {
        self.count.get()
    }

    /// Load of the path whose trace it carries, between nodes of a tree.
    pub fn load(&self) -> u32 {
        self.load.get()
    }

    /// The rate that a Fast CNP notifies, in Mbit/s; `None` if it notifies none.
    pub fn rate_mbit_per_s(&self) -> Option<u32> {
        Some(self.rate_mbit_per_s.get()).filter(|rate| *rate > 0)
    }

    /// The receiver's congested flows, and its period of CNPs for each in microseconds; `None` if it does not tell.
    pub fn incast(&self) -> Option<(u16, u16)> {
        Some((self.flows.get(), self.period_us.get())).filter(|(flows, _)| *flows > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// D29: the count is in the first four octets, zero for a host (MT-5.3.3-4).
    #[test]
    fn the_count_is_in_the_first_four_octets() {
        assert_eq!(CnpView::with_count(0x0102_0304).as_bytes(), [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(CnpView::with_count(0).as_bytes(), [0; 16]);
        let (view, _) = CnpView::split(&[0xFF; 16]).unwrap();
        assert_eq!(view.count(), u32::MAX);
    }

    /// D242.
    #[test]
    fn the_load_is_behind_the_count() {
        let view = CnpView::with_load(0x0102_0304);
        assert_eq!(view.as_bytes(), [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((view.count(), view.load()), (0, 0x0102_0304));
    }

    /// D240.
    #[test]
    fn the_rate_is_behind_the_load() {
        let view = CnpView::with_rate(0x0102_0304);
        assert_eq!(view.as_bytes(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!((view.count(), view.load(), view.rate_mbit_per_s()), (0, 0, Some(0x0102_0304)));
        assert_eq!(CnpView::with_count(0).rate_mbit_per_s(), None);
    }

    /// D284.
    #[test]
    fn flows_and_period_are_behind_the_rate() {
        let view = CnpView::with_incast(0x0102, 0x0304);
        assert_eq!(view.as_bytes(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!((view.rate_mbit_per_s(), view.incast()), (None, Some((0x0102, 0x0304))));
        assert_eq!(CnpView::with_rate(1).incast(), None);
    }
}
