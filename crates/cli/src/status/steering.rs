//! Placed paths and the flows on them as lines.

use super::columns::{Column, table};
use crate::units::grouped;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use srdma_node::daemon::{PathSnapshot, Snapshot};

/// Flows that are shown.
const MOST_FLOWS: usize = 12;

/// The paths of each destination, the flows that sent last, and what was counted.
pub(super) fn steering(snapshot: &Snapshot, width: usize) -> Vec<Line<'static>> {
    let Some(steering) = &snapshot.steering else { return Vec::new() };
    let mut lines = Vec::new();
    for destination in &steering.destinations {
        lines.push(Line::raw(format!("  {}", destination.prefixes.join(", "))));
        lines.extend(paths(&destination.paths, width));
    }
    if !steering.flows.is_empty() {
        let columns = [
            Column::text("flow from").leaves(1),
            Column::text("to"),
            Column::text("by"),
            Column::number("moves").leaves(2),
        ];
        let row = |flow: &srdma_node::daemon::FlowSnapshot| {
            let cells = vec![
                flow.source.to_string(),
                flow.destination.to_string(),
                flow.path.clone(),
                grouped(flow.moves.into()),
            ];
            (cells, Style::new())
        };
        lines.extend(table(&columns, steering.flows.iter().take(MOST_FLOWS).map(row).collect(), width));
    }
    let counted = [("moves by ", &steering.moves), ("signals ", &steering.signals), ("", &steering.counters)];
    for (title, counters) in counted {
        let counters = counters.iter().filter(|(_, count)| **count > 0);
        lines.extend(
            counters.map(|(name, count)| Line::raw(format!("  {} {title}{}", grouped(*count), name.replace('_', " ")))),
        );
    }
    lines
}

fn paths(paths: &[PathSnapshot], width: usize) -> Vec<Line<'static>> {
    let columns = [
        Column::text("path"),
        Column::number("rank").leaves(1),
        Column::text("state"),
        Column::number("round trip").leaves(3),
        Column::number("times bad").leaves(2),
        Column::number("flows assigned").leaves(4),
    ];
    let row = |path: &PathSnapshot| {
        let style = match path.state.as_str() {
            "congested" => Style::new().fg(Color::Yellow),
            "silent" => Style::new().fg(Color::Red),
            _ => Style::new(),
        };
        let round_trip = match (path.round_trip_ns, path.is_probed) {
            (Some(ns), _) => format!("{}.{} us", ns / 1_000, ns % 1_000 / 100),
            (None, true) => "none yet".to_owned(),
            (None, false) => "not probed".to_owned(),
        };
        let cells = vec![
            path.destination.clone(),
            path.rank.to_string(),
            path.state.clone(),
            round_trip,
            grouped(path.times_bad),
            grouped(path.flows_assigned),
        ];
        (cells, style)
    };
    table(&columns, paths.iter().map(row).collect(), width)
}
