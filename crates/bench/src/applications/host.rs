//! The programs of source and receivers: processes of their own, which the measurement starts in namespaces. Orders and
//! reports are lines of JSON.

use anyhow::{Context, bail, ensure};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use srdma::{Buffer, Device, DeviceOptions, GroupOptions, JoinOptions, Source};
use std::io::{self, BufRead, Write};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

/// Name of the only buffer of a version.
const BUFFER: &str = "data";

/// Octets that a source has in flight: more than the bandwidth-delay product of the limited links, and for eight
/// sources together less than the queue in front of one, so that unicast loses nothing there.
const WINDOW_OCTETS: u32 = 128 << 10;

/// Time that the policy gives a receiver: never reached on a machine that others use too.
const STALL: Duration = Duration::from_secs(60);

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Program {
    /// Publish each round's version to every group.
    Source { groups: Vec<GroupAt>, octets: u64, receivers_of_each: u32, patience_s: u64 },
    /// Report each version.
    Receiver { group: u32, patience_s: u64 },
}

/// A group to create.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct GroupAt {
    pub(super) proxy: Ipv6Addr,
    /// The source's address.
    pub(super) source: Ipv6Addr,
}

/// A line to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// The receivers have been started: wait for them.
    Commit,
    /// Make the data of a round.
    Prepare(u64),
    /// Publish them, and wait until they are acknowledged.
    Publish,
}

/// A line of a process. Times are nanoseconds of the machine's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Report {
    /// Of the source: the groups, in the order of [`Program::Source`].
    Groups(Vec<u32>),
    /// Of the source: the order has been carried out.
    Done,
    /// Of the source: when the version was published, and when all members of all groups had acknowledged it.
    Published { begin_ns: u64, end_ns: u64 },
    /// Of a receiver: it has asked for its place in the group.
    Joining,
    /// Of a receiver: the application has woken up with a version.
    Woken { version: u64, at_ns: u64 },
}

/// Runs the program that an argument describes, until the standard input ends or the group is over.
///
/// # Errors
///
/// If the argument is not one of [`run`](super::run), and if a call of the library fails.
pub fn run_host(argument: &str) -> anyhow::Result<()> {
    match serde_json::from_str(argument).context("the program of a host")? {
        Program::Source { groups, octets, receivers_of_each, patience_s } => {
            source(&groups, octets, receivers_of_each, Duration::from_secs(patience_s))
        }
        Program::Receiver { group, patience_s } => receiver(group, Duration::from_secs(patience_s)),
    }
}

fn source(groups: &[GroupAt], octets: u64, receivers_of_each: u32, patience: Duration) -> anyhow::Result<()> {
    let sources = groups.iter().map(|group| open(group, octets)).collect::<anyhow::Result<Vec<Source>>>()?;
    say(&Report::Groups(sources.iter().map(Source::group).collect()))?;
    let mut prepared: Option<(u64, Arc<[u8]>)> = None;
    for line in io::stdin().lock().lines() {
        let report = match serde_json::from_str(&line?).context("an order to the source")? {
            Order::Commit => {
                sources.iter().try_for_each(|source| source.commit(receivers_of_each, patience))?;
                Report::Done
            }
            Order::Prepare(round) => {
                prepared = Some((round, content(round, octets as usize).into()));
                Report::Done
            }
            Order::Publish => {
                let (version, data) = prepared.take().context("nothing is prepared")?;
                let begin_ns = now_ns()?;
                for source in &sources {
                    source.publish(version, vec![Buffer::new(BUFFER, Arc::clone(&data))])?;
                }
                sources.iter().try_for_each(|source| source.wait(version, patience))?;
                Report::Published { begin_ns, end_ns: now_ns()? }
            }
        };
        say(&report)?;
    }
    sources.into_iter().try_for_each(Source::close)?;
    Ok(())
}

fn open(group: &GroupAt, octets: u64) -> anyhow::Result<Source> {
    let device = Device::open(&DeviceOptions { address: Some(group.source), ..DeviceOptions::from_environment() })?;
    let mut options = GroupOptions { proxy: Some(group.proxy), ..GroupOptions::for_buffers([octets]) };
    options.slots.count = 1;
    options.window_octets = Some(WINDOW_OCTETS);
    options.policy.t_stall = STALL;
    Ok(device.create_group(&options)?)
}

fn receiver(group: u32, patience: Duration) -> anyhow::Result<()> {
    let device = Device::open(&DeviceOptions::from_environment())?;
    let receiver = device.join(group, JoinOptions::default())?;
    say(&Report::Joining)?;
    loop {
        let version = match receiver.next_version(patience) {
            Ok(version) => version,
            // The measurement is over.
            Err(srdma::Error::Over(srdma::Over::GroupClosed)) => return Ok(()),
            Err(error) => bail!(error),
        };
        let at_ns = now_ns()?;
        check(version.number(), version.buffer(BUFFER).context("the version has no data")?)?;
        say(&Report::Woken { version: version.number(), at_ns })?;
    }
}

/// The data of a round: different in each, so that a slot's octets of the round before would be noticed.
fn content(round: u64, octets: usize) -> Vec<u8> {
    let mut content = Vec::with_capacity(octets.next_multiple_of(8));
    let words = (0..octets.div_ceil(8) as u64).map(|place| word(round, place).to_le_bytes());
    words.for_each(|word| content.extend_from_slice(&word));
    content.truncate(octets);
    content
}

fn word(round: u64, place: u64) -> u64 {
    (round << 48 ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// That these are the data of the round: the library has verified the digests, so that a word in a page is enough to
/// distinguish rounds.
fn check(round: u64, data: &[u8]) -> anyhow::Result<()> {
    const PAGE_WORDS: usize = 512;
    for (place, octets) in data.chunks_exact(8).enumerate().step_by(PAGE_WORDS) {
        ensure!(octets == word(round, place as u64).to_le_bytes(), "version {round} has other data at word {place}");
    }
    Ok(())
}

fn now_ns() -> anyhow::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

fn say(report: &Report) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, report)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_another_round_are_noticed() {
        let data = content(2, 8192);
        assert_eq!(data.len(), 8192);
        assert!(check(2, &data).is_ok());
        assert!(check(3, &data).is_err());
        let mut mixed = data;
        mixed[4096..].copy_from_slice(&content(1, 8192)[4096..]);
        assert!(check(2, &mixed).is_err());
        assert_eq!(content(7, 13).len(), 13);
    }
}
