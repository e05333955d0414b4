//! The end of a former headend, when another one takes its place (D289).
//!
//! Between the two records a node may acknowledge for those below it now while its parent counts that for those below
//! it before. The new headend counts nothing of that, since all nodes are renewed; the former one would.

use super::change::{ChangeError, Replacement, Wanted};
use super::member::{Presence, Step};
use super::order::Order;
use super::{Lifecycle, Phase};
use crate::group::Group;
use crate::safeguard::Safeguard;
use std::net::Ipv6Addr;

impl Lifecycle {
    /// Gives the group another headend, to which the source is attached as well. The former one may be dead, if it is
    /// [fenced](Lifecycle::fenced); the source is not paused (D289).
    pub fn replace_headend(&mut self, replacement: Replacement) -> Result<(), ChangeError> {
        self.want_checked(Wanted::Replace { replacement, of_epoch: self.stored_epoch() })
    }

    /// A lost node does nothing for the group any more until it has registered: its lease is over (D122), or no
    /// neighbour reaches it (D135).
    pub fn fenced(&mut self, node: Ipv6Addr) {
        if self.members.get(&node).is_some_and(|member| member.presence == Presence::Lost) && self.fenced.insert(node) {
            self.advance();
        }
    }

    /// The former headend, while a stored change waits for its end.
    pub fn ending(&self) -> Option<Ipv6Addr> {
        self.former_headend().filter(|_| self.phase == Phase::Fencing)
    }

    /// The headend of the record before, if the change in progress has another.
    pub(super) fn former_headend(&self) -> Option<Ipv6Addr> {
        let change = self.change.as_ref().filter(|_| self.without != Some(Safeguard::HeadendFenced))?;
        let headend = |group: &Group| group.record().tree.nodes().first().map(|node| node.loopback);
        let former = headend(change.before.as_ref()?)?;
        (headend(&change.after) != Some(former)).then_some(former)
    }

    /// Whether a node is the former headend in a change that is stored: it has to end at once, whatever its turn is.
    pub(super) fn has_to_end(&self, node: Ipv6Addr) -> bool {
        let is_stored = matches!(self.phase, Phase::Fencing | Phase::Committing { .. });
        is_stored && self.former_headend() == Some(node)
    }

    /// The phase that follows when the record is stored.
    pub(super) fn phase_when_stored(&self) -> Phase {
        if self.former_headend().is_some() { Phase::Fencing } else { Phase::Committing { stage: 0 } }
    }

    /// Ends the former headend; continues when it answers the source no more.
    pub(super) fn fence(&mut self) -> bool {
        let epoch = self.last_epoch;
        let Some((node, member)) = self.former_headend().and_then(|node| Some((node, self.members.get_mut(&node)?)))
        else {
            // It has removed the group.
            self.phase = Phase::Committing { stage: 0 };
            return true;
        };
        let is_fenced = match (member.presence, member.step, member.next()) {
            // It has committed its entry in the new tree.
            (_, Step::Settled, _) => true,
            (Presence::Lost, _, _) => self.fenced.contains(&node),
            (Presence::Here, Step::Leaving, _) => {
                member.step = Step::Removing;
                self.orders.push_back(Order::Remove { node, epoch });
                false
            }
            (Presence::Here, Step::Prepared, Some(name)) => {
                member.step = Step::Committing;
                self.orders.push_back(Order::Commit { node, name, is_first: false });
                false
            }
            (Presence::Here | Presence::Returning(_) | Presence::Unheard, _, _) => false,
        };
        if is_fenced {
            self.phase = Phase::Committing { stage: 0 };
        }
        is_fenced
    }
}
