//! `srdma send`: sends one stream by RDMA. Described in `docs/endpoints.md`.

mod create;
mod device;

use crate::congestion::{CongestionReport, SenderArguments};
use crate::endpoint::{self, Progress};
use crate::output;
use crate::paths::{self, Carrier, PathArguments};
use crate::remote::{self, GroupUrl, TrustArguments};
use crate::units::{self, parse_octets};
use anyhow::{Context, Result, bail};
use clap::{ValueEnum, value_parser};
use serde::Serialize;
use srdma_host::{
    Clock, Connection, DeviceName, FileSource, GroupFile, PeerInfo, SendData, Sending, SendingConfig, TransferCounters,
    TransferMode, WireError, WireOptions, run as run_loop, source_address,
};
use srdma_io::udp::Segmentation;
use srdma_node::PathsFile;
use srdma_node::daemon::SteeringSnapshot;
use srdma_random::Stream;
use srdma_rc::{MemoryKey, RemoteAddress};
use srdma_session::{BeginOptions, ControlledGroup, CreatedGroup, SourceClient};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::fs;
use std::io::{self, Read};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Send one stream of data by RDMA, over UDP or by an RDMA device, to one receiver or to a multicast group.
///
/// A file is read while it is sent, so that its length does not matter; the standard input, random data, and all data
/// for an RDMA device are in memory before the transfer begins. Exit code 1: not everything was acknowledged.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file to send; - stands for the standard input.
    #[arg(value_name = "FILE", required_unless_present = "random", conflicts_with = "random")]
    file: Option<PathBuf>,
    /// Send so much random data instead of a file.
    #[arg(long, value_name = "OCTETS", value_parser = parse_octets)]
    random: Option<u64>,
    /// Seed of random data.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The first line that `srdma recv` printed; - stands for the standard input.
    #[arg(long, value_name = "FILE", required_unless_present = "controlled", conflicts_with = "controlled")]
    peer_info: Option<PathBuf>,
    /// The multicast group: a file in the format of docs/endpoints.md, or a controller's URL, such as
    /// http://localhost:8470/7.
    #[arg(long, value_name = "FILE|URL", value_parser = GroupPlace::parse, group = "controlled")]
    group: Option<GroupPlace>,
    /// Use a queue pair of this RDMA device, such as rxe0, mlx5_0 or an address of it, instead of a UDP socket.
    #[arg(long, value_name = "NAME|ADDRESS", conflicts_with_all = ["raw", "gso", "qpn"])]
    device: Option<DeviceName>,
    #[command(flatten)]
    source: SourceArguments,
    /// Queue pair of this host [default: the one that the peer expects].
    #[arg(long, value_name = "QPN", value_parser = endpoint::parse_qpn)]
    qpn: Option<Qpn>,
    /// PSN of the first packet [default: the one that the peer expects].
    #[arg(long, value_name = "PSN", value_parser = endpoint::parse_psn)]
    psn: Option<Psn>,
    /// Address of this host [default: the one that the peer expects].
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::parse_address)]
    address: Option<Ipv6Addr>,
    /// Operation of messages.
    #[arg(long, value_enum, default_value_t = Operation::Write)]
    op: Operation,
    /// Length of each message.
    #[arg(long, value_name = "OCTETS", default_value = "1MiB", value_parser = endpoint::parse_message)]
    message: u32,
    /// RDMA path MTU, payload of a full packet [default: the peer's].
    #[arg(long, value_name = "OCTETS", value_parser = endpoint::parse_path_mtu)]
    path_mtu: Option<PathMtu>,
    /// Packets that may be outstanding [default: the number that the peer can buffer, up to 512; 128 to a group].
    #[arg(long, value_name = "PACKETS", value_parser = value_parser!(u32).range(1..=1 << 20))]
    window: Option<u32>,
    /// ACK timeout t: go back when no packet is acknowledged for 4.096 µs · 2^t.
    /// [default: 14; with --device 18, 1.07 s, since devices retry 7 times at most]
    #[arg(long, value_name = "T", value_parser = value_parser!(u8).range(1..=31))]
    ack_timeout: Option<u8>,
    /// Number of go-backs without progress in between; 7 means until --timeout, but not with --device.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = value_parser!(u8).range(..=7))]
    retries: u8,
    /// Give up when no packet is acknowledged for this time.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = endpoint::parse_time)]
    timeout: Duration,
    /// Let the kernel segment packets. Faster; but packet drivers, such as those of srdma nodes, that read from a
    /// virtual link get unsegmented packets.
    #[arg(long, conflicts_with = "raw")]
    gso: bool,
    #[command(flatten)]
    raw: endpoint::RawArguments,
    #[command(flatten)]
    paths: PathArguments,
    #[command(flatten)]
    congestion: SenderArguments,
    /// Print the result as one JSON object, in one line.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn ack_timeout(&self) -> u8 {
        self.ack_timeout.unwrap_or(if self.device.is_some() { 18 } else { 14 })
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Operation {
    Write,
    Send,
}

