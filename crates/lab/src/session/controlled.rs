//! Transfers to a group that the lab's controller creates.
//!
//! ```text
//!   the group is created ─→ receivers join, guests by the lab ─→ nodes take their parts ─→ the source ─→ it is closed
//! ```

use super::{Parts, Session};
use crate::controller::CreatedGroup;
use crate::error::Result;
use crate::group;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::topology::Kind;
use std::time::Duration;

/// Time for receivers to join.
const JOIN_PATIENCE: Duration = Duration::from_secs(60);

impl Session {
    /// Whether a host gets ready before there is a group: one that uses the controller's API gets its group first.
    pub(super) fn is_early(&self, node: usize) -> bool {
        let topology = self.lab.topology();
        topology.controlled_group().is_none() || topology.nodes[node].kind == Kind::Guest
    }

    /// Has the controller create the group of a transfer, and waits until its receivers have joined and the nodes have
    /// their parts. In a lab whose controller has nothing to create there is nothing to do.
    pub(super) fn gather(&mut self, parts: &mut Parts, interrupt: &Interrupt, say: &mut dyn FnMut(&str)) -> Result<()> {
        let Some(plan) = self.lab.topology().controlled_group().cloned() else { return Ok(()) };
        let own = match parts.own {
            Some(own) => own,
            None => parts.source.member(interrupt)?,
        };
        let created = CreatedGroup::create(&self.lab, &plan, &self.transfer, own.qpn)?;
        say(&format!("the controller has created group {}", created.url()));
        parts.terms.at_controller = Some(created.for_hosts());
        for receiver in parts.receivers.iter_mut().filter(|receiver| receiver.member.is_none()) {
            receiver.host.start(&mut self.lab, &parts.terms)?;
        }
        // Guests have no controller client: the job's launcher joins for them.
        let mut by_themselves: Vec<&mut Box<dyn Host>> = Vec::new();
        for receiver in &mut parts.receivers {
            match receiver.member {
                Some(member) => created.join(group::address(self.lab.topology(), receiver.node)?, member)?,
                None => by_themselves.push(&mut receiver.host),
            }
        }
        created.wait_for_receivers(JOIN_PATIENCE, interrupt, || {
            by_themselves.iter_mut().try_for_each(|host| host.outcome().map(drop))
        })?;
        created.commit(interrupt)?;
        self.created = Some(created);
        Ok(())
    }

    /// Has the controller close the group that it has created, if it has.
    pub(super) fn release(&mut self, interrupt: &Interrupt) -> Result<()> {
        self.created.take().map_or(Ok(()), |created| created.close(interrupt))
    }
}
