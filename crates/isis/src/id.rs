//! Identifiers of systems and LSPs (ISO 10589 section 7.1.1, with a system id of six octets).

use std::fmt;
use std::str::FromStr;

/// A system: `0000.0000.0009`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SystemId(pub [u8; 6]);

/// A system, or a pseudonode that it has made for a LAN: `0000.0000.0009.00`.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    pub system: SystemId,
    /// Number of its pseudonode; 0 is the system itself.
    pub pseudonode: u8,
}

/// A Link State PDU: `0000.0000.0009.00-00`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LspId {
    /// Whose it is.
    pub node: NodeId,
    /// Number of its fragment.
    pub fragment: u8,
}

impl SystemId {
    /// Length in octets.
    pub const LEN: usize = 6;
}

impl NodeId {
    /// Length in octets.
    pub const LEN: usize = SystemId::LEN + 1;

    /// A system itself.
    pub const fn of(system: SystemId) -> Self {
        NodeId { system, pseudonode: 0 }
    }

    /// As it lies in a PDU.
    pub fn octets(self) -> [u8; Self::LEN] {
        let [a, b, c, d, e, f] = self.system.0;
        [a, b, c, d, e, f, self.pseudonode]
    }
}

impl From<[u8; NodeId::LEN]> for NodeId {
    fn from([a, b, c, d, e, f, pseudonode]: [u8; NodeId::LEN]) -> Self {
        NodeId { system: SystemId([a, b, c, d, e, f]), pseudonode }
    }
}

impl LspId {
    /// Length in octets.
    pub const LEN: usize = NodeId::LEN + 1;

    /// Below every other one.
    pub const FIRST: LspId = LspId { node: NodeId { system: SystemId([0; 6]), pseudonode: 0 }, fragment: 0 };

    /// Above every other one.
    pub const LAST: LspId = LspId { node: NodeId { system: SystemId([0xFF; 6]), pseudonode: 0xFF }, fragment: 0xFF };

    /// The id behind this one; `None` behind the last.
    pub(crate) fn next(self) -> Option<Self> {
        let number = u64::from_be_bytes(self.octets()).checked_add(1)?;
        Some(LspId::from(number.to_be_bytes()))
    }

    /// As it lies in a PDU.
    pub fn octets(self) -> [u8; Self::LEN] {
        let [a, b, c, d, e, f, pseudonode] = self.node.octets();
        [a, b, c, d, e, f, pseudonode, self.fragment]
    }
}

impl From<[u8; LspId::LEN]> for LspId {
    fn from([a, b, c, d, e, f, pseudonode, fragment]: [u8; LspId::LEN]) -> Self {
        LspId { node: NodeId::from([a, b, c, d, e, f, pseudonode]), fragment }
    }
}

impl fmt::Display for SystemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}{b:02x}.{c:02x}{d:02x}.{e:02x}{g:02x}")
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02x}", self.system, self.pseudonode)
    }
}

impl fmt::Display for LspId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02x}", self.node, self.fragment)
    }
}

impl fmt::Debug for SystemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for LspId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no system id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no system id: expected three groups of four hexadecimal digits, such as 0000.0000.0009")]
pub struct NoSystemId(String);

impl FromStr for SystemId {
    type Err = NoSystemId;

    fn from_str(text: &str) -> Result<Self, NoSystemId> {
        let wrong = || NoSystemId(text.to_owned());
        let mut octets = [0; 6];
        let mut groups = text.split('.');
        for pair in octets.chunks_exact_mut(2) {
            let group = groups.next().filter(|group| group.len() == 4).ok_or_else(wrong)?;
            if !group.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            pair.copy_from_slice(&u16::from_str_radix(group, 16).map_err(|_| wrong())?.to_be_bytes());
        }
        if groups.next().is_some() { Err(wrong()) } else { Ok(SystemId(octets)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_printed() {
        let system: SystemId = "0a00.00ff.0009".parse().unwrap();
        assert_eq!(system.0, [0x0A, 0, 0, 0xFF, 0, 9]);
        assert_eq!(system.to_string(), "0a00.00ff.0009");
        let lsp = LspId { node: NodeId { system, pseudonode: 1 }, fragment: 0x1F };
        assert_eq!(lsp.to_string(), "0a00.00ff.0009.01-1f");
        assert_eq!(LspId::from(lsp.octets()), lsp);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "0000.0000", "0000.0000.0009.00", "000.0000.00009", "0000.0000.000g", "+000.0000.0009"] {
            assert!(text.parse::<SystemId>().is_err(), "{text}");
        }
    }
}
