//! The unicast transfer that a group is compared with: the same data from the same guest to each receiver on its own,
//! all at the same time.

use super::host::{ANY_PSN, MESSAGE_OCTETS, options};
use super::load::Load;
use super::peer::{Peer, Work};
use super::{Guest, Port};
use crate::error::Result;
use crate::group::address;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::topology::{Operation, Transfer};
use serde::Serialize;
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Results of unicast to all receivers at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unicast {
    /// Until the last receiver had everything.
    pub seconds: f64,
    /// Every receiver has the source's data.
    pub is_identical: bool,
    /// The share of all processors that the emulation of the guests took meanwhile.
    pub emulation_share: f64,
}

/// Sends to all receivers of a group at the same time, by a connection to each: the lab's guests run, and their
/// [`Port::Lab`] is unused.
///
/// # Errors
///
/// If a member of the group is no running guest, or a transfer does not complete.
pub fn unicast(
    lab: &Lab,
    source: usize,
    receivers: &[usize],
    transfer: &Transfer,
    interrupt: &Interrupt,
) -> Result<Unicast> {
    let octets = transfer.size_octets;
    let limit = Duration::from_secs(transfer.timeout_s);
    let peer = |node: usize| {
        let options = options(transfer, address(lab.topology(), node)?);
        Guest::at(lab, node)?.shell(Port::Lab)?.into_peer(options)
    };
    let mut receivers = receivers.iter().map(|receiver| peer(*receiver)).collect::<Result<Vec<_>>>()?;
    let mut source = peer(source)?;
    // Other data than those that the group has brought.
    source.fill(2)?;
    let sent = source.sha256(octets)?;
    for receiver in &mut receivers {
        join(&mut source, receiver, transfer)?;
    }
    let load = Load::begin(lab);
    source.run(limit)?;
    let time = poll(interrupt, || source.done())?;
    let emulation_share = load.share(time);
    let mut is_identical = true;
    for receiver in &mut receivers {
        if transfer.operation == Operation::Send {
            receiver.wait(octets.div_ceil(MESSAGE_OCTETS), limit)?;
            poll(interrupt, || receiver.waited())?;
        }
        is_identical &= receiver.sha256(octets)? == sent;
    }
    Ok(Unicast { seconds: time.as_secs_f64(), is_identical, emulation_share })
}

/// Polls until there is an answer.
fn poll<T>(interrupt: &Interrupt, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    loop {
        match ask()? {
            Some(answer) => return Ok(answer),
            None => interrupt.sleep(POLL_INTERVAL)?,
        }
    }
}

/// Connects two peers, and gives the first work toward the second.
fn join(source: &mut Peer, receiver: &mut Peer, transfer: &Transfer) -> Result<()> {
    let octets = transfer.size_octets;
    let (near, far) = (source.open(ANY_PSN)?, receiver.open(ANY_PSN)?);
    source.connect(near, receiver.address, far.qpn, ANY_PSN)?;
    receiver.connect(far, source.address, near.qpn, ANY_PSN)?;
    let work = match transfer.operation {
        Operation::Write => Work::Write { rkey: receiver.rkey, address: receiver.base },
        Operation::Send => {
            receiver.receive(far, octets, MESSAGE_OCTETS)?;
            Work::Send
        }
    };
    source.assign(near, work, octets, MESSAGE_OCTETS)
}
