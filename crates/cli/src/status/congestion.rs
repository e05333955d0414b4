//! Traffic classes, pauses, Fast CNP and backpressure as lines.

use super::columns::{Column, table};
use crate::units::grouped;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use srdma_node::daemon::{ClassSnapshot, PauseSnapshot, Snapshot};
use std::collections::BTreeMap;

/// The classes in use.
pub(super) fn classes(snapshot: &Snapshot, width: usize) -> Vec<Line<'static>> {
    let columns = [
        Column::text("port"),
        Column::number("class"),
        Column::number("waiting"),
        Column::number("peak").leaves(1),
        Column::number("frames"),
        Column::number("marked"),
        Column::number("dropped"),
        Column::number("pauses rx").leaves(4),
        Column::number("pauses tx").leaves(3),
        Column::number("storms").leaves(2),
        Column::text("now"),
    ];
    let of_port = |port: &str, class: &ClassSnapshot| {
        let pfc = class.pfc;
        let now = match (pfc.is_paused, pfc.is_pausing) {
            (false, false) => "",
            (true, false) => "paused",
            (false, true) => "pausing",
            (true, true) => "paused, pausing",
        };
        let numbers = [
            u64::from(class.class),
            class.waiting_octets,
            class.peak_octets,
            class.sent.frames,
            class.marks,
            class.drops.values().sum(),
            pfc.pauses_received,
            pfc.pauses_sent,
            pfc.storms,
        ];
        let cells = [port.to_owned()].into_iter().chain(numbers.map(grouped)).chain([now.to_owned()]);
        let style = if now.is_empty() { Style::new() } else { Style::new().fg(Color::Yellow) };
        (cells.collect(), style)
    };
    let is_used = |class: &&ClassSnapshot| **class != ClassSnapshot { class: class.class, ..unused() };
    let rows: Vec<(Vec<String>, Style)> = snapshot
        .ports
        .iter()
        .flat_map(|port| port.classes.iter().filter(is_used).map(|class| of_port(&port.name, class)))
        .collect();
    if rows.is_empty() { Vec::new() } else { table(&columns, rows, width) }
}

/// The initial state of a class at a port.
fn unused() -> ClassSnapshot {
    let none = ["queue_full", "headroom_exceeded", "pause_storm"].map(|reason| (reason.to_owned(), 0));
    ClassSnapshot { drops: none.into(), ..ClassSnapshot::default() }
}

/// Pauses across a WAN that are in effect, and the counters of backpressure.
pub(super) fn backpressure(snapshot: &Snapshot) -> Vec<Line<'static>> {
    let Some(known) = &snapshot.backpressure else { return Vec::new() };
    let line = |what: &str, pause: &PauseSnapshot| {
        Line::raw(format!("  pause {what} {}, class {}", pause.address, pause.traffic_class))
    };
    let received = known.received.iter().map(|pause| line("received from", pause));
    let sent = known.sent.iter().map(|pause| line("sent to", pause));
    received.chain(sent).chain(counted(&known.counters)).collect()
}

/// Counters of Fast CNP.
pub(super) fn fast_cnp(snapshot: &Snapshot) -> Vec<Line<'static>> {
    snapshot.fast_cnp.as_ref().map_or_else(Vec::new, counted)
}

/// The counters that are not zero.
fn counted(counters: &BTreeMap<String, u64>) -> Vec<Line<'static>> {
    let counted = counters.iter().filter(|(_, count)| **count > 0);
    let lines: Vec<Line<'static>> =
        counted.map(|(name, count)| Line::raw(format!("  {} {}", grouped(*count), name.replace('_', " ")))).collect();
    if lines.is_empty() { vec![Line::raw("  on, nothing counted")] } else { lines }
}
