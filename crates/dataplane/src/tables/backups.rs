//! Backup routes: where packets go while the neighbour that their routes lead to is avoided: its BFD session or the
//! link of its port is down (D266, D285).
//!
//! ```text
//!   route ─▶ adjacency ── is avoided ─▶ the backups of the adjacency, by the destination ─▶ headers, another adjacency
//! ```
//!
//! They are looked up by the neighbour that is lost. So one write, that the adjacency is avoided, changes all routes.

use super::Tables;
use crate::config::{BackupRoute, ConfigError, NextHop};
use crate::counters::Traffic;
use crate::drop::DropReason;
use crate::encaps::{ENCAPS_HOP_LIMIT, Encaps, EncapsMode};
use crate::headers::{IPV6, ipv6};
use srdma_fib::Fib;
use srdma_frame::{Frame, Pool};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Offset of the hop limit behind the Ethernet header.
const HOP_LIMIT: usize = IPV6 + 7;

/// The backups of each adjacency that has some.
#[derive(Debug, Default)]
pub(super) struct Backups(BTreeMap<u32, OfAdjacency>);

#[derive(Debug)]
struct OfAdjacency {
    by_prefix: Fib<u32>,
    ways: Vec<Way>,
    traffic: Traffic,
}

/// A way around a neighbour.
#[derive(Clone, Copy, Debug)]
struct Way {
    adjacency: u32,
    /// The outer headers; `None`: packets stay as they are.
    encaps: Option<u32>,
}

/// The way that a packet has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detour {
    pub(crate) adjacency: u32,
    /// Octets of the outer headers.
    pub(crate) octets: usize,
}

impl Tables {
    /// Replaces the backups of a neighbour. `source` is that of outer headers.
    pub(crate) fn set_backups(
        &mut self,
        next_hop: NextHop,
        routes: &[BackupRoute],
        source: Ipv6Addr,
    ) -> Result<(), ConfigError> {
        let mut headers = Vec::new();
        for route in routes {
            self.check_port(route.next_hop.port)?;
            let mode = EncapsMode::Reduced;
            let encaps = (!route.segments.is_empty())
                .then(|| Encaps::new(source, &route.segments, mode, ENCAPS_HOP_LIMIT))
                .transpose();
            headers.push(encaps.map_err(|error| ConfigError::Encaps { prefix: route.prefix, error })?);
        }
        self.check_port(next_hop.port)?;
        let protected = self.hold_adjacency(next_hop);
        let mut of_adjacency =
            OfAdjacency { by_prefix: Fib::default(), ways: Vec::new(), traffic: self.backup_traffic(protected) };
        for (route, encaps) in routes.iter().zip(headers) {
            let adjacency = self.hold_adjacency(route.next_hop);
            let encaps = encaps.map(|encaps| self.encaps.hold(|known| *known == encaps, || encaps.clone()));
            of_adjacency.by_prefix.insert(route.prefix, of_adjacency.ways.len() as u32);
            of_adjacency.ways.push(Way { adjacency, encaps });
        }
        let before = self.backups.0.insert(protected, of_adjacency);
        self.release_backups(protected, before);
        Ok(())
    }

    pub(crate) fn remove_backups(&mut self, next_hop: NextHop) -> Result<(), ConfigError> {
        let NextHop { port, address } = next_hop;
        let octets = address.octets();
        let protected = self.adjacencies.find(|entry| entry.port == port && entry.address == octets);
        let before = protected.and_then(|protected| Some((protected, self.backups.0.remove(&protected)?)));
        let (protected, before) = before.ok_or(ConfigError::UnknownNeighbour { address, port: port.0 })?;
        self.release_backups(protected, Some(before));
        Ok(())
    }

    fn release_backups(&mut self, protected: u32, before: Option<OfAdjacency>) {
        let Some(before) = before else { return };
        self.adjacencies.release(protected);
        for way in before.ways {
            self.adjacencies.release(way.adjacency);
            if let Some(encaps) = way.encaps {
                self.encaps.release(encaps);
            }
        }
    }

    /// Packets that were sent by the backups of an adjacency.
    fn backup_traffic(&self, protected: u32) -> Traffic {
        self.backups.0.get(&protected).map(|backups| backups.traffic).unwrap_or_default()
    }

    /// Sends a packet to a neighbour that is avoided by another way, if there is one for its destination: its outer
    /// headers are pushed. Their hop limit is that of the packet, so that two nodes which avoid each other do not send
    /// it around for ever.
    #[cold]
    pub(crate) fn detour(
        &mut self,
        avoided: u32,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<Option<Detour>, DropReason> {
        let Some(backups) = self.backups.0.get_mut(&avoided) else { return Ok(None) };
        let Some(way) = backups.by_prefix.lookup(ipv6(frame.head(pool))?.destination_octets()) else { return Ok(None) };
        let Some(Way { adjacency, encaps }) = backups.ways.get(way as usize).copied() else { return Ok(None) };
        if self.adjacencies[adjacency as usize].is_avoided {
            return Ok(None);
        }
        backups.traffic.count(frame.len());
        let Some(encaps) = encaps else { return Ok(Some(Detour { adjacency, octets: 0 })) };
        let hop_limit = frame.head(pool).get(HOP_LIMIT).copied();
        let encaps = &self.encaps[encaps as usize];
        encaps.push(frame, pool)?;
        if let (Some(outer), Some(inner)) = (frame.head_mut(pool).get_mut(HOP_LIMIT), hop_limit) {
            *outer = inner;
        }
        Ok(Some(Detour { adjacency, octets: encaps.octets() }))
    }

    /// The neighbours that have backups, with the number of their prefixes and the packets that have taken them.
    pub(crate) fn backup_reports(&self) -> impl Iterator<Item = (NextHop, usize, Traffic)> {
        self.backups.0.iter().map(|(protected, backups)| {
            let adjacency = &self.adjacencies[*protected as usize];
            let next_hop = NextHop { port: adjacency.port, address: adjacency.address.into() };
            (next_hop, backups.by_prefix.len(), backups.traffic)
        })
    }
}
