//! Hand-over between workers in threads: packets to the node itself, which are the first worker's.

use srdma_dataplane::{DropReason, Node, NodeConfig, PortConfig, Worker};
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_wire::{EtherType, Ethernet, Instant, Ipv6, MacAddress, NextHeader};
use srdma_workers::{Exchange, exchange};
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use zerocopy::IntoBytes;

const LOOPBACK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PORT: PortId = PortId(0);
const NOW: Instant = Instant::ZERO;

/// Packets that a channel and the batch before it hold.
const CAPACITY: u64 = 17 * 64;

struct Side {
    node: Node,
    pool: Pool,
    exchange: Exchange,
    wake: Vec<usize>,
}

impl Side {
    /// The sides of a node of two workers.
    fn both() -> [Side; 2] {
        let mut sides = Worker::all(2).zip(exchange(2)).map(|(worker, exchange)| {
            let port = PortConfig {
                name: "p".to_owned(),
                mac: MAC,
                addresses: Vec::new(),
                link_mtu: 1500,
                queue_limit_octets: 1 << 20,
                ..PortConfig::default()
            };
            let node = Node::new(NodeConfig { worker, ..NodeConfig::new(LOOPBACK, vec![port]) });
            Side { node, pool: Pool::new(4096), exchange, wake: Vec::new() }
        });
        [(); 2].map(|()| sides.next().expect("two sides"))
    }

    /// Packets to the node arrive at this worker.
    fn arrive(&mut self, packets: usize) {
        let ethernet =
            Ethernet { destination: MAC, source: MacAddress([2, 0, 0, 0, 0, 2]), ethertype: EtherType::IPV6 };
        let ipv6 = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: 0,
            next_header: NextHeader::NONE,
            hop_limit: 9,
            source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
            destination: LOOPBACK,
        };
        let octets = [ethernet.emit().as_bytes(), ipv6.emit().as_bytes()].concat();
        let frame = |pool: &mut Pool| Frame::from_octets(&octets, pool).expect("memory");
        let mut frames: Vec<Frame> = (0..packets).map(|_| frame(&mut self.pool)).collect();
        self.node.receive(NOW, PORT, &mut frames, &mut self.pool);
        self.exchange.send(&mut self.node, &mut self.pool, &mut self.wake);
    }

    fn take_over(&mut self, limit: usize) -> usize {
        self.exchange.receive(NOW, &mut self.node, &mut self.pool, limit)
    }

    fn drops(&self, reason: DropReason) -> u64 {
        self.node.port_counters(PORT).expect("a port").drops.get(reason)
    }
}

#[test]
fn packets_go_to_their_owner_and_are_counted_there() {
    let [mut first, mut second] = Side::both();
    second.arrive(3);
    first.arrive(2);
    assert_eq!((first.drops(DropReason::LocalDelivery), first.take_over(64)), (2, 3));
    assert_eq!((first.drops(DropReason::LocalDelivery), second.drops(DropReason::LocalDelivery)), (5, 0));
    assert_eq!((second.exchange.counters().handed_over, first.exchange.counters().taken_over), (3, 3));
    assert_eq!((first.pool.in_use(), second.pool.in_use()), (0, 0));
}

/// Nothing waits for a worker that does not come, and nothing is lost without a count.
#[test]
fn a_worker_that_does_not_keep_up_is_not_waited_for() {
    let [mut first, mut second] = Side::both();
    let sent = 40 * 64;
    for _ in 0..40 {
        second.arrive(64);
    }
    assert_eq!(second.drops(DropReason::HandoverFull), sent - CAPACITY);
    assert!(second.exchange.is_backlogged());
    let mut taken = 0;
    loop {
        let now = first.take_over(usize::MAX);
        second.exchange.send(&mut second.node, &mut second.pool, &mut second.wake);
        taken += now as u64;
        if now == 0 {
            break;
        }
    }
    assert_eq!((taken, first.drops(DropReason::LocalDelivery)), (CAPACITY, CAPACITY));
    assert!(!second.exchange.is_backlogged());
    assert_eq!(second.pool.in_use(), 0);
}

#[test]
fn a_worker_that_sleeps_is_woken_once_and_one_with_packets_does_not_sleep() {
    let [mut first, mut second] = Side::both();
    second.arrive(1);
    assert!(second.wake.is_empty() && !first.exchange.fall_asleep());
    assert_eq!(first.take_over(64), 1);
    assert!(first.exchange.fall_asleep());
    second.arrive(1);
    second.arrive(1);
    assert_eq!(second.wake, [0]);
    first.exchange.wake_up();
    assert_eq!(first.take_over(64), 2);
}

/// One sends, the other sleeps whenever it may: each packet is taken over or counted as dropped.
#[test]
fn no_packet_is_lost_between_threads() {
    const ROUNDS: usize = 20_000;
    let [mut first, mut second] = Side::both();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = thread::Builder::new().spawn_scoped(scope, || {
            while !is_over.load(Ordering::Acquire) {
                if first.take_over(64) == 0 && first.exchange.fall_asleep() {
                    thread::park();
                    first.exchange.wake_up();
                }
            }
            while first.take_over(64) > 0 {}
            first.drops(DropReason::LocalDelivery)
        });
        let receiver = receiver.expect("a thread");
        for round in 0..ROUNDS {
            second.arrive(round % 7);
            for _ in second.wake.drain(..) {
                receiver.thread().unpark();
            }
        }
        while second.exchange.is_backlogged() {
            second.exchange.send(&mut second.node, &mut second.pool, &mut second.wake);
            second.wake.drain(..).for_each(|_| receiver.thread().unpark());
        }
        is_over.store(true, Ordering::Release);
        receiver.thread().unpark();
        let taken = receiver.join().expect("the receiver ends");
        let sent: usize = (0..ROUNDS).map(|round| round % 7).sum();
        assert_eq!(taken + second.drops(DropReason::HandoverFull), sent as u64);
    });
}
