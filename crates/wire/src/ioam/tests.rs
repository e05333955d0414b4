use super::*;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

const NAMESPACE: u16 = 123;

/// A Hop-by-Hop Options header with an empty trace for so many nodes.
fn header(trace_type: TraceType, nodes: usize) -> Vec<u8> {
    let mut octets = [0; 300];
    let trace = TraceHeader::for_nodes(NAMESPACE, trace_type, nodes).unwrap();
    let len = trace.emit_hop_by_hop(NextHeader::UDP, &mut octets).unwrap();
    octets[..len].to_vec()
}

fn fill_all(header: &mut [u8], node: NodeData<'_>) -> Vec<Result<Filled, TraceError>> {
    let mut outcomes = Vec::new();
    fill(header, |namespace| (namespace == NAMESPACE).then_some(node), |outcome| outcomes.push(outcome));
    outcomes
}

fn node(number: u32) -> NodeData<'static> {
    NodeData { hop_limit: Some(64), node_id: Some(number), queue_depth: Some(number * 10), ..NodeData::default() }
}

const NODE_AND_QUEUE: TraceType = TraceType::NODE.and(TraceType::QUEUE_DEPTH);

#[test]
fn nodes_are_returned_newest_first() {
    let mut octets = header(NODE_AND_QUEUE, 2);
    assert_eq!(fill_all(&mut octets, node(1)), [Ok(Filled::Written)]);
    assert_eq!(fill_all(&mut octets, node(2)), [Ok(Filled::Written)]);
    assert_eq!(fill_all(&mut octets, node(3)), [Ok(Filled::Overflow)]);
    let trace = Trace::find(&octets).unwrap().unwrap();
    assert!(trace.header.is_overflown());
    assert_eq!(trace.nodes().collect::<Vec<_>>(), [Ok(node(2)), Ok(node(1))]);
    assert_eq!(trace.octets(), &octets[6..6 + 10 + 16]);
}

/// RFC 9197 section 4.4.1: each unassigned bit counts a word, filled with ones; bit 23 is ignored.
#[test]
fn unassigned_bits_are_given_their_words() {
    let trace_type = TraceType(NODE_AND_QUEUE.0 | 0x00_0FFC | 1);
    assert_eq!(trace_type.node_len_words(), 12);
    let mut octets = header(trace_type, 1);
    fill_all(&mut octets, node(7));
    assert_eq!(octets[16..24], [64, 0, 0, 7, 0, 0, 0, 70]);
    assert_eq!(octets[24..64], [0xFF; 40]);
    let trace = Trace::find(&octets).unwrap().unwrap();
    assert_eq!(trace.nodes().collect::<Vec<_>>(), [Ok(node(7))]);
}

/// NodeLen excludes the snapshot; its length is in the snapshot itself.
#[test]
fn snapshots_are_written_and_skipped() {
    let trace_type = NODE_AND_QUEUE.and(TraceType::OPAQUE);
    let mut octets = header(trace_type, 5);
    let with_snapshot = NodeData { opaque: Some((0xABCDEF, b"seven!!")), ..node(2) };
    assert_eq!(fill_all(&mut octets, node(1)), [Ok(Filled::Written)]);
    assert_eq!(fill_all(&mut octets, with_snapshot), [Ok(Filled::Written)]);
    let trace = Trace::find(&octets).unwrap().unwrap();
    assert_eq!(trace.header.remaining_len_words(), 10 - 3 - 5);
    let padded = NodeData { opaque: Some((0xABCDEF, b"seven!!\0")), ..node(2) };
    assert_eq!(trace.nodes().collect::<Vec<_>>(), [Ok(padded), Ok(node(1))]);
    assert_eq!(fill_all(&mut octets, node(3)), [Ok(Filled::Overflow)], "two words are left, three needed");
}

#[test]
fn two_traces_in_one_header_are_both_filled_and_a_foreign_one_is_not() {
    let one = TraceHeader::for_nodes(NAMESPACE, TraceType::NODE, 1).unwrap();
    let mut octets = [0; 64];
    let mut writer = OptionsWriter::new(&mut octets);
    for trace in [one, TraceHeader { namespace_id: 999, ..one }, one] {
        let data = [trace.emit().as_bytes(), &[0; 4]].concat();
        writer.option(option::IOAM, &data, Alignment::FOUR_N).unwrap();
    }
    writer.finish(NextHeader::UDP).unwrap();
    assert_eq!(fill_all(&mut octets, node(5)), [Ok(Filled::Written), Ok(Filled::Written)]);
    assert_eq!([&octets[16..20], &octets[32..36], &octets[48..52]].concat(), [64, 0, 0, 5, 0, 0, 0, 0, 64, 0, 0, 5]);
}

