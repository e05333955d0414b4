//! The header of an LSA, and which of two instances is newer.

use crate::id::RouterId;
use srdma_isis::reader::{Malformed, Reader};
use std::cmp::Ordering;

/// Octets of a header.
pub const LSA_HEADER_LEN: usize = 2 + 2 + 4 + 4 + 4 + 2 + 2;
/// MaxAge, in seconds: an LSA of this age is removed.
pub const MAX_AGE_S: u16 = 3600;
/// MaxAgeDiff, in seconds: ages closer to each other are those of one instance.
const MAX_AGE_DIFF_S: u16 = 900;

/// Octets of the age, which the checksum does not cover.
pub(super) const AGE_LEN: usize = 2;
/// Offset of the checksum.
pub(super) const CHECKSUM_AT: usize = 16;

/// The type of an LSA, with its scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LsType(pub u16);

/// How far an LSA is flooded.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Link,
    Area,
    /// The autonomous system.
    As,
    Reserved,
}

/// What identifies an LSA among those of its scope.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LsaKey {
    pub kind: LsType,
    pub id: u32,
    pub router: RouterId,
}

/// The header of an LSA.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsaHeader {
    pub age_s: u16,
    pub kind: LsType,
    pub id: u32,
    pub router: RouterId,
    pub sequence: i32,
    pub checksum: u16,
    /// Octets of the LSA, with this header.
    pub length: u16,
}

#[allow(missing_docs, reason = "the names say it")]
impl LsType {
    pub const ROUTER: LsType = LsType(0x2001);
    pub const NETWORK: LsType = LsType(0x2002);
    pub const LINK: LsType = LsType(0x0008);
    pub const INTRA_AREA_PREFIX: LsType = LsType(0x2009);
    /// Router Information (RFC 7770), of an area.
    pub const INFORMATION: LsType = LsType(0xA00C);
    /// E-Router (RFC 8362).
    pub const EXTENDED_ROUTER: LsType = LsType(0xA021);
    /// SRv6 Locator (RFC 9513 section 7): function code 42.
    pub const LOCATOR: LsType = LsType(0xA02A);

    /// The greatest function code of RFC 5340, whose types are known.
    const GREATEST_KNOWN: u16 = 9;

    /// How far it is flooded. LSAs of unknown types stay on the link if their U-bit is clear (RFC 5340 section
    /// A.4.2.1).
    pub const fn scope(self) -> Scope {
        let code = self.0 & 0x1FFF;
        let is_known = code >= 1 && code <= Self::GREATEST_KNOWN;
        match (self.0 >> 13) & 3 {
            3 => Scope::Reserved,
            _ if !is_known && self.0 & 0x8000 == 0 => Scope::Link,
            0 => Scope::Link,
            1 => Scope::Area,
            _ => Scope::As,
        }
    }

    /// Its name; `None` for types that this router only floods.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            LsType::ROUTER => "router",
            LsType::NETWORK => "network",
            LsType::LINK => "link",
            LsType::INTRA_AREA_PREFIX => "intra-area-prefix",
            LsType::INFORMATION => "router-information",
            LsType::EXTENDED_ROUTER => "e-router",
            LsType::LOCATOR => "srv6-locator",
            _ => return None,
        })
    }
}

impl std::fmt::Debug for LsType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl LsaHeader {
    /// The number of a router's first LSA.
    pub const FIRST_SEQUENCE: i32 = i32::MIN + 1;

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(LsaHeader {
            age_s: reader.u16()?,
            kind: LsType(reader.u16()?),
            id: reader.u32()?,
            router: RouterId(reader.u32()?),
            sequence: reader.u32()?.cast_signed(),
            checksum: reader.u16()?,
            length: reader.u16()?,
        })
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.age_s.to_be_bytes());
        out.extend(self.kind.0.to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend(self.router.0.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.checksum.to_be_bytes());
        out.extend(self.length.to_be_bytes());
    }

    /// What identifies the LSA.
    pub fn key(&self) -> LsaKey {
        LsaKey { kind: self.kind, id: self.id, router: self.router }
    }

    /// Whether its time is over.
    pub fn is_old(&self) -> bool {
        self.age_s >= MAX_AGE_S
    }

    /// Which of two instances is newer: the greater one; equal ones are the same instance (RFC 2328 section 13.1).
    pub fn compare(&self, other: &LsaHeader) -> Ordering {
        let by_age = || {
            // A greater age than the limit is that limit.
            let ages = [self.age_s.min(MAX_AGE_S), other.age_s.min(MAX_AGE_S)];
            let is_far = ages[0].abs_diff(ages[1]) > MAX_AGE_DIFF_S;
            if is_far { ages[1].cmp(&ages[0]) } else { Ordering::Equal }
        };
        let numbers = self.sequence.cmp(&other.sequence).then(self.checksum.cmp(&other.checksum));
        numbers.then(self.is_old().cmp(&other.is_old())).then_with(by_age)
    }
}
