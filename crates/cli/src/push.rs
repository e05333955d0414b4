//! `srdma push`: sends a directory to any number of hosts. Described in `docs/applications.md`.

use crate::endpoint;
use crate::output::print;
use crate::remote::{self, ControllerArguments, QueuePairArguments, of_library};
use crate::terminal::escaped;
use crate::units::{self, parse_octets};
use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use serde::Serialize;
use srdma::{Buffer, Device, DigestKind, Error, Event, GroupOptions, OnFailure, Policy, Slots, Source};
use srdma_api::Client;
use srdma_directory::{ChunkDigest, Chunks, FileList, Message, Next, Rounds};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A receiver that responds to nothing is dead after this time: it responds at once otherwise, ready or not (D196).
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// Send a directory to any number of hosts at once.
///
/// Makes a group at the controller, waits for receivers, which are started by srdma pull, and sends the files in rounds
/// until each receiver has been sent all of them. Exit code 1: the group has ended, or receivers lack files after the
/// last round.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The directory: safetensors files, a snapshot of a Hugging Face cache, or any other.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    controller: ControllerArguments,
    /// A name of the group, for people.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The group's Proxy Address [default: one of the tenant's pool].
    #[arg(long, value_name = "ADDRESS", value_parser = crate::endpoint::parse_address)]
    proxy: Option<Ipv6Addr>,
    /// Go on in place of a push that has died, whose group this is: its receivers need not be started again, and keep
    /// what they have. Those that were there are waited for, for 30 s at most.
    #[arg(long, value_name = "GROUP")]
    resume: Option<u32>,
    #[command(flatten)]
    queue_pair: QueuePairArguments,
    /// Begin when so many receivers have joined.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    receivers: u32,
    /// Wait so long for receivers and nodes, and for acknowledgements.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = endpoint::parse_time)]
    wait: Duration,
    /// Rounds at most, after which receivers that lack files are left alone.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Stay so long after the last receiver has everything, for others that join late.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = endpoint::parse_time)]
    stay: Duration,
    /// Octets of a chunk. Both ends need memory for a few.
    #[arg(long, value_name = "OCTETS", default_value = "16MiB", value_parser = parse_octets)]
    chunk: u64,
    /// Chunks that a receiver may have and not have written yet: a slow disk holds the source when they are full.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    slots: u16,
    /// A receiver that is not ready for longer, since its disk is slow, is evicted, and the others go on. One that
    /// responds to nothing is evicted after 10 s, or after TIME if that is less.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = endpoint::parse_time)]
    evict_after: Duration,
    /// RDMA path MTU, payload of a full packet: 256, 512, 1024, 2048 or 4096.
    #[arg(long, value_name = "OCTETS", default_value_t = 4096)]
    path_mtu: u32,
    /// Print JSON: a line with the group when it is there, and one with the result.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  srdma push models/llama --receivers 30
      Waits for 30 receivers at the controller of SRDMA_CONTROLLER, and sends the files. On each of the others:
      srdma pull http://[::1]:8470/7 /models/llama, with the group that push has printed

  srdma push ~/.cache/huggingface/hub/models--org--name/snapshots/COMMIT --receivers 8 --stay 3600s
      Sends a snapshot, and stays for an hour for hosts that join late.

  srdma push models/llama --resume 7
      Goes on after push was killed, whose group was 7: each srdma pull takes what it lacks.";

/// Interval for looking whether receivers have left or joined.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time in which receivers that have everything leave, before the next round begins.
const LEAVING: Duration = Duration::from_secs(3);
/// Time in which the receivers of a push that has died follow to the one that resumes it.
const FOLLOWING: Duration = Duration::from_secs(30);
/// Chunks that are read ahead of the one that all receivers have.
const MOST_OUTSTANDING: u64 = 3;

/// The group, for `--json`.
#[derive(Serialize)]
struct Begun<'a> {
    group: u32,
    files: usize,
    octets: u64,
    list: &'a str,
}

/// The result, for `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    group: u32,
    octets: u64,
    /// Octets of chunks that were sent, repeated rounds included.
    octets_sent: u64,
    rounds: u32,
    receivers_left: usize,
    seconds: f64,
    bits_per_second: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(push(arguments))
}

