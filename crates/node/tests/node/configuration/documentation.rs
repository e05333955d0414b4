//! The document has all keys, no others, and an example that works.

use super::parse;
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../../docs/configuration.md");

/// The example of the document.
pub(crate) fn example() -> &'static str {
    let (_, example) = DOCUMENT.split_once("```toml\n").expect("the document has an example");
    example.split_once("```").expect("the example ends").0
}

/// The sections: their headings, and a file in which an unknown key of the section can stand.
const SECTIONS: &[(&str, &str)] = &[
    ("[node]", "[node]\nzzz = 1"),
    ("[daemon]", "[daemon]\nzzz = 1"),
    ("[[port]]", "[[port]]\nzzz = 1"),
    ("[domain]", "[domain]\nzzz = 1"),
    ("[[inside]]", "[[inside]]\nzzz = 1"),
    ("[[border]]", "[[border]]\nzzz = 1"),
    ("[[neighbour]]", "[[neighbour]]\nzzz = 1"),
    ("[[route]]", "[[route]]\nzzz = 1"),
    ("[[route.path]]", "[[route]]\npath = [{ zzz = 1 }]"),
    ("[route.path.template]", "[[route]]\npath = [{ template = { zzz = 1 } }]"),
    ("[[route.path.template.choice]]", "[[route]]\npath = [{ template = { choice = [{ zzz = 1 }] } }]"),
    ("[route.encaps]", "[[route]]\nencaps = { zzz = 1 }"),
    ("[[cross_connect]]", "[[cross_connect]]\nzzz = 1"),
    ("[[sr_policy]]", "[[sr_policy]]\nzzz = 1"),
    ("[[sr_policy.segment_list]]", "[[sr_policy]]\nsegment_list = [{ zzz = 1 }]"),
    ("[[multicast_route]]", "[[multicast_route]]\nzzz = 1"),
    ("[[shared_hosts]]", "[[shared_hosts]]\nzzz = 1"),
    ("[[sid]]", "[[sid]]\nzzz = 1"),
    ("[[hmac_key]]", "[[hmac_key]]\nzzz = 1"),
    ("[[group]]", "[[group]]\nzzz = 1"),
    ("[group.source]", "[[group]]\nsource = { zzz = 1 }"),
    ("[group.parent]", "[[group]]\nparent = { zzz = 1 }"),
    ("[[group.branches]]", "[[group]]\nbranches = [{ zzz = 1 }]"),
    ("[group.receiver.joined]", "[[group]]\nreceiver = [{ joined = { zzz = 1 } }]"),
    ("[[group.receiver]]", "[[group]]\nreceiver = [{ zzz = 1 }]"),
    ("[group.region]", "[[group]]\nregion = { zzz = 1 }"),
    ("[[group.more_region]]", "[[group]]\nmore_region = [{ zzz = 1 }]"),
    ("[[group.receiver.more_regions]]", "[[group]]\nreceiver = [{ more_regions = [{ zzz = 1 }] }]"),
    ("[group.headend]", "[[group]]\nheadend = { zzz = 1 }"),
    ("[[group.headend.list]]", "[[group]]\nheadend = { list = [{ zzz = 1 }] }"),
    ("[group.repair]", "[[group]]\nrepair = { zzz = 1 }"),
    ("[group.policy]", "[[group]]\npolicy = { zzz = 1 }"),
    ("[learning]", "[learning]\nzzz = 1"),
    ("[[traffic_class]]", "[[traffic_class]]\nzzz = 1"),
    ("[[egress]]", "[[egress]]\nzzz = 1"),
    ("[egress.watchdog]", "[[egress]]\nwatchdog = { zzz = 1 }"),
    ("[[egress.class]]", "[[egress]]\nclass = [{ zzz = 1 }]"),
    ("[egress.class.ecn]", "[[egress]]\nclass = [{ ecn = { zzz = 1 } }]"),
    ("[egress.class.backpressure]", "[[egress]]\nclass = [{ backpressure = { zzz = 1 } }]"),
    ("[egress.class.pfc]", "[[egress]]\nclass = [{ pfc = { zzz = 1 } }]"),
    ("[ioam]", "[ioam]\nzzz = 1"),
    ("[[ioam.namespace]]", "[ioam]\nnamespace = [{ zzz = 1 }]"),
    ("[ioam.namespace.opaque]", "[ioam]\nnamespace = [{ opaque = { zzz = 1 } }]"),
    ("[[ioam.interface]]", "[ioam]\ninterface = [{ zzz = 1 }]"),
    ("[fast_cnp]", "[fast_cnp]\nzzz = 1"),
    ("[backpressure]", "[backpressure]\nzzz = 1"),
    ("[[backpressure.priority]]", "[backpressure]\npriority = [{ zzz = 1 }]"),
    ("[[backpressure_sids]]", "[[backpressure_sids]]\nzzz = 1"),
    ("[steering]", "[steering]\nzzz = 1"),
    ("[steering.deny_list]", "[steering]\ndeny_list = { zzz = 1 }"),
    ("[[connection]]", "[[connection]]\nzzz = 1"),
    ("[[bfd]]", "[[bfd]]\nzzz = 1"),
    ("[isis]", "[isis]\nzzz = 1"),
    ("[isis.key]", "[isis]\nkey = { zzz = 1 }"),
    ("[[isis.locator]]", "[isis]\nlocator = [{ zzz = 1 }]"),
    ("[[isis.circuit]]", "[isis]\ncircuit = [{ zzz = 1 }]"),
    ("[ospf]", "[ospf]\nzzz = 1"),
    ("[[ospf.locator]]", "[ospf]\nlocator = [{ zzz = 1 }]"),
    ("[[ospf.circuit]]", "[ospf]\ncircuit = [{ zzz = 1 }]"),
    ("[controller]", "[controller]\nzzz = 1"),
    ("[[controller.link]]", "[controller]\nlink = [{ zzz = 1 }]"),
];

