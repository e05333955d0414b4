//! Chunks of closed zero-copy sockets, until the hardware does not write to them any more.

use srdma_frame::Pool;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after which an interface has stopped to use the chunks of a closed socket. The kernel frees a queue within a
/// second ([`Socket::bind`](super::socket::Socket::bind)).
const REST: Duration = Duration::from_secs(5);

/// Entries of a chunk, by its offset.
pub(super) type Held = (u64, u16);

/// Retired chunks of all sockets of a memory, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Retired(Arc<Mutex<VecDeque<ClosedSocket>>>);

/// When it was closed, and its chunks.
type ClosedSocket = (Instant, Vec<Held>);

impl Retired {
    /// Takes the chunks of a socket that was closed at `now`.
    pub(super) fn retire(&self, now: Instant, held: Vec<Held>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((now, held));
    }

    /// Returns chunks to the pool that were retired long enough before `now`.
    pub(super) fn reclaim(&self, now: Instant, pool: &mut Pool) {
        let mut retired = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((_, held)) = retired.pop_front_if(|(since, _)| now.duration_since(*since) >= REST) {
            release(held, pool);
        }
    }
}

/// Returns chunks to their pool, once for each entry.
pub(super) fn release(held: Vec<Held>, pool: &mut Pool) {
    for (offset, count) in held {
        if let Some(chunk) = pool.chunk_at(offset) {
            (0..count).for_each(|_| pool.release(chunk));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gather::Sending;
    use super::super::holds::Holds;
    use super::super::{AfXdp, Umem};
    use super::*;
    use crate::namespace::NamespaceGuard;
    use crate::{Driver, Interest, XdpMode};

    /// Chunks of two closed sockets return one after the other, each as often as it was held.
    #[test]
    fn retired_chunks_return_after_some_seconds() {
        let (umem, mut pool) = Umem::new(1024).expect("memory");
        let retired = Retired::default();
        let begin = Instant::now();
        for (seconds, count) in [(0, 3), (2, 1)] {
            let mut holds = Holds::new(&umem);
            for _ in 0..count {
                let chunk = pool.allocate_large().expect("a chunk");
                // Received into, and sent from by another entry.
                pool.share(chunk, 1);
                (0..2).for_each(|_| assert!(holds.give(chunk, &pool).is_some()));
            }
            retired.retire(begin + Duration::from_secs(seconds), holds.take_all());
        }
        for (seconds, expected) in [(0, 4), (4, 4), (5, 1), (6, 1), (7, 0)] {
            retired.reclaim(begin + Duration::from_secs(seconds), &mut pool);
            assert_eq!(pool.in_use(), expected, "after {seconds} s");
        }
    }

    /// Frames of another pool's chunks are not sent from this memory.
    #[test]
    fn chunks_of_another_pool_are_refused() {
        let ((umem, mut pool), (_other, mut other)) = (Umem::new(1024).unwrap(), Umem::new(1024).unwrap());
        let mut holds = Holds::new(&umem);
        let (chunk, foreign) = (pool.allocate_large().unwrap(), other.allocate_large().unwrap());
        assert_eq!(holds.give(foreign, &other), None);
        let offset = holds.give(chunk, &pool).unwrap();
        assert_eq!((holds.take_back(offset, &other), holds.take_back(offset, &pool)), (None, Some(chunk)));
    }

    /// As often as an interface is lost, all chunks return; a veth takes the place of one with zero-copy.
    #[test]
    #[ignore = "needs root"]
    fn a_lost_interface_costs_no_chunks() {
        let namespace = NamespaceGuard::unique("srdma-t").expect("a namespace");
        namespace.run(&["ip", "link", "add", "port", "type", "veth", "peer", "name", "wire"]).expect("a link");
        let (umem, mut pool) = Umem::new(4096).expect("memory");
        let everything = Interest { everything: true, ..Interest::default() };
        for _ in 0..3 {
            let open = || AfXdp::open("port", XdpMode::Generic, &everything, &umem);
            let mut driver = namespace.enter(open).expect("entered").expect("opened");
            driver.sending = Sending::InPlace;
            driver.receive(&mut pool, &mut Vec::new(), 0).expect("filled");
            let held = pool.in_use();
            assert!(held > 0);
            let before = Instant::now();
            driver.detach(&mut pool);
            umem.reclaim(before, &mut pool);
            assert_eq!(pool.in_use(), held, "the hardware may still write to them");
            umem.reclaim(Instant::now() + REST, &mut pool);
            assert_eq!(pool.in_use(), 0);
        }
    }
}
