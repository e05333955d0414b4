//! Fields of a frame by the names of their documents, with their positions.

mod headers;
mod rdma;

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A field of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Header and field, such as `IPv6 Hop Limit`; the second header of a kind is `IPv6 (2)`.
    pub name: String,
    /// Offset in bits from the start of the frame.
    pub offset_bits: usize,
    /// Its length in bits.
    pub len_bits: usize,
    notation: Notation,
}

/// Notation of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Decimal,
    Hexadecimal,
    Address,
    Octets,
}

impl Field {
    /// The octet that it begins in.
    pub fn offset(&self) -> usize {
        self.offset_bits / 8
    }

    /// Its bits, right-aligned in octets.
    pub(crate) fn bits(&self, frame: &[u8]) -> Vec<u8> {
        let bit = |index: usize| frame.get(index / 8).map_or(0, |octet| octet >> (7 - index % 8) & 1);
        let mut bits = vec![0; self.len_bits.div_ceil(8)];
        let pad = bits.len() * 8 - self.len_bits;
        for index in 0..self.len_bits {
            let at = pad + index;
            bits[at / 8] |= bit(self.offset_bits + index) << (7 - at % 8);
        }
        bits
    }

    /// Its value in words.
    pub(crate) fn value(&self, frame: &[u8]) -> String {
        let bits = self.bits(frame);
        let number = || bits.iter().fold(0_u64, |number, octet| number << 8 | u64::from(*octet));
        match (self.notation, <[u8; 16]>::try_from(bits.as_slice())) {
            (Notation::Address, Ok(address)) => Ipv6Addr::from(address).to_string(),
            (Notation::Decimal, _) if self.len_bits <= 64 => number().to_string(),
            (Notation::Hexadecimal, _) if self.len_bits <= 64 => format!("{:#x}", number()),
            _ => hex::encode(&bits),
        }
    }
}

/// Fields of a frame, in order and without gaps. Octets that cannot be divided further are one field.
pub fn fields(frame: &[u8]) -> Vec<Field> {
    let mut walk = Walk { frame, at: 0, fields: Vec::new(), header: String::new(), seen: BTreeMap::new() };
    headers::ethernet(&mut walk);
    let rest = frame.len() - walk.at.min(frame.len());
    if rest > 0 {
        walk.octets("rest", rest);
    }
    walk.fields
}

/// Summary of a frame, in a line.
pub fn summary(frame: &[u8]) -> String {
    let fields = fields(frame);
    let mut words: Vec<String> = Vec::new();
    for field in &fields {
        let Some((_, name)) = SUMMARISED.iter().find(|(end, _)| is_named(&field.name, end)) else { continue };
        words.push(format!("{name}{}", field.value(frame)));
    }
    let octets = frame.len();
    if words.is_empty() { format!("{octets} octets") } else { format!("{} ({octets} octets)", words.join(" ")) }
}

/// Fields that distinguish packets, with the prefixes of their values.
const SUMMARISED: [(&str, &str); 11] = [
    ("IPv6 Source Address", ""),
    ("IPv6 Destination Address", "> "),
    ("IPv6 Hop Limit", "HL "),
    ("SRH Segments Left", "SL "),
    ("BTH OpCode", "OpCode "),
    ("BTH Destination QP", "QP "),
    ("BTH PSN", "PSN "),
    ("ICMPv6 Type", "ICMPv6 "),
    ("ICMPv6 Code", "/"),
    ("PFC Class Enable", "PFC classes "),
    ("PFC Time", "time "),
];

/// Whether a field has this name, in the first header of its kind or another.
fn is_named(field: &str, name: &str) -> bool {
    let Some((header, rest)) = name.split_once(' ') else { return field == name };
    let behind = field.strip_prefix(header).map(|behind| behind.trim_start());
    let plain = behind.map(|behind| match behind.strip_prefix('(') {
        Some(numbered) => numbered.split_once(") ").map_or("", |(_, plain)| plain),
        None => behind,
    });
    plain == Some(rest)
}

/// A walk through a frame.
struct Walk<'f> {
    frame: &'f [u8],
    at: usize,
    fields: Vec<Field>,
    header: String,
    seen: BTreeMap<&'static str, usize>,
}

