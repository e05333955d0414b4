//! `[domain]` and `[[border]]`: contradictions, and the resulting configuration.

use super::errors::{TRANSIT, refused_with};
use super::parse;
use srdma_dataplane::Command;
use srdma_frame::PortId;
use srdma_node::{Configuration, Purpose};
use std::collections::BTreeMap;
use std::path::Path;

/// The domain of the transit node, from line 32 on.
const DOMAIN: &str = "\
[domain]
sids = ['2001:db8:4::f']
infrastructure = ['2001:db8:4::/64', '2001:db8:6::/64']
proxies = ['2001:db8:cc::/48']
";

#[track_caller]
fn refused(more: &str, message: &str) {
    refused_with(TRANSIT, more, message);
}

/// MT-9-2: the commands come before those of SIDs and groups.
#[test]
fn a_node_has_its_boundary_from_the_file() {
    let border = "[[border]]\nport = 'down'\nsources = ['2001:db8:bb::/64', '2001:db8:1::1']\n";
    let configuration = parse(&format!("{TRANSIT}{DOMAIN}{border}")).expect("right");
    let commands = configuration.spec.commands();
    let [Command::SetDomain(domain), border, Command::SetBorder { port: PortId(1), sources }, ..] = commands.as_slice()
    else {
        panic!("{commands:?}");
    };
    let text = |prefixes: &[srdma_wire::Prefix]| prefixes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(text(&domain.sids), ["2001:db8:4::f/128"]);
    assert_eq!(text(&domain.infrastructure), ["2001:db8:4::/64", "2001:db8:6::/64"]);
    assert_eq!(text(&domain.proxies), ["2001:db8:cc::/48"]);
    assert_eq!(text(sources), ["2001:db8:bb::/64", "2001:db8:1::1/128"]);
    assert!(matches!(border, Command::SetBorder { port: PortId(0), sources } if sources.is_empty()));
    assert!(!configuration.node().expect("a node takes it").has_open_sids());
    assert!(parse(TRANSIT).expect("right").node().expect("a node takes it").has_open_sids());
}

/// D129: a port that nothing names is a border.
#[test]
fn ports_are_borders_unless_they_are_inside() {
    let borders = |more: &str| {
        let entries = parse(&format!("{TRANSIT}{DOMAIN}{more}")).expect("right").spec.entries;
        entries.borders.into_keys().collect::<Vec<_>>()
    };
    let inside = |port: &str| format!("[[inside]]\nport = '{port}'\n");
    assert_eq!(borders(""), [PortId(0), PortId(1)]);
    assert_eq!(borders(&inside("up")), [PortId(1)]);
    assert_eq!(borders(&[inside("up"), inside("down")].concat()), []);
    refused(&inside("up"), "33: port up is inside of nothing: there is no [domain]");
    let up = format!("{DOMAIN}{}", inside("up"));
    refused(&format!("{up}{}", inside("up")), "39: port up is inside already");
    refused(&format!("{up}[[border]]\nport = 'up'\n"), "39: port up is inside, or a border already");
    refused(&format!("{DOMAIN}{}", inside("middle")), "37: unknown port middle: ports are up, down");
}

/// D129: a node on interfaces is open to every sender only if its file says so.
#[test]
fn open_sids_have_to_be_intended() {
    let known = BTreeMap::new();
    let read = |text: &str| {
        let read = Configuration::parse_for(Path::new("n4.toml"), text, Purpose::Interfaces(&known));
        read.map(|_| ()).map_err(|error| error.to_string())
    };
    let open = TRANSIT.replacen("[node]\n", "[node]\nopen = true\n", 1);
    assert_ne!(open, TRANSIT);
    let refused = read(TRANSIT).expect_err("it is open");
    assert!(refused.contains("add [domain], and [[inside]] for each port") && refused.contains("`open = true`"));
    read(&open).expect("it is intended");
    read(&format!("{TRANSIT}{DOMAIN}")).expect("it is closed");
    let both = read(&format!("{open}{DOMAIN}")).expect_err("a contradiction");
    assert!(both.contains("`open = true`, but there is a [domain]"), "{both}");
    let controlled = "[node]\nloopback = '2001:db8::1'\n[controller]\nurl = 'http://[::1]:8470'\n\
                      replication = '2001:db8:f::/96'\n";
    assert!(read(controlled).expect_err("the controller gives it SIDs").contains("every sender may use the SIDs"));
    read("[node]\nloopback = '2001:db8::1'\n").expect("it has no SID");
}

/// The node's addresses lie in the domain; the error stands where they do not.
#[test]
fn a_domain_without_its_node_is_refused() {
    let without = |from: &str, to: &str| DOMAIN.replace(from, to);
    refused(&without("'2001:db8:4::/64', ", ""), LOOPBACK);
    refused(&without("4::f", "5::f"), "19: SID 2001:db8:4::f/128 is in none of the domain's blocks of SIDs");
    refused(
        &without("proxies = ['2001:db8:cc::/48']\n", ""),
        "23: Proxy Address 2001:db8:cc::1 of group 7 is in none of the domain's prefixes of Proxy Addresses",
    );
    refused(&without("'2001:db8:6::/64'", "\n'::/0'"), "35: ::/0 is no domain: everything would be inside it");
}

const LOOPBACK: &str = "32: the node's loopback 2001:db8:4::1 is in none of the domain's infrastructure prefixes";

#[test]
fn a_border_that_contradicts_itself_is_refused() {
    refused(
        "[[border]]\nport = 'up'\n",
        "33: the border at port up keeps nothing out: there is neither [domain] nor `sources`",
    );
    refused("[[border]]\nport = 'middle'\n", "33: unknown port middle: ports are up, down");
    let border = format!("{DOMAIN}[[border]]\nport = 'up'\n");
    refused(&format!("{border}[[border]]\nport = 'up'\n"), "39: port up is inside, or a border already");
    refused(
        &format!("{border}sources = [\n'2001:db8:bb::/64',\n'2001:db8::/32']\n"),
        "40: sources 2001:db8::/32 meet 2001:db8:4::f/128, which [domain] has: hosts have none of it",
    );
    refused(&format!("{border}sources = ['2001:db8:bb::1/64']\n"), PREFIX);
}

const PREFIX: &str = "38: invalid value: string \"2001:db8:bb::1/64\", expected a unicast address or prefix such as \
                      \"2001:db8::/32\" or \"192.0.2.0/24\", all bits behind its length zero";
