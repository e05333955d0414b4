//! The data threads of a node that has several.

use super::columns::{Column, table};
use super::rates::Seen;
use crate::units::grouped;
use ratatui::style::Style;
use ratatui::text::Line;
use srdma_node::daemon::WorkerSnapshot;

/// A line for each; nothing at a node with one.
pub(super) fn workers(seen: &Seen, width: usize) -> Vec<Line<'static>> {
    if seen.now.workers.len() < 2 {
        return Vec::new();
    }
    let mut columns = vec![
        Column::number("thread"),
        Column::number("cpu"),
        Column::number("received"),
        Column::number("sent"),
        Column::number("handed over"),
        Column::number("taken over"),
    ];
    if seen.has_rates() {
        columns.extend(["received/s", "sent/s"].map(Column::number));
    }
    let rows = seen.now.workers.iter().enumerate().map(|(number, worker)| {
        let cpu = worker.cpu.map_or("any".to_owned(), |cpu| cpu.to_string());
        let counts = [worker.received, worker.sent, worker.handed_over, worker.taken_over];
        let mut cells = vec![number.to_string(), cpu];
        cells.extend(counts.map(grouped));
        let rate = |count: fn(&WorkerSnapshot) -> u64| {
            grouped(seen.per_second(|snapshot| snapshot.workers.get(number).map(count)))
        };
        cells.extend([rate(|worker| worker.received), rate(|worker| worker.sent)]);
        (cells, Style::new())
    });
    table(&columns, rows.collect(), width)
}
