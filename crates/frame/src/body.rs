//! The part of a packet that its copies share: its octets behind their own headers.

use crate::frame::{Frame, MAX_BODY};
use crate::pool::Pool;
use crate::segment::Segment;

/// Segments that frames share, each behind a head of its own. A body itself holds no chunk; [`Body::share`] counts the
/// frames that will.
///
/// The segments are no array, so that they stay in registers from one copy to the next.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    first: Segment,
    second: Segment,
    third: Segment,
    count: u8,
}

const _: () = assert!(MAX_BODY == 3);

impl Body {
    /// The octets after the first `skip` of a frame, all of which lie in its first segment; `None` when that is more
    /// than frames can share.
    #[inline(always)]
    pub fn behind(frame: &Frame, skip: usize) -> Option<Self> {
        let rest = frame.first().behind(skip);
        let ([first, second, third], count) = frame.body_parts();
        if rest.is_empty() {
            return Some(Body { first, second, third, count });
        }
        (usize::from(count) < MAX_BODY).then_some(Body { first: rest, second: first, third: second, count: count + 1 })
    }

    /// The same without its last octets; `None` if it has fewer.
    pub fn without_last(self, octets: usize) -> Option<Self> {
        let kept = self.len().checked_sub(octets)?;
        let (mut segments, mut left, mut count) = ([self.first, self.second, self.third], kept, 0);
        for segment in segments.iter_mut().take(usize::from(self.count)) {
            if left == 0 {
                break;
            }
            *segment = segment.before(left.min(segment.len()));
            left -= segment.len();
            count += 1;
        }
        let [first, second, third] = segments;
        Some(Body { first, second, third, count })
    }

    /// Octets of all segments.
    #[inline]
    pub fn len(self) -> usize {
        self.segments().map(Segment::len).sum()
    }

    /// Whether no segment has octets.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.segments().all(Segment::is_empty)
    }

    /// The segments and how many of them count, as frames have them.
    #[inline]
    pub(crate) fn parts(self) -> ([Segment; MAX_BODY], u8) {
        ([self.first, self.second, self.third], self.count)
    }

    /// The segments.
    #[inline]
    pub fn segments(self) -> impl Iterator<Item = Segment> {
        let (segments, count) = self.parts();
        segments.into_iter().take(usize::from(count))
    }

    /// Counts so many frames as holders.
    #[inline]
    pub fn share(self, frames: usize, pool: &mut Pool) {
        for segment in self.segments() {
            pool.share(segment.chunk(), frames as u32);
        }
    }

    /// One frame less: a copy that was counted is not made.
    #[cold]
    pub fn release(self, pool: &mut Pool) {
        for segment in self.segments() {
            pool.release(segment.chunk());
        }
    }
}
