//! Events of a daemon: one log line each.

use super::snapshot::EvictionCause;
use srdma_io::DriverKind;
use std::fmt;
use std::net::Ipv6Addr;

/// An event of a running node.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A port has a driver.
    Attached {
        port: String,
        interface: String,
        driver: DriverKind,
        /// Reason for none of the faster ones.
        note: Option<String>,
    },
    /// A port has no driver; the node waits for its interface.
    Detached { port: String, interface: String, reason: String },
    /// A port's link came up or went down.
    Link {
        port: String,
        /// Whether it is up.
        is_up: bool,
    },
    /// Everything is set up.
    Ready,
    /// The configuration has SIDs and no `[domain]`: every sender that reaches the node reaches them.
    OpenSids,
    /// Headroom of a router that requests pauses of a class from this PE (D67).
    Headroom {
        traffic_class: u8,
        /// Octets beyond XOFF for one that is next to the PE and sends nothing on.
        octets: u64,
        /// Octets more for each kilometre.
        octets_per_km: u64,
    },
    /// A receiver holds its group back (D25).
    EvictionRequested {
        group: u32,
        receiver: Ipv6Addr,
        cause: EvictionCause,
        /// Whether the group is the controller's, which gets the request.
        is_asked: bool,
    },
    /// Another configuration is applied.
    Reloaded {
        /// Reason for reading it.
        cause: Cause,
        /// Number of commands that it took.
        commands: usize,
    },
    /// Another configuration was rejected; the current one stays.
    ReloadRefused {
        /// Problem.
        reason: String,
    },
    /// An optional function of the node failed. The node continues without it.
    Failed {
        /// Operation and reason.
        what: String,
    },
    /// Message of IS-IS.
    Isis { text: String },
    /// The controller was found, or was lost.
    Controller {
        /// Result.
        text: String,
    },
    /// The node ends; the signal's name.
    Stopping { signal: &'static str },
    /// Everything was given back.
    Stopped {
        /// Frames that were still waiting to be sent.
        unsent: usize,
    },
}

/// Reason for reading a configuration again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// SIGHUP.
    Signal,
    /// The file changed.
    File,
    /// The facts of an interface have changed.
    Interfaces,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Attached { port, interface, driver, note } => {
                write!(f, "port {port}: interface {interface} by {driver}")?;
                note.as_ref().map_or(Ok(()), |note| write!(f, " ({note})"))
            }
            Event::Detached { port, interface, reason } => {
                write!(f, "port {port}: waiting for interface {interface}: {reason}")
            }
            Event::Link { port, is_up: true } => write!(f, "port {port}: link up"),
            Event::Link { port, is_up: false } => write!(f, "port {port}: link down"),
            Event::Ready => f.write_str("ready"),
            Event::OpenSids => f.write_str("the SIDs are open to anybody: there is no [domain]"),
            Event::Headroom { traffic_class, octets, octets_per_km } => write!(
                f,
                "traffic class {traffic_class}: a router that asks for pauses needs {octets} octets beyond XOFF, and \
                 {octets_per_km} more for each kilometre to it, less what it sends on meanwhile (srdma plan headroom)"
            ),
            Event::EvictionRequested { group, receiver, cause, is_asked } => {
                let todo = match is_asked {
                    true => "the controller is asked to evict it",
                    false => "evict it by a new epoch of the group file",
                };
                write!(f, "receiver {receiver} of group {group} is {}: {todo}", cause.name())
            }
            Event::Reloaded { cause, commands: 1 } => write!(f, "reloaded, {cause}: 1 change"),
            Event::Reloaded { cause, commands } => write!(f, "reloaded, {cause}: {commands} changes"),
            Event::ReloadRefused { reason } => write!(f, "not reloaded, the old configuration stays: {reason}"),
            Event::Failed { what } => f.write_str(what),
            Event::Isis { text } | Event::Controller { text } => f.write_str(text),
            Event::Stopping { signal } => write!(f, "stopping on {signal}"),
            Event::Stopped { unsent: 0 } => f.write_str("stopped"),
            Event::Stopped { unsent } => write!(f, "stopped, {unsent} frames could not be sent"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Signal => "on SIGHUP",
            Cause::File => "the file changed",
            Cause::Interfaces => "the interfaces changed",
        })
    }
}
