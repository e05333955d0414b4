//! `[fast_cnp]` and `[[connection]]`: senders that receive Fast CNPs, and nodes that accept them (`docs/fast-cnp.md`).
//! Without the section Fast CNP is off (FC-5-4).

use super::{Draft, count_or};
use srdma_dataplane::{Connection, FastCnpConfig};
use srdma_node_spec::Entries;
use srdma_node_spec::file::{ConnectionSection, FastCnpSection, Located, NodeFile};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::time::Duration;
use toml::Spanned;

/// Adds how Fast CNP is used, then the connections, which are of use only with it.
pub(super) fn add(file: &NodeFile, draft: &mut Draft) -> Result<(), Problem> {
    let config = file.fast_cnp.as_ref().map(|section| config(file, section)).transpose()?;
    if let (Some(section), Some(config)) = (&file.fast_cnp, &config) {
        draft.add(section.span().start, Entries { fast_cnp: Some(config.clone()), ..Entries::default() })?;
    }
    let mut known = BTreeSet::new();
    for section in &file.connection {
        let connection = connection(section, config.as_ref(), draft.node.headend().is_some())?;
        let Connection { host, peer, peer_qpn, .. } = connection;
        if !known.insert((host, peer, peer_qpn)) {
            let text = format!("{host} has a connection with queue pair {peer_qpn} of {peer} already");
            return Err(Problem::new(section.peer_qpn.at, text));
        }
        draft.add(
            section.host.at,
            Entries { connections: [((host, peer, peer_qpn), connection)].into(), ..Entries::default() },
        )?;
    }
    Ok(())
}

fn config(file: &NodeFile, section: &Spanned<FastCnpSection>) -> Result<FastCnpConfig, Problem> {
    let (at, section) = (section.span().start, section.get_ref());
    // FC-5-1, FC-5-3: these two are access lists.
    for (key, prefixes) in [("switches", &section.switches), ("hosts_inside", &section.hosts_inside)] {
        if let Some(everything) = prefixes.iter().find(|prefix| prefix.value.prefix_len() == 0) {
            return Err(Problem::new(everything.at, format!("{key} has ::/0, which excludes no address (FC-5-3)")));
        }
    }
    if !section.senders.is_empty() && !file.egress.iter().any(super::egress::notifies) {
        return Err(Problem::new(at, "no sender would be notified: no [[egress.class]] has notify_octets"));
    }
    let learn = section.learn_connections.as_ref().filter(|learn| *learn.get_ref());
    if let Some(learn) = learn.filter(|_| section.translated.is_empty()) {
        return Err(Problem::new(
            learn.span().start,
            "connections are learnt of `translated` hosts, and there are none",
        ));
    }
    let defaults = FastCnpConfig::default();
    let time = |key: &str, given: &Option<Located<Duration>>, default| match given {
        None => Ok(default),
        Some(time) if time.value.is_zero() => {
            Err(Problem::new(time.at, format!("{key} is 0, expected a time above it")))
        }
        Some(time) => Ok(time.value),
    };
    Ok(FastCnpConfig {
        senders: values(&section.senders),
        capable: values(&section.capable),
        switches: values(&section.switches),
        hosts_inside: values(&section.hosts_inside),
        translated: values(&section.translated),
        learn_connections: learn.is_some(),
        mark_unknown: section.mark_unknown.unwrap_or(defaults.mark_unknown),
        mark_notified: section.mark_notified.unwrap_or(defaults.mark_notified),
        interval: time("interval", &section.interval, defaults.interval)?,
        per_second: count_or(&section.per_second, defaults.per_second),
        at_once: count_or(&section.at_once, defaults.at_once),
        drain: match &section.drain {
            Some(_) => Some(time("drain", &section.drain, Duration::ZERO)?),
            None => None,
        },
        incapable_for: time("incapable_for", &section.incapable_for, defaults.incapable_for)?,
    })
}

/// A provisioned connection (D48), which steering may ask for as well.
fn connection(
    section: &ConnectionSection,
    config: Option<&FastCnpConfig>,
    is_steering: bool,
) -> Result<Connection, Problem> {
    let host = section.host.value.0;
    if config.is_none() && !is_steering {
        let text = "[[connection]] needs [fast_cnp] or [steering]";
        return Err(Problem::new(section.host.at, text));
    }
    let translated = config.map_or(&[][..], |config| &config.translated);
    if !is_steering && !translated.iter().any(|prefix| prefix.contains(host)) {
        let text = format!("{host} is in no prefix of `translated` in [fast_cnp]: it is not translated for");
        return Err(Problem::new(section.host.at, text));
    }
    Ok(Connection {
        host,
        host_qpn: section.host_qpn.value,
        peer: section.peer.value.0,
        peer_qpn: section.peer_qpn.value,
    })
}

fn values(prefixes: &[Located<Prefix>]) -> Vec<Prefix> {
    prefixes.iter().map(|prefix| prefix.value).collect()
}
