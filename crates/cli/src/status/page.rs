//! Everything about a node as lines: the live screen shows a part of them, elsewhere they are printed.

use super::columns::{Column, table};
use super::rates::Seen;
use super::text::{bar, psn, seconds};
use super::{bfd, congestion, repair, steering, workers};
use crate::units::{count, grouped, rate};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use srdma_node::TrafficReport;
use srdma_node::daemon::{DriverSnapshot, GroupSnapshot, PortSnapshot, Snapshot};
use srdma_wire::units::NS_PER_S;
use std::fmt;

/// The lines of a node's status.
pub(super) struct Page {
    /// The node's name and its general state.
    pub(super) head: Vec<Line<'static>>,
    /// The sections.
    pub(super) body: Vec<Line<'static>>,
    /// Position in the body at which each section begins.
    pub(super) sections: Vec<usize>,
}

const BAR_CELLS: usize = 16;
/// A lag that fills the bar, unless another branch of the group has a greater one: the maximum outstanding by
/// unmodified hosts.
const FULL_LAG: u32 = 128;

/// Sections of nodes with configuration for them.
const OPTIONAL: [&str; 6] = ["Data threads", "Classes", "Fast CNP", "Backpressure", "Paths", "BFD"];

const GOOD: Style = Style::new();
const BAD: Style = Style::new().fg(Color::Red);
const NOTE: Style = Style::new().fg(Color::Yellow);

impl Page {
    /// The page for lines of `width` columns; minor columns are left out where they do not fit.
    pub(super) fn new(seen: &Seen, width: usize) -> Self {
        let mut page = Page { head: head(&seen.now), body: Vec::new(), sections: Vec::new() };
        page.section("Ports", ports(seen, width));
        page.section("Data threads", workers::workers(seen, width));
        page.section("Classes", congestion::classes(&seen.now, width));
        page.section("Drops", drops(seen, width));
        page.section("Fast CNP", congestion::fast_cnp(&seen.now));
        page.section("Backpressure", congestion::backpressure(&seen.now));
        page.section("Paths", steering::steering(&seen.now, width));
        page.section("BFD", bfd::sessions(&seen.now, width));
        page.section("Groups", seen.now.groups.iter().flat_map(|group| group_lines(seen, group, width)).collect());
        page.section("SIDs", sids(seen, width));
        page
    }

    /// A section, with a note when it is empty; sections that matter to few are left out when empty.
    fn section(&mut self, title: &'static str, lines: Vec<Line<'static>>) {
        if lines.is_empty() && OPTIONAL.contains(&title) {
            return;
        }
        self.sections.push(self.body.len());
        let title = if lines.is_empty() { format!("{title}: none") } else { title.to_owned() };
        self.body.push(Line::styled(title, Style::new().bold()));
        self.body.extend(lines);
        self.body.push(Line::default());
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.strip_suffix(&[Line::default()]).unwrap_or(&self.body);
        self.head.iter().chain(&[Line::default()]).chain(body).try_for_each(|line| writeln!(f, "{line}"))
    }
}

fn head(snapshot: &Snapshot) -> Vec<Line<'static>> {
    let uptime_s = snapshot.uptime_ns / NS_PER_S;
    let first = format!("{}  {}  up {}", snapshot.name, snapshot.loopback, seconds(uptime_s));
    let counts = [
        count(snapshot.ports.len() as u64, "port"),
        count(snapshot.sids.len() as u64, "SID"),
        count(snapshot.groups.len() as u64, "group"),
        count(snapshot.neighbours as u64, "neighbour"),
        format!("{} in tables", grouped(snapshot.prefixes as u64)),
    ];
    let mut lines = vec![Line::styled(first, Style::new().bold()), Line::raw(counts.join(", "))];
    if let Some(reload) = &snapshot.configuration.last_reload {
        let ago = seconds((snapshot.started_unix_s + uptime_s).saturating_sub(reload.unix_s));
        let generation = snapshot.configuration.generation;
        lines.push(match &reload.error {
            None => Line::raw(format!("configuration {generation}, applied {ago} ago")),
            Some(error) => Line::styled(format!("configuration {generation}; refused {ago} ago: {error}"), BAD),
        });
    }
    if let Some(controller) = &snapshot.controller {
        let url = &controller.url;
        lines.push(match &controller.error {
            None if controller.is_reached => {
                Line::raw(format!("controller {url}, {} of its groups", controller.groups))
            }
            None => Line::raw(format!("controller {url}, not asked yet")),
            Some(error) => Line::styled(format!("controller not reached: {error}"), BAD),
        });
    }
    lines
}

