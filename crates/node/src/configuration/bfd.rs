//! `[[bfd]]`: sessions with neighbours and with nodes behind routers.

use super::ports::next_hop;
use super::{Draft, PortInterface, Purpose};
use srdma_bfd::{Config, LEAST_INTERVAL_US};
use srdma_dataplane::{BfdPeer, BfdSession, NodeConfig};
use srdma_frame::PortId;
use srdma_node_spec::Entries;
use srdma_node_spec::file::{BfdSection, Located, NodeFile};
use srdma_toml_error::Problem;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Longest interval.
const MOST: Duration = Duration::from_secs(60);

/// Adds the sessions. One whose port has no address yet waits for it: the file is read again when the kernel reports
/// one.
pub(super) fn add(
    file: &NodeFile,
    config: &NodeConfig,
    interfaces: &[PortInterface],
    purpose: Purpose<'_>,
    draft: &mut Draft,
) -> Result<(), Problem> {
    for section in &file.bfd {
        let (at, section) = (section.span().start, section.get_ref());
        let (peer_at, peer) = peer(at, section, config)?;
        if draft.entries.bfd.contains_key(&peer) {
            return Err(Problem::new(peer_at, format!("there is a BFD session with {} already", peer.address)));
        }
        let local = match (&section.local, peer.port) {
            (Some(local), _) => local.value.0,
            (None, None) => config.loopback,
            (None, Some(port)) => match own_address(config, port, peer.address) {
                Some(local) => local,
                None if purpose.learns() && interfaces[port.index()].addresses.is_none() => continue,
                None => {
                    let name = &config.ports[port.index()].name;
                    let text = format!("port {name} has no address to send to {} from: expected `local`", peer.address);
                    return Err(Problem::new(peer_at, text));
                }
            },
        };
        let session = BfdSession { peer, local, config: intervals(at, section)?, is_enabled: section.enabled };
        draft.add(peer_at, Entries { bfd: [(peer, session)].into(), ..Entries::default() })?;
    }
    Ok(())
}

fn peer(at: usize, section: &BfdSection, config: &NodeConfig) -> Result<(usize, BfdPeer), Problem> {
    match (&section.neighbour, &section.peer) {
        (Some(neighbour), None) if neighbour.value.address.to_ipv4_mapped().is_some() => {
            Err(Problem::new(neighbour.at, "a BFD session has an IPv6 address"))
        }
        (Some(neighbour), None) => {
            let hop = next_hop(config, neighbour.at, neighbour.value.address, &neighbour.value.port)?;
            Ok((neighbour.at, BfdPeer { port: Some(hop.port), address: hop.address }))
        }
        (None, Some(peer)) if peer.value.0.is_unicast_link_local() => {
            let text = format!("peer {} is link-local: expected neighbour = \"{}%PORT\"", peer.value.0, peer.value.0);
            Err(Problem::new(peer.at, text))
        }
        (None, Some(peer)) => Ok((peer.at, BfdPeer { port: None, address: peer.value.0 })),
        (Some(_), Some(_)) | (None, None) => {
            Err(Problem::new(at, "expected exactly one of neighbour (one hop) and peer (any number of hops)"))
        }
    }
}

/// An address of a port for packets to a neighbour: a link-local one for a link-local one.
fn own_address(config: &NodeConfig, port: PortId, neighbour: Ipv6Addr) -> Option<Ipv6Addr> {
    let is_local = neighbour.is_unicast_link_local();
    let addresses = &config.ports.get(port.index())?.addresses;
    let mut addresses = addresses.iter().copied().filter(|address| address.to_ipv4_mapped().is_none());
    addresses.find(|address| address.is_unicast_link_local() == is_local)
}

fn intervals(at: usize, section: &BfdSection) -> Result<Config, Problem> {
    let default = Config::default();
    let least = Duration::from_micros(LEAST_INTERVAL_US.into());
    let interval_us = |given: &Option<Located<Duration>>, default: u32| match given {
        None => Ok(default),
        Some(given) if (least..=MOST).contains(&given.value) => Ok(given.value.as_micros() as u32),
        Some(given) => Err(Problem::new(given.at, "expected a time from 10ms to 60s")),
    };
    let desired_min_tx_us = interval_us(&section.desired_min_tx, default.desired_min_tx_us())?;
    let required_min_rx_us = interval_us(&section.required_min_rx, default.required_min_rx_us())?;
    let detect_mult = section.detect_mult.as_ref().map_or(default.detect_mult().get(), |mult| mult.value.get() as u8);
    Config::new(desired_min_tx_us, required_min_rx_us, detect_mult).map_err(|error| Problem::new(at, error.to_string()))
}
