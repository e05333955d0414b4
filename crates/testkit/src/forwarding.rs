//! Reference model of a node's forwarding: longest prefix by linear search, then the RFCs' pseudocode line by line.
//! IPv4 routes have IPv4-mapped addresses; errors about IPv4 packets are not part of it.

use std::net::Ipv6Addr;

/// A route: prefix, its length, and what it does.
#[derive(Clone, Debug)]
pub struct Route {
    /// Address of the prefix.
    pub address: Ipv6Addr,
    /// Bits that count.
    pub len: u8,
    /// Action of the route or SID.
    pub action: Action,
}

/// Effect of a route or SID.
#[derive(Clone, Debug)]
pub enum Action {
    /// Forward to the next hop of this number.
    Via(usize),
    /// End with flavors.
    End(Flavors),
    /// End.X with flavors, to the next hop of this number.
    EndX(Flavors, usize),
    /// End.DT6 on the table of this number.
    EndDt6(usize),
    /// End.DT4 on the table of this number.
    EndDt4(usize),
    /// End.DT46 on the table of this number.
    EndDt46(usize),
    /// End.DX4 to the next hop of this number.
    EndDx4(usize),
    /// End.DX6 to the next hop of this number.
    EndDx6(usize),
    /// End.DX2 to the port of this number, counted as next hops are.
    EndDx2(usize),
    /// H.Encaps or, if `reduced`, H.Encaps.Red.
    Encaps(Outer),
    /// End.B6.Encaps or, if `reduced`, End.B6.Encaps.Red.
    EndB6Encaps(Outer),
}

/// Outer headers that a route or SID pushes.
#[derive(Clone, Debug)]
pub struct Outer {
    /// Outer source.
    pub source: Ipv6Addr,
    /// Path.
    pub segments: Vec<Ipv6Addr>,
    /// The first segment is not in the SRH.
    pub reduced: bool,
}

/// Flavors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flavors {
    /// Penultimate segment pop.
    pub psp: bool,
    /// Ultimate segment pop.
    pub usp: bool,
    /// Ultimate segment decapsulation.
    pub usd: bool,
    /// NEXT-CSID: octets of the block, and of a compressed SID.
    pub next_csid: Option<(usize, usize)>,
}

/// Result for a packet.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Sent to the next hop of this number; by End.DX2 a frame, otherwise a packet.
    Sent(usize, Vec<u8>),
    /// Dropped, with an ICMPv6 error of this type, code and parameter about the packet as it was then.
    Error(u8, u8, u32, Vec<u8>),
    Dropped,
}

/// The reason why a step failed.
enum Refusal {
    Error(u8, u8, u32),
    Silent,
}

const NO_ROUTE: Refusal = Refusal::Error(1, 0, 0);
const HOP_LIMIT: Refusal = Refusal::Error(3, 0, 0);

fn parameter_problem(code: u8, pointer: usize) -> Refusal {
    Refusal::Error(4, code, pointer as u32)
}

/// Forwards a packet that came from outside; `tables[0]` is the main table.
pub fn forward(tables: &[Vec<Route>], packet: &[u8]) -> Outcome {
    let mut packet = packet.to_vec();
    match walk(tables, &mut packet) {
        Ok(next_hop) => Outcome::Sent(next_hop, packet),
        Err(Refusal::Error(..)) if is_ipv4(&packet) => Outcome::Dropped,
        Err(Refusal::Error(kind, code, parameter)) => Outcome::Error(kind, code, parameter, packet),
        Err(Refusal::Silent) => Outcome::Dropped,
    }
}

