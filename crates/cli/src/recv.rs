//! `srdma recv`: receives one stream by RDMA. Described in `docs/endpoints.md`.

mod device;
mod memory;

use crate::congestion::ReceiverArguments;
use crate::endpoint::{self, Progress};
use crate::output::print_line;
use crate::remote::{self, GroupUrl, TrustArguments};
use crate::units::parse_octets;
use anyhow::{Context, Result};
use serde::Serialize;
use srdma_host::{
    Clock, Connection, DeviceName, Lingering, OutputFile, PeerInfo, Received, Receiving, ReceivingConfig, Sink,
    TransferCounters, TransferError, TransferMemory, Wire, WireError, WireOptions, run as run_loop, source_address,
};
use srdma_io::udp::Segmentation;
use srdma_random::Stream;
use srdma_rc::Endpoint;
use srdma_session::Membership;
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Receive one stream of data by RDMA, over UDP or by an RDMA device.
///
/// The data are digested, and written with --out, as they come. Prints one line of JSON that `srdma send --peer-info`
/// reads, receives, and compares the checksum with the sender's.
/// To receive from a multicast group, the peer is the group's Proxy Address and Designated QPN. Exit code 1: the data
/// differ, or did not arrive.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The sender's address, or the group's Proxy Address.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "group", value_parser = endpoint::parse_address)]
    peer: Option<Ipv6Addr>,
    /// The sender's queue pair, or the group's Designated QPN.
    #[arg(long, value_name = "QPN", required_unless_present = "group", value_parser = endpoint::parse_qpn)]
    peer_qpn: Option<Qpn>,
    /// The sender's first PSN.
    #[arg(long, value_name = "PSN", required_unless_present = "group", value_parser = endpoint::parse_psn)]
    psn: Option<Psn>,
    #[command(flatten)]
    group: GroupArguments,
    /// Address of this host that receives the data [default: the source address for packets to the peer].
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::parse_address)]
    address: Option<Ipv6Addr>,
    /// Use a queue pair of this RDMA device, such as rxe0, mlx5_0 or an address of it, instead of a UDP socket.
    #[arg(long, value_name = "NAME|ADDRESS", conflicts_with_all = ["raw", "qpn", "rkey"])]
    device: Option<DeviceName>,
    /// With --device: the length of the sender's messages at most, if it uses --op send.
    #[arg(long, value_name = "OCTETS", default_value = "1MiB", value_parser = endpoint::parse_message)]
    message: u32,
    /// Queue pair of this host [default: random].
    #[arg(long, value_name = "QPN", value_parser = endpoint::parse_qpn)]
    qpn: Option<Qpn>,
    /// Key of the memory, 0 to 255 [default: random].
    #[arg(long, value_name = "KEY")]
    rkey: Option<u8>,
    /// First virtual address of the memory [default: random].
    #[arg(long, value_name = "ADDRESS")]
    virtual_address: Option<u64>,
    /// Seed of random numbers [default: different each time].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Maximum number of octets to receive. With --device so much memory is allocated before and locked, but not more
    /// than the region of a controller's group has.
    #[arg(long, value_name = "OCTETS", default_value = "1GiB", value_parser = parse_octets)]
    size: u64,
    /// Octets that may wait in memory to be digested and written while packets come faster.
    /// [default: a quarter of the memory that is free for this process, at most 1GiB]
    #[arg(long, value_name = "OCTETS", value_parser = parse_octets, conflicts_with = "device")]
    memory: Option<u64>,
    /// Take this memory, or that of --size where it is less, from the kernel before the sender learns of it, as that of
    /// an RDMA device is. Without it pages are cleared while packets come.
    #[arg(long, conflicts_with = "device")]
    populate: bool,
    /// RDMA path MTU, payload of a full packet: 256, 512, 1024, 2048 or 4096. It equals the sender's.
    #[arg(long, value_name = "OCTETS", default_value = "4096", value_parser = endpoint::parse_path_mtu)]
    path_mtu: PathMtu,
    /// Write the data to this file, which appears when they are complete and correct; without it they are verified and
    /// discarded. A pipe or a device is written at once.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Octets that the socket may buffer, as far as the system allows.
    #[arg(long, value_name = "OCTETS", default_value = "32MiB", value_parser = parse_octets)]
    buffer: u64,
    #[command(flatten)]
    raw: endpoint::RawArguments,
    #[command(flatten)]
    congestion: ReceiverArguments,
    /// Give up when no packet arrives for this time; with --device when no SEND does, since a device does not report
    /// WRITEs [default: 30s; with --device 600s].
    #[arg(long, value_name = "TIME", value_parser = endpoint::parse_time)]
    timeout: Option<Duration>,
    /// Stay until the sender has been silent for so long: the last acknowledgement may have been lost.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = endpoint::parse_time)]
    linger: Duration,
    /// Print the result as one JSON object, in one line.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn output(&self) -> Result<Option<OutputFile>> {
        Ok(self.out.as_deref().map(OutputFile::create).transpose()?)
    }
}

