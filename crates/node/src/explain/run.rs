//! The run: captures through an observed node.

use super::captures::{Capture, Observations, Read, Seen, whole};
use super::error::ExplainError;
use super::group::{GroupAnalysis, Interest};
use super::packet::{ObservedFrame, Payload};
use super::report::{Beginning, Explanation, PortObservation};
use crate::configuration::Configuration;
use crate::process::Progress;
use crate::process::replay::{Replay, Sink};
use srdma_dataplane::{Event, Node};
use srdma_frame::PortId;
use srdma_group::{GroupEntry, Parent};
use srdma_wire::Instant;
use std::convert::Infallible;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Selection of what to explain. Times count from the first packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// This group alone.
    pub group: Option<u32>,
    /// In the timeline, of the branches this one alone.
    pub branch: Option<Ipv6Addr>,
    /// The timeline from here on.
    pub from: Option<Duration>,
    /// Nothing that happened later.
    pub to: Option<Duration>,
    /// All entries, nothing summed up.
    pub all: bool,
}

/// Sink for the frames that the replayed node sends.
struct Nowhere;

impl Sink for Nowhere {
    type Error = Infallible;

    fn write<'p>(&mut self, _: PortId, _: Instant, _: impl Iterator<Item = &'p [u8]>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// A group's first data may be lost before the first node: with no more than so many missing, the captures have its
/// beginning.
const MOST_LOST_FIRST: i32 = 4;

/// Explains a node's groups from captures of its ports. The captures are read twice.
///
/// # Errors
///
/// When a capture cannot be read, the selection is empty, or no packet belongs to a group of the configuration.
pub fn explain(
    configuration: &Configuration,
    captures: &[Capture],
    wanted: &Wanted,
    progress: &mut dyn FnMut(Progress),
) -> Result<Explanation, ExplainError> {
    let entries = selected_entries(configuration, wanted)?;
    let mut observations = Observations::read(captures, &configuration.spec.node, &entries, progress)?;
    let (Some(first), Some(last)) = (observations.first, observations.last) else {
        return Err(ExplainError::NoPackets);
    };
    check_ours(&observations, &entries)?;
    check_here(&observations, configuration)?;
    let beginnings: Vec<Beginning> =
        entries.iter().map(|entry| beginning(configuration, &observations, entry)).collect();
    let node = observed_node(configuration, &entries, &beginnings)?;
    let compares = |entry: &GroupEntry| observations.with_responses.contains(&entry.proxy);
    let groups = entries.iter().zip(beginnings);
    let interest = Interest { branch: wanted.branch, from: wanted.from.map(|from| first + from), all: wanted.all };
    let groups = groups.map(|(entry, begins)| GroupAnalysis::new(entry.clone(), begins, interest, compares(entry)));
    let mut run = Run { replay: Replay::new(node, Nowhere), groups: groups.collect(), now: first };
    let mut read = Read::new(captures)?;
    let mut without_port = 0;
    let end = wanted.to.map_or(last, |to| last.min(first + to));
    while let Some((index, packet)) = read.next(progress)? {
        let time = Instant::from_ns(packet.time_ns);
        if time > end {
            break;
        }
        let frame = ObservedFrame::of(&packet.octets);
        match observations.place(index, captures[index].port, &configuration.spec.node, frame.as_ref()) {
            Some(Seen::In(port)) => run.come_in(port, time, &whole(&packet)),
            Some(Seen::Out(_)) => run.go_out(time, frame),
            None => without_port += 1,
        }
    }
    run.end(end);
    let Run { mut replay, groups, .. } = run;
    let report = replay.report();
    let ports = configuration.spec.node.ports.iter().zip(0..).zip(report.ports).map(|((port, id), counted)| {
        let [received, sent] = observations.seen.get(&PortId(id)).copied().unwrap_or_default();
        PortObservation { name: port.name.clone(), received, sent, drops: counted.drops }
    });
    let ports: Vec<PortObservation> = ports.collect();
    let node = replay.node();
    let groups = groups.into_iter().filter_map(|group| {
        let sees_copies = observations.copies.contains(&group.entry().proxy);
        let acks = node.acknowledgements(group.entry().id)?;
        Some(group.finish(acks, sees_copies))
    });
    Ok(Explanation {
        packets: observations.packets,
        cut_short: observations.cut_short,
        without_port,
        first_time_ns: first.as_ns(),
        end_time_ns: end.as_ns(),
        ports,
        groups: groups.collect(),
    })
}

/// A replay and the analyses of its groups.
struct Run {
    replay: Replay<Nowhere>,
    groups: Vec<GroupAnalysis>,
    now: Instant,
}

impl Run {
    fn come_in(&mut self, port: PortId, time: Instant, octets: &[u8]) {
        self.now = self.now.max(time);
        let Ok(()) = self.replay.packet(port, time, octets);
        self.listen();
    }

    fn go_out(&mut self, time: Instant, frame: Option<ObservedFrame>) {
        self.now = self.now.max(time);
        let Ok(()) = self.replay.run_until(self.now);
        self.listen();
        let Some(ObservedFrame { addresses: Some((source, destination)), payload: Some(payload), .. }) = frame else {
            return;
        };
        let now = self.now;
        for group in &mut self.groups {
            match payload {
                Payload::Response(response) if goes_up(group.entry(), source, destination) => {
                    group.see_response(now, response);
                }
                Payload::Request(psn) if group.entry().proxy == source => group.see_copy(now, destination, psn),
                Payload::Response(_) | Payload::Request(_) | Payload::Other => {}
            }
        }
    }

    fn end(&mut self, end: Instant) {
        self.now = self.now.max(end);
        let Ok(()) = self.replay.run_until(end);
        self.listen();
    }

