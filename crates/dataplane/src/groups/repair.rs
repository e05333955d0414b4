//! Repair of losses by this node (D150): each group's machine with the packets that it keeps, and the branches that
//! wait for room at their port.

use super::{Data, GroupState, Groups};
use crate::drop::DropReason;
use crate::headers::{IPV6, Place, ipv6};
use crate::multicast::{check_icrc, data_packet};
use srdma_aggregation::{Acknowledgements, BranchIndex, Origin};
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::{GroupEntry, NodeRole};
use srdma_repair::{Arrival, BranchKind, Effects, Placement, Repair, RepairRules, Request, Sending};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, NextHeader};
use std::collections::VecDeque;

/// A data packet in the retransmission buffer: as it came, but for the outer headers that End.MT has removed and for
/// hop limits. It shares its chunks with the copies in the queues.
#[derive(Debug)]
pub(crate) struct StoredPacket {
    pub(crate) frame: Frame,
    /// Its ICRC has been verified (D159).
    pub(crate) is_verified: bool,
}

/// The repair of a group at this node.
pub(crate) type GroupRepair = Repair<StoredPacket>;

/// Effects of events on groups that the node has still to act on.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) effects: Effects<StoredPacket>,
    feeds: Feeds,
}

/// Branches that have packets to be sent, by port. They are sent as frames leave the port's queue, so that what is
/// taken back does not lie in the queue (D151).
#[derive(Debug, Default)]
struct Feeds(Vec<Feed>);

#[derive(Debug, Default)]
struct Feed {
    waiting: VecDeque<(u32, BranchIndex)>,
    /// Frames that have left since the last packet of a buffer was sent.
    departures: u8,
}

/// Frames in the queue of a port up to which packets of buffers are added at once.
const SHORT_QUEUE_FRAMES: u64 = 2;
/// In a longer queue, one packet of a buffer for so many frames that leave: repair gets its share and no more.
const DEPARTURES_PER_PACKET: u8 = 2;

impl Pending {
    /// Whether there is anything to act on.
    #[inline]
    pub(crate) fn has_effects(&self) -> bool {
        let Effects { requests, ready, released } = &self.effects;
        !(requests.is_empty() && ready.is_empty() && released.is_empty())
    }

    /// A branch waits for room at a port.
    pub(crate) fn wait(&mut self, port: PortId, group: u32, branch: BranchIndex) {
        if port.index() >= self.feeds.0.len() {
            self.feeds.0.resize_with(port.index() + 1, Feed::default);
        }
        let waiting = &mut self.feeds.0[port.index()].waiting;
        if !waiting.contains(&(group, branch)) {
            waiting.push_back((group, branch));
        }
    }

    /// Whether branches wait for room at a port.
    #[inline]
    pub(crate) fn is_awaited(&self, port: PortId) -> bool {
        self.feeds.0.get(port.index()).is_some_and(|feed| !feed.waiting.is_empty())
    }

    /// A frame has left the port.
    pub(crate) fn departed(&mut self, port: PortId) {
        if let Some(feed) = self.feeds.0.get_mut(port.index()) {
            feed.departures = feed.departures.saturating_add(1);
        }
    }

    /// The branch whose turn it is, if the port has room for a packet of a buffer.
    pub(crate) fn take_turn(&mut self, port: PortId, waiting_frames: u64) -> Option<(u32, BranchIndex)> {
        let feed = self.feeds.0.get_mut(port.index())?;
        if waiting_frames >= SHORT_QUEUE_FRAMES && feed.departures < DEPARTURES_PER_PACKET {
            return None;
        }
        feed.departures = 0;
        feed.waiting.pop_front()
    }
}

