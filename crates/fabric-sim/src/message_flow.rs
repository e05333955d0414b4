//! A flow of consecutive messages on a queue pair.

use super::page_memory::PageMemory;
use super::server::write;
use srdma_rc::{Endpoint, MemoryKey, PostError};
use srdma_wire::Qpn;

/// A flow of consecutive messages.
#[derive(Debug)]
pub(super) struct MessageFlow {
    number: usize,
    qpn: Qpn,
    message_octets: u32,
    rest: Rest,
}

/// Messages that a flow has still to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Endless,
    /// So many octets to post, and posted messages that are not completed.
    Octets {
        to_post: u64,
        outstanding: usize,
    },
    /// It has completed or failed.
    Ended,
}

impl MessageFlow {
    /// A flow of which no message is posted.
    pub(super) fn new(number: usize, qpn: Qpn, message_octets: u32, rest: Rest) -> Self {
        MessageFlow { number, qpn, message_octets, rest }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn is_endless(&self) -> bool {
        self.rest == Rest::Endless
    }

    /// Posts the next message, if there is one.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn post(&mut self, endpoint: &mut Endpoint<PageMemory>, region: MemoryKey) -> Result<(), PostError> {
        let octets = match &mut self.rest {
            Rest::Endless => self.message_octets,
            Rest::Octets { to_post: 0, .. } | Rest::Ended => return Ok(()),
            Rest::Octets { to_post, outstanding } => {
                let octets = (*to_post).min(u64::from(self.message_octets));
                *to_post -= octets;
                *outstanding += 1;
                octets as u32
            }
        };
        endpoint.post_send(self.qpn, write(self.number, region, octets, None))
    }

    /// One of its messages has completed. Returns whether the flow has ended by that.
    pub(super) fn on_completion(
        &mut self,
        failed: bool,
        endpoint: &mut Endpoint<PageMemory>,
        region: MemoryKey,
    ) -> bool {
        match (&mut self.rest, failed) {
            (Rest::Endless, true) => return true,
            // The others of a queue pair that has failed.
            (Rest::Ended, true | false) => return false,
            (Rest::Octets { .. }, true) | (Rest::Octets { to_post: 0, outstanding: 1 }, false) => {
                self.rest = Rest::Ended;
                return true;
            }
            (Rest::Octets { outstanding, .. }, false) => *outstanding -= 1,
            (Rest::Endless, false) => {}
        }
        // The completed message made room for it.
        let _ = self.post(endpoint, region);
        false
    }
}
