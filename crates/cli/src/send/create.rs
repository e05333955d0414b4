//! `srdma send --create`: a group for the queue pair of this host.

use super::{Arguments, Operation};
use crate::endpoint::{any_qpn, chance};
use crate::output::print_line;
use anyhow::{Context, Result};
use serde::Serialize;
use srdma_api::{NewGroup, SourceAddress, SourceRegion, SourceTransport};
use srdma_host::{only_address, source_address};
use srdma_session::CreatedGroup;
use srdma_wire::{PathMtu, Qpn};
use std::net::Ipv6Addr;

/// The group, for `--json`.
#[derive(Serialize)]
struct Created<'a> {
    group: &'a str,
}

/// First virtual address of the group's region, as its source writes to it.
const REGION_BASE: u64 = 0x1_0000;
/// Length of the region, if that of the data is not known yet.
const REGION_OCTETS: u64 = 1 << 30;

/// Creates a group for a socket of this host.
pub(super) fn group_of_socket(arguments: &Arguments, url: &str) -> Result<CreatedGroup> {
    let address = match (arguments.address, arguments.source.proxy) {
        (Some(address), _) => address,
        (None, Some(proxy)) => source_address(proxy)?,
        (None, None) => only_address().ok_or_else(no_address)?,
    };
    let any = Qpn::new(any_qpn(&mut chance("queue pair"))).context("24 bits")?;
    group(arguments, url, address, arguments.qpn.unwrap_or(any), None)
}

/// Why no address of this host is known.
pub(super) fn no_address() -> anyhow::Error {
    anyhow::anyhow!("--address is needed: without --proxy none of several addresses can be chosen")
}

/// Creates a group for a queue pair of this host. Prints its URL.
pub(super) fn group(
    arguments: &Arguments,
    url: &str,
    address: Ipv6Addr,
    qpn: Qpn,
    transport: Option<SourceTransport>,
) -> Result<CreatedGroup> {
    let length = match (arguments.random, arguments.file.as_deref()) {
        (Some(octets), _) => octets,
        // The standard input has no length.
        (None, Some(file)) => std::fs::metadata(file).map_or(REGION_OCTETS, |metadata| metadata.len()),
        (None, None) => REGION_OCTETS,
    };
    let mut chance = chance("group");
    let rkey = chance.below(1 << 32) as u32;
    let region = SourceRegion { base: REGION_BASE, length: length.max(1), rkey };
    let new = NewGroup {
        proxy: arguments.source.proxy,
        initial_psn: arguments.psn.map_or_else(|| chance.below(1 << 24) as u32, |psn| psn.get()),
        path_mtu: arguments.path_mtu.unwrap_or(PathMtu::Octets4096).into(),
        region: match arguments.op {
            Operation::Write => Some(region),
            Operation::Send => None,
        },
        transport,
        ..NewGroup::new(SourceAddress { address, qpn: qpn.get() }, any_qpn(&mut chance))
    };
    let created = CreatedGroup::create(arguments.source.trust.client(url)?, &new)?;
    let id = created.id();
    let name = format!("{url}/{id}");
    let line = if arguments.json {
        serde_json::to_string(&Created { group: &name })?
    } else {
        format!("group {id}: on each receiver, srdma recv --group {name}")
    };
    print_line(&line)?;
    Ok(created)
}
