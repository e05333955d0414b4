//! A node with all functions, given frame after frame.
//!
//! An input is a script of up to eight steps for one of six nodes, which are used for many inputs. The target checks
//! of every sent frame that it is complete and that its ICRC is as valid as on arrival, and after every script that all
//! chunks were returned, that time advances, and that no table and no memory has grown. Ports may have classes, and
//! classes may be paused: their queues are drained at the end of the script.

mod check;
mod congestion;
mod headers;
mod ipv4;
mod notices;
mod packets;
mod plan;
mod repair;
mod script;
mod workers;
mod world;

use crate::choices::Choices;
use check::{Carried, carried};
use repair::{release_kept, request_damaged};
use script::Step;
use srdma_dataplane::DropReason;
use srdma_frame::{Element, Frame, PortId};
use srdma_group::GroupId;
use srdma_wire::Pfc;
use std::collections::BTreeMap;
pub use workers::WorkersTarget;
use world::{GROUPS, PORTS, Temper, World, neighbour_mac};

/// Steps of a script, at most.
const MAX_STEPS: usize = 8;

/// Executions after which the nodes are created again.
pub const LIFETIME: usize = 4096;

/// Most events that a script may cause: an edge repeats an eviction request that is not granted, at every backward
/// step.
const MAX_EVENTS: usize = 1000;

/// Octets that the nodes may come to hold over their life: receiver lists, kept under the octets that they were made
/// from, are at most 256 of a few kilobytes.
const MAX_GROWTH_OCTETS: i64 = 4 << 20;

/// The nodes under test.
#[derive(Debug)]
pub struct NodeTarget {
    worlds: [World; Temper::ALL.len()],
    executions: usize,
    grown_octets: i64,
    bench: Bench,
}

/// Buffers, kept for their memory, and what has been counted.
#[derive(Debug, Default)]
struct Bench {
    frames: Vec<Frame>,
    octets: Vec<u8>,
    leaving: Vec<u8>,
    frames_in: u64,
    frames_out: u64,
}

impl Default for NodeTarget {
    fn default() -> Self {
        let worlds = Temper::ALL.map(World::new);
        NodeTarget { worlds, executions: 0, grown_octets: 0, bench: Bench::default() }
    }
}

impl NodeTarget {
    /// Runs a script.
    pub fn run(&mut self, input: &[u8]) {
        if self.executions == LIFETIME {
            *self = Self { bench: std::mem::take(&mut self.bench), ..Self::default() };
        }
        self.executions += 1;
        let mut choices = Choices::new(input);
        let world = &mut self.worlds[choices.below(Temper::ALL.len())];
        let bench = &mut self.bench;
        let allocated = allocation_counter::measure(|| {
            for _ in 0..MAX_STEPS {
                if choices.is_empty() {
                    break;
                }
                step(&mut choices, world, bench);
            }
            if world.has_waiting() {
                world.release_waiting();
                drain(world, bench, Judge::Wholeness);
            }
            world.restore_neighbours();
            world.restore_congestion();
            world.restore_repair();
            release_kept(world, bench);
            assert!(world.has_only_kept_chunks(), "every chunk comes back");
        });
        self.grown_octets += allocated.bytes_current;
        assert!(self.grown_octets < MAX_GROWTH_OCTETS, "the nodes have grown by {} octets", self.grown_octets);
        assert!(world.node.groups().count() <= usize::from(GROUPS), "groups of the node");
        assert!(world.node.take_events().count() < MAX_EVENTS, "events of one script");
    }

    /// Frames that were given to the nodes, and frames that left them, so far.
    pub fn frames(&self) -> (u64, u64) {
        (self.bench.frames_in, self.bench.frames_out)
    }

