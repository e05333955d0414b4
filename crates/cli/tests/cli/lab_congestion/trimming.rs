//! The lab `trimming`: a node cuts the packets of a real sender that find no room, and the receiver answers them.

use crate::lab_congestion::lab::class;
use crate::own_lab::Lab;
use serde_json::Value;

/// Data packets toward R on a link, as tshark decodes them.
const FIELDS: [&str; 8] = [
    "ipv6.tclass.dscp",
    "frame.len",
    "ipv6.plen",
    "udp.length",
    "udp.checksum",
    "infiniband.bth.opcode",
    "infiniband.bth.padcnt",
    "infiniband.bth.destqp",
];

/// Of a WRITE's packets these can be trimmed (first, middle, last, only), with their headers behind UDP.
fn headers(opcode: &str) -> usize {
    match opcode {
        "6" | "10" => 12 + 16,
        "7" | "8" => 12,
        other => panic!("opcode {other} is trimmed"),
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}: no number"))
}

/// D88: each packet that N1 counts as trimmed is on the wire with headers alone and the DSCP of its class, R counts it,
/// and the data arrive whole. None of it is on the link before N1.
#[test]
#[ignore = "needs root"]
fn a_node_trims_the_packets_of_a_real_sender() {
    let lab = Lab::new("trimming", &[]);
    lab.transfer();
    let status = lab.status("N1");
    let (data, urgent) = (class(&status, "r", 3), class(&status, "r", 6));
    let trimmed = number(&data["trimmed"]);
    assert!(trimmed > 0, "{status}");
    assert_eq!((number(&urgent["sent"]["frames"]), number(&data["drops"]["queue_full"])), (trimmed, 0), "{status}");
    let received = lab.said("R");
    assert_eq!(number(&received["trimmed_received"]), trimmed, "{received}");
    assert!(number(&received["naks_sent"]) > 0, "{received}");

    let found = lab.tshark("N1-R", "ipv6.src == 2001:db8:aa::1 && ipv6.tclass.dscp == 13", &FIELDS);
    assert_eq!(found.len() as u64, trimmed);
    for packet in &found {
        // UDP's header, the transport headers, and the ICRC; Ethernet and IPv6 before them.
        let udp = (8 + headers(&packet["infiniband.bth.opcode"]) + 4).to_string();
        let frame = (14 + 40 + 8 + headers(&packet["infiniband.bth.opcode"]) + 4).to_string();
        let expected = [
            ("frame.len", frame.as_str()),
            ("ipv6.plen", &udp),
            ("udp.length", &udp),
            ("udp.checksum", "0x0000"),
            ("infiniband.bth.padcnt", "0"),
            ("infiniband.bth.destqp", "0x001001"),
        ];
        for (field, value) in expected {
            assert_eq!(packet[field], value, "{field} of {packet:?}");
        }
    }
    assert!(lab.tshark("S-N1", "ipv6.tclass.dscp == 13", &["frame.len"]).is_empty());
    lab.check_icrcs("S-N1");
}

/// The opposite: without `trim_dscp` N1 drops them, and R hears of none.
#[test]
#[ignore = "needs root"]
fn a_node_without_trimming_drops_them() {
    let lab = Lab::new("trimming", &[("trim_dscp = 13\n", "")]);
    lab.transfer();
    let status = lab.status("N1");
    let data = class(&status, "r", 3);
    assert!(number(&data["drops"]["queue_full"]) > 0 && number(&data["trimmed"]) == 0, "{status}");
    assert_eq!(number(&lab.said("R")["trimmed_received"]), 0);
    assert!(lab.tshark("N1-R", "ipv6.tclass.dscp == 13", &["frame.len"]).is_empty());
}
