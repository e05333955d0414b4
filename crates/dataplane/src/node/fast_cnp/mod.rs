//! Fast CNP at a node: told by commands, sent when a packet meets congestion, kept inside its domain, translated for hosts
//! behind the node, and counted for the branch of a group (D45–D48).

mod borders;
mod first_hop;
mod refusal;
mod tree;

use super::state::Target;
use super::{Arrival, Node};
use crate::config::ConfigError;
use crate::drop::DropReason;
use crate::fast_cnp::{Connection, FastCnpConfig, FastCnpCounters, Notice, Notifier, Verdict};
use crate::frame::Frame;
use crate::headers::IPV6;
use crate::pool::Pool;
use crate::reverse::BranchIndex;
use srdma_wire::fast_cnp::{FastCnpError, MAX_FAST_CNP_LEN};
use srdma_wire::{Instant, Qpn};
use std::net::Ipv6Addr;

impl Node {
    pub(super) fn set_fast_cnp(&mut self, config: FastCnpConfig) -> Result<(), ConfigError> {
        self.fast_cnp = Some(match self.fast_cnp.take() {
            Some(before) => Box::new(before.reconfigured(config)),
            None => Box::new(Notifier::new(config)),
        });
        Ok(())
    }

    pub(super) fn remove_fast_cnp(&mut self) -> Result<(), ConfigError> {
        self.fast_cnp = None;
        Ok(())
    }

    pub(super) fn add_connection(&mut self, connection: Connection) -> Result<(), ConfigError> {
        self.fast_cnp.as_mut().ok_or(ConfigError::FastCnpIsOff)?.connections.provision(connection);
        Ok(())
    }

    pub(super) fn remove_connection(&mut self, host: Ipv6Addr, peer: Ipv6Addr, qpn: Qpn) -> Result<(), ConfigError> {
        let connections = &mut self.fast_cnp.as_mut().ok_or(ConfigError::FastCnpIsOff)?.connections;
        match connections.withdraw(host, peer, qpn) {
            true => Ok(()),
            false => Err(ConfigError::UnknownConnection { host, peer, peer_qpn: qpn }),
        }
    }
}

/// A packet meets congestion.
impl Node {
    /// Tells the sender of a packet that meets congestion, when it is one to be told. A packet for which a Fast CNP goes
    /// out to a sender that is known to process them is not marked (FC-4-6); one whose sender may not, or cannot be told
    /// for a limit, is (FC-4-5, D45).
    #[inline]
    pub fn notify(&mut self, now: Instant, frame: &Frame, pool: &mut Pool) -> Notified {
        let Some(mut notifier) = self.fast_cnp.take() else { return Notified::Nobody };
        let mut octets = [0; IPV6 + MAX_FAST_CNP_LEN];
        let decided = match notifier.decide(now, frame.head(pool)) {
            Verdict::Nobody => Err(Notified::Nobody),
            Verdict::Refused => Err(Notified::Marking),
            Verdict::ToldBefore => Err(Notified::Sender),
            Verdict::Notify(notice) => Ok(self.prepare(&mut notifier, &notice, &mut octets)),
        };
        self.fast_cnp = Some(notifier);
        let (message, and_mark) = match decided {
            Ok(prepared) => prepared,
            Err(notified) => return notified,
        };
        let is_sent = match message {
            Message::Packet(len) => self.send_fast_cnp(now, &octets[..IPV6 + len], pool),
            Message::Count(group, branch) => {
                let counted = self.congestion(now, group, branch, 1, pool).is_ok();
                self.count_fast_cnp(|counters| counters.counted_here += u64::from(counted));
                counted
            }
            Message::None => false,
        };
        if !is_sent {
            self.count_fast_cnp(|counters| counters.not_sent += 1);
        }
        if and_mark || !is_sent { Notified::Marking } else { Notified::Sender }
    }

    /// What goes out for a notice, and whether the packet is marked besides. A copy of a group's that this edge has made
    /// is counted here: the edge is who its Fast CNP would go to (D46).
    fn prepare(&self, notifier: &mut Notifier, notice: &Notice<'_>, octets: &mut [u8]) -> (Message, bool) {
        if let Some(Target::Group(group)) = self.main.lookup(notice.fields.source) {
            let branch = self.branch_of_copy(group, notice.fields.destination, notice.fields.dest_qpn);
            return (branch.map_or(Message::None, |branch| Message::Count(group, branch)), false);
        }
        let place = octets.get_mut(IPV6..).unwrap_or(&mut []);
        let written = notifier.write(notice, self.config.loopback, self.config.fast_cnp_types, place);
        (written.map_or(Message::None, Message::Packet), notice.and_mark)
    }

    /// Sends a Fast CNP of the node's own by its FIB; whether it waits in a queue now. To a host that is translated for
    /// it goes as a standard CNP.
    fn send_fast_cnp(&mut self, now: Instant, octets: &[u8], pool: &mut Pool) -> bool {
        let arrival = Arrival { now, port: None, replicated: false, encapsulated: 0, decapsulated: false };
        let Some(mut frame) = Frame::small(octets, pool) else { return false };
        let way = match self.translate(&mut frame, pool) {
            Ok(()) => self.way_of(&mut frame, pool),
            Err(reason) => Err(reason),
        };
        match way {
            Ok(adjacency) => {
                let is_sent = self.transmitted(arrival, frame, pool, adjacency);
                self.count_fast_cnp(|counters| counters.sent += u64::from(is_sent));
                is_sent
            }
            Err(reason) => {
                self.drop_frame(arrival, frame, pool, reason);
                false
            }
        }
    }

    fn count_fast_cnp(&mut self, count: impl FnOnce(&mut FastCnpCounters)) {
        if let Some(notifier) = self.fast_cnp.as_mut() {
            count(&mut notifier.counters);
        }
    }
}

/// Who is told of the congestion that a packet meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    /// Nobody by a Fast CNP: marks are a matter of the queue's depth.
    Nobody,
    /// The packet is to be marked, so that its receiver is told, whether its sender was or not.
    Marking,
    /// The sender; the packet is not to be marked.
    Sender,
}

/// What a notice comes to.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// A Fast CNP of so many octets.
    Packet(usize),
    /// A CNP of the branch of a group.
    Count(u32, BranchIndex),
    /// It cannot be.
    None,
}

/// Under which name a Fast CNP is dropped that is not as it must be.
fn drop_of(error: FastCnpError) -> DropReason {
    match error {
        FastCnpError::Overrun(_) | FastCnpError::TooLong { .. } => DropReason::FastCnpTooLong,
        FastCnpError::TooShort { .. } => DropReason::FastCnpTooShort,
        FastCnpError::Twice { .. } => DropReason::FastCnpTwice,
        FastCnpError::WrongPlace { .. } => DropReason::FastCnpWrongPlace,
        FastCnpError::Trace(_) => DropReason::FastCnpBadTrace,
        FastCnpError::UnknownOption(_) => DropReason::FastCnpUnknownOption,
        FastCnpError::NotACnp(_) => DropReason::FastCnpNotACnp,
    }
}
