//! Values in the notation of `node.toml`.

use super::located::{Notation, Written};
use srdma_group::PsnOffset;
use srdma_wire::{MacAddress, Prefix, Psn, Qpn};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// An integer from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Integer<MIN, MAX> {
    /// The value, or the bound that it exceeds.
    pub fn clamped(value: u64) -> Self {
        Integer(value.clamp(MIN, MAX))
    }

    pub fn get(self) -> u64 {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> Notation for Integer<MIN, MAX> {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from {MIN} to {MAX}")
    }

    fn written(&self) -> Written {
        Written::Integer(self.0)
    }

    fn from_integer(integer: u64) -> Option<Self> {
        (MIN..=MAX).contains(&integer).then_some(Integer(integer))
    }
}

/// A count from 1 on.
pub type PositiveU32 = Integer<1, 0xFFFF_FFFF>;

#[derive(Clone, Copy, Debug)]
pub struct Probability(pub f64);

impl Notation for Probability {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 1")
    }

    fn written(&self) -> Written {
        Written::Number(self.0)
    }

    fn from_integer(integer: u64) -> Option<Self> {
        (integer <= 1).then_some(Probability(integer as f64))
    }

    fn from_number(number: f64) -> Option<Self> {
        (0.0..=1.0).contains(&number).then_some(Probability(number))
    }
}

impl Notation for Qpn {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a queue pair number of 24 bits, from 2 to 0xffffff: 0 and 1 are reserved")
    }

    fn written(&self) -> Written {
        Written::Integer(self.get().into())
    }

    fn from_integer(integer: u64) -> Option<Self> {
        Qpn::new(u32::try_from(integer).ok()?).filter(|qpn| qpn.is_connected())
    }
}

impl Notation for Psn {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a packet sequence number of 24 bits, from 0 to 0xffffff")
    }

    fn written(&self) -> Written {
        Written::Integer(self.get().into())
    }

    fn from_integer(integer: u64) -> Option<Self> {
        (integer < 1 << 24).then(|| Psn::new(integer as u32))
    }
}

impl Notation for PsnOffset {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a distance of packet sequence numbers of 24 bits, from 0 to 0xffffff")
    }

    fn written(&self) -> Written {
        Written::Integer(self.get().into())
    }

    fn from_integer(integer: u64) -> Option<Self> {
        PsnOffset::new(u32::try_from(integer).ok()?)
    }
}

impl Notation for Ipv6Addr {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an IPv6 address such as \"2001:db8::1\"")
    }

    fn written(&self) -> Written {
        Written::Text(self.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// An IPv6 address that an interface can have: neither multicast nor unspecified nor loopback (`::1`), and no
/// IPv4-mapped one, by which an IPv4 address is meant inside the node (D258).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress(pub Ipv6Addr);

impl Notation for HostAddress {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a unicast IPv6 address such as \"2001:db8::1\", neither :: nor ::1")
    }

    fn written(&self) -> Written {
        Written::Text(self.0.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let address: Ipv6Addr = text.parse().ok()?;
        let is_host = !address.is_multicast() && !address.is_unspecified() && !address.is_loopback();
        (is_host && address.to_ipv4_mapped().is_none()).then_some(HostAddress(address))
    }
}

/// The same, or an IPv4 address, as an IPv4-mapped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyAddress(pub Ipv6Addr);

impl Notation for AnyAddress {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a unicast address such as \"2001:db8::1\" or \"192.0.2.1\", neither :: nor a loopback's")
    }

    fn written(&self) -> Written {
        Written::Text(self.0.to_canonical().to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        match text.parse::<Ipv4Addr>() {
            Ok(address) => is_ipv4_host(address).then(|| AnyAddress(address.to_ipv6_mapped())),
            Err(_) => HostAddress::from_text(text).map(|HostAddress(address)| AnyAddress(address)),
        }
    }
}

/// An IPv4 address alone, as an IPv4-mapped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4HostAddress(pub Ipv6Addr);

