//! A router's own LSAs (RFC 5340 section 4.4.3, RFC 7770, RFC 8362, RFC 9513; D276, D277).

use crate::config::Config;
use crate::lsa::{
    ExtendedRouter, Information, IntraAreaPrefix, Link, LsType, LsaKey, PrefixEntry, RouterBody, RouterLink,
};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Prefixes of one LSA, so that it fits into a packet of 1,280 octets.
const PREFIXES: usize = 50;
/// Links of one Router-LSA, for the same reason.
const LINKS: usize = 70;

/// The LSAs of the area, with their bodies.
pub(crate) fn of_area(config: &Config, options: u32, links: &[RouterLink]) -> BTreeMap<LsaKey, Vec<u8>> {
    let key = |kind, id| LsaKey { kind, id, router: config.router };
    let mut lsas = BTreeMap::new();
    // A router without links has a Router-LSA, too.
    let first = links.get(..links.len().min(LINKS)).unwrap_or_default();
    let rest = links.get(first.len()..).unwrap_or_default();
    for (id, part) in (0..).zip(std::iter::once(first).chain(rest.chunks(LINKS))) {
        let body = RouterBody { flags: 0, options, links: part.to_vec() };
        lsas.insert(key(LsType::ROUTER, id), body.emit());
    }
    let with_sids: Vec<RouterLink> = links.iter().filter(|link| !link.end_x.is_empty()).cloned().collect();
    for (id, link) in (0..).zip(with_sids) {
        let body = ExtendedRouter { flags: 0, options, links: vec![link] };
        lsas.insert(key(LsType::EXTENDED_ROUTER, id), body.emit());
    }
    let referenced = key(LsType::ROUTER, 0);
    for (id, part) in (0..).zip(prefixes(config).chunks(PREFIXES)) {
        let body = IntraAreaPrefix { referenced, prefixes: part.to_vec() };
        lsas.insert(key(LsType::INTRA_AREA_PREFIX, id), body.emit());
    }
    let information = Information {
        hostname: Some(config.hostname.clone()),
        algorithms: config.srv6.map(|_| 0).into_iter().collect(),
        srv6: config.srv6,
    };
    lsas.insert(key(LsType::INFORMATION, 0), information.emit());
    for (id, locator) in (0..).zip(&config.locators) {
        let mut body = Vec::new();
        locator.emit(&mut body);
        lsas.insert(key(LsType::LOCATOR, id), body);
    }
    lsas
}

/// The Link-LSA of a circuit.
pub(crate) fn of_link(config: &Config, options: u32, interface: u32, address: Ipv6Addr) -> (LsaKey, Vec<u8>) {
    let key = LsaKey { kind: LsType::LINK, id: interface, router: config.router };
    (key, Link { priority: 0, options, address }.emit())
}

/// The prefixes, and the locators as prefixes: routers without SRv6 learn these by no other LSA (D277).
fn prefixes(config: &Config) -> Vec<PrefixEntry> {
    let mut all = config.prefixes.clone();
    for locator in &config.locators {
        if all.iter().all(|entry| entry.prefix != locator.prefix) {
            let metric = u16::try_from(locator.metric).unwrap_or(u16::MAX);
            all.push(PrefixEntry { prefix: locator.prefix, options: Default::default(), metric });
        }
    }
    all
}
