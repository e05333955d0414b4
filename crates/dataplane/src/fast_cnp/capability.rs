//! Hosts that have reported by ICMPv6 errors that they do not support Fast CNP (D47), for a limited time. A table of
//! fixed size.

use srdma_wire::Instant;

const MOST: usize = 256;

/// The hosts, in no order.
#[derive(Debug, Default)]
pub(crate) struct Incapable {
    hosts: Vec<([u8; 16], Instant)>,
}

impl Incapable {
    /// Adds a host. When the table is full, it replaces the entry that would expire first.
    pub(crate) fn learn(&mut self, host: [u8; 16], until: Instant) {
        if let Some(known) = self.hosts.iter_mut().find(|(known, _)| *known == host) {
            known.1 = until;
        } else if self.hosts.len() < MOST {
            self.hosts.push((host, until));
        } else if let Some(first) = self.hosts.iter_mut().min_by_key(|(_, until)| *until) {
            *first = (host, until);
        }
    }

    /// Whether a host has an unexpired entry; an expired one is removed.
    #[inline]
    pub(crate) fn contains(&mut self, now: Instant, host: &[u8; 16]) -> bool {
        if self.hosts.is_empty() {
            return false;
        }
        let Some(place) = self.hosts.iter().position(|(known, _)| known == host) else { return false };
        let holds = now < self.hosts[place].1;
        if !holds {
            self.hosts.swap_remove(place);
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u16) -> [u8; 16] {
        u128::from(number).to_be_bytes()
    }

    /// D47: for a while.
    #[test]
    fn a_refusal_is_forgotten() {
        let mut incapable = Incapable::default();
        incapable.learn(host(1), Instant::from_ns(100));
        assert!(incapable.contains(Instant::from_ns(99), &host(1)));
        assert!(!incapable.contains(Instant::from_ns(99), &host(2)));
        assert!(!incapable.contains(Instant::from_ns(100), &host(1)));
        assert!(incapable.hosts.is_empty());
    }

    #[test]
    fn the_table_does_not_grow() {
        let mut incapable = Incapable::default();
        for number in 0..10_000 {
            incapable.learn(host(number), Instant::from_ns(u64::from(number)));
        }
        assert_eq!(incapable.hosts.len(), MOST);
        assert!(incapable.contains(Instant::ZERO, &host(9_999)) && !incapable.contains(Instant::ZERO, &host(0)));
    }
}
