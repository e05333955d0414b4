//! The lab's controller: its certificate and tokens, its configuration, its process.

mod groups;
mod secrets;

pub(crate) use groups::CreatedGroup;
pub(crate) use secrets::Secrets;

use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::topology::{ControllerPlan, Topology};
use serde::Serialize;
use srdma_node::daemon::read_status;
use srdma_toml_error::write_private;
use srdma_wire::Prefix;
use std::fs;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for a controller to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout for a node to register.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Address of a lab's controller, and the access to its API.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControllerAccess {
    pub url: String,
    /// File with the bearer token of an administrator.
    pub token_file: PathBuf,
    /// CA bundle that verifies the controller's certificate.
    pub ca_file: PathBuf,
}

impl ControllerAccess {
    /// Access to the controller of an instance; `None` for a lab without one.
    pub fn of(topology: &Topology, instance: &Instance) -> Option<Self> {
        topology.controller.as_ref().map(|plan| ControllerAccess::in_directory(plan.url(), &directory(instance)))
    }

    /// The same, with the files in another place.
    pub(crate) fn in_directory(url: String, directory: &Path) -> Self {
        ControllerAccess { url, token_file: directory.join(TOKEN), ca_file: directory.join(CERTIFICATE) }
    }

    /// Environment variables for `srdma group`, `send` and `recv`.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("SRDMA_CONTROLLER", self.url.clone()),
            ("SRDMA_TOKEN_FILE", self.token_file.display().to_string()),
            ("SRDMA_CA", self.ca_file.display().to_string()),
        ]
    }
}

/// Names of files.
pub(crate) const CERTIFICATE: &str = "certificate.pem";
pub(crate) const KEY: &str = "key.pem";
pub(crate) const TOKEN: &str = "token";
pub(crate) const CONFIGURATION: &str = "controller.toml";

/// Directory of the files of an instance's controller.
fn directory(instance: &Instance) -> PathBuf {
    instance.directory().join("controller")
}

/// Name of the process; names of nodes have no dot.
fn process(node: &str) -> String {
    format!("{node}.controller")
}

/// Writes the controller's files, starts it, and waits until it listens. Does nothing for a lab without a controller.
///
/// # Errors
///
/// If a file cannot be written, or the controller does not listen in time.
pub(crate) fn start(lab: &mut Lab, program: &Path, interrupt: &Interrupt) -> Result<()> {
    let Some(plan) = lab.topology().controller.clone() else { return Ok(()) };
    let node = lab.topology().nodes[plan.node].name.clone();
    let directory = directory(lab.instance());
    fs::DirBuilder::new().mode(0o700).create(&directory).map_err(LabError::file("create", &directory))?;
    let secrets = Secrets::new(plan.address)?;
    let configuration = configuration(&plan, &secrets, &directory)?;
    for (name, text) in [
        (CERTIFICATE, &secrets.certificate),
        (KEY, &secrets.key),
        (TOKEN, &secrets.token),
        (CONFIGURATION, &configuration),
    ] {
        let path = directory.join(name);
        write_private(&path, text).map_err(LabError::file("write", &path))?;
    }
    let words = command(program, &directory.join(CONFIGURATION), &directory.join("store"));
    let process = lab.start(&node, &process(&node), &words)?;
    let is_ready = |_: &str, log: &str| log.lines().any(|line| line.contains(" controller: ready ")).then_some(());
    process.wait_for("listen", START_TIMEOUT, interrupt, is_ready)
}

/// The command line of a controller.
pub(crate) fn command(program: &Path, configuration: &Path, store: &Path) -> Vec<String> {
    let words = [program, "controller".as_ref(), "run".as_ref(), "--config".as_ref(), configuration];
    words.into_iter().chain(["--store".as_ref(), store]).map(|word| word.display().to_string()).collect()
}

/// The `controller.toml` of a controller whose files are in a directory. It has the token's digest, not the token.
pub(crate) fn configuration(plan: &ControllerPlan, secrets: &Secrets, directory: &Path) -> Result<String> {
    let file = File {
        // Its own address may be assigned later.
        listen: [SocketAddr::from((Ipv6Addr::UNSPECIFIED, plan.port))],
        shared_hosts: plan.shared_hosts.iter().map(Prefix::to_string).collect(),
        // An administrator's groups are those of the tenant `default`.
        tenant: plan.proxies.iter().map(TenantSection::new).collect(),
        tls: TlsSection { certificate: directory.join(CERTIFICATE), key: directory.join(KEY) },
        token: [TokenSection { name: "lab", role: "admin", sha256: secrets.token_sha256() }],
    };
    let who = || "the controller's configuration".to_owned();
    toml::to_string(&file).map_err(|error| LabError::Unexpected { who: who(), problem: error.to_string() })
}

#[derive(Serialize)]
struct File {
    listen: [SocketAddr; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shared_hosts: Vec<String>,
    tls: TlsSection,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tenant: Vec<TenantSection>,
    token: [TokenSection; 1],
}

#[derive(Serialize)]
struct TlsSection {
    certificate: PathBuf,
    key: PathBuf,
}

#[derive(Serialize)]
struct TenantSection {
    name: &'static str,
    prefixes: [&'static str; 1],
    proxies: String,
}

impl TenantSection {
    fn new(pool: &Prefix) -> Self {
        TenantSection { name: "default", prefixes: ["::/0"], proxies: pool.to_string() }
    }
}

#[derive(Serialize)]
struct TokenSection {
    name: &'static str,
    role: &'static str,
    sha256: String,
}

/// Waits until these nodes have registered with the lab's controller; nodes with another controller, or none, are
/// skipped.
///
/// # Errors
///
/// If a node does not register in time, with the reason in its status.
pub(crate) fn wait_for_registrations(lab: &Lab, nodes: &[usize], interrupt: &Interrupt) -> Result<()> {
    let Some(plan) = &lab.topology().controller else { return Ok(()) };
    let begin = Instant::now();
    for node in nodes {
        let name = &lab.topology().nodes[*node].name;
        loop {
            // A node that does not respond yet is polled again.
            let status = read_status(&lab.instance().socket(name)).ok();
            let awaited = match status.map(|status| status.controller) {
                Some(None) => break,
                Some(Some(controller)) if controller.is_reached || controller.url != plan.url() => break,
                Some(Some(controller)) => controller.error.unwrap_or_default(),
                None => "it does not report its status".to_owned(),
            };
            if begin.elapsed() > REGISTRATION_TIMEOUT {
                let seconds = REGISTRATION_TIMEOUT.as_secs();
                let problem = format!("it has not reached the controller {} in {seconds} s: {awaited}", plan.url());
                return Err(LabError::Unexpected { who: name.clone(), problem });
            }
            interrupt.sleep(POLL_INTERVAL)?;
        }
    }
    Ok(())
}
