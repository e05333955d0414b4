//! Traffic of the links, from the counters of their interfaces.

use crate::command;
use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::network::{Side, WIRES};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::thread::sleep;
use std::time::Duration;

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounters {
    /// Octets of frames sent from the first end, whether they arrived or not.
    pub down_octets: u64,
    /// Octets of frames sent from the second end.
    pub up_octets: u64,
    /// Frames that the link lost, in both directions: by chance, or in front of its rate.
    pub lost_packets: u64,
}

#[derive(Deserialize)]
struct Interface {
    ifname: String,
    stats64: Statistics,
}

#[derive(Deserialize)]
struct Statistics {
    rx: Counter,
    tx: Counter,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Counter {
    bytes: u64,
    packets: u64,
}

/// Delay between two readings, and the most readings, until no frame is on its way.
const SETTLING: Duration = Duration::from_millis(20);
const MAX_READINGS: usize = 50;

/// Reads the counters of so many links when they have stopped to change: a frame on its way is not lost. Links that
/// carry frames all the time are read as they are.
pub(crate) fn of_idle_links(instance: &Instance, links: usize) -> Result<Vec<LinkCounters>> {
    let mut before = of_links(instance, links)?;
    for _ in 1..MAX_READINGS {
        sleep(SETTLING);
        let after = of_links(instance, links)?;
        if after == before {
            break;
        }
        before = after;
    }
    Ok(before)
}

/// Reads the counters of so many links.
pub(crate) fn of_links(instance: &Instance, links: usize) -> Result<Vec<LinkCounters>> {
    let line = format!("ip -n {} -s -j link show", instance.namespace(WIRES));
    let text = command::run(&line)?;
    let interfaces: Vec<Interface> = serde_json::from_str(&text)
        .map_err(|error| LabError::Unexpected { who: format!("`{line}`"), problem: error.to_string() })?;
    let interfaces: HashMap<&str, &Statistics> =
        interfaces.iter().map(|interface| (interface.ifname.as_str(), &interface.stats64)).collect();
    let counters = (0..links).map(|link| {
        let of = |side: Side| interfaces.get(side.wire(link).as_str());
        let sent = |side| of(side).map_or(Counter::default(), |statistics| statistics.rx);
        let arrived = |side: Side| of(side.other()).map_or(0, |statistics| statistics.tx.packets);
        let lost = |side| sent(side).packets.saturating_sub(arrived(side));
        LinkCounters {
            down_octets: sent(Side::A).bytes,
            up_octets: sent(Side::B).bytes,
            lost_packets: lost(Side::A) + lost(Side::B),
        }
    });
    Ok(counters.collect())
}
