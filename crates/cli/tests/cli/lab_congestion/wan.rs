//! The lab `wan`: a congested router notifies the senders before the WAN by END.E, and pauses their gateway by END.C of
//! the ingress PE, on real wires. In the lab `wan-isis` it learns both SIDs.

use crate::lab_congestion::lab::class;
use crate::own_lab::Lab;
use serde_json::Value;
use std::collections::BTreeMap;

const ROUTER: &str = "2001:db8:ff:1::1";
const END_C: &str = "5f00:0:9:c::";
const END_E: &str = "5f00:0:9:e::";

/// The MAC address of PE1 on its link with G1.
const PE1: &str = "02:5d:00:00:02:02";

/// Fast CNPs, in a tunnel or not: Destination Options before UDP.
const FAST_CNPS: &str = "ipv6.dstopts && udp.port == 4791 && !icmpv6";

/// Transfers, and looks that both pairs have their data.
fn transferred(replacements: &[(&str, &str)]) -> Lab {
    let lab = Lab::new("wan", replacements);
    let result = lab.transfer();
    let other = &result["other_pairs"][0];
    assert_eq!(other["receiver"]["is_identical"], true, "{result}");
    assert_eq!(other["receiver"]["sha256"], other["source"]["sha256"].as_str().expect("a digest"), "{result}");
    lab
}

/// Counter of a node.
fn counter(status: &Value, of: &str, name: &str) -> u64 {
    let counters = if of == "backpressure" { &status[of]["counters"] } else { &status[of] };
    counters[name].as_u64().unwrap_or_else(|| panic!("no {name} of {of} in {status}"))
}

/// Drops of packets that came in at a node's port.
fn drops<'s>(status: &'s Value, port: &str) -> &'s serde_json::Map<String, Value> {
    let ports = status["ports"].as_array().expect("ports");
    let port = ports.iter().find(|other| other["name"] == port).expect("the port");
    port["drops"].as_object().expect("drops")
}

fn fields(packet: &BTreeMap<String, String>, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| packet[*name].clone()).collect()
}

/// CN-3-1, CN-4.2-1, CN-4.2-2, D64: from R1 to END.E, without an SRH; from PE1 on as if there were no WAN, across its
/// border. H1 slows down; H2, which does not support the option, gets CNPs for its own queue pair (D48).
#[test]
#[ignore = "needs root"]
fn senders_are_notified_across_the_wan() {
    let lab = transferred(&[]);
    let names = ["ipv6.src", "ipv6.dst", "ipv6.opt.experimental", "infiniband.bth.opcode", "infiniband.bth.destqp"];
    let in_tunnel = lab.tshark("PE1-R1", FAST_CNPS, &names);
    let to = |host: &str, option: &str, qpn: &str| {
        let outer = [format!("{ROUTER},{ROUTER}"), format!("{END_E},2001:db8:aa::{host}")];
        let expected = [&outer[..], &[option, "129", qpn].map(str::to_owned)].concat();
        in_tunnel.iter().filter(|packet| fields(packet, &names) == expected).count()
    };
    let to_h1 = to("1", "20010db800bb00000000000000000001", "0x001001");
    let to_h2 = to("2", "20010db800bb00000000000000000002", "0x001002");
    assert!(to_h1 > 0 && to_h2 > 0 && to_h1 + to_h2 == in_tunnel.len(), "{to_h1} {to_h2} {in_tunnel:?}");

    let told = lab.tshark("H1-G1", FAST_CNPS, &names);
    let expected = [ROUTER, "2001:db8:aa::1", "20010db800bb00000000000000000001", "129", "0x001001"];
    assert_eq!(told.len(), to_h1);
    assert!(told.iter().all(|packet| fields(packet, &names) == expected), "{told:?}");
    let names = ["ipv6.src", "ipv6.dst", "infiniband.bth.destqp", "frame.len"];
    let standard = lab.tshark("H2-G1", "infiniband.bth.opcode == 129", &names);
    assert_eq!(standard.len(), to_h2);
    let expected = ["2001:db8:bb::2", "2001:db8:aa::2", "0x000100", "94"];
    assert!(standard.iter().all(|packet| fields(packet, &names) == expected), "{standard:?}");
    assert_eq!(lab.tshark("H2-G1", "ipv6.dstopts", &["frame.number"]).len(), 0);
    lab.check_icrcs("H2-G1");

    let (router, pe) = (lab.status("R1"), lab.status("PE1"));
    assert_eq!(counter(&router, "fast_cnp", "sent_by_end_e"), in_tunnel.len() as u64, "{router}");
    assert_eq!(counter(&router, "fast_cnp", "unknown_ingress"), 0, "{router}");
    assert_eq!(counter(&pe, "fast_cnp", "translated"), to_h2 as u64, "{pe}");
    assert!(drops(&pe, "r1").is_empty(), "{pe}");
    let said = lab.said("H1");
    assert!(said["rate"]["least_bits_per_s"].as_u64().expect("a rate") < 1_000_000_000, "{said}");
}

