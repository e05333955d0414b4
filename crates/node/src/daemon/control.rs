//! The control task: it starts the data thread, keeps its drivers and its configuration up to date, and ends it.

mod agent;
mod bfd;
mod isis;
mod kernel;
mod learnt_routes;
mod ospf;
mod ports;
mod reloading;
mod reporting;
mod routing;

use super::agent::ControllerEvent;
use super::claim::Claim;
use super::deny_watch::{self, DenyWatch};
use super::error::DaemonError;
use super::handle::{DataHandle, Died};
use super::headroom::{self, Headroom};
use super::interest;
use super::metrics::MetricsServer;
use super::order::Notice;
use super::routing::RoutingEvent;
use super::signals::{Request, Signals};
use super::status::StatusServer;
use super::supervisor::Supervisor;
use super::watched_file::WatchedFile;
use super::workers;
use crate::configuration::{Configuration, InterfaceFacts, Purpose};
use agent::ControllerSide;
use bfd::BfdPorts;
use isis::IsisSide;
use kernel::KernelSide;
use ospf::OspfSide;
use ports::{PortDriver, claim_missing};
use reloading::Cause;
use reporting::Reporting;
use srdma_node_spec::{Layers, Owner};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Interval for checking what no event reports: the file, and interfaces that are missing.
const PERIOD: Duration = Duration::from_millis(500);

/// A running node, seen from its control task.
pub(super) struct Control {
    path: PathBuf,
    file: WatchedFile,
    /// The applied content of the file.
    text: String,
    configuration: Configuration,
    deny_watch: DenyWatch,
    /// The entries of the file, the controller, routing protocols and the kernel.
    layers: Layers,
    kernel: KernelSide,
    isis: IsisSide,
    ospf: OspfSide,
    controller: ControllerSide,
    bfd_ports: BfdPorts,
    data: DataHandle,
    /// In the order of the configuration's.
    ports: Vec<PortDriver>,
    /// The interfaces that are this process's own.
    claims: BTreeMap<String, Claim>,
    facts: BTreeMap<String, InterfaceFacts>,
    reporting: Reporting,
    supervisor: Supervisor,
}

/// Event that woke the control task.
enum Occasion {
    Asked(Request),
    Noticed(Notice),
    Kernel(std::io::Result<()>),
    Isis(RoutingEvent),
    Ospf(RoutingEvent),
    Controller(ControllerEvent),
    DenyList,
    Period,
}

