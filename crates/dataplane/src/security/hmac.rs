//! The SRH's HMAC (RFC 8754 section 2.1.2), and its extension over the receiver lists (D9).

use crate::behavior::{NextCsid, shift};
use crate::drop::DropReason;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use srdma_wire::tlv::{HmacView, Tlv, TlvTypes, Tlvs, receiver_lists};
use srdma_wire::{Srh, View};
use std::collections::BTreeMap;
use subtle::ConstantTimeEq;
use zerocopy::IntoBytes;

/// Cover of a key's HMAC (D9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cover {
    /// The text of RFC 8754 section 2.1.2.1: source address, Last Entry, Flags, D and reserved, key id, Segment List.
    Rfc8754,
    /// That, and every End.MT and MR TLV, whole and in order.
    #[default]
    Tlvs,
    /// The HMAC of the Linux kernel: RFC 8754's text without the two octets of D and reserved, the flag H of drafts
    /// before the RFC, and the TLV as the last one.
    Linux,
}

/// The flag H, which RFC 8754 no longer has and the Linux kernel requires: "an HMAC TLV is present".
const FLAG_H: u8 = 0x08;

/// A key, ready for use. Its octets are overwritten when it goes.
#[derive(Clone)]
pub struct HmacKey {
    prepared: Hmac<Sha256>,
    cover: Cover,
}

/// The library does so, if it was built to.
const _: fn() = || {
    fn overwrites_itself<T: sha2::digest::zeroize::ZeroizeOnDrop>() {}
    overwrites_itself::<Sha256>();
};

impl std::fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HmacKey({:?})", self.cover)
    }
}

impl HmacKey {
    /// A key of any length.
    pub fn new(secret: &[u8], cover: Cover) -> Self {
        let prepared = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        HmacKey { prepared, cover }
    }

    /// The SRH flags that go with it.
    pub(crate) fn srh_flags(&self) -> u8 {
        if self.cover == Cover::Linux { FLAG_H } else { 0 }
    }

    /// Fills the HMAC field of an SRH that comes from `source`; `srh` ends with its HMAC TLV. `None` if it does not.
    pub(crate) fn sign_last(&self, source: &[u8; 16], octets: &mut [u8], types: TlvTypes) -> Option<()> {
        let (srh, _) = Srh::split(octets).ok()?;
        let tlv = srh.tlvs.len().checked_sub(HmacView::LEN + HmacView::HMAC_LEN)?;
        let (view, _) = HmacView::split(srh.tlvs.get(tlv..)?).ok()?;
        let hmac = self.sign(source, &srh, view, types);
        *octets.last_chunk_mut()? = hmac;
        Some(())
    }

    /// The HMAC of an SRH that comes from `source`.
    pub fn sign(&self, source: &[u8; 16], srh: &Srh<'_>, view: &HmacView, types: TlvTypes) -> [u8; 32] {
        let mut mac = self.prepared.clone();
        mac.update(source);
        mac.update(&[srh.header.last_entry(), srh.header.flags]);
        if self.cover != Cover::Linux {
            mac.update(view.d_and_reserved.as_bytes());
        }
        mac.update(&view.key_id().to_be_bytes());
        mac.update(srh.segments.as_flattened());
        if self.cover == Cover::Tlvs {
            receiver_lists(srh.tlvs, types).map_while(Result::ok).for_each(|list| mac.update(list));
        }
        mac.finalize().into_bytes().into()
    }
}

/// The keys of a node, by key id.
#[derive(Clone, Debug, Default)]
pub(crate) struct HmacKeys(BTreeMap<u32, HmacKey>);

impl HmacKeys {
    /// Adds or replaces a key.
    pub(crate) fn insert(&mut self, key_id: u32, key: HmacKey) {
        self.0.insert(key_id, key);
    }

    /// Removes a key; returns whether there was one.
    pub(crate) fn remove(&mut self, key_id: u32) -> bool {
        self.0.remove(&key_id).is_some()
    }

    /// The key with this id.
    pub(crate) fn get(&self, key_id: u32) -> Option<&HmacKey> {
        self.0.get(&key_id)
    }

    /// Verifies an SRH that came from `source` to `destination` before its receiver lists are accepted (MT-9-1). A key
    /// that does not cover them is not sufficient, unless keys of that cover were admitted: a signature for another
    /// purpose could be reused with any lists appended (D9).
    pub(crate) fn verify_lists(
        &self,
        source: &[u8; 16],
        destination: &[u8; 16],
        srh: &Srh<'_>,
        types: TlvTypes,
        admitted: Cover,
    ) -> Result<(), DropReason> {
        let cover = self.verify(source, destination, srh, types).map_err(|error| error.reason)?;
        if cover == Cover::Tlvs || cover == admitted { Ok(()) } else { Err(DropReason::HmacCover) }
    }

    /// Verifies an SRH that came from `source` to `destination`; returns what its key covers. The comparison takes the
    /// same time wherever the octets differ.
    pub(crate) fn verify(
        &self,
        source: &[u8; 16],
        destination: &[u8; 16],
        srh: &Srh<'_>,
        types: TlvTypes,
    ) -> Result<Cover, HmacError> {
        let mut tlvs = Tlvs::new(srh.tlvs, types);
        let (at, view, hmac) = loop {
            let at = tlvs.offset();
            match tlvs.next() {
                Some(Ok(Tlv::Hmac(view, hmac))) => break (at, view, hmac),
                Some(Ok(_)) => {}
                Some(Err(_)) => return Err(HmacError { reason: DropReason::MalformedTlv, tlv: None }),
                None => return Err(HmacError { reason: DropReason::HmacMissing, tlv: None }),
            }
        };
        let invalid = |reason| HmacError { reason, tlv: Some(at) };
        let key = self.get(view.key_id()).ok_or(invalid(DropReason::HmacUnknownKey))?;
        let expected = key.sign(source, srh, view, types);
        let is_valid = key.admits(srh, view, destination) && bool::from(expected.as_slice().ct_eq(hmac));
        if is_valid { Ok(key.cover) } else { Err(invalid(DropReason::HmacMismatch)) }
    }
}

/// Why an HMAC is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HmacError {
    pub(crate) reason: DropReason,
    /// Offset of its TLV from the first TLV, if there is one.
    pub(crate) tlv: Option<usize>,
}

impl HmacKey {
    /// RFC 8754 section 2.1.2.1: the destination is the active segment; that of a reduced SRH is not listed, which D
    /// must admit. The Linux kernel never sets D. Of a segment that carries compressed SIDs some may be gone (D232).
    fn admits(&self, srh: &Srh<'_>, view: &HmacView, destination: &[u8; 16]) -> bool {
        match srh.segments.get(usize::from(srh.header.segments_left)) {
            None => view.destination_not_covered() || self.cover == Cover::Linux,
            Some(segment) => segment == destination || is_shifted(*segment, destination),
        }
    }
}

/// Whether a destination is a segment after some of the compressed SIDs in it (NEXT-CSID, F3216).
fn is_shifted(mut segment: [u8; 16], destination: &[u8; 16]) -> bool {
    while shift(&mut segment, NextCsid::F3216) {
        if segment == *destination {
            return true;
        }
    }
    false
}
