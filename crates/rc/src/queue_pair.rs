//! A queue pair: a requester and a responder that share a peer and a state.
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
use crate::fast_cnp::Notice;
use crate::inbound::Inbound;
use crate::incast::{Extent, Incasts, Interval};
use crate::memory::{Memory, MemoryKey, Regions};
use crate::outbound::{PacketWriter, packet_octets};
use crate::rate::pacing::{Pacer, Permit};
use crate::rate::{Event, Origin, RateControl, RateLimits};
use crate::requester::Requester;
use crate::responder::Responder;
use crate::trace::TraceReturn;
use srdma_wire::fast_cnp::{FastCnpValue, MAX_FAST_CNP_LEN, OptionTypes};
use srdma_wire::ioam::{Trace, TraceError};
use srdma_wire::ipv6::Ecn;
use srdma_wire::rocev2::Extended;
use srdma_wire::{CnpView, Instant, Opcode, Psn, Qpn};
use std::collections::VecDeque;

/// Whether a queue pair works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePairState {
    /// It sends and receives.
    Ready,
    /// It has failed. Posted work was flushed; no more is accepted.
    Error,
}

/// Shared state of both halves of a queue pair.
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
    /// Passes an event to the rate control, if there is one.
    pub(crate) fn notify(&mut self, event: Event<'_>) {
        if let Some(pacer) = &mut self.pacer {
            pacer.on(self.now, event);
        }
    }
}

/// Parts of the endpoint that a queue pair borrows.
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

/// State shared by requester and responder.
#[derive(Debug)]
struct Shared {
    qpn: Qpn,
    writer: PacketWriter,
    counters: QueuePairCounters,
    cnps_waiting: u32,
    next_cnp_at: Instant,
    /// When it was counted as congested, and the extent of the congestion then (D284).
    marked_in: Interval,
    extent: Option<Extent>,
    /// Boxed: most queue pairs have none.
    pacer: Option<Box<Pacer>>,
    next_fast_cnp_at: Instant,
    detour_interval_ns: Option<u64>,
    next_detour_at: Instant,
    /// Boxed for the same reason.
    returning: Option<Box<Returning>>,
}

/// State for returning traces.
#[derive(Debug)]
struct Returning {
    trace: TraceReturn,
    /// All that does not change.
    fast_cnp: FastCnpValue<'static>,
    option_types: OptionTypes,
}

