//! The entries that packets meet where they come in: those of table 0, as far as the interest leaves packets to the
//! node. One look-up finds both, and what it does not find takes the way of all frames (D221).

use super::image::{KIND_ELEMENT, RouteValue, route_value};
use crate::interest::Match;
use srdma_wire::Prefix;
use std::collections::BTreeMap;

/// A prefix, and what holds for addresses in it that no longer prefix covers.
#[derive(Clone, Copy)]
struct Covering {
    prefix: Prefix,
    route: Option<RouteValue>,
    is_wanted: bool,
    value: RouteValue,
}

/// Entries of the arrival table. A prefix whose value is that of the shorter one around it has none.
pub(super) fn arrivals(
    routes: &BTreeMap<Prefix, RouteValue>,
    interest: &[(Prefix, Match)],
) -> BTreeMap<Prefix, RouteValue> {
    let element = route_value(KIND_ELEMENT, 0, (0, 0), 0, 0);
    let mut all: BTreeMap<Prefix, (Option<RouteValue>, Option<bool>)> = BTreeMap::new();
    for (prefix, value) in routes {
        all.entry(*prefix).or_default().0 = Some(*value);
    }
    // As [`Interest::ipv6`](crate::Interest).
    let is_in_ipv6 = |(prefix, how): &&(Prefix, Match)| !prefix.is_ipv4() || *how == Match::RoceV2;
    for (prefix, how) in interest.iter().filter(is_in_ipv6) {
        all.entry(*prefix).or_default().1 = Some(*how == Match::All);
    }
    let mut arrivals = BTreeMap::new();
    // Prefixes around the one at hand, the longest last: they come before it in this order.
    let mut around: Vec<Covering> = Vec::new();
    for (prefix, (own_route, own_wanted)) in all {
        while around.last().is_some_and(|covering| !covering.prefix.contains(prefix.address())) {
            around.pop();
        }
        let covering = around.last();
        let route = own_route.or(covering.and_then(|covering| covering.route));
        let is_wanted = own_wanted.unwrap_or(covering.is_some_and(|covering| covering.is_wanted));
        let value = route.filter(|_| is_wanted).unwrap_or(element);
        if value != covering.map_or(element, |covering| covering.value) {
            arrivals.insert(prefix, value);
        }
        around.push(Covering { prefix, route, is_wanted, value });
    }
    arrivals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a prefix")
    }

    fn value(number: u32) -> RouteValue {
        route_value(1, 0, (0, 0), number, 0)
    }

    /// The value that a look-up finds; 0: the element's.
    fn found(arrivals: &BTreeMap<Prefix, RouteValue>, address: &str) -> u8 {
        let address = prefix(&format!("{address}/128")).address();
        let covering = arrivals.iter().filter(|(prefix, _)| prefix.contains(address));
        covering.max_by_key(|(prefix, _)| prefix.prefix_len()).map_or(0, |(_, value)| value[4])
    }

    #[test]
    fn an_entry_holds_where_the_interest_leaves_packets_to_the_node() {
        let routes = BTreeMap::from([
            (prefix("2001:db8::/32"), value(1)),
            (prefix("2001:db8:1::/48"), value(2)),
            (prefix("2001:db8:2::/48"), value(3)),
        ]);
        let interest = [
            (prefix("2001:db8:1::/48"), Match::All),
            (prefix("2001:db8:1:1::/64"), Match::Kernel),
            (prefix("2001:db8:1:1::9/128"), Match::All),
            (prefix("2001:db8:3::/48"), Match::All),
            (prefix("2001:db8:4::/48"), Match::RoceV2),
            (prefix("2001:dead::/32"), Match::All),
        ];
        let arrivals = arrivals(&routes, &interest);
        for (address, expected) in [
            ("2001:db8:1::1", 2),
            ("2001:db8:1:1::1", 0),
            ("2001:db8:1:1::9", 2),
            ("2001:db8:2::1", 0),
            ("2001:db8:3::1", 1),
            ("2001:db8:4::1", 0),
            ("2001:db8:5::1", 0),
            ("2001:dead::1", 0),
        ] {
            assert_eq!(found(&arrivals, address), expected, "{address}");
        }
        assert_eq!(arrivals.len(), 4, "no entry repeats the one around it: {arrivals:?}");
    }

    #[test]
    fn with_an_interest_in_everything_the_entries_are_those_of_the_table() {
        let routes = BTreeMap::from([(prefix("::/0"), value(1)), (prefix("2001:db8::/32"), value(2))]);
        assert_eq!(arrivals(&routes, &[(prefix("::/0"), Match::All)]), routes);
        assert_eq!(arrivals(&routes, &[]), BTreeMap::new());
    }
}
