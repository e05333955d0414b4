//! END.C: a notification is taken, and the gateways that fill its class are paused (CN-4.1-1, D61, D62, D66).

use crate::behavior::{Verdict, inner_packet};
use crate::drop::DropReason;
use crate::headers::ipv6;
use crate::node::{Arrival, Node};
use crate::notification::Refusal;
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;
use srdma_wire::notification::{Ask, NotificationError, NotificationPacket};

impl Node {
    /// A packet to an END.C SID, which goes no further.
    #[inline(never)]
    pub(in crate::node) fn end_c(&mut self, arrival: Arrival, frame: Frame, pool: &mut Pool) {
        let taken = match inner_packet(frame.head(pool)) {
            Ok(inner) => self.take_notification(arrival.now, frame.head(pool), inner),
            Err(Verdict::Report(reason, error)) => return self.report(arrival, frame, pool, reason, error),
            Err(Verdict::Drop(reason)) => Err(reason),
            Err(Verdict::Forward | Verdict::Inner) => Err(DropReason::NotificationMalformed),
        };
        match taken {
            Ok(()) => frame.release(pool),
            Err(reason) => self.drop_frame(arrival, frame, pool, reason),
        }
    }

    /// Takes the notification at `inner`. Its origin is who has put it into its outer header: what it says of itself
    /// has to be the same.
    fn take_notification(&mut self, now: Instant, head: &[u8], inner: usize) -> Result<(), DropReason> {
        let outer = ipv6(head)?;
        let notifications = self.notifications.as_deref_mut().ok_or(DropReason::NotificationOff)?;
        let egress = &mut self.egress;
        let mut pause = |port, class, is_held| egress.hold(port, class, is_held);
        notifications.holds.tick(now, &mut pause);
        let origin = notifications.origins.take(now, outer.source_octets()).map_err(drop_of)?;
        let packet = NotificationPacket::parse(head.get(inner..).unwrap_or(&[])).map_err(drop_of_error)?;
        let notification = packet.notification;
        if notification.congested != outer.source() || packet.destination != outer.destination() {
            return Err(DropReason::NotificationForeignOrigin);
        }
        let taken = notifications.holds.take(now, origin, &notification, pause)?;
        if let Some(until) = taken.until {
            notifications.origins.keep(origin, until);
        }
        taken.effect?;
        match notification.ask {
            Ask::Pause => notifications.counters.pauses_taken += 1,
            Ask::Resume => notifications.counters.resumes_taken += 1,
        }
        Ok(())
    }
}

/// Under which name a packet of an origin is dropped that may not send it.
pub(super) fn drop_of(refusal: Refusal) -> DropReason {
    match refusal {
        Refusal::TooFast => DropReason::NotificationRateLimited,
        Refusal::TooMany => DropReason::NotificationTooManyOrigins,
    }
}

fn drop_of_error(error: NotificationError) -> DropReason {
    match error {
        NotificationError::Truncated(_)
        | NotificationError::NotIcmpv6(_)
        | NotificationError::Length(_)
        | NotificationError::Type { .. } => DropReason::NotificationMalformed,
        NotificationError::Checksum(_) => DropReason::NotificationChecksum,
        NotificationError::Version(_) => DropReason::NotificationVersion,
        NotificationError::Source { .. } => DropReason::NotificationForeignOrigin,
    }
}
