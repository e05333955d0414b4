//! `srdma pull`: receives a directory that `srdma push` sends. Described in `docs/applications.md`.

use crate::endpoint;
use crate::output::print;
use crate::remote::{self, GroupUrl, QueuePairArguments, TrustArguments, of_library};
use crate::terminal::escaped;
use crate::units;
use anyhow::{Result, bail, ensure};
use indicatif::ProgressBar;
use serde::Serialize;
use srdma::{Device, Error, Event, JoinOptions, Receiver, Version};
use srdma_directory::{Message, Pull, Status, Target};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Receive a directory that srdma push sends.
///
/// Joins the group, and writes the files into DIR.partial, which becomes DIR at once when all are there with the
/// digests of the source. If it is ended before, the same command continues: what is there is verified and kept. Exit
/// code 1: the group has ended before everything was there, or a file could not be written.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The group, as srdma push has printed it, such as http://localhost:8470/7.
    #[arg(value_name = "URL", value_parser = parse_group)]
    group: GroupUrl,
    /// The directory to make.
    #[arg(value_name = "DIR", required_unless_present = "discard")]
    directory: Option<PathBuf>,
    /// Verify the files, and write nothing.
    #[arg(long, conflicts_with = "directory")]
    discard: bool,
    /// Replace DIR if it exists.
    #[arg(long, requires = "directory")]
    replace: bool,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    queue_pair: QueuePairArguments,
    /// Give up when nothing arrives for this time; it includes the wait for other receivers.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = endpoint::parse_time)]
    timeout: Duration,
    /// Print the result as one JSON object, in one line.
    #[arg(long)]
    json: bool,
}

fn parse_group(text: &str) -> Result<GroupUrl, String> {
    GroupUrl::parse(text).map_err(|error| error.to_string())
}

const EXAMPLES: &str = "\
Examples:
  srdma pull http://[::1]:8470/7 /models/llama
      Receives the directory of group 7. There: srdma push models/llama --receivers 30

  srdma pull http://[::1]:8470/7 --discard --json
      Receives and verifies, and prints how fast.";

/// The result, for `--json`.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// SHA-256 of the list of files, by which the source names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<String>,
    files: usize,
    octets: u64,
    octets_there: u64,
    /// Octets that a former process had received.
    octets_resumed: u64,
    octets_repeated: u64,
    damaged_chunks: u64,
    versions_rejected: u64,
    seconds: f64,
    bits_per_second: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    remote::finish(pull(arguments))
}

