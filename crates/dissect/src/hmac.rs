//! HMAC of the SRH (RFC 8754 section 2.1.2), tried with every cover (D9).

use srdma_dataplane::{Cover, HmacKey};
use srdma_wire::srh::Srh;
use srdma_wire::tlv::{HmacView, TlvTypes};
use std::collections::BTreeMap;

/// Keys of HMAC TLVs by HMAC Key ID, each prepared for every cover; collected from pairs of id and secret.
#[derive(Debug, Default)]
pub struct Keys(BTreeMap<u32, [(Cover, HmacKey); 3]>);

impl<'a> FromIterator<(u32, &'a [u8])> for Keys {
    fn from_iter<I: IntoIterator<Item = (u32, &'a [u8])>>(keys: I) -> Self {
        let covers = |secret: &[u8]| {
            [Cover::Rfc8754, Cover::Tlvs, Cover::Linux].map(|cover| (cover, HmacKey::new(secret, cover)))
        };
        Keys(keys.into_iter().map(|(id, secret)| (id, covers(secret))).collect())
    }
}

/// Result of verifying an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// It is the HMAC of the SRH, with this cover.
    Matches(Cover),
    /// No key has its HMAC Key ID.
    UnknownKey,
    /// It is the HMAC of something else, or has another key.
    Differs,
}

impl Keys {
    /// Compares `digest` with the HMAC of `srh`, in a packet from `source`.
    pub(crate) fn verify(&self, source: &[u8; 16], srh: &Srh<'_>, tlv: &HmacView, digest: &[u8]) -> Match {
        let Some(keys) = self.0.get(&tlv.key_id()) else { return Match::UnknownKey };
        let matching = keys.iter().find(|(_, key)| key.sign(source, srh, tlv, TlvTypes::default()) == digest);
        matching.map_or(Match::Differs, |(cover, _)| Match::Matches(*cover))
    }
}

/// The cover's name in the configuration and in the output.
pub(crate) fn cover_name(cover: Cover) -> &'static str {
    match cover {
        Cover::Rfc8754 => "rfc8754",
        Cover::Tlvs => "tlvs",
        Cover::Linux => "linux",
    }
}
