//! `srdma send --create`: a group for the queue pair of this host.

use super::{Arguments, Operation};
use crate::output::print_line;
use anyhow::{Context, Result};
use serde::Serialize;
use srdma_api::{Client, NewGroup, SourceAddress, SourceRegion, SourceTransport};
use srdma_host::{only_address, source_address};
use srdma_random::Stream;
use srdma_session::ControlledGroup;
use srdma_wire::{PathMtu, Qpn};
use std::net::Ipv6Addr;
use std::time::{SystemTime, UNIX_EPOCH};

/// The group, for `--json`.
#[derive(Serialize)]
struct Created<'a> {
    group: &'a str,
}

/// First virtual address of the group's region, as its source writes to it.
const REGION_BASE: u64 = 0x1_0000;
/// Length of the region, if that of the data is not known yet.
const REGION_OCTETS: u64 = 1 << 30;

/// A group that this process has created. It is closed when it is dropped: it has no other source.
pub(super) struct CreatedGroup {
    client: Client,
    id: u32,
}

impl CreatedGroup {
    /// The group, as its source uses it.
    pub(super) fn find(&self) -> Result<ControlledGroup> {
        ControlledGroup::find(self.client.clone(), self.id)
    }
}

impl Drop for CreatedGroup {
    fn drop(&mut self) {
        // Without a controller the group stays; it has no source any more.
        let _ = self.client.close_group(self.id);
    }
}

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
    let client = arguments.source.trust.client(url)?;
    let id = client.create_group(&new, None)?.summary.id;
    let created = CreatedGroup { client, id };
    let name = format!("{url}/{id}");
    let line = if arguments.json {
        serde_json::to_string(&Created { group: &name })?
    } else {
        format!("group {id}: on each receiver, srdma recv --group {name}")
    };
    print_line(&line)?;
    Ok(created)
}

/// A queue pair number, none of the reserved ones.
fn any_qpn(chance: &mut Stream) -> u32 {
    0x100 + chance.below(0xF0_0000) as u32
}

/// Numbers that differ from one process to the next.
fn chance(purpose: &str) -> Stream {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    Stream::new(now ^ u64::from(std::process::id()) << 40, purpose)
}
