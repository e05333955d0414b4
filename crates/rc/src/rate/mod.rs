//! Rate control of a queue pair: congestion signals in, a rate and a window out.
//!
//! ```text
//!   sent, acknowledged, lost ──►┌─────────────┐──► rate ───► pacing: when the next packet is due
//!   CNP, Fast CNP, its trace ──►│ RateControl │
//!   time ──────────────────────►└─────────────┘──► window ─► how much may be in flight
//! ```
//!
//! [`RateControl`] is the trait; [`Dcqcn`], [`Hpcc`], [`Nscc`] and [`FixedRate`] are in the box, and
//! [`Endpoint::set_rate_control`](crate::Endpoint::set_rate_control) takes any other. A queue pair without one sends as
//! fast as its port lets it, and pays nothing for what it does not use.

mod dcqcn;
mod hpcc;
mod nscc;
pub(crate) mod pacing;

pub use dcqcn::{AlphaUpdate, Dcqcn, DcqcnParameters, IncastScale, TargetUpdate};
pub use hpcc::{Hpcc, HpccParameters, Recovery};
pub use nscc::{Nscc, NsccParameters};

use core::fmt;
use core::net::Ipv6Addr;
use srdma_wire::Instant;
use srdma_wire::ioam::Trace;

/// Event at a sender.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A data packet, a request with payload or a READ response, was sent.
    Sent {
        /// Octets that it takes on the link, with the endpoint's `link_overhead_octets`.
        octets: u32,
    },
    /// The peer has acknowledged data.
    Acknowledged {
        /// Octets that these took in flight, as [`RateControl::window_octets`] counts them.
        octets: u64,
    },
    /// An ACK has come for a packet that requested it, and that was sent only once; ahead of the
    /// [`Event::Acknowledged`] of the same ACK. Only if [`RateControl::takes_round_trips`].
    RoundTrip {
        /// From the packet's departure to the ACK's arrival.
        ns: u64,
        /// The ACK has BECN set: a switch has marked the packet (D283).
        is_marked: bool,
    },
    /// The extent of congestion that a CNP of the receiver tells; ahead of the CNP itself (D284).
    Incast {
        /// The receiver's congested flows, at least 1.
        flows: u16,
        /// Each gets one CNP in so many nanoseconds.
        period_ns: u64,
    },
    /// A CNP has come: a data packet met congestion somewhere (FC-3-2).
    Cnp,
    /// A Fast CNP has come.
    FastCnp {
        /// Its sender (FC-4-8).
        origin: Origin,
        /// The IOAM trace of a data packet, whole to its last node (FC-4-9): of the one that met congestion, up to the
        /// switch in front of the congested one; from the receiver, of any on its whole way.
        trace: Option<Trace<'a>>,
        /// The rate that the switch computed for each flow of the congested queue, in bits per second on the link;
        /// `None` if it computes none (D240).
        rate_bits_per_s: Option<u64>,
    },
    /// Data have to be sent again, after a sequence NAK or a timeout.
    Lost,
    /// [`RateControl::next_deadline`] is reached.
    Timer,
}

/// The sender of a Fast CNP, from its source address compared with the original destination in its option (FC-4-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The switch of this address, at which the packet met congestion.
    Switch(Ipv6Addr),
    /// The receiver of the data.
    Receiver,
}

/// Decides how fast one queue pair sends.
///
/// It is called with times that never run backwards. Whatever its own timers would have done up to that time counts
/// as done before the event: an implementation catches up first, so that it need not be called while nothing is to be
/// sent. Nothing here may allocate.
pub trait RateControl: fmt::Debug + Send {
    /// Something has happened at `now`.
    fn on(&mut self, now: Instant, event: Event<'_>);

    /// Rate of data packets on the link, in bits per second; `None` for the port's rate.
    fn rate_bits_per_s(&self) -> Option<u64>;

    /// Octets of requests that may be sent and not acknowledged, headers and link overhead included; `None` for as many
    /// as the queue pair allows. One packet may always be in flight, and a packet that begins inside the window may end
    /// outside.
    fn window_octets(&self) -> Option<u64> {
        None
    }

    /// Whether it takes [`Event::RoundTrip`]. Read once.
    fn takes_round_trips(&self) -> bool {
        false
    }

    /// When rate or window change next without an event; later than the last `now`. The queue pair reads it only
    /// while something waits to be sent.
    fn next_deadline(&self) -> Option<Instant>;
}

/// The initial rate control of a queue pair.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub enum RateAlgorithm {
    /// A rate that nothing changes, in bits per second on the link.
    Fixed {
        /// The rate, at least 1.
        bits_per_s: u64,
    },
    Dcqcn(DcqcnParameters),
    Hpcc(HpccParameters),
    Nscc(NsccParameters),
}

impl RateAlgorithm {
    /// The rate control itself.
    ///
    /// # Errors
    ///
    /// The first parameter that is out of its range.
    pub fn build(&self) -> Result<Box<dyn RateControl>, RateError> {
        Ok(match self {
            RateAlgorithm::Fixed { bits_per_s } => Box::new(FixedRate::new(*bits_per_s)?),
            RateAlgorithm::Dcqcn(parameters) => Box::new(Dcqcn::new(parameters.clone())?),
            RateAlgorithm::Hpcc(parameters) => Box::new(Hpcc::new(parameters.clone())?),
            RateAlgorithm::Nscc(parameters) => Box::new(Nscc::new(parameters.clone())?),
        })
    }
}

/// A parameter of a rate control is outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} must be {expected}, found {found}")]
pub struct RateError {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Its range in words.
    pub expected: String,
    /// Its value.
    pub found: String,
}

/// Returns an error unless `is_good`.
pub(crate) fn require(
    parameter: &'static str,
    found: f64,
    is_good: bool,
    expected: &'static str,
) -> Result<(), RateError> {
    if is_good { Ok(()) } else { Err(RateError { parameter, expected: expected.to_owned(), found: found.to_string() }) }
}

/// Returns an error when `found` is below `least`.
pub(crate) fn require_at_least(parameter: &'static str, found: u64, least: u64) -> Result<(), RateError> {
    if found >= least {
        Ok(())
    } else {
        Err(RateError { parameter, expected: format!("at least {least}"), found: found.to_string() })
    }
}

/// Returns an error unless the least rate is one that the port has.
pub(crate) fn require_min_rate(found: u64, line_rate_bits_per_s: u64) -> Result<(), RateError> {
    let is_good = (1..=line_rate_bits_per_s).contains(&found);
    require("min_rate_bits_per_s", found as f64, is_good, "at least 1 and at most line_rate_bits_per_s")
}

/// A rate that nothing changes.
#[derive(Clone, Debug)]
pub struct FixedRate {
    bits_per_s: u64,
}

impl FixedRate {
    /// A rate in bits per second on the link.
    ///
    /// # Errors
    ///
    /// If it is zero.
    pub fn new(bits_per_s: u64) -> Result<Self, RateError> {
        require_at_least("bits_per_s", bits_per_s, 1)?;
        Ok(FixedRate { bits_per_s })
    }
}

impl RateControl for FixedRate {
    fn on(&mut self, _now: Instant, _event: Event<'_>) {}

    fn rate_bits_per_s(&self) -> Option<u64> {
        Some(self.bits_per_s)
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// Rate limits of a queue pair at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Bits per second on the link; `None` for as fast as the port can.
    pub rate_bits_per_s: Option<u64>,
    /// Octets in flight; `None` for no limit but that of outstanding PSNs.
    pub window_octets: Option<u64>,
}
