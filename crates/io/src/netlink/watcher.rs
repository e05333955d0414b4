//! The watcher: follows changes in the kernel.
//!
//! One socket receives changes, another one requests dumps. The first is open before the dump is requested, and its
//! messages are read after the dump: for everything that changed meanwhile the received change is the latest state, so
//! that nothing is lost between the two. When the first overruns, because changes come faster than they are read, the
//! dump is repeated.

use super::change::Change;
use super::decode::change;
use super::requests::{Requests, messages};
use crate::socket_option;
use netlink_packet_core::{NLM_F_REPLACE, NetlinkPayload};
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Octets of changes that the kernel keeps for us.
const BUFFER_OCTETS: u32 = 4 << 20;

/// Changes that wait to be taken before the rest waits in the kernel.
const CHANNEL_CHANGES: usize = 1024;

/// The multicast groups to join: RTNLGRP_LINK, NEIGH, IPV4_IFADDR, IPV4_ROUTE, IPV6_IFADDR, IPV6_ROUTE.
const GROUPS: [u32; 6] = [1, 3, 5, 7, 9, 11];

/// The families of addresses that are followed.
const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet6, AddressFamily::Inet];

/// Follows the kernel's state in this network namespace.
#[derive(Debug)]
pub struct Watcher {
    changes: mpsc::Receiver<Change>,
    task: JoinHandle<io::Error>,
}

impl Watcher {
    /// Begins with a dump of everything. Must be called inside a tokio runtime with I/O.
    ///
    /// # Errors
    ///
    /// If the sockets cannot be opened.
    pub fn start() -> io::Result<Self> {
        Self::with_buffer(BUFFER_OCTETS)
    }

    /// The same, with a buffer of this many octets in the kernel for changes that have not been read.
    ///
    /// # Errors
    ///
    /// As [`Watcher::start`].
    pub fn with_buffer(octets: u32) -> io::Result<Self> {
        let mut events = TokioSocket::new(NETLINK_ROUTE)?;
        set_buffer(&events, octets);
        let groups = GROUPS.iter().map(|group| 1 << (group - 1)).sum();
        events.socket_mut().bind(&SocketAddr::new(0, groups))?;
        let requests = Requests::new()?;
        let (sender, changes) = mpsc::channel(CHANNEL_CHANGES);
        Ok(Watcher { changes, task: tokio::spawn(follow(events, requests, sender)) })
    }

    /// Waits for changes and adds them to `changes`, in their order. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    ///
    /// If the kernel can no longer be followed.
    pub async fn receive(&mut self, changes: &mut Vec<Change>) -> io::Result<()> {
        if self.changes.recv_many(changes, CHANNEL_CHANGES).await > 0 {
            return Ok(());
        }
        match (&mut self.task).await {
            Ok(error) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads for ever, or until there is an error.
async fn follow(events: TokioSocket, mut requests: Requests, changes: mpsc::Sender<Change>) -> io::Error {
    match try_follow(&events, &mut requests, &changes).await {
        Ok(()) => io::Error::new(io::ErrorKind::BrokenPipe, "the receiver of kernel changes is gone"),
        Err(error) => io::Error::new(error.kind(), format!("cannot follow the kernel's links and routes: {error}")),
    }
}

async fn try_follow(events: &TokioSocket, requests: &mut Requests, changes: &mpsc::Sender<Change>) -> io::Result<()> {
    let mut is_known = false;
    loop {
        if !is_known {
            for change in dump(requests).await? {
                if changes.send(change).await.is_err() {
                    return Ok(());
                }
            }
            is_known = true;
        }
        match events.recv_from_full().await {
            Ok((datagram, _)) => {
                for (header, payload) in messages(&datagram) {
                    let NetlinkPayload::InnerMessage(message) = payload else {
                        continue;
                    };
                    let Some(change) = change(&message, header.flags & NLM_F_REPLACE != 0) else {
                        continue;
                    };
                    if changes.send(change).await.is_err() {
                        return Ok(());
                    }
                }
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => is_known = false,
            Err(error) => return Err(error),
        }
    }
}

/// Everything there is: links before what is at them.
async fn dump(requests: &mut Requests) -> io::Result<Vec<Change>> {
    let mut changes = vec![Change::DumpBegins];
    let links = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let of_links = FAMILIES.into_iter().flat_map(|family| {
        let mut neighbours = NeighbourMessage::default();
        neighbours.header.family = family;
        let mut addresses = AddressMessage::default();
        addresses.header.family = family;
        let mut routes = RouteMessage::default();
        routes.header.address_family = family;
        [
            RouteNetlinkMessage::GetAddress(addresses),
            RouteNetlinkMessage::GetNeighbour(neighbours),
            RouteNetlinkMessage::GetRoute(routes),
        ]
    });
    for message in std::iter::once(links).chain(of_links) {
        changes.append(&mut requests.dump(message, |message| change(&message, false)).await?);
    }
    changes.push(Change::DumpEnds);
    Ok(changes)
}

/// Requests a buffer beyond the system's limit, or else as much as is allowed. With less, dumps are more frequent.
fn set_buffer(socket: &TokioSocket, octets: u32) {
    let value = octets as libc::c_int;
    // SAFETY: the descriptor is open as long as `socket` lives.
    let socket = unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) };
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        if socket_option::set(socket, libc::SOL_SOCKET, option, &value).is_ok() {
            return;
        }
    }
}
