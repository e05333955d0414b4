//! Backpressure at the node: the pauses that it sends for its own queues (CN-4.1-2), and those that END.C receives
//! (CN-4.1-1, D61, D62, D66).

use super::{
    BackpressureConfig, BackpressureCounters, BackpressureSids, Origins, ReceivedPauses, Refusal, SentPauses, SidTable,
};
use crate::config::ConfigError;
use crate::drop::DropReason;
use crate::egress::{BackpressureThresholds, CongestionPoint, Egress};
use crate::headers::{IPV6, Place, ipv6};
use crate::tables::{Tables, Target};
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::notification::{Ask, Notification, NotificationError, NotificationPacket};
use srdma_wire::{Instant, NextHeader};
use std::net::Ipv6Addr;

/// The level at XOFF; at XON it is 0. With an early resume it is the other way round.
const LEVEL_AT_XOFF: usize = 128;

/// Pauses sent and received at the node, if backpressure is on, and the SIDs of ingress PEs.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    active: Option<Box<Active>>,
    /// Rate limits of senders to the node's END.E SIDs, if it has any (D66).
    end_e_origins: Option<Box<Origins>>,
    /// The SIDs of ingress PEs (D63).
    sids: SidTable,
}

#[derive(Debug)]
struct Active {
    config: BackpressureConfig,
    sent: SentPauses,
    received: ReceivedPauses,
    /// Rate limits of senders to END.C.
    origins: Origins,
    counters: BackpressureCounters,
    /// Memory for the PEs to resume, used again.
    resumed: Vec<usize>,
}

/// A pause in effect that END.C has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPause {
    /// The congested node.
    pub congested: Ipv6Addr,
    /// The traffic class of its queue.
    pub traffic_class: u8,
    /// When it ends if no other notification comes.
    pub until: Instant,
}

/// Why a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A queue is above XOFF.
    Xoff,
    /// The pause is sent again.
    Refresh,
    /// No queue is above XON.
    Xon,
}

/// A message to the END.C of an ingress PE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pe: usize,
    class: usize,
    cause: Cause,
    level: u8,
}

impl Active {
    fn new(config: BackpressureConfig) -> Self {
        Active {
            sent: SentPauses::default(),
            received: ReceivedPauses::new(&config),
            origins: Origins::new(config.origins.into(), config.per_second, config.at_once),
            counters: BackpressureCounters::default(),
            resumed: Vec::new(),
            config,
        }
    }

    fn counters(&self) -> BackpressureCounters {
        BackpressureCounters {
            expired: self.received.expired,
            watchdog_releases: self.received.watchdog_releases,
            ..self.counters
        }
    }
}

/// Configuration and reports.
impl Backpressure {
    /// The caller has checked that the ports exist.
    pub(crate) fn set(&mut self, config: BackpressureConfig, egress: &mut Egress) {
        self.limit_end_e(&config);
        let mut active = Box::new(Active::new(config));
        if let Some(before) = self.active.take() {
            before.received.resume_all(|port, class, is_paused| egress.pause_ingress(port, class, is_paused));
            let counters = before.counters();
            active.received.expired = counters.expired;
            active.received.watchdog_releases = counters.watchdog_releases;
            (active.counters, active.sent) = (counters, before.sent);
        } else {
            active.sent.renumber(self.sids.end_cs(), |_| None);
        }
        self.active = Some(active);
    }

    pub(crate) fn remove(&mut self, egress: &mut Egress) {
        self.limit_end_e(&BackpressureConfig::default());
        if let Some(before) = self.active.take() {
            before.received.resume_all(|port, class, is_paused| egress.pause_ingress(port, class, is_paused));
        }
    }

    /// Limits senders to END.E, also at a node without backpressure, which uses the defaults (D66).
    fn limit_end_e(&mut self, config: &BackpressureConfig) {
        let origins = Origins::new(config.origins.into(), config.end_e_per_second, config.end_e_at_once);
        self.end_e_origins = Some(Box::new(origins));
    }

