//! Neighbor Discovery for Proxy Addresses, which no interface has (RFC 4861 section 7.2.4), and ARP for those of IPv4
//! (RFC 826, D274).
//!
//! Source and receivers treat a group's Proxy Address as that of a host and may resolve it on their link. No interface
//! has the address, so the kernel does not answer; this responder does, with the port's own MAC address, while the
//! address is in the set. A raw ICMPv6 socket is not sufficient: the kernel delivers only solicitations by multicast to
//! it, and not the unicast ones of neighbour unreachability detection.

mod arp;
mod message;
mod socket;

use arp::Request;
use message::Solicitation;
use socket::{Arrival, Kind, PacketSocket};
use srdma_wire::MacAddress;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv6Addr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

/// Answers Neighbor Solicitations, and for IPv4-mapped addresses ARP requests, for a set of addresses at a set of
/// interfaces, until it is dropped.
#[derive(Debug)]
pub struct ProxyNd {
    shared: Arc<Shared>,
    /// Carries the memberships.
    groups: UdpSocket,
    joined: BTreeSet<(u32, Ipv6Addr)>,
    tasks: [JoinHandle<()>; 2],
}

/// Counters of a [`ProxyNd`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NdStatistics {
    /// Solicitations and requests that were answered.
    pub answered: u64,
    /// Solicitations for an address of the set that were not valid (RFC 4861 section 7.1.1).
    pub invalid: u64,
    /// Answers that the kernel did not take.
    pub send_errors: u64,
}

#[derive(Debug, Default)]
struct Shared {
    answers: Mutex<Answers>,
    answered: AtomicU64,
    invalid: AtomicU64,
    send_errors: AtomicU64,
}

/// Addresses that are answered for, and their interfaces.
#[derive(Debug, Default)]
struct Answers {
    /// Interfaces by their index, and their MAC addresses.
    interfaces: BTreeMap<u32, MacAddress>,
    addresses: BTreeSet<Ipv6Addr>,
}

/// The advertisement for a frame that solicits a neighbour, from a node that answers for all neighbours of the link:
/// the target is at `mac`. `None` for any other frame, and for duplicate address detection.
pub fn answer_for_anybody(frame: &[u8], mac: MacAddress) -> Option<Vec<u8>> {
    let target = message::target(frame)?;
    let solicitation = Solicitation::parse(frame).filter(|solicitation| !solicitation.is_alone())?;
    Some(solicitation.advertisement(target, mac))
}

impl ProxyNd {
    /// Begins with nothing to answer for, in the calling thread's network namespace. Must be called inside a tokio
    /// runtime with I/O.
    ///
    /// # Errors
    ///
    /// If the sockets cannot be opened: it takes CAP_NET_RAW.
    pub fn start() -> io::Result<Self> {
        let groups = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
        let shared = Arc::new(Shared::default());
        let start = |kind, judge: Judge| -> io::Result<JoinHandle<()>> {
            // SAFETY: a packet socket owns its descriptor, gives no other, and closes it only when it is dropped.
            let socket = unsafe { AsyncFd::register(PacketSocket::open(kind)?)? };
            Ok(tokio::spawn(answer(socket, Arc::clone(&shared), judge)))
        };
        let tasks = [start(&Kind::SOLICITATIONS, solicited)?, start(&Kind::ARP_REQUESTS, requested)?];
        Ok(ProxyNd { shared, groups, joined: BTreeSet::new(), tasks })
    }

    /// Answers for these addresses from now on, at these interfaces: their indices and MAC addresses.
    ///
    /// # Errors
    ///
    /// If an interface is gone or accepts no more groups. All other changes are done, and a later call retries.
    pub fn set(
        &mut self,
        interfaces: impl IntoIterator<Item = (u32, MacAddress)>,
        addresses: impl IntoIterator<Item = Ipv6Addr>,
    ) -> io::Result<()> {
        let answers =
            Answers { interfaces: interfaces.into_iter().collect(), addresses: addresses.into_iter().collect() };
        let ipv6 = answers.addresses.iter().filter(|address| address.to_ipv4_mapped().is_none());
        let groups = |index: u32| ipv6.clone().map(move |address| (index, message::solicited_node(*address)));
        let wanted: BTreeSet<(u32, Ipv6Addr)> = answers.interfaces.keys().copied().flat_map(groups).collect();
        let mut result = Ok(());
        for (index, group) in self.joined.difference(&wanted) {
            // Fails if the interface is gone, which has ended the membership.
            let _ = self.groups.leave_multicast_v6(group, *index);
        }
        self.joined.retain(|joined| wanted.contains(joined));
        for (index, group) in wanted {
            if !self.joined.contains(&(index, group)) {
                match self.groups.join_multicast_v6(&group, index) {
                    Ok(()) => drop(self.joined.insert((index, group))),
                    Err(error) => result = result.and(Err(error)),
                }
            }
        }
        *self.shared.answers() = answers;
        result
    }

    /// The responder's counters.
    pub fn statistics(&self) -> NdStatistics {
        NdStatistics {
            answered: self.shared.answered.load(Ordering::Relaxed),
            invalid: self.shared.invalid.load(Ordering::Relaxed),
            send_errors: self.shared.send_errors.load(Ordering::Relaxed),
        }
    }
}

impl Drop for ProxyNd {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Shared {
    /// A panic of another thread leaves nothing half done here.
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, socket: &PacketSocket, arrival: Arrival, frame: &[u8], judge: Judge) {
        let answers = self.answers();
        let Some(&mac) = answers.interfaces.get(&arrival.index) else {
            return;
        };
        let verdict = judge(frame, &answers, mac);
        drop(answers);
        let counter = match verdict {
            Verdict::OtherAddress => return,
            Verdict::Invalid => &self.invalid,
            Verdict::Answer(reply) => match socket.send(arrival.index, &reply) {
                Ok(()) => &self.answered,
                Err(_) => &self.send_errors,
            },
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a frame is to the responder.
enum Verdict {
    OtherAddress,
    Invalid,
    Answer(Vec<u8>),
}

type Judge = fn(&[u8], &Answers, MacAddress) -> Verdict;

fn solicited(frame: &[u8], answers: &Answers, mac: MacAddress) -> Verdict {
    let Some(target) = message::target(frame).filter(|target| answers.addresses.contains(target)) else {
        return Verdict::OtherAddress;
    };
    match Solicitation::parse(frame) {
        Some(solicitation) => Verdict::Answer(solicitation.advertisement(target, mac)),
        None => Verdict::Invalid,
    }
}

fn requested(frame: &[u8], answers: &Answers, mac: MacAddress) -> Verdict {
    match Request::parse(frame) {
        Some(request) if answers.addresses.contains(&request.target.to_ipv6_mapped()) => {
            Verdict::Answer(request.reply(mac))
        }
        Some(_) | None => Verdict::OtherAddress,
    }
}

async fn answer(socket: AsyncFd<PacketSocket>, shared: Arc<Shared>, judge: Judge) {
    let mut frame = [0; 2048];
    loop {
        let Ok(mut ready) = socket.readable().await else {
            return;
        };
        // An interface that goes down causes one error; the socket continues.
        if let Ok(Ok((arrival, len))) = ready.try_io(|socket| socket.get_ref().receive(&mut frame)) {
            shared.reply(socket.get_ref(), arrival, &frame[..len], judge);
        }
    }
}
