//! `[[cross_connect]]`: ports whose Ethernet frames leave whole in SRv6.

use super::{Located, PortName, Ports, U32, integer};
use serde::{Deserialize, Serialize};
use srdma_dataplane::{CrossConnect, EncapsMode};
use srdma_frame::PortId;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossConnectSection {
    pub port: Located<PortName>,
    pub policy: Located<U32>,
    #[serde(default = "reduced", with = "EncapsName")]
    pub mode: EncapsMode,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "EncapsMode")]
enum EncapsName {
    #[serde(rename = "H.Encaps.L2")]
    Encaps,
    #[serde(rename = "H.Encaps.L2.Red")]
    Reduced,
}

fn reduced() -> EncapsMode {
    EncapsMode::Reduced
}

impl CrossConnectSection {
    pub(super) fn of(ports: Ports<'_>, port: PortId, cross_connect: CrossConnect) -> Self {
        let CrossConnect { policy, mode } = cross_connect;
        CrossConnectSection { port: ports.name(port).into(), policy: integer(policy.0), mode }
    }
}
