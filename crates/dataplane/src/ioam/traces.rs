//! The IOAM traces of packets that leave: filled on leaving a class (RFC 9486 section 3).

use super::{Ioam, IoamConfig, IoamCounters, Transit};
use crate::admission;
use crate::config::{ConfigError, NodeConfig};
use crate::egress::{CongestionPoint, Departing, Egress, EgressConfig};
use crate::headers::{AFTER_IPV6, IPV6, ipv6};
use srdma_frame::{Pool, PortId};
use srdma_wire::ioam::{LinkLoad, Trace};
use srdma_wire::options::OptionsView;
use srdma_wire::units::MBIT_PER_S;
use srdma_wire::{Instant, NextHeader, View};

/// Octets of the longest options header whose trace a Fast CNP can carry, including padding and other options.
pub(crate) const MAX_TRACED_HEADER: usize = 512;

/// The rate of a port without a configured rate.
const RATE_BITS_PER_S: u64 = 100_000_000_000;

/// IOAM at the node, if it is on.
#[derive(Debug, Default)]
pub(crate) struct IoamTraces {
    pub(super) ioam: Option<Box<Ioam>>,
}

impl IoamTraces {
    pub(crate) fn set(
        &mut self,
        settings: IoamConfig,
        config: &NodeConfig,
        egress: &mut Egress,
    ) -> Result<(), ConfigError> {
        let ports = config.ports.len();
        let ioam = Ioam::new(settings, ports, self.counters()).map_err(ConfigError::Ioam)?;
        self.ioam = Some(Box::new(ioam));
        (0..ports).for_each(|port| self.prepare_port(PortId(port as u16), config, egress));
        Ok(())
    }

    pub(crate) fn is_on(&self) -> bool {
        self.ioam.is_some()
    }

    pub(crate) fn remove(&mut self) {
        self.ioam = None;
    }

    /// Gives a port classes where traces are filled, if it has none.
    pub(crate) fn prepare_port(&self, port: PortId, config: &NodeConfig, egress: &mut Egress) {
        let fills = self.ioam.as_ref().is_some_and(|ioam| ioam.fills_at(port));
        let config = &config.ports[port.index()];
        if fills && !egress.has_classes(port) && config.vlan.is_none() {
            let limit_octets = config.queue_limit_octets;
            egress.set_classes(port, EgressConfig::new(RATE_BITS_PER_S, limit_octets));
        }
    }

    pub(crate) fn counters(&self) -> IoamCounters {
        self.ioam.as_ref().map_or_else(IoamCounters::default, |ioam| ioam.counters)
    }

    /// Writes to the traces of a packet whose first extension header has some.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        now: Instant,
        port: PortId,
        departing: &mut Departing,
        egress: &Egress,
        pool: &mut Pool,
    ) {
        let Some(ioam) = self.ioam.as_deref_mut().filter(|ioam| ioam.fills_at(port)) else {
            return;
        };
        let head = departing.frame.head_mut(pool);
        // A frame that was cross-connected may be anything.
        if head.get(IPV6 + 6) != Some(&NextHeader::HOP_BY_HOP.0) || !admission::is_ipv6(head) {
            return;
        }
        let hop_limit = ipv6(head).map_or(0, |view| view.hop_limit);
        let Departing { ingress, entered, class_octets, .. } = *departing;
        let transit = transit(egress, port, PacketData { now, entered, hop_limit, ingress, class_octets });
        if let Some(hop_by_hop) = head.get_mut(AFTER_IPV6..) {
            ioam.fill(hop_by_hop, transit);
        }
    }

    /// The trace of a packet that meets congestion, as it would be if the packet left now: with this node's own data,
    /// if the node fills traces there. For the Fast CNP about it, whose receiver needs the data of the congested node
    /// most (FC-4-9). `buffer` is the memory for it.
    pub(crate) fn trace_with_own_data<'b>(
        &mut self,
        at: &CongestionPoint,
        head: &[u8],
        egress: &Egress,
        buffer: &'b mut [u8; MAX_TRACED_HEADER],
    ) -> Option<&'b [u8]> {
        let ioam = self.ioam.as_deref_mut().filter(|ioam| ioam.fills_at(at.port))?;
        let view = ipv6(head).ok().filter(|view| view.next_header() == NextHeader::HOP_BY_HOP)?;
        let header = head.get(AFTER_IPV6..)?;
        let header = header.get(..OptionsView::split(header).ok()?.0.total_len())?;
        let copy = buffer.get_mut(..header.len())?;
        copy.copy_from_slice(header);
        let CongestionPoint { now, ingress, port, class, .. } = *at;
        let class_octets = egress.class_octets(port, class).unwrap_or(0);
        let data = PacketData { now, entered: now, hop_limit: view.hop_limit, ingress, class_octets };
        ioam.fill(copy, transit(egress, port, data));
        Some(Trace::find(copy)?.ok()?.octets())
    }
}

/// The values of a [`Transit`] that differ between packets of a port.
struct PacketData {
    now: Instant,
    entered: Instant,
    hop_limit: u8,
    ingress: Option<PortId>,
    class_octets: usize,
}

fn transit(egress: &Egress, port: PortId, data: PacketData) -> Transit {
    let PacketData { now, entered, hop_limit, ingress, class_octets } = data;
    let rate_bits_per_s = egress.config(port).map_or(0, |config| config.rate_bits_per_s);
    Transit {
        now,
        entered,
        hop_limit,
        ingress,
        egress: port,
        class_octets,
        buffered_octets: egress.buffered_octets(),
        load: LinkLoad {
            rate_mbit_per_s: (rate_bits_per_s / MBIT_PER_S).min(u64::from(u32::MAX)) as u32,
            sent_octets: egress.sent_octets(port),
        },
    }
}
