//! Metrics of the fast path.

use super::{Family, Out, of_port};
use crate::daemon::{FastPathSnapshot, PortSnapshot};
use crate::process::TrafficReport;
use std::fmt;

pub(super) fn families(out: &mut Out<'_>, ports: &[PortSnapshot]) -> fmt::Result {
    let with = || ports.iter().filter_map(|port| Some((port, port.fast_path.as_ref()?)));
    let help = "Whether the program at the port's interface forwards: 1 or 0";
    let on = with().map(|(port, fast_path)| (of_port(port), u64::from(fast_path.is_on)));
    out.gauges("srdma_fast_path_on", help, None, on)?;
    let traffic: [Family<FastPathSnapshot, TrafficReport>; 2] = [
        ("srdma_fast_path_received", "Received frames that the program has forwarded", |fast_path| fast_path.received),
        ("srdma_fast_path_sent", "Frames that programs have sent by the port", |fast_path| fast_path.sent),
    ];
    for (name, help, traffic) in traffic {
        out.traffic(name, help, with().map(|(port, fast_path)| (of_port(port), traffic(fast_path))))?;
    }
    Ok(())
}
