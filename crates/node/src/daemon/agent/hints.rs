//! The thread that reports at once, beside the request that waits for orders, neighbours whose BFD session has gone
//! down (D135), and hosts whose links have (D291). A report that fails is not repeated: the node's status has them,
//! too.

use super::client::connect;
use crate::configuration::ControllerSettings;
use srdma_api::UnreachableReport;
use srdma_wire::Prefix;
use std::io;
use std::net::Ipv6Addr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Hints that wait for the thread; further ones are left to the status.
const MAX_WAITING: usize = 1024;

/// What is reported.
#[derive(Clone, Debug)]
pub(in crate::daemon) enum Hint {
    /// A neighbour, by its loopback.
    Unreachable(Ipv6Addr),
    /// Hosts that no port leads to any more.
    LostHosts(Vec<Prefix>),
}

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(in crate::daemon) struct HintClient(SyncSender<Hint>);

impl HintClient {
    /// Starts the thread, in the calling thread's network namespace.
    pub(in crate::daemon) fn start(settings: ControllerSettings) -> io::Result<Self> {
        let (hints, received) = sync_channel(MAX_WAITING);
        thread::Builder::new().name("hints".to_owned()).spawn(move || run(&settings, &received))?;
        Ok(HintClient(hints))
    }

    /// Reports it.
    pub(in crate::daemon) fn report(&self, hint: Hint) {
        // The status has it, too.
        let _ = self.0.try_send(hint);
    }
}

fn run(settings: &ControllerSettings, hints: &Receiver<Hint>) {
    while let Ok(first) = hints.recv() {
        let report = report_of(std::iter::once(first).chain(hints.try_iter()));
        let reported = connect(settings).and_then(|client| client.report_unreachable(&settings.name, &report));
        if let Err(error) = reported {
            tracing::debug!(target: "controller", %error, "lost neighbours and hosts are left to the status");
        }
    }
}

/// One report of several hints, each named once.
fn report_of(hints: impl Iterator<Item = Hint>) -> UnreachableReport {
    let mut report = UnreachableReport::default();
    for hint in hints {
        match hint {
            Hint::Unreachable(neighbour) => report.unreachable.push(neighbour),
            Hint::LostHosts(hosts) => report.lost_hosts.extend(hosts),
        }
    }
    report.unreachable.sort_unstable();
    report.unreachable.dedup();
    report.lost_hosts.sort_unstable();
    report.lost_hosts.dedup();
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D135, D291: what waits goes in one request.
    #[test]
    fn hints_that_wait_are_one_report() {
        let (near, far) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let hosts = |text: &str| text.parse::<Prefix>().unwrap();
        let (one, other) = (hosts("2001:db8:d0::/64"), hosts("2001:db8:d1::1/128"));
        let hints = [
            Hint::Unreachable(far),
            Hint::LostHosts(vec![other]),
            Hint::LostHosts(vec![one, other]),
            Hint::Unreachable(near),
            Hint::Unreachable(far),
        ];
        let report = report_of(hints.into_iter());
        assert_eq!(report, UnreachableReport { unreachable: vec![near, far], lost_hosts: vec![one, other] });
        let text = serde_json::to_string(&report_of([Hint::Unreachable(near)].into_iter())).unwrap();
        assert_eq!(text, "{\"unreachable\":[\"2001:db8::1\"]}", "as an earlier controller knows it");
    }
}
