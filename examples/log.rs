//! A replicated log: a leader appends entries, and each follower has them in the same order.
//!
//! ```text
//! cargo build --release -p srdma-cli --example log
//! log lead --proxy 2001:db8:cc::1 --members 3 --least 2 leader.log < entries       # prints the group's number
//! log follow 1 follower.log                                                        # on each of three hosts
//! ```
//!
//! An entry is a version: the leader writes it into the memory of all followers at once, and it is acknowledged when
//! every member of the group has it. A follower that makes no progress for `--evict-after` is evicted, and the others
//! go on, down to `--least` members: then the leader waits. The controller is that of `$SRDMA_CONTROLLER`, the token
//! that of `$SRDMA_TOKEN_FILE`, the certificate that of `$SRDMA_CA`. docs/applications.md explains the calls.

use srdma::{Buffer, Device, DeviceOptions, Error, GroupOptions, JoinOptions, Source};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The longest entry.
const MAX_ENTRY_OCTETS: u64 = 4096;
/// Entries that a follower may be behind: the slots of its region.
const ENTRIES_AHEAD: u16 = 16;
/// Interval of messages about an entry that is not acknowledged.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for the followers to join, and for the next entry to come.
const LONG: Duration = Duration::from_secs(3600);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.split_first() {
        Some((&"lead", rest)) => lead(rest),
        Some((&"follow", rest)) => follow(rest),
        _ => Err("expected: log lead [OPTIONS] FILE, or log follow GROUP FILE".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("log: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The value behind an option, and the default without it.
fn option<'a>(words: &[&'a str], name: &str, default: &'a str) -> &'a str {
    let place = words.iter().position(|word| *word == name);
    place.and_then(|place| words.get(place + 1)).copied().unwrap_or(default)
}

fn say(line: &str) {
    println!("{line}");
    // A reader of a pipe wants it now; it may be gone.
    let _ = io::stdout().flush();
}

/// Appends each line of the standard input to the log.
fn lead(words: &[&str]) -> Result<()> {
    let members: u32 = option(words, "--members", "3").parse()?;
    let mut options = GroupOptions::for_buffers([MAX_ENTRY_OCTETS]);
    options.name = Some("log".to_owned());
    options.slots.count = ENTRIES_AHEAD;
    options.proxy = Some(option(words, "--proxy", "").parse().map_err(|_| "--proxy: expected an address")?);
    options.policy.min_receivers = option(words, "--least", "1").parse()?;
    options.policy.t_stall = Duration::from_millis(option(words, "--evict-after", "5000").parse()?);
    let path = words.last().ok_or("expected the file of the log")?;
    let mut log = File::create(path)?;

    let source = Device::open(&DeviceOptions::from_environment())?.create_group(&options)?;
    say(&format!("group {}", source.group()));
    source.commit(members, LONG)?;
    let (appended, to_acknowledge) = mpsc::channel();
    thread::scope(|scope| -> Result<()> {
        let acknowledging = scope.spawn(|| acknowledge(&source, to_acknowledge));
        for (index, line) in (1..).zip(io::stdin().lines()) {
            let entry = line?;
            writeln!(log, "{index} {entry}")?;
            log.sync_data()?;
            append(&source, index, entry)?;
            appended.send(index)?;
        }
        drop(appended);
        acknowledging.join().map_err(|_| "a thread has ended")??;
        Ok(())
    })?;
    source.close()?;
    Ok(())
}

/// Publishes an entry as soon as there is room.
fn append(source: &Source, index: u64, entry: String) -> Result<()> {
    loop {
        match source.publish(index, vec![Buffer::new("entry", entry.clone().into_bytes())]) {
            Err(Error::QueueFull) => thread::sleep(Duration::from_millis(10)),
            published => return Ok(published?),
        }
    }
}

/// Says which entries every member has, in order.
fn acknowledge(source: &Source, appended: mpsc::Receiver<u64>) -> std::result::Result<(), Error> {
    for index in appended {
        loop {
            match source.wait(index, PATIENCE) {
                Ok(()) => break say(&format!("acknowledged {index}")),
                Err(Error::Timeout) => say(&format!("waiting {index}")),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Appends each entry to the file, until the group is over.
fn follow(words: &[&str]) -> Result<()> {
    let &[group, path, ..] = words else { return Err("expected: log follow GROUP FILE".into()) };
    let mut last = fs::read_to_string(path).map_or(0, |text| text.lines().count() as u64);
    let mut log = OpenOptions::new().create(true).append(true).open(path)?;
    let receiver = Device::open(&DeviceOptions::from_environment())?.join(group.parse()?, JoinOptions::default())?;
    say("joining");
    loop {
        let version = match receiver.next_version(LONG) {
            Ok(version) => version,
            Err(Error::Over(over)) => {
                say(&format!("over: {over}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let index = version.number();
        if index != last + 1 {
            let expected = last + 1;
            return Err(format!("entry {index} comes where {expected} was expected: copy the leader's file").into());
        }
        let entry = String::from_utf8_lossy(version.buffer("entry").unwrap_or_default());
        writeln!(log, "{index} {entry}")?;
        // The slot is free for a later entry only when this one is on the disk.
        log.sync_data()?;
        last = index;
        say(&format!("entry {index}"));
    }
}
