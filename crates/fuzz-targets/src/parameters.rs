//! Parameters of conformance profiles: they are refused with a line, or the profile has cases with frames.

use srdma_conform::PROFILES;

/// Reads parameters: the first octet is the number of the profile.
pub fn parameters(input: &[u8]) {
    let Some((number, text)) = input.split_first() else { return };
    let (profile, Ok(text)) = (PROFILES[usize::from(*number) % PROFILES.len()], std::str::from_utf8(text)) else {
        return;
    };
    match profile.load(Some(text)) {
        Ok(profile) => assert!(!profile.cases.is_empty() && !profile.parameters.is_empty()),
        Err(error) => assert!(error.to_string().starts_with("line "), "{error}"),
    }
}
