//! Variants: the congestion signals of hosts, and their reactions.

use super::{Ecn, Fraction, Notification, Pfc, Reconvergence, Whole};
use serde::Deserialize;
use srdma_rc::rate::{DcqcnParameters, HpccParameters, IncastScale, NsccParameters};
use std::path::Path;

/// A variant of a comparison.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// A short name, unique in the scenario.
    pub name: String,
    /// Method of a sweep that it is a combination of; otherwise its name is the method's.
    #[serde(skip)]
    pub method: String,
    /// Title in reports; default: the name.
    #[serde(default)]
    pub title: String,
    /// Congestion signal to senders.
    pub signal: Signal,
    /// Rate control of senders.
    pub control: Control,
    /// Whether switches send PFC frames.
    #[serde(default = "default_true")]
    pub pfc: bool,
    /// Whether this is the variant that others are compared with.
    #[serde(default)]
    pub baseline: bool,
    /// Overrides the ECN marking of the switches.
    pub ecn: Option<Ecn>,
    /// Overrides the PFC thresholds of the switches.
    pub pfc_thresholds: Option<Pfc>,
    /// Overrides the Fast CNP parameters of the switches.
    pub notification: Option<Notification>,
    /// Overrides the CNP interval of the hosts, in nanoseconds.
    pub cnp_interval_ns: Option<Whole<0, 1_000_000_000>>,
    /// DCQCN+: minimum interval of all CNPs of a host, in nanoseconds (D284).
    pub cnp_pace_ns: Option<Whole<1, 1_000_000>>,
    /// Parameters of DCQCN that differ from the published ones.
    #[serde(default)]
    pub dcqcn: DcqcnKeys,
    /// Parameters of HPCC++ that differ from the published ones.
    #[serde(default)]
    pub hpcc: HpccKeys,
    /// Parameters of NSCC that differ from the published ones.
    #[serde(default)]
    pub nscc: NsccKeys,
    /// Time until routes change, in place of that of the switches.
    pub reconvergence: Option<Reconvergence>,
    /// Path selection for the flows of jobs.
    #[serde(default)]
    pub paths: Paths,
    /// Number of queue pairs of each flow of a job.
    #[serde(default = "one")]
    pub queue_pairs: Whole<1, 64>,
    /// Whether NICs move flows from bad paths (PP-4-6).
    #[serde(default)]
    pub steering: bool,
    /// Probe interval of a path with steering, in microseconds (D85).
    #[serde(default = "default_probe_interval")]
    pub probe_interval_us: Whole<1, 1_000_000>,
}

/// Path selection for a flow of a job. All other traffic is hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paths {
    /// Each switch hashes the packet's addresses, flow label, UDP source port and queue pair.
    #[default]
    Ecmp,
    /// The sender chooses a random shortest path.
    Random,
    /// Greedy: each flow in turn takes the shortest path with the lowest maximum link load.
    Greedy,
    /// A scheduler places all flows (PP-4-1).
    Placed,
}

fn one() -> Whole<1, 64> {
    Whole(1)
}

fn default_probe_interval() -> Whole<1, 1_000_000> {
    Whole(1000)
}

/// Congestion signal to senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// No signal.
    None,
    /// Switches mark packets, receivers send CNPs.
    ReceiverCnp,
    /// Switches send Fast CNPs.
    FastCnp,
    /// Receivers return the traces of data packets; switches neither mark nor notify.
    ReceiverTrace,
    /// Switches mark packets, and ACKs tell whether the packet that requested them was marked (D283).
    ReceiverEcho,
}

impl Signal {
    /// Whether hosts accept Fast CNPs: those of switches, and those by which receivers return traces.
    pub(crate) fn has_fast_cnps(self) -> bool {
        match self {
            Signal::None | Signal::ReceiverCnp | Signal::ReceiverEcho => false,
            Signal::FastCnp | Signal::ReceiverTrace => true,
        }
    }

    /// Whether data packets are ECN-capable.
    pub(crate) fn has_marks(self) -> bool {
        match self {
            Signal::None | Signal::ReceiverTrace => false,
            Signal::ReceiverCnp | Signal::FastCnp | Signal::ReceiverEcho => true,
        }
    }

    /// Whether the receiver of a flow answers marks by CNPs.
    pub(crate) fn has_cnps(self) -> bool {
        self.has_marks() && !self.has_echoes()
    }

