//! Receivers whose eviction is asked for (D25): the controller is told when one is stalled or has failed, and again
//! while it has not granted it.

use crate::daemon::snapshot::EvictionCause;
use srdma_api::Wish;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// So long a wish that was told has time to be granted, nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;

/// The wishes of the moment.
#[derive(Clone, Debug, Default)]
pub(in crate::daemon) struct Wishes(BTreeMap<(u32, Ipv6Addr), Asked>);

#[derive(Clone, Copy, Debug)]
struct Asked {
    cause: EvictionCause,
    /// When it was told last.
    at_ns: Option<u64>,
}

impl Wishes {
    /// These receivers are to be evicted now, and no others.
    pub(in crate::daemon) fn set(&mut self, now: impl IntoIterator<Item = (u32, Ipv6Addr, EvictionCause)>) {
        let before = std::mem::take(&mut self.0);
        let asked = |(group, receiver, cause)| {
            let at_ns = before.get(&(group, receiver)).and_then(|asked| asked.at_ns);
            ((group, receiver), Asked { cause, at_ns })
        };
        self.0 = now.into_iter().map(asked).collect();
    }

    /// What is told now.
    pub(in crate::daemon) fn take(&mut self, now_ns: u64) -> Vec<Wish> {
        let mut wishes = Vec::new();
        for ((group, receiver), asked) in &mut self.0 {
            if asked.at_ns.is_none_or(|at_ns| now_ns.saturating_sub(at_ns) >= PATIENCE_NS) {
                asked.at_ns = Some(now_ns);
                wishes.push(Wish { group: *group, receiver: *receiver, cause: asked.cause.name().to_owned() });
            }
        }
        wishes
    }

    /// Another controller, or one that has forgotten: nothing was told.
    pub(in crate::daemon) fn forget(&mut self) {
        self.0.values_mut().for_each(|asked| asked.at_ns = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D25: a wish is told at once, not with each report, and again when it was not granted for long.
    #[test]
    fn a_wish_is_told_once_and_again_after_a_while() {
        let receiver: Ipv6Addr = "2001:db8:bb::1".parse().unwrap();
        let mut wishes = Wishes::default();
        let stalled = [(7, receiver, EvictionCause::Stalled)];
        wishes.set(stalled);
        assert_eq!(wishes.take(0), [Wish { group: 7, receiver, cause: "stalled".to_owned() }]);
        wishes.set(stalled);
        assert_eq!(wishes.take(PATIENCE_NS - 1), []);
        assert_eq!(wishes.take(PATIENCE_NS).len(), 1);
        wishes.forget();
        assert_eq!(wishes.take(PATIENCE_NS + 1).len(), 1, "a new session knows of nothing");
        wishes.set([]);
        assert_eq!(wishes.take(9 * PATIENCE_NS), []);
        wishes.set(stalled);
        assert_eq!(wishes.take(9 * PATIENCE_NS).len(), 1, "stalled anew");
    }
}
