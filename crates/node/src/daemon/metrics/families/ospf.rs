//! Metrics of OSPFv3: circuits, the database, and what was dropped.

use super::{Out, frames};
use crate::daemon::{OspfSnapshot, Snapshot};
use prometheus_client::registry::Unit;
use std::fmt;

/// The families exist only while the node runs OSPFv3.
pub(super) fn ospf(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let Some(ospf) = &snapshot.ospf else { return Ok(()) };
    let info = [("router", ospf.router.as_str()), ("hostname", &ospf.hostname)];
    out.infos("srdma_ospf", "The router", [info])?;
    let full = ospf.circuits.iter().map(|circuit| {
        let neighbour = circuit.neighbour.as_deref().unwrap_or("none");
        ([("port", circuit.port.as_str()), ("neighbour", neighbour)], u64::from(circuit.state == "full"))
    });
    out.gauges("srdma_ospf_neighbour_full", "Whether the databases are equal: 1 or 0", None, full)?;
    let octets: usize = ospf.lsas.iter().map(|lsa| lsa.octets).sum();
    let counted = |wanted: fn(&OspfSnapshot) -> usize| wanted(ospf) as u64;
    let gauges = [
        ("srdma_ospf_overload", "Whether the R-bit is clear: 1 or 0", None, u64::from(ospf.is_overloaded)),
        ("srdma_ospf_lsas", "LSAs in the database", None, counted(|ospf| ospf.lsas.len())),
        ("srdma_ospf_database", "Octets of all LSAs", Some(Unit::Bytes), octets as u64),
        ("srdma_ospf_routes", "Reachable prefixes of other routers", None, counted(|ospf| ospf.routes.len())),
        ("srdma_ospf_notification_nodes", "Routers whose C-flag is set", None, {
            counted(|ospf| ospf.nodes.iter().filter(|node| node.handles_notifications).count())
        }),
    ];
    for (name, help, unit, value) in gauges {
        out.gauges(name, help, unit, [([], value)])?;
    }
    let events = ospf.counters.iter().map(|(event, count)| ([("event", event.as_str())], *count));
    out.counters("srdma_ospf_events", "Events, by name", None, events)?;
    let drops = ospf.all_drops().map(|(reason, count)| ([("reason", reason)], count));
    out.counters("srdma_ospf_dropped", "Packets and LSAs that were dropped", Some(frames()), drops)
}
