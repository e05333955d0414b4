//! Frames as they come from the wire, a few dozen at a time: first all are examined and their destinations looked up,
//! so that the processor waits for the memory of all at once; then one after the other is forwarded.
//!
//! What most packets need is done here, on headers that are found in memory once and with the packet's state in
//! registers. Everything else begins in [`Node::route`], with nothing changed that it would do again.

use super::Node;
use super::verdict::{HopLimit, Progress, Verdict};
use crate::admission::{admit, mac_word};
use crate::behavior::{end_in_place, inner_offset, uncover};
use crate::config::{SidBehavior, TableId};
use crate::context::PacketContext;
use crate::counters::Traffic;
use crate::drop::DropReason;
use crate::encaps::InnerFields;
use crate::headers::{AFTER_IPV6, IPV6, ipv6};
use crate::ipv4::is_from_mapped;
use crate::scope;
use crate::tables::{Tables, Target};
use crate::vlan;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::Instant;

/// Frames that are looked at together: their headers have to fit the first-level cache.
const TOGETHER: usize = 32;

/// As many, or fewer, are looked at in less memory, which has to be cleared each time.
const FEW: usize = 4;

/// What a frame was found to be.
#[derive(Clone, Copy)]
struct Examined {
    kind: Kind,
    /// Octets of the frame, without padding.
    len: u32,
    /// What the destination leads to.
    target: Option<Target>,
}

#[derive(Clone, Copy)]
enum Kind {
    Unicast,
    /// The same, with padding behind it.
    Padded,
    /// To an address that may be a multicast, link-local or loopback one.
    Special,
    /// From a link-local or loopback address.
    LinkLocalSource,
    Refused(DropReason),
}

impl Examined {
    const NOTHING: Examined = Examined { kind: Kind::Refused(DropReason::Truncated), len: 0, target: None };
}

/// Admits frames, [`TOGETHER`] at most, and looks their destinations up; counts them all.
fn examine(frames: &[Frame], mac: Option<u64>, tables: &Tables, pool: &Pool, examined: &mut [Examined]) -> Traffic {
    if frames.len() <= FEW {
        examine_up_to::<FEW>(frames, mac, tables, pool, examined)
    } else {
        examine_up_to::<TOGETHER>(frames, mac, tables, pool, examined)
    }
}

#[inline(never)]
fn examine_up_to<const N: usize>(
    frames: &[Frame],
    mac: Option<u64>,
    tables: &Tables,
    pool: &Pool,
    examined: &mut [Examined],
) -> Traffic {
    let mut heads: [&[u8]; N] = [&[]; N];
    // The headers are fetched in a loop so short that the processor looks many frames ahead; in the second cache line
    // may be an SRH or an inner packet.
    let mut read = 0;
    for (frame, place) in frames.iter().zip(&mut heads) {
        let head = frame.head(pool);
        if let Some(headers) = head.first_chunk::<AFTER_IPV6>() {
            read ^= headers[0] ^ head.get(AFTER_IPV6 + 64).copied().unwrap_or_default();
        }
        *place = head;
    }
    std::hint::black_box(read);
    let mut received = Traffic::default();
    for ((frame, head), examined) in frames.iter().zip(heads).zip(examined) {
        let len = frame.len();
        received.count(len);
        let admitted = mac.ok_or(DropReason::NotForThisPort).and_then(|mac| admit(mac, head, len));
        *examined = match (admitted, head.first_chunk::<AFTER_IPV6>().and_then(|headers| headers.last_chunk())) {
            (Ok(end), Some(destination)) if !scope::may_be_special(destination[0]) => {
                let kind = if end == len { Kind::Unicast } else { Kind::Padded };
                Examined { kind, len: end as u32, target: tables.lookup_main(destination) }
            }
            (Ok(end), _) => Examined { kind: Kind::Special, len: end as u32, target: None },
            // A neighbour may send from a link-local address to the node itself.
            (Err(DropReason::Scope), _) => Examined { kind: Kind::LinkLocalSource, len: len as u32, target: None },
            (Err(reason), _) => Examined { kind: Kind::Refused(reason), len: len as u32, target: None },
        };
    }
    received
}

