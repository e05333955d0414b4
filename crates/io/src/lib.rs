//! Real interfaces.
//!
//! A [`Driver`] carries frames between an interface, or a capture, and a [`Pool`](srdma_frame::Pool), in batches. An
//! [`Interest`] selects the frames that it takes from the interface; the kernel processes all others.
//!
//! It has `unsafe` blocks: each states why it is sound.

#![allow(unsafe_code)]

mod af_packet;
mod af_xdp;
mod bpf;
mod capture;
mod driver;
mod interest;
mod interface;
mod interface_features;
mod ipv6_protocol;
mod ipv6_sender;
mod llc;
pub mod namespace;
pub mod nd;
pub mod netlink;
mod open;
mod packet_socket;
mod raw;
mod share;
mod socket_option;
mod turns;
pub mod udp;

pub use af_packet::{AfPacket, Tap, Tapped};
pub use af_xdp::{AfXdp, QueueGroup, Umem};
pub use bpf::{XdpMode, XdpSource, XdpYardstick, fast_path};
pub use capture::Capture;
pub use driver::{Driver, DriverKind, DriverStatistics};
pub use interest::{Interest, Match};
pub use interface::{index as interface_index, mac as interface_mac, mtu as interface_mtu, takes_vlan_tags_off};
pub use interface_features::takes_redirected_frames;
pub use ipv6_protocol::{Ipv6ProtocolSocket, Received};
pub use ipv6_sender::Ipv6Sender;
pub use llc::LlcSocket;
pub use open::{Choice, OpenError, Opened, open, open_share};
pub use raw::RawSocket;
pub use share::{FanoutGroup, Share, ShareGroup};
pub use turns::Turns;
