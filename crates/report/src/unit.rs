//! Units of numbers, and their notation.

/// Unit of a number. Numbers are in the base unit; they are written with a suitable prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, written in ns, µs, ms or s.
    Nanoseconds,
    /// Bits a second, written in kbit/s to Tbit/s.
    BitsPerSecond,
    /// Octets, written in KiB, MiB or GiB.
    Octets,
    /// Things without a unit, such as packets.
    Count,
    /// Hundredths.
    Percent,
    /// A factor, such as a slowdown.
    Times,
}

const TIMES: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const RATES: &[(f64, &str)] = &[(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const OCTETS: &[(f64, &str)] = &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "octets")];

impl Unit {
    /// By what numbers up to this one are divided before they are written, and what is written behind them.
    pub fn scale(self, greatest: f64) -> (f64, &'static str) {
        let scales = match self {
            Unit::Nanoseconds => TIMES,
            Unit::BitsPerSecond => RATES,
            Unit::Octets => OCTETS,
            Unit::Count => return (1.0, ""),
            Unit::Percent => return (1.0, "%"),
            Unit::Times => return (1.0, "×"),
        };
        let fits = scales.iter().find(|(factor, _)| greatest.abs() >= *factor);
        fits.or(scales.last()).copied().unwrap_or((1.0, ""))
    }

    /// A number with its unit, to three digits or so.
    pub fn format(self, value: f64) -> String {
        let (factor, symbol) = self.scale(value);
        let number = number(value / factor);
        match self {
            Unit::Count => number,
            Unit::Times => format!("{number}{symbol}"),
            Unit::Nanoseconds | Unit::BitsPerSecond | Unit::Octets | Unit::Percent => format!("{number}\u{a0}{symbol}"),
        }
    }
}

/// A number to three digits or so, thousands set apart, with a true minus sign.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{size:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut written = String::new();
    if value < 0.0 && text != "0" {
        written.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    if let Some(fraction) = fraction {
        written.push('.');
        written.push_str(fraction);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_readers() {
        let written = [0.0, 0.1234, 1.0, 12.345, 999.6, 1_234_567.0, -0.0001, -2.5].map(number);
        assert_eq!(written, ["0", "0.123", "1", "12.3", "1,000", "1,234,567", "0", "−2.5"]);
        assert_eq!(number(f64::NAN), "–");
    }

    #[test]
    fn units_take_the_prefix_that_suits() {
        assert_eq!(Unit::Nanoseconds.format(1234.0), "1.23\u{a0}µs");
        assert_eq!(Unit::BitsPerSecond.format(42_500_000_000.0), "42.5\u{a0}Gbit/s");
        assert_eq!(Unit::Octets.format(1_572_864.0), "1.5\u{a0}MiB");
        assert_eq!(Unit::Octets.format(0.0), "0\u{a0}octets");
        assert_eq!((Unit::Count.format(12_000.0), Unit::Times.format(1.5)), ("12,000".into(), "1.5×".into()));
    }
}