impl Groups {
    /// A data packet has come, and the aggregation has noted it; `None` where the node does not repair
    /// the group, and for a packet that is longer than its path MTU allows.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, group: u32, data: Data, chunks: usize) -> Option<Arrival> {
        let state = self.slots[group as usize].as_mut()?;
        if state.buffer_share.is_none_or(|share| chunks > usize::from(share.chunks_per_packet)) {
            return None;
        }
        Some(state.repair.as_mut()?.arrive(now, data.psn(), data.ack_request(), &state.acks))
    }

    /// Whether a branch is sent a packet as it arrives.
    pub(crate) fn wants(&self, group: u32, arrival: &Arrival, branch: BranchIndex) -> bool {
        let state = self.get(group);
        let wants = |state: &GroupState| Some(state.repair.as_ref()?.wants(arrival, branch, &state.acks));
        state.and_then(wants).unwrap_or(true)
    }

    /// Keeps a packet that was sent to the branches that want it. Returns whether it was lost for lack of room.
    #[inline]
    pub(crate) fn keep(&mut self, now: Instant, group: u32, arrival: Arrival, frame: Frame) -> bool {
        let packet = StoredPacket { frame, is_verified: false };
        let effects = &mut self.pending.effects;
        let Some(GroupState { repair: Some(repair), acks, .. }) = self.slots[group as usize].as_mut() else {
            effects.released.push(packet);
            return false;
        };
        let before = repair.next_deadline();
        let is_counted = repair.count_again(now, &arrival, acks);
        let placement = repair.store(now, arrival, packet, acks, effects);
        if is_counted || repair.next_deadline() != before {
            self.rearm(group);
        }
        placement == Placement::NoRoom && arrival.is_ahead()
    }

    /// Takes all packets out of the buffers.
    pub(crate) fn drain_kept(&mut self) {
        let repairs = self.slots.iter_mut().flatten().filter_map(|state| state.repair.as_mut());
        self.pending.effects.released.extend(repairs.flat_map(|repair| repair.drain()));
    }

    /// A child requests data that it lacks (D153).
    pub(crate) fn requested(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        request: Request,
    ) -> Result<(), DropReason> {
        let state = self.slots[group as usize].as_mut().ok_or(DropReason::UnknownGroup)?;
        let repair = state.repair.as_mut().ok_or(DropReason::ReservedSyndrome)?;
        let is_accepted = repair.requested(now, branch, request, &state.acks, &mut self.pending.effects);
        self.rearm(group);
        if !is_accepted {
            return Err(DropReason::RepairRequestRefused);
        }
        self.journal_requested(now, group, branch, request);
        Ok(())
    }

    /// The next packet of the buffer for a branch.
    pub(crate) fn poll(&mut self, now: Instant, group: u32, branch: BranchIndex) -> Option<Sending> {
        let state = self.slots.get_mut(group as usize)?.as_mut()?;
        let sending = state.repair.as_mut()?.poll(now, branch, &mut state.acks);
        self.rearm(group);
        if let Some(sending) = sending {
            self.journal_sending(now, group, branch, sending);
        }
        sending
    }

    /// A packet of the buffer, verified if it is to be sent a second time; a damaged one is discarded (D159).
    pub(crate) fn verified(
        &mut self,
        now: Instant,
        group: u32,
        sending: Sending,
        pool: &Pool,
    ) -> Option<&StoredPacket> {
        let state = self.slots.get_mut(group as usize)?.as_mut()?;
        let stored_as = state.stored_as();
        let repair = state.repair.as_mut()?;
        let stored = repair.packet_mut(sending.psn)?;
        if sending.is_again && !stored.is_verified {
            let is_good = match stored_packet(&stored.frame, stored_as, pool) {
                Some((_, packet)) => check_icrc(&packet, &stored.frame, pool).is_ok(),
                None => false,
            };
            stored.is_verified = is_good;
            if !is_good {
                repair.discard(now, sending.psn, &mut self.pending.effects);
                self.rearm(group);
                return None;
            }
        }
        self.get(group)?.repair.as_ref()?.packet(sending.psn)
    }
}