impl Shared {
    /// On congestion, changes the path where paths are chosen by hash, if permitted and due (D89).
    fn detour(&mut self, now: Instant) {
        if let Some(interval_ns) = self.detour_interval_ns
            && now >= self.next_detour_at
        {
            self.next_detour_at = now.after_ns(interval_ns);
            self.counters.detours += 1;
            self.writer.detour(self.counters.detours);
        }
    }

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
        let writer = PacketWriter::new(endpoint, &config)?;
        Ok(QueuePair {
            state: QueuePairState::Ready,
            requester: Requester::new(&config, packet_octets(0) + writer.trace_octets()),
            responder: Responder::new(&config),
            shared: Shared {
                qpn: config.qpn,
                writer,
                counters: QueuePairCounters::default(),
                cnps_waiting: 0,
                next_cnp_at: Instant::ZERO,
                marked_in: Interval::default(),
                extent: None,
                pacer: control.map(|control| Box::new(Pacer::new(control, endpoint.link_overhead_octets))),
                next_fast_cnp_at: Instant::ZERO,
                detour_interval_ns: config.detour_interval_ns,
                next_detour_at: Instant::ZERO,
                returning: Returning::new(endpoint, &config).map(Box::new),
            },
            config,
        })
    }

    /// From now on `control` decides how fast data are sent.
    pub(crate) fn set_rate_control(&mut self, control: Box<dyn RateControl>, link_overhead_octets: u16) {
        self.shared.pacer = Some(Box::new(Pacer::new(control, link_overhead_octets)));
    }

    /// Its rate limits at `now`; `None` without rate control.
    pub(crate) fn limits(&mut self, now: Instant) -> Option<RateLimits> {
        let pacer = self.shared.pacer.as_mut()?;
        pacer.tick(now);
        Some(pacer.limits())
    }

    pub(crate) fn counters(&self) -> &QueuePairCounters {
        &self.shared.counters
    }

    /// Octets of the longest packet that it sends.
    pub(crate) fn max_packet_octets(&self) -> usize {
        let data = packet_octets(self.config.path_mtu.octets() as usize) + self.shared.writer.trace_octets();
        if self.shared.returning.is_some() { data.max(MAX_FAST_CNP_LEN) } else { data }
    }

    /// Whether enough time has passed since the last Fast CNP.
    pub(crate) fn may_take_fast_cnp(&self, now: Instant) -> Result<(), DropReason> {
        if now < self.shared.next_fast_cnp_at { Err(DropReason::FastCnpTooOften) } else { Ok(()) }
    }

    /// A Fast CNP for this queue pair was accepted. The next one counts after `min_interval_ns`.
    pub(crate) fn on_fast_cnp(&mut self, now: Instant, notice: Notice<'_>, min_interval_ns: u64) {
        let Notice { origin, trace, rate_bits_per_s } = notice;
        self.shared.next_fast_cnp_at = now.after_ns(min_interval_ns);
        self.shared.counters.fast_cnps_received += 1;
        match (origin, trace) {
            (Origin::Switch(_), _) | (Origin::Receiver, None) => self.shared.detour(now),
            // It only returns a trace and does not indicate congestion.
            (Origin::Receiver, Some(_)) => {}
        }
        if let Some(pacer) = &mut self.shared.pacer {
            pacer.on(now, Event::FastCnp { origin, trace, rate_bits_per_s });
        }
    }

    /// A data packet has arrived with a trace.
    pub(crate) fn on_trace(&mut self, now: Instant, trace: Result<Trace<'_>, TraceError>, source_port: u16) {
        if let Some(returning) = &mut self.shared.returning {
            let is_kept = trace.is_ok_and(|trace| returning.trace.offer(now, &trace, source_port));
            self.shared.counters.traces_not_returned += u64::from(!is_kept);
        }
    }

    /// Counts this queue pair if the packet is marked and CNPs answer it (D284).
    pub(crate) fn count_congested(&mut self, now: Instant, incasts: &mut Incasts, packet: &Inbound<'_>) {
        if let Some(interval_ns) = self.config.cnp_interval_ns
            && is_marked(packet)
        {
            self.shared.extent = Some(incasts.mark(now, &mut self.shared.marked_in, interval_ns));
        }
    }

    /// A verified packet from the peer has come.
    pub(crate) fn receive<M: Memory>(&mut self, host: Host<'_, M>, packet: &Inbound<'_>) -> Result<(), DropReason> {
        let opcode = packet.headers.bth.opcode();
        if is_marked(packet) {
            self.answer_congestion(host.now);
        }
        if opcode == Opcode::CNP {
            self.shared.detour(host.now);
        }
        let mut context = self.shared.context(host);
        let outcome = if opcode == Opcode::CNP {
            context.counters.cnps_received += 1;
            if let Extended::Cnp(cnp) = packet.headers.extended
                && let Some((flows, period_us)) = cnp.incast()
            {
                context.notify(Event::Incast { flows, period_ns: u64::from(period_us) * 1000 });
            }
            context.notify(Event::Cnp);
            Ok(())
        } else if opcode.is_request() {
            self.responder.on_request(&mut context, packet)
        } else if opcode.is_read_response() {
            self.requester.on_read_response(&mut context, packet)
        } else if opcode == Opcode::ACKNOWLEDGE {
            match packet.headers.extended.aeth() {
                Some(aeth) if packet.payload_len() == 0 => {
                    let bth = packet.headers.bth;
                    self.requester.on_acknowledge(&mut context, bth.psn(), aeth.value(), bth.becn())
                }
                Some(_) | None => Err(DropReason::UnexpectedResponse),
            }
        } else {
            // No ATOMIC is ever requested, so none is acknowledged.
            Err(DropReason::UnexpectedResponse)
        };
        fail_together(&mut self.state, &mut self.requester, &mut self.responder, &mut context);
        outcome
    }

    /// A request came whose payload was cut off on the way.
    pub(crate) fn on_trimmed<M: Memory>(&mut self, host: Host<'_, M>, psn: Psn) {
        self.shared.context(host).counters.trimmed_received += 1;
        self.responder.on_trimmed(psn);
    }

    /// Whether work that is not completed uses a region.
    pub(crate) fn uses(&self, key: MemoryKey) -> bool {
        self.requester.uses(key) || self.responder.uses(key)
    }

    /// A region exists no more: returns whether that has an effect, because a READ of it is not answered yet.
    pub(crate) fn revoke<M: Memory>(&mut self, host: Host<'_, M>, key: MemoryKey) -> bool {
        if !self.responder.revoke(key) {
            return false;
        }
        let mut context = self.shared.context(host);
        fail_together(&mut self.state, &mut self.requester, &mut self.responder, &mut context);
        true
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
            let interval_ns = self.shared.extent.map_or(interval_ns, |extent| extent.period_ns);
            self.shared.next_cnp_at = now.after_ns(interval_ns);
            self.queue_cnp();
        }
    }

    /// Whether a CNP waits to be sent, or a Fast CNP that returns a trace.
    pub(crate) fn has_cnp(&self) -> bool {
        self.shared.cnps_waiting > 0 || self.shared.returning.as_ref().is_some_and(|it| it.trace.is_waiting())
    }

    pub(crate) fn queue_cnp(&mut self) {
        self.shared.cnps_waiting = self.shared.cnps_waiting.saturating_add(1);
    }

    /// Whether it has no rate control: packets are sent at once.
    #[inline]
    pub(crate) fn is_unpaced(&self) -> bool {
        self.shared.pacer.is_none()
    }

    /// Whether a response, a CNP included, may be sent.
    pub(crate) fn response_permit(&self, now: Instant) -> Option<Permit> {
        if self.has_cnp() {
            return Some(Permit::Now);
        }
        let pacer = self.shared.pacer.as_deref();
        self.responder.can_transmit().then(|| match pacer {
            Some(pacer) if self.responder.sends_data() => pacer.response_permit(now),
            Some(_) | None => Permit::Now,
        })
    }

    /// Whether a request may be sent.
    #[inline]
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
            let payload = self.shared.extent.map_or_else(|| CnpView::with_count(0), Extent::payload);
            return Some(self.shared.writer.write_cnp(into, &payload));
        }
        if let Some(written) = self.shared.returning.as_mut().and_then(|returning| returning.write(into)) {
            self.shared.counters.traces_returned += 1;
            return Some(written);
        }
        match self.response_permit(host.now)? {
            Permit::Now => self.responder.transmit(&mut self.shared.context(host), into),
            Permit::At(_) | Permit::Acknowledged(_) => None,
        }
    }

    pub(crate) fn transmit_request<M: Memory>(&mut self, host: Host<'_, M>, into: &mut [u8]) -> Option<usize> {
        if self.shared.pacer.is_some() && self.request_permit(host.now) != Some(Permit::Now) {
            return None;
        }
        self.requester.transmit(&mut self.shared.context(host), into)
    }
}

