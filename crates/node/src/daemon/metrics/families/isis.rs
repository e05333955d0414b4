//! Metrics of IS-IS: circuits, the database, and what was dropped.

use super::{Out, frames};
use crate::daemon::{IsisSnapshot, IsisState, Snapshot};
use prometheus_client::registry::Unit;
use std::fmt;

/// The families exist only while the node runs IS-IS.
pub(super) fn isis(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let Some(isis) = &snapshot.isis else { return Ok(()) };
    let info = [
        ("system", isis.system.as_str()),
        ("hostname", &isis.hostname),
        ("area", &isis.area),
        ("authentication", &isis.authentication),
    ];
    out.infos("srdma_isis", "The system", [info])?;
    let levels: Vec<String> = isis.circuits.iter().map(|circuit| circuit.level.to_string()).collect();
    let up = isis.circuits.iter().zip(&levels).map(|(circuit, level)| {
        let neighbour = circuit.neighbour.as_deref().unwrap_or("none");
        let labels = [("port", circuit.port.as_str()), ("neighbour", neighbour), ("level", level)];
        (labels, u64::from(circuit.state == IsisState::Up))
    });
    out.gauges("srdma_isis_adjacency_up", "Whether the adjacency is up: 1 or 0", None, up)?;
    let causes = isis.all_overload_causes().map(|(cause, is_set)| ([("cause", cause)], u64::from(is_set)));
    out.gauges("srdma_isis_overload", "Whether the overload bit is set, by cause: 1 or 0", None, causes)?;
    let octets: usize = isis.lsps.iter().map(|lsp| lsp.octets).sum();
    let counted = |wanted: fn(&IsisSnapshot) -> usize| wanted(isis) as u64;
    let gauges = [
        ("srdma_isis_lsps", "LSPs in the database", None, counted(|isis| isis.lsps.len())),
        ("srdma_isis_database", "Octets of all LSPs", Some(Unit::Bytes), octets as u64),
        ("srdma_isis_routes", "Reachable prefixes of other systems", None, counted(|isis| isis.routes.len())),
        ("srdma_isis_notification_nodes", "Nodes whose C-flag is set", None, {
            counted(|isis| isis.nodes.iter().filter(|node| node.handles_notifications).count())
        }),
    ];
    for (name, help, unit, value) in gauges {
        out.gauges(name, help, unit, [([], value)])?;
    }
    let events = isis.counters.iter().map(|(event, count)| ([("event", event.as_str())], *count));
    out.counters("srdma_isis_events", "Events, by name", None, events)?;
    let drops = isis.all_drops().map(|(reason, count)| ([("reason", reason)], count));
    out.counters("srdma_isis_dropped", "Frames that were dropped", Some(frames()), drops)
}
