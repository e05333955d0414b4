//! Several rails: a group for each NIC of the source, and versions that are striped over them (D197, D198).
//!
//! ```text
//!   version ─► chunks ─┬─► rail 0: a group ─┬─► chunks, each into its place ─► version
//!                      └─► rail 1: a group ─┘
//! ```
//!
//! A rail is an ordinary group, whose versions are *messages*: layouts and chunks of the application's versions. So
//! its queue pairs, digests, flow control and joins are those of any group. What a rail that is lost has not brought to
//! all hosts is sent again on the others.

mod assembler;
mod event;
mod message;
mod receiver;
mod source;
mod striper;

pub use assembler::RailRejection;
#[cfg(test)]
pub(crate) use assembler::{Assembled, Assembler, Buffers, Verdict};
pub use event::RailEvent;
#[cfg(test)]
pub(crate) use message::{Chunks, HEADER, LAYOUT, Piece, slot_octets};
pub use message::{RailHeader, RailMessageError, RailPart};
pub use receiver::{RailReceiver, RailVersion};
pub use source::{RailOptions, RailSource};
#[cfg(test)]
pub(crate) use striper::{Action, Host, Striper};

use crate::device::Device;
use crate::error::{Error, Result};
use message::MAX_RAILS;

/// Events of rails that wait for the thread, with what else it handles.
type Inputs<T> = std::sync::mpsc::Sender<T>;

fn of_rail(rail: usize, error: Error) -> Error {
    Error::Rail { rail, error: Box::new(error) }
}

fn check_count(rails: &[&Device]) -> Result<()> {
    let count = rails.len();
    let is_count = (1..=MAX_RAILS).contains(&count);
    is_count.then_some(()).ok_or(Error::OutOfRange { name: "rails", value: count as u64, range: "1 to 16" })
}
