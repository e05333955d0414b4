//! `[domain]`, `[[inside]]` and `[[border]]`: the boundary of the SR domain (RFC 8754 section 5.1), and of its hosts
//! (BCP 38).

use super::Draft;
use super::interfaces::Purpose;
use super::ports::port_named;
use srdma_dataplane::{Domain, NodeConfig};
use srdma_frame::PortId;
use srdma_node_spec::Entries;
use srdma_node_spec::file::{DomainSection, Located, NodeFile};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::BTreeSet;

/// Adds the domain and its borders: with a domain all ports that are not inside (D129). They come before SIDs and
/// groups, so that each of those which lies outside is refused where it stands.
pub(super) fn add(file: &NodeFile, config: &NodeConfig, draft: &mut Draft) -> Result<(), Problem> {
    let domain = file.domain.as_ref().map(|section| domain(section.get_ref())).transpose()?;
    if let (Some(section), Some(domain)) = (&file.domain, &domain) {
        draft.add(section.span().start, Entries { domain: Some(domain.clone()), ..Entries::default() })?;
    }
    let mut ports = BTreeSet::new();
    for section in &file.inside {
        let (at, name) = (section.port.at, &section.port.value.0);
        if domain.is_none() {
            return Err(Problem::new(at, format!("port {name} is inside of nothing: there is no [domain]")));
        }
        if !ports.insert(port_named(config, &section.port)?) {
            return Err(Problem::new(at, format!("port {name} is inside already")));
        }
    }
    for section in &file.border {
        let port = port_named(config, &section.port)?;
        let (at, name) = (section.port.at, &section.port.value.0);
        if !ports.insert(port) {
            return Err(Problem::new(at, format!("port {name} is inside, or a border already")));
        }
        if domain.is_none() && section.sources.is_empty() {
            let text = format!("the border at port {name} keeps nothing out: there is neither [domain] nor `sources`");
            return Err(Problem::new(at, text));
        }
        for source in &section.sources {
            if let Some(of_domain) = domain.as_ref().and_then(|domain| domain.overlap(source.value.0)) {
                let text =
                    format!("sources {} meet {of_domain}, which [domain] has: hosts have none of it", source.value.0);
                return Err(Problem::new(source.at, text));
            }
        }
        let sources = section.sources.iter().map(|prefix| prefix.value.0).collect();
        draft.add(at, Entries { borders: [(port, sources)].into(), ..Entries::default() })?;
    }
    if let Some(section) = &file.domain {
        let all = (0..config.ports.len() as u16).map(PortId);
        let others = all.filter(|port| !ports.contains(port)).map(|port| (port, Vec::new())).collect();
        draft.add(section.span().start, Entries { borders: others, ..Entries::default() })?;
    }
    Ok(())
}

/// Checks that a node on interfaces with SIDs, or a controller that gives it some, has a domain or is meant to be open
/// (D129). The SIDs of the file have been added.
pub(super) fn check_open(file: &NodeFile, purpose: Purpose<'_>, draft: &Draft) -> Result<(), Problem> {
    let at = file.node.loopback.at;
    let has_sids = !draft.entries.sids.is_empty() || file.controller.is_some();
    match (&file.domain, file.node.open) {
        (Some(_), true) => Err(Problem::new(at, "[node] has `open = true`, but there is a [domain]")),
        (None, false) if has_sids && matches!(purpose, Purpose::Interfaces(_)) => Err(Problem::new(
            at,
            "every sender may use the SIDs of this node: add [domain], and [[inside]] for each port towards nodes of \
             the domain (docs/security.md), or `open = true` to [node]",
        )),
        (Some(_), false) | (None, _) => Ok(()),
    }
}

fn domain(section: &DomainSection) -> Result<Domain, Problem> {
    let DomainSection { sids, infrastructure, proxies } = section;
    let of_ipv6 = [sids, infrastructure].into_iter().flatten().map(|prefix| (prefix.at, prefix.value));
    let mut all = of_ipv6.chain(proxies.iter().map(|prefix| (prefix.at, prefix.value.0)));
    let is_everything = |prefix: &Prefix| match prefix.as_ipv4() {
        Some((_, len)) => len == 0,
        None => prefix.prefix_len() == 0,
    };
    if let Some((at, everything)) = all.find(|(_, prefix)| is_everything(prefix)) {
        return Err(Problem::new(at, format!("{everything} is no domain: everything would be inside it")));
    }
    let of = |prefixes: &[Located<Prefix>]| prefixes.iter().map(|prefix| prefix.value).collect();
    let proxies = proxies.iter().map(|prefix| prefix.value.0).collect();
    Ok(Domain { sids: of(sids), infrastructure: of(infrastructure), proxies })
}
