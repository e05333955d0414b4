//! `[[bfd]]`: a session with a neighbour (RFC 5881) or with a node behind routers (RFC 5883).

use super::{HostAddress, Integer, Located, Ports, ZonedAddress, ns, unless};
use serde::{Deserialize, Serialize};
use srdma_bfd::Config;
use srdma_dataplane::{BfdSession, NextHop};
use srdma_wire::units::NS_PER_US;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BfdSection {
    pub neighbour: Option<Located<ZonedAddress>>,
    pub peer: Option<Located<HostAddress>>,
    pub local: Option<Located<HostAddress>>,
    pub desired_min_tx: Option<Located<Duration>>,
    pub required_min_rx: Option<Located<Duration>>,
    pub detect_mult: Option<Located<Integer<1, 255>>>,
    #[serde(default = "enabled", skip_serializing_if = "is_enabled")]
    pub enabled: bool,
}

fn enabled() -> bool {
    true
}

fn is_enabled(enabled: &bool) -> bool {
    *enabled
}

impl BfdSection {
    pub(super) fn of(ports: Ports<'_>, session: &BfdSession) -> Self {
        let BfdSession { peer, local, config, is_enabled } = *session;
        let default = Config::default();
        let interval = |us: u32, default: u32| unless(us, default, |us| ns(u64::from(us) * NS_PER_US).into());
        BfdSection {
            neighbour: peer.port.map(|port| ports.next_hop(NextHop { port, address: peer.address })),
            peer: peer.port.is_none().then(|| HostAddress(peer.address).into()),
            local: Some(HostAddress(local).into()),
            desired_min_tx: interval(config.desired_min_tx_us(), default.desired_min_tx_us()),
            required_min_rx: interval(config.required_min_rx_us(), default.required_min_rx_us()),
            detect_mult: unless(config.detect_mult().get(), default.detect_mult().get(), super::integer),
            enabled: is_enabled,
        }
    }
}
