//! Once everything has grown to its size, nothing is allocated per packet or per message.

use allocation_counter::measure;
use srdma_rc::rate::{DcqcnParameters, HpccParameters, NsccParameters};
use srdma_rc::{
    Access, CompletedOperation, Endpoint, EndpointConfig, FastCnpConfig, Habits, LocalRange, MemoryKey, Operation,
    QueuePairConfig, RateAlgorithm, Receive, RemoteAddress, Status, TraceRequest, WorkRequest,
};
use srdma_wire::{Instant, Prefix, Qpn};
use std::net::Ipv6Addr;

const ADDRESSES: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)];
const MESSAGE_OCTETS: u32 = 1 << 20;

struct Pair {
    endpoints: [Endpoint; 2],
    keys: [MemoryKey; 2],
    qpn: Qpn,
    now: Instant,
    buffer: Vec<u8>,
    packets: u64,
}

impl Pair {
    fn new(habits: Habits, adjust: fn(&mut QueuePairConfig)) -> Self {
        let qpn = Qpn::new(0x10).expect("24 bits");
        let endpoints = [0, 1].map(|side| {
            let access_list = vec![Prefix::host(ADDRESSES[1 - side])];
            let fast_cnp = Some(FastCnpConfig::new(access_list));
            let mut endpoint = Endpoint::new(EndpointConfig { fast_cnp, ..EndpointConfig::new(ADDRESSES[side]) });
            let mut config = QueuePairConfig { habits, ..QueuePairConfig::new(qpn, ADDRESSES[1 - side], qpn) };
            adjust(&mut config);
            endpoint.add_queue_pair(config).expect("a good configuration");
            endpoint
        });
        let mut endpoints = endpoints;
        let keys = [0, 1].map(|side: usize| {
            endpoints[side].register_memory(vec![side as u8; MESSAGE_OCTETS as usize], 0, Access::REMOTE, 0)
        });
        let buffer = vec![0; endpoints[0].max_packet_octets()];
        Pair { endpoints, keys, qpn, now: Instant::ZERO, buffer, packets: 0 }
    }

    /// Posts an operation of each kind on either side.
    fn post(&mut self) {
        for side in 0..2 {
            let local = LocalRange { key: self.keys[side], offset: 0, length_octets: MESSAGE_OCTETS };
            let remote = RemoteAddress { virtual_address: 0, rkey: self.keys[1 - side] };
            for operation in [
                Operation::Write { remote, immediate: None },
                Operation::Send { immediate: Some([0; 4]) },
                Operation::Read { remote },
            ] {
                let request = WorkRequest { wr_id: 0, operation, local, signalled: true };
                self.endpoints[side].post_send(self.qpn, request).expect("posted");
            }
            self.endpoints[side].post_receive(self.qpn, Receive { wr_id: 0, local }).expect("posted");
            self.endpoints[side].send_cnp(self.qpn).expect("a good queue pair");
        }
    }

    /// Carries packets until all is done; every 500th is lost.
    fn run(&mut self) -> usize {
        let mut done = 0;
        while done < 8 {
            let mut is_idle = true;
            for side in 0..2 {
                while let Some(length) = self.endpoints[side].poll_transmit(self.now, &mut self.buffer) {
                    is_idle = false;
                    self.packets += 1;
                    if !self.packets.is_multiple_of(500) {
                        // Out of sequence behind a loss: refused, and counted.
                        let _ = self.endpoints[1 - side].receive(self.now, &[&self.buffer[..length]]);
                    }
                }
                while let Some(completion) = self.endpoints[side].poll_completion() {
                    assert_eq!(completion.status, Status::Success);
                    assert_ne!(completion.operation, CompletedOperation::ReceiveWriteImmediate);
                    done += 1;
                }
            }
            if is_idle && let Some(deadline) = self.endpoints.iter().filter_map(Endpoint::next_deadline).min() {
                self.now = deadline;
                self.endpoints.iter_mut().for_each(|endpoint| endpoint.tick(deadline));
            }
        }
        done
    }
}

#[test]
fn nothing_is_allocated_in_the_steady_state() {
    const LINE: u64 = 100_000_000_000;
    let by_dcqcn: fn(&mut QueuePairConfig) = |config| {
        config.rate = Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(LINE)));
    };
    let by_traces: fn(&mut QueuePairConfig) = |config| {
        config.rate = Some(RateAlgorithm::Hpcc(HpccParameters::published(LINE, 10_000, 1)));
        config.trace = Some(TraceRequest::hpcc(1, 9));
        config.trace_return_interval_ns = Some(1_000);
    };
    let by_round_trips: fn(&mut QueuePairConfig) = |config| {
        config.rate = Some(RateAlgorithm::Nscc(NsccParameters::published(LINE, 10_000, 4_198)));
        config.echoes_marks = true;
    };
    let cases = [
        (Habits::strict(), (|_| {}) as fn(&mut QueuePairConfig)),
        (Habits::soft_roce(), |_| {}),
        (Habits::strict(), by_dcqcn),
        (Habits::strict(), by_traces),
        (Habits::soft_roce(), by_round_trips),
    ];
    for (habits, adjust) in cases {
        let mut pair = Pair::new(habits, adjust);
        for _ in 0..20 {
            pair.post();
            pair.run();
        }
        let before = pair.packets;
        let info = measure(|| {
            for _ in 0..20 {
                pair.post();
                pair.run();
            }
        });
        assert!(pair.packets - before > 20_000, "{} packets", pair.packets - before);
        assert_eq!(info.count_total, 0, "{habits:?}: {info:?}");
    }
}
