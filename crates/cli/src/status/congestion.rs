//! Traffic classes, pauses, Fast CNP and notifications as lines.

use super::columns::{Column, table};
use crate::units::grouped;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use srdma_node::daemon::{ClassSnapshot, HoldSnapshot, Snapshot};
use std::collections::BTreeMap;

/// The classes that anything has happened in.
pub(super) fn classes(snapshot: &Snapshot, width: usize) -> Vec<Line<'static>> {
    let columns = [
        Column::text("port"),
        Column::number("class"),
        Column::number("waiting"),
        Column::number("peak").leaves(1),
        Column::number("frames"),
        Column::number("marked"),
        Column::number("dropped"),
        Column::number("paused").leaves(4),
        Column::number("told").leaves(3),
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

/// Pauses across a WAN, kept up and asked for, and what was counted of them.
pub(super) fn notifications(snapshot: &Snapshot) -> Vec<Line<'static>> {
    let Some(known) = &snapshot.notifications else { return Vec::new() };
    let pause =
        |what: &str, hold: &HoldSnapshot| Line::raw(format!("  {what} {}, class {}", hold.address, hold.traffic_class));
    let held = known.held.iter().map(|hold| pause("paused for", hold));
    let asked = known.asked.iter().map(|hold| pause("has asked", hold));
    held.chain(asked).chain(counted(&known.counters)).collect()
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
