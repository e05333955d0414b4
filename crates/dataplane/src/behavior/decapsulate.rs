//! Taking the outer headers off an IPv6 or IPv4 packet in IPv6.

use crate::drop::DropReason;
use crate::headers::{IPV6, ipv6};
use crate::ipv4;
use crate::scope;
use srdma_frame::{Frame, Pool};
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Ipv6View, View};

/// Removes all that stands before the inner IPv6 header at `inner`, and merges the ECN fields (RFC 6040 section 4.2).
/// The inner hop limit stays: forwarding decrements it.
#[inline]
pub(crate) fn decapsulate(frame: &mut Frame, pool: &mut Pool, inner: usize) -> Result<(), DropReason> {
    let len = frame.len();
    let end = uncover(frame.head_mut(pool), len, inner)?;
    frame.pull(inner - IPV6);
    if end < len {
        frame.truncate(end - (inner - IPV6), pool);
    }
    Ok(())
}

/// Makes the inner header at `inner` that of a packet of its own, in a frame of `len` octets; returns where it ends.
/// Nothing is changed in a packet that must be dropped.
#[inline]
pub(crate) fn uncover(head: &mut [u8], len: usize, inner: usize) -> Result<usize, DropReason> {
    let outer_ecn = ipv6(head)?.ecn();
    let octets = head.get_mut(inner..).ok_or(DropReason::HeaderTooLong)?;
    let (view, _) = Ipv6View::split_mut(octets).map_err(|_| DropReason::HeaderTooLong)?;
    if view.version() != 6 {
        return Err(DropReason::BadVersion);
    }
    if scope::may_be_special(view.source_octets()[0])
        && let Some(reason) = scope::refused_source(view.source_octets())
    {
        return Err(reason);
    }
    let end = inner + Ipv6View::LEN + usize::from(view.payload_length());
    if end > len {
        return Err(DropReason::Truncated);
    }
    let inner_ecn = view.ecn();
    let ecn = merge_ecn(outer_ecn, inner_ecn).ok_or(DropReason::CongestionExperienced)?;
    if ecn != inner_ecn {
        view.set_ecn(ecn);
    }
    Ok(end)
}

/// The same with the inner IPv4 header at `inner`, whose checksum is updated.
#[cold]
pub(crate) fn decapsulate_ipv4(frame: &mut Frame, pool: &mut Pool, inner: usize) -> Result<(), DropReason> {
    let len = frame.len();
    let head = frame.head_mut(pool);
    let outer_ecn = ipv6(head)?.ecn();
    let end = ipv4::check(head, len, inner)?;
    let inner_ecn = ipv4::header(head, inner)?.ecn();
    let ecn = merge_ecn(outer_ecn, inner_ecn).ok_or(DropReason::CongestionExperienced)?;
    frame.pull(inner - IPV6);
    frame.truncate(end - (inner - IPV6), pool);
    if ecn != inner_ecn {
        ipv4::header_mut(frame.head_mut(pool))?.set_ecn(ecn);
    }
    Ok(())
}

/// The inner packet's ECN field after decapsulation (RFC 6040 figure 4); `None` when the packet must be dropped.
pub(crate) fn merge_ecn(outer: Ecn, inner: Ecn) -> Option<Ecn> {
    match (outer, inner) {
        (Ecn::Ce, Ecn::NotEct) => None,
        (Ecn::Ce, _) => Some(Ecn::Ce),
        (Ecn::Ect1, Ecn::Ect0) => Some(Ecn::Ect1),
        (_, inner) => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecn_merges_as_rfc_6040_figure_4() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        let rows = [
            (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
            (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
            (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
            (Ce, [Some(Ce), Some(Ce), Some(Ce), Some(Ce)]),
        ];
        for (inner, results) in rows {
            for (outer, result) in [NotEct, Ect0, Ect1, Ce].into_iter().zip(results) {
                assert_eq!(merge_ecn(outer, inner), result, "inner {inner:?}, outer {outer:?}");
            }
        }
    }
}