impl Node {
    /// Processes frames as they come from the wire.
    pub(super) fn ingress(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        let (mut few, mut many);
        let examined: &mut [Examined] = if frames.len() <= FEW {
            few = [Examined::NOTHING; FEW];
            &mut few
        } else {
            many = [Examined::NOTHING; TOGETHER];
            &mut many
        };
        let mut coming = frames.drain(..);
        while coming.len() > 0 {
            let together = &coming.as_slice()[..coming.len().min(TOGETHER)];
            let received = examine(together, self.ports.mac(port).map(mac_word), &self.tables, pool, examined);
            self.ports.add_received(port, received);
            if self.groups.has_many_lists() {
                self.fetch_lists(together, examined, pool);
            }
            let generation = self.tables.generation();
            let guards_sids = self.security.guards_sids(&self.config);
            for (examined, frame) in examined.iter().zip(coming.by_ref().take(TOGETHER)) {
                if self.tables.generation() == generation {
                    self.ingress_one(now, port, frame, examined, guards_sids, pool);
                } else {
                    self.examine_again(now, port, frame, pool);
                }
            }
        }
    }

    /// Fetches the receiver lists of packets for End.MT.
    #[inline(never)]
    fn fetch_lists(&self, frames: &[Frame], examined: &[Examined], pool: &Pool) {
        let mut heads: [&[u8]; TOGETHER] = [&[]; TOGETHER];
        for ((frame, examined), head) in frames.iter().zip(examined).zip(&mut heads) {
            if let Some(Target::Sid(sid)) = examined.target
                && matches!(self.tables.sid(sid).behavior, SidBehavior::EndMt { .. })
            {
                *head = frame.head(pool);
            }
        }
        std::hint::black_box(self.groups.fetch_lists(&heads));
    }

    /// A packet before this one has changed the tables: its group was learnt (D17).
    #[cold]
    fn examine_again(&mut self, now: Instant, port: PortId, frame: Frame, pool: &mut Pool) {
        let (examined, _) = self.examine_one(port, &frame, pool);
        self.ingress_other(PacketContext::received(now, port), frame, examined, pool);
    }

    /// A frame as it is at this port, counted nowhere.
    fn examine_one(&self, port: PortId, frame: &Frame, pool: &Pool) -> (Examined, Traffic) {
        let mut examined = [Examined::NOTHING];
        let mac = self.ports.mac(port).map(mac_word);
        let received = examine(std::slice::from_ref(frame), mac, &self.tables, pool, &mut examined);
        (examined[0], received)
    }

    /// A frame with a VLAN tag: without it, it comes in at the port of its VLAN, or, with a priority tag, at the port
    /// itself (D257).
    #[cold]
    fn ingress_tagged(&mut self, now: Instant, port: PortId, mut frame: Frame, pool: &mut Pool) {
        let context = PacketContext::received(now, port);
        let tag = match vlan::take_tag(&mut frame, pool) {
            Ok(tag) => tag,
            Err(reason) => return self.ports.drop_frame(&context, frame, pool, reason),
        };
        let Some((arrival, class)) = self.ports.vlans.arrival(port, &tag) else {
            return self.ports.drop_frame(&context, frame, pool, DropReason::VlanTagged);
        };
        let context = PacketContext { class, ..PacketContext::received(now, arrival) };
        let (examined, received) = self.examine_one(arrival, &frame, pool);
        if arrival != port {
            self.ports.add_received(arrival, received);
        }
        match examined.kind {
            // A second tag belongs to no port, and a pause has none.
            Kind::Refused(reason) if reason != DropReason::NotIpv6 => {
                self.ports.drop_frame(&context, frame, pool, reason);
            }
            _ => self.ingress_other(context, frame, examined, pool),
        }
    }

