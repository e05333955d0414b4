//! The identity of a node: what its registration may have, and whether its prefixes overlap those of others (D125,
//! D126).

use crate::prefix_set::PrefixSet;
use crate::settings::Tenant;
use srdma_api::{NodeIdentity, Registration};
use srdma_wire::Prefix;
use std::fmt;

/// A registration without what the node's identity does not have.
pub(crate) fn restricted(registration: &Registration, identity: &NodeIdentity) -> Registration {
    let hosts: PrefixSet = identity.hosts.iter().copied().collect();
    let permitted = registration.hosts.iter().filter(|prefix| hosts.containing(**prefix).is_some());
    Registration {
        end_mt: registration.end_mt.filter(|sid| identity.end_mt == Some(*sid)),
        replication: registration.replication.filter(|prefix| identity.replication == Some(*prefix)),
        hosts: permitted.copied().collect(),
        ..registration.clone()
    }
}

/// What a prefix of a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Loopback,
    EndMt,
    Replication,
    Hosts,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Use::Loopback => "loopback",
            Use::EndMt => "end_mt",
            Use::Replication => "replication",
            Use::Hosts => "hosts",
        })
    }
}

/// The prefixes of a node.
fn prefixes(identity: &NodeIdentity) -> impl Iterator<Item = (Use, Prefix)> {
    let own = infrastructure(identity);
    own.chain(identity.hosts.iter().map(|prefix| (Use::Hosts, *prefix)))
}

/// The addresses and SIDs of the node itself.
fn infrastructure(identity: &NodeIdentity) -> impl Iterator<Item = (Use, Prefix)> {
    let loopback = (Use::Loopback, Prefix::host(identity.loopback));
    let end_mt = identity.end_mt.map(|sid| (Use::EndMt, Prefix::host(sid)));
    let replication = identity.replication.map(|prefix| (Use::Replication, prefix));
    [Some(loopback), end_mt, replication].into_iter().flatten()
}

/// The prefixes of the node itself, without those of its hosts.
pub(crate) fn own_prefixes(identity: &NodeIdentity) -> impl Iterator<Item = Prefix> {
    infrastructure(identity).map(|(_, prefix)| prefix)
}

/// The first overlap of a node's prefixes with each other, with those of other nodes, or with those of tenants; as
/// text. Prefixes of hosts are in those of their tenants, but not in pools of Proxy Addresses. A tenant's prefix `::/0`
/// reserves nothing. `shared`: hosts that may be attached to several nodes, by the same prefix (D280).
pub(crate) fn overlap<'n>(
    name: &str,
    identity: &NodeIdentity,
    shared: &[Prefix],
    others: impl Iterator<Item = (&'n str, &'n NodeIdentity)>,
    tenants: impl Iterator<Item = &'n Tenant>,
) -> Option<String> {
    let text =
        |(of, prefix): (Use, Prefix), other: String| Some(format!("node {name}: {of} {prefix} overlaps {other}"));
    let own = |prefix: Prefix| prefixes(identity).find(|(_, own)| *own == prefix);
    if let Some(replication) = identity.replication {
        let mut others = prefixes(identity).filter(|(of, _)| *of != Use::Replication);
        if let Some((of, prefix)) = others.find(|(_, prefix)| prefix.overlaps(replication)) {
            return text((Use::Replication, replication), format!("its own {of} {prefix}"));
        }
    }
    let set: PrefixSet = prefixes(identity).map(|(_, prefix)| prefix).collect();
    for (other, of_other) in others {
        for (of, prefix) in prefixes(of_other) {
            let is_shared = of == Use::Hosts && shared.iter().any(|shared| contains(*shared, prefix));
            let found = if is_shared {
                let is_same = |own: &(Use, Prefix)| *own == (of, prefix);
                prefixes(identity).find(|own| own.1.overlaps(prefix) && !is_same(own))
            } else {
                set.overlapping(prefix).and_then(own)
            };
            if let Some(own) = found {
                return text(own, format!("{of} {prefix} of node {other}"));
            }
        }
    }
    let set_of_own: PrefixSet = own_prefixes(identity).collect();
    for tenant in tenants {
        let owner = &tenant.name;
        for prefix in tenant.prefixes.iter().filter(|prefix| prefix.prefix_len() > 0) {
            if let Some(own) = set_of_own.overlapping(*prefix).and_then(own) {
                return text(own, format!("prefix {prefix} of tenant {owner}"));
            }
        }
        if let Some((pool, own)) = tenant.proxies.and_then(|pool| Some((pool, set.overlapping(pool).and_then(own)?))) {
            return text(own, format!("the pool {pool} of Proxy Addresses of tenant {owner}"));
        }
    }
    None
}

