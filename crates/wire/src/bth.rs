//! Base Transport Header (IBTA volume 1, section 9.2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     OpCode    |S|M|Pad|  TVer |         Partition Key         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |F|B|  Reserved |                 Destination QP                |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |A|   Reserved  |             Packet Sequence Number            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

pub use crate::opcode::Opcode;

use crate::psn::{Psn, Qpn};
use crate::view::{Truncated, View};
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Base Transport Header as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BthView {
    opcode: u8,
    flags: u8,
    pkey: U16,
    congestion: u8,
    dest_qp: [u8; 3],
    ack_request: u8,
    psn: [u8; 3],
}

impl View for BthView {
    const NAME: &'static str = "BTH";
    const LEN: usize = 1 + 1 + 2 + 1 + 3 + 1 + 3;
}

impl BthView {
    /// Offset of the Destination QP from the start of the header.
    pub const DEST_QP_OFFSET: usize = 5;

    /// The operation.
    pub fn opcode(&self) -> Opcode {
        Opcode(self.opcode)
    }

    /// Solicited event.
    pub fn solicited_event(&self) -> bool {
        self.flags & 0x80 != 0
    }

    /// Migration request.
    pub fn migration_request(&self) -> bool {
        self.flags & 0x40 != 0
    }

    /// Octets of padding before the ICRC, 0–3.
    pub fn pad_count(&self) -> u8 {
        self.flags >> 4 & 3
    }

    /// Sets the octets of padding, of which there are 3 at most.
    pub fn set_pad_count(&mut self, octets: u8) {
        self.flags = self.flags & !0x30 | (octets & 3) << 4;
    }

    /// Transport header version: 0.
    pub fn transport_version(&self) -> u8 {
        self.flags & 0x0F
    }

    /// Partition key.
    pub fn pkey(&self) -> u16 {
        self.pkey.get()
    }

    /// Forward congestion notification.
    pub fn fecn(&self) -> bool {
        self.congestion & 0x80 != 0
    }

    /// Backward congestion notification.
    pub fn becn(&self) -> bool {
        self.congestion & 0x40 != 0
    }

    /// Destination queue pair.
    pub fn dest_qpn(&self) -> Qpn {
        Qpn::from_octets(self.dest_qp)
    }

    /// Destination queue pair as it lies.
    pub fn dest_qpn_octets(&self) -> &[u8; 3] {
        &self.dest_qp
    }

    /// Sets the destination queue pair.
    pub fn set_dest_qpn(&mut self, qpn: Qpn) {
        self.dest_qp = qpn.to_octets();
    }

    /// AckReq: the sender requests an acknowledgement.
    pub fn ack_request(&self) -> bool {
        self.ack_request & 0x80 != 0
    }

    /// Packet sequence number.
    pub fn psn(&self) -> Psn {
        Psn::from_octets(self.psn)
    }

    /// Sets the packet sequence number.
    pub fn set_psn(&mut self, psn: Psn) {
        self.psn = psn.to_octets();
    }

    /// The fields.
    pub fn value(&self) -> Bth {
        Bth {
            opcode: self.opcode(),
            solicited_event: self.solicited_event(),
            migration_request: self.migration_request(),
            pad_count: self.pad_count(),
            pkey: self.pkey(),
            fecn: self.fecn(),
            becn: self.becn(),
            dest_qpn: self.dest_qpn(),
            ack_request: self.ack_request(),
            psn: self.psn(),
        }
    }
}

/// Base Transport Header as a value; transport version and reserved bits are zero.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// The operation.
    pub opcode: Opcode,
    pub solicited_event: bool,
    pub migration_request: bool,
    /// Octets of padding before the ICRC, 0–3.
    pub pad_count: u8,
    /// Partition key.
    pub pkey: u16,
    /// Forward congestion notification.
    pub fecn: bool,
    /// Backward congestion notification.
    pub becn: bool,
    /// Destination queue pair.
    pub dest_qpn: Qpn,
    /// AckReq: the sender requests an acknowledgement.
    pub ack_request: bool,
    /// Packet sequence number.
    pub psn: Psn,
}

