//! `[isis]`: announcements, and contradictions.

use super::errors::{EDGE, refused_with};
use super::parse;
use srdma_capture::Reader;
use srdma_isis::tlv::{CapabilityFlags, EndSid, Locator, TopologyId, kind};
use srdma_isis::{CircuitType, Key, Level, Levels, Lsp, Pdu, PduKind, frame};
use srdma_node::IsisSettings;
use std::path::Path;

/// From line 27 of the edge on.
const ISIS: &str = "[isis]\nnet = '49.0001.0000.0000.0009.00'\n";

fn settings(more: &str) -> IsisSettings {
    parse(&format!("{EDGE}{more}")).expect("right").isis.expect("it speaks IS-IS")
}

#[track_caller]
fn refused(more: &str, message: &str) {
    refused_with(EDGE, &format!("{ISIS}{more}"), message);
}

/// The locator that scapy's LSP of system 9 announces.
fn golden_locator() -> Locator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_08_isis.pcap");
    let octets = Reader::open(&path).expect("a capture").next().expect("a packet").expect("a packet").octets;
    let pdu = Pdu::parse(frame::unwrap(&octets).expect("IS-IS")).expect("a PDU");
    assert_eq!(pdu.kind, PduKind::Lsp(Level::Two));
    let lsp = Lsp::parse(&pdu, Level::Two).expect("an LSP");
    let value = lsp.tlvs().of_kind(kind::SRV6_LOCATOR).next().expect("a locator");
    Locator::parse_all(value).expect("right").remove(0)
}

#[test]
fn a_node_is_named_after_its_file_and_works_at_level_2() {
    let settings = settings(ISIS);
    let system = &settings.system;
    assert_eq!((system.system.to_string(), system.hostname.as_str()), ("0000.0000.0009".to_owned(), "node"));
    assert_eq!((system.areas.as_slice(), system.levels), ([vec![0x49, 0, 1]].as_slice(), Levels::Two));
    assert_eq!((system.capability.srv6, system.is_overloaded, system.key.as_ref()), (None, false, None));
    let prefixes: Vec<String> = system.prefixes.iter().map(|reachable| reachable.prefix.to_string()).collect();
    assert_eq!(prefixes, ["2001:db8:1::1/128"], "its loopback");
    assert_eq!((settings.behaviors.end_c, settings.behaviors.end_e), (0x8001, 0x8002), "CN-7-1");
}

/// D263.
#[test]
fn a_node_may_work_at_both_levels() {
    let with = |more: &str| settings(&format!("{ISIS}{more}")).system;
    assert_eq!((with("level = 1\n").levels, with("level = 2\n").levels), (Levels::One, Levels::Two));
    let both = with("level = '1-2'\nleak_down = ['5f00::/16']\n");
    assert_eq!((both.levels, both.leak_down), (Levels::Both, vec!["5f00::/16".parse().unwrap()]));
    refused("level = 3\n", "29: invalid value: integer `3`, expected 1, 2 or \"1-2\"");
    refused("level = '2-1'\n", "29: invalid value: string \"2-1\", expected 1, 2 or \"1-2\"");
    let text = "30: leak_down without level = \"1-2\": routes of level 2 leak by a node at both levels";
    refused("level = 2\nleak_down = ['5f00::/16']\n", text);
}

/// D266.
#[test]
fn backups_are_off_by_default() {
    assert_eq!((settings(ISIS).ti_lfa, settings(&format!("{ISIS}ti_lfa = true\n")).ti_lfa), (false, true));
}

/// D287.
#[test]
fn backups_avoid_neighbours_unless_the_file_says_otherwise() {
    let of = |more: &str| settings(&format!("{ISIS}ti_lfa = true\n{more}")).node_protection;
    assert_eq!(["", "node_protection = true\n", "node_protection = false\n"].map(of), [true, true, false]);
    refused("node_protection = false\n", "29: node_protection without ti_lfa = true: there are no backups");
}

/// D247: as FRR with `topology ipv6-unicast`.
#[test]
fn multi_topology_is_of_ipv6() {
    let rest = "locator = [{ prefix = '2001:db8:1::/48' }]\n";
    let standard = settings(&format!("{ISIS}{rest}")).system;
    assert_eq!((standard.topology, standard.locators[0].topology), (TopologyId::STANDARD, TopologyId::STANDARD));
    let of_ipv6 = settings(&format!("{ISIS}multi_topology = true\n{rest}")).system;
    assert_eq!((of_ipv6.topology, of_ipv6.locators[0].topology), (TopologyId::IPV6_UNICAST, TopologyId::IPV6_UNICAST));
}

