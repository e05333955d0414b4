//! The report of `srdma process` as text.

use srdma_node::Report;
use std::fmt::Write;

/// Names the ports in a sentence.
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => "no ports".to_owned(),
        [name] => format!("port {name}"),
        names => format!("ports {}", names.join(", ")),
    }
}

/// A table of the ports, then what SIDs and groups did, then what was dropped.
pub(super) fn report(report: &Report) -> String {
    let mut text = String::new();
    write(&mut text, report).expect("a string takes any text");
    text
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    let took_ns = report.end_time_ns - report.first_time_ns.unwrap_or(report.end_time_ns);
    writeln!(text, "{} packets, {:.6} s of the node's time", report.packets, took_ns as f64 / 1e9)?;
    if report.too_long > 0 {
        writeln!(text, "{} packets were longer than a frame can be and did not reach the node", report.too_long)?;
    }
    let width = report.ports.iter().map(|port| port.name.len()).max().unwrap_or(0).max("port".len());
    let columns = ["received", "octets", "sent", "octets"];
    let [received, received_octets, sent, sent_octets] = columns;
    writeln!(text, "\n{:width$}  {received:>10}  {received_octets:>14}  {sent:>10}  {sent_octets:>14}", "port")?;
    for port in &report.ports {
        let (received, sent) = (port.received, port.sent);
        writeln!(
            text,
            "{:width$}  {:>10}  {:>14}  {:>10}  {:>14}",
            port.name, received.frames, received.octets, sent.frames, sent.octets
        )?;
    }
    write_activity(text, report)?;
    write_drops(text, report)
}

fn write_activity(text: &mut String, report: &Report) -> std::fmt::Result {
    if !report.sids.is_empty() {
        writeln!(text)?;
    }
    for sid in &report.sids {
        writeln!(text, "SID {}: {} packets, {} octets", sid.sid, sid.processed.frames, sid.processed.octets)?;
    }
    if !report.groups.is_empty() {
        writeln!(text)?;
    }
    for group in &report.groups {
        writeln!(
            text,
            "group {}: {} data packets, {} copies; received {} ACKs, {} NAKs, {} CNPs; sent {} ACKs, {} NAKs, {} CNPs",
            group.id,
            group.counters.data_packets,
            group.counters.copies,
            group.counters.acks_received,
            group.counters.naks_received,
            group.counters.cnps_received,
            group.counters.acks_sent,
            group.counters.naks_sent,
            group.counters.cnps_sent
        )?;
    }
    Ok(())
}

fn write_drops(text: &mut String, report: &Report) -> std::fmt::Result {
    let of_port = report.ports.iter().flat_map(|port| {
        port.drops.iter().map(move |(reason, count)| format!("dropped, received at {}: {count} {reason}", port.name))
    });
    let own = report.own_drops.iter().map(|(reason, count)| format!("dropped, made by the node: {count} {reason}"));
    let lines: Vec<String> = of_port.chain(own).collect();
    if !lines.is_empty() {
        writeln!(text)?;
    }
    lines.iter().try_for_each(|line| writeln!(text, "{line}"))
}