    #[inline(always)]
    fn ingress_one(
        &mut self,
        now: Instant,
        port: PortId,
        mut frame: Frame,
        examined: &Examined,
        guards_sids: bool,
        pool: &mut Pool,
    ) {
        if !matches!(examined.kind, Kind::Unicast) {
            if matches!(examined.kind, Kind::Refused(_)) && vlan::is_tagged(frame.head(pool)) {
                return self.ingress_tagged(now, port, frame, pool);
            }
            return self.ingress_other(PacketContext::received(now, port), frame, *examined, pool);
        }
        let mut len = examined.len as usize;
        let mut target = examined.target;
        let mut progress = Progress::new();
        let mut outer_source: Option<[u8; 16]> = None;
        let mut own_table = TableId(0);
        let mut encapsulated_octets = 0;
        // What the next destination leads to, where that is known without a lookup.
        let mut next = None;
        let mut head = frame.first().octets_mut(pool);
        let verdict = loop {
            match target {
                Some(Target::Adjacency(_) | Target::Ecmp(_)) => {
                    let index = match target {
                        Some(Target::Ecmp(set)) => self.tables.choose(set, head),
                        Some(Target::Adjacency(adjacency)) => adjacency,
                        _ => break None,
                    };
                    let adjacency = self.tables.adjacency(index);
                    let Some(headers) = head.first_chunk_mut::<AFTER_IPV6>() else { break None };
                    let decrement = u8::from(progress.hop_limit == HopLimit::ToDecrement);
                    if headers[HOP_LIMIT] <= decrement || !adjacency.carries_plainly(len) {
                        break None;
                    }
                    let Some(place) = self.ports.place_for(adjacency.port, len) else { break None };
                    headers[HOP_LIMIT] -= decrement;
                    headers[..IPV6].copy_from_slice(&adjacency.ethernet);
                    return place.fill(frame);
                }
                Some(Target::Sid(place)) if !guards_sids => {
                    let sid = self.tables.sid_mut(place);
                    match sid.behavior {
                        SidBehavior::End(flavors) | SidBehavior::EndX(flavors, _) if end_in_place(head, flavors) => {
                            sid.traffic.count(len);
                            progress.hop_limit = HopLimit::Done;
                            if let (SidBehavior::EndX(..), Some(adjacency)) = (sid.behavior, sid.adjacency) {
                                target = Some(Target::Adjacency(adjacency));
                                encapsulated_octets = 0;
                                continue;
                            }
                        }
                        SidBehavior::EndDt6(table) => {
                            let Some(inner) = inner_offset(head) else { break None };
                            let source = head.get(IPV6 + 8..).and_then(|rest| rest.first_chunk()).copied();
                            if uncover(head, len, inner) != Ok(len) {
                                break None;
                            }
                            sid.traffic.count(len);
                            progress.hop_limit = HopLimit::ToDecrement;
                            (progress.table, own_table) = (table, table);
                            outer_source = source;
                            frame.pull(inner - IPV6);
                            len -= inner - IPV6;
                            head = std::mem::take(&mut head).get_mut(inner - IPV6..).unwrap_or_default();
                        }
                        SidBehavior::EndMt { require_hmac } => {
                            sid.traffic.count(len);
                            encapsulated_octets = 0;
                            break Some(Verdict::EndMt { require_hmac });
                        }
                        _ => break None,
                    }
                    encapsulated_octets = 0;
                }
                Some(Target::Encaps(policy)) => {
                    let Some(headers) = head.first_chunk_mut::<AFTER_IPV6>() else { break None };
                    let decrement = u8::from(progress.hop_limit == HopLimit::ToDecrement);
                    if headers[HOP_LIMIT] <= decrement {
                        break None;
                    }
                    headers[HOP_LIMIT] -= decrement;
                    progress.hop_limit = HopLimit::Done;
                    progress.table = TableId(0);
                    next = self.tables.behind_encaps(policy);
                    let policy = self.tables.encaps(policy);
                    let Some(inner) = InnerFields::of(head) else { break None };
                    match policy.push_around(inner, len, &mut frame, pool) {
                        Ok(()) => encapsulated_octets += policy.octets(),
                        Err(reason) => break Some(Verdict::Drop(reason)),
                    }
                    len += policy.octets();
                    head = frame.first().octets_mut(pool);
                }
                Some(Target::Group(group)) => break Some(Verdict::Proxied(group)),
                _ => break None,
            }
            progress.left -= 1;
            if progress.left == 0 {
                break Some(Verdict::Drop(DropReason::SegmentLoop));
            }
            if next.is_some() {
                target = next.take();
                continue;
            }
            let Some(headers) = head.first_chunk::<AFTER_IPV6>() else {
                break Some(Verdict::Drop(DropReason::Truncated));
            };
            let destination = headers.last_chunk().expect("an IPv6 header ends with its destination");
            if scope::may_be_special(destination[0])
                && let Some(verdict) = self.special(destination)
            {
                encapsulated_octets = 0;
                break Some(verdict);
            }
            target = self.tables.lookup(progress.table, destination);
        };
        let mut context =
            PacketContext { encapsulated_octets, outer_source, table: own_table, ..PacketContext::received(now, port) };
        match verdict {
            Some(verdict) => self.dispatch(verdict, &context, frame, pool),
            None => {
                let verdict = self.route(&mut context, progress, target, &mut frame, pool);
                self.dispatch(verdict, &context, frame, pool)
            }
        };
    }

