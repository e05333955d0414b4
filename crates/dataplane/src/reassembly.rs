//! Reassembly of packets whose outer headers end at a SID of this node (RFC 8200 section 4.5, RFC 2473 section 7.2;
//! D245). A value without I/O: time is an argument, and memory is bounded.
//!
//! ```text
//! fragment ─▶ refused: malformed, overlap, duplicate, limit
//!          ─▶ waits, for 60 s at most
//!          ─▶ was the last one missing: the packet is whole
//! ```

use crate::drop::DropReason;
use srdma_wire::Instant;
use srdma_wire::icmpv6::Icmpv6Error;
use std::collections::BTreeMap;

/// Packets of which fragments wait; the oldest gives way.
const PACKETS: usize = 64;

/// Fragments of one packet.
const FRAGMENTS: usize = 32;

/// The longest packet, in octets from its IPv6 header on. All that wait have 64 times as many at most.
const LONGEST: usize = 10_240;

/// Time for which a packet waits for its fragments, from the first one that came.
const TIMEOUT_NS: u64 = 60_000_000_000;

/// Octets of the Fragment header.
///
/// ```text
/// | Next Header | Reserved | Fragment Offset (13) | Res (2) | M | Identification (32) |
/// ```
const HEADER: usize = 8;

/// Octets of the IPv6 header.
const IPV6: usize = 40;

/// Packets that wait for fragments.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    waiting: BTreeMap<Key, Waiting>,
}

/// Source, destination and Identification.
type Key = ([u8; 16], [u8; 16], u32);

#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// What comes before the Fragment header in the first fragment, which announces what follows it.
    headers: Option<Vec<u8>>,
    /// By offset.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// Where the last fragment ends.
    end: Option<usize>,
    /// A fragment was marked CE.
    is_marked: bool,
    /// Fragments have overlapped, or were too many: all are refused.
    refused: Option<DropReason>,
}

/// A packet whose Fragment header has been found.
#[derive(Clone, Copy, Debug)]
struct Fragment<'p> {
    packet: &'p [u8],
    at: usize,
    announced_at: usize,
    next_header: u8,
    offset: usize,
    is_last: bool,
    identification: u32,
    payload: &'p [u8],
}

/// What became of a fragment that was taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Others are missing. So many fragments of the packet that had to give way were discarded.
    Waits { evicted: usize },
    /// The packet from its IPv6 header on.
    Whole(Vec<u8>),
}

/// A fragment that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: DropReason,
    /// To be sent to the source.
    pub(crate) error: Option<Icmpv6Error>,
    /// How many fragments of the same packet were discarded with it.
    pub(crate) others: usize,
}

impl From<DropReason> for Refused {
    fn from(reason: DropReason) -> Self {
        Refused { reason, error: None, others: 0 }
    }
}

impl Reassembly {
    /// Takes a fragment: a packet from its IPv6 header on, whose Fragment header is at an offset of it, announced by
    /// the octet at another.
    ///
    /// # Errors
    ///
    /// The reason for discarding it.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        packet: &[u8],
        at: usize,
        announced_at: usize,
    ) -> Result<Taken, Refused> {
        let fragment = Fragment::of(packet, at, announced_at)?;
        if fragment.offset == 0 && fragment.is_last {
            // RFC 6946: on its own, whatever else waits with its Identification.
            let headers = fragment.headers().ok_or(DropReason::FragmentMalformed)?;
            return Ok(Taken::Whole(whole(headers, [fragment.payload], false)));
        }
        let Some(waiting) = self.waiting.get_mut(&fragment.key()) else {
            let evicted = if self.waiting.len() >= PACKETS { self.evict() } else { 0 };
            let mut waiting = Waiting::new(now);
            waiting.insert(&fragment);
            self.waiting.insert(fragment.key(), waiting);
            return Ok(Taken::Waits { evicted });
        };
        if let Err(reason) = waiting.check(&fragment) {
            let others = match reason {
                DropReason::FragmentOverlap | DropReason::FragmentLimit => waiting.refuse(reason),
                _ => 0,
            };
            return Err(Refused { others, ..reason.into() });
        }
        waiting.insert(&fragment);
        match waiting.whole() {
            None => Ok(Taken::Waits { evicted: 0 }),
            Some(packet) => {
                self.waiting.remove(&fragment.key());
                Ok(Taken::Whole(packet))
            }
        }
    }

    /// Number of fragments that wait.
    pub(crate) fn fragments(&self) -> usize {
        self.waiting.values().map(|waiting| waiting.pieces.len()).sum()
    }

    /// Forgets packets that have waited too long; how many fragments they had.
    pub(crate) fn expire(&mut self, now: Instant) -> usize {
        let mut expired = 0;
        while self.next_deadline().is_some_and(|deadline| deadline <= now) {
            expired += self.evict();
        }
        expired
    }

    /// When [`Reassembly::expire`] is wanted next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.since.after_ns(TIMEOUT_NS)).min()
    }

    /// Forgets the packet that has waited longest; how many fragments it had.
    fn evict(&mut self) -> usize {
        let oldest = self.waiting.iter().min_by_key(|(_, waiting)| waiting.since).map(|(key, _)| *key);
        let evicted = oldest.and_then(|key| self.waiting.remove(&key));
        evicted.map_or(0, |waiting| waiting.pieces.len())
    }
}

