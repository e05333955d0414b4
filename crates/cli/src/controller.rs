//! `srdma controller`: the controller, its store and its backups. Described in `docs/controller.md`.

mod node;

use crate::log::{self, Log, LogArguments};
use crate::output::print;
use crate::remote::{self, token};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use srdma_api::{Client, store_identity};
use srdma_controller::{
    BackupError, Config, OnDisk, Standby, StateStore, Store, description, restore, run as run_controller, write_backup,
};
use srdma_toml_error::create_private;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Run the controller: groups over an HTTP API, installed at the nodes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controller, in the foreground.
    ///
    /// Logs to stderr: "ready" with its addresses, and later events. It keeps running when stderr cannot be written.
    /// SIGTERM and SIGINT stop it within two seconds; nodes continue to forward. SIGHUP reloads tokens, certificate and
    /// key. Every write is durable before its response.
    ///
    /// Exit code 2: it did not start, or another controller is the leader now.
    Run(Run),
    /// Write a backup of a store: a line of JSON for each row.
    Backup(Backup),
    /// Create a store from a backup.
    Restore(Restore),
    Node(node::Arguments),
    /// Print the API description (OpenAPI 3.1, JSON).
    Openapi,
}

#[derive(Args)]
struct Run {
    /// Configuration file, see docs/controller.md [default: no authentication, loopback only, port 8470].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// State store: a file (created if missing), or `etcd=URL,URL,...` for high availability.
    #[arg(long, value_name = "FILE", default_value = "srdma-controller.store")]
    store: PathBuf,
    /// Rebuild a lost store from the recovery snapshots that nodes hold: its identity, 16 hexadecimal digits, as
    /// `srdma group foreign list` prints it.
    #[arg(long, value_name = "STORE", value_parser = store_identity)]
    rebuild: Option<u64>,
    #[command(flatten)]
    log: LogArguments,
}

#[derive(Args)]
struct Backup {
    /// State store of a stopped controller: a file, or etcd=URL,URL,...
    #[arg(long, value_name = "FILE", conflicts_with = "controller", required_unless_present = "controller")]
    store: Option<PathBuf>,
    /// Configuration file of the controller, for TLS towards etcd.
    #[arg(long, value_name = "FILE", conflicts_with = "controller")]
    config: Option<PathBuf>,
    /// URL of a running controller.
    #[arg(long, value_name = "URL")]
    controller: Option<String>,
    /// File with the bearer token.
    #[arg(long, value_name = "FILE", requires = "controller")]
    token_file: Option<PathBuf>,
    /// CA bundle (PEM) that verifies the controller's certificate [default: the system's].
    #[arg(long, value_name = "FILE", requires = "controller")]
    ca: Option<PathBuf>,
    /// File to write [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct Restore {
    /// Backup to read.
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// State store to create: a new file, or etcd=URL,URL,... without rows of a controller.
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
    /// Configuration file of the controller, for TLS towards etcd.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  srdma controller run
      Runs a controller on [::1]:8470, for this machine only.

  srdma controller run --config /etc/srdma/controller.toml --store /var/lib/srdma/controller.store
      Runs a controller with TLS and tokens.

  srdma controller run --config one.toml --store etcd=http://[::1]:2379
      Runs one of several controllers for high availability: a leader and standbys.

  srdma controller backup --controller http://[::1]:8470 --out groups.backup
      Backs up a running controller.

  srdma controller restore groups.backup --store new.store
      Creates a store from the backup.

  srdma controller restore groups.backup --store etcd=http://[::1]:2379
      The same for a store in etcd.

  srdma controller run --store new.store --rebuild 1f0c2b7a90d3e455
      Rebuilds a store from the nodes, after the old one was lost. `srdma group foreign list` prints its identity.

  srdma controller node list --controller http://[::1]:8470
      Lists the nodes, with what they have registered and is not confirmed.

  srdma controller node confirm leaf1
      Confirms loopback, SIDs and hosts of node leaf1.

