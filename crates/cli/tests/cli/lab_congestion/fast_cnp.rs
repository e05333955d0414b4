//! The lab `fast-cnp`: one queue notifies three senders, each by its own capability, on real wires.

use crate::lab_congestion::lab::class;
use crate::own_lab::Lab;
use serde_json::Value;
use std::collections::BTreeMap;

const SWITCH: &str = "2001:db8:ff:2::1";
const RECEIVER: &str = "2001:db8:bb::1";

/// Fast CNPs: Destination Options before UDP.
const FAST_CNPS: &str = "ipv6.dstopts && udp.port == 4791 && !icmpv6";

/// The lab after a transfer from this host.
fn transferred_from(source: &str) -> Lab {
    let lab = Lab::new("fast-cnp", &[("source = \"S2\"", &format!("source = \"{source}\""))]);
    lab.transfer();
    lab
}

/// Counter of Fast CNP at a node.
fn counter(status: &Value, name: &str) -> u64 {
    status["fast_cnp"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
}

/// Data packets that left marked CE toward the receiver.
fn marked(lab: &Lab) -> usize {
    lab.tshark("N2-R", "ipv6.tclass.ecn == 3", &["frame.number"]).len()
}

/// The Fast CNPs on a link, each in the draft's format: from the switch to the sender, with the receiver's address in
/// its option (FC-4-1, FC-4-2, D40, D44), and an ICRC as if the option were not there (D43).
fn fast_cnps(lab: &Lab, link: &str, sender: &str) -> Vec<BTreeMap<String, String>> {
    let fields = [
        "ipv6.src",
        "ipv6.dst",
        "ipv6.tclass.dscp",
        "ipv6.tclass.ecn",
        "ipv6.opt.type",
        "ipv6.opt.length",
        "ipv6.opt.experimental",
        "udp.dstport",
        "udp.checksum",
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
    ];
    let found = lab.tshark(link, FAST_CNPS, &fields);
    for packet in &found {
        let expected = [
            ("ipv6.src", SWITCH),
            ("ipv6.dst", sender),
            ("ipv6.tclass.dscp", "48"),
            ("ipv6.tclass.ecn", "0"),
            ("ipv6.opt.type", "0x9e,0x01"),
            ("ipv6.opt.length", "16,2"),
            ("ipv6.opt.experimental", "20010db800bb00000000000000000001"),
            ("udp.dstport", "4791"),
            ("udp.checksum", "0x0000"),
            ("infiniband.bth.opcode", "129"),
            ("infiniband.bth.destqp", "0x001001"),
        ];
        for (field, value) in expected {
            assert_eq!(packet[field], value, "{field} of {packet:?}");
        }
    }
    found
}

/// FC-4-3, D47: the kernel of S1 answers with Parameter Problem code 2; the node stops telling it and marks instead.
#[test]
#[ignore = "needs root"]
fn a_kernel_without_fast_cnp_gets_no_further_ones() {
    let lab = transferred_from("S1");
    let told = fast_cnps(&lab, "S1-N2", "2001:db8:aa::1");
    let errors =
        lab.tshark("S1-N2", "icmpv6.type == 4 && icmpv6.code == 2 && ipv6.src == 2001:db8:aa::1", &["ipv6.dst"]);
    let status = lab.status("N2");
    assert!(!told.is_empty() && !errors.is_empty(), "{} {}", told.len(), errors.len());
    assert!(errors[0]["ipv6.dst"].starts_with(SWITCH), "{:?}", errors[0]);
    assert!(counter(&status, "refusals") > 0 && counter(&status, "incapable") > 0, "{status}");
    assert_eq!(counter(&status, "foreign_refusals"), 0, "{status}");
    assert_eq!(counter(&status, "sent"), told.len() as u64, "{status}");
    // Packets after the error meet the same queue, and cause no further Fast CNP.
    assert!(counter(&status, "incapable") > counter(&status, "sent"), "{status}");
    assert_eq!(class(&status, "r", 3)["marks"].as_u64(), Some(marked(&lab) as u64), "{status}");
    assert!(marked(&lab) > 0);
}

/// FC-4-6, FC-4-7: S2 takes the Fast CNPs for its queue pair; its packets are not marked.
#[test]
#[ignore = "needs root"]
fn a_host_with_fast_cnp_slows_down() {
    let lab = transferred_from("S2");
    let told = fast_cnps(&lab, "S2-N2", "2001:db8:aa::2");
    let status = lab.status("N2");
    assert!(!told.is_empty());
    assert_eq!(counter(&status, "sent"), told.len() as u64, "{status}");
    assert_eq!((counter(&status, "refusals"), counter(&status, "incapable")), (0, 0), "{status}");
    assert_eq!(marked(&lab), 0, "{status}");
    let said = lab.said("S2");
    // Those that come too soon after another are refused by name.
    let too_often = said["refused"]["fast_cnp_too_often"].as_u64().unwrap_or(0);
    let taken = said["fast_cnps"]["by_switch"][SWITCH].as_u64().expect("a number");
    assert_eq!(taken + too_often, told.len() as u64, "{said}");
    assert!(said["rate"]["least_bits_per_s"].as_u64().expect("a rate") < 1_000_000_000, "{said}");
}

/// FC-O-1, D48: S3 is given standard CNPs of its own queue pair, from the receiver's address, and no option.
#[test]
#[ignore = "needs root"]
fn a_host_behind_a_first_hop_gets_standard_cnps() {
    let lab = transferred_from("S3");
    let told = fast_cnps(&lab, "N1-N2", "2001:db8:aa::3");
    let fields = ["ipv6.src", "ipv6.dst", "infiniband.bth.destqp", "frame.len"];
    let standard = lab.tshark("S3-N1", "infiniband.bth.opcode == 129", &fields);
    assert!(!told.is_empty());
    assert_eq!(standard.len(), told.len());
    for cnp in &standard {
        // Ethernet, IPv6, UDP, BTH, 16 octets and ICRC, without an option.
        let found = fields.map(|field| cnp[field].as_str());
        assert_eq!(found, [RECEIVER, "2001:db8:aa::3", "0x000100", "94"], "{cnp:?}");
    }
    assert_eq!(lab.tshark("S3-N1", "ipv6.dstopts", &["frame.number"]).len(), 0);
    let (a, b) = (lab.status("N1"), lab.status("N2"));
    assert_eq!((counter(&a, "translated"), counter(&b, "sent")), (told.len() as u64, told.len() as u64), "{a}");
    assert_eq!(marked(&lab), 0, "{b}");
    let said = lab.said("S3");
    assert!(said["rate"]["least_bits_per_s"].as_u64().expect("a rate") < 1_000_000_000, "{said}");
    lab.check_icrcs("S3-N1");
}

/// S2, the source, is not at the first link of the file.
#[test]
#[ignore = "needs root"]
fn the_source_is_counted_at_its_own_link() {
    let lab = Lab::new("fast-cnp", &[]);
    let output = lab.command("run", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    let egress =
        text.lines().find_map(|line| line.strip_prefix("source egress")?.split('×').next()?.trim().parse().ok());
    assert!(egress.is_some_and(|times: f64| (1.0..1.5).contains(&times)), "{text}");
}
