//! `[[traffic_class]]` and `[[egress]]`: queues of a port, and the handling of frames that wait too long.

use super::{Dscp, Integer, Located, PortName, Ports, Probability, U32, integer, is_default, ns, unless};
use serde::{Deserialize, Serialize};
use srdma_dataplane::{
    BackpressureThresholds, CLASSES, ClassConfig, ClassMap, EgressConfig, Marking, PfcConfig, Scheduling, StormAction,
    Watchdog,
};
use srdma_frame::PortId;
use std::time::Duration;

type ClassNumber = Integer<0, 7>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficClassSection {
    pub class: Located<ClassNumber>,
    pub dscps: Vec<Located<Dscp>>,
}

impl TrafficClassSection {
    /// A section for class 0, to which all other DSCPs belong, and for each class that has DSCPs.
    pub(super) fn all_of(map: &ClassMap) -> Vec<Self> {
        let dscps = |class: usize| (0..64u8).filter(move |dscp| class > 0 && map.class_of(dscp << 2) == class);
        let section =
            |class: usize| TrafficClassSection { class: integer(class), dscps: dscps(class).map(integer).collect() };
        (0..CLASSES)
            .map(section)
            .filter(|section| section.class.value.get() == 0 || !section.dscps.is_empty())
            .collect()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressSection {
    pub port: Located<PortName>,
    pub rate_bits_per_s: Located<Integer<1, { u64::MAX }>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub paced: bool,
    pub limit_octets: Option<Located<U32>>,
    pub watchdog: Option<WatchdogSection>,
    pub trim_dscp: Option<Located<Dscp>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class: Vec<ClassSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchdogSection {
    pub bound: Located<Duration>,
    pub quiet: Located<Duration>,
    #[serde(with = "StormActionName")]
    pub action: StormAction,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StormAction", rename_all = "lowercase")]
enum StormActionName {
    Forward,
    Drop,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassSection {
    pub class: Located<ClassNumber>,
    pub limit_octets: Option<Located<U32>>,
    /// The minimum is that of the data plane.
    pub quantum_octets: Option<Located<Integer<256, 0xFFFF_FFFF>>>,
    pub notify_octets: Option<Located<U32>>,
    pub ecn: Option<EcnSection>,
    pub pfc: Option<PfcSection>,
    pub backpressure: Option<ThresholdsSection>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcnSection {
    pub k_min_octets: Located<U32>,
    pub k_max_octets: Located<U32>,
    pub p_max: Located<Probability>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PfcSection {
    pub xoff_octets: Located<U32>,
    pub xon_octets: Located<U32>,
    pub headroom_octets: Located<U32>,
    pub quanta: Option<Located<Integer<1, 0xFFFF>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThresholdsSection {
    pub xoff_octets: Located<U32>,
    pub xon_octets: Located<U32>,
}

impl EgressSection {
    pub(super) fn of(ports: Ports<'_>, port: PortId, egress: &EgressConfig) -> Self {
        let limits = || egress.classes.iter().map(|class| class.limit_octets);
        let most_frequent = limits().max_by_key(|limit| limits().filter(|other| other == limit).count());
        let limit_octets = most_frequent.unwrap_or(0);
        let is_own = |class: &ClassConfig| *class != ClassConfig::new(limit_octets);
        EgressSection {
            port: ports.name(port).into(),
            rate_bits_per_s: integer(egress.rate_bits_per_s),
            paced: false,
            limit_octets: Some(integer(limit_octets)),
            watchdog: egress.watchdog.map(|Watchdog { bound_ns, quiet_ns, action }| WatchdogSection {
                bound: ns(bound_ns).into(),
                quiet: ns(quiet_ns).into(),
                action,
            }),
            trim_dscp: egress.trim_dscp.map(integer),
            class: egress
                .classes
                .iter()
                .enumerate()
                .filter(|(_, class)| is_own(class))
                .map(|(number, class)| ClassSection::of(number, class, limit_octets))
                .collect(),
        }
    }
}

impl ClassSection {
    fn of(number: usize, class: &ClassConfig, default_limit_octets: usize) -> Self {
        ClassSection {
            class: integer(number),
            limit_octets: unless(class.limit_octets, default_limit_octets, integer),
            quantum_octets: match class.scheduling {
                Scheduling::Strict => None,
                Scheduling::Weighted { quantum_octets } => Some(integer(quantum_octets)),
            },
            notify_octets: class.notify_octets.map(integer),
            ecn: class.marking.map(|Marking { k_min_octets, k_max_octets, p_max }| EcnSection {
                k_min_octets: integer(k_min_octets),
                k_max_octets: integer(k_max_octets),
                p_max: Probability(p_max).into(),
            }),
            pfc: class.pfc.map(|PfcConfig { xoff_octets, xon_octets, headroom_octets, quanta }| PfcSection {
                xoff_octets: integer(xoff_octets),
                xon_octets: integer(xon_octets),
                headroom_octets: integer(headroom_octets),
                quanta: Some(integer(quanta)),
            }),
            backpressure: class.backpressure.map(|BackpressureThresholds { xoff_octets, xon_octets }| {
                ThresholdsSection { xoff_octets: integer(xoff_octets), xon_octets: integer(xon_octets) }
            }),
        }
    }
}