impl Returning {
    fn new(endpoint: &EndpointConfig, config: &QueuePairConfig) -> Option<Self> {
        let fast_cnp = FastCnpValue {
            source: endpoint.address,
            destination: config.remote_address,
            traffic_class: endpoint.cnp_traffic_class,
            hop_limit: endpoint.hop_limit,
            source_port: config.source_port(),
            // The traffic class of data packets, not that of this host's CNPs.
            dest_qpn: config.qpn,
            original_destination: endpoint.address,
            trace: None,
        };
        Some(Returning {
            trace: TraceReturn::new(config.trace_return_interval_ns?),
            fast_cnp,
            option_types: endpoint.fast_cnp.as_ref().map(|config| config.option_types).unwrap_or_default(),
        })
    }

    /// Writes the Fast CNP that returns the trace, if one waits, and returns its length.
    fn write(&mut self, into: &mut [u8]) -> Option<usize> {
        let (trace, source_port) = self.trace.take()?;
        FastCnpValue { source_port, trace: Some(trace), ..self.fast_cnp }.emit(self.option_types, into)
    }
}

/// Whether data, of a request or a READ response, have come with a mark.
fn is_marked(packet: &Inbound<'_>) -> bool {
    let opcode = packet.headers.bth.opcode();
    packet.headers.ipv6.ecn() == Ecn::Ce && (opcode.is_request() || opcode.is_read_response())
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