/// How packets lie in a retransmission buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredAs {
    /// As the source sent them: at an edge and at the headend.
    Inner,
    /// In their outer headers, as the nodes below get them.
    Encapsulated,
}

impl GroupState {
    /// How this node stores the group's packets.
    pub(crate) fn stored_as(&self) -> StoredAs {
        match self.entry.role {
            NodeRole::Edge => StoredAs::Inner,
            NodeRole::Transit | NodeRole::Bud if self.entry.headend.is_some() => StoredAs::Inner,
            NodeRole::Transit | NodeRole::Bud => StoredAs::Encapsulated,
        }
    }
}

/// The data packet in a stored frame, with its offset.
pub(crate) fn stored_packet<'p>(frame: &Frame, stored_as: StoredAs, pool: &'p Pool) -> Option<(usize, Packet<'p>)> {
    let head = frame.head(pool);
    let offset = match stored_as {
        StoredAs::Inner => IPV6,
        StoredAs::Encapsulated => behind_outer(head)?,
    };
    Some((offset, data_packet(head.get(offset..)?, frame.len() - offset).ok()?))
}

/// Where the inner packet begins behind the outer headers.
pub(crate) fn behind_outer(head: &[u8]) -> Option<usize> {
    let mut at = Place::first(ipv6(head).ok()?).behind_options(head).ok()?;
    if at.header == NextHeader::ROUTING {
        at = at.behind_routing_header(head).and_then(|at| at.behind_options(head)).ok()?;
    }
    (at.header == NextHeader::IPV6).then_some(at.offset)
}

/// The repair of a new entry: `None` if the node does not repair.
pub(super) fn repair_of(entry: &GroupEntry, origins: &[Origin]) -> Option<Box<GroupRepair>> {
    let rules = rules_of(entry)?;
    Some(Box::new(Repair::new(rules, &branches_of(entry, origins))))
}

/// The repair in the next epoch. `has_memory`: there is room for its buffer (D162).
pub(super) fn succeeding_repair(
    before: Option<Box<GroupRepair>>,
    entry: &GroupEntry,
    has_memory: bool,
    origins: &[Origin],
    acks: &Acknowledgements,
    effects: &mut Effects<StoredPacket>,
) -> Option<Box<GroupRepair>> {
    match (before, rules_of(entry).filter(|_| has_memory)) {
        (Some(mut repair), Some(rules)) => {
            repair.succeed(rules, &branches_of(entry, origins), acks, effects);
            Some(repair)
        }
        // What is in flight was not kept: until each branch has responded, all passes.
        (None, Some(_)) => repair_of(entry, &vec![Origin::Unknown; entry.branches.len()]),
        (Some(mut repair), None) => {
            effects.released.extend(repair.drain());
            None
        }
        (None, None) => None,
    }
}

/// Packets that are kept for a window. Endpoints that count from the last acknowledged PSN have one more in flight than
/// their limit, as soft-RoCE has.
pub(super) fn buffer_packets(window_packets: u32) -> u32 {
    window_packets.saturating_add(1)
}

fn rules_of(entry: &GroupEntry) -> Option<RepairRules> {
    let repair = entry.repair.as_ref()?;
    let policy = entry.policy.repair;
    Some(RepairRules {
        capacity: buffer_packets(repair.window_packets),
        parent_repairs: repair.parent_repairs,
        gap_hold: entry.policy.t_hold * repair.levels,
        initial_round_trip: policy.round_trip,
        ack_timeout: policy.ack_timeout,
    })
}

fn branches_of(entry: &GroupEntry, origins: &[Origin]) -> Vec<(BranchKind, Origin)> {
    let children = entry.repair.as_ref().map_or(&[][..], |repair| &repair.children);
    let kind = |branch: usize| match children.get(branch) {
        Some(true) => BranchKind::Repairs,
        Some(false) | None => BranchKind::Plain,
    };
    origins.iter().enumerate().map(|(branch, origin)| (kind(branch), *origin)).collect()
}