    /// The nodes' counters in this life: reasons of drops, packets of each kind of SID, counters of the groups.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        let mut add = |name: String, count: u64| *counts.entry(name).or_default() += count;
        for world in &self.worlds {
            for reason in DropReason::ALL {
                let ports = (0..PORTS).filter_map(|port| world.node.port_counters(PortId(port)));
                let drops: u64 = ports.map(|counters| counters.drops.get(*reason)).sum();
                add(format!("drop {}", reason.name()), drops + world.node.own_drops().get(*reason));
            }
            for (_, behavior, traffic) in world.node.sids() {
                let name = format!("{behavior:?}");
                let name = name.split([' ', '(']).next().unwrap_or_default();
                add(format!("SID {name}"), traffic.frames);
            }
            world.congestion_counts().for_each(|(name, count)| add(format!("congestion {name}"), count));
            for group in 1..=GROUPS {
                let Some(group) = world.node.group_counters(GroupId(group.into())) else { continue };
                let all = [
                    ("data packets", group.data_packets),
                    ("copies", group.copies),
                    ("ACKs received", group.acks_received),
                    ("NAKs received", group.naks_received),
                    ("CNPs received", group.cnps_received),
                    ("ACKs sent", group.acks_sent),
                    ("NAKs sent", group.naks_sent),
                    ("CNPs sent", group.cnps_sent),
                ];
                all.into_iter().for_each(|(name, count)| add(format!("group {name}"), count));
            }
            for group in 1..=GROUPS {
                let counters = world.node.repair_counters(GroupId(group.into())).into_iter();
                let named = counters.flat_map(|counters| counters.iter());
                named.for_each(|(name, count)| add(format!("repair {name}"), count));
            }
        }
        counts
    }
}

fn step(choices: &mut Choices<'_>, world: &mut World, bench: &mut Bench) {
    let mut octets = std::mem::take(&mut bench.octets);
    match Step::choose(choices, world, &mut octets) {
        Step::Frame { port } => frame(world, bench, port, &octets),
        Step::Pass { ns } => pass(world, bench, ns),
        Step::Commit { group, change } => {
            world.commit(group, change);
            release_kept(world, bench);
        }
        Step::Rejoin { group } => {
            world.rejoin(group);
            release_kept(world, bench);
        }
        Step::RemoveNeighbour { port } => world.remove_neighbour(port),
        Step::RestoreNeighbours => world.restore_neighbours(),
        Step::Configured => {
            drain(world, bench, Judge::Wholeness);
        }
        Step::Pause { port, classes, quanta } => pause(world, bench, port, classes, quanta),
    }
    bench.octets = octets;
}

/// A frame arrives, where ports have classes a second one like it, which meets a queue: it must be counted somewhere,
/// and every chunk must be returned.
fn frame(world: &mut World, bench: &mut Bench, port: u16, octets: &[u8]) {
    let tagged = world.on_wire(port, octets);
    let (link, on_wire) = tagged.as_ref().map_or((port, octets), |(link, tagged)| (*link, tagged.as_slice()));
    let Some(frame) = Frame::from_octets(on_wire, &mut world.pool) else {
        return;
    };
    bench.frames.push(frame);
    if world.has_classes() {
        bench.frames.extend(Frame::from_octets(octets, &mut world.pool));
    }
    bench.frames_in += bench.frames.len() as u64;
    let counted = counted(world, port);
    let waiting = world.node.buffered_octets();
    let fragments = world.node.waiting_fragments();
    world.node.receive(world.now, PortId(link), &mut bench.frames, &mut world.pool);
    assert!(bench.frames.is_empty(), "receive leaves frames behind");
    let waits = world.node.buffered_octets() > waiting || world.node.waiting_fragments() > fragments;
    let came = carried(octets);
    let judge = if waiting > 0 { Judge::Wholeness } else { Judge::All { octets, came: came.as_ref() } };
    let left = drain(world, bench, judge);
    let is_control = octets.get(12..14) == Some(&[0x88, 0x08]);
    let is_known = left > 0 || waits || self::counted(world, port) > counted;
    assert!(is_known || is_control || port >= PORTS, "a frame vanished");
    pass(world, bench, 700);
}

