//! The text output of `srdma plan`.

use super::change::{Changed, ChangedFlow};
use super::placed::{Load, Placed, PlacedFlow, PlacedGroup, WrittenProgram};
use super::why::{Bound, GroupReasons, Reasons, UsedLink};
use crate::terminal;
use std::fmt::Write;

pub(super) fn table(placed: &Placed) -> String {
    let Placed { most_loaded: Load { from, to, load, .. }, bound, ecmp, flows, groups, .. } = placed;
    let mut text = match groups.len() {
        0 => format!("{} flows\n", flows.len()),
        count => format!("{} flows, {count} multicast groups\n", flows.len()),
    };
    let gap = 100.0 * (load / bound - 1.0).max(0.0);
    let _ = writeln!(text, "most loaded   {from} to {to}: {load:.3} of its rate");
    let _ = writeln!(text, "bound         {bound:.3}: no placement gets below it; {gap:.1} % above");
    let _ = writeln!(
        text,
        "ECMP          {:.3} median of {} hashes, {:.3} to {:.3}",
        ecmp.median, ecmp.seeds, ecmp.least, ecmp.most
    );
    let titles = ["from", "to", "Gbit/s", "destination", "backup", "reverse"];
    if !flows.is_empty() {
        text.push('\n');
        rows(&mut text, titles, Some(2), flows.iter().map(row).collect());
    }
    add_groups(&mut text, "", groups);
    text
}

/// A table of multicast groups, below a heading, if there are any.
fn add_groups(text: &mut String, heading: &str, groups: &[PlacedGroup]) {
    if groups.is_empty() {
        return;
    }
    text.push('\n');
    text.push_str(heading);
    let row = |group: &PlacedGroup| {
        let switches: Vec<&str> =
            group.tree.iter().map(|[_, to]| to.as_str()).filter(|to| !is_receiver(group, to)).collect();
        [
            group.number.to_string(),
            group.from.clone(),
            group.to.len().to_string(),
            format!("{:.2}", group.rate_bits_per_s as f64 / 1e9),
            group.tree.len().to_string(),
            switches.join(" "),
        ]
    };
    let titles = ["group", "from", "receivers", "Gbit/s", "links", "replicated by"];
    rows(text, titles, Some(0), groups.iter().map(row).collect());
}

fn is_receiver(group: &PlacedGroup, name: &str) -> bool {
    group.to.iter().any(|to| to == name)
}

pub(super) fn changed(changed: &Changed) -> String {
    let Changed { saved, flows, added, removed, moved, added_groups, moved_groups, before, after, bound } = changed;
    let mut text = format!("{} of {flows} flows {}", moved.len(), if *saved { "moved" } else { "would move" });
    if !added.is_empty() {
        let _ = write!(text, ", {} added", added.len());
    }
    if !removed.is_empty() {
        let _ = write!(text, ", {} removed", removed.len());
    }
    text.push('\n');
    let link = |Load { from, to, load, .. }: &Load| format!("{from} to {to}: {load:.3}");
    let _ = writeln!(text, "most loaded   {} of its rate; before: {}", link(after), link(before));
    let _ = writeln!(text, "bound         {bound:.3}");
    let row = |flow: &ChangedFlow| {
        let was = flow.was.as_ref().map_or("added".to_owned(), |was| switches(was));
        [flow.number.to_string(), flow.from.clone(), flow.to.clone(), was, switches(&flow.path), written(&flow.program)]
    };
    if !(moved.is_empty() && added.is_empty()) {
        text.push('\n');
        let titles = ["flow", "from", "to", "was by", "goes by", "destination"];
        rows(&mut text, titles, Some(0), moved.iter().chain(added).map(row).collect());
    }
    let has = if *saved { "have" } else { "would have" };
    add_groups(&mut text, &format!("groups that {has} another tree:\n"), moved_groups);
    add_groups(&mut text, "groups that are added:\n", added_groups);
    text
}

