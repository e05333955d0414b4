//! Choosing a driver for an interface.

use crate::configuration::PortInterface;
use srdma_dataplane::Pool;
use srdma_io::{Driver, Interest};
use std::io;

/// A driver for an interface, and why it is none of the faster ones.
pub(super) fn open(
    interface: &PortInterface,
    _interest: &Interest,
    _pool: &mut Pool,
) -> io::Result<(Box<dyn Driver>, Option<String>)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("no driver for {}", interface.name)))
}
