//! Rate of `srdma send` to `srdma recv` over a veth link, and of bare datagrams of the same length as a yardstick, in
//! turn: one thread for each end, on a processor of its own. Needs root and two processors.
//!
//! ```text
//! cargo run --release -p srdma-host --example endpoints [-- OCTETS ROUNDS [CASE]] [--json]
//! ```
//!
//! A CASE is a part of a name, for a profile of it alone.
//!
//! The yardstick is `sendmmsg` and `recvmmsg` alone, in the same batches, with as many datagrams outstanding: neither
//! headers nor ICRC are written or checked, nothing is copied to or from memory, and one datagram answers 64.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::json;
use srdma_host::{
    Clock, Congestion, Connection, Lingering, RawInterface, Receiving, ReceivingConfig, SendData, Sending,
    SendingConfig, Sink, TransferMode, WireOptions, run,
};
use srdma_io::namespace::{Namespace, NamespaceGuard};
use srdma_io::udp::{MAX_BATCH, Message, ReceiveBatch, Segmentation, UdpSocket};
use srdma_rc::{MemoryKey, RemoteAddress};
use srdma_wire::{MacAddress, PathMtu, Psn, Qpn};
use std::error::Error;
use std::io::IoSlice;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const ADDRESSES: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)];
const WINDOW: usize = 512;
const BUFFER_OCTETS: u32 = 32 << 20;
/// Payload of a full packet, and its UDP payload with BTH and ICRC.
const PATH_MTU: usize = 4096;
const DATAGRAM: usize = PATH_MTU + 16;
const ANSWER: usize = 20;
const ANSWERED: usize = 64;
const NAMES: [&str; 8] = [
    "datagrams alone",
    "send to recv",
    "send to recv, --populate",
    "datagrams alone, --gso",
    "send to recv, --gso",
    "send to recv, --gso, --populate",
    "send to recv, --raw",
    "send to recv, --raw, --populate",
];

type Failure = Box<dyn Error + Send + Sync>;
type Action<'a> = &'a (dyn Fn(usize, &Barrier) -> Result<Option<Duration>, Failure> + Sync);

