//! Capture files: pcap and pcapng, read and write.
//!
//! [`Reader`] yields the packets of either format over any [`std::io::Read`]; [`Writer`] writes pcapng with named
//! interfaces and nanoseconds; [`Merge`] puts the packets of several files in the order of their time stamps.
//!
//! A capture comes from outside: no octet of it makes the reader panic, loop or take more memory than [`MAX_BLOCK_LEN`]
//! for a block. The formats are parsed by the crate `pcap-file`, but for what that crate leaves out: lengths are
//! bounded, offsets are counted, time stamps are scaled by the interface's resolution, and a damaged option does not
//! cost the packet's interface.

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
