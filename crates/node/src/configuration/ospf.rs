//! `[ospf]`: the node's announcements, and its circuits (`docs/ospf.md`).

use super::Draft;
use super::isis::{Sids, behaviors, end_x, locator};
use super::ports::port_named;
use srdma_dataplane::NodeConfig;
use srdma_frame::PortId;
use srdma_isis::Behaviors;
use srdma_isis::tlv::{CapabilityFlags, EndXSid, TopologyId};
use srdma_node_spec::file::{Located, LocatorSection, NodeFile, OspfSection};
use srdma_ospf::lsa::{PrefixEntry, PrefixOptions};
use srdma_ospf::srv6::{Locator, RouteType};
use srdma_ospf::{Config, RouterId, Timers};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::time::Duration;

/// Announcements of a node by OSPFv3, and their circuits.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OspfSettings {
    pub router: Config,
    pub circuits: Vec<OspfCircuit>,
    /// Names of END.C and END.E.
    pub behaviors: Behaviors,
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OspfCircuit {
    /// The port whose interface it is.
    pub port: PortId,
    /// Metric of the link.
    pub metric: u16,
    /// The SIDs of its adjacency.
    pub end_x: Vec<EndXSid>,
}

/// Settings of OSPFv3. Read after the SIDs, which are announced.
pub(super) fn settings(
    file: &NodeFile,
    name: &str,
    node: &NodeConfig,
    draft: &Draft,
) -> Result<Option<OspfSettings>, Problem> {
    let Some(section) = &file.ospf else { return Ok(None) };
    let section = section.get_ref();
    let hostname = section.hostname.as_ref().map_or(name, |hostname| &hostname.value.0);
    let mut config = Config::new(RouterId(section.router_id.value.0), hostname);
    config.is_overloaded = section.overload;
    config.timers = timers(section)?;
    if let Some(limit) = &section.max_lsas {
        config.limit_lsas = limit.value.get() as usize;
    }
    let behaviors = behaviors(&section.end_c_behavior, &section.end_e_behavior);
    let sids = Sids { sids: &draft.entries.sids, behaviors };
    config.locators = section.locator.iter().map(|section| announced(section, &sids)).collect::<Result<_, _>>()?;
    if !config.locators.is_empty() {
        let c_flag = CapabilityFlags::CONGESTION_NOTIFICATION;
        config.srv6 = Some(if section.congestion_notification { c_flag } else { CapabilityFlags::default() });
    } else if section.congestion_notification {
        let text = "congestion_notification without an [[ospf.locator]]: there is no SID to send notifications to";
        return Err(Problem::new(section.router_id.at, text));
    }
    config.prefixes = prefixes(section, node);
    let circuits = circuits(section, node, &sids, &config.locators)?;
    Ok(Some(OspfSettings { router: config, circuits, behaviors }))
}

/// A locator with the SIDs in it. It is announced as a prefix too, whose metric has 16 bits (D277).
fn announced(section: &LocatorSection, sids: &Sids<'_>) -> Result<Locator, Problem> {
    if let Some(metric) = section.metric.as_ref().filter(|metric| metric.value.get() >= u64::from(u16::MAX)) {
        return Err(Problem::new(metric.at, "expected a metric of 65534 at most: a prefix has 16 bits for it"));
    }
    let found = locator(section, TopologyId::STANDARD, sids)?;
    Ok(Locator {
        route_type: RouteType::IntraArea,
        algorithm: found.algorithm,
        options: 0,
        metric: found.metric,
        prefix: found.prefix,
        sids: found.sids,
    })
}

fn timers(section: &OspfSection) -> Result<Timers, Problem> {
    let default = Timers::default();
    let seconds = |given: &Option<Located<Duration>>, default: u64| match given {
        None => Ok(default),
        Some(given) if given.value.subsec_nanos() == 0 && (1..=65_535).contains(&given.value.as_secs()) => {
            Ok(given.value.as_secs())
        }
        Some(given) => Err(Problem::new(given.at, "expected whole seconds from 1s to 65535s")),
    };
    let hello_s = seconds(&section.hello, default.hello_s.into())? as u16;
    let dead_s = seconds(&section.dead, u64::from(hello_s).saturating_mul(4).min(65_535))? as u16;
    if let Some(dead) = section.dead.as_ref().filter(|_| dead_s <= hello_s) {
        let text = format!("dead must be more than hello, which is {hello_s}s: neighbours would come and go");
        return Err(Problem::new(dead.at, text));
    }
    Ok(Timers { hello_s, dead_s, retransmit_s: seconds(&section.retransmit, default.retransmit_s)? })
}

/// The node's loopback, and the prefixes of the file.
fn prefixes(section: &OspfSection, node: &NodeConfig) -> Vec<PrefixEntry> {
    let loopback = Prefix::host(node.loopback);
    let entry = |prefix, options| PrefixEntry { prefix, options, metric: 0 };
    let mut all = vec![entry(loopback, PrefixOptions::LOCAL_ADDRESS)];
    for prefix in section.prefixes.iter().map(|prefix| prefix.value) {
        if all.iter().all(|known| known.prefix != prefix) {
            all.push(entry(prefix, PrefixOptions::default()));
        }
    }
    all
}

fn circuits(
    section: &OspfSection,
    node: &NodeConfig,
    sids: &Sids<'_>,
    locators: &[Locator],
) -> Result<Vec<OspfCircuit>, Problem> {
    let mut circuits: Vec<OspfCircuit> = Vec::new();
    for section in &section.circuit {
        let port = port_named(node, &section.port)?;
        if circuits.iter().any(|circuit| circuit.port == port) {
            let text = format!("port {} is a circuit already", section.port.value.0);
            return Err(Problem::new(section.port.at, text));
        }
        let metric = section.metric.as_ref().map_or(10, |metric| metric.value.get() as u16);
        let end_x = end_x(sids, port, locators.iter().map(|locator| locator.prefix));
        let end_x = end_x.into_iter().map(|(_, sid)| sid).collect();
        circuits.push(OspfCircuit { port, metric, end_x });
    }
    Ok(circuits)
}
