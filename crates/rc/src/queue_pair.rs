//! A queue pair: a requester and a responder that share a peer and a fate.
//!
//! ```text
//!            requester or responder fails
//!   Ready ───────────────────────────────────► Error
//!                                     (everything posted is flushed;
//!                                      responses that wait still go out)
//! ```

use crate::completion::Completion;
use crate::config::{ConfigError, EndpointConfig, QueuePairConfig};
use crate::counters::{DropReason, QueuePairCounters};
use crate::inbound::Inbound;
use crate::memory::{Memory, Regions};
use crate::outbound::PacketWriter;
use crate::rate::pacing::{Pacer, Permit};
use crate::rate::{Event, RateControl, RateLimits};
use crate::requester::Requester;
use crate::responder::Responder;
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Instant, Opcode, Qpn};
use std::collections::VecDeque;

/// Whether a queue pair works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePairState {
    /// It sends and receives.
    Ready,
    /// It has failed. What was posted has been flushed; nothing more is accepted.
    Error,
}

/// What both halves of a queue pair need to do their work.
pub(crate) struct Context<'a, M> {
    pub(crate) now: Instant,
    pub(crate) qpn: Qpn,
    pub(crate) writer: &'a PacketWriter,
    pub(crate) regions: &'a mut Regions<M>,
    pub(crate) completions: &'a mut VecDeque<Completion>,
    pub(crate) counters: &'a mut QueuePairCounters,
    /// `None`: nothing limits the rate.
    pub(crate) pacer: Option<&'a mut Pacer>,
}

impl<M> Context<'_, M> {
    /// Tells the rate control, if there is one.
    pub(crate) fn tell(&mut self, event: Event) {
        if let Some(pacer) = &mut self.pacer {
            pacer.on(self.now, event);
        }
    }
}

/// What a queue pair borrows from its endpoint.
pub(crate) struct Host<'a, M> {
    pub(crate) now: Instant,
    pub(crate) regions: &'a mut Regions<M>,
    pub(crate) completions: &'a mut VecDeque<Completion>,
}

#[derive(Debug)]
pub(crate) struct QueuePair {
    pub(crate) config: QueuePairConfig,
    pub(crate) state: QueuePairState,
    pub(crate) requester: Requester,
    pub(crate) responder: Responder,
    shared: Shared,
}

/// What requester and responder share.
#[derive(Debug)]
struct Shared {
    qpn: Qpn,
    writer: PacketWriter,
    counters: QueuePairCounters,
    cnps_waiting: u32,
    next_cnp_at: Instant,
    /// Boxed: most queue pairs have none.
    pacer: Option<Box<Pacer>>,
}

impl Shared {
    fn context<'a, M>(&'a mut self, host: Host<'a, M>) -> Context<'a, M> {
        Context {
            now: host.now,
            qpn: self.qpn,
            writer: &self.writer,
            regions: host.regions,
            completions: host.completions,
            counters: &mut self.counters,
            pacer: self.pacer.as_deref_mut(),
        }
    }
}

impl QueuePair {
    pub(crate) fn new(endpoint: &EndpointConfig, config: QueuePairConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let control = config.rate.as_ref().map(|algorithm| algorithm.build()).transpose();
        let control = control.map_err(|error| ConfigError::Rate { qpn: config.qpn, error })?;
        Ok(QueuePair {
            state: QueuePairState::Ready,
            requester: Requester::new(&config),
            responder: Responder::new(&config),
            shared: Shared {
                qpn: config.qpn,
                writer: PacketWriter::new(endpoint, &config),
                counters: QueuePairCounters::default(),
                cnps_waiting: 0,
                next_cnp_at: Instant::ZERO,
                pacer: control.map(|control| Box::new(Pacer::new(control, endpoint.link_overhead_octets))),
            },
            config,
        })
    }

    /// From now on `control` decides how fast data are sent.
    pub(crate) fn set_rate_control(&mut self, control: Box<dyn RateControl>, link_overhead_octets: u16) {
        self.shared.pacer = Some(Box::new(Pacer::new(control, link_overhead_octets)));
    }

    /// What limits it at `now`; `None` when it has no rate control.
    pub(crate) fn limits(&mut self, now: Instant) -> Option<RateLimits> {
        let pacer = self.shared.pacer.as_mut()?;
        pacer.tick(now);
        Some(pacer.limits())
    }

    pub(crate) fn counters(&self) -> &QueuePairCounters {
        &self.shared.counters
    }

