//! Words that are no longer used, as the last table of docs/glossary.md lists them. Most of them are right elsewhere (a
//! part, a line or a search may be just that), so that each is rejected only in some kinds of names, in some places.

use super::{Entry, Kind};

pub(super) const TEXT: &[Kind] = &[Kind::Text];

/// Everything but text.
pub(super) const NAMES: &[Kind] = &[Kind::File, Kind::Type, Kind::Function, Kind::Name, Kind::Flag, Kind::Key];

pub(super) const ALL: &[Kind] =
    &[Kind::File, Kind::Type, Kind::Function, Kind::Name, Kind::Flag, Kind::Key, Kind::Text];

/// Names that others see or that structure the code; local variables may still be called so.
const PUBLIC: &[Kind] = &[Kind::File, Kind::Type, Kind::Function, Kind::Flag, Kind::Key];

const FILES_AND_TYPES: &[Kind] = &[Kind::File, Kind::Type];

const EVERYWHERE: &[&str] = &[""];
const CONTROLLER: &[&str] =
    &["crates/api/", "crates/controller", "crates/agent/", "crates/node-agent/", "crates/node/"];
/// Without the controller's HTTP server, where axum has types of this name.
const NOT_HTTP: &[&str] = &["crates/api/", "crates/controller-core/", "crates/agent/", "crates/node/"];
/// Without the model of the commit protocol, whose nodes answer orders.
const AGGREGATION: &[&str] = &[
    "crates/aggregation/",
    "crates/model-check/src/bounds.rs",
    "crates/model-check/src/hosts.rs",
    "crates/model-check/src/m",
    "crates/model-check/src/queue.rs",
    "crates/model-check/src/record.rs",
    "crates/model-check/src/s",
    "crates/model-check/tests/checks/aggregation.rs",
];
const DATAPLANE: &[&str] = &["crates/dataplane/"];
const CHAOS: &[&str] = &["crates/chaos/", "crates/sim/", "crates/cli/src/chaos"];
const FABRIC_SIM: &[&str] = &["crates/fabric-sim/", "crates/recording/", "scenarios/"];
const SIM: &[&str] = &["crates/sim/", "crates/chaos/", "crates/fabric-sim/", "crates/recording/"];
const EXPLAIN: &[&str] = &["crates/node/src/explain/", "crates/cli/src/explain"];

const fn entry(
    words: &'static [&'static str],
    kinds: &'static [Kind],
    places: &'static [&'static str],
    instead: &'static str,
) -> Entry {
    Entry { words, kinds, places, instead }
}

