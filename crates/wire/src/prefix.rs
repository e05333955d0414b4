//! Prefixes of IPv6 addresses, and of IPv4 addresses as IPv4-mapped ones (RFC 4291 section 2.5.5.2, D258).

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A prefix: an address and how many of its first bits count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: u128,
    len: u8,
}

impl Prefix {
    /// A prefix, with the bits behind its length cleared. `None` when the length exceeds 128.
    pub fn new(address: Ipv6Addr, len: u8) -> Option<Self> {
        (len <= 128).then(|| Prefix { address: u128::from(address) & mask(len), len })
    }

    /// The prefix of one address.
    pub fn host(address: Ipv6Addr) -> Self {
        Prefix { address: u128::from(address), len: 128 }
    }

    /// A prefix of IPv4 addresses. `None` when the length exceeds 32.
    pub fn of_ipv4(address: Ipv4Addr, len: u8) -> Option<Self> {
        Prefix::new(address.to_ipv6_mapped(), len.checked_add(MAPPED_BITS)?)
    }

    /// The prefix of IPv4 addresses that this one stands for, if it does: an address and a length.
    pub fn as_ipv4(&self) -> Option<(Ipv4Addr, u8)> {
        Some((self.address().to_ipv4_mapped()?, self.len.checked_sub(MAPPED_BITS)?))
    }

    /// Whether it stands for a prefix of IPv4 addresses.
    pub fn is_ipv4(&self) -> bool {
        self.as_ipv4().is_some()
    }

    /// The address, its other bits zero.
    pub fn address(&self) -> Ipv6Addr {
        self.address.into()
    }

    /// The address as a number, the first bit highest.
    pub fn bits(&self) -> u128 {
        self.address
    }

    /// The bits of an address that count, as a number.
    pub fn mask(&self) -> u128 {
        mask(self.len)
    }

    /// Length in bits.
    pub fn prefix_len(&self) -> u8 {
        self.len
    }

    /// Whether an address lies in the prefix.
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        u128::from(address) & self.mask() == self.address
    }

    /// Whether the two have an address in common: one of them contains the other.
    pub fn overlaps(&self, other: Prefix) -> bool {
        self.contains(other.address()) || other.contains(self.address())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((address, len)) = self.as_ipv4() {
            return write!(f, "{address}/{len}");
        }
        write!(f, "{}/{}", self.address(), self.len)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixError {
    /// Not an address, a slash and a length of at most 128.
    Syntax,
    /// An address with other bits than the prefix's.
    BitsBehind,
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PrefixError::Syntax => "expected a prefix such as 2001:db8::/32 or 192.0.2.0/24",
            PrefixError::BitsBehind => "bits are set behind the prefix",
        })
    }
}

impl core::error::Error for PrefixError {}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, len) = text.split_once('/').ok_or(PrefixError::Syntax)?;
        let is_number = len.bytes().all(|digit| digit.is_ascii_digit());
        let len = len.parse().ok().filter(|_| is_number).ok_or(PrefixError::Syntax)?;
        let (address, prefix) = match address.parse::<Ipv4Addr>() {
            Ok(address) => (address.to_ipv6_mapped(), Prefix::of_ipv4(address, len)),
            Err(_) => {
                let address: Ipv6Addr = address.parse().map_err(|_| PrefixError::Syntax)?;
                (address, Prefix::new(address, len))
            }
        };
        let prefix = prefix.ok_or(PrefixError::Syntax)?;
        if prefix.address() == address { Ok(prefix) } else { Err(PrefixError::BitsBehind) }
    }
}

/// The address of a host in the notation of its version; one of IPv4 becomes IPv4-mapped.
pub fn host_address(text: &str) -> Option<Ipv6Addr> {
    match text.parse::<Ipv4Addr>() {
        Ok(address) => Some(address.to_ipv6_mapped()),
        Err(_) => text.parse().ok(),
    }
}

/// Bits before the address in an IPv4-mapped one.
const MAPPED_BITS: u8 = 96;

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn prefixes_contain_their_addresses() {
        let address = |text: &str| text.parse::<Ipv6Addr>().expect("an address");
        let prefix = |text, length| Prefix::new(address(text), length).expect("a length");
        assert!(prefix("2001:db8:1::", 48).contains(address("2001:db8:1:ffff::1")));
        assert!(!prefix("2001:db8:1::", 48).contains(address("2001:db8:2::")));
        assert!(prefix("::", 0).contains(address("ffff::")));
        assert!(prefix("8000::", 1).contains(address("ffff::")) && !prefix("8000::", 1).contains(address("7fff::")));
        assert!(Prefix::host(address("::1")).contains(address("::1")));
        assert!(!Prefix::host(address("::1")).contains(address("::")));
        assert_eq!(Prefix::new(address("::"), 129), None);
    }

    #[test]
    fn prefixes_of_ipv4_addresses_are_written_as_such() {
        let net = Prefix::of_ipv4(Ipv4Addr::new(10, 1, 2, 3), 8).expect("a length");
        assert_eq!((net.to_string(), net.prefix_len(), net.is_ipv4()), ("10.0.0.0/8".into(), 104, true));
        assert!(net.contains(Ipv4Addr::new(10, 9, 9, 9).to_ipv6_mapped()));
        assert!(!net.contains(Ipv4Addr::new(11, 0, 0, 0).to_ipv6_mapped()));
        assert_eq!(Prefix::of_ipv4(Ipv4Addr::UNSPECIFIED, 0).map(|all| all.to_string()), Some("0.0.0.0/0".into()));
        assert_eq!(Prefix::of_ipv4(Ipv4Addr::UNSPECIFIED, 33), None);
        assert!(!Prefix::host(Ipv6Addr::LOCALHOST).is_ipv4());
        assert!(!Prefix::new(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(), 95).expect("a length").is_ipv4());
    }

    #[test]
    fn a_text_is_a_prefix_if_no_bit_behind_its_length_is_set() {
        let prefix = Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32).expect("a length");
        assert_eq!("2001:db8::/32".parse(), Ok(prefix));
        assert_eq!("2001:db8::1/32".parse::<Prefix>(), Err(PrefixError::BitsBehind));
        assert_eq!("10.0.0.1/8".parse::<Prefix>(), Err(PrefixError::BitsBehind));
        assert_eq!("10.0.0.0/8".parse(), Ok(Prefix::of_ipv4(Ipv4Addr::new(10, 0, 0, 0), 8).expect("a length")));
        assert_eq!("10.0.0.0/8".parse(), "::ffff:10.0.0.0/104".parse::<Prefix>());
        for wrong in ["", "/", "2001:db8::", "2001:db8::/", "2001:db8::/129", "2001:db8::/+32", "10.0.0.0/33"] {
            assert_eq!(wrong.parse::<Prefix>(), Err(PrefixError::Syntax), "{wrong}");
        }
    }
}