impl Bth {
    /// Length in octets.
    pub const LEN: usize = BthView::LEN;

    /// A header with the default partition key and all flags clear.
    pub const fn new(opcode: Opcode, dest_qpn: Qpn, psn: Psn) -> Self {
        Bth {
            opcode,
            solicited_event: false,
            migration_request: false,
            pad_count: 0,
            pkey: crate::codepoints::DEFAULT_PKEY,
            fecn: false,
            becn: false,
            dest_qpn,
            ack_request: false,
            psn,
        }
    }

    /// The header at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let (view, rest) = BthView::split(octets)?;
        Ok((view.value(), rest))
    }

    /// The header's octets; the pad count is cut to two bits.
    pub fn emit(&self) -> BthView {
        BthView {
            opcode: self.opcode.0,
            flags: u8::from(self.solicited_event) << 7
                | u8::from(self.migration_request) << 6
                | (self.pad_count & 3) << 4,
            pkey: U16::new(self.pkey),
            congestion: u8::from(self.fecn) << 7 | u8::from(self.becn) << 6,
            dest_qp: self.dest_qpn.to_octets(),
            ack_request: u8::from(self.ack_request) << 7,
            psn: self.psn.to_octets(),
        }
    }
}

impl From<&BthView> for Bth {
    fn from(view: &BthView) -> Self {
        view.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn qpn(number: u32) -> Qpn {
        Qpn::new(number).unwrap()
    }

    /// The BTH of a CNP that a ConnectX-4 Lx sent, and that of a WRITE Only made by scapy.
    #[test]
    fn fields_of_captured_headers() {
        let cnp = [0x81, 0x00, 0xFF, 0xFF, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00];
        let expected = Bth { becn: true, ..Bth::new(Opcode::CNP, qpn(0x118), Psn::new(0)) };
        assert_eq!(Bth::parse(&cnp), Ok((expected, &[][..])));
        assert_eq!(expected.emit().as_bytes(), cnp);

        let write = [0x0A, 0x30, 0xFF, 0xFF, 0x00, 0x00, 0xAB, 0xCD, 0x80, 0x00, 0x00, 0x64];
        let bth = Bth::new(Opcode::WRITE_ONLY, qpn(0xABCD), Psn::new(100));
        let expected = Bth { pad_count: 3, ack_request: true, ..bth };
        assert_eq!(Bth::parse(&write), Ok((expected, &[][..])));
        assert_eq!(expected.emit().as_bytes(), write);
    }

    #[test]
    fn every_flag_has_its_bit() {
        let bth = Bth::new(Opcode::SEND_ONLY, qpn(0), Psn::new(0));
        let octets = |bth: Bth| {
            let view = bth.emit();
            [view.flags, view.congestion, view.ack_request]
        };
        assert_eq!(octets(Bth { solicited_event: true, ..bth }), [0x80, 0, 0]);
        assert_eq!(octets(Bth { migration_request: true, ..bth }), [0x40, 0, 0]);
        assert_eq!(octets(Bth { pad_count: 7, ..bth }), [0x30, 0, 0]);
        assert_eq!(octets(Bth { fecn: true, ..bth }), [0, 0x80, 0]);
        assert_eq!(octets(Bth { becn: true, ..bth }), [0, 0x40, 0]);
        assert_eq!(octets(Bth { ack_request: true, ..bth }), [0, 0, 0x80]);
    }

    #[test]
    fn edits_in_place_keep_reserved_bits() {
        let mut octets = [0xFF; 12];
        let (view, _) = BthView::split_mut(&mut octets).unwrap();
        view.set_dest_qpn(qpn(0x01_0203));
        view.set_psn(Psn::new(0x04_0506));
        assert_eq!(octets, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 0xFF, 4, 5, 6]);
        assert_eq!(octets[BthView::DEST_QP_OFFSET], 1);
    }
}
