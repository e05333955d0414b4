//! Numbers within bounds, rejected at their line when they lie outside.

use serde::Deserialize;
use serde::de::{self, Deserializer, Unexpected, Visitor};
use std::fmt;

/// An integer from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The first seed of files that name none.
pub(crate) const FIRST_SEED: u64 = 1;

/// Default first seed.
pub(crate) fn default_first_seed() -> Whole<0, 1_000_000_000> {
    Whole(FIRST_SEED)
}

/// Default number of seeds.
pub(crate) fn default_seeds() -> Whole<1, 1000> {
    Whole(5)
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounds<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Bounds<MIN, MAX> {
            type Value = u64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an integer from {MIN} to {MAX}")
            }

            fn visit_u64<E: de::Error>(self, integer: u64) -> Result<u64, E> {
                let is_inside = (MIN..=MAX).contains(&integer);
                if is_inside { Ok(integer) } else { Err(E::invalid_value(Unexpected::Unsigned(integer), &self)) }
            }

            fn visit_i64<E: de::Error>(self, integer: i64) -> Result<u64, E> {
                match u64::try_from(integer) {
                    Ok(integer) => self.visit_u64(integer),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(integer), &self)),
                }
            }
        }
        deserializer.deserialize_u64(Bounds::<MIN, MAX>).map(Whole)
    }
}

/// A share of one, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Fraction(pub(super) f64);

impl Fraction {
    /// Nothing.
    pub(crate) const ZERO: Fraction = Fraction(0.0);

    /// The share.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = f64::deserialize(deserializer)?;
        if (0.0..=1.0).contains(&found) {
            return Ok(Fraction(found));
        }
        Err(de::Error::invalid_value(Unexpected::Float(found), &"a number from 0 to 1"))
    }
}
