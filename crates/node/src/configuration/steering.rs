//! `[steering]` and the paths of routes: choice of a path for each flow, and conditions for another
//! (`docs/steering.md`). Without the section the defaults apply, if any route has paths.

use super::Draft;
use super::claims::Claims;
use srdma_dataplane::headend::{HeadendConfig, HeadendPath, ProbeConfig, Probing};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{HostAddress, Located, NodeFile, PathSection, SteeringSection, TemplateSection};
use srdma_steering::{Config, Limits, MAX_PATHS, Path};
use srdma_toml_error::Problem;
use srdma_wire::Entropy;
use srdma_wire::entropy::{AddressTemplate, Choice};
use std::time::Duration;
use toml::Spanned;

/// Adds how flows are steered, before any route that has paths.
pub(super) fn add(file: &NodeFile, claims: &Claims<'_>, draft: &mut Draft) -> Result<(), Problem> {
    let first = file.route.iter().find(|route| route.get_ref().path.is_some());
    let at = file.steering.as_ref().map(|section| section.span().start);
    let Some(at) = at.or(first.map(|route| route.span().start)) else { return Ok(()) };
    let config = match &file.steering {
        Some(section) => config(section.get_ref())?,
        None => HeadendConfig::new(draft.node.config().loopback),
    };
    // On interfaces the loopback is the kernel's, which would not give probes to the node.
    let is_kernels = config.probe_address.is_none_or(|address| address == draft.node.config().loopback);
    if config.probes.is_some() && is_kernels && claims.purpose().learns() {
        return Err(Problem::new(at, PROBES_NEED_AN_ADDRESS));
    }
    draft.add(at, Entries { steering: Some(config), ..Entries::default() })
}

/// Reason for which probes cannot come back.
pub(super) const PROBES_NEED_AN_ADDRESS: &str = "probes need an address of their own to come back to: give \
                                                 probe_address in [steering], an address that the fabric routes to \
                                                 this node and nothing else uses, or probes = false";

/// The settings; the caller sets the outer source address.
pub(super) fn config(section: &SteeringSection) -> Result<HeadendConfig, Problem> {
    let defaults = Config::default();
    let limits = Limits::default();
    let steering = Config {
        mode: section.mode,
        dwell_ns: time_ns(&section.dwell, defaults.dwell_ns),
        hold_ns: positive_ns("hold", &section.hold, defaults.hold_ns)?,
        hold_most_ns: positive_ns("hold_most", &section.hold_most, defaults.hold_most_ns)?,
        return_ns: time_ns(&section.return_after, defaults.return_ns),
        idle_gap_ns: positive_ns("idle_gap", &section.idle_gap, defaults.idle_gap_ns)?,
        silent_probes: section.silent_probes.as_ref().map_or(defaults.silent_probes, |count| count.value.get() as u8),
        limits: Limits {
            losses: section.losses.as_ref().map_or(limits.losses, |count| count.value.get() as u8),
            loss_window_ns: positive_ns("loss_window", &section.loss_window, limits.loss_window_ns)?,
            ce_permille: section.ce_permille.as_ref().map_or(limits.ce_permille, |share| share.value.get() as u16),
            one_way_ns: section.one_way_limit.as_ref().map(|limit| nanoseconds(limit.value)),
            two_way_ns: section.two_way_limit.as_ref().map(|limit| nanoseconds(limit.value)),
        },
        flows: section.flows.as_ref().map_or(defaults.flows, |flows| flows.value.get() as usize),
        seed: section.seed.as_ref().map_or(defaults.seed, |seed| seed.value.get()),
    };
    if let Some(most) = section.hold_most.as_ref().filter(|_| steering.hold_most_ns < steering.hold_ns) {
        return Err(Problem::new(most.at, "hold_most is less than hold"));
    }
    let source = std::net::Ipv6Addr::UNSPECIFIED;
    Ok(HeadendConfig {
        steering,
        probes: if section.probes.unwrap_or(true) { Some(probes(section)?) } else { None },
        probe_address: section.probe_address.as_ref().map(|address| address.value.0),
        trimmed_dscp: section.trimmed_dscp.as_ref().map(|dscp| dscp.value.get() as u8),
        ..HeadendConfig::new(source)
    })
}

fn probes(section: &SteeringSection) -> Result<ProbeConfig, Problem> {
    let defaults = ProbeConfig::default();
    let ecn = defaults.traffic_class & 3;
    Ok(ProbeConfig {
        interval_ns: positive_ns("probe_interval", &section.probe_interval, defaults.interval_ns)?,
        active_ns: positive_ns("probe_active", &section.probe_active, defaults.active_ns)?,
        gap_ns: time_ns(&section.probe_gap, defaults.gap_ns),
        traffic_class: section
            .probe_dscp
            .as_ref()
            .map_or(defaults.traffic_class, |dscp| (dscp.value.get() as u8) << 2 | ecn),
        port: section.probe_port.as_ref().map_or(defaults.port, |port| port.value.get() as u16),
    })
}

