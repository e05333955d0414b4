//! Requests for the eviction of receivers (D25): sent when a receiver is stalled or has failed, and again while the
//! controller has not granted them.

use srdma_api::{EvictionRequest, MAX_EVICTION_REQUESTS};
use srdma_wire::units::NS_PER_S;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Retransmission interval, nanoseconds.
const INTERVAL_NS: u64 = 5 * NS_PER_S;

/// The receivers that are to be evicted now.
#[derive(Clone, Debug, Default)]
pub struct EvictionRequests(BTreeMap<(u32, Ipv6Addr), Pending>);

#[derive(Clone, Copy, Debug)]
struct Pending {
    cause: &'static str,
    /// Time at which it was sent last.
    sent_ns: Option<u64>,
}

impl EvictionRequests {
    /// Replaces the receivers that are to be evicted: group, receiver and cause, `stalled` or `failed`.
    pub fn set(&mut self, now: impl IntoIterator<Item = (u32, Ipv6Addr, &'static str)>) {
        let before = std::mem::take(&mut self.0);
        let pending = |(group, receiver, cause)| {
            let sent_ns = before.get(&(group, receiver)).and_then(|pending| pending.sent_ns);
            ((group, receiver), Pending { cause, sent_ns })
        };
        self.0 = now.into_iter().map(pending).collect();
    }

    /// Takes the requests that are due, as many as a report may have; the others are due in the next one.
    pub fn take(&mut self, now_ns: u64) -> Vec<EvictionRequest> {
        let mut requests = Vec::new();
        for ((group, receiver), pending) in &mut self.0 {
            if requests.len() == MAX_EVICTION_REQUESTS {
                break;
            }
            if pending.sent_ns.is_none_or(|sent_ns| now_ns.saturating_sub(sent_ns) >= INTERVAL_NS) {
                pending.sent_ns = Some(now_ns);
                requests.push(EvictionRequest { group: *group, receiver: *receiver, cause: pending.cause.to_owned() });
            }
        }
        requests
    }

    /// A new session: nothing was sent in it.
    pub fn forget(&mut self) {
        self.0.values_mut().for_each(|pending| pending.sent_ns = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D25: a request is sent at once, not with each report, and again when it was not granted for long.
    #[test]
    fn a_request_is_sent_once_and_again_after_the_interval() {
        let receiver: Ipv6Addr = "2001:db8:bb::1".parse().unwrap();
        let mut requests = EvictionRequests::default();
        let stalled = [(7, receiver, "stalled")];
        requests.set(stalled);
        assert_eq!(requests.take(0), [EvictionRequest { group: 7, receiver, cause: "stalled".to_owned() }]);
        requests.set(stalled);
        assert_eq!(requests.take(INTERVAL_NS - 1), []);
        assert_eq!(requests.take(INTERVAL_NS).len(), 1);
        requests.forget();
        assert_eq!(requests.take(INTERVAL_NS + 1).len(), 1, "no request was sent in the new session");
        requests.set([]);
        assert_eq!(requests.take(9 * INTERVAL_NS), []);
        requests.set(stalled);
        assert_eq!(requests.take(9 * INTERVAL_NS).len(), 1, "stalled again");
    }

    /// A controller refuses reports with more.
    #[test]
    fn a_report_has_a_limited_number_of_requests() {
        let mut requests = EvictionRequests::default();
        let receiver = |number: u128| Ipv6Addr::from_bits((0x2001_0db8 << 96) | number);
        requests.set((0..600).map(|number| (7, receiver(number), "stalled")));
        let taken: Vec<usize> = (0..4).map(|_| requests.take(0).len()).collect();
        assert_eq!(taken, [MAX_EVICTION_REQUESTS, MAX_EVICTION_REQUESTS, 88, 0]);
    }
}
