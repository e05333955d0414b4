//! Event loop that joins an endpoint, a wire and a program; the only code here that reads a clock.

use crate::transfer_memory::TransferMemory;
use crate::wire::Wire;
use srdma_rc::{Endpoint, Memory};
use srdma_wire::Instant;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

/// Program that uses an endpoint with memory of type `M`.
pub trait Program<M = TransferMemory> {
    /// Handles completions, and posts messages that can be sent now. `Break` ends the program.
    fn work(&mut self, now: Instant, endpoint: &mut Endpoint<M>) -> ControlFlow<()>;

    /// Does a little, some tens of microseconds at most, of what can wait while packets come. Returns whether there was
    /// anything.
    fn work_aside(&mut self, _endpoint: &mut Endpoint<M>) -> bool {
        false
    }

    /// Time of the next call of [`Program::work`], if nothing happens before.
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

/// Runs a program until it is over and all of its packets are sent.
///
/// # Errors
///
/// If the wire can no longer be used.
pub fn run<M: Memory>(
    clock: &Clock,
    endpoint: &mut Endpoint<M>,
    wire: &mut dyn Wire,
    program: &mut dyn Program<M>,
) -> io::Result<()> {
    let mut pace = Pace { last_active: clock.now(), is_brisk: false };
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
        if received + fetched == 0 && program.work_aside(endpoint) {
            continue;
        }
        if pace.has_to_wait(now, received + fetched) {
            let deadline = [endpoint.next_deadline(), program.next_deadline()].into_iter().flatten().min();
            let timeout = deadline.map(|deadline| timeout(clock.now(), deadline));
            if timeout.is_some_and(|timeout| timeout < SHORTEST_SLEEP) {
                std::hint::spin_loop();
            } else {
                wire.wait(timeout)?;
            }
        }
    }
}

/// The kernel wakes a sleeper up to 50 µs late. A paced packet that is due before is awaited without sleeping, or rates
/// above some hundred Mbit/s would not be met.
const SHORTEST_SLEEP: Duration = Duration::from_micros(60);

/// When to sleep. To be woken costs more than a packet, and it is the peer's processor that pays on one machine. So
/// while packets come in quick succession the next is awaited without sleeping; at any other time nothing spins.
struct Pace {
    last_active: Instant,
    is_brisk: bool,
}

impl Pace {
    /// Longest gap between packets in quick succession.
    const QUICK: Duration = Duration::from_micros(30);

    /// So many packets have come or gone: whether to sleep now.
    fn has_to_wait(&mut self, now: Instant, packets: usize) -> bool {
        let is_quick = now < self.last_active + Self::QUICK;
        if packets > 0 {
            self.is_brisk = is_quick;
            self.last_active = now;
            return false;
        }
        if self.is_brisk && is_quick {
            std::hint::spin_loop();
            return false;
        }
        true
    }
}

/// Time to wait for a deadline: at least a microsecond, so that waiting for one just missed does not spin.
fn timeout(now: Instant, deadline: Instant) -> Duration {
    deadline.since(now).max(Duration::from_micros(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packets_in_quick_succession_are_awaited_without_sleeping() {
        let at = |us: u64| Instant::from_ns(us * 1000);
        let mut pace = Pace { last_active: at(0), is_brisk: false };
        assert!(!pace.has_to_wait(at(100), 1));
        assert!(pace.has_to_wait(at(101), 0), "one packet is no succession");
        assert!(!pace.has_to_wait(at(120), 1));
        assert!(!pace.has_to_wait(at(149), 0), "the next may come at once");
        assert!(pace.has_to_wait(at(150), 0), "it did not");
        assert!(!pace.has_to_wait(at(300), 1));
        assert!(pace.has_to_wait(at(301), 0), "slow again");
    }
}
