//! Several workers as one node (D208): each is a [`Node`](srdma_dataplane::Node) with a pool of its own, and they hand
//! packets of groups to each other.
//!
//! [`exchange`] connects workers that run in threads: nothing is shared on the packet path but bounded channels, in
//! which packets travel in batches of octets. [`Workers`] is the same in virtual time, as one element: simulations
//! drive it like a node.

mod batch;
mod exchange;
mod workers;

pub use exchange::{Exchange, ExchangeCounters, exchange};
pub use workers::{LONGEST_HANDOVER, Workers};
