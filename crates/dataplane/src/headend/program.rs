//! The program of a probe from that of its path.

use std::net::Ipv6Addr;

/// Octets of the block of F3216, and ids behind it (D81).
const BLOCK: usize = 4;
const IDS: usize = 6;

/// From here on ids are local to a node (D82): a link, or a service, which cannot be gone back by.
const FIRST_LOCAL: u16 = 0xE000;

/// The segments by which a probe goes along a path and the same nodes backwards (D87): those of a path of uN, in the
/// form F3216. `None` for other paths.
///
/// ```
/// use srdma_dataplane::headend::loop_program;
///
/// let path = ["5f00:0:100:500:300::".parse().unwrap()];
/// assert_eq!(loop_program(&path), Some(vec!["5f00:0:100:500:300:500:100:0".parse().unwrap()]));
/// ```
pub fn loop_program(segments: &[Ipv6Addr]) -> Option<Vec<Ipv6Addr>> {
    let block: [u8; BLOCK] = *segments.first()?.octets().first_chunk()?;
    let mut ids = Vec::new();
    for segment in segments {
        let octets = segment.octets();
        let mut carried = octets[BLOCK..].chunks_exact(2).map(|id| u16::from_be_bytes([id[0], id[1]]));
        let before = ids.len();
        ids.extend(carried.by_ref().take_while(|id| *id != 0));
        let is_other = octets[..BLOCK] != block || ids.len() == before || carried.any(|id| id != 0);
        if is_other {
            return None;
        }
    }
    if ids.iter().any(|id| *id >= FIRST_LOCAL) {
        return None;
    }
    let back: Vec<u16> = ids.iter().rev().skip(1).copied().collect();
    ids.extend(back);
    let carrier = |ids: &[u16]| {
        let mut octets = [0; 16];
        octets[..BLOCK].copy_from_slice(&block);
        for (place, id) in octets[BLOCK..].chunks_exact_mut(2).zip(ids) {
            place.copy_from_slice(&id.to_be_bytes());
        }
        Ipv6Addr::from(octets)
    };
    Some(ids.chunks(IDS).map(carrier).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(segments: &[&str]) -> Option<Vec<String>> {
        let segments: Vec<Ipv6Addr> = segments.iter().map(|segment| segment.parse().unwrap()).collect();
        loop_program(&segments).map(|segments| segments.iter().map(Ipv6Addr::to_string).collect())
    }

    /// D87, by hand: Figure 1, one leaf, three tiers, which take a second carrier, and what has no way back.
    #[test]
    fn a_probe_returns_by_the_same_path() {
        assert_eq!(program(&["5f00:0:100:600:300::"]).unwrap(), ["5f00:0:100:600:300:600:100:0"]);
        assert_eq!(program(&["5f00:0:100::"]).unwrap(), ["5f00:0:100::"]);
        let three_tiers = program(&["5f00:0:1:2:3:4:5:0"]).unwrap();
        assert_eq!(three_tiers, ["5f00:0:1:2:3:4:5:4", "5f00:0:3:2:1::"]);
        assert_eq!(program(&["5f00:0:1:2:3:4:5:6", "5f00:0:7::"]).unwrap().len(), 3);
        for other in ["5f00:0:100:e001:300::", "5f00:0:100:500:300:f001::", "5f00::", "5f00:0:100:0:300::"] {
            assert_eq!(program(&[other]), None, "{other}");
        }
        assert_eq!(program(&["5f00:0:100::", "5f00:1:200::"]), None, "two blocks");
        assert_eq!(program(&[]), None);
    }
}
