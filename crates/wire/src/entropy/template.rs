//! The paths to one destination as arithmetic: a base address, and a step for each choice (D255).
//!
//! ```text
//! value    |        0        | choice 1 | choice 2 | …     the last choice in the least significant bits
//! address  base + choice 1 × step 1 + choice 2 × step 2 + …
//! ```

use super::Entropy;
use core::fmt;
use core::net::Ipv6Addr;

/// Choices of a template, at most: the hops of a path.
pub const MAX_CHOICES: usize = 8;

/// Bits behind the block, which all addresses of a template share (D81).
const ID_BITS: u32 = 96;

/// A choice of a path: a field of the entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Width of the field, up to 32 bits.
    pub bits: u8,
    /// Number of alternatives: 1 to two to the power of the width.
    pub choices: u32,
    /// The address is higher by so much for each, as numbers of 128 bits.
    pub step: Ipv6Addr,
}

/// The paths to one destination: what a NIC needs to expand an entropy to a destination address.
///
/// ```
/// use srdma_wire::Entropy;
/// use srdma_wire::entropy::{AddressTemplate, Choice};
///
/// // From leaf 1 by one of the spines 0x500 and 0x600 to leaf 3.
/// let base = "5f00:0:100:500:300::".parse().unwrap();
/// let spine = Choice { bits: 1, choices: 2, step: "0:0:0:100::".parse().unwrap() };
/// let template = AddressTemplate::new(base, &[spine]).unwrap();
/// assert_eq!(template.expand(Entropy(1)), Ok("5f00:0:100:600:300::".parse().unwrap()));
/// assert!(template.expand(Entropy(2)).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTemplate {
    base: u128,
    choices: [Choice; MAX_CHOICES],
    count: usize,
}

/// Reason for which base and choices are no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// More choices than [`MAX_CHOICES`].
    TooManyChoices(usize),
    /// More than 32 bits together.
    TooManyBits(u32),
    /// The choice at this position has no alternative, or more than fit its width.
    Alternatives(usize),
    /// An address of a value would lie outside the base's /32.
    OutsideBlock,
}

/// Reason for which an entropy is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpandError {
    /// Bits are set above the choices.
    BitsAbove(Entropy),
    /// There is no such alternative.
    NoSuchChoice {
        /// Position of the choice.
        position: usize,
        /// The alternative in the value.
        found: u32,
        /// The number of alternatives.
        choices: u32,
    },
}

impl AddressTemplate {
    /// A template of a base address and choices, the first in the most significant bits.
    ///
    /// # Errors
    ///
    /// Too many choices or bits, a choice without alternative, or values whose addresses lie outside the base's /32.
    pub fn new(base: Ipv6Addr, choices: &[Choice]) -> Result<Self, TemplateError> {
        const NONE: Choice = Choice { bits: 0, choices: 1, step: Ipv6Addr::UNSPECIFIED };
        let base = u128::from(base);
        let mut template = AddressTemplate { base, choices: [NONE; MAX_CHOICES], count: choices.len() };
        if choices.len() > MAX_CHOICES {
            return Err(TemplateError::TooManyChoices(choices.len()));
        }
        let bits = choices.iter().map(|choice| u32::from(choice.bits)).sum();
        if bits > u32::BITS {
            return Err(TemplateError::TooManyBits(bits));
        }
        let mut last = Some(base);
        for (position, (place, choice)) in template.choices.iter_mut().zip(choices).enumerate() {
            if choice.choices == 0 || u64::from(choice.choices) > 1 << choice.bits {
                return Err(TemplateError::Alternatives(position));
            }
            let most = u128::from(choice.step).checked_mul(u128::from(choice.choices - 1));
            last = last.zip(most).and_then(|(last, most)| last.checked_add(most));
            *place = *choice;
        }
        match last {
            Some(last) if last >> ID_BITS == base >> ID_BITS => Ok(template),
            Some(_) | None => Err(TemplateError::OutsideBlock),
        }
    }

    /// The address of choice 0 everywhere.
    pub fn base(&self) -> Ipv6Addr {
        self.base.into()
    }

    /// The choices, the first in the most significant bits.
    pub fn choices(&self) -> &[Choice] {
        self.choices.get(..self.count).unwrap_or_default()
    }

    /// The number of paths.
    pub fn paths(&self) -> u64 {
        self.choices().iter().map(|choice| u64::from(choice.choices)).product()
    }

    /// The outer destination address of a value.
    ///
    /// # Errors
    ///
    /// The value is that of no path.
    pub fn expand(&self, entropy: Entropy) -> Result<Ipv6Addr, ExpandError> {
        let mut rest = u64::from(entropy.0);
        let mut address = self.base;
        for (position, choice) in self.choices().iter().enumerate().rev() {
            let found = (rest & ((1 << choice.bits) - 1)) as u32;
            if found >= choice.choices {
                return Err(ExpandError::NoSuchChoice { position, found, choices: choice.choices });
            }
            rest >>= choice.bits;
            // In bounds: the greatest address was checked.
            address = address.wrapping_add(u128::from(choice.step).wrapping_mul(u128::from(found)));
        }
        if rest == 0 { Ok(address.into()) } else { Err(ExpandError::BitsAbove(entropy)) }
    }

