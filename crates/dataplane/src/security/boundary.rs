//! The boundary of the SR domain (RFC 8754 section 5.1) and of the hosts on its edge (BCP 38, D36).
//!
//! ```text
//! in by a border port:   source of the domain, or not one of the port's ─→ drop
//!                        to a SID, or to a node's own address ───────────→ drop
//! to a local SID:        source that is no node's ───────────────────────→ drop   (whatever port)
//! out by a border port:  to a SID, or with an SRH that names one ────────→ drop
//! in or out by one:      with a Fast CNP option, unless the host is inside → drop
//! ```
//!
//! Ports without a border are inside: nothing is checked there. A node without a domain filters only by the `sources`
//! of its borders.

use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6, Place, ipv6};
use srdma_frame::PortId;
use srdma_wire::NextHeader;
use srdma_wire::Prefix;
use srdma_wire::srh::SrhError;
use std::net::Ipv6Addr;

/// The addresses of the SR domain. Prefixes may overlap: a Proxy Address comes before a SID, a SID before the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// The blocks of every SID of the domain (S/s in RFC 8754 section 5.1): no packet from outside may go there.
    pub sids: Vec<Prefix>,
    /// The nodes' own addresses (A/a): only packets from there may go to a SID, and none of them comes from outside.
    pub infrastructure: Vec<Prefix>,
    /// The Proxy Addresses, which hosts outside may reach and none may send from (D2).
    pub proxies: Vec<Prefix>,
}

impl Domain {
    /// Whether an address is one of the domain's.
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        self.prefixes().any(|prefix| prefix.contains(address))
    }

    /// A prefix of the domain that has addresses in common with another.
    pub fn overlap(&self, other: Prefix) -> Option<Prefix> {
        self.prefixes().copied().find(|prefix| prefix.overlaps(other))
    }

    fn prefixes(&self) -> impl Iterator<Item = &Prefix> {
        self.sids.iter().chain(&self.infrastructure).chain(&self.proxies)
    }
}

/// Whether all addresses of a prefix lie in one of these.
pub(crate) fn covers(prefixes: &[Prefix], inner: Prefix) -> bool {
    prefixes.iter().any(|outer| outer.prefix_len() <= inner.prefix_len() && outer.contains(inner.address()))
}

/// Prefixes to be compared with, one after the other: there are a few, so that this is less than a look-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefixes(Box<[[u128; 2]]>);

impl Prefixes {
    pub(crate) fn new(prefixes: &[Prefix]) -> Self {
        // As they lie in a packet, so that no octets are swapped for a comparison.
        let masked = |prefix: &Prefix| {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.prefix_len())).unwrap_or(0);
            [mask.to_be(), u128::from(prefix.address()).to_be()]
        };
        Prefixes(prefixes.iter().map(masked).collect())
    }

    #[inline]
    pub(crate) fn contain(&self, address: &[u8; 16]) -> bool {
        let address = u128::from_ne_bytes(*address);
        self.0.iter().any(|[mask, prefix]| address & mask == *prefix)
    }
}

/// Prepared checks of a node at its boundary.
#[derive(Debug, Default)]
pub(crate) struct Boundary {
    /// The domain as configured.
    domain: Option<Domain>,
    sids: Prefixes,
    infrastructure: Prefixes,
    proxies: Prefixes,
    /// By port; `None` inside.
    borders: Vec<Option<Border>>,
}

/// Sources accepted at a border port: without a prefix, all except the domain's addresses.
#[derive(Clone, Debug)]
struct Border {
    /// As configured.
    sources: Vec<Prefix>,
    prepared: Prefixes,
}

impl Boundary {
    /// The domain, if one is configured.
    pub(crate) fn domain(&self) -> Option<&Domain> {
        self.domain.as_ref()
    }

    pub(crate) fn set_domain(&mut self, domain: Option<Domain>) {
        let of = |prefixes: fn(&Domain) -> &[Prefix]| Prefixes::new(domain.as_ref().map_or(&[], prefixes));
        self.sids = of(|domain| &domain.sids);
        self.infrastructure = of(|domain| &domain.infrastructure);
        self.proxies = of(|domain| &domain.proxies);
        self.domain = domain;
    }

    /// Makes a port a border with these sources, or an inside port again.
    pub(crate) fn set_border(&mut self, port: PortId, sources: Option<&[Prefix]>) {
        if self.borders.len() <= port.index() {
            self.borders.resize(port.index() + 1, None);
        }
        let border = |sources: &[Prefix]| Border { sources: sources.to_vec(), prepared: Prefixes::new(sources) };
        self.borders[port.index()] = sources.map(border);
    }