impl Control {
    /// Sets everything up, up to the point where packets flow.
    pub(super) async fn start(
        path: &Path,
        dropped_log_lines: Arc<AtomicU64>,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, DaemonError> {
        let file = WatchedFile::new(path);
        let text = srdma_toml_error::read(path)?;
        let mut kernel = KernelSide::start().await.map_err(system("cannot ask the kernel for its links and routes"))?;
        let facts = kernel.mirror.interfaces();
        let mut configuration = Configuration::parse_for(path, &text, Purpose::Interfaces(&facts))?;
        configuration.check_private_files()?;
        configuration.spec.node.secret_seed = bfd::seed();
        let deny_watch = DenyWatch::of(&configuration);
        deny_watch::deny(&mut configuration).map_err(DaemonError::DenyList)?;
        let workers = configuration.workers();
        let nodes = workers::nodes(&configuration, workers)?;
        let claims = claim_missing(&configuration, &BTreeMap::new())?;
        let ports = vec![PortDriver::NONE; configuration.interfaces.len()];
        let status = StatusServer::bind(&configuration.daemon.status).await?;
        let metrics = match configuration.daemon.metrics {
            Some(address) => Some(MetricsServer::bind(address).await.map_err(system("metrics"))?),
            None => None,
        };
        let mut layers = Layers::default();
        layers.set(Owner::File, configuration.spec.entries.clone());
        let interest = interest::of(&configuration, layers.get(Owner::File));
        let cpus = workers::processors(configuration.daemon.cpu, workers);
        let data = DataHandle::start(nodes, &interest, cpus, &stop).map_err(system("cannot start the data threads"))?;
        let entries = layers.above(Owner::Kernel);
        let effects = kernel.configure(&configuration, &entries, layers.get_mut(Owner::Kernel));
        let controller = ControllerSide::start(&configuration)?;
        let reporting = Reporting::new(status, metrics, dropped_log_lines);
        let supervisor = Supervisor::of_environment();
        let path = path.to_owned();
        let mut control = Control {
            path,
            file,
            text,
            configuration,
            deny_watch,
            layers,
            kernel,
            isis: IsisSide::default(),
            ospf: OspfSide::default(),
            controller,
            bfd_ports: BfdPorts::default(),
            data,
            ports,
            claims,
            facts,
            reporting,
            supervisor,
        };
        control.apply_effects(&effects).await?;
        match control.attach_all().await {
            Ok(()) => {
                control.settle_with_kernel().await;
                control.settle_routing().await?;
                control.follow_links().await?;
                Ok(control)
            }
            Err(error) => {
                // The error of the start is more important.
                let _ = control.kernel.clear().await;
                control.data.stop().await?;
                Err(error)
            }
        }
    }

    /// Runs until a signal or the data thread's death, and gives back what was taken either way.
    pub(super) async fn run(mut self, signals: &mut Signals) -> Result<(), DaemonError> {
        match self.work(signals).await {
            Ok(signal) => self.stop(signal).await,
            Err(error) => {
                self.give_back().await?;
                Err(error)
            }
        }
    }

    /// Does the daemon's work; returns the signal that ends it.
    async fn work(&mut self, signals: &mut Signals) -> Result<&'static str, DaemonError> {
        self.publish().await?;
        tracing::info!("ready");
        self.say_boundary();
        for Headroom { traffic_class, octets, octets_per_km } in headroom::of(&self.configuration) {
            let text = "headroom beyond XOFF of a router that requests pauses, less what it sends on meanwhile";
            tracing::info!(traffic_class, octets, octets_per_km, "{text}");
        }
        self.supervisor.ready();
        let mut period = interval_at(Instant::now() + PERIOD, PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let occasion = tokio::select! {
                request = signals.next() => Occasion::Asked(request),
                changed = self.kernel.changed() => Occasion::Kernel(changed),
                event = self.isis.event() => Occasion::Isis(event),
                event = self.ospf.event() => Occasion::Ospf(event),
                event = self.controller.event() => Occasion::Controller(event),
                () = self.deny_watch.changed() => Occasion::DenyList,
                notice = self.data.notice() => Occasion::Noticed(notice?),
                _ = period.tick() => Occasion::Period,
            };
            match occasion {
                Occasion::Asked(Request::Reload) => self.reload(Cause::Signal).await?,
                Occasion::Asked(Request::Stop(signal)) => return Ok(signal),
                Occasion::Kernel(Ok(())) => self.follow_kernel().await?,
                Occasion::Kernel(Err(error)) => {
                    // The node's view of the kernel would become stale without a sign of it.
                    return Err(DaemonError::Died(error.to_string()));
                }
                Occasion::Isis(event) => self.isis_event(event).await?,
                Occasion::Ospf(event) => self.ospf_event(event).await?,
                Occasion::Controller(event) => self.controller_event(event).await?,
                Occasion::DenyList => self.follow_deny_list().await?,
                Occasion::Noticed(Notice::Lost(loss)) => self.lost(&loss).await?,
                Occasion::Noticed(Notice::Bfd { peer, change }) => self.bfd_event(peer, change).await?,
                Occasion::Noticed(Notice::Ended(worker)) => return Err(Died::Ended(worker).into()),
                Occasion::Period => {
                    if self.file.has_changed() {
                        self.reload(Cause::File).await?;
                    }
                    // Ports that a reload has added.
                    self.follow_links().await?;
                    self.look_after_ports().await?;
                    self.restore_routes().await?;
                    // The data thread has answered.
                    self.publish().await?;
                    self.supervisor.alive();
                }
            }
        }
    }

    async fn stop(self, signal: &'static str) -> Result<(), DaemonError> {
        tracing::info!(signal, "stopping");
        let unsent = self.give_back().await?;
        tracing::info!(unsent_frames = unsent, "stopped");
        Ok(())
    }

    /// Lets frames that wait leave, and removes what was attached; returns how many frames could not be sent.
    async fn give_back(mut self) -> Result<usize, DaemonError> {
        self.supervisor.stopping();
        self.isis.stop().await;
        self.ospf.stop().await;
        let stopped = self.data.stop().await;
        if let Err(error) = self.kernel.clear().await {
            tracing::warn!(%error, "cannot remove all that was added to the kernel");
        }
        self.reporting.stop().await;
        Ok(stopped?)
    }
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> DaemonError {
    move |error| DaemonError::System { what, error }
}
