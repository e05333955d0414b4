//! The entropy of a path: 32 bits in the UDP source port and the flow label of a RoCEv2 packet, which determine its
//! path and which a receiver reads back (D254; the terms are those of OCP MRC 1.0).
//!
//! ```text
//!  flow label, 20 bits                      UDP source port, 16 bits
//! +-+-+------------------------------------+ +-+-+----------------------------+
//! |1|0|          entropy 31 to 14          | |1|1|      entropy 13 to 0       |
//! +-+-+------------------------------------+ +-+-+----------------------------+
//! ```
//!
//! [`AddressTemplate`] is what a NIC needs to expand a value toward one destination.

mod template;

pub use template::{AddressTemplate, Choice, ExpandError, MAX_CHOICES, TemplateError};

/// Bits of a value in the UDP source port.
const PORT_BITS: u32 = 14;

/// The lowest UDP source port: the dynamic ports of RFC 6335.
const FIRST_PORT: u16 = 0xC000;

/// The two highest bits of a flow label that carries entropy: never 0, which is the label of no flow (RFC 6437).
const LABEL_MARK: u32 = 0b10 << 18;

/// The entropy of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entropy(pub u32);

/// Reason for which port and flow label carry no entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntropyError {
    /// A UDP source port below 49152.
    Port(u16),
    /// A flow label whose highest bits are not 10, or of more than 20 bits.
    FlowLabel(u32),
}

impl Entropy {
    /// The UDP source port that carries its lower 14 bits.
    pub const fn source_port(self) -> u16 {
        FIRST_PORT | (self.0 & 0x3FFF) as u16
    }

    /// The flow label that carries its upper 18 bits.
    pub const fn flow_label(self) -> u32 {
        LABEL_MARK | self.0 >> PORT_BITS
    }

    /// The value in a UDP source port and a flow label.
    ///
    /// # Errors
    ///
    /// A port or a label that carries none.
    pub const fn of_fields(source_port: u16, flow_label: u32) -> Result<Self, EntropyError> {
        if source_port < FIRST_PORT {
            return Err(EntropyError::Port(source_port));
        }
        if flow_label >> 18 != LABEL_MARK >> 18 {
            return Err(EntropyError::FlowLabel(flow_label));
        }
        Ok(Entropy((flow_label ^ LABEL_MARK) << PORT_BITS | (source_port ^ FIRST_PORT) as u32))
    }
}

impl core::fmt::Display for EntropyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            EntropyError::Port(port) => write!(f, "UDP source port {port} carries no entropy: expected 49152 to 65535"),
            EntropyError::FlowLabel(label) => {
                write!(f, "flow label {label:#x} carries no entropy: expected 0x80000 to 0xbffff")
            }
        }
    }
}

impl core::error::Error for EntropyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// D254, by hand: 0x12345678 is 0x48d1 above 14 bits of 0x1678.
    #[test]
    fn a_value_is_divided_between_port_and_flow_label() {
        let fields = |value| (Entropy(value).source_port(), Entropy(value).flow_label());
        assert_eq!(fields(0), (0xC000, 0x80000));
        assert_eq!(fields(0x3FFF), (0xFFFF, 0x80000));
        assert_eq!(fields(0x4000), (0xC000, 0x80001));
        assert_eq!(fields(0x1234_5678), (0xD678, 0x848D1));
        assert_eq!(fields(u32::MAX), (0xFFFF, 0xBFFFF));
    }

    /// D254.
    #[test]
    fn ports_and_labels_of_another_form_carry_none() {
        assert_eq!(Entropy::of_fields(49151, 0x80000), Err(EntropyError::Port(49151)));
        for label in [0, 0x7FFFF, 0xC0000, 0xFFFFF, 0x10_0000, 0x18_0000, u32::MAX] {
            assert_eq!(Entropy::of_fields(0xC000, label), Err(EntropyError::FlowLabel(label)));
        }
    }

    proptest! {
        #[test]
        fn every_value_is_read_back(value: u32) {
            let entropy = Entropy(value);
            prop_assert_eq!(Entropy::of_fields(entropy.source_port(), entropy.flow_label()), Ok(entropy));
        }

        /// Of all ports and labels that carry a value each is that of its value.
        #[test]
        fn no_two_pairs_of_fields_carry_the_same_value(port: u16, label: u32) {
            if let Ok(entropy) = Entropy::of_fields(port, label) {
                prop_assert_eq!((entropy.source_port(), entropy.flow_label()), (port, label));
            }
        }

        #[test]
        fn labels_of_the_form_carry_a_value(port in 0xC000_u16.., label in 0x80000_u32..0xC0000) {
            prop_assert!(Entropy::of_fields(port, label).is_ok());
        }
    }
}