    /// The node has an END.E SID.
    pub(crate) fn expect_end_e(&mut self) {
        if self.end_e_origins.is_none() {
            self.limit_end_e(&BackpressureConfig::default());
        }
    }

    pub(crate) fn set_sids(&mut self, sids: &[BackpressureSids], loopback: Ipv6Addr) -> Result<(), ConfigError> {
        let table = SidTable::new(loopback, sids)?;
        let before = std::mem::replace(&mut self.sids, table);
        if let Some(active) = self.active.as_mut() {
            let now = &self.sids;
            let number = |pe: usize| now.place_of_end_c(&before.end_c(pe)?.sid);
            active.sent.renumber(now.end_cs(), number);
        }
        Ok(())
    }

    pub(crate) fn config(&self) -> Option<&BackpressureConfig> {
        self.active.as_ref().map(|active| &active.config)
    }

    pub(crate) fn counters(&self) -> BackpressureCounters {
        self.active.as_ref().map_or_else(BackpressureCounters::default, |active| active.counters())
    }

    pub(crate) fn received_pauses(&self) -> impl Iterator<Item = ReceivedPause> {
        self.active.iter().flat_map(|active| {
            active.received.iter().filter_map(|(origin, traffic_class, until)| {
                let congested = active.origins.address(origin)?;
                Some(ReceivedPause { congested, traffic_class, until })
            })
        })
    }

    /// The pauses in effect that were sent: the END.C of each ingress PE, and the class.
    pub(crate) fn sent_pauses(&self) -> impl Iterator<Item = (Ipv6Addr, u8)> {
        self.active.iter().flat_map(|active| {
            active.sent.iter().filter_map(|(pe, class)| {
                let end_c = self.sids.end_c(pe)?;
                Some((end_c.sid.into(), class as u8))
            })
        })
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let active = self.active.as_ref()?;
        [active.sent.next_deadline(), active.received.next_deadline()].into_iter().flatten().min()
    }
}

/// The queues of this node.
impl Backpressure {
    /// A packet enters a queue above XOFF: the PAUSE to send to its ingress PE. None is sent if the PE is paused
    /// already, or is this node, which pauses its neighbours by PFC.
    #[cold]
    pub(crate) fn xoff(
        &mut self,
        at: &CongestionPoint,
        head: &[u8],
        tables: &Tables,
        egress: &Egress,
    ) -> Option<Message> {
        let active = self.active.as_deref_mut()?;
        let ingress = tunnel_source(head)?;
        let Some(pe) = self.sids.find_end_c(ingress) else {
            active.counters.unknown_ingress += 1;
            return None;
        };
        let end_c = self.sids.end_c(pe)?;
        if matches!(tables.lookup_main(&end_c.sid), Some(Target::Sid(_))) {
            return None;
        }
        let CongestionPoint { now, port, class, .. } = *at;
        let (octets, thresholds) = depth(egress, port, class)?;
        if !active.sent.update(port, class, octets, thresholds) {
            return None;
        }
        let is_first = active.sent.xoff(now + active.config.refresh, pe, port, class);
        let level = level(egress, port, class).unwrap_or(0);
        is_first.then_some(Message { pe, class, cause: Cause::Xoff, level })
    }

    /// Whether the depth of a class matters when a frame leaves it.
    #[inline]
    pub(crate) fn is_watched(&self, port: PortId, class: usize) -> bool {
        self.active.as_ref().is_some_and(|active| active.sent.is_watched(port, class))
    }

    /// A frame has left a watched class: the PEs to resume if the class is down at XON. The caller
    /// [returns](Self::return_resumed) the memory.
    pub(crate) fn dequeued(&mut self, port: PortId, class: usize, egress: &Egress) -> Vec<usize> {
        let Some(active) = self.active.as_deref_mut() else { return Vec::new() };
        let is_reason = match depth(egress, port, class) {
            Some((octets, thresholds)) => active.sent.update(port, class, octets, thresholds),
            None => {
                active.sent.clear(port, class);
                false
            }
        };
        if is_reason {
            return Vec::new();
        }
        let mut resumed = std::mem::take(&mut active.resumed);
        active.sent.xon(port, class, &mut resumed);
        resumed
    }