    /// Whether the receiver of a flow repeats marks in its ACKs.
    pub(crate) fn has_echoes(self) -> bool {
        match self {
            Signal::None | Signal::ReceiverTrace | Signal::ReceiverCnp | Signal::FastCnp => false,
            Signal::ReceiverEcho => true,
        }
    }
}

/// Rate control of a sender.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// None: link rate, window and PAUSE are the only limits.
    None,
    Dcqcn,
    /// DCQCN+ (D284).
    DcqcnPlus,
    Hpcc,
    Nscc,
}

/// Parameters of DCQCN: a published set with overrides.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DcqcnKeys {
    /// The set.
    pub preset: DcqcnPreset,
    /// g: weight of a new observation in the estimate of congestion.
    pub g: Option<Fraction>,
    /// Update interval of the estimate, in nanoseconds.
    pub alpha_interval_ns: Option<Whole<100, 1_000_000_000>>,
    /// Minimum interval of decreases, in nanoseconds.
    pub decrease_interval_ns: Option<Whole<0, 1_000_000_000>>,
    /// Interval of increases, in nanoseconds.
    pub increase_timer_ns: Option<Whole<1000, 1_000_000_000>>,
    /// Octets between increases; 0: only by time.
    pub octets_per_increase: Option<Whole<0, 1_073_741_824>>,
    /// F: number of increases in fast recovery.
    pub fast_recovery_increases: Option<Whole<0, 1000>>,
    /// R_AI in bits per second.
    pub additive_increase_bits_per_s: Option<Whole<1, 1_000_000_000_000>>,
    /// R_HAI in bits per second.
    pub hyper_increase_bits_per_s: Option<Whole<1, 1_000_000_000_000>>,
    /// Minimum rate in bits per second.
    pub min_rate_bits_per_s: Option<Whole<1, 1_000_000_000_000>>,
}

/// A published set of parameters of DCQCN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DcqcnPreset {
    /// Those of the paper, for 40 Gbit/s.
    #[serde(rename = "sigcomm-2015")]
    Sigcomm2015,
    /// Defaults of ConnectX NICs.
    #[serde(rename = "connectx")]
    ConnectX,
    /// The parameters that the authors of HPCC compared with, "suggested by the vendor".
    #[default]
    #[serde(rename = "hpcc-vendor")]
    HpccVendor,
    /// The same with the intervals of the paper.
    #[serde(rename = "hpcc-paper")]
    HpccPaper,
}

impl DcqcnKeys {
    /// Those of DCQCN+ for a port of this rate, where each flow gets at most one CNP in so many nanoseconds.
    pub fn plus(&self, line_rate_bits_per_s: u64, cnp_interval_ns: u64) -> DcqcnParameters {
        let incast = Some(IncastScale { period_ns: cnp_interval_ns.max(1000) });
        DcqcnParameters { incast, ..self.parameters(line_rate_bits_per_s) }
    }

    /// The parameters for a port of this rate.
    pub fn parameters(&self, line_rate_bits_per_s: u64) -> DcqcnParameters {
        let mut parameters = match self.preset {
            DcqcnPreset::Sigcomm2015 => DcqcnParameters::sigcomm_2015(line_rate_bits_per_s),
            DcqcnPreset::ConnectX => DcqcnParameters::connectx(line_rate_bits_per_s),
            DcqcnPreset::HpccVendor => DcqcnParameters::hpcc_vendor(line_rate_bits_per_s),
            DcqcnPreset::HpccPaper => DcqcnParameters::hpcc_paper(line_rate_bits_per_s),
        };
        let or = |key: Option<u64>, preset: &mut u64| *preset = key.unwrap_or(*preset);
        or(self.alpha_interval_ns.map(Whole::get), &mut parameters.alpha_interval_ns);
        or(self.decrease_interval_ns.map(Whole::get), &mut parameters.decrease_interval_ns);
        or(self.increase_timer_ns.map(Whole::get), &mut parameters.increase_timer_ns);
        or(self.additive_increase_bits_per_s.map(Whole::get), &mut parameters.additive_increase_bits_per_s);
        or(self.hyper_increase_bits_per_s.map(Whole::get), &mut parameters.hyper_increase_bits_per_s);
        or(self.min_rate_bits_per_s.map(Whole::get), &mut parameters.min_rate_bits_per_s);
        parameters.g = self.g.map_or(parameters.g, Fraction::get);
        if let Some(octets) = self.octets_per_increase {
            parameters.octets_per_increase = Some(octets.get()).filter(|octets| *octets > 0);
        }
        if let Some(increases) = self.fast_recovery_increases {
            parameters.fast_recovery_increases = increases.get() as u32;
        }
        parameters
    }
}

