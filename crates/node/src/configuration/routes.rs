//! `[[neighbour]]`, `[[route]]` and `[[multicast_route]]`.

use super::Draft;
use super::claims::{Claims, Leads};
use super::ports::{next_hop, port_named};
use super::{sr_policies, steering};
use srdma_dataplane::{MulticastRoute, NextHop, NodeConfig, RouteAction, TableId};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{EncapsSection, Located, MulticastRouteSection, NodeFile, RouteSection, ZonedAddress};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use toml::Spanned;

/// Adds neighbours, then routes, which may use them.
pub(super) fn add(
    file: &NodeFile,
    config: &NodeConfig,
    claims: &mut Claims<'_>,
    draft: &mut Draft,
) -> Result<(), Problem> {
    add_neighbours(file, config, claims, draft)?;
    for section in &file.route {
        add_route(file, section, config, claims, draft)?;
    }
    let mut known = BTreeSet::new();
    for section in &file.multicast_route {
        let at = section.span().start;
        let route = multicast_route(at, section.get_ref(), config)?;
        if !known.insert((route.source, route.group)) {
            let text = format!("there is a multicast route ({}, {}) already", route.source, route.group);
            return Err(Problem::new(at, text));
        }
        draft.add(
            at,
            Entries { multicast_routes: [((route.source, route.group), route)].into(), ..Entries::default() },
        )?;
    }
    Ok(())
}

fn add_neighbours(
    file: &NodeFile,
    config: &NodeConfig,
    claims: &mut Claims<'_>,
    draft: &mut Draft,
) -> Result<(), Problem> {
    for (position, section) in file.neighbour.iter().enumerate() {
        let ZonedAddress { address, port } = &section.address.value;
        let at = section.address.at;
        if file.neighbour[..position].iter().any(|other| other.address.value == section.address.value) {
            let text = format!("there is a neighbour {} at port {port} already", address.to_canonical());
            return Err(Problem::new(at, text));
        }
        if let Some(owner) = claims.owner(Prefix::host(*address)) {
            let text = format!("{} cannot be a neighbour: it is {owner}", address.to_canonical());
            return Err(Problem::new(at, text));
        }
        let next_hop = next_hop(config, at, *address, port)?;
        claims.neighbour(*address);
        draft.add(
            at,
            Entries {
                neighbours: [((next_hop.port, next_hop.address), section.mac.value)].into(),
                ..Entries::default()
            },
        )?;
    }
    Ok(())
}

fn add_route(
    file: &NodeFile,
    section: &Spanned<RouteSection>,
    config: &NodeConfig,
    claims: &mut Claims<'_>,
    draft: &mut Draft,
) -> Result<(), Problem> {
    let at = section.span().start;
    let section = section.get_ref();
    let prefix = section.prefix.value.0;
    let table = TableId(section.table.as_ref().map_or(0, |table| table.value.get() as u16));
    let (action, leads) = action(file, at, section, config, claims)?;
    let owner = "the prefix of a route";
    if table == TableId(0) {
        claims.claim(section.prefix.at, prefix, owner, leads)?;
    } else {
        claims.claim_in(table, section.prefix.at, prefix, owner)?;
    }
    draft.add(section.prefix.at, Entries { routes: [((table, prefix), action)].into(), ..Entries::default() })
}

fn action(
    file: &NodeFile,
    at: usize,
    section: &RouteSection,
    config: &NodeConfig,
    claims: &Claims<'_>,
) -> Result<(RouteAction, Leads), Problem> {
    match (&section.via, &section.encaps, &section.path, &section.blackhole) {
        (Some(via), None, None, None) => {
            if via.get_ref().is_empty() {
                return Err(Problem::new(via.span().start, "expected at least one neighbour, found none"));
            }
            let next_hops: Result<Vec<NextHop>, Problem> =
                via.get_ref().iter().map(|hop| known_neighbour(file, hop, config, claims)).collect();
            Ok((RouteAction::Via(next_hops?), Leads::Out))
        }
        (None, Some(encaps), None, None) => Ok((encapsulation(file, encaps)?, Leads::Elsewhere)),
        (None, None, Some(path), None) => Ok((RouteAction::Placed(steering::paths(path)?), Leads::Elsewhere)),
        (None, None, None, Some(blackhole)) if *blackhole.get_ref() => Ok((RouteAction::Blackhole, Leads::Elsewhere)),
        _ => Err(Problem::new(at, "expected exactly one of via, encaps, path and blackhole = true")),
    }
}

fn encapsulation(file: &NodeFile, encaps: &Spanned<EncapsSection>) -> Result<RouteAction, Problem> {
    let EncapsSection { segments, policy, mode, hmac_key_id } = encaps.get_ref();
    match (segments, policy, hmac_key_id) {
        (Some(segments), None, key_id) => {
            let segments = segments.iter().map(|segment| segment.value.0).collect();
            let hmac_key_id = key_id.as_ref().map(|key_id| key_id.value.get() as u32);
            Ok(RouteAction::Encaps { segments, mode: *mode, hmac_key_id })
        }
        (None, Some(policy), None) => Ok(RouteAction::Policy { policy: sr_policies::used(file, policy)?, mode: *mode }),
        (None, Some(_), Some(key_id)) => {
            Err(Problem::new(key_id.at, "the hmac_key_id of a policy stands in its [[sr_policy]]"))
        }
        (Some(_), Some(_), _) | (None, None, _) => {
            Err(Problem::new(encaps.span().start, "expected exactly one of segments and policy"))
        }
    }
}

/// A next hop that a packet can be sent to: its MAC address is known, or can be learnt.
pub(super) fn known_neighbour(
    file: &NodeFile,
    hop: &Located<ZonedAddress>,
    config: &NodeConfig,
    claims: &Claims<'_>,
) -> Result<NextHop, Problem> {
    let ZonedAddress { address, port } = &hop.value;
    let next_hop = next_hop(config, hop.at, *address, port)?;
    if !claims.purpose().learns() && !file.neighbour.iter().any(|neighbour| neighbour.address.value == hop.value) {
        let address = address.to_canonical();
        let text = format!("there is no [[neighbour]] {address}%{port}, which would give its MAC address");
        return Err(Problem::new(hop.at, text));
    }
    Ok(next_hop)
}

fn multicast_route(at: usize, section: &MulticastRouteSection, config: &NodeConfig) -> Result<MulticastRoute, Problem> {
    let incoming = section.incoming.as_ref().map(|port| port_named(config, port)).transpose()?;
    let mut outgoing = Vec::new();
    for name in &section.outgoing {
        let port = port_named(config, name)?;
        if outgoing.contains(&port) || incoming == Some(port) {
            return Err(Problem::new(name.at, format!("port {} stands in this route twice", name.value.0)));
        }
        outgoing.push(port);
    }
    if outgoing.is_empty() && !section.end_mt {
        return Err(Problem::new(at, "the route leads nowhere: expected outgoing ports, end_mt = true, or both"));
    }
    let (source, group) = (section.source.value.0, section.group.value.0);
    if section.require_hmac && !section.end_mt {
        return Err(Problem::new(at, "require_hmac without end_mt = true: only End.MT verifies an HMAC"));
    }
    let (end_mt, require_hmac) = (section.end_mt, section.require_hmac);
    Ok(MulticastRoute { source, group, incoming, outgoing, end_mt, require_hmac })
}
