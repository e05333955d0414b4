//! One endpoint under test, its peer played by the test: packets made and taken apart by hand.

use srdma_rc::{
    Access, Completion, DropReason, Endpoint, EndpointConfig, HPCC_FIELDS, Memory, MemoryKey, QueuePairConfig,
};
use srdma_wire::ioam::{self, Filled, LinkLoad, NodeData, Trace, TraceHeader};
use srdma_wire::rocev2::{Extended, Packet, PacketValue};
use srdma_wire::{
    Aeth, AtomicEth, Bth, CnpView, ImmDtView, Instant, Ipv6, NextHeader, Opcode, Psn, Qpn, Reth, Syndrome,
};
use std::net::Ipv6Addr;

pub(crate) const OURS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub(crate) const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

pub(crate) fn qpn(number: u32) -> Qpn {
    Qpn::new(number).expect("24 bits")
}

/// Octets that differ at each place.
pub(crate) fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed).collect()
}

/// A packet of the peer.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) bth: Bth,
    pub(crate) reth: Option<Reth>,
    pub(crate) immediate: Option<[u8; 4]>,
    pub(crate) aeth: Option<Aeth>,
    pub(crate) payload: Vec<u8>,
    /// Flows and period that a CNP tells (D284).
    pub(crate) incast: (u16, u16),
}

impl Given {
    pub(crate) fn new(opcode: Opcode, psn: u32, payload: Vec<u8>) -> Self {
        Given {
            bth: Bth::new(opcode, qpn(0x11), Psn::new(psn)),
            reth: None,
            immediate: None,
            aeth: None,
            payload,
            incast: (0, 0),
        }
    }

    pub(crate) fn telling(mut self, flows: u16, period_us: u16) -> Self {
        self.incast = (flows, period_us);
        self
    }

    pub(crate) fn ack_request(mut self) -> Self {
        self.bth.ack_request = true;
        self
    }

    pub(crate) fn reth(mut self, virtual_address: u64, rkey: MemoryKey, dma_length: u32) -> Self {
        self.reth = Some(Reth { virtual_address, rkey: rkey.0, dma_length });
        self
    }

    pub(crate) fn immediate(mut self, immediate: [u8; 4]) -> Self {
        self.immediate = Some(immediate);
        self
    }

    pub(crate) fn response(psn: u32, syndrome: u8) -> Self {
        let aeth = Aeth { syndrome: Syndrome::from_octet(syndrome), msn: 0 };
        Given { aeth: Some(aeth), ..Given::new(Opcode::ACKNOWLEDGE, psn, Vec::new()) }
    }

    pub(crate) fn octets(&self) -> Vec<u8> {
        let reth = self.reth.unwrap_or(Reth { virtual_address: 0, rkey: 0, dma_length: 0 }).emit();
        let aeth = self.aeth.unwrap_or(Aeth { syndrome: Syndrome::ACK, msn: 0 }).emit();
        let immediate = ImmDtView(self.immediate.unwrap_or_default());
        let atomic = AtomicEth { virtual_address: 0, rkey: 0, swap_or_add: 1, compare: 0 }.emit();
        let cnp = CnpView::with_incast(self.incast.0, self.incast.1);
        let opcode = self.bth.opcode;
        let extended = match (opcode.has_reth(), opcode.has_immediate()) {
            (true, true) => Extended::RethImmediate(&reth, &immediate),
            (true, false) => Extended::Reth(&reth),
            (false, true) => Extended::Immediate(&immediate),
            (false, false) if opcode.has_aeth() => Extended::Aeth(&aeth),
            (false, false) if opcode.is_atomic() => Extended::Atomic(&atomic),
            (false, false) if opcode == Opcode::CNP => Extended::Cnp(&cnp),
            (false, false) => Extended::None,
        };
        let ipv6 = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: 0,
            next_header: NextHeader::UDP,
            hop_limit: 64,
            source: PEER,
            destination: OURS,
        };
        let packet = PacketValue { ipv6, source_port: 50_000, bth: self.bth, extended, payload: &self.payload };
        let mut octets = vec![0; packet.len_octets()];
        packet.emit(&mut octets).expect("headers fit the opcode");
        octets
    }
}

/// The fields of a packet sent by the endpoint under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) opcode: Opcode,
    pub(crate) psn: u32,
    pub(crate) ack_request: bool,
    /// Syndrome octet and MSN.
    pub(crate) aeth: Option<(u8, u32)>,
    pub(crate) reth: Option<Reth>,
    pub(crate) immediate: Option<[u8; 4]>,
    pub(crate) payload: Vec<u8>,
}

