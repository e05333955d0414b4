//! The events of a queue pair's thread: completions, asynchronous events of the device, and the handle's wake-up.

use crate::engine::Wake;
use crate::error::Over;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_host::Clock;
use srdma_verbs::{CompletionQueue, Device, Event, VerbsError};
use srdma_wire::Instant;
use std::os::fd::AsFd;

/// Descriptors and the clock of a thread.
pub(super) struct EventLoop<'a> {
    device: &'a Device,
    completions: &'a CompletionQueue,
    wake: &'a Wake,
    clock: Clock,
}

fn failed(error: VerbsError) -> Over {
    Over::Device(error.to_string())
}

impl<'a> EventLoop<'a> {
    pub(super) fn new(device: &'a Device, completions: &'a CompletionQueue, wake: &'a Wake) -> Self {
        EventLoop { device, completions, wake, clock: Clock::start() }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Before the program looks for completions: those that come later make the descriptor readable.
    pub(super) fn begin(&mut self) -> Result<(), Over> {
        self.completions.request_notification().map_err(failed)?;
        while let Some(event) = self.device.next_event().map_err(failed)? {
            check(self.device.name(), event)?;
        }
        Ok(())
    }

    /// Waits until something has happened, or the time has come.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> Result<(), Over> {
        let timeout = deadline.map_or(PollTimeout::NONE, |deadline| {
            let left = deadline.since(self.clock.now());
            // Rounded up: a deadline that is nearly there is not awaited by looking again and again.
            let milliseconds = left.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(i32::MAX);
            PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)
        });
        let descriptors = [self.wake.as_fd(), self.completions.as_fd(), self.device.event_descriptor()];
        let mut descriptors = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
        match poll(&mut descriptors, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(Over::Device(format!("{}: cannot wait for events: {error}", self.device.name()))),
        }
        self.completions.take_events().map(drop).map_err(failed)
    }
}

/// An asynchronous event, named, if it ends the queue pair of this device.
fn check(device: &str, event: Event) -> Result<(), Over> {
    match event {
        Event::DeviceFatal | Event::CompletionQueueError => Err(Over::Device(format!("{device}: {event}"))),
        Event::QueuePairFatal(_) | Event::QueuePairRequestError(_) | Event::QueuePairAccessError(_) => {
            Err(Over::QueuePair(format!("{device}: {event}")))
        }
        // A port may come back before the source's retries are used up, and a queue pair keeps its address when the
        // table of addresses changes.
        Event::PortActive(_) | Event::PortError(_) | Event::GidChange(_) => Ok(()),
        Event::CommunicationEstablished(_)
        | Event::SendQueueDrained(_)
        | Event::PathMigrated(_)
        | Event::PathMigrationError(_)
        | Event::LastRequestReached(_)
        | Event::LidChange(_)
        | Event::PkeyChange(_)
        | Event::SubnetManagerChange(_)
        | Event::ClientReregister(_)
        | Event::Other(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_wire::Qpn;

    #[test]
    fn an_event_that_ends_the_queue_pair_is_named() {
        let qpn = Qpn::new(0x11).expect("a number");
        let over = check("rxe0", Event::QueuePairAccessError(qpn)).expect_err("it ends");
        let expected = format!("rxe0: {}", Event::QueuePairAccessError(qpn));
        assert!(matches!(&over, Over::QueuePair(text) if *text == expected), "{over}");
        let over = check("rxe0", Event::DeviceFatal).expect_err("it ends");
        assert!(matches!(&over, Over::Device(text) if text.starts_with("rxe0: ")), "{over}");
        for event in [Event::PortError(1), Event::PortActive(1), Event::GidChange(1)] {
            assert_eq!(check("rxe0", event), Ok(()));
        }
    }
}