/// Packets that a port has dropped and that the groups have consumed.
fn counted(world: &World, port: u16) -> u64 {
    let drops_of = |port: u16| -> u64 {
        let counters = world.node.port_counters(PortId(port));
        counters.map_or(0, |counters| DropReason::ALL.iter().map(|reason| counters.drops.get(*reason)).sum())
    };
    // A changed tag may be that of another port.
    let drops = if world.has_vlans() { (0..PORTS).map(drops_of).sum() } else { drops_of(port) };
    let groups = (1..=GROUPS).filter_map(|group| world.node.group_counters(GroupId(group.into())));
    let others = world.node.fast_cnp_counters().refusals + world.counted_by_repair();
    drops + others + groups.map(|group| group.acks_received + group.naks_received + group.cnps_received).sum::<u64>()
}

/// The neighbour at a port pauses classes, or resumes them.
fn pause(world: &mut World, bench: &mut Bench, port: u16, classes: u8, quanta: u16) {
    let mut pfc = Pfc::default();
    for (class, place) in pfc.quanta.iter_mut().enumerate() {
        *place = (classes >> class & 1 == 1).then_some(quanta);
    }
    let octets = pfc.frame(neighbour_mac(port));
    let Some(frame) = Frame::from_octets(&octets, &mut world.pool) else {
        return;
    };
    world.is_changed = true;
    bench.frames.push(frame);
    world.node.receive(world.now, PortId(port), &mut bench.frames, &mut world.pool);
    drain(world, bench, Judge::Wholeness);
}

/// Time passes.
fn pass(world: &mut World, bench: &mut Bench, ns: u64) {
    world.now = world.now.after_ns(ns);
    if world.is_due() {
        let judge = if world.has_waiting() { Judge::Wholeness } else { Judge::All { octets: &[], came: None } };
        world.node.tick(world.now, &mut world.pool);
        drain(world, bench, judge);
        request_damaged(world, bench);
    }
    let deadline = world.node.next_deadline();
    assert!(deadline.is_none_or(|deadline| deadline > world.now), "{deadline:?} is due at {:?} for ever", world.now);
}

/// Requirements on the frames that leave.
#[derive(Clone, Copy, Debug)]
enum Judge<'a> {
    /// Everything: the frame that arrived is known, and the queues were empty.
    All { octets: &'a [u8], came: Option<&'a Carried> },
    /// That they are whole: something that waited behind a pause may be among them.
    Wholeness,
}

/// Takes the queued frames and checks them; returns their number. Frames of paused classes stay queued.
fn drain(world: &mut World, bench: &mut Bench, judge: Judge<'_>) -> usize {
    let mut left = 0;
    for port in 0..PORTS {
        let trims = world.node.egress_config(PortId(port)).is_some_and(|egress| egress.trim_dscp.is_some());
        while let Some(frame) = world.node.dequeue(world.now, PortId(port), &mut world.pool) {
            bench.leaving.clear();
            frame.pieces(&world.pool).for_each(|piece| bench.leaving.extend(piece));
            frame.release(&mut world.pool);
            left += 1;
            let port = world.off_wire(port, &mut bench.leaving);
            if bench.leaving.get(12..14) == Some(&[0x88, 0x08]) {
                check::is_pause(port, &bench.leaving);
                continue;
            }
            let Judge::All { octets, came } = judge else {
                check::is_whole(port, &bench.leaving, &bench.leaving);
                continue;
            };
            check::is_whole(port, &bench.leaving, octets);
            if let Some(leaves) = carried(&bench.leaving) {
                // Data of a node that repairs may have come with an earlier frame, with a bad ICRC, too (D159).
                if !world.repairs() || leaves.is_response() {
                    check::is_as_good(came, &leaves, world.temper == Temper::Recomputing, trims);
                }
                if (bench.frames_out + left).is_multiple_of(64) {
                    check::agrees_with_the_reference(&bench.leaving, &leaves);
                }
            }
        }
    }
    bench.frames_out += left;
    if world.has_waiting() {
        world.check_queues();
    } else if !world.repairs() {
        assert_eq!(world.pool.in_use(), 0, "every chunk comes back");
    }
    left as usize
}
