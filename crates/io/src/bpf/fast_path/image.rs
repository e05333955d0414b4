//! The content of the maps: which write follows from a change of the entries (D236). No I/O.
//!
//! Routes and SIDs are entries of one trie, each replaced as a whole. What several of them share (neighbours, sets of
//! equal paths, outer headers) lies in slots of arrays, which are never rewritten while an entry leads to them: a
//! packet that is being forwarded finds the slot as its entry meant it. A slot that is free is used again last of all.

use super::arrival::arrivals;
use super::{Entry, Hop, MAX_ENTRIES, Sid, SidAction};
use crate::interest::Match;
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Slots of each kind.
pub(super) const MAX_HOPS: u32 = 4096;
pub(super) const MAX_SETS: u32 = 1024;
pub(super) const MAX_POLICIES: u32 = 256;
pub(super) const MAX_SIDS: u32 = 1024;

/// Members of a set of equal paths.
pub(super) const MAX_MEMBERS: usize = 16;

/// Octets of outer headers, the IPv6 header among them: six segments in an SRH.
pub(super) const MAX_POLICY_OCTETS: usize = 40 + 8 + 6 * 16;

/// Kinds of entries in the trie, the first octet of a value.
pub(super) const KIND_ELEMENT: u8 = 0;
pub(super) const KIND_HOP: u8 = 1;
pub(super) const KIND_SET: u8 = 2;
pub(super) const KIND_SID: u8 = 3;
pub(super) const KIND_POLICY: u8 = 4;

/// Flags of a SID, the second octet of a value.
pub(super) const CROSS_CONNECT: u8 = 1;
pub(super) const DECAPSULATE: u8 = 2;
pub(super) const NEXT_CSID: u8 = 4;
pub(super) const PSP: u8 = 8;
pub(super) const USD: u8 = 16;

/// Flags of a policy: where packets go with its outer headers is known.
pub(super) const TO_HOP: u8 = 1;
pub(super) const TO_SET: u8 = 2;

/// The table of packets that come in, behind those that have a number of 16 bits.
pub(super) const ARRIVAL: u32 = 1 << 16;

/// `struct bpf_lpm_trie_key`: the length in host byte order, then the table and the address in network byte order.
pub(super) type RouteKey = [u8; 24];

/// Kind, flags, bits of block and compressed SID; slot, or table of End.DT6; slot of the counters, or of the neighbour
/// or set that a policy leads to.
pub(super) type RouteValue = [u8; 12];

/// Key of the port, longest frame, destination and source MAC address.
pub(super) type HopValue = [u8; 20];

/// Number of members, then their slots.
pub(super) type SetValue = [u8; 4 + 4 * MAX_MEMBERS];

/// Length of the headers in octets, four octets of nothing, the headers.
pub(super) type PolicyValue = [u8; 8 + MAX_POLICY_OCTETS];

/// A key of the entries: number of the table, and prefix.
pub type Key = (u16, Prefix);

/// A write to a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Hop(u32, HopValue),
    Set(u32, SetValue),
    Policy(u32, Box<PolicyValue>),
    /// Counters of a SID begin with zero.
    Counters(u32),
    Route(RouteKey, RouteValue),
    NoRoute(RouteKey),
}

/// Values in slots.
#[derive(Debug)]
struct Slots<T> {
    used: BTreeMap<T, u32>,
    /// Free slots that were used before, in the order in which they became free.
    free: VecDeque<u32>,
    fresh: u32,
    limit: u32,
}

impl<T: Ord + Clone> Slots<T> {
    fn new(limit: u32) -> Self {
        Slots { used: BTreeMap::new(), free: VecDeque::new(), fresh: 0, limit }
    }

