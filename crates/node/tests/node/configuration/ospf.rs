//! `[ospf]`: announcements, and contradictions.

use super::errors::{EDGE, refused_with};
use super::parse;
use srdma_isis::tlv::{CapabilityFlags, SidStructure};
use srdma_node::OspfSettings;
use srdma_ospf::RouterId;
use srdma_ospf::lsa::PrefixOptions;

/// From line 27 of the edge on.
const OSPF: &str = "[ospf]\nrouter_id = '10.0.0.9'\n";

fn settings(more: &str) -> OspfSettings {
    parse(&format!("{EDGE}{OSPF}{more}")).expect("right").ospf.expect("it speaks OSPFv3")
}

#[track_caller]
fn refused(more: &str, message: &str) {
    refused_with(EDGE, &format!("{OSPF}{more}"), message);
}

#[test]
fn a_node_is_named_after_its_file_and_announces_its_loopback() {
    let OspfSettings { router, circuits, behaviors } = settings("");
    assert_eq!((router.router, router.hostname.as_str()), (RouterId(0x0A00_0009), "node"));
    assert_eq!((router.timers.hello_s, router.timers.dead_s, router.timers.retransmit_s), (10, 40, 5));
    assert_eq!((router.srv6, router.is_overloaded, circuits.len()), (None, false, 0));
    let prefixes: Vec<_> = router.prefixes.iter().map(|entry| (entry.prefix.to_string(), entry.options)).collect();
    assert_eq!(prefixes, [("2001:db8:1::1/128".to_owned(), PrefixOptions::LOCAL_ADDRESS)]);
    assert_eq!((behaviors.end_c, behaviors.end_e), (0x8001, 0x8002), "CN-7-1");
}

/// D277, CN-5.2-1: SIDs with their structure, those of adjacencies with their circuit.
#[test]
fn sids_are_announced_with_their_locator_and_their_circuit() {
    let rest = "congestion_notification = true\nlocator = [{ prefix = '5f00:0:9::/48', metric = 7 }]\n\
        circuit = [{ port = 'up', metric = 20 }]\n\
        [[sid]]\nsid = '5f00:0:9::/48'\nbehavior = 'uN'\n\
        [backpressure]\n[[neighbour]]\naddress = 'fe80::9%up'\nmac = '02:00:00:00:00:09'\n\
        [[sid]]\nsid = '5f00:0:9:c000::'\nbehavior = 'END.C'\n\
        [[sid]]\nsid = '5f00:0:9:e001::'\nbehavior = 'End.X'\nnext_hop = 'fe80::9%up'\n";
    let OspfSettings { router, circuits, .. } = settings(rest);
    assert_eq!(router.srv6, Some(CapabilityFlags::CONGESTION_NOTIFICATION));
    let locator = &router.locators[0];
    assert_eq!((locator.metric, locator.algorithm, locator.prefix.to_string()), (7, 0, "5f00:0:9::/48".to_owned()));
    let sids: Vec<_> = locator.sids.iter().map(|sid| (sid.behavior, sid.sid.to_string())).collect();
    assert_eq!(sids, [(48, "5f00:0:9::".to_owned()), (0x8001, "5f00:0:9:c000::".to_owned())]);
    assert_eq!(locator.sids[0].structure, Some(SidStructure::F3216));
    assert_eq!((circuits.len(), circuits[0].metric), (1, 20));
    let end_x: Vec<_> = circuits[0].end_x.iter().map(|sid| (sid.behavior, sid.sid.to_string())).collect();
    assert_eq!(end_x, [(5, "5f00:0:9:e001::".to_owned())]);
}

#[test]
fn contradictions_are_refused_with_their_line() {
    let text = "29: dead must be more than hello, which is 10s: neighbours would come and go";
    refused("dead = '10s'\n", text);
    refused("hello = '1500ms'\n", "29: expected whole seconds from 1s to 65535s");
    let text = "28: congestion_notification without an [[ospf.locator]]: there is no SID to send notifications to";
    refused("congestion_notification = true\n", text);
    let text = "29: expected a metric of 65534 at most: a prefix has 16 bits for it";
    refused("locator = [{ prefix = '5f00:0:9::/48', metric = 65535 }]\n", text);
    refused("circuit = [{ port = 'up' }, { port = 'up' }]\n", "29: port up is a circuit already");
    let text = "28: invalid value: string \"0.0.0.0\", expected a router id such as \"10.0.0.1\", other than 0.0.0.0";
    refused_with(EDGE, "[ospf]\nrouter_id = '0.0.0.0'\n", text);
}
