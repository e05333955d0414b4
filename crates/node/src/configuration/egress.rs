//! `[[traffic_class]]` and `[[egress]]`: queues of a port, and the handling of frames that wait too long.

use super::Draft;
use super::ports::port_named;
use srdma_dataplane::{
    BackpressureThresholds, CLASSES, ClassConfig, ClassMap, EgressConfig, Marking, NodeConfig, PfcConfig, Scheduling,
    Watchdog,
};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{
    ClassSection, Dscp, EcnSection, EgressSection, Integer, Located, NodeFile, PfcSection, PortName, ThresholdsSection,
    TrafficClassSection, U32, WatchdogSection,
};
use srdma_toml_error::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest pause: it is refreshed after half of its time; a RESUME ends it.
const QUANTA: u16 = 0xFFFF;

/// Adds the classes of DSCPs, then those of ports.
pub(super) fn add(file: &NodeFile, config: &NodeConfig, draft: &mut Draft) -> Result<(), Problem> {
    let used = add_classes(file, draft)?;
    let mut ports = BTreeMap::new();
    for section in &file.egress {
        let port = port_named(config, &section.port)?;
        let (at, name) = (section.port.at, &section.port.value.0);
        if ports.insert(port, at).is_some() {
            return Err(Problem::new(at, format!("there is an [[egress]] of port {name} already")));
        }
        if let Some(vlan) = config.ports[port.index()].vlan {
            let parent = &config.ports[vlan.parent.index()].name;
            let text = format!("the frames of VLAN port {name} wait at its parent: expected port {parent}");
            return Err(Problem::new(at, text));
        }
        let of_port = config.ports.get(port.index()).map_or(0, |port| port.queue_limit_octets);
        if let Some(dscp) = section.trim_dscp.as_ref() {
            check_trimming(file, dscp)?;
        }
        let egress = egress(section, of_port, &used)?;
        draft.add(at, Entries { egress: [(port, egress)].into(), ..Entries::default() })?;
    }
    Ok(())
}

/// Which DSCP belongs to which class; returns the classes that some DSCP belongs to.
fn add_classes(file: &NodeFile, draft: &mut Draft) -> Result<BTreeSet<u64>, Problem> {
    let (mut classes, mut dscps) = (BTreeSet::from([0]), BTreeMap::new());
    let mut map = ClassMap::default();
    for (position, section) in file.traffic_class.iter().enumerate() {
        let class = section.class.value.get();
        if file.egress.is_empty() {
            let text = "no port has traffic classes: there is no [[egress]]";
            return Err(Problem::new(section.class.at, text));
        }
        if file.traffic_class[..position].iter().any(|other| other.class.value.get() == class) {
            return Err(Problem::new(section.class.at, format!("there is a [[traffic_class]] {class} already")));
        }
        classes.insert(class);
        for dscp in &section.dscps {
            let number = dscp.value.get();
            if let Some(other) = dscps.insert(number, class) {
                return Err(Problem::new(dscp.at, format!("DSCP {number} belongs to class {other} already")));
            }
            map.set(number as u8, class as u8);
        }
        if section.dscps.is_empty() && class != 0 {
            return Err(Problem::new(section.class.at, format!("no DSCP belongs to class {class}, expected some")));
        }
    }
    if let Some(section) = file.traffic_class.first() {
        draft.add(section.class.at, Entries { classes: Some(map), ..Entries::default() })?;
    }
    Ok(classes)
}

/// The DSCP of trimmed packets has a class (D88): behind the congestion that they report they would arrive too late.
fn check_trimming(file: &NodeFile, dscp: &Located<Dscp>) -> Result<(), Problem> {
    let number = dscp.value.get();
    let has = |section: &TrafficClassSection| section.dscps.iter().any(|other| other.value.get() == number);
    if file.traffic_class.iter().any(has) {
        return Ok(());
    }
    let text = format!("DSCP {number} belongs to no class: a [[traffic_class]] has to map it");
    Err(Problem::new(dscp.at, text))
}

fn egress(section: &EgressSection, of_port_octets: usize, used: &BTreeSet<u64>) -> Result<EgressConfig, Problem> {
    let limit_octets = octets_or(section.limit_octets.as_ref(), of_port_octets);
    let mut egress = EgressConfig::new(section.rate_bits_per_s.value.get(), limit_octets);
    egress.trim_dscp = section.trim_dscp.as_ref().map(|dscp| dscp.value.get() as u8);
    egress.watchdog = section.watchdog.as_ref().map(watchdog).transpose()?;
    for (position, of_class) in section.class.iter().enumerate() {
        let (at, number) = (of_class.class.at, of_class.class.value.get());
        if section.class[..position].iter().any(|other| other.class.value.get() == number) {
            return Err(Problem::new(at, format!("port {} has a class {number} already", section.port.value.0)));
        }
        if !used.contains(&number) {
            let text = format!("no DSCP belongs to class {number}: no [[traffic_class]] maps one");
            return Err(Problem::new(at, text));
        }
        let place = &mut egress.classes[number as usize % CLASSES];
        *place = class(of_class, limit_octets)?;
    }
    Ok(egress)
}

