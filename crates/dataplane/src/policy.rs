//! SR policies (RFC 9256): weighted segment lists, of which each flow takes one (D234).

use crate::encaps::{Encaps, EncapsError, EncapsMode};
use crate::entropy;
use crate::security::HmacKey;
use srdma_wire::NextHeader;
use std::net::Ipv6Addr;

/// An SR policy, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(pub u32);

/// Most segment lists of a policy.
pub const MAX_SEGMENT_LISTS: usize = 64;

/// A segment list and its share of the flows (RFC 9256 section 2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentList {
    /// The path, the first segment first.
    pub segments: Vec<Ipv6Addr>,
    /// Its share, relative to the weights of the other lists; at least 1.
    pub weight: u32,
}

/// The segment lists of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrPolicy {
    /// One at least.
    pub lists: Vec<SegmentList>,
    /// The key that signs the SRHs, where there are any.
    pub hmac_key_id: Option<u32>,
}

/// Why there is no such policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No segment list.
    #[error("a policy needs at least one segment list")]
    NoSegmentLists,
    /// More than [`MAX_SEGMENT_LISTS`].
    #[error("{0} segment lists, at most {MAX_SEGMENT_LISTS} are possible")]
    TooManySegmentLists(usize),
    /// Weight 0: the list is not valid (RFC 9256 section 5.1).
    #[error("segment list {0} has weight 0")]
    NoWeight(usize),
    /// A segment list that cannot be.
    #[error("segment list {number}: {error}")]
    SegmentList {
        /// Its place in the policy, from 1.
        number: usize,
        /// Why.
        error: EncapsError,
    },
}

/// What is put into a policy's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Ipv6,
    /// An IPv4 packet.
    Ipv4,
    /// A whole frame.
    Ethernet,
}

/// How a policy is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) mode: EncapsMode,
    pub(crate) payload: Payload,
}

/// What outer headers have in common that this node pushes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer<'k> {
    /// Source address.
    pub(crate) source: Ipv6Addr,
    pub(crate) hop_limit: u8,
    /// The key that signs them, and its id.
    pub(crate) hmac: Option<(u32, &'k HmacKey)>,
}

/// A policy in a form, ready for packets.
#[derive(Clone, Debug)]
pub(crate) struct PreparedPolicy {
    pub(crate) id: PolicyId,
    pub(crate) form: Form,
    lists: Vec<PreparedList>,
    /// Shares of all lists.
    all: Shares,
    /// Shares of the valid lists, while some are valid and others are not.
    valid: Option<Shares>,
    /// The tables' generation for which lists were found valid.
    generation: Option<u64>,
}

#[derive(Clone, Debug)]
struct PreparedList {
    headers: Encaps,
    weight: u32,
    is_valid: bool,
}

impl PreparedPolicy {
    pub(crate) fn new(id: PolicyId, policy: &SrPolicy, form: Form, outer: Outer<'_>) -> Result<Self, PolicyError> {
        match policy.lists.len() {
            0 => return Err(PolicyError::NoSegmentLists),
            lists if lists > MAX_SEGMENT_LISTS => return Err(PolicyError::TooManySegmentLists(lists)),
            _ => {}
        }
        let prepare = |(number, list): (usize, &SegmentList)| {
            if list.weight == 0 {
                return Err(PolicyError::NoWeight(number));
            }
            let headers = Encaps::signed(outer.source, &list.segments, form.mode, outer.hop_limit, outer.hmac)
                .map_err(|error| PolicyError::SegmentList { number, error })?;
            let headers = match form.payload {
                Payload::Ipv6 => headers,
                Payload::Ipv4 => headers.around(NextHeader::IPV4),
                Payload::Ethernet => headers.around(NextHeader::ETHERNET),
            };
            Ok(PreparedList { headers, weight: list.weight, is_valid: true })
        };
        let lists = (1..).zip(&policy.lists).map(prepare).collect::<Result<Vec<_>, _>>()?;
        let all = Shares::of(&lists, |_| true);
        Ok(PreparedPolicy { id, form, lists, all, valid: None, generation: None })
    }

    /// The headers for a flow. Flows of valid lists stay with them when others are not.
    pub(crate) fn choose(&self, hash: u32, salt: u32) -> &Encaps {
        let list = &self.lists[self.all.choose(hash, salt)];
        match &self.valid {
            // Another part of the hash than the one that led to the list, or all its flows would go to one other.
            Some(valid) if !list.is_valid => &self.lists[valid.choose(hash.swap_bytes(), salt)].headers,
            _ => &list.headers,
        }
    }

    /// Whether validity is that of this generation of the tables.
    pub(crate) fn is_of(&self, generation: u64) -> bool {
        self.generation == Some(generation)
    }

    /// Destinations of the outer headers, in the order of the lists.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = Option<[u8; 16]>> {
        self.lists.iter().map(|list| list.headers.destination().copied())
    }

    /// Sets which lists are valid, in their order. Without a valid list all are used, so that packets are dropped for
    /// the reason which their destination gives.
    pub(crate) fn set_valid(&mut self, valid: impl Iterator<Item = bool>, generation: u64) {
        for (list, is_valid) in self.lists.iter_mut().zip(valid) {
            list.is_valid = is_valid;
        }
        let count = self.lists.iter().filter(|list| list.is_valid).count();
        let is_divided = count > 0 && count < self.lists.len();
        self.valid = is_divided.then(|| Shares::of(&self.lists, |list| list.is_valid));
        self.generation = Some(generation);
    }

    /// Signs again, if `key_id` is the key of this policy.
    pub(crate) fn sign(&mut self, key_id: u32, key: &HmacKey) {
        self.lists.iter_mut().for_each(|list| list.headers.sign(key_id, key));
    }
}

