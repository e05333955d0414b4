//! Frames, and the trait of everything that sends and receives them.
//!
//! A [`Frame`] lies in chunks of a [`Pool`]; copies of a replicated packet share their [`Body`]. An [`Element`] takes
//! and gives frames without I/O.

mod body;
mod cursor;
mod element;
mod frame;
mod memory;
mod pool;
mod ring;
mod segment;

pub use body::Body;
pub use element::{Element, PortId};
pub use frame::{Frame, HEADER_SPAN, MAX_PIECES};
pub use memory::Pages;
pub use pool::{CHUNK_ROOM, Chunk, HEADROOM, Page, Pool};
pub use ring::Ring;
pub use segment::Segment;
