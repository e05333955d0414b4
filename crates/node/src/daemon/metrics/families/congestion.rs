//! The families of traffic classes, pauses, traces, Fast CNP and backpressure.

use super::{Labels, Out, frames, seconds};
use crate::daemon::{BackpressureSnapshot, ClassSnapshot, PfcSnapshot, PortSnapshot, Snapshot};
use prometheus_client::registry::Unit;
use std::fmt;

/// The classes of all ports, each with its port's name and its own number.
fn all(ports: &[PortSnapshot]) -> Vec<(&str, String, &ClassSnapshot)> {
    let of_port = |port: &'_ PortSnapshot| port.classes.iter().map(|class| class.class.to_string()).collect::<Vec<_>>();
    let with_names = ports.iter().flat_map(|port| {
        port.classes.iter().zip(of_port(port)).map(|(class, number)| (port.name.as_str(), number, class))
    });
    with_names.collect()
}

/// One value for each class.
fn values<'s>(
    classes: &'s [(&'s str, String, &'s ClassSnapshot)],
    value: fn(&ClassSnapshot) -> u64,
) -> impl Iterator<Item = (Labels<'s, 2>, u64)> {
    classes.iter().map(move |(port, number, class)| ([("port", *port), ("class", number.as_str())], value(class)))
}

/// A value of a label, and what is counted for it.
type Kind = (&'static str, fn(&PfcSnapshot) -> u64);

/// One value for each class and kind.
fn kinds<'s, const N: usize>(
    classes: &'s [(&'s str, String, &'s ClassSnapshot)],
    label: &'static str,
    kinds: [Kind; N],
) -> impl Iterator<Item = (Labels<'s, 3>, u64)> {
    classes.iter().flat_map(move |(port, number, class)| {
        kinds.map(|(kind, value)| ([("port", *port), ("class", number.as_str()), (label, kind)], value(&class.pfc)))
    })
}

pub(super) fn classes(out: &mut Out<'_>, ports: &[PortSnapshot]) -> fmt::Result {
    let classes = all(ports);
    let waiting = values(&classes, |class| class.waiting_octets);
    out.gauges("srdma_class_waiting", "Octets in the queue of the traffic class", Some(Unit::Bytes), waiting)?;
    let peak = values(&classes, |class| class.peak_octets);
    out.gauges("srdma_class_peak", "The most octets that were ever in it", Some(Unit::Bytes), peak)?;
    let sent = classes.iter().map(|(port, number, class)| ([("port", *port), ("class", number.as_str())], class.sent));
    out.traffic("srdma_class_sent", "Frames that left in it", sent)?;
    let help = "Frames that were marked CE on entering it";
    out.counters("srdma_class_marked", help, Some(frames()), values(&classes, |class| class.marks))?;
    let help = "Frames that found no room in it and were cut behind their headers";
    out.counters("srdma_class_trimmed", help, Some(frames()), values(&classes, |class| class.trimmed))?;
    let drops = classes.iter().flat_map(|(port, number, class)| {
        let labels = |reason| [("port", *port), ("class", number.as_str()), ("reason", reason)];
        class.drops.iter().map(move |(reason, count)| (labels(reason.as_str()), *count))
    });
    out.counters("srdma_class_dropped", "Frames of it that were dropped", Some(frames()), drops)
}

pub(super) fn pauses(out: &mut Out<'_>, ports: &[PortSnapshot]) -> fmt::Result {
    let classes = all(ports);
    let sent = kinds(&classes, "kind", [("pause", |pfc| pfc.pauses_sent), ("resume", |pfc| pfc.resumes_sent)]);
    out.counters("srdma_pfc_sent", "Pauses and resumes sent to the neighbour", None, sent)?;
    let received =
        kinds(&classes, "kind", [("pause", |pfc| pfc.pauses_received), ("resume", |pfc| pfc.resumes_received)]);
    out.counters("srdma_pfc_received", "Pauses and resumes received from the neighbour", None, received)?;
    let ignored = values(&classes, |class| class.pfc.pauses_ignored);
    out.counters("srdma_pfc_ignored", "Received pauses that were ignored during a storm", None, ignored)?;
    let directions: [Kind; 2] = [("rx", |pfc| u64::from(pfc.is_paused)), ("tx", |pfc| u64::from(pfc.is_pausing))];
    let now = kinds(&classes, "direction", directions);
    out.gauges("srdma_pfc_paused", "Whether the class is paused: 1 or 0", None, now)?;
    let paused = values(&classes, |class| class.pfc.paused_ns).map(|(labels, ns)| (labels, seconds(ns)));
    out.counters("srdma_pfc_paused", "Time paused by received pauses", Some(Unit::Seconds), paused)?;
    let storms = values(&classes, |class| class.pfc.storms);
    out.counters("srdma_pfc_storms", "PFC storms that the watchdog has detected", None, storms)
}

pub(super) fn node(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let traces = snapshot.traces.iter().map(|(outcome, count)| ([("outcome", outcome.as_str())], *count));
    out.counters("srdma_ioam_traces", "IOAM traces by outcome", None, traces)?;
    let counters = snapshot.fast_cnp.iter().flatten();
    let events = counters.map(|(event, count)| ([("event", event.as_str())], *count));
    out.counters("srdma_fast_cnp_events", "Events of Fast CNP; absent while it is off", None, events)?;
    let backpressure = snapshot.backpressure.iter();
    let events =
        backpressure.flat_map(|known| &known.counters).map(|(event, count)| ([("event", event.as_str())], *count));
    let help = "Events of backpressure across a WAN; absent while it is off";
    out.counters("srdma_backpressure_events", help, None, events)?;
    let pauses = |of: &BackpressureSnapshot| [("rx", of.received.len() as u64), ("tx", of.sent.len() as u64)];
    let pauses = snapshot.backpressure.iter().flat_map(pauses);
    let pauses = pauses.map(|(direction, count)| ([("direction", direction)], count));
    let help = "Pauses in effect: received from congested nodes, sent to ingress PEs";
    out.gauges("srdma_backpressure_pauses", help, None, pauses)
}
