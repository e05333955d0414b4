//! The command line of `srdma lab`.

use crate::units::{parse_octets, parse_probability, parse_rate};
use clap::{Args, Subcommand, ValueEnum};
use srdma_dataplane::MAX_WORKERS;
use srdma_lab::containerlab::IMAGE;
use srdma_lab::topology::{Lists, Operation};
use srdma_node_spec::file;
use std::path::PathBuf;

/// Networks in namespaces of this machine: srdma nodes, Linux routers and hosts.
///
/// Without root, labs are in a user namespace of the user.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Build a lab, and wait until everything in it is ready.
    Up(Up),
    /// Take a lab down, also one that was killed.
    Down(Name),
    /// Build a lab, transfer through it, print the result, and take it down.
    ///
    /// Exit code 1: the lab failed, or some receiver's data differ.
    Run(Run),
    /// Write a lab as a topology of another program, which runs its nodes as containers.
    Export(Export),
    /// Capture each link of a lab to DIR/LINK.pcapng, until Ctrl-C.
    Capture(Capture),
    /// Show the nodes, processes and links of a lab, or list the labs.
    Status(Status),
    /// Run a command, or a shell, in the network namespace of a node.
    Shell(Shell),
    /// Keep the namespaces of a user's labs.
    #[command(hide = true)]
    Keep,
}

/// A lab.
#[derive(Args)]
pub(super) struct Name {
    /// A shipped lab, or a topology file.
    #[arg(value_name = "NAME|FILE")]
    pub(super) name: String,

    /// Name that distinguishes several instances of a lab.
    #[arg(long, value_name = "SUFFIX")]
    pub(super) instance: Option<String>,
}

#[derive(Args)]
pub(super) struct Up {
    #[command(flatten)]
    pub(super) name: Name,

    #[command(flatten)]
    pub(super) set_up: SetUp,
}

/// Options that override the topology file.
#[derive(Args)]
pub(super) struct SetUp {
    #[command(flatten)]
    pub(super) transfer: TransferArguments,

    #[command(flatten)]
    pub(super) links: LinkArguments,

    /// The driver of the nodes' ports.
    #[arg(long, value_enum, default_value_t = DriverName::Auto)]
    pub(super) driver: DriverName,

    /// Data threads of each node [default: the nodes' own].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_WORKERS)))]
    pub(super) workers: Option<u16>,

    /// A directory whose files guests have in their root directory, such as programs for `srdma lab shell`.
    #[arg(long, value_name = "DIR")]
    pub(super) guest_files: Option<PathBuf>,
}

/// The transfer, where it differs from the topology file.
#[derive(Args)]
pub(super) struct TransferArguments {
    /// Transfer so much random data.
    #[arg(long, value_name = "OCTETS", value_parser = parse_octets)]
    pub(super) size: Option<u64>,

    /// Operation of messages.
    #[arg(long, value_enum)]
    pub(super) op: Option<OperationName>,

    /// Source of the edges' receiver lists: the packets' TLVs, or their own configuration.
    #[arg(long, value_enum)]
    pub(super) list: Option<ListName>,
}

/// Properties of links, where they differ from the topology file.
#[derive(Args)]
pub(super) struct LinkArguments {
    /// Probability of a frame being lost, per direction, of one link or of all.
    #[arg(long, value_name = "[LINK=]P", value_parser = parse_loss)]
    pub(super) loss: Vec<OfLink<f64>>,

    /// Bits per second of each direction of one link or of all, such as 200M.
    #[arg(long, value_name = "[LINK=]RATE", value_parser = parse_link_rate)]
    pub(super) rate: Vec<OfLink<u64>>,
}

#[derive(Args)]
pub(super) struct Run {
    #[command(flatten)]
    pub(super) name: Name,

    #[command(flatten)]
    pub(super) set_up: SetUp,

    /// Kill this node without warning during the transfer, and start it again.
    #[arg(long, value_name = "NODE")]
    pub(super) restart: Option<String>,

    /// Capture each link to DIR/LINK.pcapng.
    #[arg(long, value_name = "DIR")]
    pub(super) pcap: Option<PathBuf>,

