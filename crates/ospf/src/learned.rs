//! Announcements of other routers for congestion notification: END.C and END.E, and the C-flag (CN-5.2-1, D63, D65).

use crate::database::Database;
use crate::id::RouterId;
use crate::lsa::{Information, IntraAreaPrefix, LsType};
use crate::srv6::{Locator, RouteType};
use srdma_isis::LearnedNode;
use std::collections::BTreeMap;

/// All routers with an LSA whose time is not over.
pub(crate) fn learn(database: &Database) -> BTreeMap<RouterId, LearnedNode> {
    let mut nodes: BTreeMap<RouterId, LearnedNode> = BTreeMap::new();
    for (place, lsa) in database.valid().filter(|(place, _)| place.circuit.is_none()) {
        let node = nodes.entry(place.key.router).or_default();
        match place.key.kind {
            LsType::INFORMATION => {
                let Ok(information) = Information::parse(lsa.body()) else { continue };
                node.hostname = node.hostname.take().or(information.hostname);
                node.srv6 = node.srv6.or(information.srv6);
            }
            LsType::LOCATOR => {
                let found = Locator::parse_all(lsa.body()).unwrap_or_default();
                for locator in found.into_iter().filter(|locator| locator.route_type == RouteType::IntraArea) {
                    // Of several locators with one prefix, that of the first LSA counts (RFC 9513 section 7.1).
                    if !node.locators.contains(&locator.prefix) {
                        node.locators.push(locator.prefix);
                        node.sids.extend(locator.sids);
                    }
                }
            }
            LsType::INTRA_AREA_PREFIX => {
                let Ok(body) = IntraAreaPrefix::parse(lsa.body()) else { continue };
                if body.referenced.kind == LsType::ROUTER && body.referenced.router == place.key.router {
                    let hosts = body.prefixes.iter().map(|entry| entry.prefix);
                    node.addresses.extend(hosts.filter(|prefix| prefix.prefix_len() == 128));
                }
            }
            _ => {}
        }
    }
    nodes
}
