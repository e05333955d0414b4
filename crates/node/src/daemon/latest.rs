//! State that the servers show: the node's latest snapshot, and that of routing protocols at the time of the request.

use super::snapshot::Snapshot;
use super::{isis, ospf};
use std::sync::Arc;

/// Latest state of a node. Describing thousands of LSPs takes milliseconds, so it is done on request only.
#[derive(Clone, Debug)]
pub struct Latest {
    snapshot: Arc<Snapshot>,
    inquiries: Inquiries,
}

/// Where the state of each protocol that runs is requested.
#[derive(Clone, Debug, Default)]
pub(super) struct Inquiries {
    pub(super) isis: Option<isis::Inquiry>,
    pub(super) ospf: Option<ospf::Inquiry>,
}

impl Latest {
    /// A snapshot to which there is nothing to add.
    pub fn new(snapshot: Snapshot) -> Self {
        Latest { snapshot: Arc::new(snapshot), inquiries: Inquiries::default() }
    }

    /// With what these inquiries bring.
    pub(super) fn with_inquiries(self, inquiries: Inquiries) -> Self {
        Latest { inquiries, ..self }
    }

    /// The snapshot, with routing protocols as they are now.
    pub(super) async fn whole(&self) -> Arc<Snapshot> {
        let Inquiries { isis, ospf } = &self.inquiries;
        if isis.is_none() && ospf.is_none() {
            return Arc::clone(&self.snapshot);
        }
        let mut snapshot = (*self.snapshot).clone();
        if let Some(inquiry) = isis {
            snapshot.isis = inquiry.answer().await;
        }
        if let Some(inquiry) = ospf {
            snapshot.ospf = inquiry.answer().await;
        }
        Arc::new(snapshot)
    }
}