/// A controller's group to join.
#[derive(clap::Args)]
struct GroupArguments {
    /// A controller's group, such as http://localhost:8470/7: joins it and uses its path MTU.
    #[arg(long, value_name = "URL", conflicts_with_all = ["peer", "peer_qpn", "psn", "path_mtu"])]
    group: Option<String>,
    /// With --group: leave the group at the end.
    #[arg(long, requires = "group")]
    leave: bool,
    #[command(flatten)]
    trust: TrustArguments,
}

impl GroupArguments {
    fn find(&self) -> Result<Option<Membership>> {
        let Some(text) = &self.group else { return Ok(None) };
        let url = GroupUrl::parse(text)?;
        Membership::find(self.trust.client(&url.controller)?, url.id).map(Some)
    }
}

const EXAMPLES: &str = "\
Examples:
  srdma recv --peer 2001:db8::1 --peer-qpn 0x11 --psn 0 --out copy > info.json
      Waits for a sender at 2001:db8::1. There: srdma send FILE --peer-info info.json

  srdma recv --peer 2001:db8:cc::1 --peer-qpn 0xd00000 --psn 0 --qpn 0x1001 --rkey 1 --virtual-address 0x10000
      A receiver of a multicast group, with the parameters of its edge node.

  srdma recv --group http://[::1]:8470/7 --out copy
      Joins group 7 of a controller, and receives. There: srdma send FILE --group http://[::1]:8470/7

  srdma recv --group http://[::1]:8470/7 --out copy --device mlx5_0
      The same by a queue pair of the RDMA device mlx5_0. The source may be on a device, too, or not.

  srdma recv --peer 2001:db8::1 --peer-qpn 0x11 --psn 0 --raw eth0 --next-hop-mac 02:00:00:00:00:01 \
      --return-traces 20us
      Returns the traces of data packets to a sender whose rate control uses them.";

/// The result, for `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    octets: u64,
    seconds: f64,
    bits_per_second: u64,
    operation: Option<&'static str>,
    sha256: Option<String>,
    /// Whether the checksum is the sender's.
    matches: bool,
    /// The first PSN of a receiver that joined a running group: earlier data are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_psn: Option<u32>,
    /// Those of a device are the device's.
    #[serde(flatten)]
    counters: Option<TransferCounters>,
}

/// Runs the command.
///
/// # Errors
///
/// If an option cannot be met, or the socket fails.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(receive_all(arguments))
}

