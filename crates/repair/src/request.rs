//! A request for missing data to the parent (D153).

use srdma_wire::{Aeth, Psn, Syndrome};

/// NAK code of a request, one of those that the IBTA specification reserves (volume 1, table 45). A node without repair
/// drops it; no host is ever sent one.
const REQUEST: u8 = 16;

/// Asks a parent for data. It acknowledges nothing: receivers below the node need not have what is before it.
///
/// ```text
///   BTH.PSN = e        AETH: syndrome 0x70 (NAK, code 16)   MSN = count        e, e + 1, .. e + count - 1 are missing
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The first missing PSN.
    pub psn: Psn,
    /// How many in a row, at least 1.
    pub count: u32,
}

impl Request {
    /// The request in a packet of opcode ACKNOWLEDGE, if it is one.
    pub fn from_aeth(psn: Psn, aeth: Aeth) -> Option<Self> {
        let is_request = aeth.syndrome == Syndrome::Nak(REQUEST) && aeth.msn > 0;
        is_request.then_some(Request { psn, count: aeth.msn })
    }

    /// The AETH to send.
    pub fn aeth(&self) -> Aeth {
        Aeth { syndrome: Syndrome::Nak(REQUEST), msn: self.count & 0xFF_FFFF }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IBTA volume 1, table 44: bits 6:5 of the syndrome are 11 for a NAK, the code in bits 4:0.
    #[test]
    fn a_request_has_a_reserved_syndrome() {
        let request = Request { psn: Psn::new(7), count: 3 };
        assert_eq!(request.aeth().syndrome.to_octet(), 0x70);
        assert_eq!(Request::from_aeth(Psn::new(7), request.aeth()), Some(request));
        for octet in [0x1F, 0x60, 0x61, 0x6F, 0x71] {
            let aeth = Aeth { syndrome: Syndrome::from_octet(octet), msn: 3 };
            assert_eq!(Request::from_aeth(Psn::new(7), aeth), None);
        }
        assert_eq!(Request::from_aeth(Psn::new(7), Aeth { msn: 0, ..request.aeth() }), None);
    }
}
