//! The trait for everything that carries an endpoint's packets.

use std::io;
use std::time::Duration;

/// Carries IPv6 packets without link-layer header, as an [`Endpoint`](srdma_rc::Endpoint) takes and gives them.
pub trait Wire {
    /// Passes received packets to `take`, each in pieces of which the first has all headers. Does not wait, and returns
    /// after a bounded number, which it returns.
    ///
    /// # Errors
    ///
    /// If the wire can no longer be used.
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize>;

    /// Fetches packets from `next`, which writes one and returns its length, until there are no more or the wire has no
    /// room, and sends them. Returns the number fetched.
    ///
    /// # Errors
    ///
    /// If the wire can no longer be used, or refuses packets of this length. A packet that cannot be sent now is
    /// counted and lost, as on any wire.
    fn transmit(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize>;

    /// Waits until something has come in, or there is room for what waits to be sent, or time is up.
    ///
    /// # Errors
    ///
    /// If the wire can no longer be used.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// Its counters.
    fn statistics(&self) -> WireStatistics;
}

impl<W: Wire + ?Sized> Wire for Box<W> {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        (**self).receive(take)
    }

    fn transmit(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        (**self).transmit(next)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        (**self).wait(timeout)
    }

    fn statistics(&self) -> WireStatistics {
        (**self).statistics()
    }
}

/// Counters of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireStatistics {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Received packets for which there was no room, as far as the kernel has reported.
    pub receive_overruns: u64,
    /// Packets that the kernel refused to send.
    pub send_errors: u64,
}
