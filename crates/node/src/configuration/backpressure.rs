//! `[backpressure]` and `[[backpressure_sids]]`: recipients of pause requests across a WAN, and accepted senders
//! (`docs/wan.md`). Without the section a node neither sends nor accepts notifications.

use super::ports::port_named;
use super::{Draft, count_or};
use srdma_dataplane::{BackpressureConfig, BackpressureSids, NodeConfig, PriorityMapping};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{
    BackpressureSection, BehaviorName, HostAddress, Located, NodeFile, PrioritySection, SidsSection,
};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;
use toml::Spanned;

/// Adds the settings, then the SIDs of other nodes.
pub(super) fn add(file: &NodeFile, config: &NodeConfig, draft: &mut Draft) -> Result<(), Problem> {
    match &file.backpressure {
        Some(section) => {
            let backpressure = backpressure(file, config, section.get_ref())?;
            draft.add(section.span().start, Entries { backpressure: Some(backpressure), ..Entries::default() })?;
        }
        None => check_unused(file)?,
    }
    if let Some(first) = file.backpressure_sids.first() {
        let sids = sids(&file.backpressure_sids)?;
        draft.add(first.outer_source.at, Entries { backpressure_sids: sids, ..Entries::default() })?;
    }
    Ok(())
}

/// Rejects what needs the section in a file without it.
fn check_unused(file: &NodeFile) -> Result<(), Problem> {
    let is_end_c = |behavior: &Spanned<BehaviorName>| *behavior.get_ref() == BehaviorName::EndC;
    if let Some(sid) = file.sid.iter().find(|sid| is_end_c(&sid.behavior)) {
        let text = "behavior END.C needs [backpressure], which has the priorities to pause";
        return Err(Problem::new(sid.behavior.span().start, text));
    }
    match file.egress.iter().find_map(super::egress::backpressure_at) {
        None => Ok(()),
        Some(at) => {
            Err(Problem::new(at, "thresholds for backpressure without [backpressure]: no pause would be requested"))
        }
    }
}

fn backpressure(
    file: &NodeFile,
    config: &NodeConfig,
    section: &BackpressureSection,
) -> Result<BackpressureConfig, Problem> {
    let defaults = BackpressureConfig::default();
    let time = |key: &str, given: &Option<Located<Duration>>, default| match given {
        None => Ok(default),
        Some(time) if time.value.as_micros() == 0 => {
            Err(Problem::new(time.at, format!("{key} is shorter than 1 us, expected a time from there on")))
        }
        Some(time) => Ok(time.value),
    };
    let hold = time("hold", &section.hold, defaults.hold)?;
    Ok(BackpressureConfig {
        hold,
        refresh: time("refresh", &section.refresh, hold / 2)?,
        priorities: priorities(file, config, &section.priority)?,
        greatest_hold: time("greatest_hold", &section.greatest_hold, defaults.greatest_hold)?,
        watchdog: time("watchdog", &section.watchdog, defaults.watchdog)?,
        per_second: count_or(&section.per_second, defaults.per_second),
        at_once: count_or(&section.at_once, defaults.at_once),
        end_e_per_second: count_or(&section.end_e_per_second, defaults.end_e_per_second),
        end_e_at_once: count_or(&section.end_e_at_once, defaults.end_e_at_once),
        origins: section.origins.as_ref().map_or(defaults.origins, |origins| origins.value.get() as u16),
    })
}

/// Pauses of each class (D61): only priorities in which the port has PFC.
fn priorities(
    file: &NodeFile,
    config: &NodeConfig,
    sections: &[PrioritySection],
) -> Result<Vec<PriorityMapping>, Problem> {
    let mut priorities: Vec<PriorityMapping> = Vec::new();
    for section in sections {
        let (at, traffic_class) = (section.traffic_class.at, section.traffic_class.value.get() as u8);
        if priorities.iter().any(|other| other.traffic_class == traffic_class) {
            return Err(Problem::new(at, format!("traffic class {traffic_class} has a priority already")));
        }
        if section.ports.is_empty() {
            return Err(Problem::new(at, format!("traffic class {traffic_class} has no port to be paused")));
        }
        let priority = section.priority.value.get() as u8;
        let mut ports = Vec::new();
        for name in &section.ports {
            let port = port_named(config, name)?;
            if !file.egress.iter().any(|egress| super::egress::has_pfc(egress, &name.value, priority.into())) {
                let port = &name.value.0;
                let text = format!("port {port} has no PFC in class {priority}: no [[egress.class]] of it has `pfc`");
                return Err(Problem::new(name.at, text));
            }
            ports.push(port);
        }
        priorities.push(PriorityMapping { traffic_class, ports, priority });
    }
    Ok(priorities)
}

/// The table of D63.
fn sids(sections: &[SidsSection]) -> Result<BTreeMap<Prefix, BackpressureSids>, Problem> {
    let mut sids = BTreeMap::new();
    for section in sections {
        let (at, outer_source) = (section.outer_source.at, section.outer_source.value);
        if sids.contains_key(&outer_source) {
            return Err(Problem::new(at, format!("{outer_source} has SIDs already")));
        }
        let address = |sid: &Option<Located<HostAddress>>| sid.as_ref().map(|sid| -> Ipv6Addr { sid.value.0 });
        let (end_c, end_e) = (address(&section.end_c), address(&section.end_e));
        if end_c.is_none() && end_e.is_none() {
            return Err(Problem::new(at, format!("{outer_source} has neither end_c nor end_e")));
        }
        sids.insert(outer_source, BackpressureSids { outer_source, end_c, end_e });
    }
    Ok(sids)
}
