//! Packet dissection: the layers of a packet as values, from Ethernet down to the RDMA operation, with the verdicts on
//! ICRC, checksums and HMAC. `docs/decode.md` describes every field of the output.
//!
//! ```text
//! Ethernet → VLAN → IPv6 → extension headers, SRH and its TLVs → UDP → BTH → extension transport headers
//!                       ↘ ICMPv6                             ↘ MAC control: PFC and PAUSE
//! ```

mod cm;
mod dissector;
mod entropy;
mod hmac;
mod icmpv6;
#[allow(missing_docs, reason = "the fields are those of the formats; docs/decode.md describes each")]
pub mod layer;
mod link;
mod network;
mod operation;
mod options;
pub mod record;
mod segment_routing;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod transport;
mod writer;

pub use dissector::dissect;
pub use entropy::EntropyPaths;
pub use hmac::Keys;
pub use record::{Dissection, Record};
pub use settings::Settings;
pub use text::line;
pub use writer::{Format, write_packets};
