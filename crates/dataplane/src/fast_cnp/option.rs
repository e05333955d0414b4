//! Whether a packet carries a Fast CNP option, for borders (FC-5-1).

use crate::headers::IPV6;
use srdma_wire::extension::ExtensionHeaders;
use srdma_wire::fast_cnp::OptionTypes;
use srdma_wire::options::{OptionOverrun, OptionTlv, OptionsHeader, OptionsView};
use srdma_wire::{Ipv6View, NextHeader, View};

/// Outer headers that are looked behind.
const MAX_TUNNELS: usize = 4;

/// Whether one of the options stands anywhere in the packet's options headers, those of packets inside it included:
/// well made or not, in its place or not.
pub(crate) fn has_option(head: &[u8], types: OptionTypes) -> bool {
    let mut octets = head.get(IPV6..).unwrap_or(&[]);
    for _ in 0..MAX_TUNNELS {
        let Ok((ipv6, after)) = Ipv6View::split(octets) else { return false };
        if ipv6.next_header() == NextHeader::UDP {
            return false;
        }
        let mut headers = ExtensionHeaders::new(ipv6.next_header(), after);
        for header in headers.by_ref().map_while(Result::ok) {
            let has_options = matches!(header.kind, NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS);
            let Ok((options, _)) = OptionsHeader::split(header.octets) else { continue };
            if has_options && options.iter().any(|option| is_ours(option, &options, types)) {
                return true;
            }
        }
        if headers.next_header() != NextHeader::IPV6 {
            return false;
        }
        octets = headers.rest();
    }
    false
}

/// One of ours; one that reaches beyond its header, too.
fn is_ours(option: Result<OptionTlv<'_>, OptionOverrun>, header: &OptionsHeader<'_>, types: OptionTypes) -> bool {
    let kind = match option {
        Ok(option) => Some(option.kind),
        Err(overrun) => overrun.offset.checked_sub(OptionsView::LEN).and_then(|at| header.options.get(at).copied()),
    };
    kind.is_some_and(|kind| types.contains(kind))
}
