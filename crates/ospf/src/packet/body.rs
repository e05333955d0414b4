//! The bodies of packets.

use super::NoPacket;
use crate::id::RouterId;
use crate::lsa::{LSA_HEADER_LEN, LsType, Lsa, LsaHeader, LsaKey};
use srdma_isis::reader::{Malformed, Reader};

/// What a packet says.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Hello(Hello),
    Description(Description),
    Request(Vec<LsaKey>),
    Update(Vec<Lsa>),
    Acknowledgment(Vec<LsaHeader>),
}

/// A hello.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The sender's number of the circuit.
    pub interface: u32,
    pub priority: u8,
    pub options: u32,
    pub hello_s: u16,
    pub dead_s: u16,
    /// 0 on point-to-point circuits, where no router reads it.
    pub designated: RouterId,
    pub backup: RouterId,
    /// The routers whose hellos have arrived.
    pub neighbours: Vec<RouterId>,
}

/// A part of the description of a database.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub options: u32,
    pub mtu: u16,
    /// I: the first of the exchange.
    pub is_first: bool,
    /// M: more follow.
    pub has_more: bool,
    /// MS: the sender is the master.
    pub is_master: bool,
    pub sequence: u32,
    pub headers: Vec<LsaHeader>,
}

const FIRST: u8 = 4;
const MORE: u8 = 2;
const MASTER: u8 = 1;

/// Octets of a description without LSA headers, behind the packet's header.
pub(crate) const DESCRIPTION_LEN: usize = 1 + 3 + 2 + 1 + 1 + 4;
/// Octets of one request.
pub(crate) const REQUEST_LEN: usize = 2 + 2 + 4 + 4;
/// Octets in front of an update's LSAs, behind the packet's header.
pub(crate) const UPDATE_LEN: usize = 4;

impl Body {
    /// The type of the packet.
    pub fn kind(&self) -> u8 {
        match self {
            Body::Hello(_) => 1,
            Body::Description(_) => 2,
            Body::Request(_) => 3,
            Body::Update(_) => 4,
            Body::Acknowledgment(_) => 5,
        }
    }

    pub(super) fn parse(kind: u8, octets: &[u8]) -> Result<Self, NoPacket> {
        let mut reader = Reader::new("a body of OSPFv3", octets);
        Ok(match kind {
            1 => Body::Hello(Hello::parse(&mut reader)?),
            2 => Body::Description(Description::parse(&mut reader)?),
            3 => Body::Request(requests(&mut reader)?),
            4 => Body::Update(updates(&mut reader)?),
            5 => Body::Acknowledgment(headers(&mut reader)?),
            other => return Err(NoPacket::Type(other)),
        })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Body::Hello(hello) => hello.emit(out),
            Body::Description(description) => description.emit(out),
            Body::Request(keys) => {
                for key in keys {
                    out.extend([0, 0]);
                    out.extend(key.kind.0.to_be_bytes());
                    out.extend(key.id.to_be_bytes());
                    out.extend(key.router.0.to_be_bytes());
                }
            }
            Body::Update(lsas) => {
                out.extend((lsas.len() as u32).to_be_bytes());
                lsas.iter().for_each(|lsa| out.extend(lsa.octets()));
            }
            Body::Acknowledgment(headers) => headers.iter().for_each(|header| header.emit(out)),
        }
    }
}

impl Hello {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (interface, priority, options) = (reader.u32()?, reader.u8()?, reader.u24()?);
        let (hello_s, dead_s) = (reader.u16()?, reader.u16()?);
        let (designated, backup) = (RouterId(reader.u32()?), RouterId(reader.u32()?));
        let mut neighbours = Vec::new();
        while !reader.is_empty() {
            neighbours.push(RouterId(reader.u32()?));
        }
        Ok(Hello { interface, priority, options, hello_s, dead_s, designated, backup, neighbours })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.interface.to_be_bytes());
        out.extend(with_options(self.priority, self.options));
        out.extend(self.hello_s.to_be_bytes());
        out.extend(self.dead_s.to_be_bytes());
        for router in [self.designated, self.backup].iter().chain(&self.neighbours) {
            out.extend(router.0.to_be_bytes());
        }
    }
}

impl Description {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (_, options) = (reader.u8()?, reader.u24()?);
        let (mtu, _, flags) = (reader.u16()?, reader.u8()?, reader.u8()?);
        Ok(Description {
            options,
            mtu,
            is_first: flags & FIRST != 0,
            has_more: flags & MORE != 0,
            is_master: flags & MASTER != 0,
            sequence: reader.u32()?,
            headers: headers(reader)?,
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(with_options(0, self.options));
        out.extend(self.mtu.to_be_bytes());
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.is_first, FIRST) | flag(self.has_more, MORE) | flag(self.is_master, MASTER);
        out.extend([0, flags]);
        out.extend(self.sequence.to_be_bytes());
        self.headers.iter().for_each(|header| header.emit(out));
    }
}

/// An octet, and the options behind it.
pub(crate) fn with_options(first: u8, options: u32) -> [u8; 4] {
    (u32::from(first) << 24 | options & 0xFF_FFFF).to_be_bytes()
}

fn requests(reader: &mut Reader<'_>) -> Result<Vec<LsaKey>, Malformed> {
    let mut keys = Vec::with_capacity(reader.rest().len() / REQUEST_LEN);
    while !reader.is_empty() {
        let (_, kind) = (reader.u16()?, LsType(reader.u16()?));
        keys.push(LsaKey { kind, id: reader.u32()?, router: RouterId(reader.u32()?) });
    }
    Ok(keys)
}

fn headers(reader: &mut Reader<'_>) -> Result<Vec<LsaHeader>, Malformed> {
    let mut headers = Vec::with_capacity(reader.rest().len() / LSA_HEADER_LEN);
    while !reader.is_empty() {
        headers.push(LsaHeader::parse(reader)?);
    }
    Ok(headers)
}

fn updates(reader: &mut Reader<'_>) -> Result<Vec<Lsa>, Malformed> {
    let count = reader.u32()?;
    let mut lsas = Vec::new();
    // Each takes octets, so that a wrong number ends with them.
    for _ in 0..count {
        lsas.push(Lsa::parse(reader)?);
    }
    if !reader.is_empty() {
        let expected = "as many LSAs as the packet has";
        return Err(Malformed::Value { field: "the number of LSAs", found: count, expected });
    }
    Ok(lsas)
}
