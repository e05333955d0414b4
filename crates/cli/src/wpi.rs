//! `srdma wpi`: a driver of the Weight Propagation Interface, and calls of it. Described in `docs/kubernetes.md`.

mod call;

use crate::endpoint;
use crate::log::{Log, LogArguments};
use crate::remote::{ControllerArguments, QueuePairArguments};
use crate::units::parse_octets;
use anyhow::Result;
use clap::{Args, Subcommand};
use srdma_wpi::{Options, Service};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Where the interface has its sockets.
const SOCKET_DIRECTORY: &str = "/run/wpi/sockets";

/// Run a driver of the Weight Propagation Interface of llm-d, or call one.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<Run>),
    Info(call::Info),
    Stage(call::Stage),
    Unstage(call::Unstage),
    Propagate(call::Propagate),
}

/// Run the driver of this node, in the foreground.
///
/// It has buffers in memory of the host, passes them to programs of this node by sockets, and propagates them to other
/// nodes by groups of a controller. Logs to stderr: "ready" with its addresses. SIGTERM and SIGINT end it; its buffers
/// end with it, but for what programs have mapped. Exit code 2: it did not start.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
struct Run {
    /// Address or host name by which requests name this node; may be repeated.
    #[arg(long = "node", value_name = "HOST", required = true)]
    nodes: Vec<String>,
    /// Directory of the sockets, which no other user may write to. It is created if it is missing.
    #[arg(long, value_name = "DIR", default_value = SOCKET_DIRECTORY)]
    socket_directory: PathBuf,
    /// Group whose members may use the sockets, by number or name [default: the driver's user alone].
    #[arg(long, value_name = "GROUP")]
    socket_group: Option<String>,
    /// Take calls of operators by TCP as well, at this address; callers are not authenticated.
    #[arg(long, value_name = "ADDRESS:PORT", env = "WPI_DRIVER_ADDRESS")]
    listen: Option<SocketAddr>,
    /// Permit an address of --listen that others reach.
    #[arg(long, requires = "listen")]
    open: bool,
    /// Take invitations of drivers of other nodes at this address. Its port is that of targets that name none.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:50052")]
    peer_listen: SocketAddr,
    /// Octets of all buffers together, at most.
    #[arg(long, value_name = "OCTETS", default_value = "16GiB", value_parser = parse_octets)]
    memory: u64,
    /// Directory with files that requests may name as source_path [default: none].
    #[arg(long, value_name = "DIR")]
    source_directory: Option<PathBuf>,
    /// Longest time of a propagation.
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = endpoint::parse_time)]
    timeout: Duration,
    /// Without --address: this host's address in groups is the one that the kernel chooses toward this address, such as
    /// one of the tenant's pool of Proxy Addresses.
    #[arg(long, value_name = "ADDRESS")]
    toward: Option<Ipv6Addr>,
    /// Proxy Address of the groups, which has one at a time then [default: one of the tenant's pool].
    #[arg(long, value_name = "ADDRESS")]
    proxy: Option<Ipv6Addr>,
    #[command(flatten)]
    controller: ControllerArguments,
    #[command(flatten)]
    queue_pair: QueuePairArguments,
    #[command(flatten)]
    log: LogArguments,
}

const EXAMPLES: &str = "\
Examples:
  srdma wpi run --node 10.0.0.7 --node node-7 --controller https://controller:8470 --token-file /etc/srdma/token
      Runs the driver of a node that requests name by its address or its host name.

  srdma wpi stage m --size 4GiB --claim trainer
      Stages a buffer: its descriptor is passed by /run/wpi/sockets/m.sock.

  srdma wpi propagate m --to 10.0.0.8 --to 10.0.0.9
      Propagates it to two nodes, whose drivers have a buffer m of the same length.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Run(arguments) => drive(arguments),
        Command::Info(arguments) => call::info(arguments),
        Command::Stage(arguments) => call::stage(arguments),
        Command::Unstage(arguments) => call::unstage(arguments),
        Command::Propagate(arguments) => call::propagate(arguments),
    }
}

fn drive(arguments: &Run) -> Result<ExitCode> {
    let options = Options {
        socket_directory: arguments.socket_directory.clone(),
        socket_group: arguments.socket_group.clone(),
        own_hosts: arguments.nodes.clone(),
        listen: arguments.listen,
        is_open: arguments.open,
        peer_listen: arguments.peer_listen,
        memory_octets: arguments.memory,
        source_directory: arguments.source_directory.clone(),
        timeout: arguments.timeout,
        device: arguments.controller.device_options(&arguments.queue_pair),
        toward: arguments.toward,
        proxy: arguments.proxy,
    };
    Ok(Log::start(&arguments.log)?.run(|_| {
        let service = Service::start(&options)?;
        let (sockets, peers) = (options.socket_directory.display(), service.peer_address());
        match service.address() {
            None => tracing::info!(%sockets, %peers, "ready"),
            Some(operators) if operators.ip().is_loopback() => tracing::info!(%sockets, %peers, %operators, "ready"),
            Some(operators) => {
                tracing::warn!(%operators, "calls of operators are open to all that reach this address");
                tracing::info!(%sockets, %peers, %operators, "ready");
            }
        }
        let signal = service.wait()?;
        tracing::info!(signal, "stopping");
        drop(service);
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }))
}
