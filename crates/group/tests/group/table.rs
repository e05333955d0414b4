//! Every state of a lifecycle with every event: its orders and its next state (D25, D30, D31).

use crate::figure_1::*;
use crate::fleet::{Fleet, name, short};
use srdma_group::*;
use srdma_wire::Psn;

/// A lifecycle that has carried orders out up to the first whose beginning is this; that one is lost.
fn up_to(mut lifecycle: Lifecycle, order: &str) -> Lifecycle {
    let mut fleet = Fleet { ready: Some(0), ..Fleet::default() };
    while let Some(next) = lifecycle.next_order() {
        if short(&next).starts_with(order) {
            while lifecycle.next_order().is_some() {}
            return lifecycle;
        }
        let answer = fleet.carry_out(&next);
        answer.into_iter().for_each(|answer| fleet.hand_in(&mut lifecycle, answer));
    }
    panic!("{order} was not ordered");
}

fn created() -> Lifecycle {
    Lifecycle::create(record()).unwrap()
}

fn steady() -> Lifecycle {
    let mut lifecycle = created();
    Fleet::default().settle(&mut lifecycle);
    lifecycle
}

fn rehoming() -> Lifecycle {
    let mut lifecycle = steady();
    lifecycle.rehome(loopback(3), loopback(4), None).unwrap();
    lifecycle
}

fn joining() -> Lifecycle {
    let mut lifecycle = steady();
    let Receiver { address, qpn, region, .. } = receiver(6, 0);
    lifecycle
        .join(
            vec![Newcomer {
                address,
                qpn,
                region,
                edge: loopback(2),
                admission: Admission::AtOnce,
                more_regions: Vec::new(),
                psn_offset: PsnOffset::ZERO,
            }],
            vec![],
            None,
        )
        .unwrap();
    lifecycle
}

fn with(mut lifecycle: Lifecycle, change: fn(&mut Lifecycle)) -> Lifecycle {
    change(&mut lifecycle);
    while lifecycle.next_order().is_some() {}
    lifecycle
}

/// The states; N6 is the node that everything is about, at N5 in `Removing`.
fn states() -> Vec<(&'static str, usize, Lifecycle)> {
    vec![
        ("creating", 6, up_to(created(), "prepare N6 1")),
        ("steady", 6, steady()),
        ("steady, N6 returning", 6, with(steady(), |lifecycle| lifecycle.restarted(loopback(6)))),
        ("steady, N6 lost", 6, with(steady(), |lifecycle| lifecycle.lost(loopback(6)))),
        ("preparing", 6, up_to(rehoming(), "prepare N6 2")),
        ("committing", 6, up_to(rehoming(), "commit N6 2")),
        ("removing", 5, up_to(rehoming(), "remove N5 2")),
        ("pausing", 6, up_to(joining(), "pause 1")),
        ("closing", 6, with(steady(), Lifecycle::close)),
        ("closed", 6, {
            let mut lifecycle = with(steady(), |_| {});
            lifecycle.close();
            Fleet::default().settle(&mut lifecycle);
            lifecycle
        }),
    ]
}