fn receive_all(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(device) = &arguments.device {
        return device::receive(arguments, device);
    }
    let membership = arguments.group.find()?;
    let mut connection = connection(arguments, membership.as_ref())?;
    let first_psn = connection.psn;
    let congestion = arguments.congestion.congestion(arguments.raw.is_given())?;
    congestion.check(connection.address)?;
    let mut endpoint = connection.endpoint(&congestion)?;
    let buffer_octets = u32::try_from(arguments.buffer).unwrap_or(u32::MAX);
    let max_packet_octets = endpoint.max_packet_octets();
    let options = WireOptions {
        raw: arguments.raw.interface(),
        connection: &connection,
        segmentation: Segmentation::Software,
        buffer_octets,
        max_packet_octets,
        probe_address: None,
    };
    let (mut wire, window) = options.open()?;
    let wire = wire.as_mut();
    let clock = Clock::start();
    let mut progress = Progress::new(None);
    let mut offer = Offer { arguments, window, membership: membership.as_ref(), connection: &mut connection };
    let received = receive(&mut offer, &clock, &mut endpoint, wire, &mut progress);
    progress.finish();
    let received = received?;
    let joined_psn = (connection.psn != first_psn).then(|| connection.psn.get());
    // The sender learns of a file that has failed, too.
    let is_answering = matches!(received, Ok(_) | Err(TransferError::File(_)));
    let code = finish(arguments, received, Some(TransferCounters::of(&endpoint, connection.qpn, wire)), joined_psn)?;
    if is_answering {
        let mut lingering = Lingering::new(clock.now(), connection.qpn, arguments.linger);
        run_loop(&clock, &mut endpoint, wire, &mut lingering).context("the socket failed")?;
    }
    if let Some(membership) = membership.filter(|_| arguments.group.leave) {
        membership.leave(connection.address)?;
    }
    Ok(code)
}

fn connection(arguments: &Arguments, membership: Option<&Membership>) -> Result<Connection> {
    const NEEDED: &str = "--peer, --peer-qpn and --psn are needed, or --group";
    let (peer_address, peer_qpn, psn, path_mtu) = match membership.map(Membership::group) {
        Some(group) => (
            group.summary.proxy,
            Qpn::new(group.designated_qpn).context("the controller describes an invalid group")?,
            Psn::new(group.initial_psn),
            PathMtu::from_octets(group.path_mtu.into()).context("the controller describes an invalid group")?,
        ),
        None => (
            arguments.peer.context(NEEDED)?,
            arguments.peer_qpn.context(NEEDED)?,
            arguments.psn.context(NEEDED)?,
            arguments.path_mtu,
        ),
    };
    let address = match arguments.address {
        Some(address) => address,
        None => source_address(peer_address)?,
    };
    let by_chance = endpoint::any_qpn(&mut Stream::new(seed(arguments), "queue pair"));
    let by_chance = Qpn::new(by_chance).context("24 bits")?;
    Ok(Connection {
        address,
        qpn: arguments.qpn.unwrap_or(by_chance),
        peer_address,
        peer_qpn,
        psn,
        path_mtu,
        window: 1,
        ack_timeout: 14,
        retries: 7,
    })
}

/// The parts of the offer that the sender gets, and the connection that receives.
struct Offer<'a> {
    arguments: &'a Arguments,
    window: u32,
    membership: Option<&'a Membership>,
    connection: &'a mut Connection,
}

/// Offers the memory to the sender, and receives.
fn receive(
    offer: &mut Offer<'_>,
    clock: &Clock,
    endpoint: &mut Endpoint<TransferMemory>,
    wire: &mut dyn Wire,
    progress: &mut Progress,
) -> Result<Result<Received, TransferError>> {
    let Offer { arguments, window, membership, connection } = offer;
    let mut chance = Stream::new(seed(arguments), "memory");
    let page = chance.below(1 << 32);
    let tag = chance.below(1 << 8) as u8;
    let config = ReceivingConfig {
        qpn: connection.qpn,
        virtual_address: arguments.virtual_address.unwrap_or(page << 12),
        key_tag: arguments.rkey.unwrap_or(tag),
        timeout: arguments.timeout.unwrap_or(Duration::from_secs(30)),
    };
    let mut report = |octets| progress.report(octets);
    let waiting_octets = arguments.memory.map_or_else(memory::octets_to_use, |octets| octets as usize);
    let mut sink = Sink::new(arguments.size, waiting_octets, arguments.output()?);
    if arguments.populate {
        sink.populate();
    }
    let mut receiving = Receiving::new(clock.now(), config, sink, endpoint, &mut report);
    let info = PeerInfo {
        address: connection.address,
        qpn: connection.qpn,
        rkey: receiving.rkey().0,
        virtual_address: config.virtual_address,
        path_mtu: connection.path_mtu,
        size: Some(arguments.size),
        psn: Some(connection.psn),
        peer_address: Some(connection.peer_address),
        peer_qpn: Some(connection.peer_qpn),
        window: Some(*window),
    };
    print_line(&info.line()?)?;
    if let Some(membership) = membership {
        // Packets that arrive meanwhile wait in the socket. A receiver that joins a running group expects another PSN
        // than assumed, so the endpoint is created again, with the same sink.
        connection.psn = membership.join(&info)?;
        let sink = receiving.take_sink(endpoint).context("the sink was taken")?;
        *endpoint = connection.endpoint(&arguments.congestion.congestion(arguments.raw.is_given())?)?;
        receiving = Receiving::new(clock.now(), config, sink, endpoint, &mut report);
    }
    run_loop(clock, endpoint, wire, &mut receiving).map_err(|error| WireError::during_transfer(error, connection))?;
    receiving.take(endpoint).context("the program has ended without an outcome")
}

