//! The response of a receiver, or the aggregated response of a node for all receivers below it.

use srdma_wire::{Aeth, Psn, Syndrome as AethSyndrome};

/// An ACK or NAK without its packet: the BTH's PSN and the AETH (D18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Response {
    /// The BTH's PSN: the last one received for an ACK, the one expected next for all others.
    pub psn: Psn,
    /// The AETH's message sequence number, 24 bits.
    pub msn: u32,
    /// The AETH's syndrome.
    pub syndrome: Syndrome,
}

/// The syndromes that are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// Everything up to the PSN was received.
    Ack,
    /// Everything before the PSN was received, then something was missing.
    SequenceNak,
    /// Everything before the PSN was received; the receiver was not ready for that one. With the timer code of the wait
    /// that it requests (D23).
    RnrNak(u8),
    /// Everything before the PSN was received, and nothing more will be. With the NAK code: invalid request, remote
    /// access error or remote operational error (D24).
    Fatal(u8),
}

impl Response {
    /// The response in a packet of opcode ACKNOWLEDGE; `None` for syndromes that a Reliable Connection responder never
    /// sends.
    pub fn from_aeth(psn: Psn, aeth: Aeth) -> Option<Self> {
        let syndrome = match aeth.syndrome {
            AethSyndrome::Ack(_) => Syndrome::Ack,
            AethSyndrome::RnrNak(timer) => Syndrome::RnrNak(timer),
            AethSyndrome::Nak(0) => Syndrome::SequenceNak,
            AethSyndrome::Nak(code @ 1..=3) => Syndrome::Fatal(code),
            AethSyndrome::Nak(_) | AethSyndrome::Reserved(_) => return None,
        };
        Some(Response { psn, msn: aeth.msn, syndrome })
    }

    /// The AETH to send. An ACK's credit count is always 0x1F, no limit (D18).
    pub fn aeth(&self) -> Aeth {
        let syndrome = match self.syndrome {
            Syndrome::Ack => AethSyndrome::ACK,
            Syndrome::SequenceNak => AethSyndrome::SEQUENCE_ERROR,
            Syndrome::RnrNak(timer) => AethSyndrome::RnrNak(timer),
            Syndrome::Fatal(code) => AethSyndrome::Nak(code),
        };
        Aeth { syndrome, msn: self.msn }
    }

    /// The first PSN that it does not confirm: ACK p gives p + 1, every other kind its own PSN (D16, MT-5.3.2-3).
    pub fn expected_psn(&self) -> Psn {
        match self.syndrome {
            Syndrome::Ack => self.psn.next(),
            Syndrome::SequenceNak | Syndrome::RnrNak(_) | Syndrome::Fatal(_) => self.psn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The syndrome octets stand in the wire facts (IBTA volume 1, table 45): 0x1F, 0x60, 0x2E, 0x61-0x63.
    #[test]
    fn responses_have_the_octets_of_the_aeth() {
        for (syndrome, octet) in [
            (Syndrome::Ack, 0x1F),
            (Syndrome::SequenceNak, 0x60),
            (Syndrome::RnrNak(14), 0x2E),
            (Syndrome::RnrNak(0), 0x20),
            (Syndrome::Fatal(1), 0x61),
            (Syndrome::Fatal(2), 0x62),
            (Syndrome::Fatal(3), 0x63),
        ] {
            let response = Response { psn: Psn::new(7), msn: 5, syndrome };
            assert_eq!(response.aeth().syndrome.to_octet(), octet);
            assert_eq!(Response::from_aeth(Psn::new(7), response.aeth()), Some(response));
        }
    }

    /// An ACK with limited credits is an ACK; its credits are not forwarded (D18). Reserved syndromes are refused.
    #[test]
    fn credits_are_dropped_and_reserved_syndromes_refused() {
        let limited = Aeth { syndrome: AethSyndrome::from_octet(0x03), msn: 1 };
        let response = Response::from_aeth(Psn::new(9), limited).unwrap();
        assert_eq!(response.aeth().syndrome.to_octet(), 0x1F);
        for octet in [0x40, 0x5F, 0x64, 0x7F] {
            assert_eq!(
                Response::from_aeth(Psn::new(9), Aeth { syndrome: AethSyndrome::from_octet(octet), msn: 1 }),
                None
            );
        }
    }

    /// D16: an ACK of the last number of the circle expects number 0.
    #[test]
    fn an_ack_expects_the_number_after_it() {
        let at = |psn, syndrome| Response { psn: Psn::new(psn), msn: 0, syndrome }.expected_psn().get();
        assert_eq!(at(0xFF_FFFF, Syndrome::Ack), 0);
        assert_eq!(at(41, Syndrome::Ack), 42);
        assert_eq!(at(42, Syndrome::SequenceNak), 42);
        assert_eq!(at(42, Syndrome::RnrNak(1)), 42);
        assert_eq!(at(42, Syndrome::Fatal(2)), 42);
    }
}
