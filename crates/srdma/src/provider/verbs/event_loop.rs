//! The events of a queue pair's thread: completions, asynchronous events of the device, and the handle's wake-up.

use crate::engine::Wake;
use crate::error::Over;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_host::Clock;
use srdma_verbs::{CompletionQueue, Device, Ended, Event, VerbsError};
use srdma_wire::Instant;
use std::ops::ControlFlow;
use std::os::fd::AsFd;

/// The queue of a program on a device.
pub(super) trait DeviceQueue {
    /// Failure of the device since the last call.
    fn take_failure(&mut self) -> Option<Over>;
}

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

    /// Calls `work` whenever something has happened, and at the time that it returns, until it breaks. Returns the
    /// failure of the device, if that is the reason for the end.
    pub(super) fn run<Q: DeviceQueue>(
        &mut self,
        queue: &mut Q,
        mut work: impl FnMut(Instant, &mut Q) -> ControlFlow<(), Option<Instant>>,
    ) -> Option<Over> {
        loop {
            if let Err(over) = self.begin() {
                return Some(over);
            }
            let ControlFlow::Continue(deadline) = work(self.clock.now(), queue) else { return None };
            let failure = queue.take_failure().map_or_else(|| self.wait(deadline).err(), Some);
            if failure.is_some() {
                return failure;
            }
        }
    }

    /// Before the program looks for completions: those that come later make the descriptor readable.
    fn begin(&mut self) -> Result<(), Over> {
        self.completions.request_notification().map_err(failed)?;
        while let Some(event) = self.device.next_event().map_err(failed)? {
            check(self.device.name(), event)?;
        }
        Ok(())
    }

    /// Waits until something has happened, or the time has come.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), Over> {
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
    match event.ended() {
        Some(Ended::Device) => Err(Over::Device(format!("{device}: {event}"))),
        Some(Ended::QueuePair) => Err(Over::QueuePair(format!("{device}: {event}"))),
        None => Ok(()),
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