impl<'p> Fragment<'p> {
    fn of(packet: &'p [u8], at: usize, announced_at: usize) -> Result<Self, Refused> {
        let truncated = || Refused::from(DropReason::Truncated);
        let payload_len = packet.get(4..6).and_then(<[u8]>::first_chunk).copied().ok_or_else(truncated)?;
        let end = IPV6 + usize::from(u16::from_be_bytes(payload_len));
        let behind = packet.get(at..end).ok_or_else(truncated)?;
        let ([next_header, _, high, low, identification @ ..], payload) =
            behind.split_first_chunk::<HEADER>().ok_or_else(truncated)?;
        let fields = u16::from_be_bytes([*high, *low]);
        let (offset, is_last) = (usize::from(fields & !7), fields & 1 == 0);
        let malformed = |pointer: usize| Refused {
            error: Some(Icmpv6Error::ErroneousField(pointer as u32)),
            ..DropReason::FragmentMalformed.into()
        };
        if !is_last && !payload.len().is_multiple_of(8) {
            return Err(malformed(4));
        }
        if at - IPV6 + offset + payload.len() > usize::from(u16::MAX) {
            return Err(malformed(at + 2));
        }
        // A fragment of nothing fills no gap.
        if payload.is_empty() && !(offset == 0 && is_last) {
            return Err(DropReason::FragmentMalformed.into());
        }
        if at + offset + payload.len() > LONGEST {
            return Err(DropReason::FragmentLimit.into());
        }
        let identification = u32::from_be_bytes(*identification);
        Ok(Fragment { packet, at, announced_at, next_header: *next_header, offset, is_last, identification, payload })
    }

    fn key(&self) -> Key {
        let address = |at: usize| self.packet.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        (address(8), address(24), self.identification)
    }

    /// What comes before the Fragment header, announcing what follows it.
    fn headers(&self) -> Option<Vec<u8>> {
        let mut headers = self.packet.get(..self.at)?.to_vec();
        *headers.get_mut(self.announced_at)? = self.next_header;
        Some(headers)
    }

    fn is_marked(&self) -> bool {
        self.packet.get(1).is_some_and(|octet| octet >> 4 & 3 == 3)
    }

    fn end(&self) -> usize {
        self.offset + self.payload.len()
    }
}

impl Waiting {
    fn new(since: Instant) -> Self {
        Waiting { since, headers: None, pieces: BTreeMap::new(), end: None, is_marked: false, refused: None }
    }

    /// That a fragment fits those that wait.
    fn check(&self, fragment: &Fragment<'_>) -> Result<(), DropReason> {
        if let Some(reason) = self.refused {
            return Err(reason);
        }
        if self.pieces.get(&fragment.offset).is_some_and(|piece| piece == fragment.payload)
            && fragment.is_last == (self.end == Some(fragment.end()))
        {
            return Err(DropReason::FragmentDuplicate);
        }
        let before = self.pieces.range(..fragment.end()).next_back();
        let reaches_into = before.is_some_and(|(offset, piece)| offset + piece.len() > fragment.offset);
        let is_behind_end = match self.end {
            Some(end) => fragment.is_last || fragment.end() > end,
            None => fragment.is_last && self.pieces.last_key_value().is_some_and(|(last, _)| *last > fragment.offset),
        };
        if reaches_into || is_behind_end {
            return Err(DropReason::FragmentOverlap);
        }
        if self.pieces.len() >= FRAGMENTS { Err(DropReason::FragmentLimit) } else { Ok(()) }
    }

    fn insert(&mut self, fragment: &Fragment<'_>) {
        if fragment.offset == 0 {
            self.headers = fragment.headers();
        }
        if fragment.is_last {
            self.end = Some(fragment.end());
        }
        self.is_marked |= fragment.is_marked();
        self.pieces.insert(fragment.offset, fragment.payload.to_vec());
    }

    /// Refuses what has come of the packet and what still comes (RFC 5722); how many fragments had waited.
    fn refuse(&mut self, reason: DropReason) -> usize {
        let others = self.pieces.len();
        *self = Waiting { refused: Some(reason), ..Waiting::new(self.since) };
        others
    }

    /// The packet, if no fragment is missing.
    fn whole(&mut self) -> Option<Vec<u8>> {
        let end = self.end?;
        // None overlaps another, so that they are all there when their octets are.
        if self.pieces.values().map(Vec::len).sum::<usize>() != end {
            return None;
        }
        let headers = self.headers.take()?;
        Some(whole(headers, self.pieces.values().map(Vec::as_slice), self.is_marked))
    }
}

/// A packet of its headers and the pieces behind them.
fn whole<'p>(mut headers: Vec<u8>, pieces: impl IntoIterator<Item = &'p [u8]>, is_marked: bool) -> Vec<u8> {
    pieces.into_iter().for_each(|piece| headers.extend(piece));
    let payload_len = (headers.len() - IPV6) as u16;
    headers[4..6].copy_from_slice(&payload_len.to_be_bytes());
    if is_marked {
        headers[1] |= 3 << 4;
    }
    headers
}
