//! The thread that reports neighbours whose BFD session has gone down at once, beside the request that waits for orders
//! (D135). A report that fails is not repeated: the node's status has the neighbours, too.

use super::client::connect;
use crate::configuration::ControllerSettings;
use srdma_api::UnreachableReport;
use std::collections::BTreeSet;
use std::io;
use std::net::Ipv6Addr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Hints that wait for the thread; further ones are left to the status.
const MAX_WAITING: usize = 1024;

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(in crate::daemon) struct HintClient(SyncSender<Ipv6Addr>);

impl HintClient {
    /// Starts the thread, in the calling thread's network namespace.
    pub(in crate::daemon) fn start(settings: ControllerSettings) -> io::Result<Self> {
        let (hints, received) = sync_channel(MAX_WAITING);
        thread::Builder::new().name("hints".to_owned()).spawn(move || run(&settings, &received))?;
        Ok(HintClient(hints))
    }

    /// Reports a neighbour, by its loopback.
    pub(in crate::daemon) fn report(&self, neighbour: Ipv6Addr) {
        // The status has it, too.
        let _ = self.0.try_send(neighbour);
    }
}

fn run(settings: &ControllerSettings, hints: &Receiver<Ipv6Addr>) {
    while let Ok(first) = hints.recv() {
        let neighbours: BTreeSet<Ipv6Addr> = std::iter::once(first).chain(hints.try_iter()).collect();
        let report = UnreachableReport { unreachable: neighbours.into_iter().collect() };
        let reported = connect(settings).and_then(|client| client.report_unreachable(&settings.name, &report));
        if let Err(error) = reported {
            tracing::debug!(target: "controller", %error, "unreachable neighbours are left to the status");
        }
    }
}
