//! NEXT-CSID: the next compressed SID is shifted into place (RFC 9800 section 4.1, PP-5.2-2).

use super::NextCsid;

/// Shifts the argument of a compressed SID to the left by one SID; `false`, and no change, when the argument is zero.
///
/// ```text
/// | block | this SID | next SID | after next | … | 0 |
/// | block | next SID | after next | …            | 0 |
/// ```
#[inline(always)]
pub(crate) fn shift(destination: &mut [u8; 16], csid: NextCsid) -> bool {
    // The usual lengths as constants: shifts by variables of 128 bits take a dozen instructions each.
    if csid == NextCsid::F3216 { shift_by(destination, NextCsid::F3216) } else { shift_any(destination, csid) }
}

#[inline(never)]
fn shift_any(destination: &mut [u8; 16], csid: NextCsid) -> bool {
    shift_by(destination, csid)
}

#[inline(always)]
fn shift_by(destination: &mut [u8; 16], csid: NextCsid) -> bool {
    let address = u128::from_be_bytes(*destination);
    let below_block = u128::MAX.checked_shr(csid.block_bits.into()).unwrap_or(0);
    let argument = (address << csid.csid_bits) & below_block;
    let argument_mask = below_block.checked_shr(csid.csid_bits.into()).unwrap_or(0);
    if address & argument_mask == 0 {
        return false;
    }
    *destination = (address & !below_block | argument).to_be_bytes();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn shifted(address: &str, csid: NextCsid) -> Option<Ipv6Addr> {
        let mut octets = address.parse::<Ipv6Addr>().unwrap().octets();
        shift(&mut octets, csid).then(|| octets.into())
    }

    /// The path placement draft's walk (PP-5.2-2), and the example of VPP's documentation with a block of 32 bits.
    #[test]
    fn shifts_as_published() {
        let to = |text: &str| Some(text.parse().unwrap());
        assert_eq!(shifted("5f00:0:100:500:300::", NextCsid::F3216), to("5f00:0:500:300::"));
        assert_eq!(shifted("5f00:0:500:300::", NextCsid::F3216), to("5f00:0:300::"));
        assert_eq!(shifted("5f00:0:300::", NextCsid::F3216), None);
        assert_eq!(shifted("5f00:0:100:0:300::", NextCsid::F3216), to("5f00:0:0:300::"));
        assert_eq!(
            shifted("1111:2222:aaaa:bbbb:cccc:dddd:eeee:ffff", NextCsid::F3216),
            to("1111:2222:bbbb:cccc:dddd:eeee:ffff:0")
        );
    }
}
