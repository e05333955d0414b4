//! Status and metrics of a running node.

use super::Control;
use crate::configuration::PortInterface;
use crate::daemon::handle::Died;
use crate::daemon::latest::{Inquiries, Latest};
use crate::daemon::metrics::MetricsServer;
use crate::daemon::repairing::RepairWatch;
use crate::daemon::snapshot::{ConfigurationSnapshot, DaemonState, EvictionSnapshot, PortState, Reload, Snapshot};
use crate::daemon::stalls::StallWatch;
use crate::daemon::status::StatusServer;
use srdma_io::DriverStatistics;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The servers, and what they serve.
pub(super) struct Reporting {
    waiting: Option<(StatusServer, Option<MetricsServer>)>,
    serving: Option<Serving>,
    stalls: StallWatch,
    repairing: RepairWatch,
    /// Receivers with an eviction request that was logged.
    to_evict: BTreeSet<(u32, Ipv6Addr)>,
    configuration: ConfigurationSnapshot,
    started: Instant,
    started_unix_s: u64,
    dropped_log_lines: Arc<AtomicU64>,
}

struct Serving {
    latest: watch::Sender<Latest>,
    tasks: Vec<JoinHandle<()>>,
}

impl Reporting {
    /// Servers that have nothing to serve yet.
    pub(super) fn new(status: StatusServer, metrics: Option<MetricsServer>, dropped_log_lines: Arc<AtomicU64>) -> Self {
        Reporting {
            waiting: Some((status, metrics)),
            serving: None,
            stalls: StallWatch::default(),
            repairing: RepairWatch::default(),
            to_evict: BTreeSet::new(),
            configuration: ConfigurationSnapshot { generation: 1, last_reload: None },
            started: Instant::now(),
            started_unix_s: unix_s(),
            dropped_log_lines,
        }
    }

    /// Another configuration was applied, or rejected for this reason.
    pub(super) fn reloaded(&mut self, error: Option<&String>) {
        if error.is_none() {
            self.configuration.generation += 1;
        }
        self.configuration.last_reload = Some(Reload { unix_s: unix_s(), error: error.cloned() });
    }

    /// Ends the servers; the status socket goes with them.
    pub(super) async fn stop(self) {
        for task in self.serving.into_iter().flat_map(|serving| serving.tasks) {
            task.abort();
            // An aborted change has no other result to report.
            let _ = task.await;
        }
    }

    fn publish(&mut self, mut snapshot: Snapshot, inquiries: Inquiries) {
        self.stalls.observe(&mut snapshot);
        self.repairing.observe(&mut snapshot);
        let latest = Latest::new(snapshot).with_inquiries(inquiries);
        if let Some(serving) = &self.serving {
            serving.latest.send_replace(latest);
        } else if let Some((status, metrics)) = self.waiting.take() {
            let (latest, received) = watch::channel(latest);
            let for_metrics = received.clone();
            let mut tasks = vec![tokio::spawn(async move { match status.serve(received).await {} })];
            if let Some(metrics) = metrics {
                tasks.push(tokio::spawn(async move { match metrics.serve(for_metrics).await {} }));
            }
            self.serving = Some(Serving { latest, tasks });
        }
    }
}

impl Control {
    /// Publishes the present state of the node to the servers.
    pub(super) async fn publish(&mut self) -> Result<(), Died> {
        let port = |(is_up, interface): (bool, &PortInterface)| PortState {
            interface: interface.name.clone(),
            // State of the drivers is with the data thread.
            driver: None,
            note: None,
            is_up,
            statistics: DriverStatistics::default(),
        };
        let state = DaemonState {
            name: self.configuration.daemon.name.clone(),
            started_unix_s: self.reporting.started_unix_s,
            uptime_ns: self.reporting.started.elapsed().as_nanos() as u64,
            ports: self.links().into_iter().zip(&self.configuration.interfaces).map(port).collect(),
            controller: self.configuration.controller.as_ref().map(|settings| self.controller.snapshot(settings)),
            configuration: self.reporting.configuration.clone(),
            dropped_log_lines: self.reporting.dropped_log_lines.load(Ordering::Relaxed),
        };
        let snapshot = self.data.snapshot(Box::new(state)).await?;
        self.say_whom_to_evict(&snapshot);
        if let Some(settings) = &self.configuration.controller {
            self.controller.observe(&snapshot, settings, &self.configuration.host_links);
        }
        let inquiries = Inquiries { isis: self.isis.inquiry(), ospf: self.ospf.inquiry() };
        self.reporting.publish(snapshot, inquiries);
        Ok(())
    }

    /// Logs each receiver with an eviction request once, until the request ends (D25).
    fn say_whom_to_evict(&mut self, snapshot: &Snapshot) {
        let mut now = BTreeSet::new();
        for group in &snapshot.groups {
            for &EvictionSnapshot { receiver, cause } in &group.to_evict {
                now.insert((group.id, receiver));
                if !self.reporting.to_evict.contains(&(group.id, receiver)) {
                    let todo = match self.controller.table().contains(group.id) {
                        true => "the controller is asked to evict it",
                        false => "evict it by a new epoch of the group file",
                    };
                    tracing::warn!(group = group.id, %receiver, "receiver {}: {todo}", cause.name());
                }
            }
        }
        self.reporting.to_evict = now;
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