    pub(crate) fn return_resumed(&mut self, mut resumed: Vec<usize>) {
        if let Some(active) = self.active.as_deref_mut()
            && resumed.capacity() > 0
        {
            resumed.clear();
            active.resumed = resumed;
        }
    }

    /// The next message that is due: a PAUSE is sent again where a queue is still above XON; where none is, because the
    /// queue has lost its frames otherwise, a RESUME.
    pub(crate) fn take_due(&mut self, now: Instant, egress: &Egress) -> Option<Message> {
        let active = self.active.as_deref_mut()?;
        let (pe, class) = active.sent.take_due(now)?;
        Some(match active.sent.review(pe, class, |port| level(egress, port, class)) {
            None => Message::resume(pe, class),
            Some((_, level)) => {
                active.sent.refresh_at(pe, class, now + active.config.refresh);
                Message { pe, class, cause: Cause::Refresh, level }
            }
        })
    }

    /// A message as a packet from the loopback to the SID, pushed into a header of the same addresses. An error comes
    /// with the frame to drop.
    pub(crate) fn packet(
        &mut self,
        now: Instant,
        message: Message,
        loopback: Ipv6Addr,
        pool: &mut Pool,
    ) -> Option<(Frame, Result<(), DropReason>)> {
        let active = self.active.as_deref_mut()?;
        let end_c = self.sids.end_c(message.pe)?;
        let (ask, hold_us) = match message.cause {
            Cause::Xoff | Cause::Refresh => {
                (Ask::Pause, u32::try_from(active.config.hold.as_micros()).unwrap_or(u32::MAX))
            }
            Cause::Xon => (Ask::Resume, 0),
        };
        let notification = Notification {
            ask,
            traffic_class: message.class as u8,
            level: message.level,
            sequence: active.sent.next_sequence(now),
            hold_us,
            congested: loopback,
        };
        let mut octets = [0; IPV6 + NotificationPacket::LEN];
        let packet = NotificationPacket { destination: end_c.sid.into(), notification };
        octets[IPV6..].copy_from_slice(&packet.emit());
        let mut frame = Frame::small(&octets, pool)?;
        let pushed = end_c.around.push(&mut frame, pool);
        Some((frame, pushed))
    }

    /// A message was enqueued, or could not be.
    pub(crate) fn count_sent(&mut self, message: Message, is_sent: bool) {
        let Some(active) = self.active.as_deref_mut() else { return };
        match (message.cause, is_sent) {
            (Cause::Xoff, true) => active.counters.pauses_sent += 1,
            (Cause::Refresh, true) => active.counters.refreshes_sent += 1,
            (Cause::Xon, true) => active.counters.resumes_sent += 1,
            (Cause::Xoff, false) => {
                active.counters.not_sent += 1;
                active.sent.forget(message.pe, message.class);
            }
            (Cause::Refresh | Cause::Xon, false) => active.counters.not_sent += 1,
        }
    }
}

impl Message {
    pub(crate) fn resume(pe: usize, class: usize) -> Self {
        Message { pe, class, cause: Cause::Xon, level: 0 }
    }
}

/// END.C, END.E and the SIDs that lead there.
impl Backpressure {
    /// Ends received pauses whose time is over.
    pub(crate) fn tick(&mut self, now: Instant, egress: &mut Egress) {
        if let Some(active) = self.active.as_mut() {
            active.received.tick(now, |port, class, is_paused| egress.pause_ingress(port, class, is_paused));
        }
    }

