//! Frames that a node takes from its interfaces.

use crate::Configuration;
use srdma_dataplane::{EgressConfig, RouteAction, TableId};
use srdma_frame::PortId;
use srdma_io::{Interest, Match};
use srdma_node_spec::Entries;
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// Frames that a node takes at its ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// At all of them.
    everywhere: Interest,
    /// The ports of which a class honours pauses: there, and only there, they are the node's.
    paused: BTreeSet<PortId>,
    /// The ports whose frames are cross-connected: all of them are the node's.
    cross_connected: BTreeSet<PortId>,
}

impl Wanted {
    /// Frames that a node takes at a port.
    pub(super) fn at(&self, port: PortId) -> Interest {
        let (pfc, everything) = (self.paused.contains(&port), self.cross_connected.contains(&port));
        Interest { pfc, everything, ..self.everywhere.clone() }
    }

    /// Destinations of the packets that it takes at all ports.
    pub(super) fn prefixes(&self) -> &[(Prefix, Match)] {
        &self.everywhere.prefixes
    }
}

/// What a node of this configuration, with the entries of all layers above the kernel's, takes off its interfaces:
/// packets to its SIDs, to the prefixes of its policies and to the multicast groups that it has routes for; RoCEv2 to
/// the Proxy Addresses of its groups, of groups that it learns, and of those to which shared hosts respond; prefixes
/// that it forwards; all packets to hosts that it translates Fast CNPs for (D48); and pauses. At a port that is
/// cross-connected it takes all frames (D243).
///
/// Nothing comes to the node's own addresses but BFD (D109) and the ICMPv6 errors of hosts that do not know Fast CNP
/// (D47): responses go to the Proxy Address, or to a SID of the parent (D12).
pub(super) fn of(configuration: &Configuration, entries: &Entries) -> Wanted {
    let mut prefixes: BTreeMap<Prefix, Match> =
        configuration.forwards.iter().map(|prefix| (*prefix, Match::All)).collect();
    if let Some(fast_cnp) = &entries.fast_cnp {
        prefixes.extend(fast_cnp.translated.iter().map(|hosts| (*hosts, Match::All)));
        if !fast_cnp.senders.is_empty() {
            prefixes.insert(Prefix::host(configuration.spec.node.loopback), Match::UnknownOption);
        }
    }
    prefixes.extend(entries.bfd.values().map(|session| (Prefix::host(session.local), Match::Own)));
    prefixes.extend(entries.sids.keys().map(|prefix| (*prefix, Match::All)));
    // The kernel forwards what comes by plain routes, and sends it here if a policy or SID is to have it.
    let policies = entries.routes.iter().filter_map(|((table, prefix), action)| match action {
        RouteAction::Encaps { .. } | RouteAction::Policy { .. } | RouteAction::Placed(_) => {
            (*table == TableId(0)).then_some(*prefix)
        }
        RouteAction::Via(_) | RouteAction::Blackhole | RouteAction::ToPeer => None,
    });
    prefixes.extend(policies.map(|prefix| (prefix, Match::All)));
    prefixes.extend(entries.shared_hosts.values().map(|shared| (shared.proxies, Match::RoceV2)));
    prefixes.extend(entries.multicast_routes.values().map(|route| (Prefix::host(route.group), Match::All)));
    let probes = entries.steering.iter().filter(|config| config.probes.is_some());
    prefixes.extend(probes.filter_map(|config| Some((Prefix::host(config.probe_address?), Match::All))));
    prefixes.extend(entries.proxies().map(|proxy| (Prefix::host(proxy), Match::RoceV2)));
    let learnt = entries.learning.iter().flat_map(|learning| &learning.proxies);
    prefixes.extend(learnt.map(|proxies| (*proxies, Match::RoceV2)));
    let has_pfc = |egress: &EgressConfig| egress.classes.iter().any(|class| class.pfc.is_some());
    let paused = entries.egress.iter().filter(|(_, egress)| has_pfc(egress)).map(|(port, _)| *port).collect();
    for kept in kept_by_the_kernel(configuration) {
        let is_inside = |prefix: &Prefix| {
            let is_same_version = prefix.is_ipv4() == kept.is_ipv4();
            is_same_version && prefix.prefix_len() < kept.prefix_len() && prefix.contains(kept.address())
        };
        if prefixes.iter().any(|(prefix, wanted)| *wanted == Match::All && is_inside(prefix)) {
            prefixes.entry(kept).or_insert(Match::Kernel);
        }
    }
    let everywhere = Interest { prefixes: prefixes.into_iter().collect(), ..Interest::default() };
    let cross_connected = entries.cross_connects.keys().copied().collect();
    Wanted { everywhere, paused, cross_connected }
}

