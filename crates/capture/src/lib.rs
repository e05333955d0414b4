//! Capture files: pcap and pcapng, read and write.
//!
//! [`Reader`] yields the packets of either format over any [`std::io::Read`]; [`Writer`] writes pcapng with named
//! interfaces and nanoseconds; [`Merge`] puts the packets of several files in the order of their time stamps.
//!
//! A capture is untrusted input: no octets make the reader panic, loop or allocate more than [`MAX_BLOCK_LEN`] for a
//! block. The crate `pcap-file` parses the formats. This crate adds bounds on lengths, offsets, time stamps scaled by
//! the interface's resolution, and tolerance of damaged options, which do not cost the packet's interface.

mod error;
mod interface;
mod merge;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod source;
mod writer;

pub use error::{ReadError, Reason};
pub use merge::Merge;
pub use packet::{Interface, LinkType, Packet};
pub use reader::Reader;
pub use source::MAX_BLOCK_LEN;
pub use writer::{InterfaceId, Writer};
