//! Workloads.

use super::{Fraction, Whole};
use serde::Deserialize;
use srdma_fabric::{HostId, NextHops, NodeId, Topology};
use srdma_placement::job_file::JobSection;
use srdma_toml_error::Problem;
use toml::Spanned;

/// The workloads of a scenario; all run at once.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workloads {
    /// Many hosts send to one at the same time.
    pub incast: Vec<Incast>,
    /// Hosts send to each other at random times.
    pub background: Vec<Background>,
    /// Endless unicast flows.
    pub stream: Vec<Stream>,
    /// Every host sends to one other.
    pub permutation: Vec<Permutation>,
    /// Endless multicast flows.
    pub multicast: Vec<Multicast>,
    /// Data of a given size to groups.
    pub broadcast: Vec<Broadcast>,
    /// Collectives.
    pub job: Vec<Spanned<JobSection>>,
}

/// Bursts of simultaneous flows from many hosts to one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    receiver: Spanned<String>,
    /// Number of senders, drawn for each burst from the hosts that are not attached to the receiver's switch and are
    /// not part of a stream.
    pub senders: Spanned<usize>,
    /// Minimum octets of a flow; drawn uniformly up to `max_octets` for each sender.
    pub min_octets: Whole<1, 1_073_741_824>,
    /// Maximum octets of a flow.
    pub max_octets: Spanned<u64>,
    /// Start of the first burst, in microseconds.
    pub start_us: Whole<0, 10_000_000>,
    /// Interval of bursts in microseconds; without it there is one burst.
    pub period_us: Option<Whole<1, 10_000_000>>,
}

/// Poisson arrivals of flows between uniformly drawn hosts, with sizes from a published distribution.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Load: fraction of the rate of the hosts' links used by payload.
    pub load: Fraction,
    /// Distribution of sizes.
    pub sizes: FlowSizes,
    /// Excluded hosts.
    #[serde(default)]
    except: Vec<Spanned<String>>,
}

/// A published distribution of flow sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowSizes {
    /// Web search: Alizadeh and others, "Data Center TCP (DCTCP)", SIGCOMM 2010, as tabulated for the simulations of Li
    /// and others, "HPCC: High Precision Congestion Control", SIGCOMM 2019.
    WebSearch,
    /// Hadoop: Roy and others, "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, as tabulated for the
    /// same simulations.
    Hadoop,
}

/// An endless flow of consecutive messages, for example a victim.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Title in reports.
    pub name: String,
    from: Spanned<String>,
    to: Spanned<String>,
    /// A switch on a shortest path that all its data pass: traffic that cannot avoid it.
    pub(crate) via: Option<Spanned<String>>,
    /// Start in microseconds.
    #[serde(default = "at_once")]
    pub start_us: Whole<0, 10_000_000>,
    #[serde(default = "default_message_octets")]
    pub message_octets: Whole<1, 1_073_741_824>,
}

/// Every host sends to the host that a permutation without fixed points, drawn by the seed, assigns to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permutation {
    /// Octets of each flow.
    pub size_octets: Whole<1, 1_073_741_824>,
    /// Start in microseconds.
    #[serde(default = "at_once")]
    pub start_us: Whole<0, 10_000_000>,
}

/// An endless flow from one host to all hosts of some switches: each packet is sent once, and the switches
/// on the path replicate it and aggregate the receivers' responses.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// Title in reports.
    pub name: String,
    from: Spanned<String>,
    /// Switches whose hosts receive.
    receivers_below: Spanned<Vec<Spanned<String>>>,
    /// Start in microseconds.
    #[serde(default = "at_once")]
    pub start_us: Whole<0, 10_000_000>,
    #[serde(default = "default_message_octets")]
    pub message_octets: Whole<1, 1_073_741_824>,
}

/// So many octets from one host to all hosts of some switches, in consecutive messages, by a group as of [`Multicast`].
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {
    /// Title in reports.
    pub name: String,
    from: Spanned<String>,
    /// Switches whose hosts receive.
    receivers_below: Spanned<Vec<Spanned<String>>>,
    /// Octets that each receiver is to have at the end.
    pub size_octets: Whole<1, 1_000_000_000_000>,
    /// Start in microseconds.
    #[serde(default = "at_once")]
    pub start_us: Whole<0, 10_000_000>,
    #[serde(default = "default_message_octets")]
    pub message_octets: Whole<1, 1_073_741_824>,
    /// Target: the time until all receivers have acknowledged the last octet, relative to the size by the rate of the
    /// source's link.
    at_most: Option<Spanned<f64>>,
}