fn main() -> Result<(), Failure> {
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let is_json = match options.as_slice() {
        [] => false,
        [json] if json == "--json" => true,
        _ => return Err(format!("{}: expected --json", options.join(" ")).into()),
    };
    let number = |place: usize, default: usize| arguments.get(place).map_or(Ok(default), |text| text.parse::<usize>());
    let (octets, rounds) = (number(0, 1 << 30)?, number(1, 11)?.max(1));
    let is_wanted = |name: &str| arguments.get(2).is_none_or(|case| name.contains(case.as_str()));
    // Whole answers.
    let datagrams = (octets / PATH_MTU).next_multiple_of(ANSWERED);
    let octets = datagrams * PATH_MTU;
    let ends = [NamespaceGuard::unique("srdma-endpoints")?, NamespaceGuard::unique("srdma-endpoints")?];
    link(&ends)?;
    let mut rates = [const { Vec::new() }; NAMES.len()];
    for _ in 0..rounds {
        for (name, rates) in NAMES.iter().zip(&mut rates).filter(|(name, _)| is_wanted(name)) {
            let segmentation = if name.contains("--gso") { Segmentation::Offload } else { Segmentation::Software };
            let is_ours = name.starts_with("send");
            let [raw, populate] = ["--raw", "--populate"].map(|option| name.contains(option));
            let duration = both(&ends, &|end, start| match (end, is_ours) {
                (0, true) => send(octets, segmentation, raw, start).map(Some),
                (0, false) => send_bare(datagrams, segmentation, start).map(Some),
                (_, true) => receive(octets, raw, populate, start).map(|()| None),
                (_, false) => receive_bare(datagrams, start).map(|()| None),
            })?;
            rates.push(octets as f64 * 8.0 / duration.as_nanos() as f64);
        }
    }
    let mut rows = Vec::new();
    for (name, rates) in NAMES.iter().zip(&mut rates).filter(|(_, rates)| !rates.is_empty()) {
        rates.sort_unstable_by(f64::total_cmp);
        rows.push((name, [rates[0], rates[rates.len() / 2], rates[rates.len() - 1]]));
    }
    if is_json {
        let row = |(name, [least, median, most]): &(&&str, [f64; 3])| {
            let unit = "gbit_per_s";
            json!({ "case": name, format!("{unit}_least"): least, format!("{unit}_median"): median,
                    format!("{unit}_most"): most })
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        println!("{}", json!({ "octets": octets, "rounds": rounds, "rows": rows }));
    } else {
        println!("{octets} octets, {rounds} rounds, Gbit/s   least  median    most");
        for (name, [least, median, most]) in rows {
            println!("{name:36} {least:7.2} {median:7.2} {most:7.2}");
        }
    }
    Ok(())
}

/// A link with the kernel's defaults.
fn link(ends: &[NamespaceGuard; 2]) -> Result<(), Failure> {
    let peer = ends[1].name();
    ends[0]
        .run(&["ip", "link", "add", "wire", "mtu", "4300", "type", "veth", "peer", "name", "wire", "netns", peer])?;
    for (number, (end, address)) in ends.iter().zip(ADDRESSES).enumerate() {
        end.run(&["ip", "link", "set", "wire", "address", &mac(number).to_string()])?;
        end.run(&["ip", "link", "set", "wire", "up", "mtu", "4300"])?;
        end.run(&["ip", "-6", "address", "add", &format!("{address}/64"), "dev", "wire", "nodad"])?;
    }
    Ok(())
}

/// Runs both ends, each in its namespace and on its processor, and gives what the first one measures.
fn both(ends: &[NamespaceGuard; 2], action: Action<'_>) -> Result<Duration, Failure> {
    let start = Barrier::new(2);
    let run = |end: usize| {
        let namespace: &Namespace = &ends[end];
        namespace.join()?;
        let mut processor = CpuSet::new();
        processor.set(end)?;
        sched_setaffinity(Pid::from_raw(0), &processor)?;
        action(end, &start)
    };
    thread::scope(|scope| {
        let receiver = scope.spawn(|| run(1));
        let sender = scope.spawn(|| run(0)).join().map_err(|_| "the sender has panicked")?;
        receiver.join().map_err(|_| "the receiver has panicked")??;
        Ok(sender?.ok_or("no duration")?)
    })
}

/// The link, with the next hop at this end.
fn interface(next_hop: usize) -> RawInterface<'static> {
    RawInterface { name: "wire", next_hop: mac(next_hop) }
}

fn mac(end: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, end as u8])
}

fn connection(end: usize) -> Result<Connection, Failure> {
    let qpn = |end: usize| Qpn::new(0x10 + end as u32).ok_or("a queue pair number");
    Ok(Connection {
        address: ADDRESSES[end],
        qpn: qpn(end)?,
        peer_address: ADDRESSES[1 - end],
        peer_qpn: qpn(1 - end)?,
        psn: Psn::new(0),
        path_mtu: PathMtu::Octets4096,
        window: WINDOW as u32,
        ack_timeout: 14,
        retries: 7,
    })
}

fn send(octets: usize, segmentation: Segmentation, raw: bool, start: &Barrier) -> Result<Duration, Failure> {
    let connection = connection(0)?;
    let mut endpoint = connection.endpoint(&Congestion::default())?;
    let options = WireOptions {
        raw: raw.then_some(interface(1)),
        connection: &connection,
        segmentation,
        buffer_octets: 4 << 20,
        max_packet_octets: endpoint.max_packet_octets(),
        probe_address: None,
    };
    let (mut wire, _) = options.open()?;
    let config = SendingConfig {
        qpn: connection.qpn,
        mode: TransferMode::Write(RemoteAddress { virtual_address: 0, rkey: MemoryKey(0) }),
        message_octets: 1 << 20,
        timeout: Duration::from_secs(30),
    };
    let data = SendData::in_memory(vec![0x5A; octets]);
    let mut report = |_| {};
    start.wait();
    let clock = Clock::start();
    let mut sending = Sending::new(clock.now(), config, data, &mut endpoint, &mut report);
    run(&clock, &mut endpoint, wire.as_mut(), &mut sending)?;
    let ended = sending.outcome().ok_or("no outcome")??;
    Ok(ended - srdma_wire::Instant::ZERO)
}

