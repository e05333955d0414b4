//! The Linux kernel's links, addresses, neighbours and routes, over rtnetlink (RFC 3549): followed live by [`Watcher`],
//! changed by [`Kernel`]. IPv4 addresses are IPv4-mapped ones here (D258).
//!
//! Every socket is opened by the calling thread, in its network namespace, and stays there.

mod change;
mod decode;
mod kernel;
mod requests;
mod watcher;

pub use change::{Change, KernelNextHop, KernelRoute, RouteKind};
pub use kernel::Kernel;
pub use watcher::Watcher;

/// The routing protocol number of what we add to the kernel's tables, so that it can be distinguished from other
/// entries.
pub const PROTOCOL: u8 = 200;

/// The same of routes that we have learnt from others: they are followed like all others.
pub const LEARNT_PROTOCOL: u8 = 201;

/// The kernel's main table.
pub const MAIN_TABLE: u32 = 254;