/// Compares, keeps the file and prints the result.
fn finish<E: std::fmt::Display>(
    arguments: &Arguments,
    received: Result<Received, E>,
    counters: Option<TransferCounters>,
    joined_psn: Option<u32>,
) -> Result<ExitCode> {
    let mut report = Report {
        error: None,
        octets: 0,
        seconds: 0.0,
        bits_per_second: 0,
        operation: None,
        sha256: None,
        matches: false,
        joined_psn,
        counters,
    };
    let mut duration = Duration::ZERO;
    let is_received = received.is_ok();
    match received {
        Ok(received) => {
            duration = received.ended - received.began;
            report.octets = received.octets;
            report.seconds = duration.as_secs_f64();
            report.bits_per_second = endpoint::bits_per_second(report.octets, duration);
            report.operation = (report.octets > 0).then_some(if received.by_write { "write" } else { "send" });
            report.sha256 = received.sha256.map(hex::encode);
            report.matches = received.sha256 == Some(received.trailer.sha256);
            if let (true, Some(output)) = (report.matches || joined_psn.is_some(), received.output) {
                output.keep(received.octets)?;
            }
            if !report.matches && joined_psn.is_none() {
                let theirs = hex::encode(received.trailer.sha256);
                report.error = Some(match received.sha256 {
                    Some(_) => format!("the data differ from the sender's, whose SHA-256 is {theirs}"),
                    None => {
                        "the data came out of order, and cannot be verified when they are discarded: use --out FILE"
                            .to_owned()
                    }
                });
            }
        }
        Err(failure) => report.error = Some(failure.to_string()),
    }
    if arguments.json {
        print_line(&serde_json::to_string(&report)?)?;
    } else if is_received {
        print_line(&in_words(&report, duration))?;
    }
    if let Some(error) = &report.error {
        let anomalies = report.counters.as_ref().map(endpoint::anomalies).unwrap_or_default();
        let (before, after) = if anomalies.is_empty() { ("", "") } else { (" (", ")") };
        eprintln!("srdma: {}{before}{anomalies}{after}", crate::terminal::escaped(&error.to_string()));
    }
    let is_complete = report.matches || (report.joined_psn.is_some() && report.error.is_none());
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn in_words(report: &Report, duration: Duration) -> String {
    let mut text = endpoint::in_words(report.octets, duration);
    text += &report.sha256.as_ref().map(|sha256| format!(", SHA-256 {sha256}")).unwrap_or_default();
    text += &match (report.matches, report.joined_psn) {
        (true, _) => ", matches the sender's".to_owned(),
        (false, Some(psn)) => format!(", without data from before its join at PSN {psn}"),
        (false, None) if report.sha256.is_none() => ", NOT VERIFIED".to_owned(),
        (false, None) => ", DIFFERS from the sender's".to_owned(),
    };
    let anomalies = report.counters.as_ref().map(endpoint::anomalies).unwrap_or_default();
    if !anomalies.is_empty() {
        text += &format!("; {anomalies}");
    }
    text
}

fn seed(arguments: &Arguments) -> u64 {
    arguments.seed.unwrap_or_else(|| u64::from(std::process::id()))
}