pub(super) fn reasons(reasons: &Reasons) -> String {
    let Reasons { number, job, collective, rate_bits_per_s, path, program, .. } = reasons;
    let (from, to) = (path.first().map_or("", String::as_str), path.last().map_or("", String::as_str));
    let mut text = format!("flow {number}: {from} to {to}, {:.2} Gbit/s, ", *rate_bits_per_s as f64 / 1e9);
    let _ = writeln!(text, "{collective} of job {job}");
    let _ = writeln!(text, "goes by {}: {}\n", switches(path), written(program));
    add_links(&mut text, &reasons.links);
    let own = reasons.links.iter().map(|own| own.load.load).fold(0.0, f64::max);
    text.push('\n');
    match reasons.alternatives.first() {
        None => text.push_str("There is no other way.\n"),
        Some(best) => {
            let relieved = "but that would not relieve the link that carries most of all";
            let better = match best.load < own - 1e-9 {
                true => format!("The first would carry less than the links that it uses, {relieved}"),
                false => "None would carry less than the links that it uses".to_owned(),
            };
            let _ = writeln!(text, "{} other ways. {better}.\n", reasons.other_ways);
            let ways = reasons.alternatives.iter();
            let ways =
                ways.map(|own| [switches(&own.path), format!("{:.3}", own.load), own.from.clone(), own.to.clone()]);
            rows(&mut text, ["by", "would load", "link from", "to"], Some(1), ways.collect());
        }
    }
    add_bound(&mut text, &reasons.bound);
    text
}

pub(super) fn group_reasons(reasons: &GroupReasons) -> String {
    let GroupReasons { group, links, other_ways, alternatives, .. } = reasons;
    let PlacedGroup { number, job, collective, from, to, rate_bits_per_s, .. } = group;
    let rate = *rate_bits_per_s as f64 / 1e9;
    let mut text =
        format!("group {number}: {from} to {} NICs, {rate:.2} Gbit/s, {collective} of job {job}\n\n", to.len());
    add_links(&mut text, links);
    text.push('\n');
    if alternatives.is_empty() {
        text.push_str("There is no other tree with one way up for all receivers.\n");
    } else {
        let _ = writeln!(text, "{other_ways} other trees with one way up for all receivers.\n");
        let by = |path: &[String]| {
            let switches = path.iter().skip(1).filter(|name| !is_receiver(group, name));
            switches.cloned().collect::<Vec<String>>().join(" ")
        };
        let ways = alternatives.iter();
        let ways = ways.map(|own| [by(&own.path), format!("{:.3}", own.load), own.from.clone(), own.to.clone()]);
        rows(&mut text, ["by", "would load", "link from", "to"], Some(1), ways.collect());
    }
    add_bound(&mut text, &reasons.bound);
    text
}

/// A table of links with their loads.
fn add_links(text: &mut String, links: &[UsedLink]) {
    let row = |own: &UsedLink| {
        let load = format!("{:.3}", own.load.load);
        [own.load.from.clone(), own.load.to.clone(), load, own.flows.to_string(), own.groups.to_string()]
    };
    match links.iter().any(|own| own.groups > 0) {
        true => rows(text, ["link from", "to", "load", "flows", "groups"], Some(2), links.iter().map(row).collect()),
        false => {
            let without = links.iter().map(row).map(|[from, to, load, flows, _]| [from, to, load, flows]);
            rows(text, ["link from", "to", "load", "flows"], Some(2), without.collect());
        }
    }
}

/// The most loaded link of a plan, and its bound.
fn add_bound(text: &mut String, Bound { most_loaded, bound, gap, bound_by }: &Bound) {
    let Load { from, to, load, .. } = most_loaded;
    let _ = writeln!(text, "\nmost loaded   {from} to {to}: {load:.3} of its rate");
    let _ = writeln!(text, "bound         {bound:.3}, {:.1} % below; made by {bound_by}", 100.0 * gap);
}

/// The switches of a path.
pub(super) fn switches(path: &[String]) -> String {
    path.get(1..path.len().saturating_sub(1)).unwrap_or_default().join(" ")
}

/// Columns below their titles, one of them to the right.
pub(super) fn rows<const N: usize>(text: &mut String, titles: [&str; N], right: Option<usize>, rows: Vec<[String; N]>) {
    let titles = titles.map(str::to_owned);
    let rows: Vec<[String; N]> =
        rows.into_iter().map(|row| row.map(|cell| terminal::escaped(&cell).into_owned())).collect();
    let width = |column: usize| rows.iter().chain([&titles]).map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in [&titles].into_iter().chain(&rows) {
        let cells = (0..N).map(|column| match right == Some(column) {
            true => format!("{:>1$}", row[column], widths[column]),
            false => format!("{:<1$}", row[column], widths[column]),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
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
pub(super) fn written(program: &WrittenProgram) -> String {
    let segments = program.segments.iter().map(|segment| format!(", {segment}"));
    format!("{}{}", program.destination, segments.collect::<String>())
}
