//! Versions of the host library from a source to eight receivers in namespaces, through a tree of real nodes: by one
//! group, and by unicast; and an equal part of a version to each, by scatter. `docs/applications.md` describes the
//! measurement.
//!
//! Unicast is the same library with a group for each receiver, so that code, digests, nodes and repair are the same.

mod host;
mod process;
mod row;

pub use host::run_host;
pub use row::{ApplicationRow, ProcessorSeconds, Way};

use anyhow::{Context, bail, ensure};
use host::{Order, Part, Program, Report};
use nix::unistd::geteuid;
use process::{HostProcess, processor_seconds};
use row::Round;
use srdma_lab::topology::Kind;
use srdma_lab::{Choices, ControllerAccess, Instance, Interrupt, Lab, LabError, Session, Source, Topology};
use srdma_node_spec::file::DriverName;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

/// The network: source S, receivers R1 … R8.
const NETWORK: &str = include_str!("../../../../labs/eight-receivers.toml");
const RECEIVERS: u32 = 8;

/// Unicast takes at least so many times as long, where the links are the limit.
const TARGET: f64 = 6.0;

/// Time for what does not depend on the links: joins, commits, digests.
const PATIENCE_S: u64 = 120;

/// Extent of a measurement.
#[derive(Clone, Debug)]
pub struct ApplicationExtent {
    /// Octets of a version.
    pub octets: u64,
    /// Rates of the links, one measurement for each; `None`: not limited.
    pub rates_bits_per_s: Vec<Option<u64>>,
    /// Rounds of each way.
    pub rounds: u32,
}

impl ApplicationExtent {
    /// Rounds of all ways and rates.
    pub fn all_rounds(&self) -> u64 {
        u64::from(self.rounds) * 3 * self.rates_bits_per_s.len() as u64
    }
}

/// Takes results as they come.
pub trait ApplicationSink {
    /// A round begins, or something before it.
    fn begins(&mut self, what: &str);
    /// A round has ended.
    fn round(&mut self);
    /// Takes a row.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the measurement ends.
    fn row(&mut self, row: &ApplicationRow) -> std::io::Result<()>;
}

/// Measures each rate in a network of its own, which is taken down whatever happens. `program` is `srdma`.
///
/// # Errors
///
/// If this process is not root, the network does not come up, or a process of the library fails.
pub fn run(extent: &ApplicationExtent, program: PathBuf, sink: &mut dyn ApplicationSink) -> anyhow::Result<()> {
    ensure!(geteuid().is_root(), "this makes network namespaces: run it as root");
    let interrupt = Interrupt::listen()?;
    for rate_bits_per_s in &extent.rates_bits_per_s {
        let network = Network::start(*rate_bits_per_s, program.clone(), &interrupt, sink)?;
        let measured = network.measure(extent, *rate_bits_per_s, sink);
        let down = network.down();
        // What has failed first is what matters.
        measured?;
        down?;
    }
    Ok(())
}

/// A lab that is up.
struct Network<'a> {
    interrupt: &'a Interrupt,
    instance: Instance,
    topology: Topology,
    program: PathBuf,
    session: Session,
}

impl<'a> Network<'a> {
    fn start(
        rate_bits_per_s: Option<u64>,
        program: PathBuf,
        interrupt: &'a Interrupt,
        sink: &mut dyn ApplicationSink,
    ) -> anyhow::Result<Self> {
        sink.begins("the network comes up");
        let source = Source { file: "applications.toml".into(), text: NETWORK.to_owned() };
        let mut topology = source.topology()?;
        topology.links.iter_mut().for_each(|link| link.rate_bits_per_s = rate_bits_per_s);
        let instance = Instance::new(&topology.name, Some(&format!("b{}", std::process::id())))?;
        let patience = Duration::from_secs(PATIENCE_S);
        let choices = Choices {
            program: program.clone(),
            transfer: None,
            driver: DriverName::Auto,
            workers: None,
            patience,
            guest_files: None,
        };
        let lab = match Lab::create(&source, topology.clone(), instance.clone()) {
            Err(error @ (LabError::IsUp(_) | LabError::NotRoot)) => return Err(error.into()),
            other => other,
        };
        let session = lab.and_then(|lab| Session::start(lab, choices, interrupt, &mut |text| sink.begins(text)));
        match session {
            Ok(session) => Ok(Network { interrupt, instance, topology, program, session }),
            Err(error) => {
                // The error that matters is the first one.
                let _ = Lab::down(&instance, Some(&topology));
                Err(error.into())
            }
        }
    }

    fn down(self) -> anyhow::Result<()> {
        Lab::down(&self.instance, Some(&self.topology)).map(drop).map_err(Into::into)
    }

    fn measure(
        &self,
        extent: &ApplicationExtent,
        rate_bits_per_s: Option<u64>,
        sink: &mut dyn ApplicationSink,
    ) -> anyhow::Result<()> {
        let what = (RECEIVERS, extent.octets, rate_bits_per_s);
        let unicast = self.rounds(Way::Unicast, extent, rate_bits_per_s, sink)?;
        sink.row(&ApplicationRow::of(Way::Unicast, what, &unicast, None, None))?;
        let multicast = self.rounds(Way::Multicast, extent, rate_bits_per_s, sink)?;
        let target = rate_bits_per_s.map(|_| TARGET);
        sink.row(&ApplicationRow::of(Way::Multicast, what, &multicast, Some(&unicast), target))?;
        let scatter = self.rounds(Way::Scatter, extent, rate_bits_per_s, sink)?;
        sink.row(&ApplicationRow::of(Way::Scatter, what, &scatter, None, None))?;
        Ok(())
    }

