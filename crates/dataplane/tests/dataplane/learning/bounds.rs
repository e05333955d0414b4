//! Lists that are not learnt: those that fail a check, and those beyond the bounds.

use crate::common::group::*;
use crate::common::next_hop;
use crate::learning::bench::*;
use srdma_dataplane::{
    Command, ConfigError, Domain, FIRST_LEARNT_GROUP, Flavors, Learning, LearningError, RouteAction, SidBehavior,
    TableId,
};
use srdma_group::{OnFailure, Policy};
use srdma_testkit::multicast::Receiver;
use srdma_wire::Prefix;

/// D4, D8, D9, D10, D26: a packet that is not carried teaches nothing.
#[test]
fn nothing_is_learnt_from_a_packet_that_fails_a_check() {
    let list = end_mt_tlv(EDGE, &members(&[1, 2]));
    let bad_receiver = end_mt_tlv(EDGE, &[receiver(1, 0x101, None), receiver(1, 0x102, None)]);
    let mut other_proxy = with_tlvs(&send(100), &[&list]);
    other_proxy[63] ^= 1;
    let mut last_hop = send(100);
    last_hop[7] = 1;
    let mut damaged = send(100);
    *damaged.last_mut().unwrap() ^= 1;
    let cases = [
        (false, with_tlvs(&send(100), &[&bad_receiver]), "bad_receiver"),
        (false, other_proxy, "wrong_proxy"),
        (false, with_tlvs(&request(0x0C, 0, &[0; 16], false), &[&list]), "not_multicastable"),
        (false, with_tlvs(&last_hop, &[&list]), "hop_limit_exceeded"),
        (false, with_tlvs(&damaged, &[&list]), "bad_icrc"),
        (false, with_tlvs(&send(100), &[&end_mt_tlv(EDGE, &[])]), "no_receiver_list"),
        (false, encapsulated(&send(100)), "no_receiver_list"),
        (true, with_tlvs(&send(100), &[&list]), "hmac_missing"),
    ];
    for (require_hmac, packet, reason) in cases {
        let mut bench = edge_that_learns_with(require_hmac, learning(), |config| config.verify_icrc = true);
        assert_eq!(bench.send(0, &packet).iter().filter(|(port, _)| *port == 1).count(), 0, "{reason}");
        assert_eq!((bench.node.groups().count(), bench.drops(0)), (0, vec![(reason, 1)]));
    }
    // D27: a WRITE to regions of which the edge has only the receivers'.
    let with_regions = [&list[..], &mr_tlv(EDGE, &[(BASE, 1), (BASE, 2)])].concat();
    let mut bench = edge_that_learns(false, learning());
    assert_eq!(bench.send(0, &with_tlvs(&inner(0x0A, 0, &[7; 64], false), &[&with_regions])), []);
    assert_eq!((bench.node.groups().count(), bench.drops(0)), (0, vec![("outside_region", 1)]));
}

/// With learning off, packets are replicated by their lists as before, and responses match no group.
#[test]
fn other_groups_are_as_without_learning() {
    let elsewhere = Learning { proxies: vec![Prefix::host(address("2001:db8:ff::1"))], ..learning() };
    let mut bench = edge_that_learns(false, elsewhere);
    assert_eq!(data(&mut bench, 100, &[1, 2, 3, 4, 5]), []);
    assert_eq!(bench.node.groups().count(), 0);
    bench.send(1, &response_to(address(PROXY), of_host(1).address, 0x1F, 100));
    assert_eq!(bench.drops(1), [("no_route", 1)]);
}

/// D17: one Proxy Address, one Designated QPN, one queue pair for each receiver.
#[test]
fn contradictory_lists_are_dropped() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1, 2]);
    let other = send_to(address(PROXY), DESIGNATED + 1, 101);
    for _ in 0..2 {
        assert_eq!(bench.send(0, &listed_to(address(PROXY), &other, &members(&[1, 3]))), []);
    }
    let elsewhere: Vec<Receiver> = vec![receiver(3, 0x103, None), receiver(2, 0x999, None)];
    for _ in 0..2 {
        assert_eq!(bench.send(0, &listed_to(address(PROXY), &send(101), &elsewhere)), []);
    }
    assert_eq!(bench.drops(0), [("other_receiver", 2), ("wrong_qpn", 2)]);
    // No receiver of those lists has been learnt.
    ack(&mut bench, 1, 100);
    assert_eq!(ack(&mut bench, 2, 100), [(0x1F, 100)]);
}

/// D17: beyond a bound nothing is learnt, and the packet is sent to no receiver: a receiver without a branch must not
/// get data that others would acknowledge.
#[test]
fn bounds_are_kept() {
    let mut bench = edge_that_learns(false, learning());
    refused(&mut bench, 100, &[1, 2, 3, 4, 5]);
    assert_eq!(bench.node.groups().count(), 0);
    data(&mut bench, 100, &[1, 2, 3]);
    refused(&mut bench, 100, &[3, 4, 5]);
    refused(&mut bench, 100, &[1, 2, 3, 4, 5]);
    assert_eq!(data(&mut bench, 100, &[4, 1]), []);
    refused(&mut bench, 100, &[5]);
    assert_eq!(bench.node.group_entry(FIRST_LEARNT_GROUP).unwrap().receivers.len(), 4);
    assert_eq!(bench.drops(0), [("too_many_learnt_receivers", 4)]);

    let proxies = ["2001:db8:ff::1", "2001:db8:ff::2", "2001:db8:ff::3"].map(address);
    let sent = proxies.map(|proxy| {
        let inner = send_to(proxy, DESIGNATED, 100);
        bench.send(0, &listed_to(proxy, &inner, &members(&[1]))).len()
    });
    assert_eq!((sent, bench.node.groups().count()), ([1, 0, 0], 2));
    assert_eq!(bench.drops(0)[0], ("too_many_learnt_groups", 2));
}