fn walk(tables: &[Vec<Route>], packet: &mut Vec<u8>) -> Result<usize, Refusal> {
    let mut table = 0;
    let mut decrement = true;
    for _ in 0..16 {
        let route = longest(&tables[table], packet).ok_or(NO_ROUTE)?;
        let step = match &route.action {
            Action::Via(next_hop) => Next::Via(*next_hop),
            Action::Encaps(outer) => {
                send(0, packet, decrement)?;
                *packet = encapsulate(packet, outer);
                table = 0;
                Next::Forward
            }
            Action::EndB6Encaps(outer) => {
                let step = end(packet, Flavors::default())?;
                *packet = encapsulate(packet, outer);
                table = 0;
                step
            }
            Action::EndDx2(port) => {
                end_dx2(packet)?;
                return Ok(*port);
            }
            Action::EndDt4(next_table) => {
                table = *next_table;
                end_dt4(packet)?
            }
            Action::EndDt46(next_table) => {
                table = *next_table;
                match taken_upper_layer(packet, 4) {
                    Ok(_) => end_dt4(packet)?,
                    Err(_) => end_dt6(packet)?,
                }
            }
            Action::EndDx4(next_hop) => {
                end_dt4(packet)?;
                Next::InnerVia(*next_hop)
            }
            Action::EndDx6(next_hop) => {
                end_dt6(packet)?;
                Next::InnerVia(*next_hop)
            }
            Action::End(flavors) => end(packet, *flavors)?,
            Action::EndX(flavors, next_hop) => match end(packet, *flavors)? {
                Next::Inner => Next::InnerVia(*next_hop),
                _ => Next::Segment(*next_hop),
            },
            Action::EndDt6(next_table) => {
                table = *next_table;
                end_dt6(packet)?
            }
        };
        match step {
            Next::Forward => decrement = false,
            Next::Inner => decrement = true,
            Next::Segment(next_hop) => return Ok(next_hop),
            Next::InnerVia(next_hop) => return send(next_hop, packet, true),
            Next::Via(next_hop) => return send(next_hop, packet, decrement),
        }
    }
    Err(Refusal::Silent)
}

enum Next {
    Forward,
    Inner,
    Segment(usize),
    InnerVia(usize),
    Via(usize),
}

fn send(next_hop: usize, packet: &mut [u8], decrement: bool) -> Result<usize, Refusal> {
    if is_ipv4(packet) {
        if decrement && packet[8] <= 1 {
            return Err(Refusal::Silent);
        }
        packet[8] -= u8::from(decrement);
        seal(packet);
    } else if decrement {
        if packet[7] <= 1 {
            return Err(HOP_LIMIT);
        }
        packet[7] -= 1;
    }
    Ok(next_hop)
}

fn longest<'t>(table: &'t [Route], packet: &[u8]) -> Option<&'t Route> {
    let bit = |octets: &[u8], index: usize| octets[index / 8] >> (7 - index % 8) & 1;
    let destination = match is_ipv4(packet) {
        true => [&[0; 10][..], &[0xFF; 2], &packet[16..20]].concat(),
        false => packet[24..40].to_vec(),
    };
    let holds = |route: &&Route| {
        let address = route.address.octets();
        let is_of_ipv4 = route.len >= 96 && route.address.to_ipv4_mapped().is_some();
        let is_equal = (0..usize::from(route.len)).all(|index| bit(&address, index) == bit(&destination, index));
        is_of_ipv4 == is_ipv4(packet) && is_equal
    };
    table.iter().filter(holds).max_by_key(|route| route.len)
}

/// Headers of one kind in a row that the node processes.
const MAX_HEADERS: usize = 4;

/// The header behind any Hop-by-Hop and Destination Options headers, as their destination processes them (RFC 8200
/// sections 4.1 and 4.2): its offset, and where its kind stands.
fn behind_options(packet: &[u8], mut offset: usize, mut kind_at: usize) -> Result<(usize, usize), Refusal> {
    for _ in 0..MAX_HEADERS {
        match packet[kind_at] {
            0 if offset != 40 => return Err(parameter_problem(1, kind_at)),
            0 | 60 => {}
            _ => return Ok((offset, kind_at)),
        }
        let end = offset + 8 + 8 * usize::from(*packet.get(offset + 1).ok_or(Refusal::Silent)?);
        let header = packet.get(..end).ok_or(Refusal::Silent)?;
        let mut at = offset + 2;
        while at < end {
            let kind = header[at];
            let next = match (kind, header.get(at + 1)) {
                (0, _) => at + 1,
                (_, Some(len)) if at + 2 + usize::from(*len) <= end => at + 2 + usize::from(*len),
                _ => return Err(parameter_problem(0, at)),
            };
            match kind >> 6 {
                _ if kind <= 1 => {}
                0 => {}
                1 => return Err(Refusal::Silent),
                _ => return Err(parameter_problem(2, at)),
            }
            at = next;
        }
        (kind_at, offset) = (offset, end);
    }
    Err(parameter_problem(8, offset))
}

