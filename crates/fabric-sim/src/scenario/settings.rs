//! Parameters of hosts, switches and measures.

use super::{Fraction, Whole};
use serde::Deserialize;
use srdma_fabric::Topology;
use srdma_rc::Habits;
use srdma_toml_error::Problem;
use srdma_wire::PathMtu;
use toml::Spanned;

/// Parameters of all hosts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hosts {
    /// Octets of payload in a full packet: 256, 512, 1024, 2048 or 4096.
    path_mtu: Spanned<u32>,
    /// Window: maximum number of outstanding packets of a queue pair.
    pub outstanding_packets: Whole<1, 4_194_304>,
    /// The last packet of a message and every n-th packet request an acknowledgement.
    pub ack_every: Whole<1, 4_194_304>,
    /// Whether hosts verify the ICRC of received packets. A report states it when they do not.
    pub verify_icrc: bool,
    /// Minimum interval of CNPs of a receiver for a flow, in nanoseconds (FC-3-2).
    pub cnp_interval_ns: Whole<0, 1_000_000_000>,
    /// Local ACK timeout code t: 4.096 µs · 2^t.
    pub ack_timeout: Whole<1, 31>,
}

impl Default for Hosts {
    fn default() -> Self {
        Hosts {
            path_mtu: Spanned::new(0..0, 4096),
            outstanding_packets: Whole(Habits::soft_roce().max_outstanding_psns.into()),
            ack_every: Whole(Habits::soft_roce().ack_request_interval.into()),
            verify_icrc: true,
            cnp_interval_ns: Whole(50_000),
            ack_timeout: Whole(14),
        }
    }
}

impl Hosts {
    /// Payload of a full packet.
    pub fn path_mtu(&self) -> PathMtu {
        PathMtu::from_octets(*self.path_mtu.as_ref()).unwrap_or(PathMtu::Octets4096)
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        let (at, found) = (self.path_mtu.span().start, *self.path_mtu.as_ref());
        match PathMtu::from_octets(found) {
            Some(_) => Ok(()),
            None => Err(Problem::new(at, format!("path_mtu {found}: expected 256, 512, 1024, 2048 or 4096"))),
        }
    }
}

/// Parameters of all switches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switches {
    /// Queue limit of the data class at a port, in octets.
    pub queue_limit_octets: Whole<1, 1_000_000_000>,
    /// ECN marking.
    pub ecn: Ecn,
    /// PFC thresholds.
    pub pfc: Pfc,
    /// Fast CNP parameters.
    pub notification: Notification,
    /// Convergence time: microseconds from a failure or repair to new routes.
    pub reconvergence_us: Whole<0, 10_000_000>,
}

impl Default for Switches {
    fn default() -> Self {
        Switches {
            queue_limit_octets: Whole(16_000_000),
            ecn: Ecn::default(),
            pfc: Pfc::default(),
            notification: Notification::default(),
            reconvergence_us: Whole(100_000),
        }
    }
}

/// ECN marking of a queue: never below K_min, with a probability that rises to P_max at K_max, always above.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Ecn {
    pub k_min_octets: Whole<0, 1_000_000_000>,
    pub k_max_octets: Whole<0, 1_000_000_000>,
    /// P_max.
    pub p_max: Fraction,
    /// K_min at ports toward other switches, if different.
    pub fabric_k_min_octets: Option<Whole<0, 1_000_000_000>>,
    /// K_max at ports toward other switches, if different.
    pub fabric_k_max_octets: Option<Whole<0, 1_000_000_000>>,
}

impl Default for Ecn {
    /// Values of the HPCC paper for DCQCN at 25 Gbit/s, times four: 100 KB, 400 KB, 0.2 at 100 Gbit/s.
    fn default() -> Self {
        Ecn {
            k_min_octets: Whole(400_000),
            k_max_octets: Whole(1_600_000),
            p_max: Fraction(0.2),
            fabric_k_min_octets: None,
            fabric_k_max_octets: None,
        }
    }
}

