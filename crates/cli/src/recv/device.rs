//! `srdma recv --device`: by a queue pair of an RDMA device, which chooses number and key.

use super::{Arguments, connection, finish, seed};
use crate::endpoint::Progress;
use crate::output::print_line;
use anyhow::{Context, Result};
use srdma_api::GroupState;
use srdma_host::{DeviceError, DeviceName, DeviceReceiver, PeerInfo};
use srdma_random::Stream;
use srdma_session::Membership;
use std::process::ExitCode;
use std::time::Duration;

/// Packets that a sender may have outstanding: as many as soft-RoCE.
const WINDOW: u32 = 128;

pub(super) fn receive(arguments: &Arguments, name: &DeviceName) -> Result<ExitCode> {
    let membership = arguments.group.find()?;
    let mut connection = connection(arguments, membership.as_ref())?;
    let address = name.address(arguments.address, Some(connection.peer_address))?;
    connection.address = address.context("an address of this host is needed: --address")?;
    let first_psn = connection.psn;
    let group = membership.as_ref().map(Membership::group);
    let region_octets = group.and_then(|group| group.region).map_or(u64::MAX, |region| region.length);
    let output = arguments.output()?;
    let size_octets = arguments.size.min(region_octets);
    let page = Stream::new(seed(arguments), "memory").below(1 << 32);
    let virtual_address = arguments.virtual_address.unwrap_or(page << 12);
    let mut receiver = DeviceReceiver::open(name, connection.address, virtual_address, size_octets, arguments.message)?;
    connection.qpn = receiver.qpn();
    let info = PeerInfo {
        address: connection.address,
        qpn: receiver.qpn(),
        rkey: receiver.rkey(),
        virtual_address,
        path_mtu: connection.path_mtu,
        size: Some(size_octets),
        psn: Some(connection.psn),
        peer_address: Some(connection.peer_address),
        peer_qpn: Some(connection.peer_qpn),
        window: Some(WINDOW),
    };
    // A device drops what comes before it is connected (D185).
    if group.is_none_or(|group| group.summary.state == GroupState::Open) {
        receiver.connect(&connection)?;
    }
    print_line(&info.line()?)?;
    if let Some(membership) = &membership {
        connection.psn = membership.join(&info)?;
        receiver.connect(&connection)?;
    }
    let mut progress = Progress::new(None);
    let timeout = arguments.timeout.unwrap_or(Duration::from_secs(600));
    let received = receiver.receive(output, timeout, &mut |octets| progress.report(octets));
    progress.finish();
    let received = match received {
        Err(error @ (DeviceError::Verbs(_) | DeviceError::Wait(_))) => return Err(error.into()),
        other => other,
    };
    let joined_psn = (connection.psn != first_psn).then(|| connection.psn.get());
    let is_received = received.is_ok();
    let code = finish(arguments, received, None, joined_psn)?;
    if is_received {
        // The device answers the sender's repetitions while it has the queue pair.
        std::thread::sleep(arguments.linger);
    }
    if let Some(membership) = membership.filter(|_| arguments.group.leave) {
        membership.leave(connection.address)?;
    }
    Ok(code)
}
