//! Two queue pairs of one device, connected to each other: WRITE, WRITE with immediate and SEND, checked octet by
//! octet, and the errors that users meet. Exit code 1 at the first check that fails.
//!
//! ```sh
//! loopback ADDRESS          # an address of the device
//! loopback ADDRESS locked   # expects that memory cannot be locked
//! ```
//!
//! It adds addresses and a neighbour to interface eth0 and sets it down, by `ip`: it is made for a virtual machine.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_verbs::gid::GidProblem;
use srdma_verbs::{
    Access, AckTimeout, Buffer, Completed, Completion, CompletionQueue, Device, Event, LocalAddress, MemoryRegion,
    Operation, ProtectionDomain, QueuePair, QueuePairOptions, ReadyToReceive, ReadyToSend, RemoteMemory, SendRequest,
    VerbsError, WorkStatus, devices,
};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::error::Error;
use std::fmt::Debug;
use std::fs::File;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// 300 packets: more than are left before the PSNs wrap.
const OCTETS: usize = 300 * 1024 - 7;
const PATH_MTU: PathMtu = PathMtu::Octets1024;
/// Of the peer's memory; another one than that of the process.
const VIRTUAL_ADDRESS: u64 = 0x7000_0000_0000;
/// Time that a completion may take, in milliseconds: emulated machines are slow.
const PATIENCE_MS: u16 = 30_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [address] => address.parse().map_err(Into::into).and_then(run),
        [address, "locked"] => address.parse().map_err(Into::into).and_then(locked),
        _ => Err("usage: loopback ADDRESS [locked]".into()),
    };
    match result {
        Ok(()) => {
            println!("PASSED");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("FAILED {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(address: Ipv6Addr) -> Outcome {
    let (device, local) = Device::open_by_address(address)?;
    println!("device {} port {} GID index {}", device.name(), local.port, local.gid_index);
    check(devices()?.contains(&device.name().to_owned()), "the device is listed")?;
    println!("{:?}", device.limits()?);
    println!("{:?}", device.port(local.port)?);
    addresses(&device)?;
    let domain = device.protection_domain()?;
    transfers(&domain, &local)?;
    wrong_rkey(&domain, &local)?;
    no_receive(&domain, &local)?;
    queues(&domain, &local)?;
    dma_buf(&domain)?;
    destinations(&domain, &local)?;
    packets(&domain, &local)?;
    events(&device)
}

/// Devices and addresses that do not exist.
fn addresses(device: &Device) -> Outcome {
    let error = Device::open("none0").err().ok_or("none0 exists")?;
    check(
        matches!(&error, VerbsError::NoSuchDevice { present, .. } if present.contains(&device.name().to_owned())),
        &error,
    )?;
    for (text, is_expected) in [
        ("2001:db8:ffff::9", (|problem| matches!(problem, GidProblem::NotFound(_))) as fn(&GidProblem) -> bool),
        ("fe80::1", |problem| matches!(problem, GidProblem::NotGlobal)),
    ] {
        let error = Device::open_by_address(text.parse()?).err().ok_or("it has an address of no host")?;
        check(matches!(&error, VerbsError::NoSuchAddress { problem, .. } if is_expected(problem)), &error)?;
    }
    Ok(())
}

/// One side of a connection.
struct Side {
    completions: CompletionQueue,
    pair: QueuePair,
}

impl Side {
    fn new(domain: &ProtectionDomain, local: &LocalAddress, access: Access) -> Outcome<Self> {
        let completions = domain.device().completion_queue(64)?;
        let options = QueuePairOptions { send_requests: 16, receive_requests: 16, elements: 2 };
        let pair = domain.queue_pair(&options, &completions, &completions)?;
        pair.to_init(local, access)?;
        Ok(Side { completions, pair })
    }

    /// The next completion, for which it waits by poll(2) on the descriptor of the channel.
    fn completion(&self) -> Outcome<Completion> {
        let mut completions = Vec::new();
        self.completions.request_notification()?;
        while self.completions.poll(&mut completions)? == 0 {
            wait(self.completions.as_fd())?;
            if self.completions.take_events()? == 0 {
                return Err("the descriptor was readable without an event".into());
            }
            self.completions.request_notification()?;
        }
        match completions[..] {
            [completion] if completion.qpn == self.pair.qpn() => Ok(completion),
            _ => Err(format!("unexpected completions: {completions:?}").into()),
        }
    }

    fn post(&self, id: u64, operation: Operation, region: &MemoryRegion<Buffer>) -> Outcome {
        // Two elements, so that their order matters.
        let elements = [region.element(0..1000)?, region.element(1000..region.octets())?];
        Ok(self.pair.post_send(&SendRequest { id, operation, is_signalled: true }, &elements)?)
    }
}

/// A source whose PSNs wrap after 200 packets, and a receiver.
fn connected(domain: &ProtectionDomain, local: &LocalAddress, rnr_retry_count: u8) -> Outcome<(Side, Side)> {
    let source = Side::new(domain, local, Access::LocalRead)?;
    let receiver = Side::new(domain, local, Access::RemoteWrite)?;
    let (source_psn, receiver_psn) = (Psn::new(0).minus(200), Psn::new(0).minus(1));
    let ends = [(&source, &receiver, source_psn, receiver_psn), (&receiver, &source, receiver_psn, source_psn)];
    for (own, peer, first_psn, expected_psn) in ends {
        let ready = ReadyToReceive::new(*local, local.address, peer.pair.qpn(), expected_psn, PATH_MTU);
        own.pair.to_rtr(&ready)?;
        // Emulated machines need half a second.
        let ack_timeout = AckTimeout::new(17).ok_or("a timeout")?;
        own.pair.to_rts(&ReadyToSend { ack_timeout, rnr_retry_count, ..ReadyToSend::new(first_psn) })?;
    }
    Ok((source, receiver))
}

fn transfers(domain: &ProtectionDomain, local: &LocalAddress) -> Outcome {
    let (source, receiver) = connected(domain, local, 7)?;
    let data: Vec<u8> = (0..OCTETS).map(|i| (i * 31 + i / 251) as u8).collect();
    let mut buffer = Buffer::new(OCTETS);
    buffer.write(0, &data);
    let sent = domain.register(buffer, Access::LocalRead)?;
    let written = domain.register_at(Buffer::new(OCTETS + 4096), VIRTUAL_ADDRESS, Access::RemoteWrite)?;
    let received = domain.register(Buffer::new(OCTETS), Access::LocalWrite)?;
    let remote = RemoteMemory { virtual_address: written.virtual_address() + 4096, rkey: written.rkey() };
    check(written.virtual_address() == VIRTUAL_ADDRESS, "the virtual address is that of the caller")?;

    let start = Instant::now();
    receiver.pair.post_receive(1, &[])?;
    source.post(2, Operation::WriteWithImmediate(remote, 0x0102_0304), &sent)?;
    let octets = OCTETS as u32;
    expect(receiver.completion()?, 1, Completed::ReceiveWrite { octets, immediate: 0x0102_0304 })?;
    expect(source.completion()?, 2, Completed::Write)?;
    println!("WRITE with immediate: {OCTETS} octets in {} us", start.elapsed().as_micros());
    let mut octets_read = vec![0; OCTETS];
    written.memory().read(4096, &mut octets_read);
    check(octets_read == data, "the octets of WRITE are the source's")?;
    written.memory().read(0, &mut octets_read[..4096]);
    check(octets_read[..4096] == [0; 4096], "octets before them are as they were")?;

    let halves = [received.element(0..70_000)?, received.element(70_000..OCTETS)?];
    receiver.pair.post_receive(3, &halves)?;
    source.post(4, Operation::Send, &sent)?;
    expect(receiver.completion()?, 3, Completed::Receive { octets, immediate: None })?;
    expect(source.completion()?, 4, Completed::Send)?;
    // Memory returns to the caller when the device cannot reach it.
    let buffer = received.deregister()?;
    buffer.read(0, &mut octets_read);
    check(octets_read == data, "the octets of SEND are the source's")?;

    let mut sent = sent;
    sent.write(0, b"again");
    source.post(5, Operation::Write(remote), &sent)?;
    expect(source.completion()?, 5, Completed::Write)?;
    written.memory().read(4096, &mut octets_read[..5]);
    check(&octets_read[..5] == b"again", "the octets of WRITE without immediate are the source's")
}

/// A WRITE that the receiver refuses: status, flushed requests, and the receiver's event.
fn wrong_rkey(domain: &ProtectionDomain, local: &LocalAddress) -> Outcome {
    let (source, receiver) = connected(domain, local, 7)?;
    let sent = domain.register(Buffer::new(OCTETS), Access::LocalRead)?;
    let target = domain.register(Buffer::new(OCTETS), Access::RemoteWrite)?;
    let wrong = RemoteMemory { virtual_address: target.virtual_address(), rkey: target.rkey() ^ 0x5a };
    receiver.pair.post_receive(7, &[])?;
    source.post(6, Operation::Write(wrong), &sent)?;
    let error = source.completion()?.result.err().ok_or("a WRITE by a wrong rkey has succeeded")?;
    check(error.status == WorkStatus::RemoteAccess && error.text == "remote access error", &error)?;
    println!("wrong rkey: {error}");

    // Both are in error: requests are flushed.
    receiver.pair.to_error()?;
    let flushed = receiver.completion()?.result.err().ok_or("a queue pair in error receives")?;
    check(flushed.status == WorkStatus::Flushed, &flushed)?;
    source.post(8, Operation::Send, &sent)?;
    let flushed = source.completion()?.result.err().ok_or("a queue pair in error sends")?;
    check(flushed.status == WorkStatus::Flushed, &flushed)?;
    println!("afterwards: {flushed}");

    // A WRITE to memory that was deregistered.
    let (source, _receiver) = connected(domain, local, 7)?;
    let gone = RemoteMemory { virtual_address: target.virtual_address(), rkey: target.rkey() };
    target.deregister()?;
    source.post(9, Operation::Write(gone), &sent)?;
    let error = source.completion()?.result.err().ok_or("a WRITE to deregistered memory has succeeded")?;
    check(error.status == WorkStatus::RemoteAccess, &error)
}

/// A SEND for which nothing was posted.
fn no_receive(domain: &ProtectionDomain, local: &LocalAddress) -> Outcome {
    let (source, _receiver) = connected(domain, local, 1)?;
    let sent = domain.register(Buffer::new(OCTETS), Access::LocalRead)?;
    source.post(10, Operation::Send, &sent)?;
    let error = source.completion()?.result.err().ok_or("a SEND without a receive has succeeded")?;
    check(error.status == WorkStatus::RnrRetriesExceeded, &error)?;
    println!("no receive: {error}");
    Ok(())
}

/// The send queue of a source whose receiver takes nothing.
fn full_send_queue(domain: &ProtectionDomain, local: &LocalAddress) -> Outcome {
    let (source, _receiver) = connected(domain, local, 7)?;
    let sent = domain.register(Buffer::new(OCTETS), Access::LocalRead)?;
    let element = sent.element(0..16)?;
    let post =
        |id| source.pair.post_send(&SendRequest { id, operation: Operation::Send, is_signalled: false }, &[element]);
    let error = (0..100_000).find_map(|id| post(id).err()).ok_or("a queue without end")?;
    check(matches!(error, VerbsError::QueueFull { queue: "send", .. }), &error)?;
    println!("full: {error}");
    Ok(())
}

/// Full queues, and ranges that are not in a region.
fn queues(domain: &ProtectionDomain, local: &LocalAddress) -> Outcome {
    full_send_queue(domain, local)?;
    let side = Side::new(domain, local, Access::LocalWrite)?;
    let region = domain.register(Buffer::new(4096), Access::LocalWrite)?;
    let element = region.element(0..4096)?;
    let error =
        (0..100_000).find_map(|id| side.pair.post_receive(id, &[element]).err()).ok_or("a queue without end")?;
    check(matches!(error, VerbsError::QueueFull { queue: "receive", .. }), &error)?;
    let error = side.pair.post_receive(0, &[element; 3]).err().ok_or("three elements")?;
    check(matches!(error, VerbsError::TooLarge { value: 3, most: 2, .. }), &error)?;
    for range in [0..4097, 4096..4096, 4097..4098] {
        check(region.element(range.clone()).is_err(), &range)?;
    }
    Ok(())
}

/// Soft-RoCE of Linux 6.1 cannot register memory of other devices.
fn dma_buf(domain: &ProtectionDomain) -> Outcome {
    let descriptor = File::open("/dev/null")?.into();
    let error = domain.register_dma_buf(descriptor, 0, 4096, VIRTUAL_ADDRESS, Access::RemoteWrite).err();
    let error = error.ok_or("/dev/null is no dma-buf")?;
    check(matches!(error, VerbsError::NotSupported { .. }), &error)?;
    println!("dma-buf: {error}");
    Ok(())
}

/// Destinations without a host, without a route, and a path MTU that is too large.
fn destinations(domain: &ProtectionDomain, local: &LocalAddress) -> Outcome {
    let side = Side::new(domain, local, Access::RemoteWrite)?;
    let qpn = Qpn::new(0x11).ok_or("a number")?;
    let connect = |destination: Ipv6Addr, path_mtu| {
        let ready = ReadyToReceive::new(*local, destination, qpn, Psn::new(0), path_mtu);
        side.pair.to_rtr(&ready).err().ok_or(format!("connected to {destination}"))
    };
    let mut neighbour = local.address.octets();
    neighbour[15] ^= 0x55;
    let start = Instant::now();
    let error = connect(neighbour.into(), PATH_MTU)?;
    check(matches!(error, VerbsError::DestinationUnresolved { .. }), &error)?;
    let elapsed = start.elapsed();
    println!("no neighbour, after {} ms: {error}", elapsed.as_millis());
    // The kernel waits for a second, and is asked four times.
    check(elapsed >= Duration::from_secs(3), &elapsed)?;
    let error = connect("2001:db8:ffff::1".parse()?, PATH_MTU)?;
    check(matches!(error, VerbsError::DestinationUnreachable { .. }), &error)?;
    println!("no route: {error}");
    let error = connect(local.address, PathMtu::Octets4096)?;
    check(matches!(error, VerbsError::PathMtu { active_mtu_octets: 1024, .. }), &error)?;
    println!("path MTU: {error}");
    // It is still in state INIT, and an order of states that does not exist is refused by the kernel.
    let error = side.pair.to_rts(&ReadyToSend::new(Psn::new(0))).err().ok_or("from INIT to RTS")?;
    check(matches!(error, VerbsError::System { .. }), &error)
}

/// Packets to a host that does not respond: the interface sends them, to be captured, and the retries end.
fn packets(domain: &ProtectionDomain, local: &LocalAddress) -> Outcome {
    ip("-6 neighbour replace 2001:db8::99 lladdr 02:00:00:00:00:99 dev eth0 nud permanent")?;
    ip("-6 route add 2001:db8::99/128 dev eth0 hoplimit 33")?;
    let source = Side::new(domain, local, Access::LocalRead)?;
    let qpn = Qpn::new(0xab_cdef).ok_or("a number")?;
    let mut ready = ReadyToReceive::new(*local, "2001:db8::99".parse()?, qpn, Psn::new(0), PATH_MTU);
    ready.traffic_class = 0x68;
    source.pair.to_rtr(&ready)?;
    let first_psn = Psn::new(0).minus(2);
    source.pair.to_rts(&ReadyToSend { retry_count: 1, ..ReadyToSend::new(first_psn) })?;
    let mut buffer = Buffer::new(3000);
    buffer.write(0, &(0..3000).map(|i| (i % 251) as u8).collect::<Vec<u8>>());
    let sent = domain.register(buffer, Access::LocalRead)?;
    let remote = RemoteMemory { virtual_address: 0x1122_3344_5566_7788, rkey: 0x99aa_bbcc };
    source.post(11, Operation::WriteWithImmediate(remote, 0x0102_0304), &sent)?;
    let error = source.completion()?.result.err().ok_or("a host that does not exist has responded")?;
    check(error.status == WorkStatus::RetriesExceeded, &error)?;
    println!("no response: {error}");
    Ok(())
}

fn ip(words: &str) -> Outcome {
    check(Command::new("ip").args(words.split(' ')).status()?.success(), words)
}

/// Asynchronous events: another address changes the GID table, and the interface is set down.
fn events(device: &Device) -> Outcome {
    let mut earlier = Vec::new();
    while let Some(event) = device.next_event()? {
        earlier.push(event);
    }
    println!("events so far: {earlier:?}");
    ip("address add 2001:db8::77/64 dev eth0 nodad")?;
    wait(device.event_descriptor())?;
    let event = device.next_event()?;
    check(event == Some(Event::GidChange(1)), &event)?;
    let added = device.address("2001:db8::77".parse()?)?;
    println!("GID index of the added address: {}", added.gid_index);

    // Addresses stay when the interface goes down, so that the port is what is wrong.
    std::fs::write("/proc/sys/net/ipv6/conf/eth0/keep_addr_on_down", "1")?;
    ip("link set eth0 down")?;
    wait_for(device, Event::PortError(1))?;
    let error = device.address(added.address).err().ok_or("the address of a port that is down")?;
    check(matches!(error, VerbsError::PortDown { port: 1, .. }), &error)?;
    println!("port: {error}");
    ip("link set eth0 up")?;
    wait_for(device, Event::PortActive(1))
}

fn wait_for(device: &Device, expected: Event) -> Outcome {
    loop {
        wait(device.event_descriptor())?;
        while let Some(event) = device.next_event()? {
            println!("event: {event}");
            if event == expected {
                return Ok(());
            }
        }
    }
}

/// For a process whose limit of locked memory is less than 1 MiB and that may not ignore it.
fn locked(address: Ipv6Addr) -> Outcome {
    let (device, _) = Device::open_by_address(address)?;
    let domain = device.protection_domain()?;
    domain.register(Buffer::new(4096), Access::RemoteWrite)?;
    let error = domain.register(Buffer::new(1 << 20), Access::RemoteWrite).err().ok_or("1 MiB was locked")?;
    check(matches!(error.error, VerbsError::LockedMemory { limit_octets: Some(65536), .. }), &error)?;
    println!("{error}");
    Ok(())
}

fn wait(descriptor: BorrowedFd<'_>) -> Outcome {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::POLLIN)];
    match poll(&mut descriptors, PollTimeout::from(PATIENCE_MS))? {
        0 => Err("nothing has happened in time".into()),
        _ => Ok(()),
    }
}

fn expect(completion: Completion, id: u64, expected: Completed) -> Outcome {
    check(completion.id == id && completion.result == Ok(expected), &completion)
}

fn check(is_right: bool, what: &(impl Debug + ?Sized)) -> Outcome {
    if is_right { Ok(()) } else { Err(format!("{what:?}").into()) }
}