/// CN-4.1-1 to CN-4.1-3, D60, D62: notifications go to END.C and no further; PE1 pauses class 3 of G1, which honours, so
/// that nothing is lost at the bottleneck.
#[test]
#[ignore = "needs root"]
fn the_gateway_is_paused_across_the_wan() {
    let lab = transferred(&[]);
    let names = ["ipv6.src", "ipv6.dst", "ipv6.tclass.dscp", "icmpv6.code", "icmpv6.checksum.status"];
    let notifications = lab.tshark("PE1-R1", "icmpv6.type == 200", &names);
    let expected = [format!("{ROUTER},{ROUTER}"), format!("{END_C},{END_C}"), "48,48".to_owned()];
    let (mut asked, mut eased) = (0, 0);
    for packet in &notifications {
        assert_eq!(fields(packet, &names[..3]), expected, "{packet:?}");
        assert_eq!(packet["icmpv6.checksum.status"], "1", "{packet:?}");
        match packet["icmpv6.code"].as_str() {
            "0" => asked += 1,
            "1" => eased += 1,
            other => panic!("code {other}"),
        }
    }
    assert_eq!(lab.tshark("G1-PE1", "icmpv6.type == 200", &["frame.number"]).len(), 0);

    let names = ["eth.src", "macc.opcode", "macc.cbfc.enbv", "macc.cbfc.pause_time.c3"];
    let frames = lab.tshark("G1-PE1", "eth.type == 0x8808", &names);
    let (mut pauses, mut resumes) = (0, 0);
    for frame in &frames {
        assert_eq!(fields(frame, &names[..3]), [PE1, "0x0101", "0x0008"], "{frame:?}");
        match frame["macc.cbfc.pause_time.c3"].as_str() {
            "4000" => pauses += 1,
            "0" => resumes += 1,
            other => panic!("a pause of {other} quanta"),
        }
    }
    assert!(asked > 0 && eased > 0 && pauses > 0 && resumes > 0, "{asked} {eased} {pauses} {resumes}");

    let [gateway, pe, router] = ["G1", "PE1", "R1"].map(|node| lab.status(node));
    let sent = |name| counter(&router, "backpressure", name);
    assert_eq!((sent("pauses_sent") + sent("refreshes_sent"), sent("resumes_sent")), (asked, eased), "{router}");
    let taken = |name| counter(&pe, "backpressure", name);
    assert_eq!((taken("pauses_received"), taken("resumes_received")), (asked, eased), "{pe}");
    let heard = &class(&gateway, "pe1", 3)["pfc"];
    assert_eq!((heard["pauses_received"].as_u64(), heard["resumes_received"].as_u64()), (Some(pauses), Some(resumes)));
    assert!(heard["paused_ns"].as_u64() > Some(0), "{gateway}");
    assert_eq!(class(&router, "r2", 3)["drops"]["queue_full"], 0, "{router}");
    assert!(drops(&router, "pe1").is_empty() && drops(&gateway, "h1").is_empty(), "{router} {gateway}");
    assert_eq!(pe["backpressure"]["received"], Value::Array(Vec::new()), "{pe}");
}

