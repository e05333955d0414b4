//! State that the servers show: the node's latest snapshot, and that of IS-IS at the time of the request.

use super::isis::Inquiry;
use super::snapshot::Snapshot;
use std::sync::Arc;

/// Latest state of a node. Describing thousands of LSPs takes milliseconds, so it is done on request only.
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
