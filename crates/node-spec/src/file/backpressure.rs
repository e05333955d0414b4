//! `[backpressure]` and `[[backpressure_sids]]`: recipients of pause requests across a WAN, and accepted senders
//! (`docs/wan.md`).

use super::{HostAddress, Integer, Located, PortName, Ports, PositiveU32, integer};
use serde::{Deserialize, Serialize};
use srdma_dataplane::{BackpressureConfig, BackpressureSids};
use srdma_wire::Prefix;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackpressureSection {
    pub hold: Option<Located<Duration>>,
    pub refresh: Option<Located<Duration>>,
    pub greatest_hold: Option<Located<Duration>>,
    pub watchdog: Option<Located<Duration>>,
    pub per_second: Option<Located<PositiveU32>>,
    pub at_once: Option<Located<PositiveU32>>,
    pub end_e_per_second: Option<Located<PositiveU32>>,
    pub end_e_at_once: Option<Located<PositiveU32>>,
    pub origins: Option<Located<Integer<1, 0xFFFF>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priority: Vec<PrioritySection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrioritySection {
    pub traffic_class: Located<Integer<0, 7>>,
    pub ports: Vec<Located<PortName>>,
    pub priority: Located<Integer<0, 7>>,
}

impl BackpressureSection {
    pub(super) fn of(ports: Ports<'_>, config: &BackpressureConfig) -> Self {
        let priority = config.priorities.iter().map(|mapping| PrioritySection {
            traffic_class: integer(mapping.traffic_class),
            ports: mapping.ports.iter().map(|port| ports.name(*port).into()).collect(),
            priority: integer(mapping.priority),
        });
        BackpressureSection {
            hold: Some(config.hold.into()),
            refresh: Some(config.refresh.into()),
            greatest_hold: Some(config.greatest_hold.into()),
            watchdog: Some(config.watchdog.into()),
            per_second: Some(integer(config.per_second)),
            at_once: Some(integer(config.at_once)),
            end_e_per_second: Some(integer(config.end_e_per_second)),
            end_e_at_once: Some(integer(config.end_e_at_once)),
            origins: Some(integer(config.origins)),
            priority: priority.collect(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SidsSection {
    pub outer_source: Located<Prefix>,
    pub end_c: Option<Located<HostAddress>>,
    pub end_e: Option<Located<HostAddress>>,
}

impl SidsSection {
    pub(super) fn of(sids: &BackpressureSids) -> Self {
        SidsSection {
            outer_source: sids.outer_source.into(),
            end_c: sids.end_c.map(|sid| HostAddress(sid).into()),
            end_e: sids.end_e.map(|sid| HostAddress(sid).into()),
        }
    }
}