fn ports(seen: &Seen, width: usize) -> Vec<Line<'static>> {
    let mut columns = vec![
        Column::text("port"),
        Column::text("link"),
        Column::text("driver").leaves(5),
        Column::number("in frames").leaves(3),
        Column::number("octets").leaves(1),
        Column::number("out frames").leaves(4),
        Column::number("octets").leaves(2),
    ];
    if seen.has_rates() {
        columns.extend(["in frame/s", "in bit/s", "out frame/s", "out bit/s"].map(Column::number));
    }
    let row = |port: &PortSnapshot| {
        let rates = |traffic: fn(&PortSnapshot) -> TrafficReport| {
            rates_of(seen, |snapshot| port_of(snapshot, &port.name).map(traffic))
        };
        let driver = port.driver.as_deref().unwrap_or("none");
        let is_fast = port.fast_path.as_ref().is_some_and(|fast_path| fast_path.is_on);
        let driver = if is_fast { &format!("{driver}, fast path") } else { driver };
        let names = [port.name.as_str(), if port.is_up { "up" } else { "down" }, driver].map(str::to_owned);
        let totals = [port.received, port.sent].map(|traffic| [grouped(traffic.frames), grouped(traffic.octets)]);
        let rates = [rates(|port| port.received), rates(|port| port.sent)];
        let cells = names.into_iter().chain(totals.into_iter().flatten()).chain(rates.into_iter().flatten());
        (cells.collect(), if port.is_up { GOOD } else { BAD })
    };
    let snapshot = &seen.now;
    if snapshot.ports.is_empty() {
        return Vec::new();
    }
    let mut lines = table(&columns, snapshot.ports.iter().map(row).collect(), width);
    let note = |port: &PortSnapshot| Some(Line::styled(format!("  {}: {}", port.name, port.note.as_ref()?), NOTE));
    lines.extend(snapshot.ports.iter().filter_map(note));
    let no_fast_path = |port: &PortSnapshot| {
        let reason = port.fast_path.as_ref()?.reason.as_ref()?;
        Some(Line::styled(format!("  {}: no fast path: {reason}", port.name), NOTE))
    };
    lines.extend(snapshot.ports.iter().filter_map(no_fast_path));
    lines
}

/// A counter of a driver.
type OfDriver = fn(&DriverSnapshot) -> u64;

