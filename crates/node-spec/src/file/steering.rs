//! `[steering]`: choice of a path for each flow, and conditions for another (`docs/steering.md`).

use super::{Dscp, HostAddress, Integer, Located, U64, integer, is_default, ns};
use serde::{Deserialize, Serialize};
use srdma_dataplane::headend::HeadendConfig;
use srdma_steering::Mode;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteeringSection {
    #[serde(default, with = "ModeName", skip_serializing_if = "is_default")]
    pub mode: Mode,
    pub dwell: Option<Located<Duration>>,
    pub hold: Option<Located<Duration>>,
    pub hold_most: Option<Located<Duration>>,
    pub return_after: Option<Located<Duration>>,
    pub idle_gap: Option<Located<Duration>>,
    pub losses: Option<Located<Integer<1, 255>>>,
    pub loss_window: Option<Located<Duration>>,
    pub ce_permille: Option<Located<Integer<1, 1000>>>,
    pub one_way_limit: Option<Located<Duration>>,
    pub two_way_limit: Option<Located<Duration>>,
    pub flows: Option<Located<Integer<4, { 1 << 20 }>>>,
    pub seed: Option<Located<U64>>,
    pub probes: Option<bool>,
    pub probe_address: Option<Located<HostAddress>>,
    pub probe_interval: Option<Located<Duration>>,
    pub probe_active: Option<Located<Duration>>,
    pub probe_gap: Option<Located<Duration>>,
    pub probe_dscp: Option<Located<Dscp>>,
    pub probe_port: Option<Located<Integer<1, 0xFFFF>>>,
    pub silent_probes: Option<Located<Integer<1, 255>>>,
    pub trimmed_dscp: Option<Located<Dscp>>,
    pub deny_list: Option<Spanned<DenyListSection>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenyListSection {
    pub file: PathBuf,
    pub nic: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Mode", rename_all = "lowercase")]
enum ModeName {
    Fast,
    Ordered,
}

impl SteeringSection {
    pub(super) fn of(config: &HeadendConfig) -> Self {
        let (steering, limits, probes) = (&config.steering, &config.steering.limits, config.probes.as_ref());
        let time = |time_ns| Some(Located::from(ns(time_ns)));
        SteeringSection {
            mode: steering.mode,
            dwell: time(steering.dwell_ns),
            hold: time(steering.hold_ns),
            hold_most: time(steering.hold_most_ns),
            return_after: time(steering.return_ns),
            idle_gap: time(steering.idle_gap_ns),
            losses: Some(integer(limits.losses)),
            loss_window: time(limits.loss_window_ns),
            ce_permille: Some(integer(limits.ce_permille)),
            one_way_limit: limits.one_way_ns.and_then(time),
            two_way_limit: limits.two_way_ns.and_then(time),
            flows: Some(integer(steering.flows)),
            seed: Some(integer(steering.seed)),
            probes: Some(probes.is_some()),
            probe_address: config.probe_address.map(|address| HostAddress(address).into()),
            probe_interval: probes.and_then(|probes| time(probes.interval_ns)),
            probe_active: probes.and_then(|probes| time(probes.active_ns)),
            probe_gap: probes.and_then(|probes| time(probes.gap_ns)),
            probe_dscp: probes.map(|probes| integer(probes.traffic_class >> 2)),
            probe_port: probes.map(|probes| integer(probes.port)),
            silent_probes: Some(integer(steering.silent_probes)),
            trimmed_dscp: config.trimmed_dscp.map(integer),
            deny_list: None,
        }
    }
}
