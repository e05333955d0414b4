//! Opcodes of the Base Transport Header (IBTA volume 1, section 9.2; CNP annex A17.9.3).

/// A BTH opcode: transport in the three high bits, operation in the five low ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

#[allow(missing_docs, reason = "the names say it")]
impl Opcode {
    pub const SEND_FIRST: Opcode = Opcode(0x00);
    pub const SEND_MIDDLE: Opcode = Opcode(0x01);
    pub const SEND_LAST: Opcode = Opcode(0x02);
    pub const SEND_LAST_IMMEDIATE: Opcode = Opcode(0x03);
    pub const SEND_ONLY: Opcode = Opcode(0x04);
    pub const SEND_ONLY_IMMEDIATE: Opcode = Opcode(0x05);
    pub const WRITE_FIRST: Opcode = Opcode(0x06);
    pub const WRITE_MIDDLE: Opcode = Opcode(0x07);
    pub const WRITE_LAST: Opcode = Opcode(0x08);
    pub const WRITE_LAST_IMMEDIATE: Opcode = Opcode(0x09);
    pub const WRITE_ONLY: Opcode = Opcode(0x0A);
    pub const WRITE_ONLY_IMMEDIATE: Opcode = Opcode(0x0B);
    pub const READ_REQUEST: Opcode = Opcode(0x0C);
    pub const READ_RESPONSE_FIRST: Opcode = Opcode(0x0D);
    pub const READ_RESPONSE_MIDDLE: Opcode = Opcode(0x0E);
    pub const READ_RESPONSE_LAST: Opcode = Opcode(0x0F);
    pub const READ_RESPONSE_ONLY: Opcode = Opcode(0x10);
    pub const ACKNOWLEDGE: Opcode = Opcode(0x11);
    pub const ATOMIC_ACKNOWLEDGE: Opcode = Opcode(0x12);
    pub const COMPARE_SWAP: Opcode = Opcode(0x13);
    pub const FETCH_ADD: Opcode = Opcode(0x14);
    pub const SEND_LAST_INVALIDATE: Opcode = Opcode(0x16);
    pub const SEND_ONLY_INVALIDATE: Opcode = Opcode(0x17);
    pub const CNP: Opcode = Opcode(0x81);
}

impl Opcode {
    /// Whether the transport is Reliable Connection.
    pub const fn is_reliable_connection(self) -> bool {
        self.0 >> 5 == 0
    }

    /// Whether this is a SEND request of a Reliable Connection (SEND with invalidate included).
    pub const fn is_send(self) -> bool {
        self.0 <= 0x05 || matches!(self.0, 0x16 | 0x17)
    }

    /// Whether this is a WRITE request of a Reliable Connection.
    pub const fn is_write(self) -> bool {
        self.0 >= 0x06 && self.0 <= 0x0B
    }

    /// Whether this is an ATOMIC request of a Reliable Connection.
    pub const fn is_atomic(self) -> bool {
        matches!(self.0, 0x13 | 0x14)
    }

    /// Whether this is a request of a Reliable Connection, which a responder answers.
    pub const fn is_request(self) -> bool {
        self.is_send() || self.is_write() || self.is_atomic() || self.0 == 0x0C
    }

    /// Whether this is a READ response.
    pub const fn is_read_response(self) -> bool {
        self.0 >= 0x0D && self.0 <= 0x10
    }

    /// Whether the packet begins a message (First or Only).
    pub const fn is_first(self) -> bool {
        matches!(self.0, 0x00 | 0x04 | 0x05 | 0x06 | 0x0A | 0x0B | 0x0C | 0x0D | 0x10 | 0x13 | 0x14 | 0x17)
    }

    /// Whether the packet ends a message (Last or Only).
    pub const fn is_last(self) -> bool {
        matches!(
            self.0,
            0x02 | 0x03 | 0x04 | 0x05 | 0x08 | 0x09 | 0x0A | 0x0B | 0x0C | 0x0F | 0x10 | 0x13 | 0x14 | 0x16 | 0x17
        )
    }

    /// Whether a RETH follows the BTH.
    pub const fn has_reth(self) -> bool {
        matches!(self.0, 0x06 | 0x0A | 0x0B | 0x0C)
    }

    /// Whether immediate data is carried (after the RETH when there is one).
    pub const fn has_immediate(self) -> bool {
        matches!(self.0, 0x03 | 0x05 | 0x09 | 0x0B)
    }

