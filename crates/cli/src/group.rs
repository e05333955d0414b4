//! `srdma group`: groups at a controller. Described in `docs/controller.md`.

mod create;
mod foreign;
mod text;
mod watch;

use crate::endpoint;
use crate::output::{print, print_text};
use crate::remote::{self, ControllerArguments};
use crate::terminal;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde::de::DeserializeOwned;
use srdma_api::{Client, Group, GroupPage, MemoryRegion, NewReceiver};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;
use std::process::ExitCode;
use std::time::Duration;

/// Create, change and show the groups of a controller.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(Box<create::Arguments>),
    /// Add a receiver to a group.
    Join(Join),
    /// Remove a receiver from a group, on its own request.
    Leave(Member),
    /// Evict a receiver that is stalled or has failed.
    Evict(Member),
    /// Install a new group on all nodes (two-phase commit).
    Commit(Commit),
    /// Close a group at all nodes.
    Close(One),
    /// List groups.
    List(List),
    /// Show a group: members, tree, and the state of each branch.
    Show(One),
    Watch(watch::Arguments),
    Foreign(foreign::Arguments),
}

const EXAMPLES: &str = "\
Examples:
  export SRDMA_CONTROLLER=http://[::1]:8470
      Sets the controller of the commands below.

  srdma group create --source 2001:db8:aa::1 --source-qpn 0x100 --designated-qpn 0xd00000
      Creates a group and prints its number.

  srdma group join 7 2001:db8:bb::1 --qpn 0x1001
      Adds a receiver to group 7.

  srdma group commit 7
      Installs the group on all nodes and waits until the source may send.

  srdma group show 7
      Draws the tree with the expected PSN of each branch.

  srdma group foreign list
      Lists groups that nodes have from a store that was lost, or since a backup.

  srdma group watch 7 --until ready --timeout 10s
      Prints the events of group 7 until it is ready.

Exit codes: 0 success; 1 refused by the controller, or timed out; 2 wrong option, or the controller is not reached.";

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
    #[arg(value_name = "RECEIVER", value_parser = endpoint::parse_address)]
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
    /// Its RDMA path MTU, equal to the group's.
    #[arg(long, value_name = "OCTETS", default_value = "4096", value_parser = endpoint::parse_path_mtu)]
    path_mtu: PathMtu,
    /// Distance of its queue pair's PSNs from the group's, modulo 2^24.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = endpoint::parse_psn)]
    psn_offset: Psn,
    /// Key of its memory region, if the group carries WRITE.
    #[arg(long, value_name = "KEY", requires = "virtual_address")]
    rkey: Option<u32>,
    /// First virtual address of its memory region.
    #[arg(long, value_name = "ADDRESS", requires = "rkey")]
    virtual_address: Option<u64>,
    /// Its memory for a further region of the group, in the order of these: first virtual address, R_Key.
    #[arg(long, value_name = "ADDRESS,KEY", requires = "rkey", value_parser = parse_region)]
    more_region: Vec<MemoryRegion>,
}

#[derive(Args)]
struct Commit {
    #[command(flatten)]
    one: One,
    /// Timeout for the group to become ready, up to 60s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = endpoint::parse_time)]
    wait: Duration,
}

#[derive(Args)]
struct List {
    /// Only groups of this tenant.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// The controller, and the format of the output.
#[derive(Args)]
pub(crate) struct Output {
    #[command(flatten)]
    controller: ControllerArguments,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Output {
    /// A client of the controller.
    pub(crate) fn client(&self) -> Result<Client> {
        self.controller.client()
    }

    /// Prints a value as JSON, or as this text of it, with [escaped](terminal) strings.
    pub(crate) fn show<T: Serialize + DeserializeOwned>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<()> {
        if self.json {
            print(&format!("{}\n", serde_json::to_string(value)?))
        } else {
            print_text(&text(&terminal::shown(value)?))
        }
    }
}

/// Runs the command.
///
/// # Errors
///
/// If the controller is not reached.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(match &arguments.command {
        Command::Create(arguments) => create::run(arguments),
        Command::Join(arguments) => join(arguments),
        Command::Leave(arguments) | Command::Evict(arguments) => remove(arguments),
        Command::Commit(arguments) => commit(arguments),
        Command::Close(arguments) => close(arguments),
        Command::List(arguments) => list(arguments),
        Command::Show(arguments) => show(arguments),
        Command::Watch(arguments) => watch::run(arguments),
        Command::Foreign(arguments) => foreign::run(arguments),
    })
}

/// The longest wait that the API allows.
const MAX_WAIT_MS: u32 = 60_000;

/// Installs a new group on all nodes; returns its state when they have it, or after `wait`.
pub(crate) fn commit_group(client: &Client, group: u32, wait: Duration) -> Result<Group> {
    let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).min(MAX_WAIT_MS);
    Ok(client.commit_group(group, wait_ms)?)
}

fn join(arguments: &Join) -> Result<ExitCode> {
    let Member { group, receiver, output } = &arguments.member;
    let region = arguments.virtual_address.zip(arguments.rkey);
    let new = NewReceiver {
        qpn: arguments.qpn.get(),
        path_mtu: arguments.path_mtu.into(),
        region: region.map(|(virtual_address, rkey)| MemoryRegion { virtual_address, rkey }),
        more_regions: arguments.more_region.clone(),
        host: None,
        psn_offset: arguments.psn_offset.get(),
    };
    let joined = output.controller.client()?.join(*group, *receiver, &new)?;
    output.show(&joined, |joined| format!("{}\n", text::receiver(joined)))?;
    Ok(ExitCode::SUCCESS)
}

fn parse_region(text: &str) -> Result<MemoryRegion, String> {
    let numbers: Option<Vec<u64>> = text.split(',').map(endpoint::parse_integer).collect();
    match numbers.as_deref() {
        Some(&[virtual_address, rkey]) if u32::try_from(rkey).is_ok() => {
            Ok(MemoryRegion { virtual_address, rkey: rkey as u32 })
        }
        _ => Err("expected two numbers, such as 0x10000,0x1234".to_owned()),
    }
}

fn remove(arguments: &Member) -> Result<ExitCode> {
    let Member { group, receiver, output } = arguments;
    let left = output.controller.client()?.leave(*group, *receiver)?;
    output.show(&left, |left| format!("{}\n", text::receiver(left)))?;
    Ok(ExitCode::SUCCESS)
}

/// Exit code 1: the group is not ready.
fn commit(arguments: &Commit) -> Result<ExitCode> {
    let One { group, output } = &arguments.one;
    let group = commit_group(&output.controller.client()?, *group, arguments.wait)?;
    output.show(&group, |group| format!("{}\n", text::summary(&group.summary)))?;
    if let Some(failure) = &group.failure {
        eprintln!("srdma: {}", terminal::escaped(failure));
    }
    for warning in &group.warnings {
        eprintln!("srdma: warning: {}", terminal::escaped(warning));
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