/// D248.
#[test]
fn circuits_are_point_to_point_or_lans() {
    let kind = |more: &str| settings(&format!("{ISIS}circuit = [{{ port = 'up'{more} }}]\n")).circuits[0].kind;
    assert_eq!(kind(""), CircuitType::PointToPoint);
    assert_eq!(kind(", type = 'point-to-point'"), CircuitType::PointToPoint);
    assert_eq!(kind(", type = 'broadcast'"), CircuitType::Broadcast { priority: 64 });
    assert_eq!(kind(", type = 'broadcast', priority = 0"), CircuitType::Broadcast { priority: 0 });
    let text = "29: priority without type = \"broadcast\": a point-to-point circuit has no election";
    refused("circuit = [{ port = 'up', priority = 7 }]\n", text);
    let text = "29: invalid value: integer `128`, expected an integer from 0 to 127";
    refused("circuit = [{ port = 'up', type = 'broadcast', priority = 128 }]\n", text);
    let text = "29: unknown value `lan`, expected `point-to-point` or `broadcast`";
    refused("circuit = [{ port = 'up', type = 'lan' }]\n", text);
}

/// A pseudonode's number is an octet.
#[test]
fn only_the_first_255_circuits_can_be_lans() {
    let ports: String =
        (0..256).map(|number| format!("[[port]]\nname = 'p{number}'\nmac = '02:00:00:00:01:{number:02x}'\n")).collect();
    let of = |lan: usize| {
        let circuit = |number: usize| {
            let kind = if number == lan { "broadcast" } else { "point-to-point" };
            format!("[[isis.circuit]]\nport = 'p{number}'\ntype = '{kind}'\n")
        };
        (0..256).map(circuit).collect::<String>()
    };
    assert_eq!(
        settings(&format!("{ports}{ISIS}{}", of(254))).circuits[254].kind,
        CircuitType::Broadcast { priority: 64 }
    );
    let Err(error) = parse(&format!("{EDGE}{ports}{ISIS}{}", of(255))) else { panic!("255 circuits are too many") };
    assert!(error.ends_with(": a LAN beyond the 255th circuit: its pseudonode has no number"), "{error}");
}

/// RFC 9352 section 8: with the address by which the neighbour of a LAN is found.
#[test]
fn adjacency_sids_are_announced_with_their_neighbours() {
    let sid = "[[sid]]\nsid = '2001:db8:1:a::1'\nbehavior = 'End.X'\nnext_hop = '2001:db8:4::1%up'\n";
    let more = format!("{sid}{ISIS}locator = [{{ prefix = '2001:db8:1::/48' }}]\n");
    let found = |more: &str| {
        let end_x = settings(more).circuits[0].end_x.clone();
        end_x.iter().map(|(address, sid)| (address.to_string(), sid.sid.to_string())).collect::<Vec<_>>()
    };
    let expected = [("2001:db8:4::1".to_owned(), "2001:db8:1:a::1".to_owned())];
    assert_eq!(found(&format!("{more}circuit = [{{ port = 'up' }}]\n")), expected);
    assert_eq!(found(&format!("{more}circuit = [{{ port = 'up', type = 'broadcast' }}]\n")), expected);
}

/// D94.
#[test]
fn the_overload_bit_of_a_start_has_a_bound() {
    assert_eq!(settings(ISIS).system.timers.startup_s, 60);
    assert_eq!(settings(&format!("{ISIS}overload_on_start = '0s'\n")).system.timers.startup_s, 0);
    refused("overload_on_start = '1500ms'\n", "29: expected whole seconds from 0s to 65535s");
}

/// D68: the order of the sections does not matter.
#[test]
fn sids_are_announced_in_the_order_of_their_prefixes() {
    let sids = [
        "[[sid]]\nsid = '5f00:0:9::/48'\nbehavior = 'uN'\n",
        "[[sid]]\nsid = '5f00:0:9:d6::'\nbehavior = 'End.DT6'\n",
        "[[sid]]\nsid = '5f00:0:9:e000::/64'\nbehavior = 'End.DT6'\n",
    ];
    let rest = format!("{ISIS}locator = [{{ prefix = '5f00:0:9::/48' }}]\n");
    let sorted = settings(&format!("{}{rest}", sids.concat()));
    let announced: Vec<String> = sorted.system.locators[0].sids.iter().map(|sid| sid.sid.to_string()).collect();
    assert_eq!(announced, ["5f00:0:9::", "5f00:0:9:d6::", "5f00:0:9:e000::"]);
    let [first, second, third] = sids;
    assert_eq!(settings(&format!("{third}{first}{second}{rest}")), sorted);
}

