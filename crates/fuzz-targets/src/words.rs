//! Mutations of texts, word by word and line by line: what a fuzzer of octets rarely hits in a JSON or TOML document.

use srdma_testkit::random::Random;
use std::ops::Range;

/// Numbers at the ends of types and of fields.
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "2",
    "-1",
    "255",
    "256",
    "1.5",
    "4095",
    "4096",
    "65535",
    "65536",
    "16777215",
    "16777216",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e300",
    "0x10",
];

/// Other values of documents.
const VALUES: [&str; 12] = [
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "\"\"",
    "\"::\"",
    "\"2001:db8::1\"",
    "\"ff02::1\"",
    "\"10.0.0.1\"",
    "x",
    "\"x\"",
];

/// Changes a text of `size` octets in place, by a seed; returns its new size, at most `most` and that of the buffer.
pub fn mutate(buffer: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut random = Random::new(seed.into());
    let mut text = buffer[..size].to_vec();
    for _ in 0..=random.below(3) {
        change(&mut text, &mut random);
    }
    let size = text.len().min(most).min(buffer.len());
    buffer[..size].copy_from_slice(&text[..size]);
    size
}

fn change(text: &mut Vec<u8>, random: &mut Random) {
    let is_of_word = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'-' | b'.' | b':' | b'/');
    // The colon of an address is in a word, that of an object is before one.
    let mut words = runs(text, is_of_word);
    words
        .iter_mut()
        .for_each(|word| word.start += text[word.clone()].iter().take_while(|octet| **octet == b':').count());
    words.retain(|word| !word.is_empty());
    let lines = runs(text, |octet| *octet != b'\n');
    let one = |of: &[Range<usize>], random: &mut Random| {
        (!of.is_empty()).then(|| of[random.below(of.len() as u64) as usize].clone())
    };
    let Some(word) = one(&words, random) else { return };
    let Some(line) = one(&lines, random) else { return };
    match random.below(10) {
        0..3 => {
            let numbers: Vec<Range<usize>> =
                words.into_iter().filter(|word| text[word.clone()].iter().all(u8::is_ascii_digit)).collect();
            let Some(number) = one(&numbers, random) else { return };
            text.splice(number, random.one_of(&NUMBERS).bytes());
        }
        3 => drop(text.splice(word, random.one_of(&VALUES).bytes())),
        4 => {
            // With the quotation marks around it.
            let quoted = word.start.saturating_sub(1)..(word.end + 1).min(text.len());
            text.splice(quoted, random.one_of(&VALUES).bytes());
        }
        5 | 6 => {
            let Some(other) = one(&words, random) else { return };
            let other = text[other].to_vec();
            text.splice(word, other);
        }
        7 => drop(text.drain(line.start..(line.end + 1).min(text.len()))),
        8 => {
            let again = [b"\n", &text[line.clone()]].concat();
            text.splice(line.end..line.end, again);
        }
        _ => {
            // From a brace, a bracket or a comma to another one.
            let marks = runs(text, |octet| matches!(octet, b',' | b'{' | b'}' | b'[' | b']'));
            let (Some(first), Some(last)) = (one(&marks, random), one(&marks, random)) else { return };
            if first.end <= last.start && last.start - first.end < 200 {
                let part = text[first.end..last.start].to_vec();
                if random.below(2) == 0 {
                    text.drain(first.end..last.start);
                } else {
                    text.splice(last.start..last.start, [b",".as_slice(), &part].concat());
                }
            }
        }
    }
}

/// The longest runs of octets with a property.
fn runs(text: &[u8], is: impl Fn(&u8) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.iter().enumerate().filter(|(_, octet)| is(octet)) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Many seeds give many texts, each within its size; the same seed gives the same.
    #[test]
    fn a_text_is_changed_by_words_and_lines() {
        let text = br#"{"a":17,"list":[1,2,{"b":"x"}]}"#;
        let changed = |seed| {
            let mut buffer = text.to_vec();
            buffer.resize(64, 0);
            let size = mutate(&mut buffer, text.len(), 60, seed);
            assert!(size <= 60);
            buffer[..size].to_vec()
        };
        let all: BTreeSet<Vec<u8>> = (0..20_000).map(changed).collect();
        assert!(all.len() > 500, "{} texts", all.len());
        assert_eq!(changed(5), changed(5));
        let is = |wanted: &[u8]| all.iter().any(|text| text == wanted);
        assert!(is(br#"{"a":18446744073709551615,"list":[1,2,{"b":"x"}]}"#));
        assert!(is(br#"{"a":17,"list":[1,2,{"b":null}]}"#));
    }

    #[test]
    fn nothing_stays_nothing() {
        assert_eq!(mutate(&mut [0; 8], 0, 8, 3), 0);
    }
}
