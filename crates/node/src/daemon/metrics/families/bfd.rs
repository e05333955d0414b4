//! Metrics of BFD sessions and backups.

use super::{Labels, Out, seconds};
use crate::daemon::{BfdSnapshot, Snapshot};
use prometheus_client::registry::Unit;
use std::fmt;

/// The families have values only while the node has sessions.
pub(super) fn bfd(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let peers: Vec<String> = snapshot.bfd.iter().map(|session| session.peer.to_string()).collect();
    let sessions = || snapshot.bfd.iter().zip(&peers).map(|(session, peer)| (labels(session, peer), session));
    let up = sessions().map(|(labels, session)| (labels, u64::from(session.state == "up")));
    out.gauges("srdma_bfd_session_up", "Whether the BFD session is up: 1 or 0", None, up)?;
    let times = sessions().filter_map(|(labels, session)| Some((labels, seconds(session.detection_time_ns?))));
    let help = "Time without a packet after which the session goes down; absent while the peer is not received";
    out.gauges("srdma_bfd_detection_time", help, Some(Unit::Seconds), times)?;
    let intervals = sessions().filter_map(|(labels, session)| Some((labels, seconds(session.interval_ns?))));
    let help = "Interval of sent packets before jitter; absent while the peer wants none";
    out.gauges("srdma_bfd_interval", help, Some(Unit::Seconds), intervals)?;
    let downs = sessions().map(|(labels, session)| (labels, session.downs));
    let help = "How often the session was up and went down, other than by an administrator";
    out.counters("srdma_bfd_downs", help, None, downs)
}

/// The families have values only while there are backups.
pub(super) fn backups(out: &mut Out<'_>, snapshot: &Snapshot) -> fmt::Result {
    let peers: Vec<String> = snapshot.backups.iter().map(|backup| backup.peer.to_string()).collect();
    let backups = || {
        let both = snapshot.backups.iter().zip(&peers);
        both.map(|(backup, peer)| ([("port", backup.port.as_str()), ("peer", peer.as_str())], backup))
    };
    let prefixes = backups().map(|(labels, backup)| (labels, backup.prefixes as u64));
    out.gauges("srdma_backup_prefixes", "Prefixes with a backup around the neighbour", None, prefixes)?;
    let sent = backups().map(|(labels, backup)| (labels, backup.sent.frames));
    out.counters("srdma_backup_frames", "Frames that have taken backups around the neighbour", None, sent)
}

fn labels<'s>(session: &'s BfdSnapshot, peer: &'s str) -> Labels<'s, 2> {
    [("port", session.port.as_deref().unwrap_or("any")), ("peer", peer)]
}
