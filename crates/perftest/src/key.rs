//! The key: what a party tells of its queue pair, as 108 octets of text.
//!
//! ```text
//!   0000:0001:000011:2af965:00000263:00007f5bee7fe000:20:01:0d:b8:…:01:00000000:
//!   LID  │    QPN    PSN    R_Key    virtual address  GID, 16 octets   SRQN     zero
//!        reads under way: 1 but for READ and ATOMIC
//! ```

use crate::refusal::Problem;
use srdma_wire::{Psn, Qpn};
use std::net::Ipv6Addr;

/// A party's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// LID; 0 on RoCE.
    pub lid: u16,
    /// READs and ATOMICs that may be under way.
    pub reads: u16,
    /// Its queue pair.
    pub qpn: Qpn,
    /// PSN of its first packet.
    pub psn: Psn,
    /// R_Key of its memory.
    pub rkey: u32,
    /// First virtual address of its memory.
    pub virtual_address: u64,
    /// Its GID.
    pub gid: Ipv6Addr,
    /// Number of its shared receive queue, which RC does not use.
    pub srqn: u32,
}

/// Hexadecimal digits of the fields, in their order.
const DIGITS: [usize; 23] = [4, 4, 6, 6, 8, 16, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8];

impl Key {
    /// Length in octets.
    pub const LEN: usize = 108;

    /// Whether octets are a whole key without GID, as of InfiniBand, which has 59.
    pub(crate) fn is_without_gid(octets: &[u8]) -> bool {
        octets.get(58) == Some(&0)
    }

    /// Reads a key.
    pub(crate) fn parse(octets: &[u8]) -> Result<Self, Problem> {
        let mut fields = [0; DIGITS.len()];
        let mut rest = octets;
        for (field, digits) in fields.iter_mut().zip(DIGITS) {
            let (text, behind) = rest.split_at_checked(digits).ok_or(Problem::NoMessage)?;
            *field = parse_number(text)?;
            rest = behind.strip_prefix(b":").ok_or(Problem::NoMessage)?;
        }
        if rest != [0] {
            return Err(Problem::NoMessage);
        }
        let [lid, reads, qpn, psn, rkey, virtual_address, gid @ .., srqn] = fields;
        // The fields have no more digits than the types.
        Ok(Key {
            lid: lid as u16,
            reads: reads as u16,
            qpn: Qpn::new(qpn as u32).ok_or(Problem::NoMessage)?,
            psn: Psn::new(psn as u32),
            rkey: rkey as u32,
            virtual_address,
            gid: Ipv6Addr::from(gid.map(|octet| octet as u8)),
            srqn: srqn as u32,
        })
    }

    /// The key as a message.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let Key { lid, reads, rkey, virtual_address, srqn, .. } = self;
        let (qpn, psn) = (self.qpn.get(), self.psn.get());
        let mut text = format!("{lid:04x}:{reads:04x}:{qpn:06x}:{psn:06x}:{rkey:08x}:{virtual_address:016x}:");
        for octet in self.gid.octets() {
            text += &format!("{octet:02x}:");
        }
        text += &format!("{srqn:08x}:\0");
        text.into_bytes()
    }

    /// Whether a member of a group can have this queue pair.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let gid = self.gid;
        if gid.to_ipv4_mapped().is_some() {
            return Err(Problem::Ipv4Gid);
        }
        if gid.is_unspecified() || gid.is_loopback() || gid.is_multicast() || gid.is_unicast_link_local() {
            return Err(Problem::Gid(gid));
        }
        if !self.qpn.is_connected() {
            return Err(Problem::ReservedQpn(self.qpn.get()));
        }
        if self.reads > 1 { Err(Problem::Reads) } else { Ok(()) }
    }

    /// Why a key that comes again differs.
    pub(crate) fn difference(&self, other: &Key) -> Option<Problem> {
        match (self == other, self.qpn == other.qpn) {
            (true, _) => None,
            (false, true) => Some(Problem::OtherKey),
            (false, false) => Some(Problem::SeveralQueuePairs),
        }
    }
}

/// Reads at most 16 hexadecimal digits.
fn parse_number(text: &[u8]) -> Result<u64, Problem> {
    text.iter().try_fold(0, |number, octet| {
        let digit = char::from(*octet).to_digit(16).ok_or(Problem::NoMessage)?;
        Ok(number << 4 | u64::from(digit))
    })
}
