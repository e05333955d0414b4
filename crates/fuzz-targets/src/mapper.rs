//! A mapper under arbitrary fates of its probes, foreign packets and times: the deny list changes as probes tell, and
//! entropy values are paths or refused.

use crate::choices::Choices;
use srdma_fabric::{Encoding, HostId, SidPlan, Template, Topology};
use srdma_mapper::{Config, Mapper, Paths};
use srdma_wire::{Entropy, Instant};
use std::net::Ipv6Addr;

const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 1, 1, 0, 0, 0, 1);

/// Octets of the outer header; paths in a leaf-spine need no SRH.
const OUTER: usize = 40;

/// Events of an execution, at most.
const EVENTS: usize = 512;

/// Runs a mapper.
pub fn mapper(input: &[u8]) {
    let mut choices = Choices::new(input);
    let text = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n";
    let topology = Topology::from_toml(text).expect("a fabric");
    let sids = SidPlan::new(&topology, SidPlan::BLOCK).expect("SIDs");
    let paths = Paths::new(&topology, &sids, HostId(0), Encoding::Nodes).expect("paths");
    values(&topology, &mut choices);
    let config = Config {
        interval_ns: 1 + u64::from(choices.u16()),
        timeout_ns: 1 + u64::from(choices.u16()),
        gap_ns: choices.octet().into(),
        deny_after: 1 + u32::from(choices.octet() % 8),
        allow_after: 1 + u32::from(choices.octet() % 8),
        most_intervals: 1 + u64::from(choices.octet()),
        flap_window_ns: choices.u32().into(),
        ..Config::new(ADDRESS)
    };
    let mut mapper = Mapper::new(Instant::ZERO, config, &paths).expect("settings above 0");
    let mut denied = vec![false; paths.len()];
    // Probes that may still return; a few, as a network has them.
    let mut travelling: Vec<Vec<u8>> = Vec::new();
    let mut now = Instant::ZERO;
    for _ in 0..EVENTS {
        if choices.is_empty() {
            break;
        }
        let mut changes = Vec::new();
        match choices.below(5) {
            0 => now = now.after_ns(choices.u16().into()),
            1 => now = mapper.next_deadline().expect("each path has a time").max(now),
            2 if !travelling.is_empty() => {
                let packet = travelling.swap_remove(choices.below(travelling.len()));
                changes.extend(mapper.receive(now, &packet));
            }
            3 if !travelling.is_empty() => {
                let mut packet = travelling[choices.below(travelling.len())].clone();
                let place = choices.below(packet.len());
                packet[place] ^= choices.octet();
                changes.extend(mapper.receive(now, &packet));
            }
            _ => changes.extend(mapper.receive_payload(now, choices.octets(60))),
        }
        changes.extend(mapper.tick(now));
        while let Some((path, packet)) = mapper.poll(now) {
            assert!(path < paths.len());
            travelling.push(packet[OUTER..].to_vec());
            if travelling.len() > 16 {
                travelling.remove(0);
            }
        }
        for change in changes {
            assert_ne!(denied[change.path], change.is_denied);
            denied[change.path] = change.is_denied;
        }
        assert!(denied.iter().enumerate().all(|(path, is_denied)| mapper.is_denied(path) == *is_denied));
        assert!(mapper.next_deadline().is_some());
    }
    let counters = mapper.counters();
    assert_eq!(counters.denied - counters.allowed, denied.iter().filter(|is_denied| **is_denied).count() as u64);
    assert!(counters.probes_returned + counters.probes_lost <= counters.probes_sent);
    assert!(paths.failed_links(|path| denied[path]).len() <= paths.len());
}

/// Values and fields of packets.
fn values(topology: &Topology, choices: &mut Choices<'_>) {
    let template = Template::new(topology).expect("a template");
    let value = Entropy(choices.u32() >> (choices.octet() % 32));
    if let Ok(path) = template.expand(HostId(0), HostId(1), value) {
        assert_eq!(template.entropy(&path), Ok(value));
    }
    let (port, label) = (choices.u16(), choices.u32());
    if let Ok(found) = Entropy::of_fields(port, label) {
        assert_eq!((found.source_port(), found.flow_label()), (port, label));
    }
}
