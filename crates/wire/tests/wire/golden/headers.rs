//! Every packet in the captures, taken apart into values and put together again: the same octets come out.

use crate::golden::captures::{frames, ipv6, names};
use srdma_wire::icmpv6::{Icmpv6Error, Icmpv6View};
use srdma_wire::ipv6::{Ipv6, NextHeader};
use srdma_wire::rocev2::Packet;
use srdma_wire::srh::Srh;
use srdma_wire::tlv::{Tlv, TlvTypes, TlvWriter, Tlvs};
use srdma_wire::{Aeth, Bth, EtherType, Ethernet, Opcode, Reth, Udp, View};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

#[test]
fn values_give_back_the_octets_they_were_parsed_from() {
    let mut rebuilt_headers = 0;
    for name in names() {
        for (index, frame) in frames(&name).iter().enumerate() {
            // One of the mutations sets a reserved bit of the BTH, which a value does not keep.
            if (name.as_str(), index) == ("neg_icrc_mutations.pcap", 4) {
                continue;
            }
            let mut rebuilder = Rebuilder { rest: frame, octets: Vec::new(), headers: 0 };
            rebuilder.ethernet();
            assert_eq!(rebuilder.octets, *frame, "{name} frame {}", index + 1);
            rebuilt_headers += rebuilder.headers;
        }
    }
    assert!(rebuilt_headers > 1000, "{rebuilt_headers} headers");
}

/// Takes one header after the other off `rest` and puts what its value emits to `octets`.
struct Rebuilder<'a> {
    rest: &'a [u8],
    octets: Vec<u8>,
    headers: usize,
}

impl<'a> Rebuilder<'a> {
    fn put(&mut self, emitted: &[u8], rest: &'a [u8]) {
        self.octets.extend_from_slice(emitted);
        self.rest = rest;
        self.headers += 1;
    }

    fn ethernet(&mut self) {
        let (ethernet, rest) = Ethernet::parse(self.rest).unwrap();
        self.put(ethernet.emit().as_bytes(), rest);
        if ethernet.ethertype == EtherType::IPV6 {
            self.ipv6();
        }
        self.octets.extend_from_slice(self.rest);
    }

    fn ipv6(&mut self) {
        let packet = self.rest;
        let (ipv6, rest) = Ipv6::parse(packet).unwrap();
        self.put(ipv6.emit().as_bytes(), rest);
        let mut next_header = ipv6.next_header;
        loop {
            next_header = match next_header {
                NextHeader::IPV6 => return self.ipv6(),
                NextHeader::ROUTING => self.srh(),
                NextHeader::UDP => return self.udp(),
                NextHeader::ICMPV6 if self.rest[0] < 128 => return self.icmpv6_error(&ipv6),
                _ => return,
            };
        }
    }

    fn srh(&mut self) -> NextHeader {
        let (srh, rest) = Srh::split(self.rest).unwrap();
        let segments: Vec<_> = srh.segments.iter().copied().map(Ipv6Addr::from).collect();
        let mut tlvs = vec![0; srh.tlvs.len()];
        let mut writer = TlvWriter::new(&mut tlvs, TlvTypes::default());
        for tlv in Tlvs::new(srh.tlvs, TlvTypes::default()) {
            match tlv.unwrap() {
                Tlv::EndMt(list, receivers) => writer.end_mt(list.edge(), receivers).unwrap(),
                Tlv::Mr(list, regions) => writer.mr(list.edge(), regions).unwrap(),
                Tlv::Hmac(view, hmac) => writer.hmac(view, hmac.try_into().unwrap()).unwrap(),
                // The writer pads by itself.
                Tlv::PadN(_) => {}
                Tlv::Pad1 | Tlv::Other(..) => panic!("no capture has such a TLV"),
            }
        }
        assert_eq!(writer.len(), srh.tlvs.len());
        let mut emitted = vec![0; srh.header.total_len()];
        assert_eq!(srh.header.value().emit(&segments, &tlvs, &mut emitted), Some(emitted.len()));
        self.put(&emitted, rest);
        srh.header.next_header()
    }

    fn icmpv6_error(&mut self, ipv6: &Ipv6) {
        let (error, invoking) = Icmpv6Error::parse(self.rest).unwrap();
        let mut message = vec![0; Icmpv6View::LEN + invoking.len()];
        assert_eq!(error.unwrap().emit(ipv6.source, ipv6.destination, invoking, &mut message), Some(message.len()));
        self.put(&message, &[]);
    }

    fn udp(&mut self) {
        let (udp, rest) = Udp::parse(self.rest).unwrap();
        self.put(udp.emit().as_bytes(), rest);
        let Ok((bth, rest)) = Bth::parse(self.rest) else { return };
        if bth.opcode.extension_len().is_none() || rest.is_empty() {
            return;
        }
        self.put(bth.emit().as_bytes(), rest);
        match bth.opcode {
            opcode if opcode.has_reth() => {
                let (reth, rest) = Reth::parse(self.rest).unwrap();
                self.put(reth.emit().as_bytes(), rest);
            }
            opcode if opcode.has_aeth() => {
                let (aeth, rest) = Aeth::parse(self.rest).unwrap();
                self.put(aeth.emit().as_bytes(), rest);
            }
            _ => {}
        }
    }
}

/// A whole packet from its value: lengths, padding and ICRC included (D18 for where the PSN of an ACK is).
#[test]
fn packet_values_give_back_whole_packets() {
    let mut opcodes = Vec::new();
    for name in names() {
        for frame in frames(&name) {
            let Some(whole) = ipv6(&frame) else { continue };
            let Ok(packet) = Packet::parse(whole, whole.len()) else { continue };
            let Some(value) = packet.value() else { continue };
            if packet.udp.checksum() != 0 || !packet.icrc([]).unwrap().is_good() || name.starts_with("neg_") {
                continue;
            }
            let mut emitted = vec![0xEE; packet.total_len() + 5];
            assert_eq!(value.emit(&mut emitted), Some(packet.total_len()));
            assert_eq!(emitted[..packet.total_len()], whole[..packet.total_len()], "{name}");
            assert_eq!(emitted[packet.total_len()..], [0xEE; 5]);
            opcodes.push(value.bth.opcode);
        }
    }
    for opcode in [
        Opcode::SEND_FIRST,
        Opcode::SEND_MIDDLE,
        Opcode::SEND_LAST,
        Opcode::SEND_ONLY_IMMEDIATE,
        Opcode::WRITE_FIRST,
        Opcode::WRITE_MIDDLE,
        Opcode::WRITE_LAST,
        Opcode::WRITE_ONLY,
        Opcode::ACKNOWLEDGE,
        Opcode::CNP,
    ] {
        assert!(opcodes.contains(&opcode), "no {opcode:?} among the packets");
    }
}
