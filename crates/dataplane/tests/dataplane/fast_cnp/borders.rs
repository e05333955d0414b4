//! Borders of the controlled domain (FC-5-1).

use crate::common::Bench;
use crate::fast_cnp::packets::*;
use srdma_dataplane::{Command, Domain, FastCnpConfig};
use srdma_frame::PortId;

const HOST: &str = "2001:db8:bb::1";
const OUTSIDER: &str = "2001:db8:dd::1";

/// A node with hosts behind port 0, a foreign network behind port 1 and its domain behind port 2.
fn node() -> Bench {
    let mut bench = Bench::new(SWITCH, 3);
    for (text, port) in [("::/0", 1), ("2001:db8:bb::/48", 0), ("2001:db8:53::/48", 2), ("2001:db8:1::/48", 2)] {
        bench.route(text, port);
    }
    bench
}

fn guarded() -> Bench {
    let mut bench = node();
    bench.apply(Command::SetDomain(Domain {
        sids: vec![prefix("5f00::/32")],
        infrastructure: vec![prefix("2001:db8:53::/48")],
        proxies: Vec::new(),
    }));
    bench.apply(Command::SetBorder { port: PortId(0), sources: vec![prefix("2001:db8:bb::/48")] });
    bench.apply(Command::SetBorder { port: PortId(1), sources: Vec::new() });
    bench
}

/// The port that a packet leaves by, or why it was dropped.
fn outcome(bench: &mut Bench, port: u16, packet: &[u8]) -> Result<u16, &'static str> {
    let before = bench.drops(port);
    match &bench.send(port, packet)[..] {
        [(port, _)] => Ok(*port),
        _ => {
            let new: Vec<_> = bench.drops(port).into_iter().filter(|drop| !before.contains(drop)).collect();
            let [(reason, _)] = new[..] else { panic!("{new:?}") };
            Err(reason)
        }
    }
}

const AT_BORDER: Result<u16, &str> = Err("fast_cnp_at_border");

/// Neither in nor out, at either border; inside they pass, and so does everything else.
#[test]
fn no_fast_cnp_crosses_a_border() {
    for is_on in [false, true] {
        let mut bench = guarded();
        if is_on {
            turn_on(&mut bench, config());
        }
        for (port, source) in [(0, HOST), (1, OUTSIDER)] {
            assert_eq!(outcome(&mut bench, port, &fast_cnp(source, SENDER, RECEIVER, 7)), AT_BORDER, "in");
            assert_eq!(outcome(&mut bench, 2, &fast_cnp("2001:db8:53::2", source, RECEIVER, 7)), AT_BORDER, "out");
            assert_eq!(outcome(&mut bench, port, &cnp(source, SENDER, 7)), Ok(2), "a standard CNP");
            assert_eq!(outcome(&mut bench, 2, &cnp("2001:db8:53::2", source, 7)), Ok(port));
        }
        assert_eq!(outcome(&mut bench, 2, &fast_cnp("2001:db8:53::2", SENDER, RECEIVER, 7)), Ok(2), "inside");
    }
}

/// In every encapsulation: in a tunnel, in another header, malformed, with the configured type.
#[test]
fn fast_cnps_in_tunnels_do_not_cross_a_border() {
    let plain = fast_cnp(OUTSIDER, SENDER, RECEIVER, 7);
    let tunnelled = {
        let mut outer = vec![0x60, 0, 0, 0, 0, plain.len() as u8, 41, 64];
        outer.extend(address(OUTSIDER).octets());
        outer.extend(address(SENDER).octets());
        outer.extend(&plain);
        outer
    };
    let behind_padding = with_options(plain.clone(), &[1, 4, 0, 0, 0, 0]);
    let mut hop_by_hop = plain.clone();
    hop_by_hop[6] = 0;
    let mut cut = plain.clone();
    cut[43] = 0xFF;
    let twice = with_options(cnp(OUTSIDER, SENDER, 7), &[0x9E, 1, 0, 0x9E, 1, 0]);
    for packet in [tunnelled, behind_padding, hop_by_hop, cut, twice] {
        assert_eq!(outcome(&mut guarded(), 1, &packet), AT_BORDER);
    }
    let harmless = with_options(cnp(OUTSIDER, SENDER, 7), &[0x1E, 4, 0x9E, 16, 0, 0]);
    assert_eq!(outcome(&mut guarded(), 1, &harmless), Ok(2), "another option, whatever is in it");
}

/// As the other rules of a border: a node without a domain drops nothing.
#[test]
fn without_a_domain_there_is_no_border() {
    let mut bench = guarded();
    bench.apply(Command::RemoveDomain);
    assert_eq!(outcome(&mut bench, 1, &fast_cnp(OUTSIDER, SENDER, RECEIVER, 7)), Ok(2));
    assert_eq!(outcome(&mut bench, 2, &fast_cnp("2001:db8:53::2", OUTSIDER, RECEIVER, 7)), Ok(1));
}

/// A host that belongs to the domain gets them, and sends those that a receiver sends in its own name (FC-4-8), but none
/// in a switch's or for another receiver.
#[test]
fn hosts_inside_take_part() {
    let mut bench = guarded();
    turn_on(&mut bench, FastCnpConfig { hosts_inside: vec![prefix("2001:db8:bb::/48")], ..config() });
    assert_eq!(outcome(&mut bench, 2, &fast_cnp("2001:db8:53::2", HOST, RECEIVER, 7)), Ok(0));
    assert_eq!(outcome(&mut bench, 2, &fast_cnp("2001:db8:53::2", OUTSIDER, RECEIVER, 7)), AT_BORDER);
    assert_eq!(outcome(&mut bench, 0, &fast_cnp(HOST, SENDER, HOST, 7)), Ok(2));
    assert_eq!(outcome(&mut bench, 0, &fast_cnp(HOST, SENDER, RECEIVER, 7)), AT_BORDER);
    assert_eq!(outcome(&mut bench, 0, &fast_cnp("2001:db8:53::2", SENDER, RECEIVER, 7)), Err("forged_source"));
}