/// Parameters of HPCC++; those left out are the published ones (Li and others, "HPCC: High Precision Congestion
/// Control", SIGCOMM 2019; draft-miao-ccwg-hpcc).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HpccKeys {
    /// η: target utilisation.
    pub eta: Option<Fraction>,
    /// Number of additive increases before a multiplicative one.
    pub max_stage: Option<Whole<0, 1000>>,
    /// W_AI in octets.
    pub additive_octets: Option<Whole<1, 1_073_741_824>>,
    /// W_AI of the source of a multicast group, in octets: it reduces its window for the links of all its receivers,
    /// where another sender does for those of one.
    pub group_additive_octets: Option<Whole<1, 1_073_741_824>>,
    /// Round-trip time of an idle fabric, in nanoseconds.
    pub base_rtt_ns: Option<Whole<1, 1_000_000_000>>,
    /// Interval of traces that a receiver returns, in nanoseconds.
    pub feedback_interval_ns: Option<Whole<0, 1_000_000_000>>,
}

/// Default interval of returned traces, in nanoseconds.
const FEEDBACK_INTERVAL_NS: u64 = 5_000;

impl HpccKeys {
    /// The parameters for a port of this rate in a fabric with this round trip.
    pub fn parameters(&self, line_rate_bits_per_s: u64, base_rtt_ns: u64, namespace_id: u16) -> HpccParameters {
        let base_rtt_ns = self.base_rtt_ns.map_or(base_rtt_ns, Whole::get);
        let mut parameters = HpccParameters::published(line_rate_bits_per_s, base_rtt_ns, namespace_id);
        parameters.eta = self.eta.map_or(parameters.eta, Fraction::get);
        parameters.max_stage = self.max_stage.map_or(parameters.max_stage, |stages| stages.get() as u32);
        let step = &mut parameters.additive_increase_octets;
        *step = self.additive_octets.map_or(*step, Whole::get);
        parameters
    }

    /// The same for the source of a multicast group.
    pub fn of_group(self) -> Self {
        HpccKeys { additive_octets: self.group_additive_octets.or(self.additive_octets), ..self }
    }

    /// Interval of traces that a receiver returns, in nanoseconds.
    pub fn feedback_interval_ns(&self) -> u64 {
        self.feedback_interval_ns.map_or(FEEDBACK_INTERVAL_NS, Whole::get)
    }
}

/// Parameters of NSCC; those left out are the published ones (D283).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NsccKeys {
    /// Round-trip time of an idle fabric, in nanoseconds.
    pub base_rtt_ns: Option<Whole<1000, 1_000_000_000>>,
    /// The delay in queues that is aimed at, in nanoseconds.
    pub target_delay_ns: Option<Whole<1, 1_000_000_000>>,
    /// γ: strength of the decrease.
    pub gamma: Option<Fraction>,
    /// What an unmarked ACK with more delay than that adds for each window, in octets.
    pub fair_octets: Option<Whole<0, 1_073_741_824>>,
    /// What is added in each round trip, in octets.
    pub additive_octets: Option<Whole<0, 1_073_741_824>>,
}

impl NsccKeys {
    /// The parameters for a port of this rate in a fabric with this round trip, and packets of so many octets on the
    /// link.
    pub fn parameters(&self, line_rate_bits_per_s: u64, base_rtt_ns: u64, packet_octets: u64) -> NsccParameters {
        let base_rtt_ns = self.base_rtt_ns.map_or(base_rtt_ns, Whole::get);
        let mut parameters = NsccParameters::published(line_rate_bits_per_s, base_rtt_ns, packet_octets);
        parameters.target_delay_ns = self.target_delay_ns.map_or(parameters.target_delay_ns, Whole::get);
        parameters.gamma = self.gamma.map_or(parameters.gamma, Fraction::get);
        parameters.fair_octets = self.fair_octets.map_or(parameters.fair_octets, |octets| octets.get() as f64);
        parameters.additive_octets =
            self.additive_octets.map_or(parameters.additive_octets, |octets| octets.get() as f64);
        parameters
    }
}

