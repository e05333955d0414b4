//! What the protocol would be without one of its rules.

use super::bounds::Ablation;
use super::network::Place;
use super::world::{Model, World};
use srdma_api::{NodeAnswer, NodeOrder, Registration, Sync};
use srdma_group::{EntryName, Group, NodeIndex};

impl Model {
    /// A registration in which, with the ablation, each entry is named as that of the stored record.
    pub(super) fn ablated(&self, world: &World, node: u8, mut registration: Registration) -> Registration {
        if self.bounds.ablation == Ablation::AnyEpoch {
            for held in &mut registration.groups {
                let record = world.controller.value.stored_record(held.group);
                let named = record.and_then(|record| name_of(record, Place(node)));
                held.entries.committed = held.entries.committed.and(named.or(held.entries.committed));
            }
        }
        registration
    }

    /// Answers the orders of a lost node as if it had executed them.
    pub(super) fn skip(&self, world: &mut World, node: u8) {
        let orders = world.controller.value.orders(Place(node).loopback());
        let answers: Vec<NodeAnswer> = orders.into_iter().filter_map(executed).collect();
        let session = world.nodes[usize::from(node)].value.session();
        let report = Sync { session, answers, ..Sync::default() };
        self.change_controller(world, |controller| {
            controller.drop_orders(Place(node));
            controller.sync(Place(node), report)
        });
    }
}

fn name_of(record: srdma_group::Record, place: Place) -> Option<EntryName> {
    let group = Group::new(record).ok()?;
    let position = group.record().tree.nodes().iter().position(|node| node.loopback == place.loopback())?;
    Some(group.name_of(&group.at(NodeIndex(position))?))
}

/// The answer to an order that was executed.
fn executed(order: &NodeOrder) -> Option<NodeAnswer> {
    match order {
        NodeOrder::Prepare { name, entry, .. } => Some(NodeAnswer::Prepared { group: entry.id.0, name: *name }),
        NodeOrder::Restore { name, entry, .. } => Some(NodeAnswer::Committed { group: entry.id.0, name: *name }),
        NodeOrder::Commit { group, name, .. } => Some(NodeAnswer::Committed { group: *group, name: *name }),
        NodeOrder::Remove { store, group, epoch } => {
            Some(NodeAnswer::Removed { store: *store, group: *group, epoch: *epoch })
        }
        NodeOrder::Abort { .. } => None,
    }
}