type Event = (&'static str, fn(&mut Lifecycle, usize));

const EVENTS: &[Event] = &[
    ("prepared 1", |lifecycle, node| lifecycle.prepared(loopback(node), name(lifecycle, loopback(node), 1))),
    ("prepared 2", |lifecycle, node| lifecycle.prepared(loopback(node), name(lifecycle, loopback(node), 2))),
    ("refused 1", |lifecycle, node| {
        lifecycle.refused(loopback(node), name(lifecycle, loopback(node), 1), "no".to_string());
    }),
    ("refused 2", |lifecycle, node| {
        lifecycle.refused(loopback(node), name(lifecycle, loopback(node), 2), "no".to_string());
    }),
    ("committed 1", |lifecycle, node| lifecycle.committed(loopback(node), name(lifecycle, loopback(node), 1))),
    ("committed 2", |lifecycle, node| lifecycle.committed(loopback(node), name(lifecycle, loopback(node), 2))),
    ("removed 1", |lifecycle, node| lifecycle.removed(loopback(node), 1)),
    ("removed 2", |lifecycle, node| lifecycle.removed(loopback(node), 2)),
    ("quiescent 1", |lifecycle, _| lifecycle.quiescent(1, Psn::new(9), 1)),
    ("running 0", |lifecycle, _| lifecycle.running(0)),
    ("restarted", |lifecycle, node| lifecycle.restarted(loopback(node))),
    ("registered with 1", |lifecycle, node| {
        let committed = Some(name(lifecycle, loopback(node), 1));
        let _ = lifecycle.registered(loopback(node), Held { committed, prepared: None });
    }),
    ("lost", |lifecycle, node| lifecycle.lost(loopback(node))),
    ("evict", |lifecycle, _| drop(lifecycle.evict(&[receiver_address(1)]))),
    ("rehome", |lifecycle, _| drop(lifecycle.rehome(loopback(1), loopback(6), None))),
    ("abort joins", |lifecycle, _| lifecycle.abort_joins("the source is silent")),
    ("close", |lifecycle, _| lifecycle.close()),
    ("repeat", |lifecycle, _| lifecycle.repeat()),
];

#[test]
fn every_event_in_every_state() {
    let mut table = String::new();
    for (state, node, before) in states() {
        table.push_str(&format!("{state}\n"));
        for (event, happens) in EVENTS {
            let mut lifecycle = before.clone();
            happens(&mut lifecycle, node);
            let mut fleet = Fleet::default();
            fleet.log.extend(std::iter::from_fn(|| lifecycle.next_order()).map(|order| short(&order)));
            let is_same = fleet.log.is_empty() && lifecycle == before;
            let orders = if is_same { "–".to_string() } else { fleet.take_log().replace('\n', "\n      ") };
            let orders = if orders.is_empty() { "noted".to_string() } else { orders };
            table.push_str(&format!("  {event}: {orders}\n"));
        }
    }
    insta::assert_snapshot!(table, @r"
        creating
          prepared 1: store 1, commit N6 1
          prepared 2: –
          refused 1: abort N1 1, abort N2 1, abort N3 1, abort N4 1, abort N5 1, abort N6 1
              aborted: node 2001:db8:6::1 refuses epoch 1: no, closed
          refused 2: –
          committed 1: –
          committed 2: –
          removed 1: –
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: prepare N6 1
          registered with 1: store 1, commit N4 1, commit N5 1
          lost: abort N1 1, abort N2 1, abort N3 1, abort N4 1, abort N5 1
              aborted: node 2001:db8:6::1 is lost, closed
          evict: noted
          rehome: noted
          abort joins: –
          close: remove N1 1, remove N2 1, remove N3 1, remove N4 1, remove N5 1, remove N6 1
          repeat: prepare N6 1
        steady
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: –
          committed 1: –
          committed 2: –
          removed 1: –
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: restore N6 1
          registered with 1: –
          lost: noted
          evict: prepare N1 2, prepare N6 2
          rehome: prepare N1 2, prepare N4 2, prepare N6 2
          abort joins: –
          close: remove N1 1, remove N2 1, remove N3 1, remove N4 1, remove N5 1, remove N6 1
          repeat: –
        steady, N6 returning
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: –
          committed 1: noted
          committed 2: –
          removed 1: –
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: restore N6 1
          registered with 1: noted
          lost: noted
          evict: prepare N1 2, restore N6 1
          rehome: prepare N1 2, prepare N4 2, restore N6 1
          abort joins: –
          close: remove N1 1, remove N2 1, remove N3 1, remove N4 1, remove N5 1, remove N6 1
          repeat: restore N6 1
        steady, N6 lost
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: –
          committed 1: –
          committed 2: –
          removed 1: –
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: restore N6 1
          registered with 1: noted
          lost: –
          evict: prepare N1 2
          rehome: noted
          abort joins: –
          close: remove N1 1, remove N2 1, remove N3 1, remove N4 1, remove N5 1
          repeat: –
        preparing
          prepared 1: –
          prepared 2: store 2, commit N6 2
          refused 1: –
          refused 2: abort N3 2, abort N4 2, abort N6 2, aborted: node 2001:db8:6::1 refuses epoch 2: no
          committed 1: –
          committed 2: –
          removed 1: –
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: restore N6 1
          registered with 1: prepare N6 2
          lost: abort N3 2, abort N4 2
          evict: noted
          rehome: noted
          abort joins: –
          close: remove N1 2, remove N2 2, remove N3 2, remove N4 2, remove N5 2, remove N6 2
          repeat: prepare N6 2
        committing
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: noted
          committed 1: –
          committed 2: commit N4 2
          removed 1: –
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: restore N6 2
          registered with 1: –
          lost: noted
          evict: noted
          rehome: noted
          abort joins: –
          close: remove N1 2, remove N2 2, remove N3 2, remove N4 2, remove N5 2, remove N6 2
          repeat: commit N6 2
        removing
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: –
          committed 1: –
          committed 2: –
          removed 1: –
          removed 2: changed 2
          quiescent 1: –
          running 0: –
          restarted: changed 2
          registered with 1: –
          lost: changed 2
          evict: noted
          rehome: noted
          abort joins: –
          close: remove N1 2, remove N2 2, remove N3 2, remove N4 2, remove N5 2, remove N6 2
          repeat: remove N5 2
        pausing
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: –
          committed 1: –
          committed 2: –
          removed 1: –
          removed 2: –
          quiescent 1: prepare N2 2, prepare N6 2
          running 0: –
          restarted: restore N6 1
          registered with 1: –
          lost: noted
          evict: prepare N1 2, prepare N6 2
          rehome: prepare N1 2, prepare N4 2, prepare N6 2
          abort joins: aborted: the source is silent
          close: remove N1 1, remove N2 1, remove N3 1, remove N4 1, remove N5 1, remove N6 1
          repeat: pause 1
        closing
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: –
          committed 1: –
          committed 2: –
          removed 1: noted
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: noted
          registered with 1: remove N6 1
          lost: noted
          evict: –
          rehome: –
          abort joins: –
          close: –
          repeat: remove N1 1, remove N2 1, remove N3 1, remove N4 1, remove N5 1, remove N6 1
        closed
          prepared 1: –
          prepared 2: –
          refused 1: –
          refused 2: –
          committed 1: –
          committed 2: –
          removed 1: –
          removed 2: –
          quiescent 1: –
          running 0: –
          restarted: –
          registered with 1: –
          lost: –
          evict: –
          rehome: –
          abort joins: –
          close: –
          repeat: –
        ");
}
