//! A system's own LSPs, in as many fragments as they need (ISO 10589 section 7.3.7).

use crate::config::Config;
use crate::pdu::{PduKind, put_areas};
use crate::tlv::{NLPID_IPV6, Neighbour, Reachability, Tlvs, kind, put};

/// Fragments are numbered by an octet.
pub(crate) const GREATEST_FRAGMENTS: usize = 256;

/// The TLVs of each fragment, without those that authenticate, where an LSP is at most `limit` octets long. `None` if
/// more than [`GREATEST_FRAGMENTS`] are needed.
pub(crate) fn fragments(config: &Config, neighbours: &[Neighbour], limit: usize) -> Option<Vec<Vec<u8>>> {
    let mut first = Vec::new();
    put_areas(&config.areas, &mut first);
    put(&mut first, kind::PROTOCOLS_SUPPORTED, &[NLPID_IPV6]);
    let name = config.hostname.as_bytes();
    if !name.is_empty() {
        put(&mut first, kind::HOSTNAME, name.get(..name.len().min(255)).unwrap_or_default());
    }
    config.capability.emit(&mut first);
    let mut others = Vec::new();
    Neighbour::emit_all(neighbours, &mut others);
    Reachability::emit_all(&config.prefixes, &mut others);
    for locator in &config.locators {
        locator.emit(&mut others);
    }
    let in_front = PduKind::Lsp(config.level).header_len() + config.key.as_ref().map_or(0, |key| key.tlv_len());
    let room = limit.saturating_sub(in_front);
    let mut fragments = vec![first];
    for tlv in Tlvs::new(&others).map_while(Result::ok) {
        let needs = 2 + tlv.value.len();
        if fragments.last().is_some_and(|last| last.len() + needs > room) {
            fragments.push(Vec::new());
        }
        if let Some(last) = fragments.last_mut() {
            put(last, tlv.kind, tlv.value);
        }
    }
    let fit = fragments.len() <= GREATEST_FRAGMENTS && fragments.iter().all(|fragment| fragment.len() <= room);
    fit.then_some(fragments)
}