    /// Send the same amount once more from the same guest to the same receivers, by a connection to each and all at
    /// once; in labs whose hosts are guests.
    #[arg(long, value_enum, value_name = "WAY")]
    pub(super) compare: Option<ComparisonName>,

    /// Leave the lab up.
    #[arg(long)]
    pub(super) keep: bool,

    /// Print the result as one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

/// Write a lab as a topology of another program, which runs its nodes as containers.
///
/// Existing files are replaced. Exit code 2: the lab has a node that the other program does not support; it is named.
#[derive(Args)]
#[command(after_long_help = EXPORT_EXAMPLES)]
pub(super) struct Export {
    /// A shipped lab, or a topology file.
    #[arg(value_name = "NAME|FILE")]
    pub(super) name: String,

    /// The program that will run it.
    #[arg(long, value_enum, default_value_t = FormatName::Containerlab)]
    pub(super) format: FormatName,

    /// Directory for the files; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,

    /// The container image of all nodes.
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    pub(super) image: String,

    #[command(flatten)]
    pub(super) transfer: TransferArguments,

    #[command(flatten)]
    pub(super) links: LinkArguments,

    /// Print the list of files as one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  srdma lab export figure1 --out figure1
      Writes figure1/figure1.clab.yml, a node.toml for each node, and figure1/transfer.sh. Then, as root:
      cd figure1 && containerlab deploy -t figure1.clab.yml && ./transfer.sh

  srdma lab export labs/usid.toml --format containerlab --out usid --image registry.example/srdma:1 --size 1MiB
      With another image and less data.";

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum FormatName {
    /// Files for `containerlab deploy`.
    Containerlab,
}

#[derive(Args)]
pub(super) struct Capture {
    #[command(flatten)]
    pub(super) name: Name,

    /// Directory for the files; created if it does not exist.
    #[arg(value_name = "DIR")]
    pub(super) directory: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum OperationName {
    Write,
    Send,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum ComparisonName {
    Unicast,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum ListName {
    Tlv,
    Provisioned,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum DriverName {
    /// The fastest that works.
    Auto,
    #[value(name = "af_packet")]
    AfPacket,
    #[value(name = "af_xdp")]
    AfXdp,
    #[value(name = "af_xdp_generic")]
    AfXdpGeneric,
}

/// A value of one link, or of all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OfLink<T> {
    pub(super) link: Option<String>,
    pub(super) value: T,
}

fn parse_loss(text: &str) -> Result<OfLink<f64>, String> {
    of_link(text, parse_probability)
}

fn parse_link_rate(text: &str) -> Result<OfLink<u64>, String> {
    of_link(text, parse_rate)
}

fn of_link<T>(text: &str, parse: fn(&str) -> Result<T, String>) -> Result<OfLink<T>, String> {
    let (link, value) = match text.split_once('=') {
        Some((link, value)) => (Some(link.to_owned()), value),
        None => (None, text),
    };
    Ok(OfLink { link, value: parse(value)? })
}

impl OperationName {
    pub(super) fn operation(self) -> Operation {
        match self {
            OperationName::Write => Operation::Write,
            OperationName::Send => Operation::Send,
        }
    }
}

impl ListName {
    pub(super) fn lists(self) -> Lists {
        match self {
            ListName::Tlv => Lists::Tlv,
            ListName::Provisioned => Lists::Provisioned,
        }
    }
}

impl DriverName {
    /// The driver as `node.toml` has it.
    pub(super) fn in_node_toml(self) -> file::DriverName {
        match self {
            DriverName::Auto => file::DriverName::Auto,
            DriverName::AfPacket => file::DriverName::AfPacket,
            DriverName::AfXdp => file::DriverName::AfXdp,
            DriverName::AfXdpGeneric => file::DriverName::AfXdpGeneric,
        }
    }
}

#[derive(Args)]
pub(super) struct Status {
    /// A shipped lab, or a topology file. Without it all instances that are up are listed.
    #[arg(value_name = "NAME|FILE")]
    pub(super) name: Option<String>,

    /// Name that distinguishes several instances of a lab.
    #[arg(long, value_name = "SUFFIX", requires = "name")]
    pub(super) instance: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Shell {
    #[command(flatten)]
    pub(super) name: Name,

    /// The node.
    pub(super) node: String,

    /// Command to run; a shell by default.
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) words: Vec<String>,
}
