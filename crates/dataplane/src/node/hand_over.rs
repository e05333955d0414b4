//! Packets that another worker of the node is to process, and those that came from one (D208).

use super::Node;
use super::verdict::Verdict;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::groups::behind_outer;
use crate::headers::{AFTER_IPV6, IPV6, ipv6};
use crate::tables::Target;
use crate::worker::{self, Handover, HandoverKind, HandoverNote};
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;

impl Node {
    /// Adds the packets for other workers since the last call to `packets`. The caller passes each to its worker, those
    /// to the same worker in this order.
    #[inline]
    pub fn take_handovers(&mut self, packets: &mut Vec<Handover>) {
        packets.append(&mut self.handovers);
    }

    /// Processes a packet that another worker has received. The first segment is as
    /// [`Element::receive`](srdma_frame::Element::receive) wants it.
    pub fn take_over(&mut self, now: Instant, note: &HandoverNote, frame: Frame, pool: &mut Pool) {
        let context = note.context_at(now);
        let verdict = match self.verdict_of(note.kind, &frame, pool) {
            Ok(verdict) => verdict,
            Err(reason) => Verdict::Drop(reason),
        };
        self.dispatch(verdict, &context, frame, pool);
    }

    /// Counts a packet that did not get from one worker to another.
    pub fn drop_handover(&mut self, note: &HandoverNote, reason: DropReason) {
        self.ports.count_drop(note.context.port, reason);
    }

    /// The worker that a packet is for, if it is another one.
    #[inline]
    pub(super) fn owner_elsewhere(&self, verdict: &Verdict, frame: &Frame, pool: &Pool) -> Option<u16> {
        let worker = self.config.worker;
        let owner = match verdict {
            Verdict::Proxied(_) => worker.owner_of(destination(frame.head(pool))?),
            Verdict::Replicate(group) => worker.owner_of(&self.groups.get(*group)?.entry.proxy.octets()),
            // A packet without an inner one is no group's: this worker drops or copies it.
            Verdict::EndMt { .. } | Verdict::Multicast => {
                let head = frame.head(pool);
                worker.owner_of(head.get(behind_outer(head)? + 24..)?.first_chunk()?)
            }
            Verdict::Local => worker::FIRST,
            // A fragment that lacks these is refused here.
            Verdict::Fragment(at) => {
                let head = frame.head(pool);
                let source = head.get(IPV6 + 8..)?.first_chunk()?;
                let identification = head.get(at.offset + 4..)?.first_chunk()?;
                worker.reassembler_of(source, u32::from_be_bytes(*identification))
            }
            Verdict::Enqueue(..)
            | Verdict::EnterClass(..)
            | Verdict::EnterClassIpv4(..)
            | Verdict::TooLong(_)
            | Verdict::Fragmented
            | Verdict::Frame(_)
            | Verdict::Drop(_)
            | Verdict::Report(..)
            | Verdict::EndC
            | Verdict::ToPeer
            | Verdict::Echo(_) => return None,
        };
        worker.other(owner)
    }

    /// Keeps a packet for another worker.
    #[cold]
    pub(super) fn hand_over(&mut self, to: u16, verdict: &Verdict, context: &PacketContext, frame: Frame) {
        let kind = match verdict {
            Verdict::Proxied(_) => HandoverKind::Proxied,
            Verdict::Replicate(_) => HandoverKind::Replicate,
            Verdict::EndMt { require_hmac } => HandoverKind::EndMt { require_hmac: *require_hmac },
            Verdict::Multicast => HandoverKind::Multicast,
            Verdict::Fragment(at) => HandoverKind::Fragment(*at),
            _ => HandoverKind::Local,
        };
        let note = HandoverNote { context: *context, kind };
        self.handovers.push(Handover { to: usize::from(to), note, frame });
    }

    /// The verdict about a packet that was handed over. Groups and SIDs are looked up again: the other worker may have
    /// had another configuration.
    fn verdict_of(&self, kind: HandoverKind, frame: &Frame, pool: &Pool) -> Result<Verdict, DropReason> {
        let head = frame.head(pool);
        let destination = destination(head).ok_or(DropReason::Truncated)?;
        Ok(match kind {
            HandoverKind::Proxied => {
                Verdict::Proxied(self.tables.group_of(destination).ok_or(DropReason::UnknownGroup)?)
            }
            HandoverKind::Replicate => match self.tables.lookup_main(destination) {
                Some(Target::Sid(sid)) => {
                    Verdict::Replicate(self.tables.sid(sid).group.ok_or(DropReason::UnknownGroup)?)
                }
                _ => return Err(DropReason::UnknownGroup),
            },
            HandoverKind::EndMt { require_hmac } => Verdict::EndMt { require_hmac },
            HandoverKind::Multicast => Verdict::Multicast,
            HandoverKind::Local => Verdict::Local,
            HandoverKind::Fragment(at) => Verdict::Fragment(at),
        })
    }
}

fn destination(head: &[u8]) -> Option<&[u8; 16]> {
    ipv6(head.get(..AFTER_IPV6)?).ok()?;
    head[IPV6 + 24..].first_chunk()
}
