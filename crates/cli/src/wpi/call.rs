//! Calls of a driver, as an operator makes them.

use super::SOCKET_DIRECTORY;
use crate::output::print;
use crate::terminal::escaped;
use crate::units::parse_octets;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use srdma_wpi::messages::{
    NodePropagateRequest, NodeStageWeightRequest, NodeTranslateAndMapRequest, NodeUnstageWeightRequest, PropagateMode,
    ShardAssignment,
};
use srdma_wpi::{CallError, Client};
use std::path::PathBuf;
use std::process::ExitCode;

/// The driver that is called.
#[derive(Args)]
struct At {
    /// Directory of the driver's sockets.
    #[arg(long, value_name = "DIR", default_value = SOCKET_DIRECTORY)]
    socket_directory: PathBuf,
    /// Call the driver at this address by TCP, instead of its socket.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "socket_directory")]
    driver: Option<String>,
}

impl At {
    fn client(&self) -> Result<Client> {
        match &self.driver {
            Some(address) => Client::by_address(address).with_context(|| address.clone()),
            None => {
                let socket = self.socket_directory.join("wpi-grpc.sock");
                Client::by_socket(&socket).with_context(|| socket.display().to_string())
            }
        }
    }
}

/// Print what a driver is, as JSON.
#[derive(Args)]
pub(super) struct Info {
    #[command(flatten)]
    at: At,
}

/// Stage a buffer for a claim, and print the socket that passes it.
#[derive(Args)]
pub(super) struct Stage {
    /// Name of the buffer.
    #[arg(value_name = "BUFFER")]
    buffer: String,
    /// Name of the claim: the buffer stays until its last claim is unstaged.
    #[arg(long, value_name = "CLAIM")]
    claim: String,
    /// Octets of the buffer [default: those of the file].
    #[arg(long, value_name = "OCTETS", value_parser = parse_octets)]
    size: Option<u64>,
    /// File with its octets, below the driver's --source-directory.
    #[arg(long, value_name = "FILE")]
    source: Option<String>,
    /// Stage a shard: its number, counted from 0, and the number of shards.
    #[arg(long, value_name = "INDEX/TOTAL", value_parser = parse_shard)]
    shard: Option<(i32, i32)>,
    #[command(flatten)]
    at: At,
}

/// Unstage a claim.
#[derive(Args)]
pub(super) struct Unstage {
    /// Name of the claim.
    #[arg(value_name = "CLAIM")]
    claim: String,
    #[command(flatten)]
    at: At,
}

/// Propagate a buffer to other nodes, and wait until they have it.
#[derive(Args)]
pub(super) struct Propagate {
    /// Name of the buffer, which is staged at all nodes.
    #[arg(value_name = "BUFFER")]
    buffer: String,
    /// A node that gets all octets, by address or host name; may be repeated.
    #[arg(long, value_name = "HOST", required_unless_present = "scatter", conflicts_with = "scatter")]
    to: Vec<String>,
    /// A node that gets so many octets from the given one on; may be repeated.
    #[arg(long, value_name = "HOST=FIRST+OCTETS", value_parser = parse_part)]
    scatter: Vec<Part>,
    #[command(flatten)]
    at: At,
}

/// Octets for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    host: String,
    offset: u64,
    length: u64,
}

fn parse_shard(text: &str) -> Result<(i32, i32), String> {
    let numbers = text.split_once('/').and_then(|(index, total)| Some((index.parse().ok()?, total.parse().ok()?)));
    numbers.ok_or_else(|| "expected the shard's number and the number of shards, such as 0/8".to_owned())
}

fn parse_part(text: &str) -> Result<Part, String> {
    let parts = text.rsplit_once('=').and_then(|(host, range)| {
        let (offset, length) = range.split_once('+')?;
        Some(Part { host: host.to_owned(), offset: parse_octets(offset).ok()?, length: parse_octets(length).ok()? })
    });
    parts.ok_or_else(|| "expected a node and its octets, such as 10.0.0.8=0+1GiB".to_owned())
}

/// A call that the driver refuses, or that fails, has exit code 1.
fn finish<T>(called: Result<T, CallError>) -> Result<Option<T>> {
    match called {
        Ok(answer) => Ok(Some(answer)),
        Err(error) => {
            eprintln!("srdma: {}", escaped(&format!("{error} (gRPC code {})", error.code)));
            Ok(None)
        }
    }
}

pub(super) fn info(arguments: &Info) -> Result<ExitCode> {
    let Some(info) = finish(arguments.at.client()?.info())? else { return Ok(ExitCode::FAILURE) };
    print(&format!("{}\n", json!({ "name": info.name, "version": info.vendor_version })))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn stage(arguments: &Stage) -> Result<ExitCode> {
    let client = arguments.at.client()?;
    let (shard_index, total_shards) = arguments.shard.unwrap_or((-1, 0));
    let request = NodeStageWeightRequest {
        claim_id: arguments.claim.clone(),
        buffer_id: arguments.buffer.clone(),
        source_path: arguments.source.clone().unwrap_or_default(),
        size_bytes: arguments.size.unwrap_or(0),
        shard_index,
        total_shards,
    };
    let of_claim = NodeTranslateAndMapRequest { claim_id: arguments.claim.clone(), ..Default::default() };
    let Some(mapped) = finish(client.stage(request).and_then(|_| client.map(of_claim)))? else {
        return Ok(ExitCode::FAILURE);
    };
    print(&format!("{}\n", mapped.device_path))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn unstage(arguments: &Unstage) -> Result<ExitCode> {
    let request = NodeUnstageWeightRequest { claim_id: arguments.claim.clone() };
    let unstaged = finish(arguments.at.client()?.unstage(request))?;
    Ok(if unstaged.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn propagate(arguments: &Propagate) -> Result<ExitCode> {
    let client = arguments.at.client()?;
    let mode = if arguments.scatter.is_empty() { PropagateMode::Broadcast } else { PropagateMode::Scatter };
    let mut target_node_ids = arguments.to.clone();
    for part in &arguments.scatter {
        if !target_node_ids.contains(&part.host) {
            target_node_ids.push(part.host.clone());
        }
    }
    let assignment = |(index, part): (usize, &Part)| ShardAssignment {
        target_node_id: part.host.clone(),
        shard_index: index as i32,
        offset_bytes: part.offset,
        length_bytes: part.length,
        target_gpu_id: 0,
    };
    let request = NodePropagateRequest {
        buffer_id: arguments.buffer.clone(),
        target_node_ids,
        target_layout: None,
        mode: mode as i32,
        shard_assignments: arguments.scatter.iter().enumerate().map(assignment).collect(),
    };
    let propagated = finish(client.propagate(request))?;
    Ok(if propagated.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_nodes_and_octets() {
        let part = parse_part("[2001:db8::1]:7=4KiB+2").expect("a part");
        assert_eq!(part, Part { host: "[2001:db8::1]:7".to_owned(), offset: 4096, length: 2 });
        for bad in ["", "a", "a=1", "a=+1", "a=1+", "a=x+1", "a=1+2+3"] {
            assert!(parse_part(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_shard("7/8"), Ok((7, 8)));
        assert!(parse_shard("7").is_err() && parse_shard("/8").is_err());
    }
}
