//! A group that exists as long as the process that has created it.

use crate::group::ControlledGroup;
use anyhow::Result;
use srdma_api::{Client, NewGroup};

/// A group that this process has created. It is closed when it is dropped: it has no other source.
pub struct CreatedGroup {
    client: Client,
    id: u32,
}

impl CreatedGroup {
    /// Creates a group.
    ///
    /// # Errors
    ///
    /// If the request fails.
    pub fn create(client: Client, new: &NewGroup) -> Result<Self> {
        let id = client.create_group(new, None)?.summary.id;
        Ok(CreatedGroup { client, id })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The group, as its source uses it.
    ///
    /// # Errors
    ///
    /// As [`ControlledGroup::find`].
    pub fn find(&self) -> Result<ControlledGroup> {
        ControlledGroup::find(self.client.clone(), self.id)
    }
}

impl Drop for CreatedGroup {
    fn drop(&mut self) {
        // Without a controller the group stays; it has no source any more.
        let _ = self.client.close_group(self.id);
    }
}
