//! IPv4 (D258 to D261): forwarding by RFC 1812, H.Encaps of IPv4 packets (RFC 8986 sections 5.1 and 5.2), End.DT4,
//! End.DX4 and End.DT46 (sections 4.5, 4.7 and 4.8). Packets are from scapy (`scapy_12_ipv4.pcap`), or made here.

mod checks;
mod egress;
mod errors;
mod forwarding;
mod fragments;
mod tunnels;

use crate::common::{self, Bench, address, golden};
use srdma_dataplane::*;
use srdma_frame::PortId;
use srdma_wire::{MacAddress, Prefix};
use std::net::{Ipv4Addr, Ipv6Addr};

const LOOPBACK: &str = "2001:db8:ffff::1";
/// The first segment of policies, behind port 1; and the tunnels' other end.
const VIA: &str = "2001:db8:9::e";
const FAR_SID: &str = "2001:db8:2::d4";
/// Local SIDs.
const END_DT4: &str = "fd00:1::d4";
const END_DX4: &str = "fd00:1::d";
const END_DT46: &str = "fd00:1::d46";
const TENANT: TableId = TableId(7);

/// The frames of the capture.
const PACKET: usize = 0;
const FORWARDED: usize = 1;
/// H.Encaps.Red with one segment, H.Encaps with one, H.Encaps.Red with two.
const ENCAPSULATED: [usize; 3] = [2, 3, 4];
/// Without an SRH and with one.
const TUNNELLED: [usize; 2] = [5, 6];
const INNER: usize = 7;
const TIME_EXCEEDED: usize = 8;
const FRAGMENTATION_NEEDED: usize = 9;
const FRAGMENTATION_NEEDED_BEFORE_TUNNEL: usize = 10;
const NETWORK_UNREACHABLE: usize = 11;
const HOST_UNREACHABLE: usize = 12;
const DATAGRAM: usize = 13;
const FRAGMENTS: [usize; 3] = [14, 15, 16];

fn captured() -> Vec<Vec<u8>> {
    golden("scapy_12_ipv4.pcap")
}

fn mapped(text: &str) -> Ipv6Addr {
    text.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped()
}

fn net(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::of_ipv4(address.parse().unwrap(), len.parse().unwrap()).unwrap()
}

/// The IPv4 neighbour at a port.
fn hop(port: u16) -> NextHop {
    NextHop { port: PortId(port), address: mapped(&format!("192.0.2.{}", port + 1)) }
}

fn via(port: u16) -> RouteAction {
    RouteAction::Via(vec![hop(port)])
}

fn segments(segments: &[&str], mode: EncapsMode) -> RouteAction {
    let segments = segments.iter().map(|segment| address(segment)).collect();
    RouteAction::Encaps { segments, mode, hmac_key_id: None }
}

fn route(bench: &mut Bench, prefix: &str, action: RouteAction) {
    route_in(bench, TableId(0), prefix, action);
}

fn route_in(bench: &mut Bench, table: TableId, prefix: &str, action: RouteAction) {
    bench.apply(Command::AddRoute { table, prefix: net(prefix), action });
}

/// The host 10.1.0.2 is behind port 0, which has the address 10.1.0.1, the rest of the network behind port 1, tenants
/// behind port 2. IPv4 neighbours have the MAC addresses of IPv6 ones.
fn node() -> Bench {
    node_with(|_| ())
}

fn node_with(change: impl FnOnce(&mut NodeConfig)) -> Bench {
    let mut bench = Bench::with(LOOPBACK, 3, |config| {
        config.ports[0].addresses = vec![mapped("10.1.0.1")];
        change(config);
    });
    for port in 0..3 {
        let mac = MacAddress([2, 0, 0, 0, 1, port as u8]);
        bench.apply(Command::AddNeighbour { next_hop: hop(port), mac });
    }
    bench.route("::/0", 1);
    route(&mut bench, "10.1.0.0/16", via(0));
    bench
}

/// The SIDs as well: of the main table, of a tenant's, and of an adjacency at port 2.
fn with_sids(mut bench: Bench) -> Bench {
    let next_hop = hop(2);
    for (sid, behavior) in [
        (END_DT4, SidBehavior::EndDt4(TENANT)),
        (END_DX4, SidBehavior::EndDx4 { next_hop, table: TENANT }),
        (END_DT46, SidBehavior::EndDt46(TENANT)),
    ] {
        bench.apply(Command::AddSid { prefix: common::prefix(sid), behavior });
    }
    route_in(&mut bench, TENANT, "10.2.0.0/16", via(2));
    route_in(&mut bench, TENANT, "10.1.0.0/16", via(0));
    bench
}

/// An IPv4 packet with a right checksum.
fn packet(source: &str, destination: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x45, 0];
    octets.extend((20 + payload.len() as u16).to_be_bytes());
    octets.extend([0, 7, 0x40, 0, 64, protocol, 0, 0]);
    octets.extend([source, destination].iter().flat_map(|text| text.parse::<Ipv4Addr>().unwrap().octets()));
    octets.extend(payload);
    sealed(octets)
}

/// The packet with the checksum that its header has to have, word by word.
fn sealed(mut packet: Vec<u8>) -> Vec<u8> {
    packet[10..12].fill(0);
    let len = usize::from(packet[0] & 0xF) * 4;
    let words = packet[..len.min(packet.len())].chunks(2);
    let sum: u32 = words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The packet with octets changed and the checksum right again.
fn changed(packet: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    for (at, octet) in changes {
        packet[*at] = *octet;
    }
    sealed(packet)
}

/// A captured tunnel packet to another SID.
fn to_sid(packet: &[u8], sid: &str) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[24..40].copy_from_slice(&address(sid).octets());
    packet
}

/// The only drop of a port, by name.
fn only_drop(bench: &Bench, port: u16) -> &'static str {
    let drops = bench.drops(port);
    assert!(matches!(&drops[..], [(_, 1)]), "{drops:?}");
    drops[0].0
}
