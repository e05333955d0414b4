//! `srdma plan provision --check`: a running lab beside the plan.
//!
//! A Linux router is asked for its routes, SIDs among them; an srdma node for its SIDs: for the state in use, not for
//! the configuration.

use crate::output::print;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use srdma_fabric::NodeId;
use srdma_fabric::provision::{Device, Route};
use srdma_lab::topology::Kind;
use srdma_lab::{Instance, Lab};
use srdma_node::daemon::read_status;
use srdma_provision::{behavior_name, linux, tenant_table};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::path::Path;
use std::process::ExitCode;

/// The entries that were checked, and the differences from the plan.
#[derive(Serialize)]
struct Report {
    lab: String,
    /// SIDs and routes that were looked for.
    checked: usize,
    findings: Vec<Finding>,
}

/// Something that is not as planned.
#[derive(Serialize)]
struct Finding {
    device: String,
    /// The SID, or the prefix of the route.
    prefix: String,
    /// The entry of the plan.
    expected: String,
    /// The entry that was found; absent when there is none.
    found: Option<String>,
}

/// Compares; exit code 1 if anything is missing or different.
pub(super) fn run(lab: &str, instance: Option<&str>, devices: &[Device], as_json: bool) -> Result<ExitCode> {
    let stem = Path::new(lab).file_stem().map_or(lab.into(), |stem| stem.to_string_lossy());
    let lab = Lab::open(Instance::new(&stem, instance)?)?;
    let mut report = Report { lab: lab.instance().name().to_owned(), checked: 0, findings: Vec::new() };
    for device in devices {
        let Some(node) = lab.topology().node(&device.name) else {
            // NICs may be left to their hosts.
            if let NodeId::Host(_) = device.node {
                continue;
            }
            bail!("lab {} has no node {}, which the fabric has", report.lab, device.name);
        };
        let (expected, found) = match lab.topology().nodes[node].kind {
            Kind::Router => (of_router(device), routes(&lab, &device.name)?),
            Kind::Srdma { .. } => (of_node(device), sids(&lab, &device.name)?),
            Kind::Endpoint | Kind::Guest => continue,
        };
        report.checked += expected.len();
        for ((prefix, table), expected) in expected {
            let found = found.get(&(prefix.clone(), table));
            if found != Some(&expected) {
                let found = found.map(What::to_string);
                report.findings.push(Finding {
                    device: device.name.clone(),
                    prefix,
                    expected: expected.to_string(),
                    found,
                });
            }
        }
    }
    print(&if as_json { format!("{}\n", serde_json::to_string_pretty(&report)?) } else { report.text() })?;
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The entry of a table at a prefix, by the properties that identify it.
#[derive(Debug, PartialEq, Eq)]
enum What {
    /// A SID, with the words of its behaviour.
    Sid(BTreeSet<String>),
    /// A route, by addresses and interfaces.
    Route(BTreeSet<(String, String)>),
}

/// By prefix and table; the main table is `main`.
type Entries = BTreeMap<(String, String), What>;

const MAIN: &str = "main";

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Sid(words) => f.write_str(&words.iter().map(String::as_str).collect::<Vec<_>>().join(" ")),
            What::Route(hops) => {
                let hops: Vec<String> = hops.iter().map(|(via, device)| format!("{via} dev {device}")).collect();
                write!(f, "via {}", hops.join(" and "))
            }
        }
    }
}

impl Report {
    fn text(&self) -> String {
        let mut text = String::new();
        for Finding { device, prefix, expected, found } in &self.findings {
            text += &match found {
                None => format!("{device}: {prefix} is missing: expected {expected}\n"),
                Some(found) => format!("{device}: {prefix} is {found}: expected {expected}\n"),
            };
        }
        let verdict = match self.findings.len() {
            0 => "all as planned".to_owned(),
            count => format!("{count} not as planned"),
        };
        text + &format!("{} of {} looked at, {verdict}\n", self.checked, self.lab)
    }
}