/// A learnt Proxy Address overrides no configuration of the node.
#[test]
fn a_proxy_address_with_another_meaning_is_not_learnt() {
    let (table, prefix) = (TableId(0), Prefix::host(address(PROXY)));
    let route = Command::AddRoute { table, prefix, action: RouteAction::Via(vec![next_hop(0)]) };
    let sid = Command::AddSid { prefix, behavior: SidBehavior::End(Flavors::default()) };
    for (command, removal) in [(route, Command::RemoveRoute { table, prefix }), (sid, Command::RemoveSid(prefix))] {
        let mut bench = edge_that_learns(false, learning());
        bench.apply(command.clone());
        refused(&mut bench, 100, &[1]);
        assert_eq!((bench.node.groups().count(), bench.drops(0)), (0, vec![("proxy_in_use", 1)]));
        bench.apply(removal);
        data(&mut bench, 100, &[1]);
        // Later configuration takes precedence as well: no response is sent then.
        bench.apply(command);
        refused(&mut bench, 101, &[1]);
        assert_eq!(bench.drops(0), [("proxy_in_use", 2)]);
    }
}

/// The same settings change nothing; others reset the state.
#[test]
fn changed_settings_clear_learnt_groups() {
    let mut bench = edge_that_learns(false, learning());
    data(&mut bench, 100, &[1, 2]);
    bench.apply(Command::SetLearning(learning()));
    assert_eq!(bench.node.groups().count(), 1);
    bench.apply(Command::SetLearning(Learning { max_groups: 1, ..learning() }));
    assert_eq!(bench.node.groups().count(), 0);
    data(&mut bench, 100, &[1]);
    assert_eq!(ack(&mut bench, 1, 100), [(0x1F, 100)]);
    bench.apply(Command::RemoveLearning);
    assert_eq!(bench.node.groups().count(), 0);
    assert_eq!(data(&mut bench, 100, &[1, 2]), []);
    assert_eq!(bench.node.groups().count(), 0);
}

/// Settings that cannot work are refused, and those that were there stay.
#[test]
fn settings_that_cannot_work_are_refused() {
    let mut bench = edge_that_learns_with(false, learning(), |config| {
        config.ports[1].addresses.push(address("2001:db8:2::ffff"));
    });
    let evicting = Policy { on_failure: OnFailure::Evict, ..Policy::default() };
    let own = Prefix::new(address("2001:db8:2::"), 64).unwrap();
    let address_of_port = LearningError::OwnAddress { proxies: own, address: address("2001:db8:2::ffff") };
    let cases = [
        (Learning { proxies: Vec::new(), ..learning() }, LearningError::NoProxies),
        (Learning { max_groups: 0, ..learning() }, LearningError::Zero("max_groups")),
        (Learning { max_receivers: 0, ..learning() }, LearningError::Zero("max_receivers")),
        (Learning { idle_ns: 0, ..learning() }, LearningError::Zero("idle")),
        (Learning { policy: evicting, ..learning() }, LearningError::Evicts),
        (Learning { parent: address(EDGE), ..learning() }, LearningError::ParentIsOwn(address(EDGE))),
        (Learning { proxies: vec![own], ..learning() }, address_of_port),
    ];
    data(&mut bench, 100, &[1, 2]);
    for (settings, error) in cases {
        let refusal = bench.node.apply(Command::SetLearning(settings));
        assert_eq!(refusal, Err(ConfigError::Learning(error)));
    }
    assert_eq!(bench.node.groups().count(), 1);

    // D2: nor may one of its addresses come to lie there, whether a group has it or not.
    let mut port = bench.node.config().ports[0].clone();
    port.addresses = vec![address("2001:db8:ff::77")];
    assert!(matches!(bench.node.apply(Command::AddPort(port)), Err(ConfigError::Learning(_))));
}

/// RFC 8754 section 5.1: Proxy Addresses lie in the domain's prefixes of them, whichever is configured first.
#[test]
fn the_domain_has_the_proxy_addresses() {
    let prefix = |text: &str, len| Prefix::new(address(text), len).unwrap();
    let domain = |proxies| Domain {
        sids: vec![prefix("5f00::", 16)],
        infrastructure: vec![Prefix::host(address(EDGE)), Prefix::host(address(HEADEND))],
        proxies,
    };
    let proxies = learning().proxies[0];
    let outside = Err(ConfigError::Learning(LearningError::OutsideDomain(proxies)));
    let mut bench = edge_that_learns(false, learning());
    assert_eq!(bench.node.apply(Command::SetDomain(domain(Vec::new()))), outside);
    bench.apply(Command::SetDomain(domain(vec![proxies])));
    bench.apply(Command::RemoveLearning);
    bench.apply(Command::SetDomain(domain(vec![Prefix::host(address(PROXY))])));
    assert_eq!(bench.node.apply(Command::SetLearning(learning())), outside);
}
