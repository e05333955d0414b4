//! Ports with traffic classes: the one place where frames enter them, and the one where they leave.

use super::congestion::{Mark, Meeting};
use super::{Arrival, Node};
use crate::config::ConfigError;
use crate::drop::DropReason;
use crate::egress::{ClassCounters, EgressConfig};
use crate::headers::{IPV6, ipv6, ipv6_mut};
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Instant, Pfc};

impl Node {
    pub(super) fn set_egress(&mut self, port: PortId, egress: EgressConfig) -> Result<(), ConfigError> {
        self.check_port(port)?;
        egress.check().map_err(|error| ConfigError::Egress { port: port.0, error })?;
        self.egress.set_classes(port, egress);
        Ok(())
    }

    pub(super) fn remove_egress(&mut self, port: PortId) -> Result<(), ConfigError> {
        self.check_port(port)?;
        let limit_octets = self.config.ports[port.index()].queue_limit_octets;
        self.egress.remove_classes(port, limit_octets);
        self.prepare_for_traces(port);
        Ok(())
    }

    /// Lets a finished frame wait in its class, marked or its sender told if it meets congestion there.
    #[inline(never)]
    pub(super) fn enter_class(
        &mut self,
        arrival: Arrival,
        port: PortId,
        mut frame: Frame,
        mut len: usize,
        pool: &mut Pool,
    ) {
        let mut class = self.class_of(&frame, pool);
        if let Err(reason) = self.egress.admit(port, arrival.port, class, len) {
            frame = match self.trimmed(port, class, reason, frame, pool) {
                Ok(trimmed) => trimmed,
                Err(frame) => return self.drop_frame(arrival, frame, pool, reason),
            };
            (class, len) = (self.class_of(&frame, pool), frame.len());
            if let Err(reason) = self.egress.admit(port, arrival.port, class, len) {
                return self.drop_frame(arrival, frame, pool, reason);
            }
        }
        if let Some(congestion) = self.egress.congestion(port, class) {
            let meeting = Meeting { now: arrival.now, ingress: arrival.port, port, class, congestion };
            match self.congested(meeting, &frame, pool) {
                Mark::Ce => self.mark(port, class, &mut frame, pool),
                Mark::None => {}
            }
        }
        self.egress.enter(arrival.now, port, arrival.port, class, frame, len);
        self.port_counters[port.index()].sent.count(len);
    }

    fn class_of(&self, frame: &Frame, pool: &Pool) -> usize {
        self.classes.class_of(ipv6(frame.head(pool)).map_or(0, |view| view.traffic_class()))
    }

    /// Congestion experienced, if the packet is ECN-capable (RFC 3168).
    fn mark(&mut self, port: PortId, class: usize, frame: &mut Frame, pool: &mut Pool) {
        let Ok(view) = ipv6_mut(frame.head_mut(pool)) else {
            return;
        };
        match view.ecn() {
            Ecn::NotEct | Ecn::Ce => {}
            Ecn::Ect0 | Ecn::Ect1 => {
                view.set_ecn(Ecn::Ce);
                self.egress.count_mark(port, class);
            }
        }
    }

    /// A MAC control frame: what the neighbour says about the port's classes. It never goes further.
    #[cold]
    pub(super) fn mac_control(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool) {
        let pfc = frame.head(pool).get(IPV6..).and_then(|octets| Pfc::parse(octets).ok());
        match pfc.zip(arrival.port) {
            Some((pfc, port)) if self.egress.hear(arrival.now, port, &pfc) => frame.release(pool),
            Some(_) | None => self.drop_frame(arrival, frame, pool, DropReason::MacControl),
        }
    }

    /// The next frame that a port with classes sends.
    #[inline(never)]
    pub(super) fn dequeue_class(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        if let Some(pfc) = self.egress.tell(now, port) {
            match Frame::small(&pfc.frame(self.config.ports[port.index()].mac), pool) {
                Some(frame) => {
                    self.port_counters[port.index()].sent.count(frame.len());
                    return Some(frame);
                }
                None => self.egress.tell_again(now, port, &pfc),
            }
        }
        while let Some(frame) = self.egress.take_for_storm(now, port) {
            frame.release(pool);
            self.port_counters[port.index()].drops.count(DropReason::PauseStorm);
        }
        let mut departing = self.egress.depart(now, port)?;
        if self.notifications.is_some() {
            self.ease_back(now, port, departing.class, pool);
        }
        self.fill_traces(now, port, &mut departing, pool);
        Some(departing.frame)
    }

    /// How a port's classes are configured; `None` when it has none.
    pub fn egress_config(&self, port: PortId) -> Option<&EgressConfig> {
        self.egress.config(port)
    }

    /// The counters of a class of a port with classes.
    pub fn class_counters(&self, port: PortId, class: usize) -> Option<ClassCounters> {
        self.egress.counters(port, class)
    }

    /// Octets that wait in a class of a port with classes.
    pub fn class_octets(&self, port: PortId, class: usize) -> Option<usize> {
        self.egress.class_octets(port, class)
    }

    /// Octets that came in by a port in a class, and wait at ports with classes.
    pub fn ingress_octets(&self, port: PortId, class: usize) -> Option<usize> {
        self.egress.ingress_octets(port, class)
    }

    /// Octets that wait at all ports with classes.
    pub fn buffered_octets(&self) -> usize {
        self.egress.buffered_octets()
    }

    /// The classes of a port that its neighbour has paused, bit n being class n.
    pub fn paused_classes(&self, port: PortId) -> u8 {
        self.egress.paused_classes(port)
    }

    /// The classes that a port's neighbour was told to pause, bit n being class n.
    pub fn pausing_classes(&self, port: PortId) -> u8 {
        self.egress.closed_classes(port)
    }
}
