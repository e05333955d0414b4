//! A wire whose packets take placed paths: the host is its own headend (PP-4-3, PP-4-6).

use crate::event_loop::Clock;
use crate::wire::{Wire, WireStatistics};
use srdma_dataplane::headend::{Headend, Incoming};
use srdma_frame::{Frame, Pool};
use std::io;
use std::time::Duration;

/// Room for an Ethernet header, which a headend's frames begin with.
const ROOM: usize = 14;

/// One frame at a time, in pieces.
const CHUNKS: usize = 64;

/// A wire behind a headend, which encapsulates each sent packet with the program of its flow's path, inspects received
/// packets, and sends probes.
pub struct SteeredWire<W> {
    wire: W,
    headend: Headend,
    clock: Clock,
    pool: Pool,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    refused: u64,
}

impl<W: Wire> SteeredWire<W> {
    /// A wire in front of another. Packets of the host have at most so many octets; the headend's headers come on top.
    pub fn new(wire: W, headend: Headend, clock: Clock, max_packet_octets: usize) -> Self {
        let (incoming, outgoing) = (vec![0; ROOM], vec![0; ROOM + max_packet_octets]);
        SteeredWire { wire, headend, clock, pool: Pool::new(CHUNKS), incoming, outgoing, refused: 0 }
    }

    /// The headend, with the state of its paths.
    pub fn headend(&self) -> &Headend {
        &self.headend
    }
}

impl<W: Wire> Wire for SteeredWire<W> {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        let SteeredWire { wire, headend, clock, pool, incoming, .. } = self;
        let now = clock.now();
        headend.tick(now);
        wire.receive(&mut |pieces| {
            incoming.truncate(ROOM);
            pieces.iter().for_each(|piece| incoming.extend_from_slice(piece));
            // The headend does not inspect packets that are larger than the pool's buffers.
            let heard = Frame::from_octets(incoming, pool).map(|frame| {
                let heard = headend.incoming(now, &frame, pool);
                frame.release(pool);
                heard
            });
            if heard != Some(Incoming::Probe) {
                take(pieces);
            }
        })
    }

    fn transmit(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        let SteeredWire { wire, headend, clock, pool, outgoing, refused, .. } = self;
        let now = clock.now();
        wire.transmit(&mut |octets| {
            if let Some(probe) = headend.poll_probe(now, pool) {
                return Some(unload(probe, octets, pool));
            }
            loop {
                let len = next(outgoing.get_mut(ROOM..)?)?;
                let Some(mut frame) = Frame::from_octets(outgoing.get(..ROOM + len)?, pool) else {
                    *refused += 1;
                    continue;
                };
                match headend.outgoing(now, &mut frame, pool) {
                    Ok(_) if frame.len() <= ROOM + octets.len() => return Some(unload(frame, octets, pool)),
                    Ok(_) | Err(_) => {
                        frame.release(pool);
                        *refused += 1;
                    }
                }
            }
        })
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let now = self.clock.now();
        let probing = self.headend.next_deadline().map(|deadline| deadline.since(now));
        self.wire.wait(timeout.into_iter().chain(probing).min())
    }

    fn statistics(&self) -> WireStatistics {
        let statistics = self.wire.statistics();
        WireStatistics { send_errors: statistics.send_errors + self.refused, ..statistics }
    }
}

/// Writes a frame without its Ethernet header, and returns how many octets it has.
fn unload(frame: Frame, octets: &mut [u8], pool: &mut Pool) -> usize {
    let mut at = 0;
    let mut skipped = ROOM;
    for piece in frame.pieces(pool) {
        let piece = piece.get(skipped.min(piece.len())..).unwrap_or_default();
        skipped = 0;
        if let Some(place) = octets.get_mut(at..at + piece.len()) {
            place.copy_from_slice(piece);
            at += piece.len();
        }
    }
    frame.release(pool);
    at
}

#[cfg(test)]
mod tests;