/// Refused.
pub(super) const TABLE: &[Entry] = &[
    // Sentences without a subject.
    entry(
        &["whoever", "somebody", "nobody", "what is told", "who is asked", "that which"],
        TEXT,
        EVERYWHERE,
        "the subject's name: the caller, a peer, no node",
    ),
    entry(&["what is held against"], TEXT, EVERYWHERE, "CA bundle"),
    entry(&["what outlives the controller"], TEXT, EVERYWHERE, "state store"),
    entry(&["whom to believe"], TEXT, EVERYWHERE, "bearer token, or CA bundle"),
    entry(&["is said again"], TEXT, EVERYWHERE, "retransmission interval"),
    entry(&["put into force", "puts into force"], TEXT, EVERYWHERE, "applied"),
    entry(&["stand in for one another", "stands in for another"], TEXT, EVERYWHERE, "high availability, standby"),
    entry(&["go round", "goes round"], TEXT, EVERYWHERE, "reroute"),
    // Controller, its agents at nodes, its clients.
    entry(&["durably", "restless"], ALL, EVERYWHERE, "transaction"),
    entry(&["passage"], ALL, EVERYWHERE, "source session; sending, draining, paused, ended"),
    entry(&["wish", "wishes"], ALL, EVERYWHERE, "eviction request"),
    entry(&["deed", "deeds"], ALL, EVERYWHERE, "recovery snapshot"),
    entry(&["news", "happenings"], NAMES, EVERYWHERE, "event kind"),
    entry(&["courier", "couriers", "ledger"], ALL, EVERYWHERE, "controller client, group table"),
    entry(
        &["greet", "greeting", "weigh", "weighed", "obey", "is felt", "foreseen"],
        NAMES,
        CONTROLLER,
        "register, plan, apply",
    ),
    entry(&["doorkeeper"], ALL, EVERYWHERE, "connection limiter"),
    entry(&["call"], FILES_AND_TYPES, CONTROLLER, "controller client"),
    entry(&["door", "pass"], FILES_AND_TYPES, CONTROLLER, "connection limiter, permit"),
    entry(
        &["shell", "look", "keep", "keeping"],
        FILES_AND_TYPES,
        &["crates/controller"],
        "service, transaction, read, write",
    ),
    entry(&["node part", "node parts"], ALL, EVERYWHERE, "group entry"),
    entry(&["part"], FILES_AND_TYPES, CONTROLLER, "group entry"),
    entry(&["parts"], FILES_AND_TYPES, NOT_HTTP, "group entry"),
    // The reverse path and the node.
    entry(
        &["answer", "say", "speak", "statement", "tell", "told", "untold", "heard", "served"],
        NAMES,
        AGGREGATION,
        "syndrome, response; received, forwarded, retransmitted",
    ),
    entry(&["point", "points"], NAMES, AGGREGATION, "expected PSN"),
    entry(&["m"], &[Kind::Function, Kind::Key], AGGREGATION, "minimum PSN"),
    entry(&["fate", "meet", "hinder", "stranger"], NAMES, DATAPLANE, "verdict, dispatch, egress check, rewrite"),
    entry(
        &["told", "holds", "calm", "line", "press", "ease"],
        FILES_AND_TYPES,
        DATAPLANE,
        "pause sent, pause received",
    ),
    entry(&["obeyed", "told"], &[Kind::Key], &["crates/", "dist/", "docs/"], "direction=\"rx\" or \"tx\""),
    entry(&["notification"], &[Kind::File], DATAPLANE, "backpressure"),
    entry(&["lent"], ALL, EVERYWHERE, "kernel-owned"),
    entry(&["story", "census", "sighting", "said"], NAMES, EXPLAIN, "event, timeline, observation, response"),
    // Chaos tests and model checking.
    entry(
        &["judge", "dice", "agenda", "whisper", "complaint", "complaints"],
        NAMES,
        CHAOS,
        "violation, checker, RNG, event queue, replay token",
    ),
    entry(&["line"], &[Kind::File, Kind::Type, Kind::Flag, Kind::Key], CHAOS, "replay token"),
    // A link may be cut, which is the name of an event in replay tokens.
    entry(
        &["cut"],
        &[Kind::File, Kind::Function, Kind::Name, Kind::Flag, Kind::Key],
        CHAOS,
        "link down, shrunk schedule",
    ),
    // The simulator of fabrics, and captures that are explained.
    // The parser of scenario files has a field for the former key, to refuse it by name.
    entry(&["arm", "arms"], PUBLIC, FABRIC_SIM, "variant"),
    entry(&["spectator", "shown", "scene", "moment", "sparing"], FILES_AND_TYPES, SIM, "observer, recorder, snapshot"),
    entry(
        &["way", "trouble", "station", "carriage", "intake", "travelling", "tap"],
        FILES_AND_TYPES,
        SIM,
        "direction, link faults, element, message operation, receive stream, frames in flight, capture",
    ),
    entry(&["about", "heard"], FILES_AND_TYPES, &["crates/steering/"], "subject, signal effect"),
    entry(&["twin", "twins"], ALL, EVERYWHERE, "control run"),
    entry(&["part", "parts", "means"], FILES_AND_TYPES, FABRIC_SIM, "rank, context"),
    entry(&["narrow", "wanting"], NAMES, FABRIC_SIM, "max-min fair allocation, demand, link"),
    // Slices and byte arrays are filled by the standard library.
    entry(&["fill", "pipe"], FILES_AND_TYPES, FABRIC_SIM, "max-min fair allocation, demand, link"),
    entry(&["baton", "calming"], ALL, EVERYWHERE, "source session; sending, draining, paused, ended"),
    entry(
        &["gate"],
        FILES_AND_TYPES,
        &["crates/host/", "crates/cli/", "crates/session/", "crates/api/"],
        "source session",
    ),
    // The random stream of a seed is called so.
    entry(&["storm", "storms"], &[Kind::File, Kind::Type, Kind::Function, Kind::Flag], CHAOS, "chaos test"),
    entry(&["search", "searches"], FILES_AND_TYPES, AGGREGATION, "model checking"),
    entry(&["happening"], NAMES, EVERYWHERE, "event"),
    entry(&["obeyed"], NAMES, CONTROLLER, "register, plan, apply"),
    entry(&["taken"], FILES_AND_TYPES, CONTROLLER, "applied"),
];
