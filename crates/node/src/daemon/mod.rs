//! `srdma node`: a node on real interfaces, with its status and metrics.
//!
//! ```text
//!  signals, file ──→ ┌─────────┐  orders   ┌──────────────┐ ←→ drivers of the ports
//!  kernel ─────────→ │ control │ ────────→ │ data threads │
//!  status, metrics ← └─────────┘ ←──────── └──────────────┘
//!                                 answers
//! ```

mod agent;
mod claim;
mod clock;
mod control;
mod coworkers;
mod data;
mod deny_watch;
mod error;
mod evictions;
mod fast_path;
mod handle;
mod headroom;
mod interest;
mod isis;
mod latest;
mod memory;
mod metrics;
mod mirror;
mod order;
mod ospf;
mod pace;
mod port;
mod received;
mod reload;
mod repairing;
mod routing;
mod signals;
mod snapshot;
mod stalls;
mod status;
mod supervisor;
mod watched_file;
mod worker;
mod workers;

pub use error::DaemonError;
pub use fast_path::{fast_path_entries, fast_path_port};
pub use latest::Latest;
pub use metrics::{MetricsServer, metrics_text};
pub use mirror::{Effects, Mirror, MirroredPort};
pub use repairing::RepairWatch;
pub use snapshot::{
    BackpressureSnapshot, BackupSnapshot, BfdSnapshot, BranchRepairSnapshot, BranchSnapshot, ClassSnapshot,
    ConfigurationSnapshot, ControllerSnapshot, DaemonState, DestinationSnapshot, DriverSnapshot, EvictionCause,
    EvictionSnapshot, FastPathSnapshot, FlowSnapshot, GroupSnapshot, IsisBackupSnapshot, IsisCircuitSnapshot,
    IsisNodeSnapshot, IsisRouteSnapshot, IsisSidSnapshot, IsisSnapshot, IsisState, LspSnapshot, OspfCircuitSnapshot,
    OspfLsaSnapshot, OspfNodeSnapshot, OspfRouteSnapshot, OspfSnapshot, PathSnapshot, PauseSnapshot, PfcSnapshot,
    PortSnapshot, PortState, Reload, RepairMemorySnapshot, RepairSnapshot, Role, SharedHostsSnapshot, SidSnapshot,
    Snapshot, SteeringSnapshot, WorkerSnapshot,
};
pub use stalls::StallWatch;
pub use status::{StatusError, StatusServer, read_status};

use control::Control;
use signals::Signals;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::runtime;

/// Runs the node of a configuration until SIGTERM or SIGINT. It logs by [`tracing`]; `dropped_log_lines` is the number
/// of log lines that the process has dropped, for status and metrics.
///
/// # Errors
///
/// If the node cannot start, or its data thread dies.
pub fn run(file: &Path, dropped_log_lines: Arc<AtomicU64>) -> Result<(), DaemonError> {
    let system = |error| DaemonError::System { what: "cannot start the control task", error };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(system)?;
        let stop = signals::stop().map_err(system)?;
        Control::start(file, dropped_log_lines, stop).await?.run(&mut signals).await
    })
}
