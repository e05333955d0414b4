//! What `srdma plan place` prints for people.

use super::placed::{Load, Placed, PlacedFlow, WrittenProgram};
use std::fmt::Write;

pub(super) fn table(placed: &Placed) -> String {
    let Placed { most_loaded: Load { from, to, load, .. }, bound, ecmp, flows, .. } = placed;
    let mut text = format!("{} flows\n", flows.len());
    let gap = 100.0 * (load / bound - 1.0).max(0.0);
    let _ = writeln!(text, "most loaded   {from} to {to}: {load:.3} of its rate");
    let _ = writeln!(text, "bound         {bound:.3}: no placement gets below it; {gap:.1} % above");
    let _ = writeln!(
        text,
        "ECMP          {:.3} median of {} hashes, {:.3} to {:.3}",
        ecmp.median, ecmp.seeds, ecmp.least, ecmp.most
    );
    let rows: Vec<[String; 6]> = flows.iter().map(row).collect();
    let titles = ["from", "to", "Gbit/s", "destination", "backup", "reverse"].map(str::to_owned);
    let width = |column: usize| rows.iter().chain([&titles]).map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4, 5].map(width);
    text.push('\n');
    for row in [&titles].into_iter().chain(&rows) {
        let cells = (0..6).map(|column| match column {
            2 => format!("{:>1$}", row[column], widths[column]),
            _ => format!("{:<1$}", row[column], widths[column]),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(flow: &PlacedFlow) -> [String; 6] {
    [
        flow.from.clone(),
        flow.to.clone(),
        format!("{:.2}", flow.rate_bits_per_s as f64 / 1e9),
        written(&flow.program),
        flow.backup.as_ref().map_or("none".to_owned(), written),
        written(&flow.reverse),
    ]
}

/// A program in one cell: its SRH's segments behind the destination.
fn written(program: &WrittenProgram) -> String {
    let segments = program.segments.iter().map(|segment| format!(", {segment}"));
    format!("{}{}", program.destination, segments.collect::<String>())
}