fn class(section: &ClassSection, limit_octets: usize) -> Result<ClassConfig, Problem> {
    let weighted = |quantum: &Located<Integer<256, 0xFFFF_FFFF>>| Scheduling::Weighted {
        quantum_octets: quantum.value.get() as u32,
    };
    Ok(ClassConfig {
        limit_octets: octets_or(section.limit_octets.as_ref(), limit_octets),
        scheduling: section.quantum_octets.as_ref().map_or(Scheduling::Strict, weighted),
        marking: section.ecn.as_ref().map(marking).transpose()?,
        notify_octets: section.notify_octets.as_ref().map(|octets| octets.value.get() as usize),
        pfc: section.pfc.as_ref().map(pfc).transpose()?,
        backpressure: section.backpressure.as_ref().map(backpressure).transpose()?,
    })
}

fn marking(section: &EcnSection) -> Result<Marking, Problem> {
    let (k_min, k_max) = (section.k_min_octets.value.get(), section.k_max_octets.value.get());
    if k_min > k_max {
        let text = format!("k_min_octets is {k_min}, expected no more than k_max_octets, {k_max}");
        return Err(Problem::new(section.k_min_octets.at, text));
    }
    let p_max = section.p_max.value.0;
    Ok(Marking { k_min_octets: k_min as usize, k_max_octets: k_max as usize, p_max })
}

fn pfc(section: &PfcSection) -> Result<PfcConfig, Problem> {
    let (xoff, xon) = (section.xoff_octets.value.get(), section.xon_octets.value.get());
    if xon > xoff {
        let text = format!("xon_octets is {xon}, expected no more than xoff_octets, {xoff}");
        return Err(Problem::new(section.xon_octets.at, text));
    }
    Ok(PfcConfig {
        xoff_octets: xoff as usize,
        xon_octets: xon as usize,
        headroom_octets: section.headroom_octets.value.get() as usize,
        quanta: section.quanta.as_ref().map_or(QUANTA, |quanta| quanta.value.get() as u16),
    })
}

fn backpressure(section: &ThresholdsSection) -> Result<BackpressureThresholds, Problem> {
    let (xoff, xon) = (section.xoff_octets.value.get(), section.xon_octets.value.get());
    if xon == xoff {
        let text = format!("xon_octets is {xon}, expected less than xoff_octets, {xoff}, or more for an early resume");
        return Err(Problem::new(section.xon_octets.at, text));
    }
    Ok(BackpressureThresholds { xoff_octets: xoff as usize, xon_octets: xon as usize })
}

fn watchdog(section: &WatchdogSection) -> Result<Watchdog, Problem> {
    let ns = |key: &str, time: &Located<Duration>| {
        let ns = u64::try_from(time.value.as_nanos()).unwrap_or(u64::MAX);
        if ns == 0 { Err(Problem::new(time.at, format!("{key} is 0, expected a time above it"))) } else { Ok(ns) }
    };
    let (bound_ns, quiet_ns) = (ns("bound", &section.bound)?, ns("quiet", &section.quiet)?);
    Ok(Watchdog { bound_ns, quiet_ns, action: section.action })
}

fn octets_or(given: Option<&Located<U32>>, otherwise: usize) -> usize {
    given.map_or(otherwise, |octets| octets.value.get() as usize)
}

/// Whether congestion of some class of a port is notified to senders.
pub(super) fn notifies(section: &EgressSection) -> bool {
    section.class.iter().any(|class| class.notify_octets.is_some())
}

/// Offset of a class's threshold that requests backpressure across the network, if the port has one.
pub(super) fn backpressure_at(section: &EgressSection) -> Option<usize> {
    section.class.iter().find_map(|class| Some(class.backpressure.as_ref()?.xoff_octets.at))
}

/// Whether the section is that of a port, and the port has PFC in a class.
pub(super) fn has_pfc(section: &EgressSection, port: &PortName, class: u64) -> bool {
    section.port.value == *port
        && section.class.iter().any(|of_class| of_class.class.value.get() == class && of_class.pfc.is_some())
}

/// Configured limit of a port's sending rate, in bits a second.
pub(super) fn pace(file: &NodeFile, port: &PortName) -> Option<u64> {
    let section = file.egress.iter().find(|section| section.port.value == *port && section.paced)?;
    Some(section.rate_bits_per_s.value.get())
}
