//! A port of the data thread: its driver, or none.

use super::pace::Pace;
use srdma_dataplane::Node;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_io::{Driver, DriverStatistics};
use srdma_wire::Instant;
use std::io;
use std::time::Duration;

/// A port's connection to the wire. Without a driver, queued frames are dropped.
#[derive(Debug, Default)]
pub(super) struct Port {
    pub(super) driver: Option<Box<dyn Driver>>,
    /// Reason for none of the faster drivers.
    pub(super) note: Option<String>,
    /// The newest driver's, counted over all ports.
    pub(super) number: u64,
    /// Whether frames may wait in the node's queue.
    pub(super) is_waiting: bool,
    /// Limit of its sending rate.
    pub(super) pace: Option<Pace>,
    /// Counters of drivers that are gone.
    past: DriverStatistics,
}

impl Port {
    /// Takes up to `limit` frames that have come in.
    pub(super) fn receive(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, limit: usize) -> io::Result<()> {
        self.driver.as_mut().map_or(Ok(()), |driver| driver.receive(pool, frames, limit))
    }

    /// Whether the last call of [`Port::receive`] left no frame behind.
    pub(super) fn is_drained(&self) -> bool {
        self.driver.as_ref().is_none_or(|driver| driver.is_drained())
    }

    /// Sends what waits at the port, as far as the wire has room; returns whether there was anything to do.
    pub(super) fn send(&mut self, now: Instant, id: PortId, node: &mut Node, pool: &mut Pool) -> io::Result<bool> {
        let Some(driver) = self.driver.as_mut() else {
            if std::mem::take(&mut self.is_waiting) {
                node.drop_queue(id, pool);
            }
            return Ok(false);
        };
        if !self.is_waiting && driver.is_flushed() {
            return Ok(false);
        }
        let mut sent = 0;
        let room = driver.room(pool);
        while sent < room && self.is_waiting && self.pace.as_ref().is_none_or(|pace| pace.wait(now).is_zero()) {
            match node.dequeue(now, id, pool) {
                Some(frame) => {
                    if let Some(pace) = &mut self.pace {
                        pace.sends(now, frame.len());
                    }
                    driver.push(frame, pool);
                    sent += 1;
                }
                None => self.is_waiting = false,
            }
        }
        driver.flush(pool)?;
        Ok(sent > 0)
    }

    /// Whether frames wait for room on the wire.
    pub(super) fn is_backlogged(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| self.is_waiting || !driver.is_flushed())
    }

    /// When to try again to send what waits for room on the wire, at the latest after `period`; `None` when nothing
    /// waits.
    pub(super) fn next_try(&self, now: Instant, period: Duration) -> Option<Duration> {
        let wait = |pace: &Pace| Some(pace.wait(now)).filter(|wait| !wait.is_zero());
        let wait = self.pace.as_ref().and_then(wait).unwrap_or(period);
        self.is_backlogged().then_some(wait.min(period))
    }

    /// Counters of the port's drivers.
    pub(super) fn statistics(&self) -> DriverStatistics {
        self.driver.as_ref().map_or(self.past, |driver| sum(self.past, driver.statistics()))
    }

    /// Gives the driver up, with the chunks that it holds.
    pub(super) fn detach(&mut self, pool: &mut Pool) {
        if let Some(mut driver) = self.driver.take() {
            driver.detach(pool);
            self.past = sum(self.past, driver.statistics());
        }
        self.note = None;
        self.pace = None;
    }
}

fn sum(one: DriverStatistics, other: DriverStatistics) -> DriverStatistics {
    DriverStatistics {
        received: one.received + other.received,
        sent: one.sent + other.sent,
        receive_overruns: one.receive_overruns + other.receive_overruns,
        too_long: one.too_long + other.too_long,
        send_errors: one.send_errors + other.send_errors,
    }
}