    /// The slot of a value, and whether the value is new there; `None` when all are taken.
    fn take(&mut self, value: &T) -> Option<(u32, bool)> {
        if let Some(slot) = self.used.get(value) {
            return Some((*slot, false));
        }
        let slot = match self.fresh < self.limit {
            true => {
                self.fresh += 1;
                self.fresh - 1
            }
            false => self.free.pop_front()?,
        };
        self.used.insert(value.clone(), slot);
        Some((slot, true))
    }

    /// Frees the slots of all values but these.
    fn retain(&mut self, kept: &BTreeSet<T>) {
        let Slots { used, free, .. } = self;
        used.retain(|value, slot| {
            let is_kept = kept.contains(value);
            if !is_kept {
                free.push_back(*slot);
            }
            is_kept
        });
    }
}

/// What the maps hold.
#[derive(Debug)]
pub(super) struct Image {
    routes: BTreeMap<(u32, Prefix), RouteValue>,
    hops: Slots<Hop>,
    sets: Slots<Vec<Hop>>,
    policies: Slots<Vec<u8>>,
    sids: Slots<Prefix>,
}

/// Values that entries lead to.
#[derive(Debug, Default)]
struct Needed {
    hops: BTreeSet<Hop>,
    sets: BTreeSet<Vec<Hop>>,
    policies: BTreeSet<Vec<u8>>,
    sids: BTreeSet<Prefix>,
}

impl Image {
    pub(super) fn new() -> Self {
        Image {
            routes: BTreeMap::new(),
            hops: Slots::new(MAX_HOPS),
            sets: Slots::new(MAX_SETS),
            policies: Slots::new(MAX_POLICIES),
            sids: Slots::new(MAX_SIDS),
        }
    }

    /// Writes that make the maps hold these entries and no others, in an order in which every step is safe: slots come
    /// before the entries that lead to them, a longer prefix is added before the shorter one that contains it, and
    /// removed after it. The counters of `sids` stay, with an entry or without.
    pub(super) fn change(
        &mut self,
        entries: &BTreeMap<Key, Entry>,
        sids: &BTreeSet<Prefix>,
        interest: &[(Prefix, Match)],
    ) -> Vec<Write> {
        let (mut writes, mut needed) = (Vec::new(), Needed { sids: sids.clone(), ..Needed::default() });
        let mut routes = BTreeMap::new();
        for (key @ (table, prefix), entry) in entries {
            let value = self.encode(*key, entry, &mut needed, &mut writes);
            routes.insert((u32::from(*table), *prefix), value);
        }
        for ((table, prefix), entry) in entries {
            if let Some(to) = destination_of(entry, &routes) {
                routes.entry((u32::from(*table), *prefix)).and_modify(|value| lead(value, to));
            }
        }
        let of_main_table = routes.iter().take_while(|((table, _), _)| *table == 0);
        let of_main_table = of_main_table.map(|((_, prefix), value)| (*prefix, *value)).collect();
        let arriving = arrivals(&of_main_table, interest);
        if routes.len() + arriving.len() <= MAX_ENTRIES {
            routes.extend(arriving.into_iter().map(|(prefix, value)| ((ARRIVAL, prefix), value)));
        }
        let mut changed: Vec<(u32, Prefix)> =
            routes.iter().filter(|(key, value)| self.routes.get(key) != Some(value)).map(|(key, _)| *key).collect();
        changed.sort_by_key(|(_, prefix)| std::cmp::Reverse(prefix.prefix_len()));
        writes.extend(changed.iter().map(|key| Write::Route(route_key(*key), routes[key])));
        let mut gone: Vec<(u32, Prefix)> =
            self.routes.keys().filter(|key| !routes.contains_key(key)).copied().collect();
        gone.sort_by_key(|(_, prefix)| prefix.prefix_len());
        writes.extend(gone.into_iter().map(|key| Write::NoRoute(route_key(key))));
        self.routes = routes;
        self.hops.retain(&needed.hops);
        self.sets.retain(&needed.sets);
        self.policies.retain(&needed.policies);
        self.sids.retain(&needed.sids);
        writes
    }