/// The paths of a route, the best first.
pub(super) fn paths(section: &Spanned<Vec<Spanned<PathSection>>>) -> Result<Vec<HeadendPath>, Problem> {
    let mut paths = Vec::new();
    for (position, section) in section.get_ref().iter().enumerate() {
        let path = path(position, section)?;
        match &section.get_ref().template {
            Some(template) => paths.extend(expanded(&path, template)?),
            None => paths.push(path),
        }
    }
    Ok(paths)
}

fn path(position: usize, section: &Spanned<PathSection>) -> Result<HeadendPath, Problem> {
    let (at, section) = (section.span().start, section.get_ref());
    let addresses = |given: &[Located<HostAddress>]| given.iter().map(|address| address.value.0).collect();
    match (&section.template, section.segments.first()) {
        (None, None) => return Err(Problem::new(at, "a path needs at least one segment")),
        (Some(_), Some(segment)) => {
            return Err(Problem::new(segment.at, "segments beside template: give one of them"));
        }
        (None, Some(_)) | (Some(_), None) => {}
    }
    if let (Some(_), Some(entropy)) = (&section.template, &section.entropy) {
        return Err(Problem::new(entropy.at, "entropy beside template, which has the values of its paths"));
    }
    let probing = match (&section.probe, &section.probe_segments) {
        (None, None) => Probing::ThereAndBack,
        (Some(probe), None) if *probe.get_ref() => Probing::ThereAndBack,
        (Some(_), None) => Probing::Never,
        (None, Some(segments)) if segments.get_ref().is_empty() => {
            return Err(Problem::new(segments.span().start, "expected at least one segment, found none"));
        }
        (None, Some(segments)) => Probing::By(addresses(segments.get_ref())),
        (Some(_), Some(segments)) => {
            return Err(Problem::new(segments.span().start, "probe_segments beside probe: give one of them"));
        }
    };
    if let (Some(_), Some(segments)) = (&section.template, &section.probe_segments) {
        return Err(Problem::new(segments.span().start, "probe_segments beside template: its paths differ"));
    }
    Ok(HeadendPath {
        path: Path {
            segments: addresses(&section.segments),
            nodes: addresses(&section.via),
            rank: section.rank.as_ref().map_or(position as u16, |rank| rank.value.get() as u16),
            is_denied: section.denied,
        },
        probing,
        entropy: section.entropy.as_ref().map(|entropy| Entropy(entropy.value.get() as u32)),
    })
}

/// The paths of a template, in the order of its values (D255).
fn expanded(like: &HeadendPath, section: &Spanned<TemplateSection>) -> Result<Vec<HeadendPath>, Problem> {
    let (at, section) = (section.span().start, section.get_ref());
    let choices: Vec<Choice> = section
        .choice
        .iter()
        .map(|own| Choice { bits: own.bits.value.get() as u8, choices: own.choices.value.get() as u32, step: own.step })
        .collect();
    let template = AddressTemplate::new(section.base.value.0, &choices);
    let template = template.map_err(|error| Problem::new(at, format!("no template: {error}")))?;
    let mut denied = Vec::new();
    for value in &section.denied {
        let entropy = Entropy(value.value.get() as u32);
        template.expand(entropy).map_err(|error| Problem::new(value.at, error.to_string()))?;
        denied.push(entropy);
    }
    let values: Vec<(usize, Entropy)> = match &section.values {
        Some(values) => values.iter().map(|value| (value.at, Entropy(value.value.get() as u32))).collect(),
        None if template.paths() > MAX_PATHS as u64 => {
            let found = template.paths();
            let expected = format!("expected {MAX_PATHS} at most: choose some of them by values");
            return Err(Problem::new(at, format!("the template has {found} paths, {expected}")));
        }
        None => template.values().map(|value| (at, value)).collect(),
    };
    let path = |(at, entropy): (usize, Entropy)| {
        let address = template.expand(entropy).map_err(|error| Problem::new(at, error.to_string()))?;
        let is_denied = like.path.is_denied || denied.contains(&entropy);
        let path = Path { segments: vec![address], is_denied, ..like.path.clone() };
        Ok(HeadendPath { path, probing: like.probing.clone(), entropy: Some(entropy) })
    };
    values.into_iter().map(path).collect()
}

fn positive_ns(key: &str, given: &Option<Located<Duration>>, default: u64) -> Result<u64, Problem> {
    match given {
        Some(time) if time.value.is_zero() => {
            Err(Problem::new(time.at, format!("{key} is 0, expected a time above it")))
        }
        given => Ok(time_ns(given, default)),
    }
}

fn time_ns(given: &Option<Located<Duration>>, default: u64) -> u64 {
    given.as_ref().map_or(default, |time| nanoseconds(time.value))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