fn at_once() -> Whole<0, 10_000_000> {
    Whole(0)
}

fn default_message_octets() -> Whole<1, 1_073_741_824> {
    Whole(1 << 20)
}

impl Incast {
    /// The receiving host.
    pub fn receiver(&self, topology: &Topology) -> Option<HostId> {
        host(topology, &self.receiver)
    }
}

impl Background {
    /// The hosts to draw from, in the topology's order.
    pub fn hosts(&self, topology: &Topology) -> Vec<HostId> {
        let excepted: Vec<HostId> = self.except.iter().filter_map(|name| host(topology, name)).collect();
        topology.host_ids().filter(|host| !excepted.contains(host)).collect()
    }
}

impl Stream {
    /// The two hosts.
    pub fn ends(&self, topology: &Topology) -> Option<(HostId, HostId)> {
        Some((host(topology, &self.from)?, host(topology, &self.to)?))
    }

    /// The switch that the path includes.
    pub(crate) fn via(&self, topology: &Topology) -> Option<NodeId> {
        topology.node(self.via.as_ref()?.get_ref())
    }

    /// Checks that a shortest path includes the switch.
    fn check_via(&self, topology: &Topology) -> Result<(), Problem> {
        let (Some(name), Some((from, to))) = (&self.via, self.ends(topology)) else { return Ok(()) };
        let next_hops = NextHops::new(topology);
        let via = topology.switch_ids().find(|switch| topology.node(name.get_ref()) == Some(NodeId::Switch(*switch)));
        if via.is_some_and(|via| next_hops.is_between(topology, from, via, to)) {
            return Ok(());
        }
        let text = format!(
            "via: no shortest path from {} to {} goes by a switch {:?}",
            self.from.get_ref(),
            self.to.get_ref(),
            name.get_ref()
        );
        Err(Problem::new(name.span().start, text))
    }
}

impl Multicast {
    /// The sending host.
    pub fn source(&self, topology: &Topology) -> Option<HostId> {
        host(topology, &self.from)
    }

    /// The hosts that receive, in the topology's order.
    pub fn receivers(&self, topology: &Topology) -> Vec<HostId> {
        hosts_below(topology, &self.receivers_below)
    }
}

impl Broadcast {
    /// The sending host.
    pub fn source(&self, topology: &Topology) -> Option<HostId> {
        host(topology, &self.from)
    }

    /// The hosts that receive, in the topology's order.
    pub fn receivers(&self, topology: &Topology) -> Vec<HostId> {
        hosts_below(topology, &self.receivers_below)
    }

    /// The target: relative to the size by the rate of the source's link.
    pub fn at_most(&self) -> Option<f64> {
        self.at_most.as_ref().map(|factor| *factor.get_ref())
    }