    /// The values of all paths, in ascending order.
    pub fn values(&self) -> impl Iterator<Item = Entropy> + '_ {
        (0..self.paths()).map(|number| {
            let (mut rest, mut value, mut shift) = (number, 0, 0);
            for choice in self.choices().iter().rev() {
                value |= (rest % u64::from(choice.choices)) << shift;
                rest /= u64::from(choice.choices);
                shift += u32::from(choice.bits);
            }
            Entropy(value as u32)
        })
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::TooManyChoices(found) => write!(f, "{found} choices: expected {MAX_CHOICES} at most"),
            TemplateError::TooManyBits(found) => write!(f, "{found} bits of choices: expected 32 at most"),
            TemplateError::Alternatives(position) => {
                write!(f, "choice {} has no alternative, or more than fit its bits", position + 1)
            }
            TemplateError::OutsideBlock => f.write_str("the last path would have an address outside the base's /32"),
        }
    }
}

impl core::error::Error for TemplateError {}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpandError::BitsAbove(Entropy(value)) => {
                write!(f, "entropy {value:#x} is no path: bits are set above those of the choices")
            }
            ExpandError::NoSuchChoice { position, found, choices } => {
                let (number, last) = (position + 1, choices.saturating_sub(1));
                write!(f, "the entropy is no path: choice {number} is {found}, expected 0 to {last}")
            }
        }
    }
}

impl core::error::Error for ExpandError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn choice(bits: u8, choices: u32, step: &str) -> Choice {
        Choice { bits, choices, step: address(step) }
    }

    /// D255, by hand: two planes, whose leaves and spines differ by 0x100, and three spines in each.
    #[test]
    fn a_plane_changes_every_id_and_a_spine_one() {
        let choices = [choice(1, 2, "0:0:100:100:100::"), choice(2, 3, "0:0:0:1::")];
        let template = AddressTemplate::new(address("5f00:0:101:4901:102::"), &choices).unwrap();
        let expanded = |value| template.expand(Entropy(value));
        assert_eq!(expanded(0b000), Ok(address("5f00:0:101:4901:102::")));
        assert_eq!(expanded(0b010), Ok(address("5f00:0:101:4903:102::")));
        assert_eq!(expanded(0b100), Ok(address("5f00:0:201:4a01:202::")));
        assert_eq!(expanded(0b110), Ok(address("5f00:0:201:4a03:202::")));
        assert_eq!(expanded(0b011), Err(ExpandError::NoSuchChoice { position: 1, found: 3, choices: 3 }));
        assert_eq!(expanded(0b1000), Err(ExpandError::BitsAbove(Entropy(8))));
        let values: Vec<u32> = template.values().map(|value| value.0).collect();
        assert_eq!(values, [0, 1, 2, 4, 5, 6]);
    }

    #[test]
    fn impossible_templates_are_refused() {
        let base = address("5f00:0:1::");
        let refused = |choices: &[Choice]| AddressTemplate::new(base, choices).unwrap_err();
        assert_eq!(refused(&[choice(0, 1, "::"); 9]), TemplateError::TooManyChoices(9));
        assert_eq!(refused(&[choice(20, 1, "::"), choice(13, 1, "::")]), TemplateError::TooManyBits(33));
        assert_eq!(refused(&[choice(1, 0, "::")]), TemplateError::Alternatives(0));
        assert_eq!(refused(&[choice(1, 3, "::")]), TemplateError::Alternatives(0));
        assert_eq!(refused(&[choice(1, 2, "0:1::")]), TemplateError::OutsideBlock);
        assert_eq!(refused(&[choice(32, u32::MAX, "ffff::")]), TemplateError::OutsideBlock);
        assert!(AddressTemplate::new(base, &[choice(32, u32::MAX, "::1")]).is_ok());
    }

    proptest! {
        /// Every value of a template is a path or refused, and as many are paths as it has.
        #[test]
        fn values_are_the_paths_and_no_other(widths in prop::collection::vec((0_u8..4, 1_u32..9), 0..5), any: u32) {
            let one = |(bits, choices): &(u8, u32)| choice(*bits, (*choices).min(1 << bits), "::1");
            let choices: Vec<Choice> = widths.iter().map(one).collect();
            let template = AddressTemplate::new(address("5f00::"), &choices).unwrap();
            let values: Vec<Entropy> = template.values().collect();
            prop_assert!(values.windows(2).all(|two| two[0] < two[1]));
            prop_assert!(values.iter().all(|value| template.expand(*value).is_ok()));
            let bits: u32 = choices.iter().map(|choice| u32::from(choice.bits)).sum();
            let found = (0..1 << bits).filter(|value| template.expand(Entropy(*value)).is_ok()).count();
            prop_assert_eq!(found as u64, template.paths());
            prop_assert_eq!(template.expand(Entropy(any)).is_ok(), values.contains(&Entropy(any)));
        }

        /// No base, choices or values panic.
        #[test]
        fn nothing_panics(base: u128, given in prop::collection::vec((0_u8.., any::<u32>(), any::<u128>()), 0..10), value: u32) {
            let one = |(bits, choices, step): &(u8, u32, u128)| {
                Choice { bits: *bits, choices: *choices, step: (*step).into() }
            };
            let choices: Vec<Choice> = given.iter().map(one).collect();
            if let Ok(template) = AddressTemplate::new(base.into(), &choices) {
                let _ = template.expand(Entropy(value));
            }
        }
    }
}
