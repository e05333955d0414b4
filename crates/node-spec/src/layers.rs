//! Layers of configuration, each with its owner.
//!
//! | precedence | owner | entries |
//! |---|---|---|
//! | 1 | file | all but links |
//! | 2 | controller | groups and their Replication SIDs |
//! | 3 | IS-IS | backpressure SIDs, BFD sessions with neighbours, backups |
//! | 4 | OSPFv3 | backpressure SIDs |
//! | 5 | kernel | links, neighbours, routes |
//!
//! Of two entries with the same subject the one of the higher layer counts. The kernel's layer has no entry for a
//! prefix that means something in a higher one, whatever its subject there; its owner sees to that.

use crate::{Entries, diff};
use srdma_dataplane::Command;

/// Owner of a layer, in the order of precedence.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// `node.toml`.
    File,
    Controller,
    /// IS-IS.
    Isis,
    /// OSPFv3 (D279).
    Ospf,
    /// The kernel: its links, neighbours and routes.
    Kernel,
}

impl Owner {
    /// All, the highest precedence first.
    pub const ALL: [Owner; 5] = [Owner::File, Owner::Controller, Owner::Isis, Owner::Ospf, Owner::Kernel];
}

/// The entries of each owner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    layers: [Entries; Owner::ALL.len()],
}

impl Layers {
    /// The entries of an owner.
    pub fn get(&self, owner: Owner) -> &Entries {
        &self.layers[owner as usize]
    }

    /// The entries of an owner, for the owner to change.
    pub fn get_mut(&mut self, owner: Owner) -> &mut Entries {
        &mut self.layers[owner as usize]
    }

    /// Replaces the entries of an owner; returns those that it had.
    pub fn set(&mut self, owner: Owner, entries: Entries) -> Entries {
        std::mem::replace(&mut self.layers[owner as usize], entries)
    }

    /// Replaces the entries of an owner other than the kernel; returns the commands that this takes.
    pub fn replace(&mut self, owner: Owner, entries: Entries) -> Vec<Command> {
        let before = self.above(Owner::Kernel);
        self.set(owner, entries);
        diff::between(&before, &self.above(Owner::Kernel))
    }

    /// The entries that are in effect: those of all owners, by precedence.
    pub fn effective(&self) -> Entries {
        self.above(None)
    }

    /// The entries of the owners with a higher precedence than this one.
    pub fn above(&self, owner: impl Into<Option<Owner>>) -> Entries {
        let owner = owner.into();
        self.merged(|higher| owner.is_none_or(|owner| higher < owner), |owner| self.get(owner))
    }

    /// The entries above the kernel's if `owner` had these.
    pub fn preview(&self, owner: Owner, entries: &Entries) -> Entries {
        self.merged(|higher| higher < Owner::Kernel, |other| if other == owner { entries } else { self.get(other) })
    }

    fn merged<'a>(&'a self, counts: impl Fn(Owner) -> bool, of: impl Fn(Owner) -> &'a Entries) -> Entries {
        let mut merged = Entries::default();
        for owner in Owner::ALL.into_iter().rev().filter(|owner| counts(*owner)) {
            merged.extend(of(owner).clone());
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_dataplane::{RouteAction, TableId};
    use srdma_wire::Prefix;

    fn route(text: &str, action: RouteAction) -> Entries {
        let prefix = Prefix::new(text.parse().expect("an address"), 48).expect("a prefix");
        Entries { routes: [((TableId(0), prefix), action)].into(), ..Entries::default() }
    }

    #[test]
    fn the_higher_layer_counts() {
        let via = || RouteAction::Via(Vec::new());
        let mut layers = Layers::default();
        layers.set(Owner::Kernel, route("2001:db8::", via()));
        layers.set(Owner::File, route("2001:db8::", RouteAction::Blackhole));
        assert_eq!(layers.effective(), route("2001:db8::", RouteAction::Blackhole));
        assert_eq!(layers.above(Owner::Kernel), route("2001:db8::", RouteAction::Blackhole));
        assert_eq!(layers.above(Owner::File), Entries::default());
        let other = route("2001:db8:1::", RouteAction::Blackhole);
        assert_eq!(layers.preview(Owner::File, &other), other);
        layers.set(Owner::File, other);
        assert_eq!(layers.effective().routes.len(), 2);
    }

    #[test]
    fn a_layer_is_replaced_by_commands() {
        let mut layers = Layers::default();
        layers.set(Owner::File, route("2001:db8::", RouteAction::Blackhole));
        let added = layers.replace(Owner::Controller, route("2001:db8:1::", RouteAction::Blackhole));
        assert!(matches!(added.as_slice(), [Command::AddRoute { .. }]), "{added:?}");
        let hidden = layers.replace(Owner::Controller, route("2001:db8::", RouteAction::Via(Vec::new())));
        assert!(matches!(hidden.as_slice(), [Command::RemoveRoute { .. }]), "{hidden:?}");
    }

    #[test]
    fn owners_are_in_the_order_of_precedence() {
        assert!(Owner::ALL.is_sorted());
    }
}
