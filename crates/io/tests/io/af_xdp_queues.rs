//! Drivers of several workers at one interface, by AF_XDP: each has its queues, or sends in another way.

use crate::af_xdp::link::{ADDRESSES, Link, Wire, everything, octets, send, wait_for};
use srdma_frame::{Frame, Pool};
use srdma_io::{Choice, Driver, DriverKind, Opened, Share, Umem, open_share};
use std::collections::{BTreeMap, BTreeSet};

const WORKERS: u16 = 3;
const FLOWS: u8 = 64;
const PAGES: usize = 4096;

/// A worker's driver and pool.
struct Worker {
    driver: Box<dyn Driver>,
    pool: Pool,
}

impl Worker {
    /// The frames of flows that have come in, by their numbers.
    fn flows(&mut self) -> Vec<u8> {
        let mut frames = Vec::new();
        self.driver.receive(&mut self.pool, &mut frames, 64).unwrap();
        let octets: Vec<Vec<u8>> = frames.iter().map(|frame| frame.to_vec(&self.pool)).collect();
        frames.into_iter().for_each(|frame| frame.release(&mut self.pool));
        // The kernel's own frames arrive as well.
        octets.iter().filter(|octets| octets.starts_with(&ADDRESSES)).map(|octets| octets[SOURCE_PORT]).collect()
    }
}

const SOURCE_PORT: usize = 55;

/// A UDP packet of a flow, which differs from others in its source port.
fn packet(flow: u8) -> Vec<u8> {
    let mut octets = ADDRESSES.to_vec();
    octets.extend_from_slice(&[0x86, 0xDD, 0x60, 0, 0, 0, 0, 8, 17, 64]);
    octets.extend_from_slice(&[0x20; 32]);
    octets.extend_from_slice(&[0xC0, flow, 0x12, 0xB7, 0, 8, 0, 0]);
    octets
}

fn open(link: &Link, choice: Choice) -> Vec<Worker> {
    let open = |share: &Share| {
        let (umem, pool) = Umem::new(PAGES).unwrap();
        let opened = link.node.enter(|| open_share("port", choice, share, &everything(), Some(&umem)));
        let Opened { driver, group, .. } = opened.unwrap().unwrap_or_else(|error| panic!("{error}"));
        (Worker { driver, pool }, group)
    };
    let (first, group) = open(&Share::First(WORKERS));
    let group = group.expect("others can join");
    let others = (1..WORKERS).map(|number| open(&Share::Joining(group.clone(), number)).0);
    [first].into_iter().chain(others).collect()
}

fn check(choice: Choice, kind: DriverKind, queues: usize) {
    let link = Link::with_queues(queues);
    let wire = Wire::open(&link.host);
    let mut workers = open(&link, choice);
    let kinds: Vec<DriverKind> = workers.iter().map(|worker| worker.driver.kind()).collect();
    let expected = |number| if number < queues { kind } else { DriverKind::Packet };
    assert_eq!(kinds, (0..workers.len()).map(expected).collect::<Vec<_>>());
    workers.iter_mut().for_each(|worker| assert_eq!(worker.flows(), []));

    // Every frame reaches one worker, and those of a flow the same.
    let mut owners: BTreeMap<u8, BTreeSet<usize>> = BTreeMap::new();
    for _ in 0..2 {
        (0..FLOWS).for_each(|flow| wire.send(&packet(flow)));
        let mut received = 0;
        wait_for(|| {
            for (number, worker) in workers.iter_mut().enumerate() {
                for flow in worker.flows() {
                    owners.entry(flow).or_default().insert(number);
                    received += 1;
                }
            }
            received >= usize::from(FLOWS)
        });
        assert_eq!(received, usize::from(FLOWS), "{kind} with {queues} queues");
    }
    assert!(owners.len() == usize::from(FLOWS) && owners.values().all(|owners| owners.len() == 1), "{owners:?}");
    let receivers: BTreeSet<usize> = owners.into_values().flatten().collect();
    // In generic mode a veth does not note the queue that a frame came in at: all are those of the first.
    let used = if kind == DriverKind::XdpNative { queues } else { 1 };
    assert_eq!(receivers, (0..used).collect(), "{kind} with {queues} queues");

    // All can send.
    for (number, worker) in workers.iter_mut().enumerate() {
        let expected = octets(1000, number);
        let frame = Frame::from_octets(&expected, &mut worker.pool).unwrap();
        send(&mut *worker.driver, frame, &mut worker.pool);
        assert!(wire.receive() == expected, "worker {number}");
    }

    // The program goes with the last driver, and the interface can be opened again.
    let has_program = || link.node.run(&["ip", "link", "show", "port"]).unwrap().contains("xdp");
    for mut worker in workers {
        assert!(has_program() || worker.driver.kind() == DriverKind::Packet);
        worker.driver.detach(&mut worker.pool);
        assert_eq!(worker.pool.in_use(), 0);
    }
    assert!(!has_program());
    open(&link, choice);
}

/// D222.
#[test]
#[ignore = "needs root"]
fn each_worker_has_its_queues_and_the_others_send() {
    for queues in [1, 2] {
        check(Choice::Xdp, DriverKind::XdpNative, queues);
        check(Choice::XdpGeneric, DriverKind::XdpGeneric, queues);
    }
}
