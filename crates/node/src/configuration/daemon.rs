//! `[daemon]`: settings of the process around a node.

use srdma_node_spec::file::{DaemonSection, Notation, PortName};
use srdma_toml_error::Problem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Default directory of the sockets of a running node.
const RUNTIME_DIRECTORY: &str = "/run/srdma";

/// The settings of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSettings {
    /// The node's name, for people and for the names of files.
    pub name: String,
    /// Address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// Status socket.
    pub status: PathBuf,
    /// The processor that the first data thread stays on; others follow on the next ones.
    pub cpu: Option<usize>,
    /// Number of data threads, if it is given.
    pub workers: Option<u16>,
    /// Whether packets may be forwarded without the element (D235).
    pub fast_path: bool,
}

impl DaemonSettings {
    /// Settings of the file `file`; its name is the default name of the node.
    pub(super) fn of(section: &DaemonSection, file: &Path) -> Result<Self, Problem> {
        let name = match &section.name {
            Some(name) => name.value.0.clone(),
            None => {
                let stem = file.file_stem().and_then(|stem| stem.to_str());
                let PortName(name) = stem.and_then(PortName::from_text).unwrap_or(PortName("node".to_owned()));
                name
            }
        };
        let status = match &section.status {
            None => Path::new(RUNTIME_DIRECTORY).join(format!("{name}.sock")),
            Some(status) if status.get_ref().is_absolute() => status.get_ref().clone(),
            Some(status) => {
                let text = format!("status is {}, expected an absolute path", status.get_ref().display());
                return Err(Problem::new(status.span().start, text));
            }
        };
        Ok(DaemonSettings {
            name,
            metrics: section.metrics.as_ref().map(|metrics| metrics.value),
            status,
            cpu: section.cpu.as_ref().map(|cpu| cpu.value.get() as usize),
            workers: section.workers.as_ref().map(|workers| workers.value.get() as u16),
            fast_path: section.fast_path.unwrap_or(false),
        })
    }
}
