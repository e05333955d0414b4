//! The messages around a version of buffers (D170, D192).

use srdma::{Manifest, Message, RailHeader};

/// Any octets as a message. What is accepted is emitted unchanged, and keeps its limits by arithmetic of its own.
pub fn manifest(input: &[u8]) {
    if let Ok(header) = RailHeader::parse(input) {
        let emitted = header.emit();
        // But for the reserved octets.
        assert_eq!(emitted[..36], input[..36]);
    }
    match Message::parse(input) {
        Ok(Message::Begin(manifest)) => {
            assert_eq!(manifest.emit(), input);
            check_places(&manifest);
        }
        // Octets 6 and 7 are reserved, and ignored.
        Ok(Message::End(end)) => {
            let emitted = end.emit();
            assert_eq!((&emitted[..6], &emitted[8..]), (&input[..6], &input[8..]));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// No two buffers share an octet, and none is outside of its slot, nor the slots outside of what 64 bits address.
fn check_places(manifest: &Manifest) {
    let first = manifest.slots();
    let octets: Vec<u128> =
        [first.octets].iter().chain(manifest.regions().more_octets()).map(|octets| u128::from(*octets)).collect();
    assert!((1..=64).contains(&first.count) && (1..=16).contains(&octets.len()));
    assert!(octets.iter().all(|octets| octets * u128::from(first.count) <= u128::from(u64::MAX)));
    let mut ends = vec![0; octets.len()];
    for entry in manifest.buffers() {
        let region = usize::from(entry.region);
        assert!(u128::from(entry.offset) >= ends[region]);
        ends[region] = u128::from(entry.offset) + u128::from(entry.length_octets);
        assert!(ends[region] <= octets[region] && (1..=1024).contains(&entry.name.len()));
    }
}
