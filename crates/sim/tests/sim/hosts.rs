//! Two hosts on one link: the engine and the endpoint without a node between them.

use proptest::prelude::*;
use srdma_random::{Probability, Stream};
use srdma_rc::{QueuePairConfig, RemoteAddress};
use srdma_sim::host::{HOST_PORT, Host, HostConfig};
use srdma_sim::program::{MessageOperation, ReceiveStream, SendStream};
use srdma_sim::replica::Replica;
use srdma_sim::{ElementId, LinkId, LinkModel, Network};
use srdma_wire::{Instant, MacAddress, PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;
use std::sync::Arc;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const SINK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const BASE: u64 = 0x7000_0000;
const END: Instant = Instant::from_ns(10_000_000_000);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Send,
    Write,
    WriteImmediate,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    size_octets: usize,
    message_octets: u32,
    path_mtu: PathMtu,
    first_psn: u32,
    link: LinkModel,
    seed: u64,
}

struct Pair {
    network: Network<Host>,
    source: ElementId,
    sink: ElementId,
    region: srdma_rc::MemoryKey,
    link: LinkId,
}

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).unwrap()
}

fn queue_pair(own: u32, remote_address: Ipv6Addr, remote: u32, case: &Case) -> QueuePairConfig {
    QueuePairConfig {
        sq_psn: Psn::new(case.first_psn),
        rq_psn: Psn::new(case.first_psn),
        path_mtu: case.path_mtu,
        ack_timeout: 4,
        ..QueuePairConfig::new(qpn(own), remote_address, qpn(remote))
    }
}

fn pair(case: &Case) -> Pair {
    let mut data = vec![0; case.size_octets];
    Stream::new(case.seed, "data").fill(&mut data);
    let data = Arc::new(data);
    let (mac, gateway) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
    let mut sink = Host::new(&HostConfig { address: SINK, mac: gateway, gateway: mac });
    let region = sink.add_region(Replica::empty(Arc::clone(&data)), BASE, 0x5A);
    sink.add_queue_pair(queue_pair(0x22, SOURCE, 0x11, case)).unwrap();
    let size = case.size_octets as u64;
    let remote = RemoteAddress { virtual_address: BASE, rkey: region };
    let operation = match case.kind {
        Kind::Send => MessageOperation::Send,
        Kind::Write => MessageOperation::Write { remote },
        Kind::WriteImmediate => MessageOperation::WriteImmediate { remote },
    };
    if !matches!(case.kind, Kind::Write) {
        sink.add_receive_stream(ReceiveStream::new(qpn(0x22), region, size, case.message_octets));
    }
    let mut source = Host::new(&HostConfig { address: SOURCE, mac, gateway });
    let key = source.add_region(Replica::of_source(data), 0, 1);
    source.add_queue_pair(queue_pair(0x11, SINK, 0x22, case)).unwrap();
    source.add_send_stream(SendStream::new(qpn(0x11), key, size, case.message_octets, operation));
    let mut network = Network::new(case.seed, 4096);
    let (source, sink) = (network.add(source), network.add(sink));
    let link = network.connect("link", (source, HOST_PORT), (sink, HOST_PORT), case.link);
    Pair { network, source, sink, region, link }
}

impl Pair {
    fn run(&mut self) {
        for host in [self.sink, self.source] {
            self.network.with(host, |host, _, _| host.start());
        }
        while self.network.step(END).is_some() {}
    }

    fn completed_at_ns(&self) -> Option<u64> {
        self.network.element(self.source).send_streams()[0].completed_at().map(Instant::as_ns)
    }
}

fn perfect(kind: Kind) -> Case {
    Case {
        kind,
        size_octets: 1 << 20,
        message_octets: 1 << 18,
        path_mtu: PathMtu::Octets4096,
        first_psn: 0,
        link: LinkModel::perfect(100_000_000_000, 1000),
        seed: 1,
    }
}