/// Source of a group's description.
#[derive(Clone, Debug)]
enum GroupPlace {
    File(PathBuf),
    Controller(GroupUrl),
}

impl GroupPlace {
    fn parse(text: &str) -> Result<Self, String> {
        match GroupUrl::is_url(text) {
            true => GroupUrl::parse(text).map(GroupPlace::Controller).map_err(|error| error.to_string()),
            false => Ok(GroupPlace::File(PathBuf::from(text))),
        }
    }
}

/// Options of the source of a controller's group.
#[derive(clap::Args)]
struct SourceArguments {
    /// Create a group at this controller, such as http://localhost:8470, for the queue pair of this host, and commit it
    /// when it has --receivers. A line with the group is printed first; it is closed at the end.
    #[arg(long, value_name = "URL", group = "controlled")]
    create: Option<String>,
    /// With --create: the group's Proxy Address [default: one of the tenant's pool].
    #[arg(long, value_name = "ADDRESS", requires = "create", value_parser = endpoint::parse_address)]
    proxy: Option<Ipv6Addr>,
    /// With a controller's group: commit it first, if it is open.
    #[arg(long, requires = "group")]
    commit: bool,
    /// With a controller's group: wait until it has this number of receivers.
    #[arg(long, value_name = "N", requires = "controlled")]
    receivers: Option<u32>,
    #[command(flatten)]
    trust: TrustArguments,
}

impl SourceArguments {
    fn begin_options(&self) -> BeginOptions {
        let is_new = self.create.is_some();
        BeginOptions { receivers: self.receivers.unwrap_or(u32::from(is_new)), commit: self.commit || is_new }
    }
}

const EXAMPLES: &str = "\
Examples:
  srdma send FILE --peer-info info.json
      Sends to the receiver whose first line of output is in info.json.

  srdma send --random 64MiB --group group.toml --json
      Sends random data to a multicast group.

  srdma send FILE --group http://[::1]:8470/7 --receivers 5 --commit
      Waits until group 7 of a controller has five receivers, installs it on all nodes, and sends.

  srdma send FILE --create http://[::1]:8470 --receivers 5 --device mlx5_0
      Creates a group for a queue pair of the RDMA device mlx5_0, prints its URL for srdma recv --group, and sends when
      five receivers have joined.

  srdma send FILE --peer-info - --device rxe0 --address 2001:db8::1
      Prints the queue pair of the RDMA device rxe0 for srdma recv --peer-qpn, and reads what that prints.

  srdma send FILE --peer-info info.json --rate-control dcqcn --rate 10G
      Slows down when the receiver answers marked packets with CNPs.

  srdma send FILE --peer-info info.json --raw eth0 --next-hop-mac 02:00:00:00:00:01 \
      --rate-control dcqcn --rate 10G --fast-cnp 2001:db8:ff::/48
      Slows down when a switch with an address in 2001:db8:ff::/48 sends a Fast CNP, too.

  srdma send FILE --peer-info info.json --raw eth0 --next-hop-mac 02:00:00:00:00:01 \
      --rate-control hpcc --rate 10G --base-rtt 200us --fast-cnp 2001:db8:ff::/48 --fast-cnp 2001:db8::2
      Controls the rate by traces that switches fill in; the receiver at 2001:db8::2 has --return-traces.

  srdma send FILE --peer-info info.json --raw eth0 --next-hop-mac 02:00:00:00:00:01 --paths paths.toml
      Takes the first of the placed paths in paths.toml, and another on a CNP or when probes are lost.";