/// RFC 8986 section 4.1, with the flavors of section 4.16 and NEXT-CSID of RFC 9800 section 4.1.
fn end(packet: &mut Vec<u8>, flavors: Flavors) -> Result<Next, Refusal> {
    if let Some((block, csid)) = flavors.next_csid {
        let argument = 24 + block + csid;
        if packet[argument..40].iter().any(|octet| *octet != 0) {
            if packet[7] <= 1 {
                return Err(HOP_LIMIT);
            }
            packet[7] -= 1;
            packet.copy_within(argument..40, argument - csid);
            packet[40 - csid..40].fill(0);
            return Ok(Next::Forward);
        }
    }
    let (mut offset, mut kind_at) = (40, 6);
    for _ in 0..MAX_HEADERS {
        (offset, kind_at) = behind_options(packet, offset, kind_at)?;
        if packet[kind_at] != 43 {
            return upper_layer(packet, offset, kind_at, flavors);
        }
        let len = routing_header_len(packet, offset)?;
        let segments_left = usize::from(packet[offset + 3]);
        if segments_left == 0 {
            if flavors.usp && packet[offset + 2] == 4 {
                remove(packet, offset, len, kind_at);
            } else {
                (kind_at, offset) = (offset, offset + len);
            }
            continue;
        }
        if packet[offset + 2] == 4 && packet[7] <= 1 {
            return Err(HOP_LIMIT);
        }
        check_segments(packet, offset, len)?;
        packet[7] -= 1;
        packet[offset + 3] -= 1;
        let segment = offset + 8 + 16 * (segments_left - 1);
        packet.copy_within(segment..segment + 16, 24);
        if flavors.psp && segments_left == 1 {
            remove(packet, offset, len, kind_at);
        }
        return Ok(Next::Forward);
    }
    Err(parameter_problem(8, offset))
}

/// Length of the routing header at an offset.
fn routing_header_len(packet: &[u8], at: usize) -> Result<usize, Refusal> {
    let len = 8 + 8 * usize::from(*packet.get(at + 1).ok_or(Refusal::Silent)?);
    if packet.len() < at + len { Err(Refusal::Silent) } else { Ok(len) }
}

/// The checks of RFC 8200 section 4.4 and RFC 8754 section 4.3.1.1 on a routing header with segments left.
fn check_segments(packet: &[u8], at: usize, len: usize) -> Result<(), Refusal> {
    if packet[at + 2] != 4 {
        return Err(parameter_problem(0, at + 2));
    }
    let (segments_left, last_entry) = (usize::from(packet[at + 3]), usize::from(packet[at + 4]));
    let hdr_ext_len = len / 8 - 1;
    if last_entry + 1 > hdr_ext_len / 2 || segments_left > last_entry + 1 {
        return Err(parameter_problem(0, at + 3));
    }
    Ok(())
}

fn remove(packet: &mut Vec<u8>, srh: usize, len: usize, kind_at: usize) {
    packet[kind_at] = packet[srh];
    packet.drain(srh..srh + len);
    let payload_length = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&payload_length.to_be_bytes());
}

/// RFC 8986 section 4.1.1, with USD (section 4.16.3). Options headers are no upper layer.
fn upper_layer(packet: &mut Vec<u8>, offset: usize, kind_at: usize, flavors: Flavors) -> Result<Next, Refusal> {
    if flavors.usd && packet[kind_at] == 41 {
        return decapsulate(packet, offset);
    }
    Err(parameter_problem(4, offset))
}

/// RFC 8986 section 4.6.
fn end_dt6(packet: &mut Vec<u8>) -> Result<Next, Refusal> {
    let inner = taken_upper_layer(packet, 41)?;
    decapsulate(packet, inner)
}

/// RFC 8986 section 4.7, with the checks of RFC 1812 sections 5.2.2 and 5.3.7.
fn end_dt4(packet: &mut Vec<u8>) -> Result<Next, Refusal> {
    let inner = taken_upper_layer(packet, 4)?;
    let header = packet.get(inner..inner + 20).ok_or(Refusal::Silent)?;
    let (header_len, total) = (usize::from(header[0] & 0xF) * 4, usize::from(header[2]) << 8 | usize::from(header[3]));
    let is_link = |address: &[u8]| address[0] == 127 || address[..2] == [169, 254];
    let is_several = |address: &[u8]| address[0] >> 4 == 14 || address == [255; 4];
    let is_refused = |address: &[u8]| address[0] == 0 || is_link(address) || is_several(address);
    let is_right = header[0] >> 4 == 4
        && header_len >= 20
        && total >= header_len
        && inner + total <= packet.len()
        && words(&packet[inner..inner + header_len]) == 0xFFFF;
    if !is_right || is_refused(&header[12..16]) || is_refused(&header[16..20]) {
        return Err(Refusal::Silent);
    }
    let outer_ecn = packet[1] >> 4 & 3;
    packet.truncate(inner + total);
    packet.drain(..inner);
    packet[1] = packet[1] & 0xFC | merged(outer_ecn, packet[1] & 3)?;
    seal(packet);
    Ok(Next::Inner)
}