    fn check(&self, topology: &Topology) -> Result<(), Problem> {
        check_group(topology, &self.from, &self.receivers_below)?;
        match &self.at_most {
            Some(factor) if !(1.0..=1000.0).contains(factor.get_ref()) => {
                let text = format!("at_most {}: expected 1 to 1000 of size by rate", factor.get_ref());
                Err(Problem::new(factor.span().start, text))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// All hosts of some switches, in the topology's order.
fn hosts_below(topology: &Topology, switches: &Spanned<Vec<Spanned<String>>>) -> Vec<HostId> {
    let switches: Vec<NodeId> = switches.as_ref().iter().filter_map(|name| topology.node(name.as_ref())).collect();
    let is_below = |host: &HostId| topology.attached_to(*host).any(|at| switches.contains(&NodeId::Switch(at)));
    topology.host_ids().filter(is_below).collect()
}

/// That a group has a source, and receivers below other switches.
fn check_group(
    topology: &Topology,
    from: &Spanned<String>,
    receivers_below: &Spanned<Vec<Spanned<String>>>,
) -> Result<(), Problem> {
    check_host(topology, from)?;
    let above_source: Vec<NodeId> =
        host(topology, from).into_iter().flat_map(|host| topology.attached_to(host)).map(NodeId::Switch).collect();
    for name in receivers_below.as_ref() {
        let node = topology.node(name.as_ref());
        let has_hosts = |at| topology.ports(at).iter().any(|port| matches!(port.peer.node, NodeId::Host(_)));
        let text = match node {
            Some(at @ NodeId::Switch(_)) if above_source.contains(&at) => {
                format!("receivers_below: {:?} is the source's own switch: expected another", name.as_ref())
            }
            Some(at @ NodeId::Switch(_)) if has_hosts(at) => continue,
            Some(_) | None => {
                format!("receivers_below: there is no switch {:?} with hosts in the topology", name.as_ref())
            }
        };
        return Err(Problem::new(name.span().start, text));
    }
    if receivers_below.as_ref().is_empty() {
        let text = "receivers_below: no receivers: expected at least one switch";
        return Err(Problem::new(receivers_below.span().start, text));
    }
    Ok(())
}

fn host(topology: &Topology, name: &Spanned<String>) -> Option<HostId> {
    match topology.node(name.as_ref())? {
        NodeId::Host(host) => Some(host),
        NodeId::Switch(_) => None,
    }
}

impl Workloads {
    /// Whether there are no workloads.
    pub fn is_empty(&self) -> bool {
        let Workloads { incast, background, stream, permutation, multicast, broadcast, job } = self;
        incast.is_empty()
            && background.is_empty()
            && stream.is_empty()
            && permutation.is_empty()
            && multicast.is_empty()
            && broadcast.is_empty()
            && job.is_empty()
    }

    /// Whether there are only jobs.
    pub(super) fn has_only_jobs(&self) -> bool {
        let Workloads { incast, background, stream, permutation, multicast, broadcast, job } = self;
        let groups = multicast.len() + broadcast.len();
        let others = [incast.len(), background.len(), stream.len(), permutation.len(), groups];
        !job.is_empty() && others == [0; 5]
    }

    /// Whether there are endless flows.
    pub fn has_endless(&self) -> bool {
        !self.stream.is_empty() || !self.multicast.is_empty()
    }

    pub(super) fn check(&self, topology: &Topology, text: &str) -> Result<(), Problem> {
        if self.is_empty() {
            return Err(Problem::new(text.len(), "nothing is sent: expected at least one [[workload.KIND]]"));
        }
        for incast in &self.incast {
            check_host(topology, &incast.receiver)?;
            check_count(topology, &incast.senders, "senders")?;
            let (most, least) = (*incast.max_octets.as_ref(), incast.min_octets.get());
            if most < least || most > 1 << 30 {
                let text = format!("max_octets {most}: expected an integer from min_octets, {least}, to {}", 1 << 30);
                return Err(Problem::new(incast.max_octets.span().start, text));
            }
        }
        let check_multicast = |group: &Multicast| check_group(topology, &group.from, &group.receivers_below);
        self.multicast.iter().try_for_each(check_multicast)?;
        self.broadcast.iter().try_for_each(|broadcast| broadcast.check(topology))?;
        for background in &self.background {
            background.except.iter().try_for_each(|name| check_host(topology, name))?;
            if let (Some(last), true) = (background.except.last(), background.hosts(topology).len() < 2) {
                return Err(Problem::new(last.span().start, "except: expected that two hosts are left at least"));
            }
        }
        for stream in &self.stream {
            check_host(topology, &stream.from)?;
            check_host(topology, &stream.to)?;
            if stream.from.as_ref() == stream.to.as_ref() {
                let text = format!("{:?} sends to itself: expected two hosts", stream.to.as_ref());
                return Err(Problem::new(stream.to.span().start, text));
            }
            stream.check_via(topology)?;
        }
        Ok(())
    }
}

fn check_host(topology: &Topology, name: &Spanned<String>) -> Result<(), Problem> {
    match host(topology, name) {
        Some(_) => Ok(()),
        None => {
            let first = topology.hosts().first().map_or("", |host| host.name.as_str());
            let text = format!("there is no host {:?} in the topology; the first is {first:?}", name.as_ref());
            Err(Problem::new(name.span().start, text))
        }
    }
}

fn check_count(topology: &Topology, count: &Spanned<usize>, what: &str) -> Result<(), Problem> {
    let (found, hosts) = (*count.as_ref(), topology.hosts().len());
    if (1..hosts).contains(&found) {
        return Ok(());
    }
    Err(Problem::new(count.span().start, format!("{found} {what}: expected 1 to {}, of {hosts} hosts", hosts - 1)))
}