    /// The slot of the counters of a SID.
    pub(super) fn counters_of(&self, sid: Prefix) -> Option<u32> {
        self.sids.used.get(&sid).copied()
    }

    /// The value of an entry; the element's where the maps have no room for it.
    fn encode(&mut self, key: Key, entry: &Entry, needed: &mut Needed, writes: &mut Vec<Write>) -> RouteValue {
        let encoded = match entry {
            Entry::Element => None,
            Entry::Via(hops) => self.via(hops, needed, writes),
            Entry::Sid(sid) => self.sid(key.1, sid, needed, writes),
            Entry::Encapsulate(headers) => self.policy(headers, needed, writes),
        };
        encoded.unwrap_or(route_value(KIND_ELEMENT, 0, (0, 0), 0, 0))
    }

    fn hop(&mut self, hop: &Hop, needed: &mut Needed, writes: &mut Vec<Write>) -> Option<u32> {
        let (slot, is_new) = self.hops.take(hop)?;
        needed.hops.insert(hop.clone());
        if is_new {
            let mut value = [0; 20];
            value[..4].copy_from_slice(&u32::from(hop.port).to_ne_bytes());
            value[4..8].copy_from_slice(&(14 + u32::from(hop.link_mtu)).to_ne_bytes());
            value[8..].copy_from_slice(&hop.addresses);
            writes.push(Write::Hop(slot, value));
        }
        Some(slot)
    }

    fn via(&mut self, hops: &[Hop], needed: &mut Needed, writes: &mut Vec<Write>) -> Option<RouteValue> {
        if let [hop] = hops {
            let slot = self.hop(hop, needed, writes)?;
            return Some(route_value(KIND_HOP, 0, (0, 0), slot, 0));
        }
        if hops.is_empty() || hops.len() > MAX_MEMBERS {
            return None;
        }
        let mut value = [0; 4 + 4 * MAX_MEMBERS];
        value[..4].copy_from_slice(&(hops.len() as u32).to_ne_bytes());
        for (place, hop) in value[4..].chunks_exact_mut(4).zip(hops) {
            place.copy_from_slice(&self.hop(hop, needed, writes)?.to_ne_bytes());
        }
        let hops = hops.to_vec();
        let (slot, is_new) = self.sets.take(&hops)?;
        needed.sets.insert(hops);
        if is_new {
            writes.push(Write::Set(slot, value));
        }
        Some(route_value(KIND_SET, 0, (0, 0), slot, 0))
    }

    fn sid(&mut self, prefix: Prefix, sid: &Sid, needed: &mut Needed, writes: &mut Vec<Write>) -> Option<RouteValue> {
        let (action, index) = match &sid.action {
            SidAction::Next => (0, 0),
            SidAction::Via(hop) => (CROSS_CONNECT, self.hop(hop, needed, writes)?),
            SidAction::Decapsulate { table } => (DECAPSULATE, u32::from(*table)),
        };
        let (counters, is_new) = self.sids.take(&prefix)?;
        needed.sids.insert(prefix);
        if is_new {
            writes.push(Write::Counters(counters));
        }
        let flags = [(sid.psp, PSP), (sid.usd, USD), (sid.next_csid.is_some(), NEXT_CSID)];
        let flags = flags.iter().filter(|(is_set, _)| *is_set).fold(action, |all, (_, flag)| all | flag);
        Some(route_value(KIND_SID, flags, sid.next_csid.unwrap_or_default(), index, counters))
    }