impl Seen {
    /// Takes a packet apart; its ICRC has to be right.
    pub(crate) fn from_octets(octets: &[u8]) -> Self {
        let packet = Packet::parse(octets, octets.len()).expect("a RoCEv2 packet");
        assert!(packet.icrc([]).expect("whole").is_good(), "ICRC of a packet sent");
        Seen {
            opcode: packet.bth.opcode(),
            psn: packet.bth.psn().get(),
            ack_request: packet.bth.ack_request(),
            aeth: packet.extended.aeth().map(|aeth| (aeth.value().syndrome.to_octet(), aeth.value().msn)),
            reth: packet.extended.reth().map(|reth| reth.value()),
            immediate: packet.extended.immediate().map(|immediate| immediate.0),
            payload: packet.payload().expect("in one piece").to_vec(),
        }
    }

    /// PSN, syndrome and MSN of an Acknowledge.
    pub(crate) fn acknowledge(&self) -> (u32, u8, u32) {
        assert_eq!(self.opcode, Opcode::ACKNOWLEDGE);
        let (syndrome, msn) = self.aeth.expect("an Acknowledge has an AETH");
        (self.psn, syndrome, msn)
    }
}

/// The endpoint under test: queue pair 0x11 at [`OURS`], connected to 0x22 at [`PEER`].
pub(crate) struct Rig<M: Memory = Vec<u8>> {
    pub(crate) endpoint: Endpoint<M>,
    pub(crate) qpn: Qpn,
    pub(crate) now: Instant,
}

impl<M: Memory> Rig<M> {
    pub(crate) fn new(adjust: impl FnOnce(&mut QueuePairConfig)) -> Self {
        let qpn = qpn(0x11);
        let mut endpoint = Endpoint::new(EndpointConfig::new(OURS));
        let mut config = QueuePairConfig::new(qpn, PEER, super::support::qpn(0x22));
        adjust(&mut config);
        endpoint.add_queue_pair(config).expect("a good configuration");
        Rig { endpoint, qpn, now: Instant::ZERO }
    }

    pub(crate) fn give(&mut self, packet: &Given) -> Result<(), DropReason> {
        self.endpoint.receive(self.now, &[&packet.octets()])
    }

    /// Everything the endpoint wants to send now.
    pub(crate) fn sent(&mut self) -> Vec<Seen> {
        let mut buffer = vec![0; self.endpoint.max_packet_octets()];
        let mut sent = Vec::new();
        while let Some(length) = self.endpoint.poll_transmit(self.now, &mut buffer) {
            sent.push(Seen::from_octets(&buffer[..length]));
            assert!(sent.len() < 100_000, "it never stops");
        }
        sent
    }

    /// PSN, syndrome and MSN of all it wants to send now, which must be Acknowledges.
    pub(crate) fn acknowledges(&mut self) -> Vec<(u32, u8, u32)> {
        self.sent().iter().map(Seen::acknowledge).collect()
    }

    /// PSNs of all it wants to send now.
    pub(crate) fn psns(&mut self) -> Vec<u32> {
        self.sent().iter().map(|packet| packet.psn).collect()
    }

    pub(crate) fn completions(&mut self) -> Vec<Completion> {
        std::iter::from_fn(|| self.endpoint.poll_completion()).collect()
    }

    pub(crate) fn advance_ns(&mut self, ns: u64) {
        self.now = self.now.after_ns(ns);
        self.endpoint.tick(self.now);
    }
}

impl Rig {
    /// A region of zeros at address 0x1000.
    pub(crate) fn region(&mut self, length: usize, access: Access) -> MemoryKey {
        self.endpoint.register_memory(vec![0; length], 0x1000, access, 0x42)
    }
}

/// A Hop-by-Hop Options header with the trace of HPCC++'s fields, filled as nodes fill it.
pub(crate) struct Traced {
    header: Vec<u8>,
    namespace_id: u16,
}

impl Traced {
    pub(crate) fn new(namespace_id: u16) -> Self {
        let mut header = vec![0; 264];
        let trace = TraceHeader::for_nodes(namespace_id, HPCC_FIELDS, 9).expect("it fits");
        let length = trace.emit_hop_by_hop(NextHeader::UDP, &mut header).expect("it fits");
        header.truncate(length);
        Traced { header, namespace_id }
    }

    /// The next node on the way.
    pub(crate) fn hop(&mut self, node_id: u32, fraction_ns: u32, queue_octets: u32, load: LinkLoad) {
        let data = NodeData {
            hop_limit: Some(60),
            node_id: Some(node_id),
            ingress: Some(1),
            egress: Some(2),
            timestamp_fraction: Some(fraction_ns),
            queue_depth: Some(queue_octets),
            namespace_data_wide: Some(load.to_data()),
            ..NodeData::default()
        };
        let of_namespace = |namespace| (namespace == self.namespace_id).then_some(data);
        ioam::fill(&mut self.header, of_namespace, |outcome| assert_eq!(outcome, Ok(Filled::Written)));
    }

    /// The trace as it lies in its option.
    pub(crate) fn octets(&self) -> Vec<u8> {
        Trace::find(&self.header).expect("there").expect("whole").octets().to_vec()
    }

    pub(crate) fn trace<'a>(&self, octets: &'a [u8]) -> Trace<'a> {
        Trace::parse(octets).expect("whole")
    }
}