    /// A verified packet from the peer has come.
    pub(crate) fn receive<M: Memory>(&mut self, host: Host<'_, M>, packet: &Inbound<'_>) -> Result<(), DropReason> {
        let opcode = packet.headers.bth.opcode();
        if packet.headers.ipv6.ecn() == Ecn::Ce && (opcode.is_request() || opcode.is_read_response()) {
            self.answer_congestion(host.now);
        }
        let mut context = self.shared.context(host);
        let outcome = if opcode == Opcode::CNP {
            context.counters.cnps_received += 1;
            context.tell(Event::Cnp);
            Ok(())
        } else if opcode.is_request() {
            self.responder.on_request(&mut context, packet)
        } else if opcode.is_read_response() {
            self.requester.on_read_response(&mut context, packet)
        } else if opcode == Opcode::ACKNOWLEDGE {
            match packet.headers.extended.aeth() {
                Some(aeth) if packet.payload_len() == 0 => {
                    self.requester.on_acknowledge(&mut context, packet.headers.bth.psn(), aeth.value())
                }
                Some(_) | None => Err(DropReason::UnexpectedResponse),
            }
        } else {
            // No ATOMIC is ever requested, so that there is none to acknowledge.
            Err(DropReason::UnexpectedResponse)
        };
        fail_together(&mut self.state, &mut self.requester, &mut self.responder, &mut context);
        outcome
    }

    pub(crate) fn tick<M: Memory>(&mut self, host: Host<'_, M>) {
        let mut context = self.shared.context(host);
        if let Some(pacer) = &mut context.pacer {
            pacer.tick(context.now);
        }
        self.requester.tick(&mut context);
        fail_together(&mut self.state, &mut self.requester, &mut self.responder, &mut context);
    }

    /// Answers a CE mark with a CNP (FC-3-2), if this queue pair is to do so and its time has come.
    fn answer_congestion(&mut self, now: Instant) {
        if let Some(interval_ns) = self.config.cnp_interval_ns
            && now >= self.shared.next_cnp_at
        {
            self.shared.next_cnp_at = now.after_ns(interval_ns);
            self.queue_cnp();
        }
    }

    /// Whether a CNP waits to be sent.
    pub(crate) fn has_cnp(&self) -> bool {
        self.shared.cnps_waiting > 0
    }

    pub(crate) fn queue_cnp(&mut self) {
        self.shared.cnps_waiting = self.shared.cnps_waiting.saturating_add(1);
    }

    /// Whether a response, a CNP included, may go out.
    pub(crate) fn response_permit(&self, now: Instant) -> Option<Permit> {
        if self.shared.cnps_waiting > 0 {
            return Some(Permit::Now);
        }
        let pacer = self.shared.pacer.as_deref();
        self.responder.can_transmit().then(|| match pacer {
            Some(pacer) if self.responder.sends_data() => pacer.response_permit(now),
            Some(_) | None => Permit::Now,
        })
    }

    /// Whether a request may go out.
    pub(crate) fn request_permit(&self, now: Instant) -> Option<Permit> {
        let pacer = self.shared.pacer.as_deref();
        self.requester.can_transmit().then(|| match pacer {
            Some(pacer) => self.requester.permit(now, pacer),
            None => Permit::Now,
        })
    }

    pub(crate) fn transmit_response<M: Memory>(&mut self, host: Host<'_, M>, into: &mut [u8]) -> Option<usize> {
        if self.shared.cnps_waiting > 0 {
            self.shared.cnps_waiting -= 1;
            self.shared.counters.cnps_sent += 1;
            return Some(self.shared.writer.write_cnp(into));
        }
        match self.response_permit(host.now)? {
            Permit::Now => self.responder.transmit(&mut self.shared.context(host), into),
            Permit::At(_) | Permit::Acknowledged(_) => None,
        }
    }

    pub(crate) fn transmit_request<M: Memory>(&mut self, host: Host<'_, M>, into: &mut [u8]) -> Option<usize> {
        match self.request_permit(host.now)? {
            Permit::Now => self.requester.transmit(&mut self.shared.context(host), into),
            Permit::At(_) | Permit::Acknowledged(_) => None,
        }
    }
}

fn fail_together<M: Memory>(
    state: &mut QueuePairState,
    requester: &mut Requester,
    responder: &mut Responder,
    context: &mut Context<'_, M>,
) {
    if *state == QueuePairState::Ready && (requester.has_failed() || responder.has_failed()) {
        *state = QueuePairState::Error;
        requester.flush(context);
        responder.flush(context);
    }
}