    /// Any frame; those that are refused, padded, or have a special address.
    #[inline(never)]
    fn ingress_other(&mut self, mut context: PacketContext, mut frame: Frame, examined: Examined, pool: &mut Pool) {
        let verdict = match examined.kind {
            Kind::Refused(DropReason::NotIpv6) => self.ingress_ipv4(&mut context, &mut frame, pool),
            Kind::Refused(reason) => Verdict::Drop(reason),
            Kind::Unicast | Kind::Padded => {
                frame.truncate(examined.len as usize, pool);
                self.route(&mut context, Progress::new(), examined.target, &mut frame, pool)
            }
            Kind::Special => {
                frame.truncate(examined.len as usize, pool);
                match ipv6(frame.head(pool)).map(|view| *view.destination_octets()) {
                    Ok(destination) => self.special(&destination).unwrap_or_else(|| {
                        let target = self.tables.lookup_main(&destination);
                        // On a link an IPv4 host sends IPv4 (D272).
                        if matches!(target, Some(Target::Group(_))) && is_from_mapped(frame.head(pool)) {
                            return Verdict::Drop(DropReason::BadSource);
                        }
                        self.route(&mut context, Progress::new(), target, &mut frame, pool)
                    }),
                    Err(reason) => Verdict::Drop(reason),
                }
            }
            Kind::LinkLocalSource => self.link_local(&mut frame, pool),
        };
        self.dispatch(verdict, &context, frame, pool);
    }

    /// A packet from a link-local or loopback address: it is not forwarded, and only a neighbour's is accepted.
    #[cold]
    fn link_local(&self, frame: &mut Frame, pool: &mut Pool) -> Verdict {
        let Ok(view) = ipv6(frame.head(pool)) else { return Verdict::Drop(DropReason::Truncated) };
        let end = AFTER_IPV6 + usize::from(view.payload_length());
        let is_own = matches!(self.tables.lookup_main(view.destination_octets()), Some(Target::Local));
        if !is_own || !scope::is_link_local(view.source_octets()) {
            return Verdict::Drop(DropReason::Scope);
        }
        if end > frame.len() {
            return Verdict::Drop(DropReason::Truncated);
        }
        frame.truncate(end, pool);
        Verdict::Local
    }
}

/// Offset of the hop limit.
const HOP_LIMIT: usize = IPV6 + 7;