fn default_true() -> bool {
    true
}

/// Default of [`Variant::cnp_pace_ns`].
const CNP_PACE_NS: u64 = 1_000;

impl Variant {
    /// Minimum interval of all CNPs of a host, with DCQCN+.
    pub fn cnp_pace_ns(&self) -> Option<u64> {
        (self.control == Control::DcqcnPlus).then(|| self.cnp_pace_ns.map_or(CNP_PACE_NS, Whole::get))
    }

    /// Name of its method.
    pub fn method(&self) -> &str {
        if self.method.is_empty() { &self.name } else { &self.method }
    }

    /// Title in reports.
    pub fn title(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }

    /// A variant with this signal and control, and defaults.
    pub(crate) fn new(name: &str, signal: Signal, control: Control) -> Self {
        Variant {
            name: name.to_owned(),
            method: String::new(),
            title: String::new(),
            signal,
            control,
            pfc: true,
            baseline: false,
            ecn: None,
            pfc_thresholds: None,
            notification: None,
            cnp_interval_ns: None,
            cnp_pace_ns: None,
            dcqcn: DcqcnKeys::default(),
            hpcc: HpccKeys::default(),
            nscc: NsccKeys::default(),
            reconvergence: None,
            paths: Paths::Ecmp,
            queue_pairs: one(),
            steering: false,
            probe_interval_us: default_probe_interval(),
        }
    }

    /// Reads the files that it names, beside this one.
    pub(super) fn read_files(&mut self, scenario: &Path) -> Result<(), String> {
        let Some(reconvergence) = &mut self.reconvergence else { return Ok(()) };
        reconvergence.read(scenario).map_err(|problem| format!("variant {:?}: {problem}", self.name))
    }

    /// Checks for contradictions.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.queue_pairs.get() > 1 && self.paths != Paths::Ecmp {
            return Err(format!(
                "variant {:?}: several queue pairs help hashes alone: expected paths = \"ecmp\"",
                self.name
            ));
        }
        if self.steering && self.paths != Paths::Placed {
            return Err(format!(
                "variant {:?}: steering begins with placed paths: expected paths = \"placed\"",
                self.name
            ));
        }
        match (self.signal, self.control) {
            (Signal::None, Control::None)
            | (Signal::ReceiverCnp | Signal::FastCnp, Control::Dcqcn)
            | (Signal::FastCnp | Signal::ReceiverTrace, Control::Hpcc)
            | (Signal::ReceiverCnp, Control::DcqcnPlus)
            | (Signal::ReceiverEcho, Control::Nscc) => Ok(()),
            (Signal::None, Control::Dcqcn | Control::DcqcnPlus | Control::Hpcc | Control::Nscc) => {
                Err(format!("variant {:?}: its control needs a signal", self.name))
            }
            (Signal::ReceiverCnp | Signal::FastCnp | Signal::ReceiverTrace | Signal::ReceiverEcho, Control::None) => {
                Err(format!("variant {:?}: nothing listens to its signal", self.name))
            }
            (Signal::FastCnp, Control::DcqcnPlus) => Err(format!(
                "variant {:?}: only a receiver knows the number of its flows: expected \"receiver-cnp\"",
                self.name
            )),
            (Signal::ReceiverTrace, Control::Dcqcn | Control::DcqcnPlus) => {
                Err(format!("variant {:?}: DCQCN reacts to CNPs, which a returned trace is not", self.name))
            }
            (Signal::ReceiverEcho, Control::Dcqcn | Control::DcqcnPlus | Control::Hpcc) => {
                Err(format!("variant {:?}: only NSCC reads the marks in ACKs", self.name))
            }
            (Signal::ReceiverCnp | Signal::FastCnp | Signal::ReceiverTrace, Control::Nscc) => {
                Err(format!("variant {:?}: NSCC needs the marks in ACKs: expected \"receiver-echo\"", self.name))
            }
            (Signal::ReceiverCnp, Control::Hpcc) => {
                Err(format!("variant {:?}: CNPs of receivers bring no trace, which HPCC++ needs", self.name))
            }
        }
    }
}
