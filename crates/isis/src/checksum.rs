//! The checksum of an LSP: ISO 8473's Fletcher sums, over everything from the LSP ID on; of an LSA of
//! OSPF, from behind its age on.

/// The value of the checksum field at `at` for which both sums over `octets` are zero. The field's current value counts
/// as zero.
pub fn fletcher(octets: &[u8], at: usize) -> u16 {
    let (mut c0, mut c1) = (0_u64, 0_u64);
    for (index, &octet) in octets.iter().enumerate() {
        let octet = if index == at || index == at + 1 { 0 } else { octet };
        c0 += u64::from(octet);
        c1 += c0;
    }
    let (c0, c1) = ((c0 % 255) as i64, (c1 % 255) as i64);
    // Octets from the field's first one to the end, as weights of the second sum.
    let behind = (octets.len() - at.min(octets.len())) as i64;
    let x = ((behind - 1) * c0 - c1).rem_euclid(255);
    let y = (c1 - behind * c0).rem_euclid(255);
    // Zero would mean "no checksum"; 255 is the same number modulo 255.
    let octet = |value: i64| if value == 0 { 255 } else { value as u16 };
    octet(x) << 8 | octet(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums(octets: &[u8]) -> (u32, u32) {
        octets.iter().fold((0, 0), |(c0, c1), octet| {
            let c0 = (c0 + u32::from(*octet)) % 255;
            (c0, (c1 + c0) % 255)
        })
    }

    proptest! {
        #[test]
        fn both_sums_are_zero(mut octets in prop::collection::vec(any::<u8>(), 14..1500), at in 0_usize..12) {
            let checksum = fletcher(&octets, at);
            octets[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            prop_assert_eq!(sums(&octets), (0, 0));
        }
    }
}
