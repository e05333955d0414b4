//! A receiver that joins in two steps (D187, D188): at any time it dies, or is slow.

use super::checks::COMMIT_READY;
use super::world::{Model, World};
use srdma_api::{Group, ReceiverOrder, ReceiverState};

/// What the receiver knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Newcomer {
    /// It has a reservation, and has not learned that it is a member.
    pub(super) is_reporting: bool,
    pub(super) is_dead: bool,
    /// The first PSN of its queue pair.
    connected: Option<u32>,
}

impl Newcomer {
    /// It has requested to join.
    pub(super) fn reserved() -> Self {
        Newcomer { is_reporting: true, ..Newcomer::default() }
    }

    /// Whether it is neither a member nor joins.
    pub(super) fn may_join(self) -> bool {
        !self.is_dead && !self.is_reporting && self.connected.is_none()
    }

    /// Whether it is alive and follows its orders.
    pub(super) fn reports(self) -> bool {
        self.is_reporting && !self.is_dead
    }
}

impl Model {
    pub(super) fn report_newcomer(&self, world: &mut World) {
        let (newcomer, ready) = (self.newcomer(), world.newcomer.connected);
        let Some(id) = world.controller.value.groups().first().map(|group| group.summary.id) else { return };
        match self.change_controller(world, |controller| controller.report_receiver(id, newcomer, ready)) {
            Some(ReceiverOrder::Wait) => {}
            Some(ReceiverOrder::Reserved { psn }) => world.newcomer.connected = Some(psn),
            Some(ReceiverOrder::Member { .. }) => world.newcomer.is_reporting = false,
            // Its reservation has expired.
            Some(ReceiverOrder::End) | None => world.newcomer = Newcomer::default(),
        }
    }
}

impl World {
    /// Whether the controller waits for the receiver to say that it is ready.
    pub(super) fn has_reservation(&self, model: &Model) -> bool {
        let groups = self.controller.value.groups();
        let mut members = groups.iter().flat_map(|group| &group.members);
        members.any(|member| member.address == model.newcomer() && member.awaits_ready)
    }

    /// A receiver that joins in two steps is a member from a PSN for which it is ready.
    pub(super) fn check_ready(&self, model: &Model, group: &Group) -> Result<(), (&'static str, String)> {
        let Newcomer { is_reporting, connected, .. } = self.newcomer;
        let own = group.members.iter().find(|member| member.address == model.newcomer());
        let first = own.filter(|own| is_reporting && own.state == ReceiverState::Member).map(|own| own.joined_psn);
        match first {
            Some(psn) if psn != connected => {
                Err((COMMIT_READY, format!("it is a member from PSN {psn:?} on, and ready from {connected:?} on")))
            }
            Some(_) | None => Ok(()),
        }
    }
}
