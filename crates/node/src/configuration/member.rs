//! Members of a group, with the keys for a change of membership.

use srdma_group::{Branch, Join};
use srdma_node_spec::file::{BranchSection, Epoch, JoinSection, Located};
use srdma_toml_error::Problem;

/// The branch in a group of this epoch.
pub(super) fn branch(section: &BranchSection, epoch: u32) -> Result<Branch, Problem> {
    Ok(Branch {
        responder: section.loopback.0,
        joined: join(section.joined.as_ref(), epoch)?,
        renewed: renewed(section.renewed.as_ref(), epoch)?,
    })
}

/// Join point of a member of a group of this epoch.
pub(super) fn join(section: Option<&JoinSection>, epoch: u32) -> Result<Option<Join>, Problem> {
    let Some(JoinSection { psn, msn }) = section else {
        return Ok(None);
    };
    if epoch == 0 {
        let text = "no receiver has joined a group of epoch 0: each change of membership raises the epoch (D30)";
        return Err(Problem::new(psn.at, text));
    }
    Ok(Some(Join { psn: psn.value, msn: msn.value.get() as u32 }))
}

/// Epoch from which the responses of a node count.
pub(super) fn renewed(section: Option<&Located<Epoch>>, epoch: u32) -> Result<u32, Problem> {
    until(section, "renewed", epoch)
}

/// Epoch at which a receiver moved to this node.
pub(super) fn moved(section: Option<&Located<Epoch>>, epoch: u32) -> Result<u32, Problem> {
    until(section, "moved", epoch)
}

/// An epoch in which something was done, 0 for never.
fn until(section: Option<&Located<Epoch>>, what: &str, epoch: u32) -> Result<u32, Problem> {
    let Some(done) = section else {
        return Ok(0);
    };
    let since = done.value.get() as u32;
    if since > epoch {
        let text = format!("{what} by epoch {since}, but the group's epoch is {epoch}: no later one can have been");
        return Err(Problem::new(done.at, text));
    }
    Ok(since)
}
