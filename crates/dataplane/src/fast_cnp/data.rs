//! Destinations of Fast CNPs: the senders of data over Reliable and Unreliable Connections (D45).

use srdma_wire::Opcode;

/// Opcodes of data packets: RC SEND, WRITE and READ response, UC SEND and WRITE.
const DATA: u64 = {
    let mut set = 0;
    let mut opcode = 0;
    while opcode < 64 {
        if matches!(opcode, 0x00..=0x0B | 0x0D..=0x10 | 0x16 | 0x17 | 0x20..=0x2B) {
            set |= 1 << opcode;
        }
        opcode += 1;
    }
    set
};

/// Whether a packet of this opcode is worth a Fast CNP: neither CNPs, ACKs and NAKs, nor what carries no data, nor
/// datagrams, which have no connection to be slowed.
#[inline]
pub(crate) fn is_data(opcode: Opcode) -> bool {
    opcode.0 < 64 && DATA >> opcode.0 & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D45, from the opcodes' classes (IBTA volume 1, table 38), of which this crate's own name those of RC.
    #[test]
    fn only_connected_data_is_notified() {
        for opcode in (0..=u8::MAX).map(Opcode) {
            let of_connection = match opcode.0 >> 5 {
                0 => opcode.is_send() || opcode.is_write() || opcode.is_read_response(),
                1 => Opcode(opcode.0 & 0x1F).is_write() || opcode.0 & 0x1F <= 0x05,
                _ => false,
            };
            assert_eq!(is_data(opcode), of_connection, "{opcode:?}");
        }
        assert!(!is_data(Opcode::CNP) && !is_data(Opcode::ACKNOWLEDGE) && !is_data(Opcode::READ_REQUEST));
    }
}
