//! A stream that is paused while receivers join (D30), between two endpoints in memory.

use srdma_host::{
    Congestion, Connection, Program, Receiving, ReceivingConfig, SendData, Sending, SendingConfig, SessionState, Sink,
    SourceControl, StreamProgress, TransferError, TransferMemory, TransferMode,
};
use srdma_rc::{Endpoint, MemoryKey, RemoteAddress};
use srdma_wire::{Instant, PathMtu, Psn, Qpn};
use std::cell::Cell;
use std::net::Ipv6Addr;
use std::rc::Rc;
use std::time::Duration;

const OCTETS: usize = 1 << 20;
const MESSAGE: u32 = 1 << 16;
const WINDOW: u32 = 32;
const TIMEOUT: Duration = Duration::from_secs(20);

fn connection(own: u16, peer: u16) -> Connection {
    let address = |number| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number);
    Connection {
        address: address(own),
        qpn: Qpn::new(0x10 + u32::from(own)).unwrap(),
        peer_address: address(peer),
        peer_qpn: Qpn::new(0x10 + u32::from(peer)).unwrap(),
        psn: Psn::new(0xFF_FFF0),
        path_mtu: PathMtu::Octets4096,
        window: WINDOW,
        ack_timeout: 14,
        retries: 7,
    }
}

/// The state that the stream gets, and its last progress.
#[derive(Clone)]
struct Script(Rc<Cell<(SessionState, StreamProgress)>>);

impl SourceControl for Script {
    fn update(&mut self, progress: StreamProgress) -> SessionState {
        let (state, _) = self.0.get();
        self.0.set((state, progress));
        state
    }
}

fn carry(now: Instant, from: &mut Endpoint<TransferMemory>, to: &mut Endpoint<TransferMemory>) {
    let mut packet = [0; 4400];
    while let Some(length) = from.poll_transmit(now, &mut packet) {
        // The test notices refused packets by their absence.
        let _ = to.receive(now, &[&packet[..length]]);
    }
}

/// D30: a pause lets begun messages complete and begins none; the reported PSN and messages are what the receiver has.
/// The pause may last longer than the timeout. A closed group ends the stream.
#[test]
fn a_paused_stream_drains_and_resumes() {
    for ends_well in [true, false] {
        let mut source = connection(1, 2).endpoint(&Congestion::default()).unwrap();
        let mut receiver = connection(2, 1).endpoint(&Congestion::default()).unwrap();
        let mut now = Instant::ZERO;
        let (mut of_source, mut of_receiver) = (|_| {}, |_| {});
        let config =
            ReceivingConfig { qpn: connection(2, 1).qpn, virtual_address: 0, key_tag: 7, timeout: 9 * TIMEOUT };
        let mut receiving =
            Receiving::new(now, config, Sink::new(OCTETS as u64, 0, None), &mut receiver, &mut of_receiver);
        let config = SendingConfig {
            qpn: connection(1, 2).qpn,
            mode: TransferMode::Write(RemoteAddress { virtual_address: 0, rkey: MemoryKey(7) }),
            message_octets: MESSAGE,
            timeout: TIMEOUT,
        };
        let script = Script(Rc::new(Cell::new((SessionState::Sending, StreamProgress::default()))));
        let mut control = script.clone();
        let sending = Sending::new(now, config, SendData::in_memory(vec![5; OCTETS]), &mut source, &mut of_source);
        let mut sending = sending.controlled_by(&mut control, PathMtu::Octets4096, WINDOW);
        let mut round = |step: Duration| {
            now += step;
            let ends = sending.work(now, &mut source).is_break();
            assert!(ends || sending.next_deadline() > Some(now));
            carry(now, &mut source, &mut receiver);
            let _ = receiving.work(now, &mut receiver);
            carry(now, &mut receiver, &mut source);
            let payload = receiver.counters(connection(2, 1).qpn).unwrap().payload_octets_received;
            (ends, script.0.get().1, payload)
        };
        let brief = Duration::from_micros(20);
        while !round(brief).1.is_drained || script.0.get().0 == SessionState::Sending {
            if script.0.get().1.completed_messages >= 2 {
                script.0.set((SessionState::Paused, script.0.get().1));
            }
        }
        let (_, quiet, payload) = round(TIMEOUT * 3);
        assert!(quiet.is_drained && (2..16).contains(&quiet.completed_messages), "{quiet:?}");
        assert_eq!((quiet.begun_packets, quiet.acknowledged_packets), (16 * quiet.completed_messages, payload / 4096));
        let state = if ends_well { SessionState::Sending } else { SessionState::Ended };
        script.0.set((state, quiet));
        let rounds = (0..10_000).find(|_| round(brief).0);
        assert!(rounds.is_some());
        match ends_well {
            true => assert_eq!((sending.outcome().unwrap().is_ok(), sending.completions()), (true, 17)),
            false => assert_eq!(sending.outcome(), Some(Err(TransferError::GroupClosed))),
        }
    }
}
