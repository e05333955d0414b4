//! BFD sessions as lines.

use super::columns::{Column, table};
use crate::units::grouped;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use srdma_node::daemon::{BackupSnapshot, BfdSnapshot, Snapshot};
use srdma_wire::units::NS_PER_MS;

/// The sessions.
pub(super) fn sessions(snapshot: &Snapshot, width: usize) -> Vec<Line<'static>> {
    if snapshot.bfd.is_empty() {
        return Vec::new();
    }
    let columns = [
        Column::text("peer"),
        Column::text("port"),
        Column::text("state"),
        Column::text("peer's").leaves(2),
        Column::number("interval").leaves(1),
        Column::number("detection"),
        Column::number("downs"),
        Column::number("backups").leaves(4),
        Column::text("diagnostic").leaves(3),
    ];
    let ms = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{} ms", ns / NS_PER_MS));
    let backups = |session: &BfdSnapshot| {
        let is_it = |of: &&BackupSnapshot| session.port.as_ref() == Some(&of.port) && session.peer == of.peer;
        snapshot.backups.iter().find(is_it).map_or("-".to_owned(), |backups| grouped(backups.prefixes as u64))
    };
    let row = |session: &BfdSnapshot| {
        let cells = vec![
            session.peer.to_string(),
            session.port.clone().unwrap_or_else(|| "any".to_owned()),
            session.state.clone(),
            session.remote_state.clone(),
            ms(session.interval_ns),
            ms(session.detection_time_ns),
            grouped(session.downs),
            backups(session),
            session.diagnostic.replace('_', " "),
        ];
        let style = if session.state == "up" { Style::new() } else { Style::new().fg(Color::Red) };
        (cells, style)
    };
    table(&columns, snapshot.bfd.iter().map(row).collect(), width)
}
