//! What the servers show: the node as it was last looked at, and IS-IS as it is when somebody asks.

use super::isis::Inquiry;
use super::snapshot::Snapshot;
use std::sync::Arc;

/// The latest of a node. To describe thousands of LSPs takes milliseconds, so nobody does it unasked.
#[derive(Clone, Debug)]
pub struct Latest {
    snapshot: Arc<Snapshot>,
    isis: Option<Inquiry>,
}

impl Latest {
    /// A snapshot to which there is nothing to add.
    pub fn new(snapshot: Snapshot) -> Self {
        Latest { snapshot: Arc::new(snapshot), isis: None }
    }

    /// With what this inquiry brings, if there is one.
    pub(super) fn with_isis(self, isis: Option<Inquiry>) -> Self {
        Latest { isis, ..self }
    }

    /// The snapshot, with IS-IS as it is now.
    pub(super) async fn whole(&self) -> Arc<Snapshot> {
        let Some(inquiry) = &self.isis else { return Arc::clone(&self.snapshot) };
        Arc::new(Snapshot { isis: inquiry.answer().await, ..(*self.snapshot).clone() })
    }
}
