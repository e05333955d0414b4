//! A PSN or none, in four octets.

use srdma_wire::Psn;

/// No PSN has more than 24 bits.
const NONE: u32 = u32::MAX;

/// `Option<Psn>` in four octets (MT-8-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OptionalPsn(u32);

impl OptionalPsn {
    pub(super) const NONE: OptionalPsn = OptionalPsn(NONE);

    #[inline]
    pub(super) fn get(self) -> Option<Psn> {
        (self.0 != NONE).then(|| Psn::new(self.0))
    }
}

impl From<Option<Psn>> for OptionalPsn {
    #[inline]
    fn from(psn: Option<Psn>) -> Self {
        OptionalPsn(psn.map_or(NONE, Psn::get))
    }
}

impl From<Psn> for OptionalPsn {
    #[inline]
    fn from(psn: Psn) -> Self {
        OptionalPsn(psn.get())
    }
}
