//! `[[shared_hosts]]`: hosts that are attached to another node as well.

use super::{HostAddress, Located, PortName};
use serde::{Deserialize, Serialize};
use srdma_dataplane::SharedHosts;
use srdma_wire::Prefix;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedHostsSection {
    pub hosts: Located<Prefix>,
    pub proxies: Located<Prefix>,
    pub peer: Located<HostAddress>,
    pub sid: Located<HostAddress>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Located<PortName>>,
}

impl SharedHostsSection {
    pub(super) fn of(SharedHosts { hosts, proxies, peer, sid }: &SharedHosts) -> Self {
        SharedHostsSection {
            hosts: (*hosts).into(),
            proxies: (*proxies).into(),
            peer: HostAddress(*peer).into(),
            sid: HostAddress(*sid).into(),
            ports: Vec::new(),
        }
    }
}
