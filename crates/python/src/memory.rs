//! Memory of Python objects: the only `unsafe` code of the crate.

mod buffer;
mod dlpack;
mod view;

pub(crate) use buffer::of;
pub(crate) use view::{View, view};
