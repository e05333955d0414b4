//! `srdma group create`.

use super::{Output, text};
use crate::endpoint;
use crate::remote::idempotency_key;
use anyhow::Result;
use clap::Args;
use srdma_api::{Client, ClientError, Group, NewGroup, SourceAddress, SourceRegion, SourceTransport};
use srdma_group::{Policy, RepairMode};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;
use std::process::ExitCode;

/// Create a group. Receivers may join before and after it is committed.
#[derive(Args)]
pub(super) struct Arguments {
    /// Display name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Address of the source.
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::parse_address)]
    source: Ipv6Addr,
    /// Queue pair of the source.
    #[arg(long, value_name = "QPN", value_parser = endpoint::parse_qpn)]
    source_qpn: Qpn,
    /// Proxy Address of this group [default: one of the tenant's pool].
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::parse_address)]
    proxy: Option<Ipv6Addr>,
    /// Designated QPN: the remote queue pair of source and receivers.
    #[arg(long, value_name = "QPN", value_parser = endpoint::parse_qpn)]
    designated_qpn: Qpn,
    /// The source's first PSN.
    #[arg(long, value_name = "PSN", default_value = "0", value_parser = endpoint::parse_psn)]
    psn: Psn,
    /// RDMA path MTU of all members.
    #[arg(long, value_name = "OCTETS", default_value = "4096", value_parser = endpoint::parse_path_mtu)]
    path_mtu: PathMtu,
    /// Memory region of the source's WRITEs: first virtual address, octets, R_Key. Without it the group carries SEND
    /// only. Up to 16 regions, each with an R_Key of its own; a receiver has one for each, in the same order.
    #[arg(long = "region", value_name = "BASE,OCTETS,KEY", value_parser = parse_region)]
    regions: Vec<SourceRegion>,
    /// Settings that differ from the defaults, as a JSON object such as '{"lists":"provisioned","on_failure":"evict"}'.
    #[arg(long, value_name = "JSON", value_parser = parse_policy)]
    policy: Option<Policy>,
    /// Local ACK Timeout of the source's queue pair: 4.096 µs times two to the power of N; 0: none. With `--retries`,
    /// the commit warns of failures whose repair takes longer.
    #[arg(long, value_name = "N", default_value = "14", value_parser = clap::value_parser!(u8).range(0..=31))]
    ack_timeout: u8,
    /// Retry count of the source's queue pair.
    #[arg(long, value_name = "N", default_value = "7", value_parser = clap::value_parser!(u8).range(0..=7))]
    retries: u8,
    /// Nodes that send lost packets again, instead of the source [default: tree, where nodes can].
    #[arg(long, value_enum)]
    repair: Option<RepairName>,
    /// Octets of payload that the source has in flight at most, for which nodes have buffers [default: 524288].
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u32).range(1..))]
    window_octets: Option<u32>,
    /// The group that this one resumes: it is closed, and its receivers find this one. Name and Proxy Address are its.
    #[arg(long, value_name = "GROUP")]
    resumes: Option<u32>,
    #[command(flatten)]
    output: Output,
}

/// Nodes that repair.
#[derive(Clone, Copy, clap::ValueEnum)]
enum RepairName {
    Off,
    Edge,
    Tree,
}

impl From<RepairName> for RepairMode {
    fn from(name: RepairName) -> Self {
        match name {
            RepairName::Off => RepairMode::Off,
            RepairName::Edge => RepairMode::Edge,
            RepairName::Tree => RepairMode::Tree,
        }
    }
}

impl Arguments {
    /// What differs from the usual, which controllers of earlier versions do not know.
    fn transport(&self) -> Option<SourceTransport> {
        let transport = SourceTransport { ack_timeout: self.ack_timeout, retries: self.retries };
        (transport != SourceTransport::USUAL).then_some(transport)
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let new = NewGroup {
        name: arguments.name.clone(),
        source: SourceAddress { address: arguments.source, qpn: arguments.source_qpn.get() },
        proxy: arguments.proxy,
        designated_qpn: arguments.designated_qpn.get(),
        initial_psn: arguments.psn.get(),
        path_mtu: arguments.path_mtu.into(),
        region: arguments.regions.first().copied(),
        more_regions: arguments.regions.iter().skip(1).copied().collect(),
        policy: arguments.policy.unwrap_or_default(),
        transport: arguments.transport(),
        repair: arguments.repair.map(Into::into),
        window_octets: arguments.window_octets,
        resumes: arguments.resumes,
    };
    let group = create(&arguments.output.controller.client()?, &new)?;
    arguments.output.show(&group, |group| {
        let id = group.summary.id;
        format!("{}\nafter receivers have joined: srdma group commit {id}\n", text::summary(&group.summary))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Repeats a request that may have taken effect.
fn create(client: &Client, new: &NewGroup) -> Result<Group, ClientError> {
    let key = idempotency_key();
    let send = || client.create_group(new, Some(&key));
    match send() {
        Err(ClientError::Unreachable { .. }) => send(),
        answer => answer,
    }
}

fn parse_region(text: &str) -> Result<SourceRegion, String> {
    let numbers: Option<Vec<u64>> = text.split(',').map(endpoint::parse_integer).collect();
    match numbers.as_deref() {
        Some(&[base, length, rkey]) if u32::try_from(rkey).is_ok() => {
            Ok(SourceRegion { base, length, rkey: rkey as u32 })
        }
        _ => Err("expected three numbers, such as 0x10000,0x40000000,0x1234".to_owned()),
    }
}

fn parse_policy(text: &str) -> Result<Policy, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_three_numbers() {
        let region = SourceRegion { base: 0x10000, length: 4096, rkey: 7 };
        assert_eq!(parse_region("0x10000,4096,7"), Ok(region));
        for wrong in ["", "1,2", "1,2,3,4", "1,2,0x100000000", "a,b,c"] {
            assert!(parse_region(wrong).is_err(), "{wrong}");
        }
        assert!(parse_policy("{\"lists\":\"provisioned\"}").is_ok() && parse_policy("{\"list\":1}").is_err());
    }
}
