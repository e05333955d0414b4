//! Cost of rate control: time per packet, from `poll_transmit` at the sender to its ACK, both endpoints in one process
//! and in virtual time. `cargo run --release -p srdma-rc --example rates`.

use srdma_rc::rate::{DcqcnParameters, HpccParameters};
use srdma_rc::{
    Access, ConfigError, Endpoint, EndpointConfig, FastCnpConfig, LocalRange, MemoryKey, Operation, QueuePairConfig,
    RateAlgorithm, RemoteAddress, TraceRequest, WorkRequest,
};
use srdma_wire::{Instant, PathMtu, Prefix, Qpn};
use std::net::Ipv6Addr;

const LINE: u64 = 400_000_000_000;
const MESSAGE_OCTETS: u32 = 1 << 20;
const REPETITIONS: usize = 101;

/// A case: its name, and its settings at the sender.
type Case = (&'static str, fn(&mut QueuePairConfig));

const CASES: [Case; 5] = [
    ("no rate control", |_| {}),
    ("fixed rate", |config| config.rate = Some(RateAlgorithm::Fixed { bits_per_s: LINE })),
    ("DCQCN, not limited", |config| config.rate = Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(LINE)))),
    ("HPCC++ without traces", |config| {
        config.rate = Some(RateAlgorithm::Hpcc(HpccParameters::published(LINE, 20_000, 1)));
    }),
    ("HPCC++ with traces", |config| {
        config.rate = Some(RateAlgorithm::Hpcc(HpccParameters::published(LINE, 20_000, 1)));
        config.trace = Some(TraceRequest::hpcc(1, 5));
    }),
];

struct Pair {
    endpoints: [Endpoint; 2],
    keys: [MemoryKey; 2],
    now: Instant,
    buffer: Vec<u8>,
}

fn address(side: usize) -> Ipv6Addr {
    Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | (side as u128 + 1))
}

impl Pair {
    fn new(adjust: fn(&mut QueuePairConfig)) -> Result<Self, ConfigError> {
        let qpn = Qpn::from_octets([0, 0, 0x10]);
        let make = |side: usize| {
            let fast_cnp = Some(FastCnpConfig::new(vec![Prefix::host(address(1 - side))]));
            let config = EndpointConfig { fast_cnp, verify_icrc: false, ..EndpointConfig::new(address(side)) };
            let mut endpoint = Endpoint::new(config);
            let mut config = QueuePairConfig::new(qpn, address(1 - side), qpn);
            // The smallest payload, so that what a packet costs is not hidden by its octets.
            config.path_mtu = PathMtu::Octets256;
            if side == 0 {
                adjust(&mut config);
            }
            endpoint.add_queue_pair(config)?;
            let key = endpoint.register_memory(vec![0; MESSAGE_OCTETS as usize], 0, Access::REMOTE, 0);
            Ok((endpoint, key))
        };
        let ((sender, source), (receiver, target)) = (make(0)?, make(1)?);
        let buffer = vec![0; sender.max_packet_octets().max(receiver.max_packet_octets())];
        Ok(Pair { endpoints: [sender, receiver], keys: [source, target], now: Instant::ZERO, buffer })
    }

    /// Sends a message and returns how many packets it took, ACKs not counted.
    fn transfer(&mut self) -> u32 {
        let local = LocalRange { key: self.keys[0], offset: 0, length_octets: MESSAGE_OCTETS };
        let remote = RemoteAddress { virtual_address: 0, rkey: self.keys[1] };
        let operation = Operation::Write { remote, immediate: None };
        let request = WorkRequest { wr_id: 0, operation, local, signalled: true };
        let _ = self.endpoints[0].post_send(Qpn::from_octets([0, 0, 0x10]), request);
        let [sender, receiver] = &mut self.endpoints;
        let mut packets = 0;
        loop {
            while let Some(length) = sender.poll_transmit(self.now, &mut self.buffer) {
                packets += 1;
                let _ = receiver.receive(self.now, &[&self.buffer[..length]]);
                while let Some(length) = receiver.poll_transmit(self.now, &mut self.buffer) {
                    let _ = sender.receive(self.now, &[&self.buffer[..length]]);
                }
            }
            if sender.poll_completion().is_some() {
                return packets;
            }
            let Some(deadline) = sender.next_deadline() else { return packets };
            self.now = deadline;
            sender.tick(deadline);
        }
    }
}

fn main() -> Result<(), ConfigError> {
    let mut pairs: Vec<Pair> = CASES.iter().map(|(_, adjust)| Pair::new(*adjust)).collect::<Result<_, _>>()?;
    let mut times = vec![Vec::new(); CASES.len()];
    // In turns, so that a noisy moment affects all of them.
    for _ in 0..REPETITIONS {
        for (pair, times) in pairs.iter_mut().zip(&mut times) {
            let begin = std::time::Instant::now();
            let packets = pair.transfer();
            times.push(begin.elapsed().as_nanos() as f64 / f64::from(packets));
        }
    }
    for ((name, _), times) in CASES.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{name:24} least {:6.1} ns, median {:6.1} ns per packet", times[0], times[REPETITIONS / 2]);
    }
    Ok(())
}
