//! The pcapng Interface Description Block: name, link type and resolution of time stamps.
//!
//! Read here rather than by `pcap-file`, which refuses a whole block for one option that it does not like.

use crate::error::Reason;
use crate::packet::LinkType;
use crate::source::{u16_of, u32_of};
use pcap_file::Endianness;

/// An interface as its block describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) link_type: LinkType,
    /// Octets after which packets are cut off; 0 is no limit.
    pub(crate) snaplen: u32,
    pub(crate) name: Option<String>,
    resolution: Resolution,
    offset_s: i64,
}

/// The unit of time stamps (`if_tsresol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// 10 to the power of minus this, in seconds.
    Decimal(u32),
    /// 2 to the power of minus this, in seconds.
    Binary(u32),
}

/// Option codes of an Interface Description Block.
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const NAME: u16 = 2;
    pub(super) const TIME_RESOLUTION: u16 = 9;
    pub(super) const TIME_OFFSET: u16 = 14;
}

impl Description {
    /// Reads a block's body. `None` if not even the link type is there. A damaged option is named beside the
    /// description made from the options before it.
    ///
    /// ```text
    /// | link type (16) | reserved (16) | snap length (32) | options …
    /// option: | code (16) | length (16) | value, padded to 4 octets |
    /// ```
    pub(crate) fn parse(body: &[u8], order: Endianness) -> Option<(Self, Option<Reason>)> {
        let (link_type, rest) = body.split_first_chunk::<2>()?;
        let (_reserved, rest) = rest.split_first_chunk::<2>()?;
        let (snaplen, options) = rest.split_first_chunk::<4>()?;
        let mut description = Description {
            link_type: LinkType(u16_of(order, *link_type).into()),
            snaplen: u32_of(order, *snaplen),
            name: None,
            resolution: Resolution::Decimal(6),
            offset_s: 0,
        };
        let damage = description.read_options(options, order).err();
        Some((description, damage))
    }

    fn read_options(&mut self, mut options: &[u8], order: Endianness) -> Result<(), Reason> {
        while let Some(([code_high, code_low, length @ ..], rest)) = options.split_first_chunk::<4>() {
            let code = u16_of(order, [*code_high, *code_low]);
            if code == option::END {
                return Ok(());
            }
            let length = usize::from(u16_of(order, *length));
            let value = rest.get(..length).ok_or_else(|| {
                Reason::Block(format!(
                    "interface option {code} needs {length} octets, {} left in its block",
                    rest.len()
                ))
            })?;
            self.read_option(code, value, order)?;
            options = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Ok(())
    }

    fn read_option(&mut self, code: u16, value: &[u8], order: Endianness) -> Result<(), Reason> {
        let wrong = || Reason::Block(format!("interface option {code} cannot have {} octets", value.len()));
        match code {
            option::NAME => self.name = Some(String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()),
            option::TIME_RESOLUTION => {
                let [unit] = *value else { return Err(wrong()) };
                let exponent = u32::from(unit & 0x7F);
                self.resolution =
                    if unit & 0x80 == 0 { Resolution::Decimal(exponent) } else { Resolution::Binary(exponent) };
            }
            option::TIME_OFFSET => {
                let octets = <[u8; 8]>::try_from(value).map_err(|_| wrong())?;
                self.offset_s = if order.is_big() { i64::from_be_bytes(octets) } else { i64::from_le_bytes(octets) };
            }
            _ => {}
        }
        Ok(())
    }

    /// Nanoseconds since 1970 of a time stamp in the interface's units, rounded down; `None` when they do not fit.
    pub(crate) fn time_ns(&self, units: u64) -> Option<u64> {
        let units_per_s = match self.resolution {
            Resolution::Decimal(exponent) => 10_u128.checked_pow(exponent),
            Resolution::Binary(exponent) => 1_u128.checked_shl(exponent),
        };
        // A unit too small for 128 bits makes less than a nanosecond of any 64-bit number.
        let since_offset_ns = units_per_s.map_or(0, |per_s| u128::from(units) * 1_000_000_000 / per_s);
        let offset_ns = i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(i128::try_from(since_offset_ns).ok()?.checked_add(offset_ns)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(options: &[u8]) -> (Description, Option<Reason>) {
        let mut body = vec![1, 0, 0, 0, 0, 0, 4, 0];
        body.extend_from_slice(options);
        Description::parse(&body, Endianness::Little).expect("the fixed part is there")
    }

    #[test]
    fn time_stamps_are_in_microseconds_by_default() {
        let (plain, damage) = description(&[]);
        assert!(damage.is_none());
        assert_eq!((plain.link_type, plain.snaplen, plain.time_ns(7)), (LinkType::ETHERNET, 0x4_0000, Some(7000)));
    }

    #[test]
    fn the_resolution_may_be_decimal_or_binary() {
        let resolution = |unit| description(&[9, 0, 1, 0, unit, 0, 0, 0]).0;
        assert_eq!(resolution(9).time_ns(1_234), Some(1_234));
        assert_eq!(resolution(0).time_ns(3), Some(3_000_000_000));
        assert_eq!(resolution(12).time_ns(5_999), Some(5));
        assert_eq!(resolution(0x80 | 10).time_ns(1536), Some(1_500_000_000));
        assert_eq!(resolution(0x7F).time_ns(u64::MAX), Some(0));
        assert_eq!(resolution(0xFF).time_ns(u64::MAX), Some(0));
        assert_eq!(resolution(0).time_ns(u64::MAX), None);
    }

    #[test]
    fn offset_moves_time_stamps_both_ways() {
        let offset = |s: i64| {
            let mut option = vec![14, 0, 8, 0];
            option.extend_from_slice(&s.to_le_bytes());
            description(&option).0
        };
        assert_eq!(offset(2).time_ns(1), Some(2_000_001_000));
        assert_eq!(offset(-1).time_ns(1_500_000), Some(500_000_000));
        assert_eq!(offset(-2).time_ns(1_500_000), None);
        assert_eq!(offset(i64::MAX).time_ns(u64::MAX), None);
    }

    #[test]
    fn options_before_a_damaged_one_are_read() {
        let (named, damage) = description(&[2, 0, 3, 0, b'e', b't', b'h', 0, 9, 0, 40, 0, 9]);
        assert_eq!(named.name.as_deref(), Some("eth"));
        let text = damage.expect("the second option overruns").to_string();
        assert_eq!(text, "interface option 9 needs 40 octets, 1 left in its block");
    }
}
