//! NIC 1 of the draft's Figure 1, which sends to NIC 3 by leaf 1, spine 5 or 6, and leaf 3.

pub(crate) use crate::common::address;
use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendPath, Incoming};
use srdma_frame::{Frame, Pool};
use srdma_steering::{Path, SetId};
use srdma_testkit::packets;
use srdma_wire::{Instant, Prefix};
use std::net::Ipv6Addr;

pub(crate) const NIC1: &str = "2001:db8:1::1";
pub(crate) const NIC3: &str = "2001:db8:3::1";
pub(crate) const SPINE5: &str = "2001:db8:ff::5";
pub(crate) const SPINE6: &str = "2001:db8:ff::6";
pub(crate) const BY_SPINE5: &str = "5f00:0:100:500:300::";
pub(crate) const BY_SPINE6: &str = "5f00:0:100:600:300::";

/// NIC 3's queue pair, and NIC 1's.
pub(crate) const QPN3: u32 = 0x333;
pub(crate) const QPN1: u32 = 0x111;

pub(crate) const ACK: u8 = 0x1F;
pub(crate) const SEQUENCE_ERROR: u8 = 0x60;

const ROOM: usize = 14;

/// A path by a spine.
pub(crate) fn path(program: &str, spine: &str, rank: u16) -> HeadendPath {
    let path = Path { segments: vec![address(program)], nodes: vec![address(spine)], rank, is_denied: false };
    HeadendPath { path, ..HeadendPath::default() }
}

pub(crate) struct Nic {
    pub(crate) headend: Headend,
    pub(crate) pool: Pool,
    pub(crate) set: SetId,
    pub(crate) now: Instant,
}

impl Nic {
    /// Spine 5 before spine 6.
    pub(crate) fn new(change: impl FnOnce(&mut HeadendConfig)) -> Self {
        Self::with(change, &[path(BY_SPINE5, SPINE5, 0), path(BY_SPINE6, SPINE6, 1)])
    }

    pub(crate) fn with(change: impl FnOnce(&mut HeadendConfig), paths: &[HeadendPath]) -> Self {
        let mut config = HeadendConfig::new(address(NIC1));
        config.steering.flows = 1024;
        change(&mut config);
        let mut headend = Headend::new(config);
        let set = headend.set_paths(Instant::ZERO, None, paths).unwrap();
        headend.lead(Prefix::new(address("2001:db8:3::"), 64).unwrap(), set);
        Nic { headend, pool: Pool::new(256), set, now: Instant::from_ns(1) }
    }

    /// Lets time pass, in microseconds.
    pub(crate) fn pass_us(&mut self, us: u64) {
        self.now = self.now.after_ns(us * 1000);
    }

    /// Sends a packet; returns it as it leaves, from the outer IPv6 header on.
    pub(crate) fn send(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut frame = self.frame(packet);
        let octets = self.headend.outgoing(self.now, &mut frame, &mut self.pool).unwrap().unwrap();
        let sent = frame.to_vec(&self.pool);
        frame.release(&mut self.pool);
        assert_eq!(sent.len() - ROOM, octets + packet.len());
        sent[ROOM..].to_vec()
    }

    /// The outer destination address of a packet with this PSN.
    pub(crate) fn destination(&mut self, psn: u32) -> String {
        destination_of(&self.send(&data(QPN3, psn)))
    }

    /// Gives the headend a packet that came in.
    pub(crate) fn receive(&mut self, packet: &[u8]) -> Incoming {
        let frame = self.frame(packet);
        let incoming = self.headend.incoming(self.now, &frame, &self.pool);
        assert_eq!(&frame.to_vec(&self.pool)[ROOM..], packet, "hosts get what was sent to them");
        frame.release(&mut self.pool);
        incoming
    }

    /// The probes that are due, as they leave.
    pub(crate) fn probes(&mut self) -> Vec<Vec<u8>> {
        self.headend.tick(self.now);
        let mut probes = Vec::new();
        while let Some(frame) = self.headend.poll_probe(self.now, &mut self.pool) {
            probes.push(frame.to_vec(&self.pool)[ROOM..].to_vec());
            frame.release(&mut self.pool);
        }
        assert_eq!(self.pool.in_use(), 0);
        probes
    }

    fn frame(&mut self, packet: &[u8]) -> Frame {
        let octets = [&[0xEE; ROOM][..], packet].concat();
        Frame::from_octets(&octets, &mut self.pool).unwrap()
    }
}

/// The outer destination address, as text.
pub(crate) fn destination_of(packet: &[u8]) -> String {
    let octets: [u8; 16] = packet[24..40].try_into().unwrap();
    Ipv6Addr::from(octets).to_string()
}

/// A SEND Only to a queue pair of NIC 3, which requests an acknowledgement.
pub(crate) fn data(qpn: u32, psn: u32) -> Vec<u8> {
    rocev2(NIC1, NIC3, 0x04, qpn, psn, &[1, 2, 3, 4])
}

/// The response of NIC 3 to a queue pair of NIC 1.
pub(crate) fn answer(qpn: u32, psn: u32, syndrome: u8) -> Vec<u8> {
    rocev2(NIC3, NIC1, 0x11, qpn, psn, &[syndrome, 0, 0, 1])
}

/// NIC 3's CNP.
pub(crate) fn cnp(qpn: u32) -> Vec<u8> {
    packets::cnp(address(NIC3), address(NIC1), qpn)
}

/// A Fast CNP of a switch for a packet to a queue pair of NIC 3.
pub(crate) fn fast_cnp(switch: &str, qpn: u32) -> Vec<u8> {
    packets::fast_cnp(address(switch), address(NIC1), address(NIC3), qpn)
}

pub(crate) fn rocev2(source: &str, destination: &str, opcode: u8, qpn: u32, psn: u32, rest: &[u8]) -> Vec<u8> {
    packets::rocev2(address(source), address(destination), opcode, qpn, psn, rest)
}
