//! IOAM pre-allocated traces (RFC 9197 section 4.4).

use super::layer::{Hex64, IoamNode, IoamTrace, LinkLoad};
use srdma_rc::HPCC_FIELDS;
use srdma_wire::View;
use srdma_wire::ioam::{self, NodeData, Trace, TraceError, TraceType, TraceView};

/// Decodes the data of an IOAM option, from the Reserved octet on, as far as they can be read, with the error in them.
pub(super) fn explain(option_data: &[u8]) -> (Option<IoamTrace>, Option<TraceError>) {
    let header = match TraceView::split(option_data) {
        Ok((header, _)) => header.value(),
        Err(truncated) => return (None, Some(truncated.into())),
    };
    let (mut nodes, mut error) = (Vec::new(), None);
    match Trace::parse(option_data) {
        Ok(trace) => trace.nodes().for_each(|node| match node {
            Ok(node) => nodes.push(of_node(&node, header.trace_type)),
            Err(partial) => error = Some(partial),
        }),
        Err(wrong) => error = Some(wrong),
    }
    let trace = IoamTrace {
        namespace_id: header.namespace_id,
        trace_type: header.trace_type.0,
        node_len_words: header.node_len_words,
        remaining_len_words: header.remaining_len_words,
        overflow: header.overflow,
        loopback: header.loopback,
        active: header.active,
        nodes,
    };
    (Some(trace), error)
}

fn of_node(node: &NodeData<'_>, trace_type: TraceType) -> IoamNode {
    // No definition of the namespace: the set of requested fields shows the meaning of its data.
    let link_load = node.namespace_data_wide.filter(|_| trace_type == HPCC_FIELDS).map(|data| {
        let ioam::LinkLoad { rate_mbit_per_s, sent_octets } = ioam::LinkLoad::from_data(data);
        LinkLoad { rate_mbit_per_s, sent_octets }
    });
    IoamNode {
        hop_limit: node.hop_limit,
        node_id: node.node_id,
        node_id_wide: node.node_id_wide.map(Hex64),
        ingress: node.ingress.map(u32::from).or(node.ingress_wide),
        egress: node.egress.map(u32::from).or(node.egress_wide),
        timestamp_seconds: node.timestamp_seconds,
        timestamp_fraction: node.timestamp_fraction,
        transit_delay_ns: node.transit_delay,
        namespace_data: node.namespace_data,
        queue_depth: node.queue_depth,
        checksum_complement: node.checksum_complement,
        namespace_data_wide: node.namespace_data_wide.map(Hex64),
        link_load,
        buffer_occupancy: node.buffer_occupancy,
        opaque_schema_id: node.opaque.map(|(schema_id, _)| schema_id),
        opaque: node.opaque.map(|(_, octets)| hex::encode(octets)),
    }
}
