//! The RDMA program in a guest, `labs/rxe/peer.c`, whose commands are the methods here.

use super::channel::Channel;
use crate::error::Result;
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::time::Duration;

/// Maximum time of a command without network traffic, on a busy machine.
const PROMPT: Duration = Duration::from_secs(60);

/// Options of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerOptions {
    /// The length of its buffer.
    pub octets: u64,
    /// The interface's MTU must be larger by at least 80.
    pub path_mtu: PathMtu,
    /// Exponent of the time after which the requester sends again: 4.096 µs · 2^n. Below 17, which is half a second, it
    /// fires under emulation without cause.
    pub ack_timeout: u8,
    /// The GID of its queue pairs, of IPv4 an IPv4-mapped one; without, the first global one of IPv6.
    pub address: Option<Ipv6Addr>,
}

/// A buffer, and the queue pairs of a host that use it.
#[derive(Debug)]
pub struct Peer {
    channel: Channel,
    /// The host's address.
    pub address: Ipv6Addr,
    /// The key of its buffer.
    pub rkey: u32,
    /// The buffer's virtual address.
    pub base: u64,
}

/// A queue pair of a [`Peer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePair {
    /// Its index at the peer.
    pub index: usize,
    /// Its number on the wire.
    pub qpn: Qpn,
    /// The first PSN that it sends.
    pub psn: Psn,
}

/// Work of a queue pair on the first octets of its peer's buffer.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// WRITE them to a virtual address.
    Write {
        /// The key there.
        rkey: u32,
        address: u64,
    },
    /// SEND them.
    Send,
}

impl Peer {
    pub(super) fn new(mut channel: Channel) -> Result<Self> {
        let fields = answer(&mut channel, "peer", PROMPT)?;
        let address = field(&channel, &fields, "address", |text| Ipv6Addr::from_str(text).ok())?;
        let rkey = field(&channel, &fields, "rkey", hexadecimal)? as u32;
        let base = field(&channel, &fields, "base", hexadecimal)?;
        Ok(Peer { channel, address, rkey, base })
    }

    /// Opens a queue pair; `psn` is the first that it sends.
    ///
    /// # Errors
    ///
    /// As for all methods: the guest's reason, with its name and the command, or its silence.
    pub fn open(&mut self, psn: Psn) -> Result<QueuePair> {
        let fields = self.command(&format!("open {:#x}", psn.get()), PROMPT)?;
        let index = field(&self.channel, &fields, "qp", |text| text.parse().ok())?;
        let qpn = field(&self.channel, &fields, "qpn", |text| Qpn::new(hexadecimal(text)? as u32))?;
        Ok(QueuePair { index, qpn, psn })
    }

    /// Connects a queue pair to an address, a QPN and the first PSN from there. The guest's kernel resolves the address
    /// in here, by its routes and neighbour discovery.
    pub fn connect(&mut self, pair: QueuePair, address: Ipv6Addr, qpn: Qpn, psn: Psn) -> Result<()> {
        let (index, qpn, psn) = (pair.index, qpn.get(), psn.get());
        self.command(&format!("connect {index} {address} {qpn:#x} {psn:#x}"), PROMPT).map(drop)
    }

    /// Fills the buffer with a pattern that only `seed` has; with zeros for seed 0.
    pub fn fill(&mut self, seed: u64) -> Result<()> {
        self.command(&format!("fill {seed}"), PROMPT).map(drop)
    }

    /// The SHA-256 of the buffer's first octets, in hexadecimal.
    pub fn sha256(&mut self, octets: u64) -> Result<String> {
        let fields = self.command(&format!("sha256 0 {octets}"), PROMPT)?;
        field(&self.channel, &fields, "sha256", |text| Some(text.to_owned()))
    }

    /// A counter of the RDMA device, by the kernel's name.
    pub fn counter(&mut self, name: &str) -> Result<u64> {
        let fields = self.command(&format!("counter {name}"), PROMPT)?;
        field(&self.channel, &fields, "count", |text| text.parse().ok())
    }

    /// Gives a queue pair work to do with the first `octets`, in messages of `message` octets. [`Peer::run`] does it.
    pub fn assign(&mut self, pair: QueuePair, work: Work, octets: u64, message: u64) -> Result<()> {
        let index = pair.index;
        let command = match work {
            Work::Write { rkey, address } => format!("write {index} 0 {octets} {message} {rkey:#x} {address:#x}"),
            Work::Send => format!("send {index} 0 {octets} {message}"),
        };
        self.command(&command, PROMPT).map(drop)
    }

    /// Begins to do what has been assigned, all at the same time. No other command is taken before it is done.
    pub fn run(&mut self, limit: Duration) -> Result<()> {
        self.channel.send(&format!("run {}", limit.as_millis()))
    }

    /// Duration of [`Peer::run`] by the guest's clock; `None` while it runs.
    pub fn done(&mut self) -> Result<Option<Duration>> {
        let Some(line) = self.channel.try_receive()? else { return Ok(None) };
        let fields = fields(&self.channel, "run", &line)?;
        field(&self.channel, &fields, "us", |text| text.parse().ok()).map(|us| Some(Duration::from_micros(us)))
    }

    /// Posts buffers for the messages of a [`Work::Send`] of the same lengths.
    pub fn receive(&mut self, pair: QueuePair, octets: u64, message: u64) -> Result<()> {
        self.command(&format!("receive {} 0 {octets} {message}", pair.index), PROMPT).map(drop)
    }

    /// Begins to wait until `count` messages have been received. No other command is taken before that.
    pub fn wait(&mut self, count: u64, limit: Duration) -> Result<()> {
        self.channel.send(&format!("wait {count} {}", limit.as_millis()))
    }

    /// Octets of the messages of [`Peer::wait`]; `None` while it waits.
    pub fn waited(&mut self) -> Result<Option<u64>> {
        let Some(line) = self.channel.try_receive()? else { return Ok(None) };
        let fields = fields(&self.channel, "wait", &line)?;
        field(&self.channel, &fields, "octets", |text| text.parse().ok()).map(Some)
    }

    fn command(&mut self, command: &str, patience: Duration) -> Result<Vec<(String, String)>> {
        self.channel.send(command)?;
        answer(&mut self.channel, command, patience)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // If that does not arrive, the next greeting repeats it.
        let _ = self.channel.send("quit");
    }
}

fn answer(channel: &mut Channel, command: &str, patience: Duration) -> Result<Vec<(String, String)>> {
    let line = channel.receive(patience)?;
    fields(channel, command, &line)
}

/// The fields of an answer that begins with OK.
fn fields(channel: &Channel, command: &str, line: &str) -> Result<Vec<(String, String)>> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("OK", fields) => {
            let pairs = fields.split_whitespace().filter_map(|field| field.split_once('='));
            Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
        }
        ("ERR", problem) => Err(channel.problem(format!("`{command}`: {problem}"))),
        _ => Err(channel.problem(format!("`{command}`: {line}"))),
    }
}

fn field<T>(
    channel: &Channel,
    fields: &[(String, String)],
    name: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T> {
    let value = fields.iter().find(|(field, _)| field == name).and_then(|(_, value)| parse(value));
    value.ok_or_else(|| channel.problem(format!("expected a field {name} in its answer, found {fields:?}")))
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
