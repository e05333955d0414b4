//! Captures in place of an interface.

use crate::af_packet::LONGEST_FRAME;
use crate::driver::{Driver, DriverKind, DriverStatistics};
use crate::interest::Interest;
use srdma_capture::{InterfaceId, Packet, ReadError, Reader, Writer};
use srdma_frame::{Frame, Pool};
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::time::{SystemTime, UNIX_EPOCH};

/// A [`Driver`] that receives the frames of a capture in their order, as fast as they are taken, and writes what is
/// sent to another.
///
/// Its interest is everything: the capture is already a selection. At the end of the file nothing more comes in; see
/// [`Capture::is_at_end`].
pub struct Capture<R, W: Write> {
    reader: Option<Reader<R>>,
    /// A frame that found no free chunk.
    held: Option<Packet>,
    writer: Writer<W>,
    interface: InterfaceId,
    /// An error in [`Driver::push`], which [`Driver::flush`] returns.
    failure: Option<io::Error>,
    statistics: DriverStatistics,
}

impl<R: Read, W: Write> Capture<R, W> {
    /// A driver over a capture (pcap or pcapng) and a new pcapng file, in which the frames belong to an interface of
    /// the name given, with the time of day at which they were sent.
    ///
    /// # Errors
    ///
    /// Those of `output`.
    pub fn new(input: Reader<R>, output: W, interface: &str) -> io::Result<Self> {
        let mut writer = Writer::new(output)?;
        let interface = writer.add_interface(interface)?;
        let statistics = DriverStatistics::default();
        Ok(Capture { reader: Some(input), held: None, writer, interface, failure: None, statistics })
    }

    /// Whether every frame has been received.
    pub fn is_at_end(&self) -> bool {
        self.reader.is_none() && self.held.is_none()
    }

    /// Completes the file that was written, and gives it back.
    ///
    /// # Errors
    ///
    /// Those of the output, now or earlier.
    pub fn finish(self) -> io::Result<W> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.writer.finish(),
        }
    }

    fn next(&mut self) -> Option<Result<Packet, ReadError>> {
        if let Some(packet) = self.held.take() {
            return Some(Ok(packet));
        }
        let next = self.reader.as_mut()?.next();
        if next.is_none() {
            self.reader = None;
        }
        next
    }
}

impl<R: Read + Send, W: Write + Send> Driver for Capture<R, W> {
    /// # Errors
    ///
    /// For each damaged packet; the next call continues after it.
    fn receive(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, limit: usize) -> io::Result<()> {
        let full = frames.len() + limit;
        while frames.len() < full {
            let packet = match self.next() {
                None => break,
                Some(Err(error)) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
                Some(Ok(packet)) => packet,
            };
            if packet.octets.len() > LONGEST_FRAME || packet.octets.len() < packet.original_len as usize {
                self.statistics.too_long += 1;
                continue;
            }
            let Some(frame) = Frame::from_octets(&packet.octets, pool) else {
                self.held = Some(packet);
                break;
            };
            frames.push(frame);
            self.statistics.received += 1;
        }
        Ok(())
    }

    fn is_drained(&self) -> bool {
        self.held.is_none() && self.reader.is_none()
    }

    fn room(&mut self, _pool: &mut Pool) -> usize {
        usize::MAX
    }

    fn push(&mut self, frame: Frame, pool: &mut Pool) {
        let pieces: Vec<&[u8]> = frame.pieces(pool).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        match self.writer.write_packet(self.interface, now.as_nanos() as u64, &pieces) {
            Ok(()) => self.statistics.sent += 1,
            Err(error) => {
                self.statistics.send_errors += 1;
                self.failure.get_or_insert(error);
            }
        }
        frame.release(pool);
    }

    fn flush(&mut self, _pool: &mut Pool) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn set_interest(&mut self, _interest: &Interest) -> io::Result<()> {
        Ok(())
    }

    fn kind(&self) -> DriverKind {
        DriverKind::Capture
    }

    fn statistics(&self) -> DriverStatistics {
        self.statistics
    }

    fn detach(&mut self, _pool: &mut Pool) {}
}

impl<R, W: Write> fmt::Debug for Capture<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("statistics", &self.statistics).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let interface = writer.add_interface("in").unwrap();
        for frame in frames {
            writer.write_packet(interface, 1, &[frame]).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn frames_go_through_in_their_order_and_wait_for_chunks() {
        let frames: Vec<Vec<u8>> = (0..5).map(|number| vec![number; 4200]).collect();
        let input = file(&frames);
        let mut driver = Capture::new(Reader::new(&input[..]).unwrap(), Vec::new(), "out").unwrap();
        let mut pool = Pool::new(4);
        let mut received = Vec::new();
        while !driver.is_at_end() {
            driver.receive(&mut pool, &mut received, 64).unwrap();
            assert!(received.len() <= 2, "two chunks each of four");
            for frame in received.drain(..) {
                driver.push(frame, &mut pool);
            }
        }
        let statistics = driver.statistics();
        assert_eq!((statistics.received, statistics.sent, pool.in_use()), (5, 5, 0));
        let output = driver.finish().unwrap();
        let written: Vec<Vec<u8>> = Reader::new(&output[..]).unwrap().map(|packet| packet.unwrap().octets).collect();
        assert_eq!(written, frames);
    }

    #[test]
    fn truncated_and_too_long_packets_are_counted() {
        let input = file(&[vec![1; 16_000], vec![2; 60]]);
        let mut driver = Capture::new(Reader::new(&input[..]).unwrap(), Vec::new(), "out").unwrap();
        let (mut pool, mut received) = (Pool::new(64), Vec::new());
        driver.receive(&mut pool, &mut received, 64).unwrap();
        assert_eq!((received.len(), driver.statistics().too_long), (1, 1));
    }
}
