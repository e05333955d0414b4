//! The command line of `srdma lab`.

use clap::{Args, Subcommand};

/// Networks in namespaces of this machine: srdma nodes, Linux routers and hosts.
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
    /// Show the nodes, processes and links of a lab, or which labs there are.
    Status(Status),
    /// Run a command, or a shell, in the network namespace of a node.
    Shell(Shell),
}

/// A lab.
#[derive(Args)]
pub(super) struct Name {
    /// A shipped lab, or a topology file.
    #[arg(value_name = "NAME|FILE")]
    pub(super) name: String,

    /// Tells several instances of a lab apart.
    #[arg(long, value_name = "SUFFIX")]
    pub(super) instance: Option<String>,
}

#[derive(Args)]
pub(super) struct Up {
    #[command(flatten)]
    pub(super) name: Name,
}

#[derive(Args)]
pub(super) struct Status {
    /// A shipped lab, or a topology file. Without it all instances that are up are listed.
    #[arg(value_name = "NAME|FILE")]
    pub(super) name: Option<String>,

    /// Tells several instances of a lab apart.
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

    /// What to run; a shell when nothing is given.
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) words: Vec<String>,
}