/// D61: a class without a mapping at the PE pauses no port. Each notification is counted as a drop, and the data still
/// arrive, since the senders slow down.
#[test]
#[ignore = "needs root"]
fn an_unmapped_class_pauses_no_port() {
    let lab = transferred(&[("traffic_class = 3, ports", "traffic_class = 5, ports")]);
    assert_eq!(lab.tshark("G1-PE1", "eth.type == 0x8808", &["frame.number"]).len(), 0);
    let notifications = lab.tshark("PE1-R1", "icmpv6.type == 200", &["frame.number"]).len() as u64;
    let pe = lab.status("PE1");
    assert!(notifications > 0);
    assert_eq!(drops(&pe, "r1")["backpressure_unmapped"].as_u64(), Some(notifications), "{pe}");
}

/// Destination addresses in all headers of the packets of a link's capture that pass a display filter.
fn destinations(lab: &Lab, link: &str, filter: &str) -> Vec<String> {
    lab.tshark(link, filter, &["ipv6.dst"]).iter().map(|packet| packet["ipv6.dst"].clone()).collect()
}

/// CN-5.1-1, CN-5.1-2: R1 has no list of SIDs. It learns those of PE1 by IS-IS, requests pauses from PE1 by END.C, and
/// notifies the sender by END.E.
#[test]
#[ignore = "needs root"]
fn learnt_sids_are_used_for_pauses_and_fast_cnps() {
    let lab = Lab::new("wan-isis", &[]);
    assert!(!std::fs::read_to_string(&lab.file).expect("a lab").contains("[[node.config.backpressure_sids]]"));
    lab.transfer();
    let notifications = destinations(&lab, "PE1-R1", "icmpv6.type == 200");
    let fast_cnps = destinations(&lab, "PE1-R1", FAST_CNPS);
    assert!(notifications.iter().all(|to| *to == format!("{END_C},{END_C}")), "{notifications:?}");
    assert!(fast_cnps.iter().all(|to| *to == format!("{END_E},2001:db8:aa::1")), "{fast_cnps:?}");

    let [pe, router] = ["PE1", "R1"].map(|node| lab.status(node));
    let [asked, eased] = ["pauses_received", "resumes_received"].map(|name| counter(&pe, "backpressure", name));
    assert!(asked > 0 && eased > 0, "{pe}");
    assert_eq!(asked + eased, notifications.len() as u64, "{pe}");
    let told = fast_cnps.len() as u64;
    assert!(told > 0, "{router}");
    assert_eq!(counter(&router, "fast_cnp", "sent_by_end_e"), told, "{router}");
    assert_eq!(counter(&pe, "fast_cnp", "translated"), told, "{pe}");
    assert!(class(&pe, "s", 3)["pfc"]["pauses_sent"].as_u64() > Some(0), "{pe}");
}

/// D65: PE1 announces the same SIDs, but not that it handles notifications. No notification is sent to it.
#[test]
#[ignore = "needs root"]
fn no_node_without_the_c_flag_is_notified() {
    let lab = Lab::new("wan-isis", &[("congestion_notification = true", "congestion_notification = false")]);
    lab.transfer();
    for filter in ["icmpv6.type == 200", FAST_CNPS] {
        assert_eq!(destinations(&lab, "PE1-R1", filter), [""; 0], "{filter}");
    }
    let router = lab.status("R1");
    assert!(counter(&router, "backpressure", "unknown_ingress") > 0, "{router}");
    assert_eq!(counter(&router, "fast_cnp", "sent_by_end_e"), 0, "{router}");
}
