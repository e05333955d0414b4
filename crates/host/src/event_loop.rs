//! The loop that joins an endpoint, a wire and a program, and the only place here that reads a clock.

use crate::landing::Landing;
use crate::wire::Wire;
use srdma_rc::Endpoint;
use srdma_wire::Instant;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

/// What uses an endpoint.
pub trait Program {
    /// Takes what has completed, and posts what can go out now. `Break` says that the program is over.
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<Landing>) -> ControlFlow<()>;

    /// When to call [`Program::work`], if nothing happens before.
    fn next_deadline(&self) -> Option<Instant>;
}

/// Time since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Clock(std::time::Instant::now())
    }

    /// The time.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }
}

/// Runs a program until it is over and everything that it had to say is sent.
///
/// # Errors
///
/// When the wire can no longer be used.
pub fn run(
    clock: &Clock,
    endpoint: &mut Endpoint<Landing>,
    wire: &mut dyn Wire,
    program: &mut dyn Program,
) -> io::Result<()> {
    loop {
        let now = clock.now();
        // A packet that is refused is counted by the endpoint.
        let received = wire.receive(&mut |packet| {
            let _ = endpoint.receive(now, packet);
        })?;
        endpoint.tick(now);
        let is_over = program.work(now, endpoint).is_break();
        let fetched = wire.transmit(&mut |packet| endpoint.poll_transmit(now, packet))?;
        if is_over && fetched == 0 {
            return Ok(());
        }
        if received == 0 && fetched == 0 {
            let deadline = [endpoint.next_deadline(), program.next_deadline()].into_iter().flatten().min();
            wire.wait(deadline.map(|deadline| timeout(clock.now(), deadline)))?;
        }
    }
}

/// Time to wait for a deadline: at least a microsecond, so that waiting for one just missed does not spin.
fn timeout(now: Instant, deadline: Instant) -> Duration {
    deadline.since(now).max(Duration::from_micros(1))
}
