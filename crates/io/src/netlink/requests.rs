//! Requests to the kernel: one at a time, with all of its answers.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use std::io;

/// Number of retries of a dump during which entries changed. A route that was skipped because of other changes is found
/// by the next one; at a high rate of changes the next overrun causes a new dump anyway.
const DUMP_ATTEMPTS: usize = 8;

/// A socket for requests.
#[derive(Debug)]
pub(super) struct Requests {
    socket: Socket,
    sequence_number: u32,
}

impl Requests {
    /// A socket in the calling thread's network namespace.
    pub(super) fn new() -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
        socket.socket_mut().bind_auto()?;
        socket.socket_mut().connect(&SocketAddr::new(0, 0))?;
        Ok(Requests { socket: Socket(socket), sequence_number: 0 })
    }

    /// Has something done.
    pub(super) async fn act(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.ask(message, NLM_F_ACK | flags, &mut |_| ()).await.map(|_| ())
    }

    /// All objects of a kind, as `each` sees them.
    pub(super) async fn dump<T: Send>(
        &mut self,
        message: RouteNetlinkMessage,
        mut each: impl FnMut(RouteNetlinkMessage) -> Option<T> + Send,
    ) -> io::Result<Vec<T>> {
        let mut found = Vec::new();
        for _ in 0..DUMP_ATTEMPTS {
            found.clear();
            if self.ask(message.clone(), NLM_F_DUMP, &mut |message| found.extend(each(message))).await? {
                break;
            }
        }
        Ok(found)
    }

    /// Sends a request and reads the answers to it. Returns whether they show one state of the kernel, and not several.
    async fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        each: &mut (dyn FnMut(RouteNetlinkMessage) + Send),
    ) -> io::Result<bool> {
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence_number;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut octets = vec![0; request.buffer_len()];
        request.serialize(&mut octets);
        self.socket.0.send(&octets).await?;
        let mut is_consistent = true;
        loop {
            let (datagram, _) = self.socket.0.recv_from_full().await?;
            for (header, payload) in messages(&datagram) {
                if header.sequence_number != self.sequence_number {
                    continue;
                }
                is_consistent &= header.flags & NLM_F_DUMP_INTR == 0;
                match payload {
                    NetlinkPayload::InnerMessage(message) => each(message),
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    // A dump that was aborted half way reports it only here.
                    NetlinkPayload::Done(done) if done.code != 0 => {
                        return Err(io::Error::from_raw_os_error(done.code.saturating_abs()));
                    }
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(is_consistent),
                    _ => {}
                }
            }
        }
    }
}

/// The messages of a datagram. Unknown messages, of a newer kernel, are skipped.
pub(super) fn messages(datagram: &[u8]) -> impl Iterator<Item = (NetlinkHeader, NetlinkPayload<RouteNetlinkMessage>)> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        loop {
            let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
            let message = rest.get(..length).filter(|message| message.len() >= HEADER_OCTETS)?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            if let Ok(message) = NetlinkMessage::deserialize(message) {
                return Some(message.into_parts());
            }
        }
    })
}

/// Length of a netlink header.
const HEADER_OCTETS: usize = 16;

/// A socket that can be shown.
struct Socket(TokioSocket);

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("netlink socket")
    }
}