impl Notation for Ipv4HostAddress {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a unicast IPv4 address such as \"192.0.2.1\", not a loopback's")
    }

    fn written(&self) -> Written {
        Written::Text(self.0.to_canonical().to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let address = text.parse().ok().filter(|address| is_ipv4_host(*address))?;
        Some(Ipv4HostAddress(address.to_ipv6_mapped()))
    }
}

/// Whether an interface can have an IPv4 address.
fn is_ipv4_host(address: Ipv4Addr) -> bool {
    !address.is_multicast() && !address.is_broadcast() && address.octets()[0] != 0 && !address.is_loopback()
}

/// The address of an IPv6 multicast group.
#[derive(Clone, Copy, Debug)]
pub struct MulticastAddress(pub Ipv6Addr);

impl Notation for MulticastAddress {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an IPv6 multicast address such as \"ff3e::100\"")
    }

    fn written(&self) -> Written {
        Written::Text(self.0.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().filter(Ipv6Addr::is_multicast).map(MulticastAddress)
    }
}

impl Notation for Prefix {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a unicast IPv6 address or prefix such as \"2001:db8::/32\", all bits behind its length zero")
    }

    fn written(&self) -> Written {
        Written::Text(self.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let prefix = text.parse().ok().or_else(|| text.parse().ok().map(Prefix::host))?;
        (!prefix.address().is_multicast() && !prefix.is_ipv4()).then_some(prefix)
    }
}

/// A prefix of IPv6, or of IPv4 (D258).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyPrefix(pub Prefix);

impl Notation for AnyPrefix {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let examples = "such as \"2001:db8::/32\" or \"192.0.2.0/24\"";
        write!(f, "a unicast address or prefix {examples}, all bits behind its length zero")
    }

    fn written(&self) -> Written {
        Written::Text(self.0.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let (address, len) = text.split_once('/').unwrap_or((text, "32"));
        let Ok(address) = address.parse::<Ipv4Addr>() else { return Notation::from_text(text).map(AnyPrefix) };
        let is_number = len.bytes().all(|digit| digit.is_ascii_digit());
        let prefix = Prefix::of_ipv4(address, len.parse().ok().filter(|_| is_number)?)?;
        let has_no_more = prefix.address() == address.to_ipv6_mapped();
        (has_no_more && !address.is_multicast()).then_some(AnyPrefix(prefix))
    }
}

impl Notation for MacAddress {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a unicast MAC address such as \"02:00:00:00:00:01\"")
    }

    fn written(&self) -> Written {
        Written::Text(self.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        let octet = |digits: &str| -> Option<u8> {
            let is_octet = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            u8::from_str_radix(digits, 16).ok().filter(|_| is_octet)
        };
        let octets: Vec<u8> = text.split(':').map(octet).collect::<Option<_>>()?;
        let address = MacAddress(octets.try_into().ok()?);
        (!address.is_group() && address.0 != [0; 6]).then_some(address)
    }
}

/// The name of a port. It is part of a file's name, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName(pub String);

impl Notation for PortName {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a port's name: up to 64 letters, digits, '.', '_' and '-', the first a letter or digit")
    }

    fn written(&self) -> Written {
        Written::Text(self.0.clone())
    }

    fn from_text(text: &str) -> Option<Self> {
        let starts = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        let is_plain = |character: char| character.is_ascii_alphanumeric() || ".-_".contains(character);
        (starts && text.len() <= 64 && text.chars().all(is_plain)).then(|| PortName(text.to_owned()))
    }
}

/// The name of a network interface, as the kernel allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceName(pub String);

impl Notation for InterfaceName {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an interface's name of 1 to 15 characters, without blanks, '/' and ':'")
    }

    fn written(&self) -> Written {
        Written::Text(self.0.clone())
    }

    fn from_text(text: &str) -> Option<Self> {
        let is_plain = |character: char| character.is_ascii_graphic() && !"/:".contains(character);
        let fits = (1..=15).contains(&text.len()) && text.chars().all(is_plain) && ![".", ".."].contains(&text);
        fits.then(|| InterfaceName(text.to_owned()))
    }
}