    /// Whether an AETH follows the BTH.
    pub const fn has_aeth(self) -> bool {
        matches!(self.0, 0x0D | 0x0F | 0x10 | 0x11 | 0x12)
    }

    /// Octets of extended transport headers between BTH and payload; `None` for unknown opcodes.
    pub const fn extension_len(self) -> Option<usize> {
        Some(match self.0 {
            0x00..=0x02 | 0x04 | 0x07 | 0x08 | 0x0E => 0,
            0x03 | 0x05 | 0x09 | 0x0D | 0x0F | 0x10 | 0x11 | 0x16 | 0x17 => 4,
            0x06 | 0x0A | 0x0C => 16,
            0x0B => 20,
            0x12 => 12,
            0x13 | 0x14 => 28,
            0x81 => 16,
            _ => return None,
        })
    }

    /// The operation in the words of the IBTA; `None` for unknown opcodes.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x00 => "SEND First",
            0x01 => "SEND Middle",
            0x02 => "SEND Last",
            0x03 => "SEND Last with Immediate",
            0x04 => "SEND Only",
            0x05 => "SEND Only with Immediate",
            0x06 => "RDMA WRITE First",
            0x07 => "RDMA WRITE Middle",
            0x08 => "RDMA WRITE Last",
            0x09 => "RDMA WRITE Last with Immediate",
            0x0A => "RDMA WRITE Only",
            0x0B => "RDMA WRITE Only with Immediate",
            0x0C => "RDMA READ Request",
            0x0D => "RDMA READ response First",
            0x0E => "RDMA READ response Middle",
            0x0F => "RDMA READ response Last",
            0x10 => "RDMA READ response Only",
            0x11 => "Acknowledge",
            0x12 => "ATOMIC Acknowledge",
            0x13 => "CmpSwap",
            0x14 => "FetchAdd",
            0x16 => "SEND Last with Invalidate",
            0x17 => "SEND Only with Invalidate",
            0x81 => "CNP",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn all(test: impl Fn(Opcode) -> bool) -> Vec<u8> {
        (0..=u8::MAX).filter(|opcode| test(Opcode(*opcode))).collect()
    }

    /// The tables of the IBTA, written the other way round: by property rather than by opcode.
    #[test]
    fn classes() {
        assert_eq!(all(Opcode::is_send), [0, 1, 2, 3, 4, 5, 0x16, 0x17]);
        assert_eq!(all(Opcode::is_write), [6, 7, 8, 9, 0x0A, 0x0B]);
        assert_eq!(all(Opcode::is_atomic), [0x13, 0x14]);
        assert_eq!(all(Opcode::is_read_response), [0x0D, 0x0E, 0x0F, 0x10]);
        assert_eq!(all(Opcode::has_reth), [6, 0x0A, 0x0B, 0x0C]);
        assert_eq!(all(Opcode::has_immediate), [3, 5, 9, 0x0B]);
        assert_eq!(all(Opcode::has_aeth), [0x0D, 0x0F, 0x10, 0x11, 0x12]);
        assert_eq!(all(Opcode::is_reliable_connection), (0..0x20).collect::<Vec<_>>());
    }

    /// The name contains First, Middle, Last or Only; an opcode without any of them is a message in one packet.
    #[test]
    fn names_agree_with_the_places_in_a_message() {
        for opcode in (0..=u8::MAX).map(Opcode) {
            let Some(name) = opcode.name() else { continue };
            let has = |word: &str| name.split(' ').any(|found| found == word);
            let parts = ["First", "Middle", "Last"].iter().any(|part| has(part));
            let is_data = opcode.is_request() || opcode.is_read_response();
            assert_eq!(opcode.is_first(), is_data && (has("First") || !parts), "{name}");
            assert_eq!(opcode.is_last(), is_data && (has("Last") || !parts), "{name}");
            assert_eq!(opcode.is_send(), has("SEND"), "{name}");
            assert_eq!(opcode.is_write(), has("WRITE"), "{name}");
            assert_eq!(opcode.has_immediate(), has("Immediate"), "{name}");
        }
    }

    #[test]
    fn every_named_opcode_has_a_length() {
        for opcode in (0..=u8::MAX).map(Opcode) {
            assert_eq!(opcode.name().is_some(), opcode.extension_len().is_some(), "{opcode:?}");
        }
    }
}
