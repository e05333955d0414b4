//! Versions of the protocol of nodes and controller (D112).

use std::fmt;

/// The newest protocol that this version of node and controller speaks.
pub const PROTOCOL: u32 = 2;

/// The first protocol, whose messages have no number and whose receivers refuse unknown keys.
pub const FIRST_PROTOCOL: u32 = 1;

/// The protocols that a program speaks: a newest one, and the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    newest: u32,
}

impl Protocols {
    /// Those of this version.
    pub const OWN: Protocols = Protocols { newest: PROTOCOL };

    /// Those of a program whose newest protocol is this.
    pub const fn up_to(newest: u32) -> Self {
        Protocols { newest }
    }

    /// The newest protocol that both speak.
    pub fn common(self, other: Protocols) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest() && newest >= other.oldest()).then_some(newest)
    }

    /// Whether a session may have this protocol.
    pub fn contain(self, protocol: u32) -> bool {
        (self.oldest()..=self.newest).contains(&protocol)
    }

    fn oldest(self) -> u32 {
        self.newest.saturating_sub(1).max(FIRST_PROTOCOL)
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (oldest, newest) = (self.oldest(), self.newest);
        if oldest < newest { write!(f, "protocols {oldest} and {newest}") } else { write!(f, "protocol {newest}") }
    }
}

pub(crate) fn first() -> u32 {
    FIRST_PROTOCOL
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
pub(crate) fn is_first(protocol: &u32) -> bool {
    *protocol == FIRST_PROTOCOL
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D112: neighbouring versions work together, others do not.
    #[test]
    fn versions_that_differ_by_one_have_a_common_protocol() {
        let common = |a, b| Protocols::up_to(a).common(Protocols::up_to(b));
        for newest in 1..5 {
            assert_eq!(common(newest, newest), Some(newest));
            assert_eq!((common(newest, newest + 1), common(newest + 1, newest)), (Some(newest), Some(newest)));
            assert_eq!((common(newest, newest + 2), common(newest + 2, newest)), (None, None));
        }
        assert_eq!((common(0, 1), common(2, 0)), (None, None), "there is no protocol 0");
    }

    #[test]
    fn ranges_are_named() {
        assert_eq!(Protocols::up_to(1).to_string(), "protocol 1");
        assert_eq!(Protocols::up_to(4).to_string(), "protocols 3 and 4");
        assert!(Protocols::up_to(4).contain(3) && !Protocols::up_to(4).contain(2) && !Protocols::up_to(4).contain(5));
    }
}
