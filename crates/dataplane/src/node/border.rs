//! Telling a node its boundary, and asking it: who may come in, who may go to a SID (RFC 8754 section 5.1, BCP 38).

use super::Node;
use crate::border::{Domain, covers};
use crate::config::{ConfigError, SidBehavior};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6, Place, ipv6, srh_drop};
use crate::learning::LearningError;
use srdma_frame::{Frame, Pool, PortId};
use srdma_group::GroupEntry;
use srdma_wire::{EtherType, NextHeader, Prefix};

impl Node {
    /// Whether SIDs are open to anybody: the node has some, and was told no domain.
    pub fn has_open_sids(&self) -> bool {
        !self.sids.is_empty() && self.boundary.domain().is_none()
    }

    /// What the node has must lie in its domain: a SID outside the blocks would be open to hosts, and a node outside
    /// the infrastructure would be taken for one.
    pub(super) fn set_domain(&mut self, domain: Domain) -> Result<(), ConfigError> {
        let loopback = self.config.loopback;
        if !covers(&domain.infrastructure, Prefix::host(loopback)) {
            return Err(ConfigError::LoopbackOutsideDomain(loopback));
        }
        self.sids.iter().try_for_each(|sid| sid_in(&domain, sid.prefix))?;
        self.groups.iter().flatten().try_for_each(|group| proxy_in(&domain, &group.entry))?;
        let learnt = self.learner.iter().flat_map(|learner| &learner.settings.proxies);
        learnt.copied().try_for_each(|proxies| learnt_in(&domain, proxies))?;
        for (port, sources) in self.boundary.sources() {
            sources.iter().try_for_each(|source| source_outside(&domain, port, *source))?;
        }
        self.put_domain(Some(domain));
        Ok(())
    }

    pub(super) fn remove_domain(&mut self) -> Result<(), ConfigError> {
        self.put_domain(None);
        Ok(())
    }

    fn put_domain(&mut self, domain: Option<Domain>) {
        self.guards_sids = self.config.require_hmac || domain.is_some();
        self.boundary.set_domain(domain);
    }

    pub(super) fn set_border(&mut self, port: PortId, sources: &[Prefix]) -> Result<(), ConfigError> {
        self.check_port(port)?;
        if let Some(domain) = self.boundary.domain() {
            sources.iter().try_for_each(|source| source_outside(domain, port, *source))?;
        }
        self.put_border(port, Some(sources));
        Ok(())
    }

    pub(super) fn remove_border(&mut self, port: PortId) -> Result<(), ConfigError> {
        self.check_port(port)?;
        self.put_border(port, None);
        Ok(())
    }

    fn put_border(&mut self, port: PortId, sources: Option<&[Prefix]>) {
        self.boundary.set_border(port, sources);
        for adjacency in self.adjacencies.values_mut().filter(|adjacency| adjacency.port == port) {
            adjacency.is_border = sources.is_some();
        }
    }

    pub(super) fn check_sid_in_domain(&self, sid: Prefix) -> Result<(), ConfigError> {
        self.boundary.domain().map_or(Ok(()), |domain| sid_in(domain, sid))
    }

    pub(super) fn check_proxy_in_domain(&self, entry: &GroupEntry) -> Result<(), ConfigError> {
        self.boundary.domain().map_or(Ok(()), |domain| proxy_in(domain, entry))
    }

    pub(super) fn check_learnt_in_domain(&self, proxies: Prefix) -> Result<(), ConfigError> {
        self.boundary.domain().map_or(Ok(()), |domain| learnt_in(domain, proxies))
    }

    /// Takes out of a batch what may not come in by a border port. That is done ahead, so that packets of other ports
    /// pay nothing for it.
    #[inline(never)]
    pub(super) fn keep_out(&mut self, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        let mut kept = 0;
        for index in 0..frames.len() {
            match self.enter(port, frames[index].head(pool)) {
                Ok(()) => {
                    if kept < index {
                        frames.swap(kept, index);
                    }
                    kept += 1;
                }
                Err(reason) => {
                    let len = frames[index].len();
                    if let Some(counters) = self.port_counters.get_mut(port.index()) {
                        counters.received.count(len);
                        counters.drops.count(reason);
                    }
                }
            }
        }
        frames.drain(kept..).for_each(|frame| frame.release(pool));
    }

    /// Whether a frame may come in by a border port. What is no IPv6 packet for the port is dropped behind this, under
    /// its own name.
    fn enter(&self, port: PortId, head: &[u8]) -> Result<(), DropReason> {
        let Some((headers, config)) = head.first_chunk::<AFTER_IPV6>().zip(self.config.ports.get(port.index())) else {
            return Ok(());
        };
        let is_for_port = headers[0] & 1 != 0 || headers[..6] == config.mac.0;
        let is_ipv6 = headers[12..14] == EtherType::IPV6.0.to_be_bytes() && headers[IPV6] >> 4 == 6;
        if !is_for_port || !is_ipv6 {
            return Ok(());
        }
        self.boundary.enter(port, headers)?;
        self.fast_cnp_enters(head)
    }

    /// Whether a packet may go to a SID of the node: where it comes from, and where there is an SRH, that its HMAC is
    /// valid, if the node demands one. End.MT sees to the HMAC itself, and replication leaves it to those below.
    #[cold]
    pub(super) fn guard_sid(&self, sid: u32, source: &[u8; 16], head: &[u8]) -> Result<(), DropReason> {
        self.boundary.admits_to_sid(source)?;
        if self.config.require_hmac { self.verify_srh(sid, head) } else { Ok(()) }
    }

    #[cold]
    fn verify_srh(&self, sid: u32, head: &[u8]) -> Result<(), DropReason> {
        match self.sids[sid as usize].behavior {
            SidBehavior::End(_)
            | SidBehavior::EndX(..)
            | SidBehavior::EndDt6(_)
            | SidBehavior::EndC
            | SidBehavior::EndE(_) => {}
            SidBehavior::EndMt { .. } | SidBehavior::EndReplicate(_) => return Ok(()),
        }
        let outer = ipv6(head)?;
        let place = Place::first(outer).behind_options(head)?;
        if place.header != NextHeader::ROUTING {
            return Ok(());
        }
        let srh = place.srh(head).map_err(srh_drop)?;
        let (source, destination) = (outer.source_octets(), outer.destination_octets());
        self.hmac_keys.verify(source, destination, &srh, self.config.tlv_types).map(drop)
    }
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