    fn policy(&mut self, headers: &[u8], needed: &mut Needed, writes: &mut Vec<Write>) -> Option<RouteValue> {
        if !(40..=MAX_POLICY_OCTETS).contains(&headers.len()) {
            return None;
        }
        let headers = headers.to_vec();
        let (slot, is_new) = self.policies.take(&headers)?;
        if is_new {
            let mut value = Box::new([0; 8 + MAX_POLICY_OCTETS]);
            value[..4].copy_from_slice(&(headers.len() as u32).to_ne_bytes());
            value[8..8 + headers.len()].copy_from_slice(&headers);
            writes.push(Write::Policy(slot, value));
        }
        needed.policies.insert(headers);
        Some(route_value(KIND_POLICY, 0, (0, 0), slot, 0))
    }
}

/// The neighbour or set of equal paths by which packets leave with outer headers, if nothing else happens to them.
fn destination_of(entry: &Entry, routes: &BTreeMap<(u32, Prefix), RouteValue>) -> Option<RouteValue> {
    let Entry::Encapsulate(headers) = entry else {
        return None;
    };
    let address: [u8; 16] = *headers.get(24..40)?.first_chunk()?;
    let covering = |len: u8| Prefix::new(address.into(), len).and_then(|prefix| routes.get(&(0, prefix)));
    let found = (0..=128).rev().find_map(covering)?;
    // As of packets: what may be a special address is the element's.
    (!matches!(address[0], 0 | 0xfe | 0xff) && matches!(found[0], KIND_HOP | KIND_SET)).then_some(*found)
}

/// Has a policy lead to a neighbour or set.
fn lead(policy: &mut RouteValue, to: RouteValue) {
    if policy[0] == KIND_POLICY {
        policy[1] = if to[0] == KIND_HOP { TO_HOP } else { TO_SET };
        policy[8..].copy_from_slice(&to[4..8]);
    }
}

pub(super) fn route_value(kind: u8, flags: u8, csid: (u8, u8), index: u32, counters: u32) -> RouteValue {
    let mut value = [kind, flags, csid.0, csid.1, 0, 0, 0, 0, 0, 0, 0, 0];
    value[4..8].copy_from_slice(&index.to_ne_bytes());
    value[8..].copy_from_slice(&counters.to_ne_bytes());
    value
}

