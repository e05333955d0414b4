//! What other nodes announce for congestion notification: END.C and END.E, and the C-flag (CN-5.1-1, CN-5.1-2, D63,
//! D65).

use crate::database::Database;
use crate::id::{LspId, SystemId};
use crate::tlv::{CapabilityFlags, EndSid, Locator, RouterCapability, kind};
use srdma_wire::{Instant, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// What the announced behaviours mean; code points are not assigned (CN-7-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviors {
    /// END.C.
    pub end_c: u16,
    /// END.E.
    pub end_e: u16,
}

/// A node, as the others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnedNode {
    /// Its name (RFC 5301).
    pub hostname: Option<String>,
    /// Its SRv6 capabilities; `None` if it announces none.
    pub srv6: Option<CapabilityFlags>,
    /// Its locators.
    pub locators: Vec<Prefix>,
    /// All its SIDs.
    pub sids: Vec<EndSid>,
}

impl LearnedNode {
    /// Whether it says that it handles congestion notifications.
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

/// All nodes whose first fragment is there and valid.
pub fn learn(database: &Database, now: Instant) -> BTreeMap<SystemId, LearnedNode> {
    let mut nodes: BTreeMap<SystemId, LearnedNode> = BTreeMap::new();
    for (id, stored) in database.iter() {
        let first = database.get(LspId { fragment: 0, ..*id });
        let is_valid = stored.lifetime_s(now) > 0 && first.is_some_and(|first| first.lifetime_s(now) > 0);
        if id.node.pseudonode != 0 || !is_valid {
            continue;
        }
        let node = nodes.entry(id.node.system).or_default();
        for tlv in stored.lsp().tlvs().map_while(Result::ok) {
            match tlv.kind {
                kind::HOSTNAME => node.hostname = Some(String::from_utf8_lossy(tlv.value).into_owned()),
                kind::ROUTER_CAPABILITY => {
                    let found = RouterCapability::parse(tlv.value).ok().and_then(|capability| capability.srv6);
                    node.srv6 = node.srv6.or(found);
                }
                kind::SRV6_LOCATOR => {
                    for locator in Locator::parse_all(tlv.value).unwrap_or_default() {
                        if !node.locators.contains(&locator.prefix) {
                            node.locators.push(locator.prefix);
                        }
                        node.sids.extend(locator.sids);
                    }
                }
                _ => {}
            }
        }
    }
    nodes
}

/// Where notifications for a tunnel go: its outer source address names the ingress node by its locator (D63).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotificationSids {
    by_locator: Vec<(Prefix, Option<Ipv6Addr>, Option<Ipv6Addr>)>,
}

impl NotificationSids {
    /// The table of what has been learned.
    pub fn new(nodes: &BTreeMap<SystemId, LearnedNode>, behaviors: Behaviors) -> Self {
        let mut by_locator = Vec::new();
        for node in nodes.values().filter(|node| node.handles_notifications()) {
            let sids = (node.notification_sid(behaviors.end_c), node.notification_sid(behaviors.end_e));
            by_locator.extend(node.locators.iter().map(|locator| (*locator, sids.0, sids.1)));
        }
        // The longest prefix is found first.
        by_locator.sort_by_key(|(locator, ..)| (std::cmp::Reverse(locator.prefix_len()), *locator));
        NotificationSids { by_locator }
    }

    /// END.C of the node that an outer source address names.
    pub fn end_c(&self, outer_source: Ipv6Addr) -> Option<Ipv6Addr> {
        self.of(outer_source)?.1
    }

    /// END.E of the node that an outer source address names.
    pub fn end_e(&self, outer_source: Ipv6Addr) -> Option<Ipv6Addr> {
        self.of(outer_source)?.2
    }

    fn of(&self, outer_source: Ipv6Addr) -> Option<&(Prefix, Option<Ipv6Addr>, Option<Ipv6Addr>)> {
        self.by_locator.iter().find(|(locator, ..)| locator.contains(outer_source))
    }
}