fn push(arguments: &Arguments) -> Result<ExitCode> {
    let chunk_octets = u32::try_from(arguments.chunk).ok().context("--chunk is at most 1GiB")?;
    let list = FileList::scan(&arguments.directory, chunk_octets)?;
    let digests_octets = u64::from(list.chunks()) * ChunkDigest::LEN as u64;
    let longest = arguments.chunk.min(list.total_octets()).max(list.octets().len() as u64).max(digests_octets);
    ensure!(
        longest <= 1 << 30,
        "the list of {} files has {}: 1 GiB at most",
        list.files().len(),
        units::octets(list.octets().len() as u64)
    );
    let lengths = [ChunkDigest::LEN as u64, longest];
    let policy = Policy {
        on_failure: OnFailure::Evict,
        t_stall: arguments.evict_after.min(DEAD_AFTER),
        t_not_ready: Some(arguments.evict_after),
        ..Policy::default()
    };
    let sized = GroupOptions::for_buffers(lengths);
    let options = GroupOptions {
        name: arguments.name.clone(),
        proxy: arguments.proxy,
        path_mtu: arguments.path_mtu,
        slots: Slots { count: arguments.slots, ..sized.slots },
        digest: DigestKind::Crc32,
        policy,
        ..sized
    };
    let is_interrupted = remote::interruption()?;
    let device = Device::open(&arguments.controller.device_options(&arguments.queue_pair)).map_err(of_library)?;
    let client = arguments.controller.client()?;
    let (source, awaited) = match arguments.resume {
        None => (device.create_group(&options).map_err(of_library)?, Awaited::All(arguments.receivers)),
        Some(former) => {
            let receivers = Awaited::Following(receivers_of(&client, former));
            (device.resume_group(former, &options).map_err(of_library)?, receivers)
        }
    };
    let group = source.group();
    if arguments.json {
        let list_id = hex::encode(list.id().0);
        let begun = Begun { group, files: list.files().len(), octets: list.total_octets(), list: &list_id };
        print(&format!("{}\n", serde_json::to_string(&begun)?))?;
    } else {
        let url = arguments.controller.url();
        print(&format!("group {group}: on each receiver, srdma pull {url}/{group} DIR\n"))?;
    }
    let total = list.total_octets();
    let chunks = Chunks::new(&arguments.directory, list);
    let mut sending = Sending::new(source, client, chunks, arguments.wait, is_interrupted);
    let result = sending.commit(awaited);
    let begin = Instant::now();
    let result = result.and_then(|()| sending.rounds(arguments));
    let seconds = begin.elapsed().as_secs_f64();
    let Sending { source, octets_sent, rounds, receivers_left, .. } = sending;
    source.close().map_err(of_library)?;
    let error = match result {
        Err(error) => Some(format!("{error:#}")),
        Ok(()) if receivers_left > 0 => Some(format!("{receivers_left} receivers lack files after {rounds} rounds")),
        Ok(()) => None,
    };
    let is_good = error.is_none();
    let bits_per_second = (octets_sent as f64 * 8.0 / seconds) as u64;
    if arguments.json {
        let report =
            Report { error, group, octets: total, octets_sent, rounds, receivers_left, seconds, bits_per_second };
        print(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        print(&format!(
            "{} in {} at {}, {} sent\n",
            units::octets(total),
            units::time((seconds * 1e9) as u64),
            units::rate(bits_per_second),
            units::octets(octets_sent)
        ))?;
        if let Some(error) = error {
            eprintln!("srdma: {}", escaped(&error));
        }
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The receivers that a source waits for.
#[derive(Clone, Copy)]
enum Awaited {
    /// So many.
    All(u32),
    /// Those of a push that has died, of which some may have died too.
    Following(u32),
}

/// The number of receivers of a group, or of the one that resumes it; one if it is not known.
fn receivers_of(client: &Client, group: u32) -> u32 {
    let group = client.successor(group).or_else(|_| client.group(group));
    group.map_or(1, |group| group.summary.receivers.max(1))
}

/// Address and queue pair of a receiver: one that was started again has another queue pair.
type Member = (Ipv6Addr, u32);

/// A source in its rounds.
struct Sending {
    source: Source,
    client: Client,
    chunks: Chunks,
    first: u64,
    version: u64,
    octets_sent: u64,
    rounds: u32,
    members: BTreeSet<Member>,
    receivers_left: usize,
    timeout: Duration,
    is_interrupted: Arc<AtomicBool>,
    bar: Option<ProgressBar>,
}

impl Sending {
    fn new(source: Source, client: Client, chunks: Chunks, timeout: Duration, is_interrupted: Arc<AtomicBool>) -> Self {
        let template = "{msg} {bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
        let bar = endpoint::bar(Some(chunks.list().total_octets()), template);
        // Numbers of groups increase: versions of one that resumes another are after those of that.
        let version = u64::from(source.group()) << 32;
        Sending {
            source,
            client,
            chunks,
            first: version + 1,
            version,
            octets_sent: 0,
            rounds: 0,
            members: BTreeSet::new(),
            receivers_left: 0,
            timeout,
            is_interrupted,
            bar,
        }
    }

    /// Waits for receivers and nodes, and commits the group.
    fn commit(&self, awaited: Awaited) -> Result<()> {
        let begin = Instant::now();
        loop {
            self.report_events()?;
            let receivers = match awaited {
                Awaited::Following(_) if begin.elapsed() >= FOLLOWING => 1,
                Awaited::All(receivers) | Awaited::Following(receivers) => receivers,
            };
            match self.source.commit(receivers, LOOK_INTERVAL * 10) {
                Err(Error::NotReady { .. }) if begin.elapsed() < self.timeout => {}
                other => return other.map_err(of_library),
            }
        }
    }

    /// Rounds until each receiver has been a member for a whole one.
    fn rounds(&mut self, arguments: &Arguments) -> Result<()> {
        // Those that have acknowledged a whole round.
        let mut served = BTreeSet::new();
        let mut idle_since = None;
        loop {
            let members = self.members()?;
            let lacking = members.difference(&served).count();
            if lacking > 0 && self.rounds < arguments.rounds {
                idle_since = None;
                self.round()?;
                served.extend(members);
                self.wait_for_leaves(&served)?;
                continue;
            }
            let since = *idle_since.get_or_insert_with(Instant::now);
            if lacking > 0 || since.elapsed() >= arguments.stay {
                self.receivers_left = lacking;
                break;
            }
            self.report_events()?;
            thread::sleep(LOOK_INTERVAL);
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        ensure!(!served.is_empty(), "no receiver was there when the group was committed");
        Ok(())
    }

    fn round(&mut self) -> Result<()> {
        self.rounds += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(0);
            bar.set_message(format!("round {}", self.rounds));
        }
        let mut octets = 0;
        for next in Rounds::new(self.chunks.list().chunks()) {
            let of = self.chunks.list().id();
            let content = match next {
                Next::List => self.chunks.list().octets().to_vec(),
                Next::Chunk(index) => {
                    let content = self.chunks.read(index)?;
                    octets += content.len() as u64;
                    self.octets_sent += content.len() as u64;
                    content
                }
                Next::Digests => self.chunks.digests().context("a chunk was not read")?,
            };
            let message = match next {
                Next::List => Message::List(&content),
                Next::Chunk(index) => Message::Chunk { of, index, octets: &content },
                Next::Digests => Message::Digests { of, octets: &content },
            };
            let [of_list, name] = message.names();
            self.publish(vec![Buffer::new(of_list, of.0.to_vec()), Buffer::new(name, content)])?;
            if let Some(bar) = &self.bar {
                bar.set_position(octets);
            }
        }
        self.wait_for(self.version)
    }

    /// Publishes a version when few are outstanding.
    fn publish(&mut self, buffers: Vec<Buffer>) -> Result<()> {
        let before = (self.version + 1).saturating_sub(MOST_OUTSTANDING);
        if before >= self.first {
            self.wait_for(before)?;
        }
        self.version += 1;
        self.source.publish(self.version, buffers).map_err(of_library)
    }

    fn wait_for(&self, version: u64) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < self.timeout {
            self.report_events()?;
            match self.source.wait(version, LOOK_INTERVAL * 10) {
                Err(Error::Timeout) => {}
                other => return other.map_err(of_library),
            }
        }
        bail!("a receiver has acknowledged nothing for {}", units::time(self.timeout.as_nanos() as u64))
    }

    /// Receivers that have everything leave; the last one cannot.
    fn wait_for_leaves(&mut self, served: &BTreeSet<Member>) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < LEAVING && self.members()?.intersection(served).count() > 1 {
            self.report_events()?;
            thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// The members; while the controller is away, which does not stop what is sent, the last ones known.
    fn members(&mut self) -> Result<BTreeSet<Member>> {
        match self.client.group(self.source.group()) {
            Ok(group) => self.members = group.members.iter().map(|member| (member.address, member.qpn)).collect(),
            Err(error) if error.problem().is_none() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.members.clone())
    }

    /// Reports what has happened; an error if the source cannot go on.
    fn report_events(&self) -> Result<()> {
        ensure!(!self.is_interrupted.load(Ordering::Relaxed), "interrupted");
        while let Some(event) = self.source.next_event().map_err(of_library)? {
            match event {
                Event::Slow { .. } => self.say("a receiver is slow: its disk, or its network"),
                Event::Failed { failure, .. } => bail!("{}", srdma::Over::from(failure)),
                Event::Over(over) => bail!("{over}"),
                _ => {}
            }
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("srdma: {text}")),
            None => eprintln!("srdma: {text}"),
        }
    }
}