/// Lists in proportion to their weights.
#[derive(Clone, Debug)]
struct Shares {
    /// A list, and the end of its part of the total.
    ends: Vec<(usize, u64)>,
    total: u64,
}

impl Shares {
    fn of(lists: &[PreparedList], has_share: impl Fn(&PreparedList) -> bool) -> Self {
        let mut total = 0;
        let mut ends = Vec::new();
        for (place, list) in lists.iter().enumerate().filter(|(_, list)| has_share(list)) {
            total += u64::from(list.weight);
            ends.push((place, total));
        }
        Shares { ends, total }
    }

    /// The list for a flow's hash.
    fn choose(&self, hash: u32, salt: u32) -> usize {
        let part = entropy::part(hash, salt, self.total);
        let index = self.ends.partition_point(|(_, end)| *end <= part);
        // A part is less than the total.
        self.ends[index].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(weights: &[u32]) -> PreparedPolicy {
        let lists = (1..).zip(weights).map(|(number, weight)| SegmentList {
            segments: vec![Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)],
            weight: *weight,
        });
        let policy = SrPolicy { lists: lists.collect(), hmac_key_id: None };
        let outer = Outer { source: Ipv6Addr::LOCALHOST, hop_limit: 64, hmac: None };
        let form = Form { mode: EncapsMode::Reduced, payload: Payload::Ipv6 };
        PreparedPolicy::new(PolicyId(1), &policy, form, outer).unwrap()
    }

    /// Number of the list for each of so many hashes, and how many flows each list has.
    fn chosen(policy: &PreparedPolicy) -> (Vec<u8>, Vec<usize>) {
        let lists: Vec<u8> = (0..100_000u32)
            .map(|flow| policy.choose(flow.wrapping_mul(0x85EB_CA6B), 7).destination().unwrap()[15])
            .collect();
        let counts =
            (1..=policy.lists.len()).map(|list| lists.iter().filter(|chosen| usize::from(**chosen) == list).count());
        let counts = counts.collect();
        (lists, counts)
    }

    /// D234: shares are in proportion to the weights, also the largest ones; each flow has one list.
    #[test]
    fn flows_are_shared_by_weight() {
        let (lists, counts) = chosen(&prepared(&[3, 1, 4]));
        for (count, expected) in counts.iter().zip([37_500, 12_500, 50_000]) {
            assert!(count.abs_diff(expected) < 1_500, "{counts:?}");
        }
        assert_eq!(chosen(&prepared(&[3, 1, 4])).0, lists);
        let (_, counts) = chosen(&prepared(&[u32::MAX; MAX_SEGMENT_LISTS]));
        assert!(counts.iter().all(|count| count.abs_diff(100_000 / 64) < 400), "{counts:?}");
        let (_, counts) = chosen(&prepared(&[u32::MAX, 1]));
        assert!(counts[0] > 99_900, "{counts:?}");
    }

    /// D234: the flows of a list that is not valid are shared among the others by weight; the rest stay.
    #[test]
    fn flows_of_valid_lists_stay() {
        let mut policy = prepared(&[3, 1, 4]);
        let (before, counts_before) = chosen(&policy);
        policy.set_valid([true, true, false].into_iter(), 1);
        let (after, counts) = chosen(&policy);
        assert!(before.iter().zip(&after).all(|(before, after)| *before == 3 || before == after));
        assert_eq!(counts[2], 0);
        let moved = [counts[0] - counts_before[0], counts[1] - counts_before[1]];
        assert!(moved[0].abs_diff(3 * moved[1]) < 6_000, "{moved:?}");
        policy.set_valid([false; 3].into_iter(), 2);
        assert_eq!(chosen(&policy).0, before);
        policy.set_valid([true; 3].into_iter(), 3);
        assert_eq!(chosen(&policy).0, before);
    }

    #[test]
    fn a_policy_needs_lists_that_can_be() {
        let a = Ipv6Addr::LOCALHOST;
        let list = |segments: usize, weight| SegmentList { segments: vec![a; segments], weight };
        let error = |lists: Vec<SegmentList>| {
            let policy = SrPolicy { lists, hmac_key_id: None };
            let outer = Outer { source: a, hop_limit: 64, hmac: None };
            let form = Form { mode: EncapsMode::Encaps, payload: Payload::Ipv6 };
            PreparedPolicy::new(PolicyId(1), &policy, form, outer).map(|_| ()).unwrap_err()
        };
        assert_eq!(error(vec![]), PolicyError::NoSegmentLists);
        assert_eq!(error(vec![list(1, 1); 65]), PolicyError::TooManySegmentLists(65));
        assert_eq!(error(vec![list(1, 1), list(1, 0)]), PolicyError::NoWeight(2));
        let too_long = EncapsError::TooLong { segments: 13, needed: 256, room: 242 };
        assert_eq!(error(vec![list(13, 1)]), PolicyError::SegmentList { number: 1, error: too_long });
    }
}
