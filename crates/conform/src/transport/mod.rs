//! Ways to exchange frames with a device.

mod command;
mod interface;

pub use command::CommandDevice;
pub use interface::InterfaceDevice;

use crate::{Frame, Step};

/// A device under test.
pub trait Device {
    /// Name, for reports.
    fn name(&self) -> String;

    /// Puts the steps of one case to it; for each step what came out of it until the next one.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoAnswer`] when this case could not be put to it, others when none can.
    fn put(&mut self, steps: &[Step]) -> Result<Vec<Vec<Frame>>, DeviceError>;
}

/// Reason for which a device cannot be tested.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A case could not be put to it.
    #[error("{0}")]
    NoAnswer(String),
    /// Nothing can be put to it.
    #[error("{0}")]
    Unusable(String),
}

impl DeviceError {
    /// Something that the tester itself needs cannot be had.
    fn system(what: &str, error: impl std::fmt::Display) -> Self {
        DeviceError::Unusable(format!("cannot {what}: {error}"))
    }
}
