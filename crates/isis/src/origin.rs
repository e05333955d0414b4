//! A system's own LSPs, in as many fragments as they need (ISO 10589 section 7.3.7).

use crate::config::Config;
use crate::id::NodeId;
use crate::leaks::Leaks;
use crate::pdu::{Level, PduKind, put_areas};
use crate::tlv::{Member, NLPID_IPV6, Neighbour, Reachability, Tlvs, Topologies, TopologyId, kind, put};

/// Fragments are numbered by an octet.
pub(crate) const GREATEST_FRAGMENTS: usize = 256;

/// What a system announces at one level, beside its configuration.
pub(crate) struct Announced<'a> {
    pub(crate) neighbours: &'a [Neighbour],
    pub(crate) is_overloaded: bool,
    /// It leads out of the area.
    pub(crate) is_attached: bool,
    /// The prefixes of the other level.
    pub(crate) leaks: &'a Leaks,
}

/// The TLVs of each fragment, without those that authenticate, where an LSP is at most `limit` octets long. `None` if
/// more than [`GREATEST_FRAGMENTS`] are needed.
pub(crate) fn fragments(config: &Config, announced: &Announced<'_>, limit: usize) -> Option<Vec<Vec<u8>>> {
    let Announced { neighbours, is_overloaded, is_attached, leaks } = *announced;
    let mut first = Vec::new();
    put_areas(&config.areas, &mut first);
    put(&mut first, kind::PROTOCOLS_SUPPORTED, &[NLPID_IPV6]);
    Topologies::only(Member { topology: config.topology, is_overloaded, is_attached }).emit(&mut first);
    let name = config.hostname.as_bytes();
    if !name.is_empty() {
        put(&mut first, kind::HOSTNAME, name.get(..name.len().min(255)).unwrap_or_default());
    }
    config.capability.emit(&mut first);
    let mut others = Vec::new();
    Neighbour::emit_all(neighbours, config.topology, &mut others);
    Reachability::emit_all(&config.prefixes, config.topology, &mut others);
    for locator in &config.locators {
        locator.emit(&mut others);
    }
    Reachability::emit_all(&leaks.prefixes, config.topology, &mut others);
    for locator in &leaks.locators {
        locator.emit(&mut others);
    }
    divide(config, first, &others, limit)
}

/// The same of a LAN's pseudonode. Its members are those of all topologies (RFC 5120 section 3.2), at no cost.
pub(crate) fn fragments_of_pseudonode(config: &Config, members: &[NodeId], limit: usize) -> Option<Vec<Vec<u8>>> {
    let neighbour = |node: &NodeId| Neighbour { node: *node, metric: 0, end_x: Vec::new() };
    let mut tlvs = Vec::new();
    let members: Vec<Neighbour> = members.iter().map(neighbour).collect();
    Neighbour::emit_all(&members, TopologyId::STANDARD, &mut tlvs);
    divide(config, Vec::new(), &tlvs, limit)
}

/// Divides TLVs into fragments, of which the first begins with `first`.
fn divide(config: &Config, first: Vec<u8>, others: &[u8], limit: usize) -> Option<Vec<Vec<u8>>> {
    let in_front = PduKind::Lsp(Level::One).header_len() + config.key.as_ref().map_or(0, |key| key.tlv_len());
    let room = limit.saturating_sub(in_front);
    let mut fragments = vec![first];
    for tlv in Tlvs::new(others).map_while(Result::ok) {
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
