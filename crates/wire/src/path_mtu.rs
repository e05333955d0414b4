//! RDMA path MTU: octets of payload in a packet, headers not counted. Never called just MTU (D7).

use core::fmt;

/// The RDMA path MTU, in octets of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
#[allow(missing_docs, reason = "the names say it")]
pub enum PathMtu {
    Octets256 = 256,
    Octets512 = 512,
    Octets1024 = 1024,
    Octets2048 = 2048,
    Octets4096 = 4096,
}

impl PathMtu {
    /// All path MTUs, the smallest first.
    pub const ALL: [PathMtu; 5] =
        [PathMtu::Octets256, PathMtu::Octets512, PathMtu::Octets1024, PathMtu::Octets2048, PathMtu::Octets4096];

    /// The path MTU of so many octets; `None` for other values.
    pub fn from_octets(octets: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.octets() == octets)
    }

    /// Octets of payload.
    pub const fn octets(self) -> u32 {
        self as u32
    }

    /// Number of packets of a message of so many octets: an empty one takes one.
    pub const fn packets(self, length_octets: u32) -> u32 {
        let packets = length_octets.div_ceil(self.octets());
        if packets == 0 { 1 } else { packets }
    }
}

impl fmt::Display for PathMtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.octets().fmt(f)
    }
}

impl From<PathMtu> for u16 {
    fn from(path_mtu: PathMtu) -> Self {
        path_mtu as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_message_takes_a_packet() {
        let packets = |length| PathMtu::Octets256.packets(length);
        assert_eq!([0, 1, 256, 257, 1 << 31].map(packets), [1, 1, 1, 2, 1 << 23]);
    }

    #[test]
    fn there_are_five() {
        assert_eq!([256, 512, 1024, 2048, 4096].map(PathMtu::from_octets), PathMtu::ALL.map(Some));
        assert_eq!([0, 255, 1500, 8192, 65_536 + 256].map(PathMtu::from_octets), [None; 5]);
        assert_eq!(PathMtu::ALL.map(|mtu| u32::from(u16::from(mtu))), PathMtu::ALL.map(PathMtu::octets));
    }
}