/// Whether a prefix has all addresses of another.
fn contains(prefix: Prefix, other: Prefix) -> bool {
    prefix.prefix_len() <= other.prefix_len() && prefix.contains(other.address())
}

/// An identity as text, for the audit log: of many prefixes of hosts the first ones.
pub(crate) fn describe(name: &str, identity: &NodeIdentity) -> String {
    const MAX_HOSTS: usize = 8;
    let NodeIdentity { loopback, end_mt, replication, hosts } = identity;
    let mut text = format!("node {name} loopback {loopback}");
    text.extend(end_mt.map(|sid| format!(" end_mt {sid}")));
    text.extend(replication.map(|prefix| format!(" replication {prefix}")));
    text.extend(hosts.iter().take(MAX_HOSTS).map(|prefix| format!(" hosts {prefix}")));
    text.extend(hosts.len().checked_sub(MAX_HOSTS + 1).map(|more| format!(" and {} more", more + 1)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(number: u16) -> NodeIdentity {
        NodeIdentity {
            loopback: format!("2001:db8:ff:{number}::1").parse().unwrap(),
            end_mt: format!("2001:db8:ff:{number}::e").parse().ok(),
            replication: format!("2001:db8:ff:{number}:a::/96").parse().ok(),
            hosts: vec![format!("2001:db8:b{number}::/64").parse().unwrap()],
        }
    }

    fn overlap_of(change: impl Fn(&mut NodeIdentity)) -> Option<String> {
        let mut changed = identity(1);
        change(&mut changed);
        let tenant = Tenant {
            name: "a".to_owned(),
            prefixes: vec!["2001:db8:b1::/48".parse().unwrap(), "2001:db8:cc::/48".parse().unwrap()],
            proxies: "2001:db8:cc::/112".parse().ok(),
            ..Tenant::default()
        };
        let other = identity(2);
        let shared: Prefix = "2001:db8:d0::/48".parse().unwrap();
        let others = [("N2", &other)].into_iter();
        overlap("N1", &changed, &[shared], others, [&tenant, &Tenant::default()].into_iter())
    }

    /// D280
    #[test]
    fn shared_hosts_have_the_same_prefix_at_each_node() {
        let overlap_of = |of_first: &[&str], of_second: &[&str], shared: &[&str]| {
            let hosts = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<Prefix>>();
            let first = NodeIdentity { hosts: hosts(of_first), ..identity(1) };
            let second = NodeIdentity { hosts: hosts(of_second), ..identity(2) };
            overlap("N1", &first, &hosts(shared), [("N2", &second)].into_iter(), std::iter::empty())
        };
        let (both, other) = ("2001:db8:d0:7::/64", "2001:db8:b1::/64");
        assert_eq!(overlap_of(&[other, both], &[both], &["2001:db8:d0::/48"]), None);
        assert_eq!(overlap_of(&[both], &[both], &[both]), None);
        let refused = |of_first: &[&str], of_second: &[&str], shared: &[&str]| {
            assert!(overlap_of(of_first, of_second, shared).is_some(), "{of_first:?} {of_second:?} {shared:?}");
        };
        refused(&[both], &[both], &[]);
        refused(&[both], &[both], &["2001:db8:d0:7::/65"]);
        // A longer prefix would take hosts from the other node.
        refused(&["2001:db8:d0:7::1/128"], &[both], &["2001:db8:d0::/48"]);
        refused(&[both], &["2001:db8:d0:7::1/128"], &["2001:db8:d0::/48"]);
        refused(&[both, "2001:db8:d0:7::1/128"], &[both], &["2001:db8:d0::/48"]);
        // What is not for hosts is never shared.
        refused(&["2001:db8:ff:2::1/128"], &[], &["::/0"]);
    }

    /// D126
    #[test]
    fn prefixes_of_others_are_refused_by_name() {
        assert_eq!(overlap_of(|_| ()), None);
        let replication = overlap_of(|node| node.replication = "::/0".parse().ok());
        assert_eq!(replication.unwrap(), "node N1: replication ::/0 overlaps its own loopback 2001:db8:ff:1::1/128");
        let replication = overlap_of(|node| node.replication = "2001:db8:b2::/96".parse().ok());
        assert_eq!(
            replication.unwrap(),
            "node N1: replication 2001:db8:b2::/96 overlaps hosts 2001:db8:b2::/64 of node N2"
        );
        let end_mt = overlap_of(|node| node.end_mt = "2001:db8:ff:2::e".parse().ok());
        assert_eq!(
            end_mt.unwrap(),
            "node N1: end_mt 2001:db8:ff:2::e/128 overlaps end_mt 2001:db8:ff:2::e/128 of node N2"
        );
        let hosts = overlap_of(|node| node.hosts.push("2001:db8:b2::7/128".parse().unwrap()));
        assert_eq!(hosts.unwrap(), "node N1: hosts 2001:db8:b2::7/128 overlaps hosts 2001:db8:b2::/64 of node N2");
        let loopback = overlap_of(|node| node.loopback = "2001:db8:b1:9::1".parse().unwrap());
        assert_eq!(
            loopback.unwrap(),
            "node N1: loopback 2001:db8:b1:9::1/128 overlaps prefix 2001:db8:b1::/48 of tenant a"
        );
        let hosts = overlap_of(|node| node.hosts.push("2001:db8:cc::/48".parse().unwrap()));
        let pool = "the pool 2001:db8:cc::/112 of Proxy Addresses of tenant a";
        assert_eq!(hosts.unwrap(), format!("node N1: hosts 2001:db8:cc::/48 overlaps {pool}"));
    }

    /// D125
    #[test]
    fn a_registration_is_restricted_to_the_identity() {
        let said = Registration {
            protocol: srdma_api::PROTOCOL,
            name: "N1".to_owned(),
            loopback: identity(1).loopback,
            end_mt: identity(2).end_mt,
            replication: identity(1).replication,
            links: Vec::new(),
            hosts: ["2001:db8:b1::7/128", "2001:db8:b2::7/128", "::/0"].map(|text| text.parse().unwrap()).into(),
            groups: Vec::new(),
            repairs: true,
        };
        let used = restricted(&said, &identity(1));
        assert_eq!((used.end_mt, used.replication), (None, identity(1).replication));
        assert_eq!(used.hosts, ["2001:db8:b1::7/128".parse().unwrap()]);
        assert_eq!(restricted(&said, &said.identity()), said);
    }

    #[test]
    fn the_text_of_an_identity_is_bounded() {
        let mut many = identity(1);
        many.hosts = (0..4096).map(|number| format!("2001:db8:{number:x}::/64").parse().unwrap()).collect();
        let text = describe("N1", &many);
        assert!(text.ends_with(" and 4088 more") && text.len() < 512, "{text}");
        assert!(describe("N1", &identity(1)).ends_with(" hosts 2001:db8:b1::/64"));
    }
}