pub(super) fn route_key((table, prefix): (u32, Prefix)) -> RouteKey {
    let mut key = [0; 24];
    key[..4].copy_from_slice(&(32 + u32::from(prefix.prefix_len())).to_ne_bytes());
    key[4..8].copy_from_slice(&table.to_be_bytes());
    key[8..].copy_from_slice(&prefix.address().octets());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a prefix")
    }

    fn hop(number: u8) -> Hop {
        Hop { port: number.into(), addresses: [number; 12], link_mtu: 1500 }
    }

    fn entries(list: &[(&str, Entry)]) -> BTreeMap<Key, Entry> {
        list.iter().map(|(text, entry)| ((0, prefix(text)), entry.clone())).collect()
    }

    fn kinds(writes: &[Write]) -> Vec<&'static str> {
        let kind = |write: &Write| match write {
            Write::Hop(..) => "hop",
            Write::Set(..) => "set",
            Write::Policy(..) => "policy",
            Write::Counters(_) => "counters",
            Write::Route(..) => "route",
            Write::NoRoute(_) => "no route",
        };
        writes.iter().map(kind).collect()
    }

    #[test]
    fn slots_come_before_what_leads_to_them_and_only_differences_are_written() {
        let mut image = Image::new();
        let sid = Sid { action: SidAction::Via(hop(1)), psp: true, usd: false, next_csid: Some((32, 16)) };
        let first = entries(&[
            ("2001:db8::/32", Entry::Via(vec![hop(1), hop(2)])),
            ("2001:db8:1::/48", Entry::Via(vec![hop(1)])),
            ("2001:db8:2::/64", Entry::Sid(sid)),
            ("2001:db8:3::/64", Entry::Encapsulate(vec![0; 40])),
        ]);
        let writes = image.change(&first, &BTreeSet::new(), &[]);
        let routes = ["route"; 4];
        assert_eq!(kinds(&writes), [&["hop", "hop", "set", "counters", "policy"][..], &routes].concat());
        assert_eq!(image.change(&first, &BTreeSet::new(), &[]), []);
        let Write::Route(key, value) = writes[5] else { panic!("{writes:?}") };
        assert_eq!((key, value[0]), (route_key((0, prefix("2001:db8:2::/64"))), KIND_SID));
        assert_eq!(value[1..4], [CROSS_CONNECT | PSP | NEXT_CSID, 32, 16]);
        let other = entries(&[("2001:db8::/32", Entry::Element)]);
        assert_eq!(kinds(&image.change(&other, &BTreeSet::new(), &[])), ["route", "no route", "no route", "no route"]);
    }

    /// A SID that is the element's for a while continues to be counted where it was.
    #[test]
    fn counters_stay_as_long_as_the_sid() {
        let mut image = Image::new();
        let sid = Sid { action: SidAction::Next, psp: false, usd: false, next_csid: None };
        let (with, without) = (entries(&[("2001:db8::/64", Entry::Sid(sid))]), entries(&[]));
        let sids = BTreeSet::from([prefix("2001:db8::/64")]);
        assert_eq!(kinds(&image.change(&with, &sids, &[])), ["counters", "route"]);
        assert_eq!(kinds(&image.change(&without, &sids, &[])), ["no route"]);
        assert_eq!(kinds(&image.change(&with, &sids, &[])), ["route"]);
        image.change(&without, &BTreeSet::new(), &[]);
        assert_eq!(kinds(&image.change(&with, &sids, &[])), ["counters", "route"]);
    }

    #[test]
    fn longer_prefixes_are_added_first_and_removed_last() {
        let mut image = Image::new();
        let all = entries(&[
            ("::/0", Entry::Element),
            ("2001:db8::/32", Entry::Element),
            ("2001:db8:1::/48", Entry::Element),
        ]);
        let lens = |writes: Vec<Write>| {
            let len = |write: &Write| match write {
                Write::Route(key, _) | Write::NoRoute(key) => key[0] - 32,
                _ => panic!("{write:?}"),
            };
            writes.iter().map(len).collect::<Vec<_>>()
        };
        assert_eq!(lens(image.change(&all, &BTreeSet::new(), &[])), [48, 32, 0]);
        assert_eq!(lens(image.change(&BTreeMap::new(), &BTreeSet::new(), &[])), [0, 32, 48]);
    }

    /// A slot is used again only when no other is left, and the longest unused first.
    #[test]
    fn slots_are_used_again_last_of_all() {
        let mut slots = Slots::new(3);
        let take = |slots: &mut Slots<u8>, value: u8| slots.take(&value).map(|(slot, _)| slot);
        assert_eq!([1, 2].map(|value| take(&mut slots, value)), [Some(0), Some(1)]);
        slots.retain(&BTreeSet::from([2]));
        assert_eq!(take(&mut slots, 3), Some(2));
        slots.retain(&BTreeSet::from([3]));
        assert_eq!([4, 5, 6].map(|value| take(&mut slots, value)), [Some(0), Some(1), None]);
        assert_eq!(slots.take(&4), Some((0, false)));
    }

    #[test]
    fn what_does_not_fit_is_the_elements() {
        let mut image = Image::new();
        let many: Vec<Hop> = (0..=MAX_MEMBERS as u8).map(hop).collect();
        let too_much = entries(&[
            ("2001:db8:1::/48", Entry::Via(many)),
            ("2001:db8:2::/48", Entry::Via(Vec::new())),
            ("2001:db8:3::/48", Entry::Encapsulate(vec![0; MAX_POLICY_OCTETS + 8])),
        ]);
        let writes = image.change(&too_much, &BTreeSet::new(), &[]);
        assert!(writes.iter().all(|write| matches!(write, Write::Route(_, value) if value[0] == KIND_ELEMENT)));
        assert_eq!(writes.len(), 3);
    }
}
