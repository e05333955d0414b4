//! Fast CNP at a switch (draft-xiao-rtgwg-rocev2-fast-cnp, D40–D48): whether the sender of a packet that meets
//! congestion is told at once, and of what a translating first hop has to know.
//!
//! ```text
//! a packet meets congestion
//!   │ no RoCEv2 in it, not RC or UC data, source is nobody's to be told ──→ marked or not, as without Fast CNP
//!   │ the sender has said that it does not know Fast CNP (D47) ───────────→ the same
//!   │ it is in a tunnel, and nobody knows the way back (D63) ─────────────→ mark CE
//!   │ told less than 50 us ago, or no token, frame or way left (D45) ─────→ mark CE
//!   ├ the sender knows it (FC-4-6) ───────────────────────────────────────→ Fast CNP
//!   └ nobody knows (FC-4-5) ──────────────────────────────────────────────→ Fast CNP, mark CE
//! ```
//!
//! Of a packet in a tunnel the Fast CNP goes to the END.E of who has put it there, where the node knows it (CN-4.2-2).
//! Nothing here forwards a packet: that is the node's, which asks.

mod capability;
mod config;
mod connections;
mod counters;
mod crossing;
mod fields;
mod flows;
mod notifier;
mod whom;

pub use config::{Connection, FastCnpConfig};
pub use counters::FastCnpCounters;
pub use fields::Fields;
pub use notifier::{Notice, Notifier, Verdict};

pub(crate) use connections::{Connections, Lookup};
pub(crate) use crossing::has_option;
