//! `[fast_cnp]` and `[[connection]]`: senders that receive Fast CNPs, and nodes that accept them (`docs/fast-cnp.md`).

use super::{HostAddress, Located, PositiveU32, all, integer, spanned};
use serde::{Deserialize, Serialize};
use srdma_dataplane::{Connection, FastCnpConfig};
use srdma_wire::{Prefix, Qpn};
use std::time::Duration;
use toml::Spanned;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FastCnpSection {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capable: Vec<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts_inside: Vec<Located<Prefix>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub translated: Vec<Located<Prefix>>,
    pub learn_connections: Option<Spanned<bool>>,
    pub mark_unknown: Option<bool>,
    pub mark_notified: Option<bool>,
    pub interval: Option<Located<Duration>>,
    pub per_second: Option<Located<PositiveU32>>,
    pub at_once: Option<Located<PositiveU32>>,
    pub drain: Option<Located<Duration>>,
    pub incapable_for: Option<Located<Duration>>,
}

impl FastCnpSection {
    pub(super) fn of(config: &FastCnpConfig) -> Self {
        FastCnpSection {
            senders: all(&config.senders),
            capable: all(&config.capable),
            switches: all(&config.switches),
            hosts_inside: all(&config.hosts_inside),
            translated: all(&config.translated),
            learn_connections: config.learn_connections.then(|| spanned(true)),
            mark_unknown: Some(config.mark_unknown),
            mark_notified: Some(config.mark_notified),
            interval: Some(config.interval.into()),
            per_second: Some(integer(config.per_second)),
            at_once: Some(integer(config.at_once)),
            drain: config.drain.map(Into::into),
            incapable_for: Some(config.incapable_for.into()),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSection {
    pub host: Located<HostAddress>,
    pub host_qpn: Located<Qpn>,
    pub peer: Located<HostAddress>,
    pub peer_qpn: Located<Qpn>,
}

impl ConnectionSection {
    pub(super) fn of(connection: &Connection) -> Self {
        let Connection { host, host_qpn, peer, peer_qpn } = *connection;
        ConnectionSection {
            host: HostAddress(host).into(),
            host_qpn: host_qpn.into(),
            peer: HostAddress(peer).into(),
            peer_qpn: peer_qpn.into(),
        }
    }
}
