//! `[domain]` and `[[border]]`: contradictions, and the resulting configuration.

use super::errors::{TRANSIT, refused_with};
use super::parse;
use srdma_dataplane::Command;
use srdma_frame::PortId;

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
    let configuration = parse(&format!("{TRANSIT}{DOMAIN}{border}[[border]]\nport = 'up'\n")).expect("right");
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
    refused(&format!("{border}[[border]]\nport = 'up'\n"), "39: port up is a border already");
    refused(
        &format!("{border}sources = [\n'2001:db8:bb::/64',\n'2001:db8::/32']\n"),
        "40: sources 2001:db8::/32 meet 2001:db8:4::f/128, which [domain] has: hosts have none of it",
    );
    refused(&format!("{border}sources = ['2001:db8:bb::1/64']\n"), PREFIX);
}

const PREFIX: &str = "38: invalid value: string \"2001:db8:bb::1/64\", expected a unicast IPv6 address or prefix such as \
                      \"2001:db8::/32\", all bits behind its length zero";
