//! `srdma send --device`: by a queue pair of an RDMA device, whose number the device chooses.

use super::{Arguments, GroupPlace, Operation, Report, begin, controlled_group, create, data, group, print, receiver};
use crate::endpoint::{self, Progress};
use crate::output::print_line;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use sha2::{Digest, Sha256};
use srdma_api::SourceTransport;
use srdma_host::{
    Congestion, DeviceError, DeviceName, DeviceSender, GroupFile, SendingConfig, Sent, SourceControl, Trailer,
};
use srdma_session::ControlledGroup;
use srdma_wire::Qpn;
use std::net::Ipv6Addr;
use std::process::ExitCode;
use std::time::Duration;

/// The sender's queue pair, for a receiver: the first line of output with `--peer-info`.
#[derive(Serialize)]
struct Own {
    address: Ipv6Addr,
    qpn: u32,
}

pub(super) fn send(arguments: &Arguments, name: &DeviceName) -> Result<ExitCode> {
    if arguments.congestion.congestion(false)? != Congestion::default() {
        bail!("--device: a device controls its rate itself: options of rate control and marks are for sockets");
    }
    // Closed after its source has ended.
    let created;
    let (sender, peer, controlled) = match (&arguments.peer_info, &arguments.group, &arguments.source.create) {
        (Some(file), ..) => {
            let address = name.address(arguments.address, None)?;
            let address = address.context("--address is needed: the receiver gets it with the queue pair")?;
            let sender = DeviceSender::open(name, address)?;
            print_line(&serde_json::to_string(&Own { address, qpn: sender.qpn().get() })?)?;
            (sender, receiver(arguments, file)?, None)
        }
        (None, Some(GroupPlace::File(file)), _) => {
            let file = GroupFile::read(file)?;
            let sender = of_group(arguments, name, &file)?;
            (sender, group(arguments, &file)?, None)
        }
        (None, Some(GroupPlace::Controller(url)), _) => {
            let found = ControlledGroup::find(arguments.source.trust.client(&url.controller)?, url.id)?;
            let sender = of_group(arguments, name, found.file())?;
            (sender, controlled_group(arguments, &found)?, Some(found))
        }
        (None, None, Some(url)) => {
            let address = name.address(arguments.address, arguments.source.proxy)?.ok_or_else(create::no_address)?;
            let sender = DeviceSender::open(name, address)?;
            let transport =
                SourceTransport { ack_timeout: arguments.ack_timeout(), retries: DeviceSender::MOST_RETRIES };
            created = create::group(arguments, url, address, sender.qpn(), Some(transport))?;
            let found = created.find()?;
            (sender, controlled_group(arguments, &found)?, Some(found))
        }
        (None, None, None) => bail!("one of --peer-info, --group and --create is needed"),
    };
    let mut connection = peer.connection;
    (connection.qpn, connection.retries) = (sender.qpn(), connection.retries.min(DeviceSender::MOST_RETRIES));
    let data = data(arguments)?;
    let octets = data.len() as u64;
    if let (Operation::Write, Some(region_octets)) = (arguments.op, peer.region_octets)
        && octets > region_octets
    {
        bail!("there are {octets} octets to send, the peer's memory has {region_octets}");
    }
    let trailer = Trailer { octets, sha256: Sha256::digest(&data).into() };
    let config = SendingConfig {
        qpn: sender.qpn(),
        mode: peer.mode,
        message_octets: arguments.message,
        timeout: arguments.timeout,
    };
    let mut progress = Progress::new(Some(octets));
    let mut report = |octets: u64| progress.report(octets);
    let mut source = begin(arguments, controlled.as_ref())?;
    let control = source.as_mut().map(|source| source as &mut dyn SourceControl);
    let sent = sender.send(&connection, &data, &trailer, &config, control, &mut report);
    progress.finish();
    finish(arguments, trailer, sent)
}

fn finish(arguments: &Arguments, trailer: Trailer, sent: Result<Sent, DeviceError>) -> Result<ExitCode> {
    let (sent, error) = match sent {
        Ok(sent) => (sent, None),
        Err(error @ (DeviceError::Verbs(_) | DeviceError::NoMemory(_))) => return Err(error.into()),
        Err(error) => (Sent { duration: Duration::ZERO, completions: 0 }, Some(error.to_string())),
    };
    let report = Report {
        error,
        octets: trailer.octets,
        seconds: sent.duration.as_secs_f64(),
        bits_per_second: endpoint::bits_per_second(trailer.octets, sent.duration),
        sha256: Some(hex::encode(trailer.sha256)),
        completions: sent.completions,
        counters: None,
        congestion: None,
        steering: None,
    };
    print(arguments, &report, sent.duration)
}

/// The device for a group that exists, whose record has the number of the source's queue pair.
fn of_group(arguments: &Arguments, name: &DeviceName, file: &GroupFile) -> Result<DeviceSender> {
    let sender = DeviceSender::open(name, arguments.address.unwrap_or(file.source.address))?;
    let (own, expected): (Qpn, Qpn) = (sender.qpn(), file.source.qpn);
    if own != expected {
        bail!(
            "the group is for queue pair {:#x}, and the device has chosen {:#x}: create the group by \
             srdma send --create URL --device ..., which tells the controller its number",
            expected.get(),
            own.get()
        );
    }
    Ok(sender)
}
