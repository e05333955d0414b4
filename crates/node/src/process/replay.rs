//! A node, its clock and its wires.

use super::report::Report;
use srdma_dataplane::{BfdPeer, Command, Node};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_wire::Instant;
use std::time::Duration;

/// Chunks of each size that frames may hold: those of one packet's copies, since each port's wire takes them at once.
const POOL_CHUNKS: usize = 1 << 18;

/// Sink for the frames that leave the node.
pub(crate) trait Sink {
    /// Reason for which it cannot take one.
    type Error;

    /// Takes a frame, whose octets are those of `pieces`, that leaves a port at `time`.
    fn write<'p>(
        &mut self,
        port: PortId,
        time: Instant,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> Result<(), Self::Error>;
}

/// A node that is handed packets with their times.
///
/// ```text
/// packet at t: tick at each deadline before t ─→ receive at t ─→ all queues to the outputs
/// run_on(d):   tick at each deadline up to d after the last packet
/// ```
pub(crate) struct Replay<S> {
    node: Node,
    sink: S,
    pool: Pool,
    now: Instant,
    first: Option<Instant>,
    packets: u64,
    too_long: u64,
    /// Kept for its memory.
    frames: Vec<Frame>,
    /// Kept for its memory.
    ready: Vec<PortId>,
}

impl<S: Sink> Replay<S> {
    /// Without the node's BFD sessions: no peer responds to a replay, and their timers have no part in it.
    pub(crate) fn new(mut node: Node, sink: S) -> Self {
        let peers: Vec<BfdPeer> = node.bfd_reports().map(|report| report.peer).collect();
        for peer in peers {
            // It is one of its own.
            let _ = node.apply(Command::RemoveBfdSession(peer));
        }
        Replay {
            node,
            sink,
            pool: Pool::new(POOL_CHUNKS),
            now: Instant::ZERO,
            first: None,
            packets: 0,
            too_long: 0,
            frames: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Hands a packet over at `time`, or at the node's time if that is later.
    pub(crate) fn packet(&mut self, port: PortId, time: Instant, octets: &[u8]) -> Result<(), S::Error> {
        self.run_until(time)?;
        self.first.get_or_insert(self.now);
        self.packets += 1;
        match Frame::from_octets(octets, &mut self.pool) {
            Some(frame) => self.frames.push(frame),
            None => self.too_long += 1,
        }
        self.node.receive(self.now, port, &mut self.frames, &mut self.pool);
        self.drain()
    }

    /// Lets time pass without packets.
    pub(crate) fn run_on(&mut self, duration: Duration) -> Result<(), S::Error> {
        self.run_until(self.now + duration)
    }

    /// Counters so far.
    pub(crate) fn report(&self) -> Report {
        Report::new(&self.node, self.packets, self.too_long, self.first, self.now)
    }

    /// The node, to ask it what happened.
    pub(crate) fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    pub(crate) fn into_sink(self) -> S {
        self.sink
    }

    /// Ticks at each deadline up to `time`, which becomes now unless it is past.
    pub(crate) fn run_until(&mut self, time: Instant) -> Result<(), S::Error> {
        while let Some(deadline) = self.node.next_deadline().filter(|deadline| *deadline <= time) {
            self.now = self.now.max(deadline);
            self.node.tick(self.now, &mut self.pool);
            self.drain()?;
        }
        self.now = self.now.max(time);
        Ok(())
    }

    /// A frame that leaves may be a reason to send another one by another port.
    fn drain(&mut self) -> Result<(), S::Error> {
        let mut has_sent = true;
        while std::mem::take(&mut has_sent) {
            self.node.take_ready(&mut self.ready);
            for port in self.ready.drain(..) {
                while let Some(frame) = self.node.dequeue(self.now, port, &mut self.pool) {
                    let written = self.sink.write(port, self.now, frame.pieces(&self.pool));
                    frame.release(&mut self.pool);
                    written?;
                    has_sent = true;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Configuration;
    use srdma_capture::Reader;
    use std::convert::Infallible;
    use std::path::Path;

    const PFC: &str = "\
[node]
loopback = '2001:db8:a::1'
[[port]]
name = 'left'
mac = '02:00:00:00:00:01'
[[port]]
name = 'right'
mac = '02:00:00:00:00:02'
[[neighbour]]
address = 'fe80::9%right'
mac = '02:00:00:00:00:09'
[[route]]
prefix = '::/0'
via = ['fe80::9%right']
[[egress]]
port = 'left'
rate_bits_per_s = 1_000_000_000
class = [{ class = 0, pfc = { xoff_octets = 60, xon_octets = 10, headroom_octets = 10_000 } }]
[[egress]]
port = 'right'
rate_bits_per_s = 1_000_000_000
";

    /// Times and ports of the frames that have left, and whether each is one of MAC control.
    #[derive(Default)]
    struct Left(Vec<(u64, PortId, bool)>);

    impl Sink for Left {
        type Error = Infallible;

        fn write<'p>(
            &mut self,
            port: PortId,
            time: Instant,
            pieces: impl Iterator<Item = &'p [u8]>,
        ) -> Result<(), Infallible> {
            let octets = pieces.collect::<Vec<_>>().concat();
            self.0.push((time.as_ns(), port, octets[12..14] == [0x88, 0x08]));
            Ok(())
        }
    }

    /// Sessions would send a packet a second since 1970.
    #[test]
    fn a_replay_has_no_bfd() {
        let text = format!("{PFC}[[bfd]]\npeer = '2001:db8:9::1'\n");
        let node = Configuration::parse(Path::new("node.toml"), &text).expect("right").node().expect("right");
        assert!(node.has_bfd());
        let mut replay = Replay::new(node, Left::default());
        let Ok(()) = replay.run_until(Instant::from_ns(1_800_000_000_000_000_000));
        assert_eq!(replay.into_sink().0, []);
    }

    /// Each frame is above XOFF while it waits: the pause does not outlast it.
    #[test]
    fn a_resume_leaves_with_the_frame_that_it_is_for() {
        let node = Configuration::parse(Path::new("node.toml"), PFC).expect("right").node().expect("right");
        let mut replay = Replay::new(node, Left::default());
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_01_rocev2_base.pcap");
        let mut frame = Reader::open(&file).expect("a capture").next().expect("a packet").expect("a packet").octets;
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        let [left, right] = [PortId(0), PortId(1)];
        let mut expected = Vec::new();
        for time in [5, 7] {
            let Ok(()) = replay.packet(left, Instant::from_ns(time), &frame);
            expected.extend([(time, left, true), (time, right, false), (time, left, true)]);
        }
        assert_eq!(replay.into_sink().0, expected);
    }
}
