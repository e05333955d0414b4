//! IOAM traces: a walk ends, filled fields are read as they were written, and the others stay.

use crate::choices::Choices;
use srdma_wire::ioam::{Filled, NodeData, Trace, fill};
use srdma_wire::options::OptionsHeader;

const NODE: NodeData<'_> = NodeData {
    hop_limit: Some(63),
    node_id: Some(0x01_0203),
    ingress: Some(1),
    egress: Some(2),
    timestamp_seconds: Some(3),
    timestamp_fraction: Some(4),
    transit_delay: Some(5),
    namespace_data: Some(6),
    queue_depth: Some(7),
    checksum_complement: None,
    node_id_wide: Some(0x02_0304_0506_0708),
    ingress_wide: Some(8),
    egress_wide: Some(9),
    namespace_data_wide: Some(10),
    buffer_occupancy: None,
    opaque: Some((11, b"state")),
};

/// A Hop-by-Hop Options header: its first trace is read, and all traces of one namespace are filled until nothing more
/// fits.
pub fn ioam(input: &[u8]) {
    let namespace = Choices::new(input).u16();
    let mut octets = input.to_vec();
    read(&octets);
    loop {
        let before = octets.clone();
        let mut written = 0;
        fill(
            &mut octets,
            |found| (found == namespace || found == 123).then_some(NODE),
            |outcome| written += u32::from(outcome == Ok(Filled::Written)),
        );
        assert_eq!(octets.len(), before.len());
        if written == 0 {
            break;
        }
        if octets == before {
            assert!(has_trace_of_nothing(&octets), "a trace that was written to has less room");
            break;
        }
        read(&octets);
    }
}

/// Whether one of the traces requests no field: its node data take no room.
fn has_trace_of_nothing(octets: &[u8]) -> bool {
    let Ok((header, _)) = OptionsHeader::split(octets) else {
        return false;
    };
    let mut traces = header.iter().map_while(Result::ok).filter_map(|option| Trace::parse(option.data).ok());
    traces.any(|trace| trace.header.trace_type().node_len_words() == 0)
}

fn read(octets: &[u8]) {
    let Some(Ok(trace)) = Trace::find(octets) else {
        return;
    };
    let header = trace.header.value();
    let node_len = usize::from(header.node_len_words);
    assert_eq!(node_len, header.trace_type.node_len_words());
    let most = trace.octets().len() / 4;
    let nodes = trace.nodes().count();
    assert!(nodes <= most, "{nodes} nodes in {most} words");
    if trace.header.is_overflown() {
        assert!(trace.nodes().filter(Result::is_err).count() <= 1);
    }
}
