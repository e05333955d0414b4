use crate::bth::Opcode;
use crate::rocev2::NotRocev2;
use crate::transport::{AethView, AtomicAckEthView, AtomicEthView, CnpView, IethView, ImmDtView, RethView};
use crate::view::View;
use zerocopy::IntoBytes;

/// The extended transport headers of one packet, as its opcode determines.
#[derive(Clone, Copy, Debug)]
pub enum Extended<'a> {
    /// None: SEND, all but First and Only of a WRITE, the middle of a READ response.
    None,
    /// First or Only of a WRITE, READ request.
    Reth(&'a RethView),
    /// Only of a WRITE with immediate.
    RethImmediate(&'a RethView, &'a ImmDtView),
    /// Last of a WRITE, Last or Only of a SEND, each with immediate.
    Immediate(&'a ImmDtView),
    /// Acknowledgement, all but the middle of a READ response.
    Aeth(&'a AethView),
    /// Response to an atomic operation.
    AtomicAck(&'a AethView, &'a AtomicAckEthView),
    /// Atomic operation.
    Atomic(&'a AtomicEthView),
    /// SEND with invalidate.
    Invalidate(&'a IethView),
    /// Congestion notification.
    Cnp(&'a CnpView),
}

impl<'a> Extended<'a> {
    /// The headers that follow a BTH with this opcode, at the front of `octets`, and what follows them.
    #[inline(always)]
    pub fn split(opcode: Opcode, octets: &'a [u8]) -> Result<(Self, &'a [u8]), NotRocev2> {
        Ok(match opcode {
            Opcode::SEND_FIRST
            | Opcode::SEND_MIDDLE
            | Opcode::SEND_LAST
            | Opcode::SEND_ONLY
            | Opcode::WRITE_MIDDLE
            | Opcode::WRITE_LAST
            | Opcode::READ_RESPONSE_MIDDLE => (Extended::None, octets),
            Opcode::WRITE_FIRST | Opcode::WRITE_ONLY | Opcode::READ_REQUEST => {
                let (reth, rest) = RethView::split(octets)?;
                (Extended::Reth(reth), rest)
            }
            Opcode::WRITE_ONLY_IMMEDIATE => {
                let (reth, rest) = RethView::split(octets)?;
                let (immediate, rest) = ImmDtView::split(rest)?;
                (Extended::RethImmediate(reth, immediate), rest)
            }
            Opcode::SEND_LAST_IMMEDIATE | Opcode::SEND_ONLY_IMMEDIATE | Opcode::WRITE_LAST_IMMEDIATE => {
                let (immediate, rest) = ImmDtView::split(octets)?;
                (Extended::Immediate(immediate), rest)
            }
            Opcode::ACKNOWLEDGE
            | Opcode::READ_RESPONSE_FIRST
            | Opcode::READ_RESPONSE_LAST
            | Opcode::READ_RESPONSE_ONLY => {
                let (aeth, rest) = AethView::split(octets)?;
                (Extended::Aeth(aeth), rest)
            }
            Opcode::ATOMIC_ACKNOWLEDGE => {
                let (aeth, rest) = AethView::split(octets)?;
                let (original, rest) = AtomicAckEthView::split(rest)?;
                (Extended::AtomicAck(aeth, original), rest)
            }
            Opcode::COMPARE_SWAP | Opcode::FETCH_ADD => {
                let (atomic, rest) = AtomicEthView::split(octets)?;
                (Extended::Atomic(atomic), rest)
            }
            Opcode::SEND_LAST_INVALIDATE | Opcode::SEND_ONLY_INVALIDATE => {
                let (invalidate, rest) = IethView::split(octets)?;
                (Extended::Invalidate(invalidate), rest)
            }
            Opcode::CNP => {
                let (cnp, rest) = CnpView::split(octets)?;
                (Extended::Cnp(cnp), rest)
            }
            unknown => return Err(NotRocev2::Opcode(unknown)),
        })
    }

    /// The octets, in one or two pieces.
    pub fn octets(&self) -> [&'a [u8]; 2] {
        match *self {
            Extended::None => [&[], &[]],
            Extended::Reth(reth) => [reth.as_bytes(), &[]],
            Extended::RethImmediate(reth, immediate) => [reth.as_bytes(), immediate.as_bytes()],
            Extended::Immediate(immediate) => [immediate.as_bytes(), &[]],
            Extended::Aeth(aeth) => [aeth.as_bytes(), &[]],
            Extended::AtomicAck(aeth, original) => [aeth.as_bytes(), original.as_bytes()],
            Extended::Atomic(atomic) => [atomic.as_bytes(), &[]],
            Extended::Invalidate(invalidate) => [invalidate.as_bytes(), &[]],
            Extended::Cnp(cnp) => [cnp.as_bytes(), &[]],
        }
    }

    /// Length in octets.
    pub fn len_octets(&self) -> usize {
        let [first, second] = self.octets();
        first.len() + second.len()
    }

    /// The RETH, when there is one.
    pub fn reth(&self) -> Option<&'a RethView> {
        match *self {
            Extended::Reth(reth) | Extended::RethImmediate(reth, _) => Some(reth),
            Extended::None
            | Extended::Immediate(_)
            | Extended::Aeth(_)
            | Extended::AtomicAck(..)
            | Extended::Atomic(_)
            | Extended::Invalidate(_)
            | Extended::Cnp(_) => None,
        }
    }

    /// The immediate data, when there are any.
    pub fn immediate(&self) -> Option<&'a ImmDtView> {
        match *self {
            Extended::Immediate(immediate) | Extended::RethImmediate(_, immediate) => Some(immediate),
            Extended::None
            | Extended::Reth(_)
            | Extended::Aeth(_)
            | Extended::AtomicAck(..)
            | Extended::Atomic(_)
            | Extended::Invalidate(_)
            | Extended::Cnp(_) => None,
        }
    }

    /// The AETH, when there is one.
    pub fn aeth(&self) -> Option<&'a AethView> {
        match *self {
            Extended::Aeth(aeth) | Extended::AtomicAck(aeth, _) => Some(aeth),
            Extended::None
            | Extended::Reth(_)
            | Extended::RethImmediate(..)
            | Extended::Immediate(_)
            | Extended::Atomic(_)
            | Extended::Invalidate(_)
            | Extended::Cnp(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two statements of what an opcode brings with it agree.
    #[test]
    fn headers_have_the_length_that_the_opcode_states() {
        let octets = [0; 64];
        for opcode in (0..=u8::MAX).map(Opcode) {
            let found = Extended::split(opcode, &octets).map(|(extended, rest)| {
                assert_eq!(extended.len_octets() + rest.len(), octets.len());
                assert_eq!(extended.reth().is_some(), opcode.has_reth());
                assert_eq!(extended.immediate().is_some(), opcode.has_immediate());
                assert_eq!(extended.aeth().is_some(), opcode.has_aeth());
                extended.len_octets()
            });
            assert_eq!(found.ok(), opcode.extension_len(), "{opcode:?}");
        }
    }

    #[test]
    fn each_header_names_the_missing_octets() {
        let error = Extended::split(Opcode::WRITE_ONLY_IMMEDIATE, &[0; 19]).unwrap_err();
        assert_eq!(std::format!("{error}"), "ImmDt needs 4 octets, 3 left");
    }
}