/// Properties of the peer, or of the group.
struct Peer {
    connection: Connection,
    mode: TransferMode,
    region_octets: Option<u64>,
}

/// The result, for `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    octets: u64,
    seconds: f64,
    bits_per_second: u64,
    /// None when not all of a file was read.
    sha256: Option<String>,
    completions: u64,
    /// Those of a device are the device's.
    #[serde(flatten)]
    counters: Option<TransferCounters>,
    #[serde(flatten)]
    congestion: Option<CongestionReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steering: Option<SteeringSnapshot>,
}

/// Runs the command.
///
/// # Errors
///
/// If the data cannot be read, an option cannot be met, or the socket fails.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(send(arguments))
}

fn send(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(device) = &arguments.device {
        return device::send(arguments, device);
    }
    // Closed after its source has ended.
    let created = arguments.source.create.as_ref().map(|url| create::group_of_socket(arguments, url)).transpose()?;
    let controlled = controlled(arguments, created.as_ref())?;
    let peer = peer(arguments, controlled.as_ref())?;
    let connection = peer.connection;
    let mut congestion = arguments.congestion.congestion(arguments.raw.is_given())?;
    if arguments.group.is_some() || controlled.is_some() {
        // A group carries no traces in its data: its nodes send the source that of the most loaded path (D242).
        congestion.trace = None;
    }
    congestion.check(connection.address)?;
    let mut endpoint = connection.endpoint(&congestion)?;
    let segmentation = if arguments.gso { Segmentation::Offload } else { Segmentation::Software };
    let paths = arguments.paths.read()?;
    if paths.is_some() && connection.address.to_ipv4_mapped().is_some() {
        return Err(WireError::NeedsIpv6("--paths").into());
    }
    let max_packet_octets = endpoint.max_packet_octets();
    let options = WireOptions {
        raw: arguments.raw.interface(),
        connection: &connection,
        segmentation,
        buffer_octets: BUFFER_OCTETS,
        max_packet_octets: max_packet_octets + paths::overhead(paths.as_ref(), &connection)?,
        probe_address: paths.as_ref().and_then(PathsFile::probe_address),
    };
    let (wire, _) = options.open()?;
    let data = send_data(arguments)?;
    let octets = data.octets();
    if let (TransferMode::Write(_), Some(region_octets)) = (peer.mode, peer.region_octets)
        && octets > region_octets
    {
        bail!("there are {octets} octets to send, the peer's memory has {region_octets}");
    }
    let config = SendingConfig {
        qpn: connection.qpn,
        mode: peer.mode,
        message_octets: arguments.message,
        timeout: arguments.timeout,
    };
    let mut progress = Progress::new(Some(octets));
    let packet_octets = u64::from(connection.path_mtu.octets());
    let mut report = |packets: u64| progress.report((packets * packet_octets).min(octets));
    let mut source = begin(arguments, controlled.as_ref())?;
    let clock = Clock::start();
    let mut carrier = Carrier::new(wire, paths.as_ref(), &connection, clock, max_packet_octets)?;
    let mut sending = Sending::new(clock.now(), config, data, &mut endpoint, &mut report);
    if let Some(source) = &mut source {
        sending = sending.controlled_by(source, connection.path_mtu, connection.window);
    }
    let outcome = run_loop(&clock, &mut endpoint, carrier.wire(), &mut sending);
    let (congestion, trailer) = (sending.congestion().clone(), sending.trailer());
    let (completions, outcome) = match outcome {
        Ok(()) => (sending.completions(), sending.outcome().context("the program has ended without an outcome")?),
        Err(error) => return Err(WireError::during_transfer(error, &connection).into()),
    };
    progress.finish();
    let duration = outcome.as_ref().map_or(Duration::ZERO, |ended| *ended - srdma_wire::Instant::ZERO);
    print(
        arguments,
        &Report {
            error: outcome.err().map(|failure| failure.to_string()),
            octets,
            seconds: duration.as_secs_f64(),
            bits_per_second: endpoint::bits_per_second(octets, duration),
            sha256: trailer.map(|trailer| hex::encode(trailer.sha256)),
            completions,
            counters: Some(TransferCounters::of(&endpoint, connection.qpn, carrier.wire())),
            congestion: Some(arguments.congestion.report(&congestion, &endpoint)),
            steering: carrier.report(),
        },
        duration,
    )
}

