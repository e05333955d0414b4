//! Parsing and formatting of quantities.

use std::time::Duration;

/// Octets: `4096`, `64MiB`, `1 KiB`, `2GB`.
pub fn parse_octets(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ];
    match parse_quantity(text, &UNITS) {
        Some(octets) if octets > 0 => Ok(octets),
        Some(_) => Err("must be at least 1 octet".to_owned()),
        None => Err("expected a number of octets such as 4096, 64MiB or 2GB".to_owned()),
    }
}

/// Bits per second: `100G`, `25Gbit/s`, `400M`.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] =
        [("", 1), ("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];
    const MOST: u64 = 10_000_000_000_000;
    match parse_quantity(text.trim().trim_end_matches("bit/s"), &UNITS) {
        Some(rate @ 1_000..=MOST) => Ok(rate),
        Some(_) => Err("must be from 1K to 10T bits per second".to_owned()),
        None => Err("expected bits per second such as 100G or 400M".to_owned()),
    }
}

/// Nanoseconds: `1us`, `500ns`, `2.5ms`, `0`.
pub fn parse_delay(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] = [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    const MOST_NS: u64 = 10_000_000_000;
    let delay_ns = if text.trim() == "0" { Some(0) } else { parse_quantity(text, &UNITS) };
    match delay_ns {
        Some(delay_ns) if delay_ns <= MOST_NS => Ok(delay_ns),
        Some(_) => Err("must be at most 10s".to_owned()),
        None => Err("expected a time with its unit such as 1us, 500ns or 2.5ms".to_owned()),
    }
}

/// A probability, from 0 to 1.
pub fn parse_probability(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(probability),
        Ok(_) | Err(_) => Err("expected a probability from 0 to 1".to_owned()),
    }
}

/// A number, a whole one or a decimal fraction, and one of these units.
fn parse_quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..unit_at], text[unit_at..].trim_start());
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(*factor);
    }
    let value = number.parse::<f64>().ok()? * *factor as f64;
    (value.is_finite() && value < 2f64.powi(63)).then_some(value.round() as u64)
}

/// A whole number with its thousands set apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of octets in its largest binary unit.
pub fn octets(octets: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(factor, _)| octets >= *factor) {
        Some((factor, unit)) if octets.is_multiple_of(*factor) => format!("{} {unit}", octets / factor),
        Some((factor, unit)) => format!("{:.2} {unit}", octets as f64 / *factor as f64),
        None if octets == 1 => "1 octet".to_owned(),
        None => format!("{octets} octets"),
    }
}

/// A rate in its largest unit, to a tenth of it.
pub fn rate(bits_per_s: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "Tbit/s"), (1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
    match UNITS.into_iter().find(|(factor, _)| bits_per_s >= *factor) {
        Some((factor, unit)) if bits_per_s.is_multiple_of(factor) => format!("{} {unit}", bits_per_s / factor),
        Some((factor, unit)) => format!("{:.1} {unit}", bits_per_s as f64 / factor as f64),
        None => format!("{bits_per_s} bit/s"),
    }
}

/// So many of something, whose plural ends in s.
pub fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A time in a unit that leaves three digits or so.
pub fn time(ns: u64) -> String {
    let duration = Duration::from_nanos(ns);
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.3} µs", duration.as_secs_f64() * 1e6),
        1_000_000..1_000_000_000 => format!("{:.3} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.3} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(parse_octets("64MiB"), Ok(64 << 20));
        assert_eq!(parse_octets("1 KiB"), Ok(1024));
        assert_eq!(parse_octets("1.5KiB"), Ok(1536));
        assert_eq!(parse_octets("4096"), Ok(4096));
        assert_eq!(parse_octets("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_rate("100G"), Ok(100_000_000_000));
        assert_eq!(parse_rate("25 Gbit/s"), Ok(25_000_000_000));
        assert_eq!(parse_delay("1us"), Ok(1000));
        assert_eq!(parse_delay("2.5ms"), Ok(2_500_000));
        assert_eq!(parse_delay("0"), Ok(0));
    }

    #[test]
    fn invalid_quantities_are_refused() {
        for text in ["", "MiB", "-1", "1 XiB", "0", "1e3", "99999999999999999999GiB", "1..5KiB"] {
            assert!(parse_octets(text).is_err(), "{text}");
        }
        for text in ["0", "100", "11T", "fast", "100g"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        for text in ["1", "11s", "us", "1 hour"] {
            assert!(parse_delay(text).is_err(), "{text}");
        }
        for text in ["2", "-0.1", "NaN", "inf", "a"] {
            assert!(parse_probability(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_are_formatted_for_readers() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(octets(64 << 20), "64 MiB");
        assert_eq!(octets(1_500_000), "1.43 MiB");
        assert_eq!(octets(1), "1 octet");
        assert_eq!(rate(100_000_000_000), "100 Gbit/s");
        assert_eq!(rate(2_500_000_000), "2.5 Gbit/s");
        assert_eq!(rate(66_093_012_000), "66.1 Gbit/s");
        assert_eq!((count(1, "packet"), count(2000, "packet")), ("1 packet".into(), "2,000 packets".into()));
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(1_234_567), "1.235 ms");
    }
}