#[test]
fn data_cross_a_perfect_link_at_its_rate() {
    let mut pair = pair(&perfect(Kind::Write));
    pair.run();
    let [down, up] = pair.network.counters(pair.link);
    assert_eq!((down.frames, down.lost), (256, 0));
    // Ethernet 14, IPv6 40, UDP 8, BTH 12, ICRC 4; RETH 16 in the first packet of each of the four messages.
    assert_eq!(down.octets, (1 << 20) + 256 * 78 + 4 * 16);
    assert!(up.frames >= 4 && up.octets == up.frames * 82, "{up:?}");
    // All octets with 24 of framing at 100 Gbit/s, then the last ACK's 106; the delay twice. Arrivals are at whole
    // nanoseconds.
    let last_arrival_ns = ((down.octets + 24 * down.frames) * 80).div_ceil(1000) + 1000;
    assert_eq!(pair.completed_at_ns(), Some(last_arrival_ns + (106 * 80_u64).div_ceil(1000) + 1000));
    let sink = pair.network.element(pair.sink);
    assert!(sink.region(pair.region).unwrap().is_identical());
    assert_eq!(
        (sink.refused(), pair.network.element(pair.source).refused(), pair.network.dropped_for_memory()),
        (0, 0, 0)
    );
    assert_eq!(pair.network.chunks_in_use(), 0);
}

#[test]
fn a_run_is_the_same_each_time() {
    let chance = |probability| Probability::new(probability).unwrap();
    let link =
        LinkModel { loss: chance(0.02), duplicate: chance(0.02), reorder: chance(0.02), ..perfect(Kind::Send).link };
    let outcome = |seed| {
        let mut pair = pair(&Case { link, seed, ..perfect(Kind::Send) });
        pair.run();
        (pair.completed_at_ns(), pair.network.counters(pair.link), pair.network.hops())
    };
    assert_eq!(outcome(3), outcome(3));
    assert_ne!(outcome(3), outcome(4));
}

#[test]
fn a_dead_link_ends_in_an_error() {
    let link = LinkModel { loss: Probability::new(1.0).unwrap(), ..perfect(Kind::Write).link };
    let mut pair = pair(&Case { link, ..perfect(Kind::Write) });
    pair.run();
    assert_eq!(pair.completed_at_ns(), None);
    let source = pair.network.element(pair.source);
    assert_eq!(source.failure(), Some((qpn(0x11), srdma_rc::Status::RetryExceeded)));
    assert_eq!(pair.network.element(pair.sink).region(pair.region).unwrap().complete_octets(), 0);
    assert_eq!(pair.network.chunks_in_use(), 0);
}

fn cases() -> impl Strategy<Value = Case> {
    let kind = prop_oneof![Just(Kind::Send), Just(Kind::Write), Just(Kind::WriteImmediate)];
    let path_mtu = prop::sample::select(PathMtu::ALL.to_vec());
    let faults = (0.0..0.05, 0.0..0.05, 0.0..0.05);
    let psn = prop_oneof![Just(0), 0xFF_FF80..=0xFF_FFFF_u32];
    (kind, 1..60_000_usize, 1..20_000_u32, path_mtu, psn, faults, any::<u64>()).prop_map(
        |(kind, size_octets, message_octets, path_mtu, first_psn, (loss, duplicate, reorder), seed)| {
            let [loss, duplicate, reorder] = [loss, duplicate, reorder].map(|p| Probability::new(p).unwrap());
            let link = LinkModel { loss, duplicate, reorder, ..LinkModel::perfect(10_000_000_000, 500) };
            Case { kind, size_octets, message_octets, path_mtu, first_psn, link, seed }
        },
    )
}

proptest! {
    #[test]
    fn data_cross_a_faulty_link(case in cases()) {
        let mut pair = pair(&case);
        pair.run();
        let source = pair.network.element(pair.source);
        prop_assert_eq!(source.failure(), None);
        prop_assert!(pair.completed_at_ns().is_some());
        prop_assert!(pair.network.element(pair.sink).region(pair.region).unwrap().is_identical());
        prop_assert_eq!(pair.network.chunks_in_use(), 0);
    }
}
