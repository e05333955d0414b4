//! Security checks of a node: the boundary of its SR domain, source addresses at borders, and HMACs (RFC 8754 section
//! 5.1, BCP 38, D9, D36).

mod boundary;
mod hmac;

pub use boundary::Domain;
pub(crate) use boundary::{Boundary, Prefixes};
pub use hmac::{Cover, HmacKey};
pub(crate) use hmac::{HmacError, HmacKeys};

use crate::behavior::Outcome;
use crate::config::{ConfigError, HmacPolicy, NodeConfig, SidBehavior};
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::egress::Ports;
use crate::fast_cnp::FastCnp;
use crate::groups::Groups;
use crate::headers::{AFTER_IPV6, IPV6, Place, ipv6, srh_drop};
use crate::learning::LearningError;
use crate::shared_hosts::{Arrival, SharedHostTable};
use crate::tables::{Sid, Tables};
use boundary::covers;
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::GroupEntry;
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::{EtherType, NextHeader, Prefix};

/// HMAC keys, the domain and its borders, and the hosts for which another node may speak.
#[derive(Debug, Default)]
pub(crate) struct Security {
    keys: HmacKeys,
    boundary: Boundary,
    pub(crate) shared_hosts: SharedHostTable,
}

/// Commands.
impl Security {
    /// The SIDs, Proxy Addresses and loopback of the node must lie in its domain: a SID outside the blocks would be
    /// open to hosts, and a node outside the infrastructure would be taken for a host.
    pub(crate) fn set_domain(
        &mut self,
        domain: Domain,
        config: &NodeConfig,
        tables: &Tables,
        groups: &Groups,
    ) -> Result<(), ConfigError> {
        if !covers(&domain.infrastructure, Prefix::host(config.loopback)) {
            return Err(ConfigError::LoopbackOutsideDomain(config.loopback));
        }
        tables.sids().iter().try_for_each(|sid| sid_in(&domain, sid.prefix))?;
        groups.entries().try_for_each(|entry| proxy_in(&domain, entry))?;
        groups.learnt_proxies().iter().try_for_each(|proxies| learnt_in(&domain, *proxies))?;
        for (port, sources) in self.boundary.sources() {
            sources.iter().try_for_each(|source| source_outside(&domain, port, *source))?;
        }
        self.boundary.set_domain(Some(domain));
        Ok(())
    }

    pub(crate) fn remove_domain(&mut self) {
        self.boundary.set_domain(None);
    }

    /// Makes a port a border of the domain.
    pub(crate) fn set_border(&mut self, port: PortId, sources: &[Prefix]) -> Result<(), ConfigError> {
        if let Some(domain) = self.boundary.domain() {
            sources.iter().try_for_each(|source| source_outside(domain, port, *source))?;
        }
        self.boundary.set_border(port, Some(sources));
        Ok(())
    }

    pub(crate) fn remove_border(&mut self, port: PortId) {
        self.boundary.set_border(port, None);
    }

    pub(crate) fn add_key(&mut self, key_id: u32, key: HmacKey) {
        self.keys.insert(key_id, key);
    }

    pub(crate) fn remove_key(&mut self, key_id: u32) -> Result<(), ConfigError> {
        if self.keys.remove(key_id) { Ok(()) } else { Err(ConfigError::UnknownHmacKey(key_id)) }
    }

    pub(crate) fn key(&self, key_id: u32) -> Option<&HmacKey> {
        self.keys.get(key_id)
    }

    pub(crate) fn has_domain(&self) -> bool {
        self.boundary.domain().is_some()
    }

    /// The sources whose packets may go to a SID; `None`: any.
    pub(crate) fn sid_sources(&self) -> Option<&[Prefix]> {
        self.boundary.domain().map(|domain| domain.infrastructure.as_slice())
    }

    pub(crate) fn check_sid_in_domain(&self, sid: Prefix) -> Result<(), ConfigError> {
        self.boundary.domain().map_or(Ok(()), |domain| sid_in(domain, sid))
    }

    pub(crate) fn check_proxy_in_domain(&self, entry: &GroupEntry) -> Result<(), ConfigError> {
        self.boundary.domain().map_or(Ok(()), |domain| proxy_in(domain, entry))
    }

