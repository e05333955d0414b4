//! The lab `group-hpcc`: HPCC++ at the source of a group, by the traces that its nodes send up (D242).

use crate::own_lab::Lab;
use serde_json::Value;
use std::collections::BTreeMap;

const SOURCE: &str = "2001:db8:aa::1";
const PROXY: &str = "2001:db8:cc::1";
/// At which the source begins.
const LINE_RATE: u64 = 1_000_000_000;

/// A transfer, and what its source has printed.
fn transferred(changes: &[(&str, &str)]) -> (Lab, Value) {
    let lab = Lab::new("group-hpcc", changes);
    lab.transfer();
    let said = lab.said("S");
    (lab, said)
}

fn number(said: &Value, part: &str, name: &str) -> u64 {
    said[part][name].as_u64().unwrap_or_else(|| panic!("no {part}.{name} in {said}"))
}

/// When each data packet was first seen on a link toward a destination, by its PSN, in seconds.
fn times(lab: &Lab, link: &str, destination: &str) -> BTreeMap<String, f64> {
    let filter = format!("infiniband.bth.opcode < 0x0c && ipv6.dst == {destination}");
    let mut first = BTreeMap::new();
    for packet in lab.tshark(link, &filter, &["infiniband.bth.psn", "frame.time_epoch"]) {
        let time = packet["frame.time_epoch"].parse().expect("seconds");
        first.entry(packet["infiniband.bth.psn"].clone()).or_insert(time);
    }
    first
}

/// Median of the time that data spent in N2, which is that in the queue toward R2.
fn median_delay(lab: &Lab) -> f64 {
    let (came, left) = (times(lab, "N1-N2", PROXY), times(lab, "N2-R2", "2001:db8:bb::2"));
    let mut delays: Vec<f64> = left.iter().filter_map(|(psn, time)| Some(time - came.get(psn)?)).collect();
    assert!(delays.len() > 1_000, "{} packets on both links", delays.len());
    delays.sort_by(f64::total_cmp);
    delays[delays.len() / 2]
}

/// D242, FC-4-9: traces of the link to R2 reach the source, which keeps the queue toward it short; without them a window
/// of data waits in that.
#[test]
#[ignore = "needs root"]
fn the_slowest_receivers_link_controls_the_source() {
    let (lab, said) = transferred(&[]);
    let traces = number(&said, "fast_cnps", "with_trace");
    assert!(traces > 0 && number(&said, "fast_cnps", "from_receivers") == traces, "{said}");
    assert!(number(&said, "rate", "least_bits_per_s") < LINE_RATE, "{said}");
    // On the wire: from the Proxy Address, about packets to it (FC-4-7), and as many as the root has sent.
    let fields = ["ipv6.src", "ipv6.dst", "ipv6.opt.type", "ipv6.opt.experimental", "infiniband.bth.opcode"];
    let sent = lab.tshark("S-N1", "ipv6.dstopts && udp.port == 4791", &fields);
    assert!(sent.len() as u64 >= traces, "{} on the wire, {traces} at the source", sent.len());
    for packet in &sent {
        assert_eq!((packet["ipv6.src"].as_str(), packet["ipv6.dst"].as_str()), (PROXY, SOURCE), "{packet:?}");
        assert_eq!((packet["ipv6.opt.type"].as_str(), packet["infiniband.bth.opcode"].as_str()), ("0x01,0x9e", "129"));
        // Node 2 is in the trace: its id is behind a hop limit of 64.
        assert!(packet["ipv6.opt.experimental"].contains("40000002"), "{packet:?}");
    }
    lab.check_icrcs("S-N1");
    let with = median_delay(&lab);
    let rate = |said: &Value| said["bits_per_second"].as_u64().unwrap_or(0) / 1_000_000;
    println!("with {traces} traces: {} Mbit/s, {:.1} ms in N2", rate(&said), with * 1e3);
    drop(lab);

    let (lab, said) = transferred(&[("group_interval = \"2ms\"\n", "")]);
    assert_eq!(number(&said, "fast_cnps", "with_trace"), 0, "{said}");
    assert_eq!(number(&said, "rate", "least_bits_per_s"), LINE_RATE, "{said}");
    let without = median_delay(&lab);
    println!("without: {} Mbit/s, {:.1} ms in N2", rate(&said), without * 1e3);
    assert!(with < without / 2.0, "{with} s with traces, {without} s without");
}
