//! Nothing leaves the pipeline before the writes that precede it are durable.

use srdma_api::{Link, NewGroup, NewReceiver, PROTOCOL, Registration, SourceAddress};
use srdma_controller_core::{Core, Pipeline, Principal, Role, Settings, Tenant, Time, Transaction};
use std::net::Ipv6Addr;
use std::time::Duration;

fn admin() -> Principal {
    Principal { name: "test".to_owned(), role: Role::Admin, tenant: None, node: None }
}

fn at(milliseconds: u64) -> Time {
    Time { monotonic: Duration::from_millis(milliseconds), unix_ms: milliseconds }
}

fn pipeline() -> Pipeline {
    Pipeline::new(Core::restore(Settings::default(), None, &[], 1, None, at(0)).unwrap())
}

fn loopback(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1)
}

/// N1 is the headend, N2 the edge.
fn node(number: u16) -> Registration {
    Registration {
        protocol: PROTOCOL,
        name: format!("N{number}"),
        loopback: loopback(number),
        end_mt: (number == 2).then(|| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 0xe)),
        replication: (number == 1).then(|| "2001:db8:ff:1:f::/80".parse().unwrap()),
        links: vec![Link { to: loopback(3 - number), mtu: 9000, cost: 1 }],
        hosts: vec![if number == 1 { "2001:db8:aa::/64" } else { "2001:db8:bb::/64" }.parse().unwrap()],
        groups: Vec::new(),
        repairs: false,
    }
}

/// Runs a transaction and makes it durable at once.
fn commit<T: std::fmt::Debug>(pipeline: &mut Pipeline, act: impl FnOnce(&mut Core) -> T) -> T {
    let Transaction { number, answer, .. } = pipeline.transact(at(1), act);
    pipeline.durable(number);
    answer.release(pipeline.durable_number()).unwrap()
}

/// A group of this source.
fn group(source: &str, proxy: Option<&str>) -> NewGroup {
    let source = SourceAddress { address: source.parse().unwrap(), qpn: 0x100 };
    NewGroup { proxy: proxy.map(|proxy| proxy.parse().unwrap()), ..NewGroup::new(source, 0xd0_0000) }
}

#[test]
fn answers_orders_and_events_wait_for_the_writes_before_them() {
    let mut pipeline = pipeline();
    for number in [1, 2] {
        commit(&mut pipeline, |core| core.register(&admin(), node(number))).unwrap();
    }
    let new = group("2001:db8:aa::1", Some("2001:db8:cc::1"));
    let group = commit(&mut pipeline, |core| core.create_group(&admin(), None, new)).unwrap();
    let receiver = NewReceiver::new(0x1000, 4096);
    let join =
        pipeline.transact(at(2), |core| core.join(&admin(), group, "2001:db8:bb::1".parse().unwrap(), receiver, None));
    assert!(!join.writes.is_empty() && join.answer.number() == join.number);
    assert!(pipeline.release().events.is_empty(), "the join is not durable");
    let commit = pipeline.transact(at(3), |core| core.commit_group(&admin(), group, None));
    assert!(commit.number > join.number && commit.changed_groups.contains(&group));
    assert!(pipeline.take_orders(loopback(1)).is_empty(), "an order left before its writes were durable");
    let read = pipeline.transact(at(4), |_| "read");
    assert!(read.writes.is_empty());
    let read = read.answer.release(pipeline.durable_number()).expect_err("it may depend on the commit");

    let released = pipeline.durable(join.number);
    assert!(join.answer.release(pipeline.durable_number()).unwrap().is_ok());
    assert_eq!((released.events.len(), released.nodes.len()), (1, 0));
    assert!(pipeline.take_orders(loopback(1)).is_empty());
    let read = read.release(pipeline.durable_number()).expect_err("it may depend on the commit");

    let released = pipeline.durable(commit.number);
    assert_eq!(released.nodes.into_iter().collect::<Vec<_>>(), [loopback(1), loopback(2)]);
    assert!(commit.answer.release(pipeline.durable_number()).unwrap().is_ok());
    assert_eq!(read.release(pipeline.durable_number()).unwrap(), "read");
    assert_eq!([1, 2].map(|number| pipeline.take_orders(loopback(number)).len()), [1, 1], "one prepare each");
    assert!(pipeline.take_orders(loopback(1)).is_empty());
}

#[test]
fn output_that_waits_for_lost_writes_is_discarded() {
    let mut pipeline = pipeline();
    let lost = pipeline.transact(at(1), |core| core.register(&admin(), node(1)));
    assert_eq!(lost.number, 1);
    pipeline.replace_core(Core::restore(Settings::default(), None, &[], 1, None, at(2)).unwrap());
    let next = pipeline.transact(at(3), |_| ());
    assert_eq!(next.number, 1, "the restored core has to write that it was started");
    assert!(pipeline.durable(next.number).events.is_empty());
}

/// Addresses of members do not block the pool that they are in.
#[test]
fn a_group_without_a_proxy_gets_one_that_is_no_members() {
    let proxies = Some("2001:db8:cc::/64".parse().unwrap());
    let tenants = [("default".to_owned(), Tenant { proxies, ..Tenant::default() })].into();
    let settings = Settings { tenants, ..Settings::default() };
    let mut pipeline = Pipeline::new(Core::restore(settings, None, &[], 1, None, at(0)).unwrap());
    let mut create = |group| commit(&mut pipeline, |core| core.create_group(&admin(), None, group)).unwrap();
    create(group("2001:db8:cc::1", Some("2001:db8:cc::2")));
    let second = create(group("2001:db8:cc::3", None));
    let shown = commit(&mut pipeline, |core| core.group(&admin(), second)).unwrap().0;
    assert_eq!(shown.summary.proxy.to_string(), "2001:db8:cc::4");
}
