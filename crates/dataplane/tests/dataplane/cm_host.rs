//! Connection management at a Proxy Address: a message of Linux, sent to the host that answers it (D251).

use crate::common::group::*;
use crate::common::{Bench, address};
use srdma_capture::Reader;
use srdma_dataplane::Command;
use srdma_group::{Group, NodeIndex};
use std::fs::File;
use std::io::BufReader;

const CM_HOST: &str = "2001:db8:c::1";
const RECEIVER: &str = "2001:db8:2::1";

/// The REQ of a soft-RoCE host, from one of these hosts to the Proxy Address.
fn request(source: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cm/rxe.pcap");
    let mut reader = Reader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut packet = reader.next().unwrap().unwrap().octets[14..].to_vec();
    packet[8..24].copy_from_slice(&address(source).octets());
    packet[24..40].copy_from_slice(&address(PROXY).octets());
    packet
}

/// The headend, which is next to the source at port 0, the edge at port 1 and the host at port 2.
fn headend(cm_host: Option<&str>, routes: &[(&str, u16)]) -> Bench {
    let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, SID, Some(0))];
    let group = Group::new(record(&nodes, vec![member(&receiver(1, 0x101, None), 1)])).unwrap();
    let mut bench = Bench::with(HEADEND, 3, |config| config.cm_host = cm_host.map(address));
    for (prefix, port) in [(SOURCE, 0), ("5f00:0:1::/48", 1)].iter().chain(routes) {
        bench.route(prefix, *port);
    }
    bench.apply(Command::AddGroup(Box::new(group.at(NodeIndex(0)).unwrap())));
    bench
}

fn forwarded(mut packet: Vec<u8>) -> Vec<u8> {
    packet[7] -= 1;
    packet
}

/// D251: the source's messages, and those of others, go to the host, unchanged; data do not.
#[test]
fn messages_go_to_the_host() {
    let mut bench = headend(Some(CM_HOST), &[(CM_HOST, 2)]);
    assert_eq!(bench.send(0, &request(SOURCE)), [(2, forwarded(request(SOURCE)))]);
    assert_eq!(bench.send(1, &request(RECEIVER)), [(2, forwarded(request(RECEIVER)))]);
    let data = inner(0x04, 0, &[1; 100], false);
    let sent = bench.send(0, &data);
    assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [1], "data go to the edge");
    // Another kind of packet to queue pair 1, and this kind to another.
    for (at, octet) in [(48, 0x04), (55, 2)] {
        let mut packet = request(SOURCE);
        packet[at] = octet;
        assert_eq!(bench.send(0, &packet), []);
    }
    assert_eq!(bench.drops(0).iter().map(|(_, count)| count).sum::<u64>(), 2, "{:?}", bench.drops(0));
}

/// At an edge, whose receivers answer to the Proxy Address, too.
#[test]
fn messages_of_receivers_pass_an_edge() {
    let mut bench = edge_with(false, |config| config.cm_host = Some(address(CM_HOST)));
    bench.route(CM_HOST, 0);
    bench.apply(Command::AddGroup(Box::new(entry(&[receiver(1, 0x101, None)], None))));
    assert_eq!(bench.send(1, &request(RECEIVER)), [(0, forwarded(request(RECEIVER)))]);
}

/// Without the key they are dropped, as is what has no route or no hop left; all are counted.
#[test]
fn what_does_not_reach_the_host_is_counted() {
    let mut off = headend(None, &[(CM_HOST, 2)]);
    assert_eq!(off.send(0, &request(SOURCE)), []);
    assert_eq!(off.drops(0), [("not_rocev2", 1)]);
    assert_eq!(off.send(1, &request(RECEIVER)), []);
    assert_eq!(off.drops(1), [("unexpected_responder", 1)]);

    let mut without_route = headend(Some(CM_HOST), &[]);
    without_route.send(0, &request(SOURCE));
    assert_eq!(without_route.drops(0), [("no_route", 1)]);

    let mut bench = headend(Some(CM_HOST), &[(CM_HOST, 2)]);
    let mut last = request(SOURCE);
    last[7] = 1;
    bench.send(0, &last);
    assert_eq!(bench.drops(0), [("hop_limit_exceeded", 1)]);
}
