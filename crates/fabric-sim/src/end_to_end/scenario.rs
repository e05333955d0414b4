//! Scenarios of kind `end-to-end`. `docs/scenarios.md` describes the keys.

use crate::scenario::{DcqcnKeys, Fraction, Hosts, Kind, Scenario, Switches, Whole, default_seeds};
use crate::wan::figure::{self, HOSTS_PER_LEAF, LEAVES};
use crate::wan::{Congested, Distances};
use serde::Deserialize;
use srdma_fabric::{NodeId, SwitchId};
use srdma_toml_error::{FileError, Problem};
use std::path::Path;
use toml::Spanned;

/// A stream from end to end.
#[derive(Clone, Debug)]
pub struct EndToEndScenario {
    /// Title of tables and reports.
    pub title: String,
    /// Introduction of the report.
    pub description: String,
    /// Default number of seeds: 1, 2, and so on.
    pub seeds: u64,
    /// The stream, the congestion, loss and restart.
    pub section: Section,
    /// Parameters of hosts.
    pub hosts: Hosts,
    /// Parameters of the switches in the data centres.
    pub switches: Switches,
    /// The switches that may restart, as `section.restart` names them.
    pub(super) restarting: Vec<SwitchId>,
}

/// The stream, the congestion, loss and restart.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The congested node.
    pub congested: Congested,
    /// Length of the path between the PEs, in kilometres.
    total_km: Spanned<f64>,
    /// Length of PE1–R1, in kilometres.
    first_hop_km: f64,
    /// Octets that each receiver is to have at the end.
    pub octets: Whole<1, 1_073_741_824>,
    #[serde(default = "message_octets")]
    pub message_octets: Whole<1, 1_073_741_824>,
    /// Leaves of the second data centre with receivers.
    pub edges: Spanned<Whole<1, { LEAVES as u64 }>>,
    /// Receivers below each.
    pub receivers_per_edge: Whole<1, { HOSTS_PER_LEAF as u64 }>,
    /// Probability of losing a frame, on each link and in each direction.
    #[serde(default = "no_loss")]
    pub loss: Fraction,
    /// Number of other senders to the second data centre, at line rate until the stream ends.
    #[serde(default = "no_senders")]
    pub senders: Whole<0, 15>,
    /// Size of the congested queue, as a share of its rate times the round trip between the gateways.
    #[serde(default = "default_buffer")]
    buffer: Spanned<f64>,
    /// Hold time of END.C, in microseconds.
    #[serde(default = "hold_us")]
    pub hold_us: Whole<10, 10_000_000>,
    /// Maximum duration of a run, in milliseconds.
    #[serde(default = "limit_ms")]
    pub limit_ms: Whole<1, 10_000>,
    /// Parameters of DCQCN that differ from the published ones.
    #[serde(default)]
    pub dcqcn: DcqcnKeys,
    pub restart: Option<Restart>,
}

/// A switch that restarts without its state and is configured as before.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Switches that restart, in turn by seed.
    pub nodes: Vec<Spanned<String>>,
    /// Start of the restart, in microseconds.
    pub at_us: Whole<1, 10_000_000>,
    /// Duration of the restart, in microseconds.
    pub down_us: Whole<1, 10_000_000>,
}

fn message_octets() -> Whole<1, 1_073_741_824> {
    Whole(1 << 20)
}

fn no_loss() -> Fraction {
    Fraction::ZERO
}

fn no_senders() -> Whole<0, 15> {
    Whole(0)
}

fn default_buffer() -> Spanned<f64> {
    Spanned::new(0..0, 1.0)
}

fn hold_us() -> Whole<10, 10_000_000> {
    Whole(10_000)
}

fn limit_ms() -> Whole<1, 10_000> {
    Whole(2000)
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "kind")]
    _kind: Kind,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default = "default_seeds")]
    seeds: Whole<1, 1000>,
    end_to_end: Section,
    #[serde(default)]
    hosts: Hosts,
    #[serde(default)]
    switches: Switches,
}

impl EndToEndScenario {
    /// Parses the content of a file of kind `end-to-end`; `file` is for errors.
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::parse`], and a file of another kind.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        match Scenario::parse(file, text)? {
            Scenario::EndToEnd(scenario) => Ok(*scenario),
            other => Err(other.unexpected(file, text, "end-to-end")),
        }
    }

    pub(crate) fn resolve(text: &str) -> Result<Self, Problem> {
        let file: File = toml::from_str(text).map_err(|error| Problem::of_toml(&error, text))?;
        let File { _kind, title, description, seeds, end_to_end: section, hosts, switches } = file;
        hosts.check()?;
        let restarting = section.check()?;
        Ok(EndToEndScenario { title, description, seeds: seeds.get(), section, hosts, switches, restarting })
    }

    /// The switch that restarts with a seed.
    pub(super) fn restarting(&self, seed: u64) -> Option<SwitchId> {
        let turn = seed.wrapping_sub(1).checked_rem(self.restarting.len() as u64)?;
        self.restarting.get(turn as usize).copied()
    }
}

impl Section {
    /// The hops of the path.
    pub fn distances(&self) -> Distances {
        Distances::with_first_hop(*self.total_km.get_ref(), self.first_hop_km)
    }

    /// The congested queue, as a share of its rate times the round trip between the gateways.
    pub fn buffer(&self) -> f64 {
        *self.buffer.get_ref()
    }

    /// Number of receivers.
    pub fn receivers(&self) -> usize {
        (self.edges.get_ref().get() * self.receivers_per_edge.get()) as usize
    }

    /// Checks relations between keys. Returns the switches that may restart.
    fn check(&self) -> Result<Vec<SwitchId>, Problem> {
        let distances = self.distances();
        distances.check().map_err(|text| Problem::new(self.total_km.span().start, text))?;
        if !(0.001..=100.0).contains(self.buffer.get_ref()) {
            let text = format!("buffer {}: expected 0.001 to 100 of rate times round trip", self.buffer.get_ref());
            return Err(Problem::new(self.buffer.span().start, text));
        }
        let (edges, senders) = (self.edges.get_ref().get(), self.senders.get());
        if edges + senders > u64::from(LEAVES) {
            let text = format!("{edges} edges and {senders} senders: expected {LEAVES} of both together at most");
            return Err(Problem::new(self.edges.span().start, text));
        }
        let Some(restart) = &self.restart else { return Ok(Vec::new()) };
        // Only a defect causes an error.
        let topology = figure::topology(&distances, self.congested)
            .map_err(|error| Problem::new(self.total_km.span().start, error.to_string()))?;
        let known = |name: &Spanned<String>| match topology.node(name.get_ref()) {
            Some(NodeId::Switch(switch)) => Ok(switch),
            Some(NodeId::Host(_)) | None => {
                let text = format!("{:?} is no switch of the network, as dc2.leaf1 or R1 are", name.get_ref());
                Err(Problem::new(name.span().start, text))
            }
        };
        restart.nodes.iter().map(known).collect()
    }
}