    pub(crate) fn check_learnt_in_domain(&self, proxies: Prefix) -> Result<(), ConfigError> {
        self.boundary.domain().map_or(Ok(()), |domain| learnt_in(domain, proxies))
    }
}

/// Checks of packets.
impl Security {
    #[inline]
    pub(crate) fn is_border(&self, port: PortId) -> bool {
        self.boundary.is_border(port)
    }

    /// Removes the frames from a batch that may not come in by a border port. Checked ahead of forwarding, so that
    /// packets of other ports pay nothing for it.
    #[inline(never)]
    pub(crate) fn filter(
        &self,
        port: PortId,
        frames: &mut Vec<Frame>,
        pool: &mut Pool,
        ports: &mut Ports,
        fast_cnp: &FastCnp,
        config: &NodeConfig,
    ) {
        let mut kept = 0;
        for index in 0..frames.len() {
            match self.ingress_check(port, frames[index].head(pool), fast_cnp, config) {
                Ok(()) => {
                    if kept < index {
                        frames.swap(kept, index);
                    }
                    kept += 1;
                }
                Err(reason) => {
                    let len = frames[index].len();
                    ports.count_received(port, len);
                    ports.count_drop(Some(port), reason);
                }
            }
        }
        frames.drain(kept..).for_each(|frame| frame.release(pool));
    }

    /// Whether a frame may come in by a border port. A frame that is not an IPv6 packet for the port is dropped later,
    /// under its own reason.
    fn ingress_check(
        &self,
        port: PortId,
        head: &[u8],
        fast_cnp: &FastCnp,
        config: &NodeConfig,
    ) -> Result<(), DropReason> {
        let Some((headers, of_port)) = head.first_chunk::<AFTER_IPV6>().zip(config.ports.get(port.index())) else {
            return Ok(());
        };
        let is_for_port = headers[0] & 1 != 0 || headers[..6] == of_port.mac.0;
        let is_ipv6 = headers[12..14] == EtherType::IPV6.0.to_be_bytes() && headers[IPV6] >> 4 == 6;
        if !is_for_port || !is_ipv6 {
            return Ok(());
        }
        self.boundary.enter(port, headers)?;
        if self.has_domain() { fast_cnp.ingress_check(head, config.fast_cnp_types) } else { Ok(()) }
    }

    /// Whether an IPv4 packet of a source, an IPv4-mapped address, may come in by a port.
    #[cold]
    pub(crate) fn admit_ipv4(&self, port: PortId, source: &[u8; 16]) -> Result<(), DropReason> {
        self.boundary.enter_ipv4(port, source)
    }

    /// Whether a packet may go out by a border port. `by_end_e`: it was sent by END.E, and may be a Fast CNP.
    #[cold]
    pub(crate) fn egress_check(
        &self,
        head: &[u8],
        by_end_e: bool,
        fast_cnp: &FastCnp,
        config: &NodeConfig,
    ) -> Result<(), DropReason> {
        self.boundary.leave(head)?;
        if by_end_e || !self.has_domain() { Ok(()) } else { fast_cnp.egress_check(head, config.fast_cnp_types) }
    }

    /// Whether the ingress port leads to the sender (D14). If the route to the sender names no port, any port
    /// inside will do.
    pub(crate) fn may_come_from(&self, context: &PacketContext, sender: &[u8; 16], tables: &Tables) -> bool {
        let is_border = || context.port.is_some_and(|port| self.boundary.is_border(port));
        tables.is_at(sender, context.port).unwrap_or_else(|| !is_border())
    }

    /// Where a packet to a Proxy Address has come from, if its sender is a shared host (D281).
    #[inline]
    pub(crate) fn arrival(&self, context: &PacketContext, head: &[u8], tables: &Tables) -> Option<Arrival> {
        if self.shared_hosts.is_empty() {
            return None;
        }
        let is_at_host = |sender: &[u8; 16]| tables.is_at(sender, context.port) == Some(true);
        self.shared_hosts.arrival(head, context.outer_source, is_at_host)
    }

    /// Whether packets to SIDs are checked before the SID processes them.
    #[inline]
    pub(crate) fn guards_sids(&self, config: &NodeConfig) -> bool {
        config.hmac != HmacPolicy::Ignored || self.has_domain()
    }

