use super::*;
use srdma_dataplane::headend::{HeadendConfig, HeadendPath};
use srdma_steering::Path;
use srdma_testkit::packets::{cnp, rocev2};
use srdma_wire::{Instant, Prefix};
use std::net::Ipv6Addr;

const OWN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 1, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 3, 0, 0, 0, 0, 1);
const BY_SPINE5: Ipv6Addr = Ipv6Addr::new(0x5F00, 0, 0x100, 0x500, 0x300, 0, 0, 0);
const BY_SPINE6: Ipv6Addr = Ipv6Addr::new(0x5F00, 0, 0x100, 0x600, 0x300, 0, 0, 0);

/// Packets sent, and packets to receive.
#[derive(Default)]
struct Memory {
    sent: Vec<Vec<u8>>,
    coming: Vec<Vec<u8>>,
}

impl Wire for Memory {
    fn receive(&mut self, take: &mut dyn FnMut(&[&[u8]])) -> io::Result<usize> {
        let coming = std::mem::take(&mut self.coming);
        for packet in &coming {
            let (head, rest) = packet.split_at(40.min(packet.len()));
            take(&[head, rest]);
        }
        Ok(coming.len())
    }

    fn transmit(&mut self, next: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        let mut octets = vec![0; 1500];
        let before = self.sent.len();
        while let Some(len) = next(&mut octets) {
            self.sent.push(octets[..len].to_vec());
        }
        Ok(self.sent.len() - before)
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn statistics(&self) -> WireStatistics {
        WireStatistics::default()
    }
}

fn steered() -> SteeredWire<Memory> {
    let path = |program, rank| HeadendPath {
        path: Path { segments: vec![program], rank, ..Path::default() },
        ..HeadendPath::default()
    };
    let mut headend = Headend::new(HeadendConfig::new(OWN));
    let set = headend.set_paths(Instant::ZERO, None, &[path(BY_SPINE5, 0), path(BY_SPINE6, 1)]).unwrap();
    headend.lead(Prefix::host(PEER), set);
    SteeredWire::new(Memory::default(), headend, Clock::start(), 1500)
}

/// Sends these packets of the host; returns the packets on the wire.
fn send(wire: &mut SteeredWire<Memory>, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut left = packets.iter();
    wire.transmit(&mut |octets| {
        let packet = left.next()?;
        octets[..packet.len()].copy_from_slice(packet);
        Some(packet.len())
    })
    .unwrap();
    std::mem::take(&mut wire.wire.sent)
}

/// Lets these come in; returns what the host gets.
fn receive(wire: &mut SteeredWire<Memory>, packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    wire.wire.coming = packets;
    let mut got = Vec::new();
    wire.receive(&mut |pieces| got.push(pieces.concat())).unwrap();
    got
}

fn data(psn: u32) -> Vec<u8> {
    rocev2(OWN, PEER, 0x04, 0x333, psn, &[7; 900])
}

fn destination(packet: &[u8]) -> Ipv6Addr {
    let octets: [u8; 16] = packet[24..40].try_into().unwrap();
    octets.into()
}

fn is_probe(packet: &[u8]) -> bool {
    destination(&packet[40..]) == OWN
}

/// PP-4-3, PP-4-6: by its first path, and when a CNP has come by the other.
#[test]
fn packets_take_a_path_and_leave_it_on_congestion() {
    let mut wire = steered();
    let sent = send(&mut wire, &[data(0), data(1)]);
    assert!(sent.len() == 2 && sent.iter().all(|packet| destination(packet) == BY_SPINE5));
    assert_eq!(sent[1][40..], data(1), "the host's packet is unchanged behind the outer header");
    // The acknowledgement shows which queue pair of the host the flow belongs to.
    let answers = vec![rocev2(PEER, OWN, 0x11, 0x111, 1, &[0, 0, 0, 1]), cnp(PEER, OWN, 0x111)];
    assert_eq!(receive(&mut wire, answers.clone()), answers, "the host gets what is its own");
    let sent = send(&mut wire, &[data(2)]);
    let of_host: Vec<_> = sent.iter().filter(|packet| !is_probe(packet)).collect();
    assert!(of_host.len() == 1 && destination(of_host[0]) == BY_SPINE6);
}

/// D87
#[test]
fn probes_are_sent_and_not_delivered_to_the_host() {
    let mut wire = steered();
    send(&mut wire, &[data(0)]);
    assert_eq!(receive(&mut wire, Vec::new()), Vec::<Vec<u8>>::new());
    let probes = send(&mut wire, &[]);
    assert!(!probes.is_empty() && probes.iter().all(|packet| is_probe(packet)));
    let inner: Vec<Vec<u8>> = probes.iter().map(|probe| probe[40..].to_vec()).collect();
    assert_eq!(receive(&mut wire, inner), Vec::<Vec<u8>>::new());
    assert_eq!(wire.headend().counters().probes_answered, probes.len() as u64);
}

#[test]
fn other_destinations_and_packets_too_long_for_the_wire() {
    let mut wire = steered();
    let other = rocev2(OWN, OWN, 0x04, 2, 0, &[1, 2, 3, 4]);
    let long = rocev2(OWN, PEER, 0x04, 2, 0, &[0; 1400]);
    assert_eq!(send(&mut wire, &[long, other.clone()]), [other]);
    assert_eq!(wire.statistics().send_errors, 1);
}