fn of_router(device: &Device) -> Entries {
    let sids = device.sids.iter().flat_map(|sid| linux::actions(device, sid));
    let sids = sids.map(|(prefix, action)| {
        // `action X a b c d`: the behaviour, then pairs of a key and its value.
        let words: Vec<&str> = action.split_whitespace().skip(1).collect();
        let (behavior, rest) = words.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
        let mut set = BTreeSet::from([behavior.to_owned()]);
        set.extend(rest.chunks(2).filter(|pair| pair[0] != "flavors").map(|pair| pair.join(" ")));
        let flavors = rest.chunks(2).filter(|pair| pair[0] == "flavors").flat_map(|pair| pair[1].split(','));
        set.extend(flavors.map(str::to_owned));
        if set.contains("next-csid") && !set.iter().any(|word| word.starts_with("nflen")) {
            set.extend(["lblen 32", "nflen 16"].map(str::to_owned));
        }
        ((prefix, MAIN.to_owned()), What::Sid(set))
    });
    sids.chain(device.routes.iter().map(|route| of_route(device, route))).collect()
}

fn of_route(device: &Device, route: &Route) -> ((String, String), What) {
    let ports = route.ports.iter().filter_map(|port| device.port(*port));
    let hops = ports.map(|port| (port.neighbour.to_string(), port.interface.clone())).collect();
    let table = route.tenant.map_or(MAIN.to_owned(), |tenant| tenant_table(tenant).to_string());
    ((route.prefix.to_string(), table), What::Route(hops))
}

fn of_node(device: &Device) -> Entries {
    let sids = device.sids.iter();
    sids.map(|sid| {
        let behavior = BTreeSet::from([behavior_name(sid.behavior).to_owned()]);
        ((sid.prefix.to_string(), MAIN.to_owned()), What::Sid(behavior))
    })
    .collect()
}

/// The SIDs of an srdma node, from its status.
fn sids(lab: &Lab, name: &str) -> Result<Entries> {
    let snapshot = read_status(&lab.instance().socket(name)).with_context(|| format!("cannot ask node {name}"))?;
    let sids = snapshot.sids.into_iter();
    Ok(sids.map(|sid| ((sid.sid, MAIN.to_owned()), What::Sid(BTreeSet::from([sid.behavior])))).collect())
}

/// A route as `ip -j` prints it.
#[derive(Deserialize)]
struct KernelRoute {
    dst: String,
    table: Option<String>,
    encap: Option<String>,
    action: Option<String>,
    nh6: Option<String>,
    oif: Option<String>,
    #[serde(default)]
    flavors: Vec<String>,
    lblen: Option<u8>,
    nflen: Option<u8>,
    gateway: Option<String>,
    dev: Option<String>,
    #[serde(default)]
    nexthops: Vec<KernelHop>,
}

#[derive(Deserialize)]
struct KernelHop {
    gateway: Option<String>,
    dev: Option<String>,
}

/// The routes of a Linux router. SIDs are expected in the main table: `ip` prints as `table` of an End.DT6 the table of
/// its lookup of inner packets, and once more the table of the route if that is not the main table.
fn routes(lab: &Lab, name: &str) -> Result<Entries> {
    let problem = || format!("{name}: `ip -j -6 route` printed an unexpected route");
    let text = lab.run(name, "ip -j -6 route show table all")?;
    let routes: Vec<Value> = serde_json::from_str(&text).with_context(problem)?;
    let mut entries = Entries::new();
    for route in routes {
        let route: KernelRoute = serde_json::from_value(route).with_context(problem)?;
        let is_sid = route.encap.as_deref() == Some("seg6local");
        let table = route.table.clone().filter(|_| !is_sid).unwrap_or_else(|| MAIN.to_owned());
        entries.insert((with_length(&route.dst), table), what(route));
    }
    Ok(entries)
}

/// A destination without a length is one address.
fn with_length(destination: &str) -> String {
    match destination.parse::<Ipv6Addr>() {
        Ok(address) => format!("{address}/128"),
        Err(_) => destination.to_owned(),
    }
}

fn what(route: KernelRoute) -> What {
    if route.encap.as_deref() != Some("seg6local") {
        let own = KernelHop { gateway: route.gateway, dev: route.dev };
        let hops = if route.nexthops.is_empty() { vec![own] } else { route.nexthops };
        let hop = |hop: KernelHop| (hop.gateway.unwrap_or_default(), hop.dev.unwrap_or_default());
        return What::Route(hops.into_iter().map(hop).collect());
    }
    let pairs = [
        ("nh6", route.nh6),
        ("oif", route.oif),
        ("table", route.table),
        ("lblen", route.lblen.map(|bits| bits.to_string())),
        ("nflen", route.nflen.map(|bits| bits.to_string())),
    ];
    let pairs = pairs.into_iter().filter_map(|(key, value)| value.map(|value| format!("{key} {value}")));
    What::Sid(route.action.into_iter().chain(route.flavors).chain(pairs).collect())
}