fn drops(seen: &Seen, width: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<(Vec<String>, Style)> = Vec::new();
    let mut add = |port: &str, reason: &str, drops: u64, per_second: u64| {
        let cells = vec![port.to_owned(), reason.to_owned(), grouped(drops), grouped(per_second)];
        rows.push((cells, if per_second > 0 { BAD } else { GOOD }));
    };
    for port in &seen.now.ports {
        for (reason, drops) in &port.drops {
            let counter =
                |snapshot: &Snapshot| Some(port_of(snapshot, &port.name)?.drops.get(reason).copied().unwrap_or(0));
            add(&port.name, reason, *drops, seen.per_second(counter));
        }
        let of_driver: [(&str, OfDriver); 3] = [
            ("receive overruns of the driver", |driver| driver.receive_overruns),
            ("too long for the driver", |driver| driver.too_long),
            ("send errors of the driver", |driver| driver.send_errors),
        ];
        for (reason, value) in of_driver.into_iter().filter(|(_, value)| value(&port.statistics) > 0) {
            let counter = |snapshot: &Snapshot| Some(value(&port_of(snapshot, &port.name)?.statistics));
            add(&port.name, reason, value(&port.statistics), seen.per_second(counter));
        }
    }
    for (reason, drops) in &seen.now.own_drops {
        let counter = |snapshot: &Snapshot| Some(snapshot.own_drops.get(reason).copied().unwrap_or(0));
        add("its own", reason, *drops, seen.per_second(counter));
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let mut columns = vec![Column::text("port"), Column::text("reason"), Column::number("packets")];
    columns.extend(seen.has_rates().then(|| Column::number("a second")));
    table(&columns, rows, width)
}

fn group_lines(seen: &Seen, group: &GroupSnapshot, width: usize) -> Vec<Line<'static>> {
    let above = if group.is_root { "source" } else { "parent" };
    let title = format!(
        "  {} {}  proxy {}  {above} {}  {}",
        group.id,
        group.role.name(),
        group.proxy,
        group.parent,
        if group.is_learnt { "learnt from lists".to_owned() } else { format!("epoch {}", group.epoch) }
    );
    let data_per_second = seen.per_second(|snapshot| {
        let same = snapshot.groups.iter().find(|other| other.id == group.id)?;
        Some(same.counters.data_packets)
    });
    let now = if seen.has_rates() { format!(" ({}/s)", grouped(data_per_second)) } else { String::new() };
    let traffic = format!(
        "    {} data packets{now}, {} copies",
        grouped(group.counters.data_packets),
        grouped(group.counters.copies)
    );
    let responses = format!(
        "    ACK, NAK, CNP received {}, {}, {}; sent {}, {}, {}",
        grouped(group.counters.acks_received),
        grouped(group.counters.naks_received),
        grouped(group.counters.cnps_received),
        grouped(group.counters.acks_sent),
        grouped(group.counters.naks_sent),
        grouped(group.counters.cnps_sent)
    );
    let full = group.branches.iter().filter_map(|branch| branch.lag).max().unwrap_or(0).max(FULL_LAG);
    let rows = group.branches.iter().map(|branch| {
        let lag = branch.lag.map_or_else(|| "–".to_owned(), |lag| grouped(u64::from(lag)));
        let bar = bar(branch.lag.unwrap_or(0), full, BAR_CELLS);
        let mut cells =
            vec![format!("  {}", branch.address), psn(branch.expected_psn), grouped(branch.stalls), lag, bar];
        cells.extend(repair::cells(branch));
        (cells, if branch.expected_psn.is_none() { NOTE } else { GOOD })
    });
    let mut columns = vec![
        Column::text("  branch"),
        Column::number("expected PSN"),
        Column::number("stalls"),
        Column::number("lag"),
        Column::text("").leaves(1),
    ];
    columns.extend(repair::columns(group));
    let to_evict = group.to_evict.iter().map(|eviction| {
        Line::raw(format!("    {} is {}: evict it by a new epoch", eviction.receiver, eviction.cause.name()))
    });
    let mut lines = [title, traffic, responses].into_iter().map(Line::raw).collect::<Vec<_>>();
    lines.extend(repair::line(group).map(Line::raw));
    lines.extend(to_evict);
    lines.extend(table(&columns, rows.collect(), width));
    lines
}

fn sids(seen: &Seen, width: usize) -> Vec<Line<'static>> {
    let mut columns = vec![
        Column::text("SID"),
        Column::text("behavior"),
        Column::number("frames"),
        Column::number("octets").leaves(1),
    ];
    if seen.has_rates() {
        columns.extend(["frame/s", "bit/s"].map(Column::number));
    }
    let rows = seen.now.sids.iter().map(|sid| {
        let same =
            |snapshot: &Snapshot| snapshot.sids.iter().find(|other| other.sid == sid.sid).map(|sid| sid.processed);
        let mut cells =
            vec![sid.sid.clone(), sid.behavior.clone(), grouped(sid.processed.frames), grouped(sid.processed.octets)];
        cells.extend(rates_of(seen, same));
        (cells, GOOD)
    });
    if seen.now.sids.is_empty() { Vec::new() } else { table(&columns, rows.collect(), width) }
}

/// Frames and bits a second.
fn rates_of(seen: &Seen, traffic: impl Fn(&Snapshot) -> Option<TrafficReport>) -> [String; 2] {
    let frames = seen.per_second(|snapshot| Some(traffic(snapshot)?.frames));
    let octets = seen.per_second(|snapshot| Some(traffic(snapshot)?.octets));
    [grouped(frames), rate(octets.saturating_mul(8))]
}

fn port_of<'s>(snapshot: &'s Snapshot, name: &str) -> Option<&'s PortSnapshot> {
    snapshot.ports.iter().find(|port| port.name == name)
}