    /// Takes the entries of the node's journal.
    fn listen(&mut self) {
        let node = self.replay.node();
        let (entries, _) = node.take_journal();
        for entry in entries {
            // The journal begins before the first packet does.
            let entry = srdma_dataplane::JournalEntry {
                time: if entry.time == Instant::ZERO { self.now } else { entry.time },
                ..entry
            };
            let group = self.groups.iter_mut().find(|group| group.entry().id == entry.group);
            group.into_iter().for_each(|group| group.apply(entry));
        }
        for event in node.take_events() {
            let Event::EvictionRequested { group: id, receiver, cause } = event;
            let group = self.groups.iter_mut().find(|group| group.entry().id == id);
            group.into_iter().for_each(|group| group.request_eviction(self.now, receiver, cause));
        }
        for group in &mut self.groups {
            let acks = node.acknowledgements(group.entry().id);
            let minimum = acks.filter(|acks| acks.unknown_branches() == 0).and_then(|acks| acks.minimum_psn());
            group.settle(self.now, minimum);
        }
    }
}

/// Whether a response between these addresses is the node's own to its parent or the source (D12).
pub(super) fn goes_up(entry: &GroupEntry, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
    match entry.parent {
        Parent::Source(host) => source == entry.proxy && destination == host.address,
        Parent::Node { .. } => destination == entry.proxy,
    }
}

/// A capture of this group from other links would look like silence of this node.
fn check_here(observations: &Observations, configuration: &Configuration) -> Result<(), ExplainError> {
    if observations.ports.iter().any(Option::is_some) {
        return Ok(());
    }
    let ports: Vec<String> =
        configuration.spec.node.ports.iter().map(|port| format!("{} {}", port.name, port.mac)).collect();
    Err(ExplainError::NotHere { packets: observations.packets, ports: ports.join(", ") })
}

fn selected_entries(configuration: &Configuration, wanted: &Wanted) -> Result<Vec<GroupEntry>, ExplainError> {
    let entries: Vec<&GroupEntry> = configuration.spec.entries.groups.values().collect();
    if entries.is_empty() {
        return Err(ExplainError::NoGroups);
    }
    let is_wanted = |entry: &&&GroupEntry| wanted.group.is_none_or(|group| entry.id.0 == group);
    let chosen: Vec<GroupEntry> = entries.iter().filter(is_wanted).map(|entry| (*entry).clone()).collect();
    if let (Some(group), true) = (wanted.group, chosen.is_empty()) {
        return Err(ExplainError::UnknownGroup {
            wanted: group,
            found: entries.iter().map(|entry| entry.id.0).collect(),
        });
    }
    let branches: Vec<Ipv6Addr> =
        chosen.iter().flat_map(|entry| &entry.branches).map(|branch| branch.responder).collect();
    match wanted.branch {
        Some(branch) if !branches.contains(&branch) => {
            Err(ExplainError::UnknownBranch { wanted: branch, found: branches })
        }
        Some(_) | None => Ok(chosen),
    }
}

/// That some packet is to or from a Proxy Address.
fn check_ours(observations: &Observations, entries: &[GroupEntry]) -> Result<(), ExplainError> {
    /// More pairs are only counted.
    const MOST: usize = 6;
    let ours = |address: &Ipv6Addr| entries.iter().any(|entry| entry.proxy == *address);
    if observations.pairs.keys().any(|(source, destination)| ours(source) || ours(destination)) {
        return Ok(());
    }
    let groups = entries.iter().map(|entry| format!("group {}: Proxy Address {}", entry.id.0, entry.proxy));
    let mut pairs: Vec<_> = observations.pairs.iter().collect();
    pairs.sort_by_key(|(pair, count)| (std::cmp::Reverse(**count), **pair));
    let packets = |count: u64| if count == 1 { "1 packet".to_owned() } else { format!("{count} packets") };
    let mut seen: Vec<String> = pairs
        .iter()
        .take(MOST)
        .map(|((source, destination), count)| format!("{source} > {destination} ({})", packets(**count)))
        .collect();
    if pairs.len() > MOST {
        seen.push(format!("{} further pairs of addresses", pairs.len() - MOST));
    }
    if seen.is_empty() {
        seen.push(format!("{} without IPv6", packets(observations.packets)));
    }
    let advice = if observations.ports.iter().all(Option::is_none) {
        "; none has a MAC address of this node's ports either: is it another node's capture, or configuration?"
    } else {
        "; the MAC addresses are this node's: is the configuration of another group, or the capture of another time?"
    };
    Err(ExplainError::NotOurs { groups: groups.collect::<Vec<_>>().join(", "), seen: seen.join(", "), advice })
}

fn beginning(configuration: &Configuration, observations: &Observations, entry: &GroupEntry) -> Beginning {
    match observations.first_psn.get(&entry.proxy) {
        _ if configuration.spec.node.restarted => Beginning::Restarted,
        None => Beginning::NoData,
        Some(psn) if (0..=MOST_LOST_FIRST).contains(&psn.distance_from(entry.initial_psn)) => Beginning::FirstPsn,
        Some(_) => Beginning::MidFlow,
    }
}

/// The node of the configuration, observed. A group that had begun before the captures has no state at the node yet.
fn observed_node(
    configuration: &Configuration,
    entries: &[GroupEntry],
    beginnings: &[Beginning],
) -> Result<Node, ExplainError> {
    let mut spec = configuration.spec.clone();
    for (entry, _) in entries.iter().zip(beginnings).filter(|(_, begins)| **begins == Beginning::MidFlow) {
        if let Some(known) = spec.entries.groups.get_mut(&entry.id.0) {
            known.renewed = known.renewed.max(1);
        }
    }
    let mut node = spec.build()?;
    node.observe(true);
    Ok(node)
}