/// Unicast destinations that the kernel must leave to the node, whatever its routes.
pub(super) fn taken_from_the_kernel(wanted: &Wanted) -> impl Iterator<Item = Prefix> {
    let is_taken = |(prefix, wanted): &(Prefix, Match)| match wanted {
        Match::All | Match::RoceV2 => !prefix.address().is_multicast(),
        Match::UnknownOption | Match::Own | Match::Kernel => false,
    };
    wanted.everywhere.prefixes.iter().filter(move |entry| is_taken(entry)).map(|(prefix, _)| *prefix)
}

/// Packets that stay with the kernel even where a policy covers them: those for its own addresses, link-local ones, and
/// those to groups and to all of a link.
fn kept_by_the_kernel(configuration: &Configuration) -> impl Iterator<Item = Prefix> {
    let node = &configuration.spec.node;
    let own = node.ports.iter().flat_map(|port| port.addresses.iter().copied()).chain([node.loopback]);
    let link_local = Prefix::new(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 0), 10);
    let multicast = Prefix::new(Ipv6Addr::new(0xFF00, 0, 0, 0, 0, 0, 0, 0), 8);
    let ipv4 = [([169, 254, 0, 0], 16), ([224, 0, 0, 0], 4), ([255; 4], 32)];
    let ipv4 = ipv4.into_iter().filter_map(|(address, len)| Prefix::of_ipv4(address.into(), len));
    own.map(Prefix::host).chain(link_local).chain(multicast).chain(ipv4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn interest(more: &str) -> Vec<String> {
        let prefixes = wanted(more).at(PortId(0)).prefixes;
        prefixes.iter().map(|(prefix, wanted)| format!("{prefix} {wanted:?}")).collect()
    }

    fn of_file(configuration: &Configuration) -> Wanted {
        of(configuration, &configuration.spec.entries)
    }

    fn wanted(more: &str) -> Wanted {
        let text = format!(
            "[node]\nloopback = '2001:db8:ff:1::1'\n[[port]]\nname = 'p'\nmac = '02:00:00:00:00:01'\n\
             addresses = ['2001:db8:aa::6']\n[[neighbour]]\naddress = 'fe80::2%p'\nmac = '02:00:00:00:00:02'\n\
             [[route]]\nprefix = '2001:db8:bb::/64'\nvia = ['fe80::2%p']\n{more}"
        );
        of_file(&Configuration::parse(Path::new("node.toml"), &text).expect("right"))
    }

    #[test]
    fn plain_forwarding_is_the_kernels() {
        assert_eq!(interest(""), Vec::<String>::new());
    }

    #[test]
    fn sids_policies_groups_and_proxy_addresses_are_the_nodes() {
        let found = interest(
            "[[sid]]\nsid = '2001:db8:ff:1::e'\nbehavior = 'End.MT'\n\
             [[route]]\nprefix = '2001:db8:dd::/48'\nencaps = { segments = ['2001:db8:bb::1'] }\n\
             [[route]]\ntable = 1\nprefix = '2001:db8:de::/48'\nencaps = { segments = ['2001:db8:bb::1'] }\n\
             [[multicast_route]]\nsource = '2001:db8:ff:2::1'\ngroup = 'ff3e::6'\nend_mt = true\n\
             [[group]]\nid = 1\nproxy = '2001:db8:cc::1'\ndesignated_qpn = 9\ninitial_psn = 0\nrole = 'edge'\n\
             sid = '2001:db8:ff:1::e'\nparent = { loopback = '2001:db8:bb::1' }\n\
             receiver = [{ address = '2001:db8:bb::2', qpn = 7 }]\n\
             [learning]\nproxies = ['2001:db8:ce::/48']\nparent = { loopback = '2001:db8:bb::1' }\n",
        );
        let expected = [
            "2001:db8:cc::1/128 RoceV2",
            "2001:db8:ce::/48 RoceV2",
            "2001:db8:dd::/48 All",
            "2001:db8:ff:1::e/128 All",
            "ff3e::6/128 All",
        ];
        assert_eq!(found, expected);
    }

    /// D281: data and responses of hosts for groups that this node may not have.
    #[test]
    fn proxy_addresses_of_shared_hosts_are_the_nodes() {
        let found = interest(
            "[[shared_hosts]]\nhosts = '2001:db8:d0::/64'\nproxies = '2001:db8:cc::/48'\npeer = '2001:db8:bb::1'\n\
             sid = '2001:db8:bb::d6'\n",
        );
        assert_eq!(found, ["2001:db8:cc::/48 RoceV2"]);
    }

    /// D274: IPv4 packets to the Proxy Address, and responses between nodes, which are IPv6.
    #[test]
    fn a_proxy_address_of_ipv4_is_the_nodes() {
        let found = interest(
            "[[neighbour]]\naddress = '10.2.0.1%p'\nmac = '02:00:00:00:00:05'\n\
             [[sid]]\nsid = '2001:db8:ff:1::e'\nbehavior = 'End.MT'\n\
             [[group]]\nid = 1\nproxy = '10.255.0.1'\ndesignated_qpn = 9\ninitial_psn = 0\nrole = 'edge'\n\
             sid = '2001:db8:ff:1::e'\nparent = { loopback = '2001:db8:bb::1' }\n\
             receiver = [{ address = '10.2.0.1', qpn = 7 }]\n\
             [learning]\nproxies = ['10.254.0.0/24']\nparent = { loopback = '2001:db8:bb::1' }\n",
        );
        assert_eq!(found, ["10.254.0.0/24 RoceV2", "10.255.0.1/32 RoceV2", "2001:db8:ff:1::e/128 All"]);
    }

    #[test]
    fn a_policy_for_everything_leaves_the_kernel_its_own() {
        let found = interest("[[route]]\nprefix = '::/0'\nencaps = { segments = ['2001:db8:bb::1'] }\n");
        let expected = [
            "::/0 All",
            "2001:db8:aa::6/128 Kernel",
            "2001:db8:ff:1::1/128 Kernel",
            "fe80::/10 Kernel",
            "ff00::/8 Kernel",
        ];
        assert_eq!(found, expected);
    }

    /// D258: IPv4 packets to prefixes of policies; by plain routes the kernel forwards them too.
    #[test]
    fn ipv4_routes_with_segments_are_of_interest() {
        let encaps = "encaps = { segments = ['2001:db8:bb::1'] }";
        let some = format!("[[route]]\nprefix = '192.0.2.0/24'\n{encaps}\n");
        assert_eq!(interest(&some), ["192.0.2.0/24 All"]);
        let plain = "[[neighbour]]\naddress = '198.51.100.2%p'\nmac = '02:00:00:00:00:04'\n\
                     [[route]]\nprefix = '192.0.2.0/24'\nvia = ['198.51.100.2%p']\n";
        assert_eq!(interest(plain), Vec::<String>::new());
        let all = format!("[[route]]\nprefix = '0.0.0.0/0'\n{encaps}\n");
        let kept = ["0.0.0.0/0 All", "169.254.0.0/16 Kernel", "224.0.0.0/4 Kernel", "255.255.255.255/32 Kernel"];
        assert_eq!(interest(&all), kept);
    }

    /// D47: the hosts' refusals, and nothing else to the loopback; D48: all that goes to hosts behind a first hop.
    #[test]
    fn fast_cnp_adds_icmpv6_errors_and_translated_hosts_to_the_interest() {
        let egress = "[[egress]]\nport = 'p'\nrate_bits_per_s = 1000\nclass = [{ class = 0, notify_octets = 1 }]\n";
        let on = format!("{egress}[fast_cnp]\nsenders = ['2001:db8:a::/48']\ntranslated = ['2001:db8:b::/48']\n");
        assert_eq!(interest(&on), ["2001:db8:b::/48 All", "2001:db8:ff:1::1/128 UnknownOption"]);
        let first_hop = "[fast_cnp]\ntranslated = ['2001:db8:b::/48']\n";
        assert_eq!(interest(first_hop), ["2001:db8:b::/48 All"]);
        let policy = "[[route]]\nprefix = '::/0'\nencaps = { segments = ['2001:db8:bb::1'] }\n";
        assert!(interest(&format!("{policy}{on}")).contains(&"2001:db8:ff:1::1/128 UnknownOption".to_owned()));
        assert!(!wanted(&on).at(PortId(0)).pfc);
    }

    /// D109: BFD to the addresses of sessions, Fast CNP or not.
    #[test]
    fn bfd_adds_the_addresses_of_sessions_to_the_interest() {
        let bfd = "[[bfd]]\nneighbour = '2001:db8:aa::7%p'\n[[bfd]]\npeer = '2001:db8:ff:2::1'\n";
        assert_eq!(interest(bfd), ["2001:db8:aa::6/128 Own", "2001:db8:ff:1::1/128 Own"]);
        let egress = "[[egress]]\nport = 'p'\nrate_bits_per_s = 1000\nclass = [{ class = 0, notify_octets = 1 }]\n";
        let both = format!("{bfd}{egress}[fast_cnp]\nsenders = ['2001:db8:a::/48']\n");
        assert_eq!(interest(&both), interest(bfd));
        let policy = "[[route]]\nprefix = '::/0'\nencaps = { segments = ['2001:db8:bb::1'] }\n";
        assert!(interest(&format!("{policy}{bfd}")).contains(&"2001:db8:aa::6/128 Own".to_owned()));
        assert_eq!(taken_from_the_kernel(&wanted(bfd)).count(), 0);
    }

    #[test]
    fn pauses_are_of_interest_where_a_class_has_pfc() {
        let pfc = "{ class = 0, pfc = { xoff_octets = 9, xon_octets = 3, headroom_octets = 5 } }";
        let wanted = wanted(&format!(
            "[[port]]\nname = 'q'\nmac = '02:00:00:00:00:03'\n\
             [[egress]]\nport = 'q'\nrate_bits_per_s = 1000\nclass = [{pfc}]\n\
             [[egress]]\nport = 'p'\nrate_bits_per_s = 1000\n"
        ));
        assert_eq!([0, 1].map(|port| wanted.at(PortId(port)).pfc), [false, true]);
    }

    /// D243: all frames of a port that is cross-connected, and of no other one.
    #[test]
    fn a_cross_connect_takes_all_frames_of_its_port() {
        let wanted = wanted(
            "[[port]]\nname = 'q'\nmac = '02:00:00:00:00:03'\n\
             [[sr_policy]]\nid = 1\nsegment_list = [{ segments = ['2001:db8:bb::1'] }]\n\
             [[cross_connect]]\nport = 'q'\npolicy = 1\n",
        );
        assert_eq!([0, 1].map(|port| wanted.at(PortId(port)).everything), [false, true]);
        assert_eq!(taken_from_the_kernel(&wanted).count(), 0);
    }

    #[test]
    fn configured_prefixes_to_forward_are_of_interest() {
        let text = "[node]\nloopback = '2001:db8:ff:1::1'\nforwards = ['2001:db8:bb::/64', '::/0']\n";
        let wanted = of_file(&Configuration::parse(Path::new("node.toml"), text).expect("right"));
        let all = wanted.at(PortId(0)).prefixes.into_iter().filter(|(_, wanted)| *wanted == Match::All);
        assert_eq!(all.map(|(prefix, _)| prefix.to_string()).collect::<Vec<_>>(), ["::/0", "2001:db8:bb::/64"]);
    }
}
