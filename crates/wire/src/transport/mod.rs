//! Extended transport headers, one file each: the octets after a BTH (IBTA volume 1, section 9.3; the CNP annex A17).
//!
//! [`crate::Opcode::extension_len`] gives those that follow.

mod aeth;
mod atomic;
mod cnp;
mod ieth;
mod immdt;
mod reth;

pub use aeth::{Aeth, AethView, Syndrome, rnr_timer};
pub use atomic::{AtomicAckEthView, AtomicEth, AtomicEthView};
pub use cnp::CnpView;
pub use ieth::IethView;
pub use immdt::ImmDtView;
pub use reth::{Reth, RethView};
