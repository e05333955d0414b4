//! Private data as text, for people: librdmacm leaves their meaning to programs.

/// The text before the zeros, if it is one.
pub(crate) fn of(private_data: &[u8]) -> Option<String> {
    let end = private_data.iter().rposition(|octet| *octet != 0)? + 1;
    let text = std::str::from_utf8(private_data.get(..end)?).ok()?;
    (!text.contains(char::is_control)).then(|| text.to_owned())
}

/// A text as private data: as much of it as fits.
pub(crate) fn to<const N: usize>(text: &str) -> [u8; N] {
    let mut end = text.len().min(N);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut octets = [0; N];
    octets[..end].copy_from_slice(&text.as_bytes()[..end]);
    octets
}