/// The group at a controller.
fn controlled(arguments: &Arguments, created: Option<&CreatedGroup>) -> Result<Option<ControlledGroup>> {
    match (&arguments.group, created) {
        (Some(GroupPlace::Controller(url)), _) => {
            ControlledGroup::find(arguments.source.trust.client(&url.controller)?, url.id).map(Some)
        }
        (None, Some(created)) => created.find().map(Some),
        (Some(GroupPlace::File(_)), _) | (None, None) => Ok(None),
    }
}

fn begin(arguments: &Arguments, controlled: Option<&ControlledGroup>) -> Result<Option<SourceClient>> {
    let options = arguments.source.begin_options();
    let on_wait = |ready| eprintln!("waiting for receivers: {ready} of {} are ready", options.receivers);
    controlled.map(|group| group.begin(options, on_wait)).transpose()
}

fn peer(arguments: &Arguments, controlled: Option<&ControlledGroup>) -> Result<Peer> {
    match (&arguments.peer_info, &arguments.group, controlled) {
        (Some(file), ..) => receiver(arguments, file),
        (None, _, Some(controlled)) => controlled_group(arguments, controlled),
        (None, Some(GroupPlace::File(file)), None) => group(arguments, &GroupFile::read(file)?),
        (None, _, None) => bail!("one of --peer-info and --group is needed"),
    }
}

fn receiver(arguments: &Arguments, file: &Path) -> Result<Peer> {
    let is_stdin = file == Path::new("-");
    if is_stdin && arguments.file.as_deref() == Some(Path::new("-")) {
        bail!("FILE and --peer-info cannot both be the standard input");
    }
    let name = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
    let text = if is_stdin { first_line() } else { fs::read_to_string(file) };
    let text = text.with_context(|| format!("--peer-info: cannot read {name}"))?;
    // The lines after the first are the receiver's result.
    let info = PeerInfo::parse(text.lines().next().unwrap_or_default())
        .with_context(|| format!("--peer-info: {name} is no output of srdma recv"))?;
    let address = match arguments.address.or(info.peer_address) {
        Some(address) => address,
        None => source_address(info.address)?,
    };
    let remote = RemoteAddress { virtual_address: info.virtual_address, rkey: MemoryKey(info.rkey) };
    const MOST: u32 = 512;
    Ok(Peer {
        connection: Connection {
            address,
            qpn: arguments.qpn.or(info.peer_qpn).context("--qpn is needed: the peer information has none")?,
            peer_address: info.address,
            peer_qpn: info.qpn,
            psn: arguments.psn.or(info.psn).context("--psn is needed: the peer information has none")?,
            path_mtu: arguments.path_mtu.unwrap_or(info.path_mtu),
            window: arguments.window.unwrap_or_else(|| info.window.unwrap_or(DEFAULT_WINDOW).clamp(1, MOST)),
            ack_timeout: arguments.ack_timeout(),
            retries: arguments.retries,
        },
        mode: match arguments.op {
            Operation::Write => TransferMode::Write(remote),
            Operation::Send => TransferMode::Send,
        },
        region_octets: info.size,
    })
}

/// A group of a controller, whose nodes repair what a source has in flight up to the group's window (D160).
fn controlled_group(arguments: &Arguments, controlled: &ControlledGroup) -> Result<Peer> {
    let mut peer = group(arguments, controlled.file())?;
    if let Some(most) = controlled.most_packets() {
        if let Some(window) = arguments.window.filter(|window| *window > most) {
            bail!(
                "--window {window}: the group's nodes repair {most} packets in flight; create it with more \
                 --window-octets"
            );
        }
        peer.connection.window = peer.connection.window.min(most);
    }
    Ok(peer)
}

