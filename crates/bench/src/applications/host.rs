//! The programs of source and receivers: processes of their own, which the measurement starts in namespaces. Orders and
//! reports are lines of JSON.

use anyhow::{Context, bail, ensure};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use srdma::{Buffer, Device, DeviceOptions, GroupOptions, JoinOptions, Scatter, ScatterOptions, Source};
use std::io::{self, BufRead, Write};
use std::net::Ipv6Addr;
use std::ops::Range;
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
    Source { proxies: Vec<Ipv6Addr>, is_scatter: bool, octets: u64, receivers_of_each: u32, patience_s: u64 },
    /// Report each version.
    Receiver { group: u32, part: Option<Part>, patience_s: u64 },
}

/// The part of the data that a receiver gets by scatter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) count: u32,
    /// Octets of the whole.
    pub(super) octets: u64,
}

impl Part {
    /// Its octets: whole words, but for the last one.
    fn range(self) -> Range<usize> {
        let octets = self.octets as usize;
        let each = octets.div_ceil(self.count as usize).next_multiple_of(8);
        let at = |number: u32| (number as usize * each).min(octets);
        at(self.number)..at(self.number + 1)
    }
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
        Program::Source { proxies, is_scatter, octets, receivers_of_each, patience_s } => {
            let publishers = match is_scatter {
                true => Publishers::Parts(scatter(&proxies, octets)?),
                false => Publishers::Groups(
                    proxies.iter().map(|proxy| open(*proxy, octets)).collect::<anyhow::Result<Vec<Source>>>()?,
                ),
            };
            source(&publishers, octets, receivers_of_each, Duration::from_secs(patience_s))
        }
        Program::Receiver { group, part, patience_s } => receiver(group, part, Duration::from_secs(patience_s)),
    }
}

/// What a source publishes by.
enum Publishers {
    /// The whole to each group.
    Groups(Vec<Source>),
    /// A part to each.
    Parts(Scatter),
}

impl Publishers {
    fn groups(&self) -> Vec<u32> {
        match self {
            Publishers::Groups(sources) => sources.iter().map(Source::group).collect(),
            Publishers::Parts(scatter) => scatter.groups(),
        }
    }

    fn commit(&self, receivers_of_each: u32, patience: Duration) -> srdma::Result<()> {
        match self {
            Publishers::Groups(sources) => {
                sources.iter().try_for_each(|source| source.commit(receivers_of_each, patience))
            }
            Publishers::Parts(scatter) => scatter.commit(&vec![receivers_of_each; scatter.groups().len()], patience),
        }
    }

    fn publish(&self, version: u64, data: &Arc<[u8]>, patience: Duration) -> srdma::Result<()> {
        match self {
            Publishers::Groups(sources) => {
                for source in sources {
                    source.publish(version, vec![Buffer::new(BUFFER, Arc::clone(data))])?;
                }
                sources.iter().try_for_each(|source| source.wait(version, patience))
            }
            Publishers::Parts(scatter) => {
                let count = scatter.groups().len() as u32;
                let part = |number| {
                    let range = Part { number, count, octets: data.len() as u64 }.range();
                    vec![Buffer::new(BUFFER, Slice { data: Arc::clone(data), range })]
                };
                scatter.publish(version, (0..count).map(part).collect())?;
                scatter.wait(version, patience)
            }
        }
    }
}

/// A part of shared data.
struct Slice {
    data: Arc<[u8]>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.data[self.range.clone()]
    }
}

fn source(publishers: &Publishers, octets: u64, receivers_of_each: u32, patience: Duration) -> anyhow::Result<()> {
    say(&Report::Groups(publishers.groups()))?;
    let mut prepared: Option<(u64, Arc<[u8]>)> = None;
    for line in io::stdin().lock().lines() {
        let report = match serde_json::from_str(&line?).context("an order to the source")? {
            Order::Commit => {
                publishers.commit(receivers_of_each, patience)?;
                Report::Done
            }
            Order::Prepare(round) => {
                prepared = Some((round, content(round, octets as usize).into()));
                Report::Done
            }
            Order::Publish => {
                let (version, data) = prepared.take().context("nothing is prepared")?;
                let begin_ns = now_ns()?;
                publishers.publish(version, &data, patience)?;
                Report::Published { begin_ns, end_ns: now_ns()? }
            }
        };
        say(&report)?;
    }
    Ok(())
}

fn open(proxy: Ipv6Addr, octets: u64) -> anyhow::Result<Source> {
    let device = Device::open(&DeviceOptions::from_environment())?;
    Ok(device.create_group(&options(proxy, octets))?)
}

/// A shard for each Proxy Address.
fn scatter(proxies: &[Ipv6Addr], octets: u64) -> anyhow::Result<Scatter> {
    let count = proxies.len() as u32;
    let shard = |(number, proxy): (u32, &Ipv6Addr)| {
        let range = Part { number, count, octets }.range();
        options(*proxy, range.len() as u64)
    };
    let device = Device::open(&DeviceOptions::from_environment())?;
    Ok(device.create_scatter(&ScatterOptions { shards: (0..).zip(proxies).map(shard).collect() })?)
}

fn options(proxy: Ipv6Addr, octets: u64) -> GroupOptions {
    let mut options = GroupOptions { proxy: Some(proxy), ..GroupOptions::for_buffers([octets]) };
    options.slots.count = 1;
    options.window_octets = Some(WINDOW_OCTETS);
    options.policy.t_stall = STALL;
    options
}

fn receiver(group: u32, part: Option<Part>, patience: Duration) -> anyhow::Result<()> {
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
        check(version.number(), part, version.buffer(BUFFER).context("the version has no data")?)?;
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
fn check(round: u64, part: Option<Part>, data: &[u8]) -> anyhow::Result<()> {
    const PAGE_WORDS: usize = 512;
    let first = part.map_or(0, |part| part.range().start / 8);
    for (place, octets) in data.chunks_exact(8).enumerate().step_by(PAGE_WORDS) {
        ensure!(
            octets == word(round, (first + place) as u64).to_le_bytes(),
            "version {round} has other data at word {place}"
        );
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
        assert!(check(2, None, &data).is_ok());
        assert!(check(3, None, &data).is_err());
        let mut mixed = data;
        mixed[4096..].copy_from_slice(&content(1, 8192)[4096..]);
        assert!(check(2, None, &mixed).is_err());
        assert_eq!(content(7, 13).len(), 13);
    }

    #[test]
    fn parts_are_the_whole_and_distinguished() {
        for octets in [0, 1, 63, 64, 8191, 100_000] {
            let part = |number| Part { number, count: 8, octets };
            let ranges: Vec<Range<usize>> = (0..8).map(|number| part(number).range()).collect();
            assert_eq!((ranges[0].start, ranges[7].end), (0, octets as usize));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
            let data = content(5, octets as usize);
            for (number, range) in (0..).zip(&ranges) {
                assert!(check(5, Some(part(number)), &data[range.clone()]).is_ok(), "{octets}, {number}");
            }
        }
        let part = |number| Some(Part { number, count: 8, octets: 100_000 });
        let data = content(5, 100_000);
        let second = &data[part(1).expect("given").range()];
        assert!(check(5, part(1), second).is_ok() && check(5, part(0), second).is_err());
    }
}
