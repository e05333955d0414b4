//! Queues of an interface that are divided among the drivers of several workers (D222).

use crate::XdpMode;
use crate::bpf::Redirect;
use crate::interface::Queues;
use std::sync::{Arc, Mutex, Weak};

/// The drivers of an interface, one for each worker, of which each has the sockets of its own queues. One program gives
/// frames to all of them.
#[derive(Clone, Debug)]
pub struct QueueGroup {
    /// It belongs to the drivers: with the last of them it is gone.
    pub(super) program: Weak<Mutex<Redirect>>,
    pub(super) mode: XdpMode,
    pub(super) queues: Queues,
    pub(super) drivers: u16,
}

impl QueueGroup {
    pub(super) fn new(program: &Arc<Mutex<Redirect>>, mode: XdpMode, queues: Queues, drivers: u16) -> Self {
        QueueGroup { program: Arc::downgrade(program), mode, queues, drivers: drivers.max(1) }
    }

    pub(crate) fn mode(&self) -> XdpMode {
        self.mode
    }

    /// The queues of a driver, in turn. A queue that does not send is the first driver's, which sends by another one.
    pub(crate) fn queues_of(&self, driver: u16) -> Vec<u32> {
        let owner = |queue: u32| if queue < self.queues.transmit { queue % u32::from(self.drivers) } else { 0 };
        (0..self.queues.receive).filter(|queue| owner(*queue) == u32::from(driver)).collect()
    }
}

impl PartialEq for QueueGroup {
    fn eq(&self, other: &Self) -> bool {
        self.program.ptr_eq(&other.program)
    }
}

impl Eq for QueueGroup {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(receive: u32, transmit: u32, drivers: u16, expected: &[&[u32]]) {
        let queues = Queues { receive, transmit };
        let group = QueueGroup { program: Weak::new(), mode: XdpMode::Generic, queues, drivers };
        let found: Vec<Vec<u32>> = (0..drivers).map(|driver| group.queues_of(driver)).collect();
        assert_eq!(found, expected);
    }

    /// D222.
    #[test]
    fn every_queue_has_one_driver_which_can_send_by_its_first_one() {
        check(1, 1, 1, &[&[0]]);
        check(1, 1, 3, &[&[0], &[], &[]]);
        check(5, 5, 2, &[&[0, 2, 4], &[1, 3]]);
        check(4, 4, 4, &[&[0], &[1], &[2], &[3]]);
        // Queue 1 can send, those behind it cannot.
        check(4, 2, 3, &[&[0, 2, 3], &[1], &[]]);
        check(2, 8, 2, &[&[0], &[1]]);
    }
}