impl Notation for SocketAddr {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address with a port, such as \"[::1]:9164\"")
    }

    fn written(&self) -> Written {
        Written::Text(self.to_string())
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A neighbour at a port: `ADDRESS%PORT`, as RFC 4007 writes an address with its zone. An IPv4 address is an
/// IPv4-mapped one (D258).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedAddress {
    pub address: Ipv6Addr,
    pub port: String,
}

impl Notation for ZonedAddress {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a neighbour as ADDRESS%PORT, such as \"fe80::1%uplink\" or \"192.0.2.1%hosts\"")
    }

    fn written(&self) -> Written {
        Written::Text(format!("{}%{}", self.address.to_canonical(), self.port))
    }

    fn from_text(text: &str) -> Option<Self> {
        let (address, port) = text.split_once('%')?;
        let AnyAddress(address) = AnyAddress::from_text(address)?;
        let PortName(port) = PortName::from_text(port)?;
        Some(ZonedAddress { address, port })
    }
}

impl Notation for Duration {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as \"20us\": a number and one of ns, us, ms, s")
    }

    fn written(&self) -> Written {
        Written::Text(format_duration(*self))
    }

    fn from_text(text: &str) -> Option<Self> {
        parse_duration(text)
    }
}

/// A time as `node.toml` and the command line write it: a decimal number and one of `ns`, `us`, `ms`, `s`, such as
/// `20us` or `1.5ms`. `None` for anything else, for fractions of a nanosecond, and beyond 2^64 nanoseconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let decimals = match unit {
        "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, part)| (whole, Some(part)));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !fraction.is_none_or(is_number) {
        return None;
    }
    let fraction = fraction.unwrap_or("");
    let missing = usize::checked_sub(decimals, fraction.len())?;
    let digits = format!("{whole}{fraction}{}", "0".repeat(missing));
    digits.parse().ok().map(Duration::from_nanos)
}

/// A time as [`parse_duration`] reads it, in the largest unit that needs no fraction.
fn format_duration(time: Duration) -> String {
    let ns = time.as_nanos();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let (unit, length) = units.into_iter().find(|(_, length)| ns.is_multiple_of(*length)).unwrap_or(("ns", 1));
    format!("{}{unit}", ns / length)
}

/// The octets of an HMAC key, in hexadecimal.
pub struct Secret(pub Vec<u8>);

impl Secret {
    /// RFC 2104 section 3 advises against keys shorter than the hash, 32 octets; this much a key needs for not to be
    /// found by trying, and those of 8 to 31 octets are in use with routers that take passwords.
    const MIN_LEN: usize = 8;
    /// HMAC-SHA-256 hashes longer keys down to less than its block of 64 octets (RFC 2104 section 2).
    const MAX_LEN: usize = 64;
}

impl Notation for Secret {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string of {} to {} octets, each two hexadecimal digits", Self::MIN_LEN, Self::MAX_LEN)
    }

    fn written(&self) -> Written {
        Written::Text(hex::encode(&self.0))
    }

    fn from_text(text: &str) -> Option<Self> {
        let Octets(octets) = Octets::from_text(text)?;
        (Self::MIN_LEN..=Self::MAX_LEN).contains(&octets.len()).then_some(Secret(octets))
    }
}

/// Octets in hexadecimal.
#[derive(Clone, Debug)]
pub struct Octets(pub Vec<u8>);

impl Notation for Octets {
    fn describe(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string of octets, each two hexadecimal digits")
    }

    fn written(&self) -> Written {
        Written::Text(hex::encode(&self.0))
    }

