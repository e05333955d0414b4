//! The version before the receiver's first one, which comes by unicast (D190).

use super::{Known, Rejection, SlotState, Subscriber};
use crate::current::{FetchError, Piece};
use crate::manifest::Manifest;
use crate::provider::ReceiverQueue;
use std::sync::Arc;

impl Subscriber {
    /// Takes a part of it. False if no more is needed: it is whole, or will not be.
    pub(crate) fn take_piece(&mut self, queue: &mut dyn ReceiverQueue, piece: Piece) -> bool {
        match (piece, self.unicast.clone()) {
            (Piece::Begin(manifest), None) => self.begin_unicast(queue, manifest),
            (Piece::Octets { region, offset, octets }, Some(manifest)) => {
                queue.deliver(region.into(), manifest.place(region, offset), &octets);
                true
            }
            (Piece::End, Some(manifest)) => {
                self.unicast = None;
                self.hand_over(queue, manifest);
                false
            }
            (Piece::Failed(error), unicast) => {
                self.unicast = None;
                // Without an error a later version is published, and comes with the group.
                let why = error.map_or(Rejection::Overtaken, Rejection::Fetch);
                match unicast {
                    Some(manifest) => self.reject(&manifest, why),
                    None if why != Rejection::Overtaken => self.refuse(None, why),
                    None => {}
                }
                false
            }
            // It was overtaken.
            (Piece::Begin(_) | Piece::Octets { .. } | Piece::End, _) => false,
        }
    }

    /// It is the version before the first one that comes with the group, and none of these is complete: else the
    /// receiver has it, or a later one. All messages that came before this call are handled.
    fn begin_unicast(&mut self, queue: &mut dyn ReceiverQueue, manifest: Manifest) -> bool {
        let is_before_first = match (&self.known, &self.receiving) {
            (None, _) => !self.has_ended,
            (Some(known), Some(first)) => {
                let follows = first.sequence().checked_sub(1) == Some(manifest.sequence());
                !self.has_ended && follows && first.version() > manifest.version() && known.slots == *manifest.regions()
            }
            (Some(_), None) => false,
        };
        if !is_before_first || self.is_offered(&manifest) {
            return false;
        }
        let slots = manifest.regions();
        let version = Some(manifest.version());
        if !self.fits(slots) || manifest.sequence() == u64::MAX {
            self.refuse(version, self.other_slots(slots));
            return false;
        }
        if slots.first().count == 1 {
            self.refuse(version, Rejection::Fetch(FetchError::OneSlot));
            return false;
        }
        let known = self.known.get_or_insert_with(|| Known::of(&manifest));
        let state = &mut known.states[usize::from(manifest.slot())];
        if *state != SlotState::Free {
            return false;
        }
        *state = SlotState::Busy;
        self.unicast = Some(Arc::new(manifest));
        // The source of the group writes to other slots only.
        self.open(queue)
    }

    /// Whether receives are posted for a version that comes to the same slot: its source may have begun it.
    fn is_offered(&self, manifest: &Manifest) -> bool {
        let Some(known) = &self.known else { return false };
        let receives = self.posted - self.completed - u64::from(self.receiving.is_some());
        (0..receives.div_ceil(2))
            .any(|ahead| known.slots.first().slot_of(known.next_sequence + ahead) == manifest.slot())
    }

    /// A version that has come with the group is complete: it is not held up by the one before, which is dropped.
    pub(super) fn overtake_unicast(&mut self) {
        self.has_ended = true;
        if let Some(manifest) = self.unicast.take() {
            self.reject(&manifest, Rejection::Overtaken);
        }
    }
}