/// Keys that the code accepts, from an error.
fn keys_of_code(file: &str) -> BTreeSet<String> {
    let error = parse(file).expect_err("zzz is no key");
    let (found, expected) = error.split_once(", expected ").expect("the error says what was expected");
    assert!(found.ends_with("unknown key `zzz`"), "{error}");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The keys that the table under a heading has.
fn keys_of_document(heading: &str) -> BTreeSet<String> {
    let title = format!("# `{heading}`\n");
    let (_, section) = DOCUMENT.split_once(&title).unwrap_or_else(|| panic!("no heading {heading}"));
    let table = section.trim_start().split("\n\n").find(|part| part.starts_with("| key |")).expect("a table of keys");
    table
        .lines()
        .skip(2)
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key.to_owned())
        .collect()
}

#[test]
fn every_key_is_documented_and_no_other() {
    for (heading, file) in SECTIONS {
        assert_eq!(keys_of_code(file), keys_of_document(heading), "{heading}");
    }
    let headings: BTreeSet<_> = SECTIONS.iter().map(|(heading, _)| heading.trim_matches(['[', ']'])).collect();
    let top: BTreeSet<_> =
        headings.iter().filter(|heading| !heading.contains('.')).map(|heading| (*heading).to_owned()).collect();
    assert_eq!(keys_of_code("zzz = 1"), top);
}

/// Every key occurs in the example, which a node takes.
#[test]
fn the_example_is_complete() {
    let configuration = parse(example()).expect("the example is right");
    let node = configuration.node().expect("a node takes it");
    assert_eq!(node.groups().count(), 3);
    assert_eq!(node.sid_counters().count(), 15);
    assert_eq!(configuration.spec.node.ports.len(), 6);
    assert_eq!(configuration.spec.entries.multicast_routes.len(), 2);
    for (heading, _) in SECTIONS {
        for key in keys_of_document(heading) {
            let occurs = [format!("{key} = "), format!(".{key}]"), format!("[{key}]")];
            assert!(occurs.iter().any(|text| example().contains(text)), "{heading} {key} is not in the example");
        }
    }
}