    /// The border ports and their sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (PortId, &[Prefix])> {
        let borders = (0..).map(PortId).zip(&self.borders);
        borders.filter_map(|(port, border)| Some((port, border.as_ref()?.sources.as_slice())))
    }

    #[inline]
    pub(crate) fn is_border(&self, port: PortId) -> bool {
        self.borders.get(port.index()).is_some_and(Option::is_some)
    }

    /// Whether a packet may come in by a border port (MT-9-2). Of the domain's addresses, only Proxy Addresses are for
    /// hosts (RFC 8754 section 5.1, first rule); no host sends from any of them (BCP 38).
    pub(crate) fn enter(&self, port: PortId, headers: &[u8; AFTER_IPV6]) -> Result<(), DropReason> {
        let Some(Some(Border { prepared: sources, .. })) = self.borders.get(port.index()) else {
            return Ok(());
        };
        let (source, destination) = addresses(headers);
        let is_of_domain = |address| {
            self.infrastructure.contain(address) || self.sids.contain(address) || self.proxies.contain(address)
        };
        if is_of_domain(source) {
            return Err(DropReason::ForgedSource);
        }
        if !sources.0.is_empty() && !sources.contain(source) {
            return Err(DropReason::SourceNotAssigned);
        }
        match is_of_domain(destination) {
            false => Ok(()),
            true if self.proxies.contain(destination) => Ok(()),
            true if self.sids.contain(destination) => Err(DropReason::SidFromOutside),
            true => Err(DropReason::NodeFromOutside),
        }
    }

    /// The same for an IPv4 packet of a source, an IPv4-mapped address: of IPv4 the domain has Proxy Addresses only.
    pub(crate) fn enter_ipv4(&self, port: PortId, source: &[u8; 16]) -> Result<(), DropReason> {
        match self.borders.get(port.index()) {
            Some(Some(_)) if self.proxies.contain(source) => Err(DropReason::ForgedSource),
            Some(Some(border)) if !border.prepared.0.is_empty() && !border.prepared.contain(source) => {
                Err(DropReason::SourceNotAssigned)
            }
            _ => Ok(()),
        }
    }

    /// Whether a packet from this address may go to a SID of the node (RFC 8754 section 5.1, second rule).
    #[inline]
    pub(crate) fn admits_to_sid(&self, source: &[u8; 16]) -> Result<(), DropReason> {
        if self.domain.is_none() || self.infrastructure.contain(source) {
            Ok(())
        } else {
            Err(DropReason::ForeignSource)
        }
    }

    /// Whether a packet may leave by a border port: neither it nor its SRH shows a SID of the domain (RFC 8754 section
    /// 7.2). A header that cannot be parsed is refused.
    pub(crate) fn leave(&self, head: &[u8]) -> Result<(), DropReason> {
        if self.domain.is_none() {
            return Ok(());
        }
        let outer = ipv6(head)?;
        let destination = outer.destination_octets();
        if self.sids.contain(destination) && !self.proxies.contain(destination) {
            return Err(DropReason::LeavesDomain);
        }
        let place = Place::first(outer).behind_options(head).map_err(|_| DropReason::LeavesDomain)?;
        if place.header != NextHeader::ROUTING {
            return Ok(());
        }
        match place.srh(head) {
            Ok(srh) if !srh.segments.iter().any(|segment| self.sids.contain(segment)) => Ok(()),
            Err(SrhError::RoutingType(_)) => Ok(()),
            Ok(_) | Err(SrhError::Truncated(_) | SrhError::Inconsistent { .. }) => Err(DropReason::LeavesDomain),
        }
    }
}

/// Source and destination.
fn addresses(headers: &[u8; AFTER_IPV6]) -> (&[u8; 16], &[u8; 16]) {
    let (source, destination) = headers[IPV6 + 8..].split_at(16);
    let [source, destination] =
        [source, destination].map(|octets| octets.first_chunk().expect("an IPv6 header has 40 octets"));
    (source, destination)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The comparison of octets agrees with the prefix.
        #[test]
        fn a_set_contains_the_addresses_of_its_prefixes(address: u128, other: u128, len in 0u8..=128, same in 0u32..=128) {
            let prefix = Prefix::new(address.into(), len).unwrap();
            let mask = u128::MAX.checked_shl(128 - same).unwrap_or(0);
            let other = Ipv6Addr::from(address & mask | other & !mask);
            prop_assert_eq!(Prefixes::new(&[prefix]).contain(&other.octets()), prefix.contains(other));
        }
    }
}
