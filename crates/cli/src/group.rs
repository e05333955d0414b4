//! `srdma group`: groups at a controller. Described in `docs/controller.md`.

mod create;
mod text;
mod watch;

use crate::endpoint;
use crate::output::print;
use crate::remote::{self, ControllerArguments};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use srdma_api::{Client, Group, GroupPage, MemoryRegion, NewReceiver};
use srdma_rc::PathMtu;
use srdma_wire::Qpn;
use std::net::Ipv6Addr;
use std::process::ExitCode;
use std::time::Duration;

/// Create groups at a controller, change their members, and look at them.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(create::Arguments),
    /// Have a receiver join a group.
    Join(Join),
    /// Have a receiver leave a group.
    Leave(Member),
    /// Take a receiver out of a group that is stalled or has failed.
    Evict(Member),
    /// Have the nodes take their parts of a new group.
    Commit(Commit),
    /// End a group at every node.
    Close(One),
    /// List groups.
    List(List),
    /// Show a group: its members, its tree, and how far each branch is.
    Show(One),
    Watch(watch::Arguments),
}

const EXAMPLES: &str = "\
Examples:
  export SRDMA_CONTROLLER=http://[::1]:8470
      Where the controller is.

  srdma group create --source 2001:db8:aa::1 --source-qpn 0x100 --designated-qpn 0xd00000
      Creates a group, and prints its number.

  srdma group join 7 2001:db8:bb::1 --qpn 0x1001
      Has a receiver join group 7.

  srdma group commit 7
      Has the nodes take their parts, and waits until the source may send.

  srdma group show 7
      Draws the tree, with what each branch has confirmed.

  srdma group watch 7 --until ready --timeout 10s
      Waits for group 7, and says what happens to it.

Exit code 0: done. 1: the controller refuses, or what was waited for did not happen. 2: an option is wrong, or the
controller is not reached.";

#[derive(Args)]
struct One {
    /// The group's number.
    #[arg(value_name = "GROUP")]
    group: u32,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Member {
    /// The group's number.
    #[arg(value_name = "GROUP")]
    group: u32,
    /// The receiver's address.
    #[arg(value_name = "RECEIVER")]
    receiver: Ipv6Addr,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Join {
    #[command(flatten)]
    member: Member,
    /// Its queue pair.
    #[arg(long, value_name = "QPN", value_parser = endpoint::parse_qpn)]
    qpn: Qpn,
    /// Its RDMA path MTU, which is the group's.
    #[arg(long, value_name = "OCTETS", default_value = "4096", value_parser = endpoint::parse_path_mtu)]
    path_mtu: PathMtu,
    /// Key of its memory, when the group carries WRITE.
    #[arg(long, value_name = "KEY", requires = "virtual_address")]
    rkey: Option<u32>,
    /// First virtual address of its memory.
    #[arg(long, value_name = "ADDRESS", requires = "rkey")]
    virtual_address: Option<u64>,
}

#[derive(Args)]
struct Commit {
    #[command(flatten)]
    one: One,
    /// How long to wait until the group is ready, up to 60s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = endpoint::parse_time)]
    wait: Duration,
}

#[derive(Args)]
struct List {
    /// Only those of this tenant.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Where the controller is, and how to print what it says.
#[derive(Args)]
pub(crate) struct Output {
    #[command(flatten)]
    controller: ControllerArguments,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Prints a value as JSON, or as this text.
    fn show<T: Serialize>(&self, value: &T, text: impl FnOnce(&T) -> String) -> Result<()> {
        if self.json { print(&format!("{}\n", serde_json::to_string(value)?)) } else { print(&text(value)) }
    }
}

/// Runs the command.
///
/// # Errors
///
/// When the controller is not reached.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(match &arguments.command {
        Command::Create(arguments) => create::run(arguments),
        Command::Join(arguments) => join(arguments),
        Command::Leave(arguments) | Command::Evict(arguments) => take_out(arguments),
        Command::Commit(arguments) => commit(arguments),
        Command::Close(arguments) => close(arguments),
        Command::List(arguments) => list(arguments),
        Command::Show(arguments) => show(arguments),
        Command::Watch(arguments) => watch::run(arguments),
    })
}

/// The longest wait that the API allows.
const MAX_WAIT_MS: u32 = 60_000;

/// Installs a new group on all nodes; returns it as it is when they have it, or after so long.
pub(crate) fn commit_group(client: &Client, group: u32, wait: Duration) -> Result<Group> {
    let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).min(MAX_WAIT_MS);
    Ok(client.commit_group(group, wait_ms)?)
}

fn join(arguments: &Join) -> Result<ExitCode> {
    let Member { group, receiver, output } = &arguments.member;
    let region = arguments.virtual_address.zip(arguments.rkey);
    let new = NewReceiver {
        qpn: arguments.qpn.get(),
        path_mtu: arguments.path_mtu.octets() as u16,
        region: region.map(|(virtual_address, rkey)| MemoryRegion { virtual_address, rkey }),
    };
    let joined = output.controller.client()?.join(*group, *receiver, &new)?;
    output.show(&joined, |joined| format!("{}\n", text::receiver(joined)))?;
    Ok(ExitCode::SUCCESS)
}

fn take_out(arguments: &Member) -> Result<ExitCode> {
    let Member { group, receiver, output } = arguments;
    let left = output.controller.client()?.leave(*group, *receiver)?;
    output.show(&left, |left| format!("{}\n", text::receiver(left)))?;
    Ok(ExitCode::SUCCESS)
}

/// Exit code 1: it is not ready after all.
fn commit(arguments: &Commit) -> Result<ExitCode> {
    let One { group, output } = &arguments.one;
    let group = commit_group(&output.controller.client()?, *group, arguments.wait)?;
    output.show(&group, |group| format!("{}\n", text::summary(&group.summary)))?;
    if let Some(failure) = &group.failure {
        eprintln!("srdma: {failure}");
    }
    Ok(if text::may_send(&group.summary) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn close(arguments: &One) -> Result<ExitCode> {
    let group = arguments.output.controller.client()?.close_group(arguments.group)?;
    arguments.output.show(&group, |group| format!("{}\n", text::summary(&group.summary)))?;
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &One) -> Result<ExitCode> {
    let group = arguments.output.controller.client()?.group(arguments.group)?;
    arguments.output.show(&group, text::group)?;
    Ok(ExitCode::SUCCESS)
}

fn list(arguments: &List) -> Result<ExitCode> {
    let client = arguments.output.controller.client()?;
    let mut all: Option<GroupPage> = None;
    loop {
        let after = all.as_ref().and_then(|page| page.next);
        let page = client.groups(arguments.tenant.as_deref(), after, Some(500))?;
        let next = page.next;
        match &mut all {
            Some(all) => {
                all.groups.extend(page.groups);
                all.next = next;
            }
            None => all = Some(page),
        }
        if next.is_none() {
            break;
        }
    }
    arguments.output.show(&all.map(|page| page.groups).unwrap_or_default(), |groups| {
        groups.iter().map(|group| format!("{}\n", text::summary(group))).collect()
    })?;
    Ok(ExitCode::SUCCESS)
}
