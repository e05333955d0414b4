//! A token bucket: a limit on the rate of an action.

use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;

/// So many a second on the average, and so many at once.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    per_second: u64,
    /// Tokens that it holds at most, in billionths.
    most: u64,
    /// Tokens, in billionths.
    credit: u64,
    last: Instant,
}

impl TokenBucket {
    const TOKEN: u64 = NS_PER_S;

    /// A full bucket.
    pub(crate) fn new(per_second: u32, at_once: u32) -> Self {
        let most = u64::from(at_once) * Self::TOKEN;
        TokenBucket { per_second: per_second.into(), most, credit: most, last: Instant::ZERO }
    }

    /// Takes a token; `false` if none is left.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed_ns = now.as_ns().saturating_sub(self.last.as_ns());
        self.last = now;
        self.credit = self.credit.saturating_add(passed_ns.saturating_mul(self.per_second)).min(self.most);
        match self.credit.checked_sub(Self::TOKEN) {
            Some(credit) => {
                self.credit = credit;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut bucket = TokenBucket::new(10, 4);
        let now = Instant::from_ns(5_000_000_000);
        assert_eq!((0..50).filter(|_| bucket.take(now)).count(), 4);
        assert!(!bucket.take(now.after_ns(99_999_999)));
        assert!(bucket.take(now.after_ns(100_000_000)));
        assert!(!bucket.take(now.after_ns(100_000_001)));
    }
}