/// 802.1Qbb: thresholds for pausing the data class of a neighbour.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pfc {
    /// XOFF: octets from one ingress port, in any queue, from which on the neighbour is paused.
    pub xoff_octets: Whole<1, 1_000_000_000>,
    /// XON: octets below which the neighbour is resumed.
    pub xon_octets: Whole<0, 1_000_000_000>,
    /// Octets beyond XOFF that are reserved for frames in flight.
    pub headroom_octets: Whole<0, 1_000_000_000>,
}

impl Default for Pfc {
    fn default() -> Self {
        Pfc { xoff_octets: Whole(500_000), xon_octets: Whole(480_000), headroom_octets: Whole(200_000) }
    }
}

/// Fast CNP parameters of switches.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notification {
    /// Queue length from which on Fast CNPs are sent, in octets.
    pub threshold_octets: Whole<0, 1_000_000_000>,
    /// The same at ports toward other switches, if different: queues toward a host contain only packets to that host,
    /// those toward switches also packets of flows that do not cause the congestion.
    pub fabric_threshold_octets: Option<Whole<0, 1_000_000_000>>,
    /// Minimum interval of notifications of a flow, in nanoseconds (D45).
    pub interval_ns: Whole<0, 1_000_000_000>,
    /// Maximum number of notifications of a switch per second (D45).
    pub per_second: Whole<1, 1_000_000_000>,
    /// Whether packets of flows that were notified within the interval are marked (D45), so that their receivers send
    /// CNPs as well.
    pub mark_notified: bool,
    /// Fast CNPs carry the rate of a flow with which a queue above its threshold drains in this time, in nanoseconds;
    /// without it none (D240).
    pub drain_ns: Option<Whole<1000, 1_000_000_000>>,
}

impl Default for Notification {
    fn default() -> Self {
        Notification {
            threshold_octets: Whole(100_000),
            fabric_threshold_octets: None,
            interval_ns: Whole(50_000),
            per_second: Whole(1_000_000),
            mark_notified: true,
            drain_ns: None,
        }
    }
}

/// Duration and measures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measures {
    /// Virtual time in microseconds after which no flow starts and streams end.
    pub duration_us: Whole<1, 10_000_000>,
    /// Time for flows to finish after that, in microseconds; the others count as unfinished.
    #[serde(default = "default_drain")]
    pub drain_us: Whole<0, 10_000_000>,
    /// Sampling interval of time series, in nanoseconds.
    #[serde(default = "default_sample")]
    pub sample_ns: Whole<100, 1_000_000_000>,
    /// Flows up to this many octets are short.
    #[serde(default = "default_short")]
    pub short_flow_octets: Whole<1, 1_000_000_000>,
    /// Switches and hosts whose queues become time series: all queues of a switch, and the queue toward a host.
    /// Receivers of incasts are always included.
    #[serde(default)]
    pub queues_of: Vec<Spanned<String>>,
    /// Whether each run has a control run without incasts, with which the rates of streams are compared.
    #[serde(default)]
    pub control_run: bool,
}

fn default_drain() -> Whole<0, 10_000_000> {
    Whole(20_000)
}

fn default_sample() -> Whole<100, 1_000_000_000> {
    Whole(10_000)
}

fn default_short() -> Whole<1, 1_000_000_000> {
    Whole(100_000)
}

impl Measures {
    /// A duration and defaults.
    pub(crate) fn with_duration(duration_us: Whole<1, 10_000_000>) -> Self {
        Measures {
            duration_us,
            drain_us: default_drain(),
            sample_ns: default_sample(),
            short_flow_octets: default_short(),
            queues_of: Vec::new(),
            control_run: false,
        }
    }

    pub(super) fn check(&self, topology: &Topology) -> Result<(), Problem> {
        for name in &self.queues_of {
            if topology.node(name.as_ref()).is_none() {
                let text = format!("queues_of: there is no switch or host {:?} in the topology", name.as_ref());
                return Err(Problem::new(name.span().start, text));
            }
        }
        Ok(())
    }
}
