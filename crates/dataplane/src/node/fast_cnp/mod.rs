//! Fast CNP at a node: told by commands, sent when a packet meets congestion, kept inside its domain, translated for
//! hosts behind the node, and counted for the branch of a group (D45–D48).

mod borders;
mod first_hop;
mod refusal;
mod tree;

use super::congestion::Meeting;
use super::ioam::MAX_TRACED_HEADER;
use super::state::Target;
use super::{Arrival, Node};
use crate::config::ConfigError;
use crate::drop::DropReason;
use crate::fast_cnp::{Connection, FastCnpConfig, FastCnpCounters, Notice, Notifier, Verdict};
use crate::headers::IPV6;
use srdma_aggregation::BranchIndex;
use srdma_frame::{Frame, Pool};
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
        if self.fast_cnp.is_none() && self.headend.is_none() {
            return Err(ConfigError::FastCnpIsOff);
        }
        if let Some(notifier) = self.fast_cnp.as_mut() {
            notifier.connections.provision(connection);
        }
        if let Some(headend) = self.headend.as_mut() {
            headend.add_connection(connection);
        }
        Ok(())
    }

    pub(super) fn remove_connection(&mut self, host: Ipv6Addr, peer: Ipv6Addr, qpn: Qpn) -> Result<(), ConfigError> {
        if self.fast_cnp.is_none() && self.headend.is_none() {
            return Err(ConfigError::FastCnpIsOff);
        }
        let translated = self.fast_cnp.as_mut().is_some_and(|notifier| notifier.connections.withdraw(host, peer, qpn));
        let steered = self.headend.as_mut().is_some_and(|headend| headend.remove_connection(host, peer, qpn));
        match translated || steered {
            true => Ok(()),
            false => Err(ConfigError::UnknownConnection { host, peer, peer_qpn: qpn }),
        }
    }
}

/// A packet meets congestion.
impl Node {
    /// Tells the sender of a packet that meets congestion, when it is one to be told. A packet for which a Fast CNP
    /// goes out to a sender that is known to process them is not marked (FC-4-6); one whose sender may not, or cannot
    /// be told for a limit, is (FC-4-5, D45).
    #[inline]
    pub fn notify(&mut self, now: Instant, frame: &Frame, pool: &mut Pool) -> Notified {
        self.tell(now, frame, None, pool)
    }

    /// The same; where it is known at which queue, the packet's trace is sent with this node's own data in it.
    #[inline]
    pub(super) fn tell(&mut self, now: Instant, frame: &Frame, meeting: Option<&Meeting>, pool: &mut Pool) -> Notified {
        let Some(notifier) = self.fast_cnp.as_deref_mut() else { return Notified::Nobody };
        let sids = &self.notification_sids;
        let verdict = notifier.decide_where(now, frame.head(pool), |fields| sids.leads_back(fields.outer_source));
        let prepared = match verdict {
            Verdict::Nobody => return Notified::Nobody,
            Verdict::Refused => return Notified::Marking,
            Verdict::ToldBefore => return Notified::Sender,
            Verdict::Notify(notice) => self.prepare(notice, frame.head(pool), meeting),
        };
        self.carry_out(now, &prepared, pool)
    }

    /// What goes out for a notice. A copy of a group's that this edge has made is counted here: the edge is who its
    /// Fast CNP would go to (D46).
    #[inline(never)]
    fn prepare(&mut self, notice: Notice<'_>, head: &[u8], meeting: Option<&Meeting>) -> Prepared {
        let mut prepared = Prepared {
            message: Message::None,
            and_mark: notice.and_mark,
            octets: [0; IPV6 + MAX_FAST_CNP_LEN],
            end_e: notice.fields.outer_source.and_then(|source| self.notification_sids.find_end_e(source)),
        };
        if let Some(Target::Group(group)) = self.main.lookup(notice.fields.source) {
            prepared.and_mark = false;
            if let Some(branch) = self.branch_of_copy(group, notice.fields.destination, notice.fields.dest_qpn) {
                prepared.message = Message::Count(group, branch);
            }
            return prepared;
        }
        let mut fields = notice.fields;
        let mut header;
        if let (Some(meeting), Some(_)) = (meeting, fields.trace) {
            header = [0; MAX_TRACED_HEADER];
            fields.trace = self.trace_with_own_data(meeting, head, &mut header).or(fields.trace);
        }
        let (loopback, types) = (self.config.loopback, self.config.fast_cnp_types);
        let place = prepared.octets.get_mut(IPV6..).unwrap_or(&mut []);
        let written = self.fast_cnp.as_mut().and_then(|notifier| notifier.write(&fields, loopback, types, place));
        prepared.message = written.map_or(Message::None, Message::Packet);
        prepared
    }

    fn carry_out(&mut self, now: Instant, prepared: &Prepared, pool: &mut Pool) -> Notified {
        let is_sent = match prepared.message {
            Message::Packet(len) => self.send_fast_cnp(now, &prepared.octets[..IPV6 + len], prepared.end_e, pool),
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
        if prepared.and_mark || !is_sent { Notified::Marking } else { Notified::Sender }
    }

    /// Sends a Fast CNP of the node's own by its FIB, or by the END.E of the packet's ingress PE; whether it waits in a
    /// queue now. To a host that is translated for it goes as a standard CNP.
    fn send_fast_cnp(&mut self, now: Instant, octets: &[u8], end_e: Option<u32>, pool: &mut Pool) -> bool {
        let Some(mut frame) = Frame::small(octets, pool) else { return false };
        let arrival = Arrival { by_end_e: end_e.is_some(), ..Arrival::own(now) };
        let way = match end_e {
            Some(end_e) => self.way_by_end_e(end_e, &mut frame, pool),
            None => self.translate(&mut frame, pool).and_then(|()| self.way_of(&mut frame, pool)),
        };
        match way {
            Ok(adjacency) => {
                let is_sent = self.transmitted(arrival, frame, pool, adjacency);
                self.count_fast_cnp(|counters| {
                    counters.sent += u64::from(is_sent);
                    counters.sent_by_end_e += u64::from(is_sent && end_e.is_some());
                });
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

/// What is to be done for a notice.
struct Prepared {
    message: Message,
    /// The packet is marked besides.
    and_mark: bool,
    /// The Fast CNP, behind room for its Ethernet header.
    octets: [u8; IPV6 + MAX_FAST_CNP_LEN],
    /// Whose END.E it goes to, if the packet is in a tunnel.
    end_e: Option<u32>,
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