    /// END.C: processes the notification at `inner`. Its outer source address is its origin, which the notification
    /// must name as the congested node.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        head: &[u8],
        inner: usize,
        egress: &mut Egress,
    ) -> Result<(), DropReason> {
        let outer = ipv6(head)?;
        let active = self.active.as_deref_mut().ok_or(DropReason::BackpressureOff)?;
        let mut pause = |port, class, is_paused| egress.pause_ingress(port, class, is_paused);
        active.received.tick(now, &mut pause);
        let origin = active.origins.take(now, outer.source_octets()).map_err(drop_of)?;
        let packet = NotificationPacket::parse(head.get(inner..).unwrap_or(&[])).map_err(drop_of_error)?;
        let notification = packet.notification;
        if notification.congested != outer.source() || packet.destination != outer.destination() {
            return Err(DropReason::BackpressureForeignOrigin);
        }
        let received = active.received.receive(now, origin, &notification, pause)?;
        if let Some(until) = received.until {
            active.origins.keep(origin, until);
        }
        received.effect?;
        match notification.ask {
            Ask::Pause => active.counters.pauses_received += 1,
            Ask::Resume => active.counters.resumes_received += 1,
        }
        Ok(())
    }

    /// Whether a packet from this address may go to END.E.
    pub(crate) fn admit_to_end_e(&mut self, now: Instant, outer_source: &[u8; 16]) -> Result<(), DropReason> {
        match self.end_e_origins.as_mut() {
            Some(origins) => origins.take(now, outer_source).map(drop).map_err(drop_of),
            None => Ok(()),
        }
    }

    /// Whether a Fast CNP can be routed: for a packet outside tunnels by the node's own tables, for a packet in a
    /// tunnel by the END.E of its ingress PE, if any SIDs are configured.
    #[inline]
    pub(crate) fn leads_back(&self, outer_source: Option<&[u8; 16]>) -> bool {
        self.sids.leads_back(outer_source)
    }

    pub(crate) fn find_end_e(&self, outer_source: &[u8; 16]) -> Option<u32> {
        self.sids.find_end_e(outer_source)
    }

    pub(crate) fn end_e(&self, place: u32) -> Option<&super::sids::Outer> {
        self.sids.end_e(place)
    }
}

/// The octets in a class, and its thresholds; `None` when it has none.
fn depth(egress: &Egress, port: PortId, class: usize) -> Option<(usize, BackpressureThresholds)> {
    let thresholds = egress.config(port)?.classes.get(class)?.backpressure?;
    Some((egress.class_octets(port, class)?, thresholds))
}

/// How full a queue is: 0 right above the lower of its thresholds, which is XON if there is no early resume, 128 at the
/// other, and at most 255. `None` when it is not above the lower one, or has no thresholds.
fn level(egress: &Egress, port: PortId, class: usize) -> Option<u8> {
    let (octets, BackpressureThresholds { xoff_octets, xon_octets }) = depth(egress, port, class)?;
    let above = octets.checked_sub(xoff_octets.min(xon_octets)).filter(|above| *above > 0)?;
    let span = xoff_octets.abs_diff(xon_octets).max(1);
    Some(u8::try_from(above.saturating_mul(LEVEL_AT_XOFF) / span).unwrap_or(u8::MAX))
}

/// The outer source address of a packet in a tunnel.
fn tunnel_source(head: &[u8]) -> Option<&[u8; 16]> {
    let outer = ipv6(head).ok()?;
    let mut place = Place::first(outer).behind_options(head).ok()?;
    if place.header == NextHeader::ROUTING {
        place = place.behind_routing_header(head).and_then(|behind| behind.behind_options(head)).ok()?;
    }
    (place.header == NextHeader::IPV6).then(|| outer.source_octets())
}

fn drop_of(refusal: Refusal) -> DropReason {
    match refusal {
        Refusal::TooFast => DropReason::BackpressureRateLimited,
        Refusal::TooMany => DropReason::BackpressureTooManyOrigins,
    }
}

fn drop_of_error(error: NotificationError) -> DropReason {
    match error {
        NotificationError::Truncated(_)
        | NotificationError::NotIcmpv6(_)
        | NotificationError::Length(_)
        | NotificationError::Type { .. } => DropReason::BackpressureMalformed,
        NotificationError::Checksum(_) => DropReason::BackpressureChecksum,
        NotificationError::Version(_) => DropReason::BackpressureVersion,
        NotificationError::Source { .. } => DropReason::BackpressureForeignOrigin,
    }
}
