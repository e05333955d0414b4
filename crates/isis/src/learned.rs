//! Advertisements of other nodes for congestion notification: END.C and END.E, and the C-flag (CN-5.1-1, CN-5.1-2, D63,
//! D65).

use crate::database::Database;
use crate::id::SystemId;
use crate::tlv::{CapabilityFlags, EndSid, Leak, Locator, Reachability, RouterCapability, TopologyId, kind};
use srdma_wire::{Instant, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Code points of the announced behaviours, which are not assigned (CN-7-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Behaviors {
    pub end_c: u16,
    pub end_e: u16,
}

/// A node, as the others see it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnedNode {
    /// Its name (RFC 5301).
    pub hostname: Option<String>,
    /// Its SRv6 capabilities; `None` if it announces none.
    pub srv6: Option<CapabilityFlags>,
    pub locators: Vec<Prefix>,
    /// Its own addresses: the prefixes of full length that it announces and has not from elsewhere. Tunnels that begin
    /// there have one of these, or an address of a locator, as their source.
    pub addresses: Vec<Prefix>,
    pub sids: Vec<EndSid>,
}

impl LearnedNode {
    /// C-flag: it supports congestion notifications.
    pub fn handles_notifications(&self) -> bool {
        self.srv6.is_some_and(|flags| flags.contains(CapabilityFlags::CONGESTION_NOTIFICATION))
    }

    /// Its first SID of a behaviour, if it handles notifications: the SIDs of a node whose C-flag is clear do not count
    /// (D65).
    pub fn notification_sid(&self, behavior: u16) -> Option<Ipv6Addr> {
        let of_behavior = |sid: &&EndSid| sid.behavior == behavior;
        self.sids.iter().find(of_behavior).filter(|_| self.handles_notifications()).map(|sid| sid.sid)
    }
}

impl LearnedNode {
    /// Adds the announcements of the same node at another level.
    pub(crate) fn extend(&mut self, other: LearnedNode) {
        self.hostname = self.hostname.take().or(other.hostname);
        self.srv6 = self.srv6.or(other.srv6);
        add(&mut self.locators, other.locators);
        add(&mut self.addresses, other.addresses);
        add(&mut self.sids, other.sids);
    }
}

/// Appends what is not there yet.
fn add<T: PartialEq>(all: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
}

/// All nodes whose first fragment is there and valid. What a node announces of another level is not its own (D264).
/// Locators are learnt from any topology: which one they are in says where paths to them are, and FRR 10.3 announces
/// those of the IPv6 topology in the standard one (D247).
pub fn learn(database: &Database, topology: TopologyId, now: Instant) -> BTreeMap<SystemId, LearnedNode> {
    let mut nodes: BTreeMap<SystemId, LearnedNode> = BTreeMap::new();
    for (id, lsp) in database.valid(now).filter(|(id, _)| id.node.pseudonode == 0) {
        let node = nodes.entry(id.node.system).or_default();
        for tlv in lsp.tlvs().map_while(Result::ok) {
            match tlv.kind {
                kind::HOSTNAME => node.hostname = Some(String::from_utf8_lossy(tlv.value).into_owned()),
                kind::ROUTER_CAPABILITY => {
                    let found = RouterCapability::parse(tlv.value).ok().and_then(|capability| capability.srv6);
                    node.srv6 = node.srv6.or(found);
                }
                kind::SRV6_LOCATOR => {
                    let all = Locator::parse_all(tlv.value).unwrap_or_default();
                    for locator in all.into_iter().filter(|locator| locator.leak == Leak::None) {
                        add(&mut node.locators, [locator.prefix]);
                        node.sids.extend(locator.sids);
                    }
                }
                _ => {}
            }
        }
        let announced = Reachability::of_topology(lsp.tlvs(), topology);
        let own = announced.filter(|reachable| !reachable.is_external && reachable.leak == Leak::None);
        node.addresses.extend(own.map(|own| own.prefix).filter(|prefix| prefix.prefix_len() == 128));
    }
    nodes
}

/// Destination of notifications for a tunnel: its outer source address identifies the ingress node, by one of its
/// addresses or by a locator (D63).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotificationSids {
    by_source: Vec<(Prefix, Sids)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sids {
    end_c: Option<Ipv6Addr>,
    end_e: Option<Ipv6Addr>,
}

impl NotificationSids {
    /// The table of what has been learned.
    pub fn new<'n>(nodes: impl IntoIterator<Item = &'n LearnedNode>, behaviors: Behaviors) -> Self {
        let mut by_source = Vec::new();
        for node in nodes.into_iter().filter(|node| node.handles_notifications()) {
            let sid = |behavior| node.notification_sid(behavior);
            let sids = Sids { end_c: sid(behaviors.end_c), end_e: sid(behaviors.end_e) };
            by_source.extend(node.locators.iter().chain(&node.addresses).map(|source| (*source, sids)));
        }
        // The longest prefix is found first.
        by_source.sort_by_key(|(source, _)| (std::cmp::Reverse(source.prefix_len()), *source));
        NotificationSids { by_source }
    }

    /// The table: prefixes of outer source addresses, with END.C and END.E of their nodes, the longest first.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Option<Ipv6Addr>, Option<Ipv6Addr>)> {
        self.by_source.iter().map(|(source, sids)| (*source, sids.end_c, sids.end_e))
    }

    /// END.C of the node that an outer source address names.
    pub fn end_c(&self, outer_source: Ipv6Addr) -> Option<Ipv6Addr> {
        self.of(outer_source)?.end_c
    }

    /// END.E of the node that an outer source address names.
    pub fn end_e(&self, outer_source: Ipv6Addr) -> Option<Ipv6Addr> {
        self.of(outer_source)?.end_e
    }

    fn of(&self, outer_source: Ipv6Addr) -> Option<Sids> {
        self.by_source.iter().find(|(source, _)| source.contains(outer_source)).map(|(_, sids)| *sids)
    }
}
