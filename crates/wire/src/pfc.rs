//! Priority flow control (IEEE 802.1Q clause 36, formerly 802.1Qbb), as it follows EtherType 0x8808.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        Opcode (0x0101)        |    Reserved   | Class Enable  |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        Time, class 0          |        Time, class 1          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! :                              ...                              :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        Time, class 6          |        Time, class 7          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Bit n of Class Enable, the lowest being bit 0, marks the time of class n as valid. A time is in quanta; zero ends
//! a pause.

use crate::ethernet::{EtherType, Ethernet, MacAddress};
use crate::view::{Truncated, View};
use core::fmt;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Traffic classes that a link has.
pub const CLASSES: usize = 8;

/// Bit times of one quantum.
pub const QUANTUM_BITS: u64 = 512;

/// Octets of a PFC frame, Ethernet header and padding included, FCS not.
pub const FRAME_LEN: usize = 60;

/// Priority flow control as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PfcView {
    opcode: U16,
    reserved: u8,
    class_enable: u8,
    times: [U16; CLASSES],
}

impl View for PfcView {
    const NAME: &'static str = "PFC";
    const LEN: usize = 2 + 1 + 1 + CLASSES * 2;
}

impl PfcView {
    /// MAC control opcode; [`Pfc::OPCODE`] in a PFC frame.
    pub fn opcode(&self) -> u16 {
        self.opcode.get()
    }

    /// The fields. The opcode is not among them: [`Pfc::parse`] looks at it.
    pub fn value(&self) -> Pfc {
        let mut quanta = [None; CLASSES];
        for (class, (quanta, time)) in quanta.iter_mut().zip(&self.times).enumerate() {
            *quanta = (self.class_enable >> class & 1 == 1).then(|| time.get());
        }
        Pfc { quanta }
    }
}

/// Priority flow control as a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pfc {
    /// For each class the quanta of its pause, 0 to resume; `None`: not enabled in the frame.
    pub quanta: [Option<u16>; CLASSES],
}

impl Pfc {
    /// MAC control opcode of priority flow control.
    pub const OPCODE: u16 = 0x0101;
    /// Destination of PFC frames: an address that bridges do not forward.
    pub const DESTINATION: MacAddress = MacAddress([0x01, 0x80, 0xC2, 0, 0, 0x01]);

    /// A frame for one class only.
    pub fn of_class(class: usize, quanta: u16) -> Self {
        let mut pfc = Pfc::default();
        if let Some(place) = pfc.quanta.get_mut(class) {
            *place = Some(quanta);
        }
        pfc
    }

    /// Parses the octets after the Ethernet header of a MAC control frame.
    pub fn parse(octets: &[u8]) -> Result<Self, PfcError> {
        let (view, _) = PfcView::split(octets)?;
        match view.opcode() {
            Self::OPCODE => Ok(view.value()),
            opcode => Err(PfcError::Opcode(opcode)),
        }
    }

    /// The octets behind the Ethernet header, without padding.
    pub fn emit(&self) -> PfcView {
        let mut view =
            PfcView { opcode: U16::new(Self::OPCODE), reserved: 0, class_enable: 0, times: [U16::ZERO; CLASSES] };
        for (class, (time, quanta)) in view.times.iter_mut().zip(self.quanta).enumerate() {
            if let Some(quanta) = quanta {
                view.class_enable |= 1 << class;
                time.set(quanta);
            }
        }
        view
    }

    /// The whole frame as it leaves the port with this address, without FCS.
    pub fn frame(&self, source: MacAddress) -> [u8; FRAME_LEN] {
        let ethernet = Ethernet { destination: Self::DESTINATION, source, ethertype: EtherType::MAC_CONTROL };
        let mut frame = [0; FRAME_LEN];
        let header = ethernet.emit();
        let body = self.emit();
        for (place, octet) in frame.iter_mut().zip(header.as_bytes().iter().chain(body.as_bytes())) {
            *place = *octet;
        }
        frame
    }
}

/// The reason why a MAC control frame is no PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PfcError {
    /// It is too short.
    Truncated(Truncated),
    /// Another MAC control opcode: 1 is the PAUSE of 802.3, which has no classes.
    Opcode(u16),
}

impl From<Truncated> for PfcError {
    fn from(truncated: Truncated) -> Self {
        PfcError::Truncated(truncated)
    }
}

impl fmt::Display for PfcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PfcError::Truncated(truncated) => truncated.fmt(f),
            PfcError::Opcode(opcode) => {
                write!(f, "MAC control opcode {opcode:#06x}, PFC has {:#06x}", Pfc::OPCODE)
            }
        }
    }
}

impl core::error::Error for PfcError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_class_that_is_not_enabled_is_ignored() {
        let mut octets = [0xFF; PfcView::LEN];
        octets[..4].copy_from_slice(&[1, 1, 0, 0b1000_0010]);
        let mut quanta = [None; CLASSES];
        (quanta[1], quanta[7]) = (Some(0xFFFF), Some(0xFFFF));
        assert_eq!(Pfc::parse(&octets), Ok(Pfc { quanta }));
    }

    #[test]
    fn reserved_bits_are_ignored_and_written_as_zero() {
        let mut octets = [0; PfcView::LEN];
        octets[..4].copy_from_slice(&[1, 1, 0xFF, 1]);
        let pfc = Pfc::parse(&octets).unwrap();
        assert_eq!(pfc, Pfc::of_class(0, 0));
        assert_eq!(pfc.emit().as_bytes()[..4], [1, 1, 0, 1]);
        assert_eq!(Pfc::of_class(8, 1), Pfc::default(), "there is no class 8");
    }

    #[test]
    fn errors_name_the_found_value() {
        assert_eq!(Pfc::parse(&[1; 19]).unwrap_err().to_string(), "PFC needs 20 octets, 19 left");
        let pause = Pfc::parse(&[0, 1, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(pause.unwrap_err().to_string(), "MAC control opcode 0x0001, PFC has 0x0101");
    }
}