impl Walk<'_> {
    /// Octets that are not divided into fields yet.
    fn rest(&self) -> &[u8] {
        self.frame.get(self.at..).unwrap_or(&[])
    }

    /// An octet of what is next.
    fn peek(&self, offset: usize) -> Option<u8> {
        self.rest().get(offset).copied()
    }

    /// Two octets of what is next.
    fn peek_u16(&self, offset: usize) -> Option<u16> {
        self.rest().get(offset..offset + 2).map(|octets| u16::from_be_bytes([octets[0], octets[1]]))
    }

    /// A header begins, if it is there with so many octets.
    fn begin(&mut self, header: &'static str, octets: usize) -> bool {
        if self.rest().len() < octets {
            return false;
        }
        let seen = self.seen.entry(header).or_default();
        *seen += 1;
        self.header = if *seen == 1 { header.to_owned() } else { format!("{header} ({seen})") };
        true
    }

    /// Fields of these lengths in bits follow, which together are whole octets.
    fn bits(&mut self, fields: &[(&str, usize)]) {
        let mut offset_bits = self.at * 8;
        for (name, len_bits) in fields {
            let notation = match *len_bits {
                128 => Notation::Address,
                48 | 56.. => Notation::Octets,
                _ if DECIMAL.contains(name) => Notation::Decimal,
                _ => Notation::Hexadecimal,
            };
            let name = format!("{} {name}", self.header);
            self.fields.push(Field { name, offset_bits, len_bits: *len_bits, notation });
            offset_bits += len_bits;
        }
        self.at = offset_bits / 8;
    }

    /// So many octets follow as one field, if any.
    fn octets(&mut self, name: &str, octets: usize) {
        let name = format!("{} {name}", self.header).trim().to_owned();
        let octets = octets.min(self.rest().len());
        if octets > 0 {
            let (offset_bits, len_bits) = (self.at * 8, octets * 8);
            self.fields.push(Field { name, offset_bits, len_bits, notation: Notation::Octets });
            self.at += octets;
        }
    }
}

/// Fields that are written as decimal numbers.
const DECIMAL: [&str; 17] = [
    "DSCP",
    "ECN",
    "Payload Length",
    "Next Header",
    "Hop Limit",
    "Hdr Ext Len",
    "Segments Left",
    "Last Entry",
    "Source Port",
    "Destination Port",
    "Length",
    "PSN",
    "MSN",
    "Type",
    "Code",
    "Parameter",
    "Num Receivers",
];

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_capture::Reader;
    use std::path::{Path, PathBuf};

    fn golden() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden")
    }

    /// Whatever others have captured: every bit is in one field, and no name is given twice.
    #[test]
    fn every_bit_of_a_frame_is_in_one_field() {
        let mut frames = 0;
        for entry in std::fs::read_dir(golden()).expect("golden captures") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "pcap") {
                continue;
            }
            for packet in Reader::open(&path).expect("a capture") {
                let frame = packet.expect("a packet").octets;
                for len in [frame.len(), frame.len() - 5, frame.len() / 2, 9] {
                    check(&frame[..len.min(frame.len())]);
                }
                frames += 1;
            }
        }
        assert!(frames > 100);
    }

    fn check(frame: &[u8]) {
        let fields = fields(frame);
        let mut at = 0;
        for field in &fields {
            assert_eq!(field.offset_bits, at, "{}", field.name);
            at += field.len_bits;
        }
        assert_eq!(at, frame.len() * 8);
        let mut names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), fields.len(), "{fields:?}");
    }

    #[test]
    fn fields_have_the_names_of_their_specifications() {
        let packets = Reader::open(&golden().join("scapy_02_endmt_in.pcap")).expect("a capture");
        let frame = packets.map(|packet| packet.expect("a packet").octets).next().expect("a packet");
        let fields = fields(&frame);
        let value = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.value(&frame));
        assert_eq!(value("SRH Segments Left").as_deref(), Some("1"));
        assert_eq!(value("IPv6 Source Address").as_deref(), Some("2001:db8:6::1"));
        assert_eq!(value("End.MT TLV Num Receivers").as_deref(), Some("2"));
        assert_eq!(value("IPv6 (2) Next Header").as_deref(), Some("17"));
        assert_eq!(value("BTH OpCode").as_deref(), Some("0xa"));
        assert!(value("ICRC").is_some());
        assert!(summary(&frame).starts_with("HL 64 2001:db8:6::1 > "), "{}", summary(&frame));
    }
}