fn pull(arguments: &Arguments) -> Result<ExitCode> {
    let target = match &arguments.directory {
        Some(path) => Target::Directory { path: path.clone(), replaces: arguments.replace },
        None => Target::Discard,
    };
    let verifying = endpoint::bar(None, "{spinner} {binary_bytes} verified, {binary_bytes_per_sec}");
    let pull = Pull::begin(&target, &mut |octets| {
        if let Some(bar) = &verifying {
            bar.set_position(octets);
        }
    })?;
    if let Some(bar) = verifying {
        bar.finish_and_clear();
    }
    let octets_resumed = pull.status().octets_there;
    let is_interrupted = remote::interruption()?;
    let options = arguments.trust.device_options(&arguments.group.controller, &arguments.queue_pair);
    let device = Device::open(&options).map_err(of_library)?;
    let receiver = device.join(arguments.group.id, JoinOptions::default()).map_err(of_library)?;
    let mut receiving = Receiving { pull, versions_rejected: 0, began: None, is_interrupted, bar: None };
    let result = receiving.run(&receiver, arguments.timeout);
    // What the source repeats for others does not concern this receiver any more.
    let is_last = match result.is_ok().then(|| receiver.leave()) {
        None | Some(Ok(())) => false,
        Some(Err(Error::LastReceiver { .. })) => true,
        // The end of the group comes first, or the controller is away.
        Some(Err(_)) => false,
    };
    let Receiving { pull, versions_rejected, began, bar, is_interrupted } = receiving;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let seconds = began.map_or(0.0, |began| began.elapsed().as_secs_f64());
    let (status, list) = (pull.status(), pull.list());
    let list_id = list.map(|list| hex::encode(list.id().0));
    let files = list.map_or(0, |list| list.files().len());
    let result = result.and_then(|()| Ok(pull.finish()?));
    let error = result.err().map(|error| format!("{error:#}"));
    let bits_per_second = if seconds > 0.0 {
        (status.octets_there.saturating_sub(octets_resumed) as f64 * 8.0 / seconds) as u64
    } else {
        0
    };
    let is_good = error.is_none();
    if arguments.json {
        let report = Report {
            error,
            list: list_id,
            files,
            octets: status.total_octets,
            octets_there: status.octets_there,
            octets_resumed,
            octets_repeated: status.octets_repeated,
            damaged_chunks: status.damaged_chunks,
            versions_rejected,
            seconds,
            bits_per_second,
        };
        print(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else if let Some(error) = error {
        let there =
            format!("{} of {} are there", units::octets(status.octets_there), units::octets(status.total_octets));
        let hint = if arguments.discard { "" } else { "; the same command continues" };
        eprintln!("srdma: {}: {there}{hint}", escaped(&error));
    } else {
        print(&format!(
            "{files} files, {} in {} at {}\n",
            units::octets(status.total_octets),
            units::time((seconds * 1e9) as u64),
            units::rate(bits_per_second)
        ))?;
    }
    if is_last {
        stay(&receiver, &is_interrupted);
    }
    // It has left, or cannot: the group evicts it if it has to.
    let _ = receiver.close();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The last receiver of a group cannot leave, and would hold the source: it takes what comes until the group ends, or
/// others have joined.
fn stay(receiver: &Receiver, is_interrupted: &AtomicBool) {
    let mut asked_at = Instant::now();
    while !is_interrupted.load(Ordering::Relaxed) {
        match receiver.next_version(LOOK_INTERVAL) {
            Ok(version) => drop(version),
            Err(Error::Timeout) => {}
            Err(_) => return,
        }
        if asked_at.elapsed() >= LEAVE_INTERVAL {
            if receiver.leave().is_ok() {
                return;
            }
            asked_at = Instant::now();
        }
    }
}

/// Interval for looking whether the process is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Interval for asking whether the last receiver may leave meanwhile.
const LEAVE_INTERVAL: Duration = Duration::from_secs(2);

struct Receiving {
    pull: Pull,
    versions_rejected: u64,
    began: Option<Instant>,
    is_interrupted: Arc<AtomicBool>,
    bar: Option<ProgressBar>,
}

impl Receiving {
    /// Takes versions until everything is there.
    fn run(&mut self, receiver: &Receiver, timeout: Duration) -> Result<()> {
        let mut last_at = Instant::now();
        loop {
            ensure!(!self.is_interrupted.load(Ordering::Relaxed), "interrupted");
            let version = match receiver.next_version(LOOK_INTERVAL) {
                Ok(version) => version,
                Err(Error::Timeout) if last_at.elapsed() < timeout => continue,
                Err(Error::Timeout) => bail!("nothing has arrived for {}", units::time(timeout.as_nanos() as u64)),
                Err(error) => return Err(of_library(error)),
            };
            last_at = Instant::now();
            self.began.get_or_insert_with(Instant::now);
            while let Some(event) = receiver.next_event().map_err(of_library)? {
                match event {
                    Event::Rejected { .. } => self.versions_rejected += 1,
                    Event::Resumed { group } => self.say(&format!("the source goes on as group {group}")),
                    _ => {}
                }
            }
            let status = self.take(&version)?;
            self.report(status);
            if status.is_complete {
                return Ok(());
            }
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("srdma: {text}")),
            None => eprintln!("srdma: {text}"),
        }
    }

    fn take(&mut self, version: &Version) -> Result<Status> {
        let entries = version.manifest().buffers().iter().enumerate();
        let buffers: Vec<(&str, &[u8])> =
            entries.filter_map(|(index, entry)| Some((entry.name.as_str(), version.buffer_at(index)?))).collect();
        Ok(self.pull.take(Message::of_buffers(&buffers)?)?)
    }

    fn report(&mut self, status: Status) {
        if status.is_listed && self.bar.is_none() {
            let template = "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
            self.bar = endpoint::bar(Some(status.total_octets), template);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(status.octets_there);
        }
    }
}
