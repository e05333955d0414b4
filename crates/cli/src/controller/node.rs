//! `srdma controller node`: the nodes of a controller.

use crate::group::Output;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use srdma_api::{Node, NodeIdentity, PROTOCOL};
use std::process::ExitCode;

/// List, confirm, drain, rename and remove the nodes of a controller.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List nodes, with what they have registered and is not confirmed.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Confirm what a node has registered: its loopback, SIDs and hosts. Trees use nothing else of it.
    Confirm(One),
    /// Exclude a node from new trees, and reroute existing ones.
    Drain(One),
    /// Admit a drained node to trees again.
    Release(One),
    /// Give a node another name; it may use the former one until it registers with the new one.
    Rename {
        #[command(flatten)]
        one: One,
        /// The new name.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a node that is drained or lost: receivers at an edge are evicted.
    Remove(One),
}

#[derive(Args)]
struct One {
    /// The node's name.
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::List { output } => list(output)?,
        Command::Confirm(one) => confirm(one)?,
        Command::Drain(One { node, output }) => output.show(&output.client()?.drain_node(node, true)?, text)?,
        Command::Release(One { node, output }) => output.show(&output.client()?.drain_node(node, false)?, text)?,
        Command::Rename { one: One { node, output }, name } => {
            output.show(&output.client()?.rename_node(node, name)?, text)?;
        }
        Command::Remove(One { node, output }) => output.show(&output.client()?.remove_node(node)?, text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(output: &Output) -> Result<()> {
    let client = output.client()?;
    let mut nodes: Vec<Node> = Vec::new();
    loop {
        let after = nodes.last().map(|node| node.name.clone());
        let page = client.nodes(after.as_deref(), Some(500))?;
        nodes.extend(page.nodes);
        if page.next.is_none() {
            break;
        }
    }
    output.show(&nodes, |nodes| nodes.iter().map(text).collect())
}

/// Confirms what the node has registered now; a registration that comes between is refused by the controller.
fn confirm(One { node, output }: &One) -> Result<()> {
    let client = output.client()?;
    let Some(identity) = client.node(node)?.unconfirmed else {
        bail!("node {node} has registered nothing that is not confirmed");
    };
    output.show(&client.confirm_node(node, &identity)?, text)
}

/// A node in a line, and one with what is not confirmed.
fn text(node: &Node) -> String {
    let Node { name, loopback, end_mt, replication, hosts, groups, protocol, .. } = node;
    let used = NodeIdentity { loopback: *loopback, end_mt: *end_mt, replication: *replication, hosts: hosts.clone() };
    let state = match node {
        Node { is_removing: true, .. } => "is being removed",
        Node { is_alive: true, is_drained: true, .. } => "is connected and drained",
        Node { is_alive: true, is_drained: false, .. } => "is connected",
        Node { is_alive: false, is_drained: true, .. } => "is not connected, drained",
        Node { is_alive: false, is_drained: false, .. } => "is not connected",
    };
    let plural = if *groups == 1 { "" } else { "s" };
    // The version before: no lease, no reports of BFD (D112).
    let by = match protocol {
        Some(protocol) if *protocol < PROTOCOL => format!(" by protocol {protocol}"),
        Some(_) | None => String::new(),
    };
    let mut lines = format!("node {name} {state}{by}, {groups} group{plural}: {}\n", identity(&used));
    if let Some(unconfirmed) = &node.unconfirmed {
        lines.push_str(&format!("node {name} is not confirmed as {}\n", identity(unconfirmed)));
    }
    lines
}

fn identity(identity: &NodeIdentity) -> String {
    let NodeIdentity { loopback, end_mt, replication, hosts } = identity;
    let mut text = format!("loopback {loopback}");
    text.extend(end_mt.map(|sid| format!(", End.MT SID {sid}")));
    text.extend(replication.map(|prefix| format!(", Replication SIDs {prefix}")));
    text.extend(hosts.iter().map(|prefix| format!(", hosts {prefix}")));
    text
}