/// The data of an option that begins with a trace header, and so much space behind it.
fn option(header: TraceHeader, space: usize) -> Vec<u8> {
    [header.emit().as_bytes(), &vec![0; space]].concat()
}

/// A trace that claims more than it holds is an error with a name, and nothing is written to it.
#[test]
fn errors_have_names() {
    let good = TraceHeader::for_nodes(NAMESPACE, NODE_AND_QUEUE, 2).unwrap();
    let cases = [
        (option(good, 12), "RemainingLen 4 in a data space of 3 words"),
        (option(good, 17), "data space of 17 octets is no multiple of four"),
        (option(TraceHeader { node_len_words: 3, ..good }, 16), "NodeLen 3, the fields of the trace type need 2 words"),
        (option(good, 0)[..9].to_vec(), "IOAM trace needs 10 octets, 9 left"),
    ];
    for (data, message) in cases {
        assert_eq!(Trace::parse(&data).unwrap_err().to_string(), message);
        let mut octets = [0; 64];
        let mut writer = OptionsWriter::new(&mut octets);
        writer.option(option::IOAM, &data, Alignment::FOUR_N).unwrap();
        let len = writer.finish(NextHeader::UDP).unwrap();
        let before = octets;
        let outcomes = fill_all(&mut octets[..len], node(1));
        assert_eq!(outcomes.iter().map(|error| error.unwrap_err().to_string()).collect::<Vec<_>>(), [message]);
        assert_eq!(octets, before);
    }
    let mut other = option(good, 16);
    other[1] = 1;
    assert_eq!(Trace::parse(&other).unwrap_err(), TraceError::OptType(1));
}

#[test]
fn node_data_that_ends_too_early_is_an_error() {
    let good = TraceHeader::for_nodes(NAMESPACE, NODE_AND_QUEUE, 1).unwrap();
    let data = option(TraceHeader { remaining_len_words: 1, ..good }, 16);
    let nodes: Vec<_> = Trace::parse(&data).unwrap().nodes().collect();
    assert_eq!((nodes.len(), nodes[1]), (2, Err(TraceError::PartialNode { needed: 2, found: 1 })));
    let opaque = TraceHeader::for_nodes(NAMESPACE, TraceType::OPAQUE, 0).unwrap();
    let mut data = option(opaque, 8);
    data[10] = 2;
    let nodes: Vec<_> = Trace::parse(&data).unwrap().nodes().collect();
    assert_eq!(nodes, [Err(TraceError::PartialNode { needed: 3, found: 2 })]);
    let nothing = TraceHeader::for_nodes(NAMESPACE, TraceType::default(), 0).unwrap();
    let data = option(nothing, 4);
    let nodes: Vec<_> = Trace::parse(&data).unwrap().nodes().collect();
    assert_eq!(nodes, [Err(TraceError::PartialNode { needed: 0, found: 1 })]);
}

#[test]
fn reserved_octets_survive_being_filled() {
    let mut octets = header(NODE_AND_QUEUE, 1);
    (octets[6], octets[15]) = (0x5A, 0xA5);
    fill_all(&mut octets, node(1));
    assert_eq!((octets[6], octets[15]), (0x5A, 0xA5));
}

#[test]
fn an_option_has_room_for_so_many() {
    assert!(TraceHeader::for_nodes(NAMESPACE, NODE_AND_QUEUE, 30).is_some());
    assert_eq!(TraceHeader::for_nodes(NAMESPACE, NODE_AND_QUEUE, 31), None, "62 words are more than 61");
    assert_eq!(TraceHeader::for_nodes(NAMESPACE, NODE_AND_QUEUE, usize::MAX), None);
    let largest = TraceHeader::for_nodes(NAMESPACE, TraceType::NODE, 61).unwrap();
    let mut octets = [0; 264];
    assert_eq!(largest.emit_hop_by_hop(NextHeader::UDP, &mut octets[..255]), None);
    assert_eq!(largest.emit_hop_by_hop(NextHeader::UDP, &mut octets), Some(264));
}

#[test]
fn the_load_of_a_link_fits_64_bits_and_wraps() {
    let load = LinkLoad { rate_mbit_per_s: 400_000, sent_octets: LinkLoad::MODULUS - 1 };
    assert_eq!(load.to_data(), 0x061A_80FF_FFFF_FFFF);
    assert_eq!(LinkLoad::from_data(load.to_data()), load);
    let later = LinkLoad { sent_octets: LinkLoad::MODULUS + 9, ..load };
    assert_eq!(LinkLoad::from_data(later.to_data()).octets_since(load), 10);
    assert_eq!(LinkLoad { rate_mbit_per_s: u32::MAX, sent_octets: 0 }.to_data(), 0xFFFF_FF00_0000_0000);
}