/// A group: to its source a receiver with the Proxy Address and the Designated QPN (MT-5.1-1).
fn group(arguments: &Arguments, group: &GroupFile) -> Result<Peer> {
    let mode = match (arguments.op, group.region) {
        (Operation::Send, _) => TransferMode::Send,
        (Operation::Write, Some(region)) => {
            TransferMode::Write(RemoteAddress { virtual_address: region.base, rkey: MemoryKey(region.rkey) })
        }
        (Operation::Write, None) => bail!("the group has no [region] to write to: add it, or use --op send"),
    };
    Ok(Peer {
        connection: Connection {
            address: arguments.address.unwrap_or(group.source.address),
            qpn: arguments.qpn.unwrap_or(group.source.qpn),
            peer_address: group.proxy,
            peer_qpn: group.designated_qpn,
            psn: arguments.psn.unwrap_or(group.initial_psn),
            path_mtu: arguments.path_mtu.unwrap_or(group.path_mtu),
            window: arguments.window.unwrap_or(DEFAULT_WINDOW),
            ack_timeout: arguments.ack_timeout(),
            retries: arguments.retries,
        },
        mode,
        region_octets: group.region.map(|region| region.length),
    })
}

/// Default of the outstanding packets if the receivers' buffers are unknown: that of soft-RoCE.
const DEFAULT_WINDOW: u32 = 128;

/// Octets of ACKs that the socket may buffer.
const BUFFER_OCTETS: u32 = 4 << 20;

fn first_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map(|_| line)
}

/// The data of a transfer by a socket: a regular file stays where it is.
fn send_data(arguments: &Arguments) -> Result<SendData> {
    if let Some(file) = arguments.file.as_deref().filter(|file| *file != Path::new("-"))
        && let Some(source) = FileSource::open(file)?
    {
        return Ok(SendData::File(source));
    }
    data(arguments).map(SendData::in_memory)
}

/// All data, in memory.
fn data(arguments: &Arguments) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    if let Some(size) = arguments.random {
        let size = usize::try_from(size).ok().filter(|size| data.try_reserve_exact(*size).is_ok());
        let Some(size) = size else {
            bail!("--random: this machine's memory does not hold so many octets");
        };
        data.resize(size, 0);
        Stream::new(arguments.seed, "data").fill(&mut data);
        return Ok(data);
    }
    match arguments.file.as_deref() {
        Some(file) if file != Path::new("-") => {
            fs::read(file).with_context(|| format!("cannot read {}", file.display()))
        }
        Some(_) | None => {
            io::stdin().lock().read_to_end(&mut data).context("cannot read the standard input")?;
            Ok(data)
        }
    }
}

fn print(arguments: &Arguments, report: &Report, duration: Duration) -> Result<ExitCode> {
    if arguments.json {
        output::print(&format!("{}\n", serde_json::to_string(report)?))?;
    }
    let anomalies = report.counters.as_ref().map(endpoint::anomalies).unwrap_or_default();
    if let Some(error) = &report.error {
        let (before, after) = if anomalies.is_empty() { ("", "") } else { (" (", ")") };
        eprintln!("srdma: {}{before}{anomalies}{after}", crate::terminal::escaped(&error.to_string()));
        return Ok(ExitCode::FAILURE);
    }
    if !arguments.json {
        let separator = if anomalies.is_empty() { "" } else { "; " };
        let messages = units::count(report.completions, "message");
        let sent = endpoint::in_words(report.octets, duration);
        let congestion = report.congestion.as_ref().map(CongestionReport::in_words).unwrap_or_default();
        let steering = report.steering.as_ref().map(paths::in_words).unwrap_or_default();
        let sha256 = report.sha256.as_deref().unwrap_or_default();
        output::print(&format!(
            "{sent}, SHA-256 {sha256}, {messages} acknowledged{separator}{anomalies}{congestion}{steering}\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
