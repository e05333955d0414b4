//! Pauses of a source whose window is a single packet, so that between any two of its messages nothing is outstanding.

use crate::memory::HostMemory;
use crate::provider::Registrar;
use crate::provider::udp::EndpointSource;
use crate::publisher::{Publisher, PublisherConfig};
use crate::{Buffer, DigestKind, Slots};
use srdma_host::{SessionState, SourceControl, StreamProgress};
use srdma_rc::{Access, Endpoint, EndpointConfig, LocalRange, QueuePairConfig, Receive, RemoteAddress};
use srdma_wire::{Instant, PathMtu, Qpn};
use std::net::Ipv6Addr;
use std::time::Duration;

const ADDRESSES: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)];
/// A begin message, four WRITEs of 250 octets, and an end message, each of one packet.
const MESSAGES: u64 = 6;

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).expect("24 bits")
}

fn queue_pair(side: usize) -> QueuePairConfig {
    let numbers = [qpn(0x11), qpn(0x22)];
    QueuePairConfig {
        path_mtu: PathMtu::Octets256,
        ..QueuePairConfig::new(numbers[side], ADDRESSES[1 - side], numbers[1 - side])
    }
}

/// Orders a pause after so many messages, and checks when it is in effect.
struct Pausing {
    pause_after: u64,
    reports: u64,
    paused_at: Option<StreamProgress>,
}

impl SourceControl for Pausing {
    fn update(&mut self, progress: StreamProgress) -> SessionState {
        self.reports += 1;
        if progress.is_drained {
            assert_eq!(progress.completed_messages % MESSAGES, 0, "in the middle of a version");
            assert_eq!(progress.begun_packets, progress.acknowledged_packets);
        }
        if progress.completed_messages < self.pause_after {
            return SessionState::Sending;
        }
        if !progress.is_drained {
            return SessionState::Draining;
        }
        let paused_at = *self.paused_at.get_or_insert(progress);
        assert_eq!(paused_at, progress, "a source that is paused has sent something");
        SessionState::Paused
    }
}

/// D174: wherever the order to pause comes, it takes effect at the end of the version that has begun.
#[test]
fn a_pause_takes_effect_between_versions_only() {
    for pause_after in 0..=2 * MESSAGES {
        let mut source: Endpoint<HostMemory> = Endpoint::new(EndpointConfig::new(ADDRESSES[0]));
        source.add_queue_pair(queue_pair(0)).expect("a good configuration");
        let mut receiver: Endpoint = Endpoint::new(EndpointConfig::new(ADDRESSES[1]));
        receiver.add_queue_pair(queue_pair(1)).expect("a good configuration");
        let region = receiver.register_memory(vec![0; 2000], 0, Access::REMOTE_WRITE, 1);
        let messages = receiver.register_memory(vec![0; 1000], 0, Access::LOCAL, 1);
        let local = LocalRange { key: messages, offset: 0, length_octets: 1000 };
        (0..100).for_each(|wr_id| receiver.post_receive(qpn(0x22), Receive { wr_id, local }).expect("posted"));
        let mut publisher = Publisher::new(
            PublisherConfig {
                path_mtu: PathMtu::Octets256,
                window_packets: 1,
                message_octets: 250,
                regions: vec![RemoteAddress { virtual_address: 0, rkey: region }],
                slots: Slots { count: 2, octets: 1000 }.into(),
                digest: DigestKind::Crc32,
                slow_after: Duration::from_secs(1),
                keeps_current: false,
                gives_up_after: None,
            },
            Registrar::Host,
        );
        for version in 1..=3 {
            publisher.publish(version, vec![Buffer::new("a", vec![version as u8; 1000])]).expect("taken");
        }
        let mut control = Pausing { pause_after, reports: 0, paused_at: None };
        let mut packet = [0; 600];
        for step in 0..100 {
            let now = Instant::from_ns(step * 1_000_000);
            publisher.work(now, &mut EndpointSource { endpoint: &mut source, qpn: qpn(0x11) }, &mut control);
            while let Some(length) = source.poll_transmit(now, &mut packet) {
                receiver.receive(now, &[&packet[..length]]).expect("taken");
            }
            while let Some(length) = receiver.poll_transmit(now, &mut packet) {
                source.receive(now, &[&packet[..length]]).expect("taken");
            }
        }
        assert_eq!(control.reports, 100);
        let paused_at = control.paused_at.expect("it has paused").completed_messages;
        assert_eq!(paused_at, pause_after.next_multiple_of(MESSAGES), "after {pause_after}");
    }
}
