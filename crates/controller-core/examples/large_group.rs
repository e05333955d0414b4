//! Times of requests for a large group: `cargo run --release -p srdma-controller-core --example large_group`.
//!
//! 400 leaves below 32 spines; the source is at the first leaf, and a receiver at each other one. The times are those
//! in which the controller is locked: a transaction or a view, without HTTP and store.

use srdma_api::{Link, NewGroup, NewReceiver, PROTOCOL, Registration, SourceAddress};
use srdma_controller_core::{Core, Pipeline, Principal, Role, Settings, Time};
use srdma_figures::report;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

const LEAVES: u16 = 400;
const SPINES: u16 = 32;
const ROUNDS: usize = 5;
const VIEWS: usize = 200;

fn main() {
    let [mut commits, mut views, mut joins] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let mut pipeline = registered();
        let id = transact(&mut pipeline, |core| core.create_group(&admin(), None, group())).0.expect("a group");
        let join = |pipeline: &mut Pipeline, leaf: u16, host: u16| {
            let receiver = NewReceiver::new(0x1000, 4096);
            let (joined, time) =
                transact(pipeline, |core| core.join(&admin(), id, address(leaf, host), receiver, None));
            joined.expect("it joins");
            time
        };
        for leaf in 1..LEAVES {
            join(&mut pipeline, leaf, 1);
        }
        let (committed, time) = transact(&mut pipeline, |core| core.commit_group(&admin(), id, None));
        committed.expect("it is committed");
        commits.push(time);
        joins.push(join(&mut pipeline, 1, 2));
        for _ in 0..VIEWS {
            let began = Instant::now();
            let (view, _) = pipeline.core().group(&admin(), id).expect("the group");
            views.push(began.elapsed());
            assert_eq!(view.members.len(), usize::from(LEAVES));
            assert_eq!(view.tree.expect("a tree").links_of_unicast, 2 * u32::from(LEAVES - 1));
        }
    }
    let receivers = LEAVES - 1;
    let ms = |times: Vec<Duration>| times.into_iter().map(|time| time.as_secs_f64() * 1e3);
    report(format!("commit of a group of {receivers} receivers"), "ms", ms(commits));
    report("join of a receiver after the commit", "ms", ms(joins));
    report("`GET /v1/groups/ID` of the group", "ms", ms(views));
}

fn admin() -> Principal {
    Principal { name: "bench".to_owned(), role: Role::Admin, tenant: None, node: None }
}

/// Runs a transaction, which is durable at once; its value and its time.
fn transact<T>(pipeline: &mut Pipeline, act: impl FnOnce(&mut Core) -> T) -> (T, Duration) {
    let began = Instant::now();
    let transaction = pipeline.transact(Time::default(), act);
    let time = began.elapsed();
    pipeline.durable(transaction.number);
    (transaction.answer.release(pipeline.durable_number()).ok().expect("durable"), time)
}

/// A controller with which all nodes have registered.
fn registered() -> Pipeline {
    let core = Core::restore(Settings::default(), None, &[], 1, None, Time::default()).expect("an empty store");
    let mut pipeline = Pipeline::new(core);
    for number in 0..LEAVES + SPINES {
        transact(&mut pipeline, |core| core.register(&admin(), registration(number))).0.expect("it registers");
    }
    pipeline
}

fn loopback(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1)
}

fn address(leaf: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xaa, leaf, 0, 0, 0, host)
}

/// A leaf, or a spine behind them.
fn registration(number: u16) -> Registration {
    let is_leaf = number < LEAVES;
    let others = if is_leaf { LEAVES..LEAVES + SPINES } else { 0..LEAVES };
    let prefix = |text: String| text.parse().expect("a prefix");
    Registration {
        protocol: PROTOCOL,
        name: format!("N{number}"),
        loopback: loopback(number),
        end_mt: (is_leaf && number > 0).then(|| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 0xe)),
        replication: (!is_leaf || number == 0).then(|| prefix(format!("2001:db8:ff:{number:x}:f::/80"))),
        links: others.map(|to| Link { to: loopback(to), mtu: 9000, cost: 1 }).collect(),
        hosts: if is_leaf { vec![prefix(format!("2001:db8:aa:{number:x}::/64"))] } else { Vec::new() },
        groups: Vec::new(),
        repairs: false,
    }
}

fn group() -> NewGroup {
    let source = SourceAddress { address: address(0, 1), qpn: 0x100 };
    let proxy = Some("2001:db8:cc::1".parse().expect("an address"));
    NewGroup { proxy, ..NewGroup::new(source, 0xd0_0000) }
}
