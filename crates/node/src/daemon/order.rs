//! Orders of the control task to a data thread, and the replies.

use super::interest::Wanted;
use super::snapshot::{DaemonState, Snapshot};
use crate::configuration::PortInterface;
use srdma_dataplane::{BfdPeer, Command};
use srdma_frame::PortId;
use srdma_io::{DriverKind, OpenError, Share, ShareGroup};
use std::io;
use tokio::sync::oneshot;

/// Where the reply to an order goes.
type Reply<T> = oneshot::Sender<T>;

/// Something to do between two batches.
#[derive(Debug)]
pub(super) enum Order {
    /// Carry out commands, all of them before the next frame. `None`: the interest stays as it is.
    Change { interest: Option<Wanted>, commands: Vec<Command>, reply: Reply<Result<(), Refusal>> },
    /// Give a port a driver of this interface, instead of the one that it may have, for a share of the frames.
    Attach { port: PortId, interface: PortInterface, share: Share, reply: Reply<Result<Attached, OpenError>> },
    /// Take a port's driver away, if it has one.
    Detach { port: PortId, reply: Reply<()> },
    /// Acknowledge for the controller's groups until then (D122); `None`: without a limit.
    Lease { end: Option<std::time::Instant>, reply: Reply<()> },
    /// Follow an event of a BFD session that another worker runs.
    FollowBfd { peer: BfdPeer, change: srdma_bfd::Event, reply: Reply<()> },
    /// Describe the node. `state` does not have the drivers yet.
    Snapshot { state: Box<DaemonState>, reply: Reply<Snapshot> },
    /// Take no more frames, send what waits, give everything back. The reply: how many frames could not be sent.
    Stop { reply: Reply<usize> },
}

/// Refused part of a change, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A driver refused the interest: nothing was carried out.
    Interest(String),
    /// The node refused a command: all others were carried out.
    Command(String),
}

/// A driver that a port has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attached {
    pub(super) driver: DriverKind,
    /// Reason for none of the faster ones.
    pub(super) note: Option<String>,
    /// Number of the driver among those that the thread has opened.
    pub(super) number: u64,
    /// What drivers of other threads join.
    pub(super) group: Option<ShareGroup>,
}

/// What a data thread reports of its own accord.
#[derive(Debug)]
pub(super) enum Notice {
    Lost(Loss),
    /// A BFD session has come up, or was up and has gone down.
    Bfd {
        peer: BfdPeer,
        change: srdma_bfd::Event,
    },
    /// The thread of this number has ended.
    Ended(usize),
}

/// A port's driver is gone.
#[derive(Debug)]
pub(super) struct Loss {
    /// The thread whose driver it was.
    pub(super) worker: usize,
    pub(super) port: PortId,
    /// The driver's, from [`Attached`]: the port may have got another one meanwhile.
    pub(super) number: u64,
    pub(super) error: io::Error,
}
