//! `[learning]`: the resulting configuration, and contradictions.

use super::errors::{EDGE, TRANSIT, refused_with};
use super::parse;
use srdma_dataplane::{Command, Learning};
use srdma_group::{ListMode, Policy};
use srdma_wire::Prefix;
use std::net::Ipv4Addr;

/// From line 27 of the edge on.
const LEARNING: &str = "[learning]\nproxies = ['2001:db8:cc::/64']\nparent = { loopback = '2001:db8:4::1' }\n";

fn learnt(more: &str) -> Learning {
    learnt_by(&format!("{LEARNING}{more}"))
}

fn learnt_by(section: &str) -> Learning {
    let configuration = parse(&format!("{EDGE}{section}")).expect("right");
    configuration.node().expect("a node takes it");
    match configuration.spec.commands().last() {
        Some(Command::SetLearning(learning)) => learning.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(more: &str, message: &str) {
    refused_with(EDGE, more, message);
}

/// D17: the command comes last, behind the records.
#[test]
fn an_edge_learns_by_configuration() {
    let learning = learnt("");
    assert_eq!(learning.proxies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2001:db8:cc::/64"]);
    assert_eq!((learning.parent.to_string(), learning.parent_sid), ("2001:db8:4::1".to_owned(), None));
    assert_eq!((learning.max_groups, learning.max_receivers, learning.idle_ns), (64, 256, 60_000_000_000));
    assert_eq!(learning.policy, Policy { lists: ListMode::Tlv, ..Policy::default() });

    let learning =
        learnt("max_groups = 3\nmax_receivers = 65535\nidle = '5ms'\npolicy = { prune_retransmit = true }\n");
    assert_eq!((learning.max_groups, learning.max_receivers, learning.idle_ns), (3, 65_535, 5_000_000));
    assert!(learning.policy.prune_retransmit);

    let learning = learnt_by(&LEARNING.replace("2001:db8:cc::/64", "10.255.0.0/24"));
    assert_eq!(learning.proxies, [Prefix::of_ipv4(Ipv4Addr::new(10, 255, 0, 0), 24).expect("a prefix")]);
}

#[test]
fn learning_that_contradicts_itself_is_refused() {
    let with = |from: &str, to: &str| {
        assert_eq!(LEARNING.matches(from).count(), 1, "{from} occurs once");
        LEARNING.replace(from, to)
    };
    refused(&with("['2001:db8:cc::/64']", "[]"), NO_PROXIES);
    refused(&with("2001:db8:cc::/64", "::/0"), "28: ::/0 are no Proxy Addresses: every address would be one");
    refused(&with("2001:db8:cc::/64", "0.0.0.0/0"), "28: 0.0.0.0/0 are no Proxy Addresses: every address would be one");
    refused(&with("2001:db8:cc::/64", "2001:db8:1::/64"), OWN_ADDRESS);
    refused(
        &with("loopback = '2001:db8:4::1'", "loopback = '2001:db8:1::1'"),
        "29: parent 2001:db8:1::1: no neighbour and no route \"via\" leads there",
    );
    refused(
        &with("2001:db8:4::1", "2001:db8:5::1"),
        "29: parent 2001:db8:5::1: no neighbour and no route \"via\" leads there",
    );
    refused(&format!("{LEARNING}policy = {{ on_failure = 'evict' }}\n"), EVICTS);
    refused(
        &format!("{LEARNING}policy = {{ hmac_key_id = 1 }}\n"),
        "30: hmac_key_id is a key of the headend, which signs",
    );
    refused(
        &format!("{LEARNING}max_groups = 0\n"),
        "30: invalid value: integer `0`, expected an integer from 1 to 65535",
    );
    refused(&format!("{LEARNING}idle = '0s'\n"), "27: learning groups: idle is zero: no group could be learnt");
    refused_with(TRANSIT, LEARNING, NOTHING_TO_LEARN);
}

const NO_PROXIES: &str = "27: learning groups: there is no prefix of Proxy Addresses to learn groups of";
const OWN_ADDRESS: &str = "27: learning groups: 2001:db8:1::1 is an address of this node, but in 2001:db8:1::/64, the Proxy \
                           Addresses of groups that it learns";
const EVICTS: &str = "27: learning groups: on_failure cannot be evict: no controller or operator could evict a \
                      learnt receiver (D25)";
const NOTHING_TO_LEARN: &str = "32: nothing can be learnt: there is neither a [[sid]] of behavior End.MT nor a \
                                [[multicast_route]] with end_mt = true";

/// Groups that a node learns have numbers of their own.
#[test]
fn numbers_of_learnt_groups_are_not_for_records() {
    let (from, to) = ("id = 7", "id = 0xffff_0000");
    super::errors::refused(
        EDGE,
        from,
        to,
        "19: group 4294901760: numbers from 4294901760 on are those of groups that a node learns",
    );
}
