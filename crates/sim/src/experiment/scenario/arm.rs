//! Arms: how hosts learn of congestion, and what they make of it.

use super::{Ecn, Fraction, Notification, Pfc, Whole};
use serde::Deserialize;

/// An arm of a comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// A short name, unique in the scenario.
    pub name: String,
    /// What reports call it; without it, its name.
    #[serde(default)]
    pub title: String,
    /// How senders learn of congestion.
    pub signal: Signal,
    /// What they make of it.
    pub control: Control,
    /// Whether switches pause their neighbours.
    #[serde(default = "yes")]
    pub pfc: bool,
    /// Whether others are compared with this arm.
    #[serde(default)]
    pub baseline: bool,
    /// ECN marking in place of that of the switches.
    pub ecn: Option<Ecn>,
    /// Thresholds of PFC in place of those of the switches.
    pub pfc_thresholds: Option<Pfc>,
    /// When switches tell senders, in place of what the switches have.
    pub notification: Option<Notification>,
    /// Parameters of DCQCN that differ from the published ones.
    #[serde(default)]
    pub dcqcn: DcqcnKeys,
    /// Parameters of HPCC++ that differ from the published ones.
    #[serde(default)]
    pub hpcc: HpccKeys,
}

/// How senders learn of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// Not at all.
    None,
    /// Switches mark packets, receivers answer marks with CNPs.
    ReceiverCnp,
    /// Switches send Fast CNPs.
    FastCnp,
}

/// What a sender makes of what it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Nothing: it sends as fast as its link, its window and PAUSE allow.
    None,
    /// DCQCN.
    Dcqcn,
    /// HPCC++.
    Hpcc,
}

/// Parameters of DCQCN; those left out are the published ones (Zhu and others, "Congestion Control for Large-Scale RDMA
/// Deployments", SIGCOMM 2015).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DcqcnKeys {
    /// g: weight of a new observation in the estimate of congestion.
    pub g: Option<Fraction>,
    /// Nanoseconds without a CNP after which that estimate is renewed.
    pub alpha_timer_ns: Option<Whole<1, 1_000_000_000>>,
    /// Nanoseconds from increase to increase of the rate.
    pub rate_timer_ns: Option<Whole<1, 1_000_000_000>>,
    /// Octets sent from increase to increase of the rate.
    pub byte_counter_octets: Option<Whole<1, 1_073_741_824>>,
    /// F: increases of fast recovery.
    pub fast_recovery_steps: Option<Whole<1, 1000>>,
    /// R_AI in bits a second.
    pub additive_bits_per_s: Option<Whole<1, 1_000_000_000_000>>,
    /// R_HAI in bits a second.
    pub hyper_bits_per_s: Option<Whole<1, 1_000_000_000_000>>,
    /// The least rate in bits a second.
    pub min_rate_bits_per_s: Option<Whole<1, 1_000_000_000_000>>,
    /// Nanoseconds after a decrease within which no further one follows.
    pub decrease_interval_ns: Option<Whole<0, 1_000_000_000>>,
}

/// Parameters of HPCC++; those left out are the published ones (Li and others, "HPCC: High Precision Congestion
/// Control", SIGCOMM 2019; draft-miao-ccwg-hpcc).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HpccKeys {
    /// η: the utilisation that is aimed at.
    pub eta: Option<Fraction>,
    /// Additive increases before a multiplicative one.
    pub max_stage: Option<Whole<0, 1000>>,
    /// W_AI in octets.
    pub additive_octets: Option<Whole<1, 1_073_741_824>>,
    /// The round-trip time of an idle fabric, in nanoseconds.
    pub base_rtt_ns: Option<Whole<1, 1_000_000_000>>,
    /// Nanoseconds from trace to trace that a receiver sends back.
    pub feedback_interval_ns: Option<Whole<0, 1_000_000_000>>,
}

fn yes() -> bool {
    true
}

impl Arm {
    /// What reports call it.
    pub fn title(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }

    /// What contradicts itself, if anything does.
    pub(super) fn check(&self) -> Result<(), String> {
        match (self.signal, self.control) {
            (Signal::None, Control::None)
            | (Signal::ReceiverCnp | Signal::FastCnp, Control::Dcqcn)
            | (Signal::FastCnp, Control::Hpcc) => Ok(()),
            (Signal::None, Control::Dcqcn | Control::Hpcc) => {
                Err(format!("arm {:?}: its control needs a signal", self.name))
            }
            (Signal::ReceiverCnp | Signal::FastCnp, Control::None) => {
                Err(format!("arm {:?}: nothing listens to its signal", self.name))
            }
            (Signal::ReceiverCnp, Control::Hpcc) => {
                Err(format!("arm {:?}: CNPs of receivers bring no trace, which HPCC++ needs", self.name))
            }
        }
    }
}
