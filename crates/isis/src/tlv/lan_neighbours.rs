//! Neighbours on a LAN (ISO 10589 section 9.5): the MAC addresses from which a system receives hellos.
//!
//! ```text
//! | MAC address 6 | …
//! ```

use super::{Tlvs, kind, put_all};
use crate::reader::{Malformed, Reader};
use srdma_wire::MacAddress;

/// The addresses of all TLVs of a hello.
///
/// # Errors
///
/// A length in the middle of an address.
pub(crate) fn parse(tlvs: Tlvs<'_>) -> Result<Vec<MacAddress>, Malformed> {
    let mut heard = Vec::new();
    for value in tlvs.of_kind(kind::LAN_NEIGHBOURS) {
        let mut reader = Reader::new("the neighbours on a LAN", value);
        while !reader.is_empty() {
            heard.push(MacAddress(reader.array()?));
        }
    }
    Ok(heard)
}

/// Appends TLVs with all these addresses.
pub(crate) fn emit(heard: &[MacAddress], out: &mut Vec<u8>) {
    put_all(out, kind::LAN_NEIGHBOURS, &[], heard.iter().map(|mac| mac.0.to_vec()));
}