/// CN-5.1-2, D65: as scapy's octets have it.
#[test]
fn sids_inside_a_locator_are_announced_with_it() {
    let golden = golden_locator();
    let sids = "[[sid]]\nsid = '5f00:0:9::/48'\nbehavior = 'uN'\n[[sid]]\nsid = '5f00:0:e001::/48'\nbehavior = 'uA'\n\
                next_hop = '2001:db8:4::1%up'\n[[sid]]\nsid = '5f00:0:9:d6::'\nbehavior = 'End.DT6'\n[[sid]]\nsid = '5f00:0:9:c000::'\nbehavior = 'END.C'\n\
                [[sid]]\nsid = '5f00:0:9:d000::'\nbehavior = 'END.E'\n[backpressure]\n";
    let more = format!(
        "{sids}{ISIS}congestion_notification = true\nlocator = [{{ prefix = '5f00:0:9::/48' }}]\n\
         circuit = [{{ port = 'up', metric = 5 }}]\n"
    );
    let settings = settings(&more);
    let locator = &settings.system.locators[0];
    assert_eq!((locator.prefix, locator.metric, locator.algorithm), (golden.prefix, 0, 0));
    assert_eq!(locator.sids[0], golden.sids[0], "uN");
    let end_dt6 = EndSid { behavior: 18, sid: "5f00:0:9:d6::".parse().unwrap(), structure: golden.sids[1].structure };
    assert_eq!(locator.sids[1], end_dt6);
    assert_eq!(locator.sids[2..], golden.sids[1..], "END.C and END.E");
    assert_eq!(locator.sids.len(), 4, "a SID of another block is not announced (RFC 9352 section 8)");
    assert_eq!(settings.system.capability.srv6, Some(CapabilityFlags::CONGESTION_NOTIFICATION), "CN-5.1-1");
    assert!(settings.system.prefixes.iter().any(|reachable| reachable.prefix == golden.prefix), "RFC 9352 section 5");
    assert_eq!((settings.circuits[0].metric, settings.circuits[0].end_x.len()), (5, 0));
}

#[test]
fn adjacency_sids_go_with_their_circuit() {
    let sid = "[[sid]]\nsid = '2001:db8:1:a::1'\nbehavior = 'End.X'\nflavors = ['PSP', 'USD']\n\
               next_hop = '2001:db8:4::1%up'\n";
    let more = format!("{sid}{ISIS}locator = [{{ prefix = '2001:db8:1::/48' }}]\ncircuit = [{{ port = 'up' }}]\n");
    let settings = settings(&more);
    let (_, end_x) = &settings.circuits[0].end_x[0];
    // IANA, SRv6 Endpoint Behaviors: End.X with PSP & USD is 33.
    assert_eq!((end_x.behavior, end_x.sid.to_string()), (33, "2001:db8:1:a::1".to_owned()));
    assert_eq!(settings.circuits[0].metric, 10);
    // End.MT of the edge.
    assert_eq!(settings.system.locators[0].sids.iter().map(|sid| sid.behavior).collect::<Vec<_>>(), [0x8000]);
}

#[test]
fn keys_are_given_or_read_from_a_file() {
    let key = |more: &str| settings(&format!("{ISIS}{more}\n")).system.key;
    let secret: srdma_isis::Secret = b"secretkey".to_vec().into();
    let given = key("key = { secret = '7365637265746b6579' }");
    assert_eq!(given, Some(Key::Sha256 { key_id: 1, secret: secret.clone() }));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("key");
    std::fs::write(&file, "secretkey\n").expect("written");
    let of_file = key(&format!("key = {{ algorithm = 'hmac-md5', secret_file = '{}' }}", file.display()));
    assert_eq!(of_file, Some(Key::Md5 { secret }));
}

#[test]
fn contradictions_are_refused() {
    let net = "expected a network entity title such as \"49.0001.0000.0000.0009.00\": area, system id, and 00";
    let wrong = [
        "49.0001.0000.0000.0009.01",
        "49.0001.0000.0000.0009",
        "0000.0000.0009.00",
        "49.0001.0000.0000.000g.00",
        "49.0001.0000.0000.0000.00",
        "",
    ];
    for wrong in wrong {
        refused_with(
            EDGE,
            &format!("[isis]\nnet = '{wrong}'\n"),
            &format!("28: invalid value: string \"{wrong}\", {net}"),
        );
    }
    refused("circuit = [{ port = 'down' }]\n", "29: unknown port down: ports are up");
    refused("circuit = [{ port = 'up' }, { port = 'up' }]\n", "29: port up is a circuit already");
    refused("refresh = '1200s'\n", "29: refresh must be less than lifetime, which is 1200s: LSPs would end before");
    refused("lifetime = '90500ms'\n", "29: expected whole seconds from 60s to 65535s");
    refused("hello = '1us'\n", "29: expected a time from 10ms to 600s");
    let text = "28: congestion_notification without an [[isis.locator]]: there is no SID to send notifications to";
    refused("congestion_notification = true\n", text);
    refused("key = { id = 7 }\n", "29: expected exactly one of secret and secret_file");
    let text = "29: algorithm hmac-md5 has no key id (RFC 5304)";
    refused("key = { algorithm = 'hmac-md5', id = 7, secret = '0011223344556677' }\n", text);
}

#[test]
fn secrets_are_not_shown() {
    let text = "29: wrong value, not shown here: expected a string of 8 to 64 octets, each two hexadecimal digits";
    refused("key = { secret = 'hunter2hunter2' }\n", text);
}
