//! `[backpressure]`, `[[backpressure_sids]]`, `backpressure`, END.C and END.E: the resulting configuration, and
//! contradictions.

use super::errors::{TRANSIT, refused_with};
use super::parse;
use srdma_dataplane::{
    BackpressureConfig, BackpressureSids, BackpressureThresholds, Command, PriorityMapping, SidBehavior, TableId,
};
use srdma_frame::PortId;
use std::time::Duration;

/// From line 32 on.
const CLASSES: &str = "\
[[traffic_class]]
class = 3
dscps = [26]
[[egress]]
port = 'up'
rate_bits_per_s = 25_000_000_000
[[egress.class]]
class = 3
pfc = { xoff_octets = 300_000, xon_octets = 200_000, headroom_octets = 100_000 }
";

/// From line 41 on.
const BACKPRESSURE: &str = "\
[backpressure]
hold = '3ms'
per_second = 500
[[backpressure.priority]]
traffic_class = 5
ports = ['up']
priority = 3
";

const SIDS: &str = "\
[[backpressure_sids]]
outer_source = '2001:db8:9::/64'
end_c = '2001:db8:9::c'
[[backpressure_sids]]
outer_source = '2001:db8:9::1/128'
end_e = '2001:db8:9::d'
";

fn commands_of(more: &str) -> Vec<Command> {
    let configuration = parse(&format!("{TRANSIT}{more}")).expect("right");
    configuration.node().expect("a node takes it");
    configuration.spec.commands()
}

#[track_caller]
fn refused(more: &str, message: &str) {
    refused_with(TRANSIT, more, message);
}

/// D61, D66: times and limits, each class with its ports; refreshes at half of the hold time.
#[test]
fn a_pe_has_priorities_and_limits() {
    let commands = commands_of(&format!("{CLASSES}{BACKPRESSURE}"));
    let config = commands.iter().find_map(|command| match command {
        Command::SetBackpressure(config) => Some(config.as_ref().clone()),
        _ => None,
    });
    let expected = BackpressureConfig {
        hold: Duration::from_millis(3),
        refresh: Duration::from_micros(1500),
        priorities: vec![PriorityMapping { traffic_class: 5, ports: vec![PortId(0)], priority: 3 }],
        per_second: 500,
        ..BackpressureConfig::default()
    };
    assert_eq!(config, Some(expected));
}

/// D63, D67: the SIDs that a router has, and the threshold of its requests.
#[test]
fn a_router_has_its_notification_sids_from_the_file() {
    let backpressure = "backpressure = { xoff_octets = 9000, xon_octets = 4000 }\n";
    let commands = commands_of(&format!("{CLASSES}{backpressure}[backpressure]\n{SIDS}"));
    let sids = commands.iter().find_map(|command| match command {
        Command::SetBackpressureSids(sids) => Some(sids.clone()),
        _ => None,
    });
    let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap();
    let of = |source: &str, len, end_c: Option<&str>, end_e: Option<&str>| BackpressureSids {
        outer_source: srdma_wire::Prefix::new(address(source), len).unwrap(),
        end_c: end_c.map(address),
        end_e: end_e.map(address),
    };
    let expected =
        [of("2001:db8:9::", 64, Some("2001:db8:9::c"), None), of("2001:db8:9::1", 128, None, Some("2001:db8:9::d"))];
    assert_eq!(sids.as_deref(), Some(&expected[..]));
    let class = commands.iter().find_map(|command| match command {
        Command::SetEgress { egress, .. } => Some(egress.classes[3]),
        _ => None,
    });
    let expected = BackpressureThresholds { xoff_octets: 9000, xon_octets: 4000 };
    assert_eq!(class.and_then(|class| class.backpressure), Some(expected));
}

/// CN-4.1-1, CN-4.2-1: by the draft's names.
#[test]
fn sids_are_named_as_in_the_draft() {
    let sids = "[[sid]]\nsid = '2001:db8:4::c'\nbehavior = 'END.C'\n\
                [[sid]]\nsid = '2001:db8:4::d'\nbehavior = 'END.E'\ntable = 7\n";
    let commands = commands_of(&format!("{CLASSES}{BACKPRESSURE}{sids}"));
    let behaviors: Vec<SidBehavior> = commands
        .iter()
        .filter_map(|command| match command {
            Command::AddSid { behavior, .. } => Some(*behavior),
            _ => None,
        })
        .collect();
    assert_eq!(behaviors[..2], [SidBehavior::EndC, SidBehavior::EndE(TableId(7))]);
    refused(sids, "34: behavior END.C needs [backpressure], which has the priorities to pause");
    refused(
        &format!("{CLASSES}{BACKPRESSURE}[[sid]]\nsid = '2001:db8:4::c'\nbehavior = 'END.C'\ntable = 7\n"),
        "51: behavior END.C has no key table, it has none",
    );
}

#[test]
fn backpressure_that_cannot_work_is_refused() {
    let changed = |from: &str, to: &str| {
        assert_eq!(BACKPRESSURE.matches(from).count(), 1, "{from} occurs once");
        format!("{CLASSES}{}", BACKPRESSURE.replace(from, to))
    };
    let twice = &BACKPRESSURE[BACKPRESSURE.find("[[").unwrap()..];
    for (file, message) in [
        (changed("hold = '3ms'", "hold = '0s'"), "42: hold is shorter than 1 us, expected a time from there on"),
        (changed("hold = '3ms'", "refresh = '10ms'"), {
            "41: backpressure: pauses of 10ms with a refresh interval of 10ms have gaps"
        }),
        (
            changed("per_second = 500", "at_once = 0"),
            "43: invalid value: integer `0`, expected an integer from 1 to 4294967295",
        ),
        (changed("['up']", "[]"), "45: traffic class 5 has no port to be paused"),
        (changed("['up']", "['down']"), { "46: port down has no PFC in class 3: no [[egress.class]] of it has `pfc`" }),
        (changed("priority = 3", "priority = 2"), {
            "46: port up has no PFC in class 2: no [[egress.class]] of it has `pfc`"
        }),
        (format!("{CLASSES}{BACKPRESSURE}{twice}"), "49: traffic class 5 has a priority already"),
        (
            format!("{CLASSES}backpressure = {{ xoff_octets = 9, xon_octets = 4 }}\n"),
            "41: thresholds for backpressure without [backpressure]: no pause would be requested",
        ),
        (
            format!("{CLASSES}backpressure = {{ xoff_octets = 9, xon_octets = 9 }}\n[backpressure]\n"),
            "41: xon_octets is 9, expected less than xoff_octets, 9, or more for an early resume",
        ),
        (SIDS.replace("/64", "/128").replace("9::/", "9::1/"), "36: 2001:db8:9::1/128 has SIDs already"),
        (SIDS.replace("end_e = '2001:db8:9::d'\n", ""), "36: 2001:db8:9::1/128 has neither end_c nor end_e"),
    ] {
        refused(&file, message);
    }
}