fn receive(octets: usize, raw: bool, populate: bool, start: &Barrier) -> Result<(), Failure> {
    let connection = connection(1)?;
    let mut endpoint = connection.endpoint(&Congestion::default())?;
    let options = WireOptions {
        raw: raw.then_some(interface(0)),
        connection: &connection,
        segmentation: Segmentation::Software,
        buffer_octets: BUFFER_OCTETS,
        max_packet_octets: endpoint.max_packet_octets(),
        probe_address: None,
    };
    let (mut wire, _) = options.open()?;
    let config =
        ReceivingConfig { qpn: connection.qpn, virtual_address: 0, key_tag: 0, timeout: Duration::from_secs(30) };
    let clock = Clock::start();
    let mut report = |_| {};
    let mut sink = Sink::new(octets as u64, 1 << 30, None);
    if populate {
        sink.populate();
    }
    let mut receiving = Receiving::new(clock.now(), config, sink, &mut endpoint, &mut report);
    start.wait();
    run(&clock, &mut endpoint, wire.as_mut(), &mut receiving)?;
    let mut lingering = Lingering::new(clock.now(), connection.qpn, Duration::from_millis(50));
    run(&clock, &mut endpoint, wire.as_mut(), &mut lingering)?;
    let received = receiving.take(&mut endpoint).ok_or("no outcome")??;
    if received.sha256 == Some(received.trailer.sha256) { Ok(()) } else { Err("the data differ".into()) }
}

fn socket(end: usize, segmentation: Segmentation, buffer_octets: u32) -> Result<(UdpSocket, SocketAddrV6), Failure> {
    let socket = UdpSocket::bind_toward(ADDRESSES[end], 4791, ADDRESSES[1 - end], segmentation)?;
    socket.grow_buffers(buffer_octets)?;
    Ok((socket, SocketAddrV6::new(ADDRESSES[1 - end], 4791, 0, 0)))
}

fn send_bare(count: usize, segmentation: Segmentation, start: &Barrier) -> Result<Duration, Failure> {
    let (socket, destination) = socket(0, segmentation, 4 << 20)?;
    // As many as a burst of the endpoint, each with octets of its own.
    let octets = vec![0x5A; DATAGRAM * MAX_BATCH];
    let slices: Vec<IoSlice<'_>> = octets.chunks(DATAGRAM).map(IoSlice::new).collect();
    let together = if segmentation == Segmentation::Offload { 65_000 / DATAGRAM } else { 1 };
    let mut answers = ReceiveBatch::new();
    start.wait();
    let begin = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    while answered < count {
        let burst = (WINDOW + answered - sent).min(count - sent).min(MAX_BATCH);
        let messages = slices[..burst].chunks(together);
        let messages: Vec<_> = messages.map(|packets| Message { destination, traffic_class: 0, packets }).collect();
        let taken = if messages.is_empty() { 0 } else { socket.send(&messages)? };
        sent += messages[..taken].iter().map(|message| message.packets.len()).sum::<usize>();
        socket.receive(&mut answers)?;
        let answer_octets = answers.datagrams().map(|answer| answer.octets.len() - ReceiveBatch::HEADROOM);
        answered += answer_octets.sum::<usize>() / ANSWER * ANSWERED;
    }
    Ok(begin.elapsed())
}

fn receive_bare(count: usize, start: &Barrier) -> Result<(), Failure> {
    let (socket, destination) = socket(1, Segmentation::Software, BUFFER_OCTETS)?;
    let answer = [IoSlice::new(&[0; ANSWER])];
    let mut batch = ReceiveBatch::new();
    start.wait();
    let (mut received, mut answered) = (0, 0);
    while answered < count {
        socket.receive(&mut batch)?;
        received += batch.datagrams().map(|it| (it.octets.len() - ReceiveBatch::HEADROOM) / DATAGRAM).sum::<usize>();
        while answered + ANSWERED <= received {
            let message = Message { destination, traffic_class: 0, packets: &answer };
            answered += socket.send(&[message])? * ANSWERED;
        }
    }
    Ok(())
}
