//! Texts of C programs, and texts for them.

use crate::errors::Failure;
use std::ffi::{CStr, c_char};

/// A text that may be NULL.
///
/// # Safety
///
/// A pointer that is not NULL must be that of a text that ends by NUL, which lives as long as the result.
pub(crate) unsafe fn optional<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the contract of the function.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::invalid(format!("{name} is no UTF-8")))
}

/// Writes a text with a NUL behind it, cut between characters if it is longer.
pub(crate) fn write(text: &str, into: &mut [c_char]) {
    let mut length = text.len().min(into.len() - 1);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    let octets = text.as_bytes()[..length].iter().map(|octet| if *octet == 0 { b' ' } else { *octet });
    into.iter_mut().zip(octets.chain(std::iter::repeat(0))).for_each(|(to, from)| *to = from as c_char);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<u8> {
        let mut into = [1; 6];
        write(text, &mut into);
        into.iter().map(|octet| *octet as u8).collect()
    }

    #[test]
    fn texts_are_cut_between_characters_and_end_by_nul() {
        assert_eq!(written("abc"), b"abc\0\0\0");
        assert_eq!(written("abcdefg"), b"abcde\0");
        assert_eq!(written("abcdé"), b"abcd\0\0", "no half of a character");
        assert_eq!(written("a\0c"), b"a c\0\0\0");
        assert_eq!(written(""), [0; 6]);
    }
}
