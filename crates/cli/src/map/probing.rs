//! The sockets of a mapper, and its clock.

use anyhow::{Context, Result};
use srdma_io::Ipv6Sender;
use srdma_mapper::{Change, Config, Mapper};
use srdma_wire::{Instant, Probe};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// The longest wait, so that signals and the end are noticed.
const MOST: Duration = Duration::from_millis(50);

/// Waits below this are slept, since timeouts of sockets are as coarse as the kernel's ticks.
const FINE: Duration = Duration::from_millis(10);

/// One sleep, at most: probes that return meanwhile seem to take so much longer.
const SLEEP: Duration = Duration::from_micros(200);

/// Probes sent and received by this host.
pub(super) struct Probing {
    sender: Ipv6Sender,
    socket: UdpSocket,
    /// Probes come from the mapper's own address and port.
    own: SocketAddr,
    start: std::time::Instant,
    /// Probes that the kernel did not take: no route, an interface that is down.
    not_sent: u64,
}

impl Probing {
    pub(super) fn open(config: &Config) -> Result<Self> {
        let own = SocketAddr::from((config.address, config.port));
        let socket = UdpSocket::bind(own).with_context(|| {
            format!("cannot receive probes at {own}: give an --address of this host, and a free --port")
        })?;
        let sender = Ipv6Sender::open().context("cannot open a raw socket, which takes CAP_NET_RAW")?;
        Ok(Probing { sender, socket, own, start: std::time::Instant::now(), not_sent: 0 })
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_ns(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn not_sent(&self) -> u64 {
        self.not_sent
    }

    /// Sends what is due, and waits for the next event.
    pub(super) fn step(&mut self, mapper: &mut Mapper, end: Option<Instant>) -> Result<Vec<Change>> {
        let mut changes = mapper.tick(self.now());
        while let Some((_, packet)) = mapper.poll(self.now()) {
            // A probe that the kernel does not take is one that does not return.
            self.not_sent += u64::from(self.sender.send(&packet).is_err());
        }
        let next = [mapper.next_deadline(), end].into_iter().flatten().min();
        let wait = next.map_or(MOST, |next| next.since(self.now())).min(MOST);
        if wait < FINE {
            self.socket.set_nonblocking(true)?;
            self.receive(mapper, &mut changes)?;
            std::thread::sleep(wait.min(SLEEP));
        } else {
            self.socket.set_nonblocking(false)?;
            self.socket.set_read_timeout(Some(wait))?;
            self.receive_one(mapper, &mut changes)?;
        }
        Ok(changes)
    }

    /// Takes all probes that have returned.
    fn receive(&self, mapper: &mut Mapper, changes: &mut Vec<Change>) -> Result<()> {
        while self.receive_one(mapper, changes)? {}
        Ok(())
    }

    /// Takes one; whether there was any.
    fn receive_one(&self, mapper: &mut Mapper, changes: &mut Vec<Change>) -> Result<bool> {
        let mut payload = [0; Probe::LEN + 1];
        match self.socket.recv_from(&mut payload) {
            Ok((len, from)) => {
                let payload = if from == self.own { &payload[..len] } else { &[] };
                changes.extend(mapper.receive_payload(self.now(), payload));
                Ok(true)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) =>
            {
                Ok(false)
            }
            Err(error) => Err(error).context("cannot receive probes"),
        }
    }
}
