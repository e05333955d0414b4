//! Errors of an explanation.

use srdma_capture::{LinkType, ReadError, Reason};
use srdma_dataplane::ConfigError;
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// Reasons for a run without an explanation.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// A capture that cannot be opened.
    #[error("cannot read {}: {reason}", file.display())]
    Open {
        /// The capture.
        file: PathBuf,
        reason: Reason,
    },
    /// A capture that is damaged.
    #[error("{}: {error}", file.display())]
    Read {
        /// The capture.
        file: PathBuf,
        /// The error, with its position.
        error: ReadError,
    },
    /// A capture of another link layer.
    #[error("{}: packet {frame} has {found}, expected {}", file.display(), LinkType::ETHERNET)]
    NotEthernet {
        /// The capture.
        file: PathBuf,
        /// The packet.
        frame: u64,
        found: LinkType,
    },
    /// The configuration has no groups at all.
    #[error("the configuration has no [[group]]: there is nothing to explain")]
    NoGroups,
    /// A group that the configuration has not.
    #[error("no group {wanted}, the configuration has {}", list("group", found))]
    UnknownGroup {
        /// The requested group.
        wanted: u32,
        /// Those that there are.
        found: Vec<u32>,
    },
    /// A branch that no group has.
    #[error("no branch {wanted}, there are {}", list("branch", found))]
    UnknownBranch {
        /// The requested branch.
        wanted: Ipv6Addr,
        /// Those that there are.
        found: Vec<Ipv6Addr>,
    },
    /// Captures without a single packet.
    #[error("the captures have no packet")]
    NoPackets,
    /// A capture of other traffic.
    #[error("no packet of the captures belongs to a group of this configuration ({groups}); there are {seen}{advice}")]
    NotOurs {
        /// The groups and their Proxy Addresses.
        groups: String,
        /// The addresses seen.
        seen: String,
        advice: &'static str,
    },
    /// A capture of other links.
    #[error(
        "none of the {packets} packets has a MAC address of this node's ports ({ports}): is it another node's capture, \
         or configuration? If it is this node's, name the port: --in PORT=FILE"
    )]
    NotHere {
        /// Packets in all captures.
        packets: u64,
        /// The ports and their MAC addresses.
        ports: String,
    },
    /// Refusal of the configuration by the node.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ExplainError {
    /// Whether a capture is to blame by itself, whatever the configuration is.
    pub fn is_about_captures(&self) -> bool {
        match self {
            ExplainError::Open { .. }
            | ExplainError::Read { .. }
            | ExplainError::NotEthernet { .. }
            | ExplainError::NoPackets => true,
            ExplainError::NoGroups
            | ExplainError::UnknownGroup { .. }
            | ExplainError::UnknownBranch { .. }
            | ExplainError::NotOurs { .. }
            | ExplainError::NotHere { .. }
            | ExplainError::Config(_) => false,
        }
    }
}

/// The things of one kind that there are.
fn list<T: ToString>(kind: &str, things: &[T]) -> String {
    /// More are only counted.
    const MOST: usize = 12;
    let mut names: Vec<String> = things.iter().take(MOST).map(T::to_string).collect();
    if things.len() > MOST {
        names.push(format!("{} more", things.len() - MOST));
    }
    match names.as_slice() {
        [] => format!("no {kind}"),
        [one] => format!("{kind} {one}"),
        _ if kind == "branch" => format!("branches {}", names.join(", ")),
        _ => format!("{kind}s {}", names.join(", ")),
    }
}