    fn from_text(text: &str) -> Option<Self> {
        hex::decode(text).ok().map(Octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_no_fraction_of_a_nanosecond() {
        let ns = |text| parse_duration(text).map(|duration| duration.as_nanos());
        assert_eq!(ns("20us"), Some(20_000));
        assert_eq!(ns("1.5ms"), Some(1_500_000));
        assert_eq!(ns("0.000000001s"), Some(1));
        assert_eq!(ns("0s"), Some(0));
        assert_eq!(ns("7ns"), Some(7));
        for wrong in ["", "20", "us", "20 us", "-1s", "+1s", "1.s", ".5s", "0.5ns", "1e3s", "1m", "99999999999999s"] {
            assert_eq!(ns(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        for (ns, text) in [(0, "0s"), (1, "1ns"), (1_500, "1500ns"), (20_000, "20us"), (3_000_000_000, "3s")] {
            let time = Duration::from_nanos(ns);
            assert_eq!((format_duration(time).as_str(), parse_duration(text)), (text, Some(time)));
        }
        let longest = Duration::from_nanos(u64::MAX);
        assert_eq!(parse_duration(&format_duration(longest)), Some(longest));
    }

    #[test]
    fn prefixes_have_no_bits_behind_their_length() {
        let text = |text| Prefix::from_text(text).map(|prefix| prefix.to_string());
        assert_eq!(text("2001:db8::/32").as_deref(), Some("2001:db8::/32"));
        assert_eq!(text("2001:db8::1").as_deref(), Some("2001:db8::1/128"));
        assert_eq!(text("::/0").as_deref(), Some("::/0"));
        for wrong in ["2001:db8::1/32", "2001:db8::/129", "2001:db8::/", "2001:db8::/+32", "ff3e::/16", "10.0.0.0/8"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn prefixes_may_be_those_of_ipv4_where_routes_are() {
        let text = |text| AnyPrefix::from_text(text).map(|AnyPrefix(prefix)| prefix.to_string());
        for right in ["2001:db8::/32", "192.0.2.0/24", "0.0.0.0/0", "192.0.2.1/32"] {
            assert_eq!(text(right).as_deref(), Some(right));
        }
        assert_eq!(text("192.0.2.1").as_deref(), Some("192.0.2.1/32"));
        for wrong in ["192.0.2.1/24", "192.0.2.0/33", "224.0.0.0/4", "192.0.2/24", "192.0.2.0/", "192.0.2.0/+24"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
        assert_eq!((text("::ffff:192.0.2.0/120"), Prefix::from_text("192.0.2.0/24")), (None, None));
    }

    #[test]
    fn neighbours_and_ports_may_have_ipv4_addresses() {
        let zoned = ZonedAddress::from_text("192.0.2.1%hosts").expect("a neighbour");
        assert_eq!(zoned.address, Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped());
        assert_eq!(zoned.written(), Written::Text("192.0.2.1%hosts".into()));
        for wrong in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::ffff:192.0.2.1"] {
            assert_eq!(AnyAddress::from_text(wrong), None, "{wrong}");
        }
        assert_eq!(HostAddress::from_text("::ffff:192.0.2.1"), None);
    }

    #[test]
    fn mac_addresses_are_unicast() {
        let address = MacAddress::from_text("02:00:00:00:0A:fe");
        assert_eq!(address, Some(MacAddress([2, 0, 0, 0, 10, 254])));
        for wrong in ["02:00:00:00:00", "02:00:00:00:00:00:00", "2:0:0:0:0:1", "33:33:00:00:01:00", "00:00:00:00:00:00"]
        {
            assert_eq!(MacAddress::from_text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn port_names_make_file_names() {
        for right in ["uplink", "eth0.100", "N6-N4", "1"] {
            assert!(PortName::from_text(right).is_some(), "{right}");
        }
        for wrong in ["", ".hidden", "-in", "a/b", "a%b", "a=b", "ä", &"a".repeat(65)] {
            assert!(PortName::from_text(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn keys_are_whole_octets() {
        let octets = |text: &str| Secret::from_text(text).map(|secret| secret.0);
        assert_eq!(octets(&"00fF".repeat(8)), Some([0, 255].repeat(8)));
        assert_eq!(octets(&"00".repeat(64)).map(|octets| octets.len()), Some(64));
        let odd = "0".repeat(33);
        for wrong in ["", &odd, &"0g".repeat(16), &"0x00".repeat(8), &"00".repeat(7), &"00".repeat(65)] {
            assert!(Secret::from_text(wrong).is_none(), "{wrong}");
        }
    }
}