    /// Whether a packet may go to a SID of the node: by its source address, and by the HMAC of its SRH if the node
    /// requires one. End.MT verifies the HMAC itself, and replication leaves it to the nodes below.
    #[cold]
    pub(crate) fn guard_sid(
        &self,
        sid: &Sid,
        source: &[u8; 16],
        head: &[u8],
        config: &NodeConfig,
    ) -> Result<(), Outcome> {
        self.boundary.admits_to_sid(source)?;
        if config.hmac == HmacPolicy::Ignored {
            return Ok(());
        }
        match sid.behavior {
            SidBehavior::End(_)
            | SidBehavior::EndX(..)
            | SidBehavior::EndDt6(_)
            | SidBehavior::EndDt4(_)
            | SidBehavior::EndDt46(_)
            | SidBehavior::EndDx4 { .. }
            | SidBehavior::EndDx6 { .. }
            | SidBehavior::EndDx2(_)
            | SidBehavior::EndB6Encaps { .. }
            | SidBehavior::EndC
            | SidBehavior::EndE(_) => self.verify_srh(head, config),
            SidBehavior::EndMt { .. } | SidBehavior::EndReplicate(_) => Ok(()),
        }
    }

    fn verify_srh(&self, head: &[u8], config: &NodeConfig) -> Result<(), Outcome> {
        let outer = ipv6(head)?;
        let place = Place::first(outer).behind_options(head)?;
        if place.header != NextHeader::ROUTING {
            // Without a domain it may be from anywhere (D130).
            let needs_none = self.has_domain() || config.hmac == HmacPolicy::IfPresent;
            return if needs_none { Ok(()) } else { Err(DropReason::HmacMissing.into()) };
        }
        let srh = place.srh(head).map_err(|error| srh_drop(error, head))?;
        let verified = self.keys.verify(outer.source_octets(), outer.destination_octets(), &srh, config.tlv_types);
        match verified {
            Ok(_) => Ok(()),
            Err(HmacError { reason: DropReason::HmacMissing, .. }) if config.hmac == HmacPolicy::IfPresent => Ok(()),
            // RFC 8754 section 2.1: a TLV reaches beyond the SRH, whose Hdr Ext Len is reported.
            Err(HmacError { reason: reason @ DropReason::MalformedTlv, .. }) => {
                Err(Outcome::Report(reason, erroneous(place.offset + 1)))
            }
            // RFC 8754 section 2.1.2.1: so is an HMAC that is not valid.
            Err(HmacError { reason, tlv: Some(tlv) }) => {
                let tlvs = place.behind_srh(srh.header).offset - srh.tlvs.len();
                Err(Outcome::Report(reason, erroneous(tlvs + tlv)))
            }
            Err(HmacError { reason, tlv: None }) => Err(reason.into()),
        }
    }

    pub(crate) fn keys(&self) -> &HmacKeys {
        &self.keys
    }
}

/// The error that points at an octet of the frame.
fn erroneous(offset: usize) -> Icmpv6Error {
    Icmpv6Error::ErroneousField((offset - IPV6) as u32)
}

fn sid_in(domain: &Domain, sid: Prefix) -> Result<(), ConfigError> {
    if covers(&domain.sids, sid) { Ok(()) } else { Err(ConfigError::SidOutsideDomain(sid)) }
}

fn proxy_in(domain: &Domain, entry: &GroupEntry) -> Result<(), ConfigError> {
    let (proxy, group) = (entry.proxy, entry.id.0);
    let is_inside = covers(&domain.proxies, Prefix::host(proxy));
    if is_inside { Ok(()) } else { Err(ConfigError::ProxyOutsideDomain { proxy, group }) }
}

fn learnt_in(domain: &Domain, proxies: Prefix) -> Result<(), ConfigError> {
    if covers(&domain.proxies, proxies) { Ok(()) } else { Err(LearningError::OutsideDomain(proxies).into()) }
}

fn source_outside(domain: &Domain, port: PortId, sources: Prefix) -> Result<(), ConfigError> {
    match domain.overlap(sources) {
        Some(of_domain) => Err(ConfigError::SourcesOfDomain { port: port.0, sources, of_domain }),
        None => Ok(()),
    }
}
