//! IOAM traces that three kernel routers filled, one after the other.

use crate::golden::captures::{frames, ipv6};
use srdma_wire::ioam::{Filled, NodeData, Trace, TraceError, TraceHeader, TraceType, fill};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::{Ipv6View, View};

const LINKS: [&str; 4] = ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"];

/// The Hop-by-Hop Options header of each frame on a link, and the hop limit that stands before it.
fn headers(link: &str) -> Vec<(u8, Vec<u8>)> {
    let of_frame = |frame: Vec<u8>| {
        let (view, after) = Ipv6View::split(ipv6(&frame).unwrap()).unwrap();
        assert_eq!(view.next_header(), NextHeader::HOP_BY_HOP);
        (view.hop_limit, after[..8 + 8 * usize::from(after[1])].to_vec())
    };
    frames(&format!("kernel_t17_ioam_{link}.pcap")).into_iter().map(of_frame).collect()
}

/// Configuration of the routers: `ioam6_id`, interface ids and the namespace's data. Their queues were empty, and the
/// kernel reports neither unset wide ids nor the occupancy of buffers.
fn router(number: usize) -> NodeData<'static> {
    let (node_id, ingress, egress, wide) = [(1, 11, 12, 1001), (2, 21, 22, 2001), (3, 31, 32, 3001)][number];
    NodeData {
        node_id: Some(node_id),
        ingress: Some(ingress),
        egress: Some(egress),
        queue_depth: Some(0),
        ingress_wide: Some(wide),
        egress_wide: Some(wide + 1),
        namespace_data_wide: Some(0xCAFE_0000_1111_2222),
        ..NodeData::default()
    }
}

/// Each link's headers, filled as the next router does, are those of the next link: three fields, overflow at the third
/// router, timestamps, a foreign namespace, wide fields.
#[test]
fn filled_as_the_kernel_fills() {
    for (number, links) in LINKS.windows(2).enumerate() {
        for (frame, ((_, mut octets), (hop_limit, expected))) in
            headers(links[0]).into_iter().zip(headers(links[1])).enumerate()
        {
            // The time of the capture: the only fields that a test cannot predict.
            let newest = Trace::find(&expected).unwrap().unwrap().nodes().next();
            let written = newest.and_then(Result::ok).unwrap_or_default();
            let node = NodeData {
                hop_limit: Some(hop_limit),
                timestamp_seconds: written.timestamp_seconds,
                timestamp_fraction: written.timestamp_fraction,
                ..router(number)
            };
            let mut outcomes = Vec::new();
            fill(&mut octets, |namespace| (namespace == 123).then_some(node), |outcome| outcomes.push(outcome));
            let expected_outcome: &[Result<Filled, TraceError>] = match (frame, number) {
                (3, _) => &[],
                (1, 2) => &[Ok(Filled::Overflow)],
                _ => &[Ok(Filled::Written)],
            };
            assert_eq!(outcomes, expected_outcome, "frame {frame} at router {number}");
            assert_eq!(octets, expected, "frame {frame} at router {number}");
        }
    }
}

/// The receiver reads what the routers wrote, the newest first.
#[test]
fn read_as_the_kernel_wrote() {
    let frames = headers(LINKS[3]);
    let nodes = |frame: usize| -> Vec<NodeData<'_>> {
        Trace::find(&frames[frame].1).unwrap().unwrap().nodes().map(Result::unwrap).collect()
    };
    let of = |node: &NodeData<'_>| (node.hop_limit, node.node_id, node.ingress, node.egress, node.queue_depth);
    let expected = [3, 2, 1]
        .map(|id: u16| (Some(64 - id as u8), Some(u32::from(id)), Some(id * 10 + 1), Some(id * 10 + 2), Some(0)));
    assert_eq!(nodes(0).iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(nodes(1).iter().map(of).collect::<Vec<_>>(), expected[1..]);
    let times: Vec<_> = nodes(2).iter().map(|node| (node.timestamp_seconds, node.timestamp_fraction)).collect();
    assert_eq!(times, [807_298, 807_287, 807_269].map(|microseconds| (Some(1_795_220_742), Some(microseconds))));
    assert!(nodes(3).is_empty(), "a foreign namespace is left alone");
    let wide = &nodes(4)[0];
    assert_eq!((wide.hop_limit, wide.node_id_wide, wide.buffer_occupancy), (Some(61), None, None), "all ones");
    assert_eq!((wide.ingress_wide, wide.egress_wide), (Some(3001), Some(3002)));
    assert_eq!(wide.namespace_data_wide, Some(0xCAFE_0000_1111_2222));
}

/// An empty trace as scapy made it for the sender.
#[test]
fn empty_traces_are_those_of_the_sender() {
    let narrow = TraceType::NODE.and(TraceType::INTERFACES).and(TraceType::QUEUE_DEPTH);
    let timed = narrow.and(TraceType::TIMESTAMP_SECONDS).and(TraceType::TIMESTAMP_FRACTION);
    let wide = TraceType::NODE_WIDE.and(TraceType::INTERFACES_WIDE).and(TraceType::NAMESPACE_DATA_WIDE);
    let made = [
        (narrow, 3, 123),
        (narrow, 2, 123),
        (timed, 3, 123),
        (narrow, 3, 999),
        (wide.and(TraceType::BUFFER_OCCUPANCY), 3, 123),
    ];
    for ((trace_type, nodes, namespace_id), (_, expected)) in made.into_iter().zip(headers(LINKS[0])) {
        let header = TraceHeader::for_nodes(namespace_id, trace_type, nodes).unwrap();
        let mut octets = [0xEE; 128];
        let len = header.emit_hop_by_hop(NextHeader::UDP, &mut octets).unwrap();
        assert_eq!(octets[..len], expected[..]);
        assert_eq!(Trace::find(&expected).unwrap().unwrap().header.value(), header);
    }
}
