//! TLVs of LSAs: those of RFC 7770, RFC 8362 and RFC 9513 have one form.
//!
//! ```text
//! | Type 2 | Length 2 | Value, filled up to whole words |
//! ```

use srdma_isis::reader::{Malformed, Reader};

const WORD: usize = 4;

/// The TLVs of `octets`, which are a `field`: type and value. After an error there are none.
pub(crate) fn tlvs<'a>(
    field: &'static str,
    octets: &'a [u8],
) -> impl Iterator<Item = Result<(u16, &'a [u8]), Malformed>> {
    let mut reader = Reader::new(field, octets);
    std::iter::from_fn(move || {
        if reader.is_empty() {
            return None;
        }
        let found = next(&mut reader);
        if found.is_err() {
            reader = Reader::new(field, &[]);
        }
        Some(found)
    })
}

fn next<'a>(reader: &mut Reader<'a>) -> Result<(u16, &'a [u8]), Malformed> {
    let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
    let value = reader.take(length)?;
    reader.take((length.next_multiple_of(WORD) - length).min(reader.rest().len()))?;
    Ok((kind, value))
}

/// Appends a TLV. A value longer than a TLV can be is an error of the caller, and is left out.
pub(crate) fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    debug_assert!(u16::try_from(value.len()).is_ok(), "a TLV of {} octets", value.len());
    if let Ok(length) = u16::try_from(value.len()) {
        out.extend(kind.to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend(value);
        out.resize(out.len() + value.len().next_multiple_of(WORD) - value.len(), 0);
    }
}