  curl -g http://[::1]:8470/v1/groups
      Uses the API without this program; srdma controller openapi describes it.";

/// Runs the command.
///
/// # Errors
///
/// If the controller does not start, or a store or backup cannot be used.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Run(arguments) => start(arguments),
        Command::Backup(arguments) => backup(arguments),
        Command::Restore(arguments) => restore_backup(arguments),
        Command::Node(arguments) => remote::finish(node::run(arguments)),
        Command::Openapi => {
            print(&format!("{}\n", description()))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn start(arguments: &Run) -> Result<ExitCode> {
    let log = Log::start(&arguments.log)?;
    Ok(log.run(|_| serve(arguments)))
}

fn serve(arguments: &Run) -> Result<ExitCode> {
    let config = configured(arguments.config.as_deref())?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let name = arguments.store.display().to_string();
    let state_store = match name.strip_prefix("etcd=") {
        Some(servers) => StateStore::Shared(Standby::new(servers, &config.url(), &config.etcd)?),
        None => StateStore::Own(Arc::new(OnDisk::open(&arguments.store)?)),
    };
    let ready = &mut |addresses: &[SocketAddr]| {
        for address in addresses {
            tracing::info!(target: "controller", url = format!("{scheme}://{address}"), store = name, "ready");
        }
    };
    run_controller(config, state_store, arguments.rebuild, log::exit, ready)?;
    tracing::info!(target: "controller", "stopped");
    Ok(ExitCode::SUCCESS)
}

fn backup(arguments: &Backup) -> Result<ExitCode> {
    let mut out: Box<dyn Write> = match &arguments.out {
        Some(file) => {
            let created = create_private(file).with_context(|| format!("cannot write {}", file.display()))?;
            Box::new(BufWriter::new(created))
        }
        None => Box::new(io::stdout().lock()),
    };
    match (&arguments.store, &arguments.controller) {
        (Some(store), _) => {
            let mut write = |line: &str| out.write_all(line.as_bytes());
            match etcd(store, arguments.config.as_deref())? {
                Some(etcd) => at_etcd(&etcd, |store| write_backup(store, &mut write))?,
                None => {
                    existing(store)?;
                    write_backup(&OnDisk::open(store)?, &mut write)?
                }
            };
        }
        (None, Some(url)) => {
            let token = arguments.token_file.as_deref().map(token).transpose()?;
            let client = Client::new(url, token, arguments.ca.as_deref())?;
            io::copy(&mut client.backup()?, &mut out)?;
        }
        (None, None) => bail!("expected --store or --controller"),
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn restore_backup(arguments: &Restore) -> Result<ExitCode> {
    let name = arguments.backup.display();
    let file = File::open(&arguments.backup).with_context(|| format!("cannot read {name}"))?;
    let rows = match etcd(&arguments.store, arguments.config.as_deref())? {
        Some(etcd) => at_etcd(&etcd, |store| fill(store, file)).with_context(|| name.to_string())?,
        None if arguments.store.exists() => {
            bail!("{} exists: expected a new file", arguments.store.display());
        }
        None => {
            let filled = fill(&OnDisk::open(&arguments.store)?, file).with_context(|| name.to_string());
            filled.inspect_err(|_| {
                // An incomplete store would block the next attempt.
                let _ = std::fs::remove_file(&arguments.store);
            })?
        }
    };
    eprintln!("restored {rows} rows to {}", arguments.store.display());
    Ok(ExitCode::SUCCESS)
}

fn fill(store: &dyn Store, backup: File) -> Result<u64, BackupError> {
    restore(store, &mut BufReader::new(backup))
}

fn configured(file: Option<&Path>) -> Result<Config> {
    Ok(file.map(Config::read).transpose()?.unwrap_or_default())
}

/// Runs `act` on the store of an etcd that no controller uses, then resigns as the leader.
fn at_etcd(etcd: &Standby, act: impl FnOnce(&dyn Store) -> Result<u64, BackupError>) -> Result<u64, BackupError> {
    let store = etcd.lead_now()?;
    let done = act(&store);
    store.resign();
    done
}

/// The etcd of the store `etcd=URL,...`.
fn etcd(store: &Path, config: Option<&Path>) -> Result<Option<Standby>> {
    let name = store.display().to_string();
    let Some(servers) = name.strip_prefix("etcd=") else { return Ok(None) };
    let config = configured(config)?;
    Ok(Some(Standby::new(servers, &config.url(), &config.etcd)?))
}

/// Checks that a store exists: opening it would create it.
fn existing(store: &Path) -> Result<()> {
    if store.exists() { Ok(()) } else { bail!("{}: the store does not exist", store.display()) }
}