    /// Starts source and receivers, and measures every round of a way.
    fn rounds(
        &self,
        way: Way,
        extent: &ApplicationExtent,
        rate_bits_per_s: Option<u64>,
        sink: &mut dyn ApplicationSink,
    ) -> anyhow::Result<Vec<Round>> {
        sink.begins("receivers join");
        let mut hosts = self.start_hosts(way, extent.octets, patience_s(extent.octets, rate_bits_per_s))?;
        let mut rounds = Vec::new();
        for round in 1..=u64::from(extent.rounds) {
            let rate = rate_bits_per_s.map_or("no limit".to_owned(), |rate| format!("{} Mbit/s", rate / 1_000_000));
            sink.begins(&format!("{}, {rate}, round {round} of {}", way.name(), extent.rounds));
            rounds.push(self.round(&mut hosts, round)?);
            sink.round();
        }
        let Hosts { source, receivers } = hosts;
        source.end()?;
        receivers.into_iter().try_for_each(HostProcess::end)?;
        Ok(rounds)
    }

    fn start_hosts(&self, way: Way, octets: u64, patience_s: u64) -> anyhow::Result<Hosts> {
        let access = ControllerAccess::of(&self.topology, &self.instance).context("the lab has no controller")?;
        let start = |name: &str, program: &Program| {
            HostProcess::start(&self.program, &self.instance.namespace(name), name, &access, program)
        };
        let (count, receivers_of_each) = match way {
            Way::Unicast | Way::Scatter => (RECEIVERS, 1),
            Way::Multicast => (1, RECEIVERS),
        };
        let proxy = |number: u32| Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, number as u16);
        let proxies = (1..=count).map(proxy).collect();
        let is_scatter = way == Way::Scatter;
        let program = Program::Source { proxies, is_scatter, octets, receivers_of_each, patience_s };
        let mut source = start("S", &program)?;
        let groups = match source.report(self.interrupt)? {
            Report::Groups(groups) => groups,
            other => bail!("the source reports {other:?}"),
        };
        let group_of_each = groups.iter().flat_map(|group| std::iter::repeat_n(*group, receivers_of_each as usize));
        let receivers = (1..).zip(group_of_each);
        let receivers = receivers.map(|(rank, group)| {
            let part = is_scatter.then_some(Part { number: rank - 1, count, octets });
            start(&format!("R{rank}"), &Program::Receiver { group, part, patience_s })
        });
        let mut receivers = receivers.collect::<anyhow::Result<Vec<HostProcess>>>()?;
        for receiver in &mut receivers {
            let report = receiver.report(self.interrupt)?;
            ensure!(report == Report::Joining, "a receiver reports {report:?}");
        }
        source.carry_out(Order::Commit, self.interrupt)?;
        Ok(Hosts { source, receivers })
    }

    fn round(&self, hosts: &mut Hosts, round: u64) -> anyhow::Result<Round> {
        hosts.source.carry_out(Order::Prepare(round), self.interrupt)?;
        let octets_before = self.octets()?;
        let before = self.processors(hosts);
        hosts.source.order(Order::Publish)?;
        let Report::Published { begin_ns, .. } = hosts.source.report(self.interrupt)? else {
            bail!("the source does not publish round {round}");
        };
        let mut last_ns = begin_ns;
        for receiver in &mut hosts.receivers {
            match receiver.report(self.interrupt)? {
                Report::Woken { version, at_ns } if version == round => last_ns = last_ns.max(at_ns),
                other => bail!("a receiver reports {other:?} in round {round}"),
            }
        }
        let after = self.processors(hosts);
        let octets = self.octets()?;
        let of_receivers = octets.receivers.iter().zip(&octets_before.receivers);
        Ok(Round {
            seconds: (last_ns - begin_ns) as f64 / 1e9,
            source_octets: octets.source - octets_before.source,
            receiver_octets: of_receivers.map(|(after, before)| after - before).max().unwrap_or(0),
            processors: ProcessorSeconds {
                source: after.source - before.source,
                receivers: after.receivers - before.receivers,
                nodes: after.nodes - before.nodes,
            },
        })
    }

    /// The source is the first end of the first link; each receiver is the second one of one of the last links.
    fn octets(&self) -> anyhow::Result<Octets> {
        let counters = self.session.lab().link_counters()?;
        let source = counters.first().context("the lab has no links")?.down_octets;
        let receivers = counters.iter().rev().take(RECEIVERS as usize).map(|link| link.down_octets).collect();
        Ok(Octets { source, receivers })
    }

    fn processors(&self, hosts: &Hosts) -> ProcessorSeconds {
        let nodes = self.topology.nodes.iter().filter(|node| matches!(node.kind, Kind::Srdma { .. }));
        let names: Vec<&str> = nodes.map(|node| node.name.as_str()).collect();
        let processes = self.session.lab().processes().iter();
        let nodes =
            processes.filter(|process| names.contains(&process.name.as_str())).map(|process| process.pid as u32);
        ProcessorSeconds {
            source: processor_seconds([hosts.source.pid()]),
            receivers: processor_seconds(hosts.receivers.iter().map(HostProcess::pid)),
            nodes: processor_seconds(nodes),
        }
    }
}

/// Octets on the links of hosts.
struct Octets {
    /// That have left the source.
    source: u64,
    /// That have gone to each receiver.
    receivers: Vec<u64>,
}

/// The processes of the library.
struct Hosts {
    source: HostProcess,
    receivers: Vec<HostProcess>,
}

/// Seconds that nothing takes: unicast at the rate three times over, and the rest.
fn patience_s(octets: u64, rate_bits_per_s: Option<u64>) -> u64 {
    let slowest_bits_per_s = rate_bits_per_s.unwrap_or(u64::MAX).min(50_000_000);
    PATIENCE_S + 3 * octets * 8 * u64::from(RECEIVERS) / slowest_bits_per_s
}