fn is_ipv4(packet: &[u8]) -> bool {
    packet[0] >> 4 == 4
}

/// The sum of words (RFC 1071).
fn words(octets: &[u8]) -> u32 {
    let sum: u32 = octets.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (sum & 0xFFFF) + (sum >> 16)
}

/// Makes the checksum of an IPv4 header right.
fn seal(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let checksum = !words(&packet[..usize::from(packet[0] & 0xF) * 4]) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// RFC 8986 section 4.9. Nothing of the outer header is taken over.
fn end_dx2(packet: &mut Vec<u8>) -> Result<(), Refusal> {
    let frame = taken_upper_layer(packet, 143)?;
    if packet.len() < frame + 14 {
        return Err(Refusal::Silent);
    }
    packet.drain(..frame);
    Ok(())
}

/// The upper-layer header of a SID that is the last one and takes this kind: its offset.
fn taken_upper_layer(packet: &[u8], kind: u8) -> Result<usize, Refusal> {
    let (mut offset, mut kind_at) = (40, 6);
    for _ in 0..MAX_HEADERS {
        (offset, kind_at) = behind_options(packet, offset, kind_at)?;
        if packet[kind_at] == kind {
            return Ok(offset);
        }
        if packet[kind_at] != 43 {
            return Err(parameter_problem(4, offset));
        }
        let len = routing_header_len(packet, offset)?;
        if packet[offset + 3] != 0 {
            return Err(parameter_problem(0, if packet[offset + 2] == 4 { offset + 3 } else { offset + 2 }));
        }
        (kind_at, offset) = (offset, offset + len);
    }
    Err(parameter_problem(8, offset))
}

/// RFC 2473 section 3.3 and RFC 6040 section 4.2.
fn decapsulate(packet: &mut Vec<u8>, inner: usize) -> Result<Next, Refusal> {
    if packet.len() < inner + 40 || packet[inner] >> 4 != 6 {
        return Err(Refusal::Silent);
    }
    let end = inner + 40 + usize::from(u16::from_be_bytes([packet[inner + 4], packet[inner + 5]]));
    if packet.len() < end {
        return Err(Refusal::Silent);
    }
    let outer_ecn = packet[1] >> 4 & 3;
    packet.truncate(end);
    packet.drain(..inner);
    let inner_ecn = packet[1] >> 4 & 3;
    packet[1] = packet[1] & 0xCF | merged(outer_ecn, inner_ecn)? << 4;
    Ok(Next::Inner)
}

/// RFC 6040 figure 4.
fn merged(outer: u8, inner: u8) -> Result<u8, Refusal> {
    match (outer, inner) {
        (3, 0) => Err(Refusal::Silent),
        (3, _) => Ok(3),
        (1, 2) => Ok(1),
        (_, ecn) => Ok(ecn),
    }
}

/// RFC 8986 sections 5.1 and 5.2, and S15–S18 of section 4.13; traffic class copied outward, hop limit 64, flow label left zero.
fn encapsulate(packet: &[u8], Outer { source, segments, reduced }: &Outer) -> Vec<u8> {
    let mut listed = segments.clone();
    if *reduced {
        listed.remove(0);
    }
    listed.reverse();
    let (payload, traffic_class) = match is_ipv4(packet) {
        true => (4, packet[1]),
        false => (41, packet[0] << 4 | packet[1] >> 4),
    };
    let mut srh = Vec::new();
    if !listed.is_empty() {
        let (entries, left) = (listed.len() as u8, segments.len() as u8 - 1);
        srh.extend([payload, entries * 2, 4, left, entries - 1, 0, 0, 0]);
        for segment in &listed {
            srh.extend(segment.octets());
        }
    }
    let payload_length = (srh.len() + packet.len()) as u16;
    let mut outer = vec![0x60 | traffic_class >> 4, traffic_class << 4, 0, 0];
    outer.extend(payload_length.to_be_bytes());
    outer.extend([if srh.is_empty() { payload } else { 43 }, 64]);
    outer.extend(source.octets());
    outer.extend(segments[0].octets());
    outer.extend(srh);
    outer.extend(packet);
    outer
}
