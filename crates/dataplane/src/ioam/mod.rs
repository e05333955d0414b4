//! IOAM traces (RFC 9197): the data that a node writes, and to which traces.

mod links;
mod traces;

pub(crate) use links::sample_of;
pub(crate) use traces::{IoamTraces, MAX_TRACED_HEADER};

use srdma_frame::PortId;
use srdma_wire::Instant;
use srdma_wire::ioam::{Filled, LinkLoad, NodeData, TraceError};
use srdma_wire::units::NS_PER_S;
use std::time::Duration;

/// The highest node id of 24 bits; all ones are no id.
const MOST_NODE_ID: u32 = 0xFF_FFFE;

/// The highest node id of 56 bits.
const MOST_NODE_ID_WIDE: u64 = (1 << 56) - 2;

/// Data that a node writes to IOAM traces. A field that is `None` is written as all ones: not available.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoamConfig {
    /// Node id of 24 bits.
    pub node_id: Option<u32>,
    /// Node id of 56 bits.
    pub node_id_wide: Option<u64>,
    /// The namespaces that the node is part of. It leaves traces of others alone.
    pub namespaces: Vec<IoamNamespace>,
    /// Trace data of each port, for the ports at which traces are filled.
    pub interfaces: Vec<IoamInterface>,
    /// Unit of the fraction of timestamps.
    pub timestamps: TimestampFormat,
    /// Whether the octets queued in the whole node are reported as buffer occupancy.
    pub tells_buffer_occupancy: bool,
    /// Interval in which traces of groups go upstream (D242); `None`: never. Needs a namespace with
    /// [`WideData::LinkLoad`].
    pub group_interval: Option<Duration>,
}

/// A namespace of IOAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoamNamespace {
    /// Namespace-ID.
    pub id: u16,
    /// The 32 bits of data that it defines.
    pub data: Option<u32>,
    /// The 64 bits of data that it defines.
    pub data_wide: Option<WideData>,
    /// Schema ID of 24 bits, and opaque state snapshot of at most 1,020 octets.
    pub opaque: Option<(u32, Vec<u8>)>,
}

/// The 64 bits of data that a namespace defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideData {
    /// Always these.
    Fixed(u64),
    /// The [`LinkLoad`] of the port that the packet leaves by, this packet counted.
    LinkLoad,
}

/// Trace data of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoamInterface {
    /// The port.
    pub port: PortId,
    /// Its id of 16 bits.
    pub id: Option<u16>,
    /// Its id of 32 bits.
    pub id_wide: Option<u32>,
    /// Whether traces of packets that leave here are filled.
    pub fills: bool,
}

/// Unit of the fraction of a timestamp (RFC 9197 section 5). Seconds count from the origin of the node's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampFormat {
    /// Microseconds, as POSIX time and the Linux kernel have it.
    #[default]
    Posix,
    /// Nanoseconds, as PTP has it.
    Ptp,
}

/// Why a node cannot write to traces so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IoamError {
    /// The id does not fit its field.
    #[error("node id {0:#x} is higher than 0xfffffe")]
    NodeId(u32),
    /// The id does not fit its field.
    #[error("wide node id {0:#x} is higher than 0xfffffffffffffe")]
    NodeIdWide(u64),
    /// Two namespaces of one id.
    #[error("namespace {0} is given twice")]
    NamespaceTwice(u16),
    /// A snapshot that no trace can hold.
    #[error("namespace {namespace}: opaque state of {octets} octets, at most 1020 are possible")]
    Opaque {
        /// The namespace.
        namespace: u16,
        /// Octets of its snapshot.
        octets: usize,
    },
    /// A port that is given twice or does not exist.
    #[error("interface of port {0} is given twice, or there is no such port")]
    Interface(u16),
}

/// Counters of traces by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoamCounters {
    /// Traces that the node wrote to.
    pub written: u64,
    /// Traces that had no room: their flag O is set.
    pub overflown: u64,
    /// Traces that contradict themselves, and were left alone.
    pub malformed: u64,
}

impl IoamCounters {
    fn count(&mut self, outcome: Result<Filled, TraceError>) {
        match outcome {
            Ok(Filled::Written) => self.written += 1,
            Ok(Filled::Overflow) => self.overflown += 1,
            Err(_) => self.malformed += 1,
        }
    }
}

/// Times, ports and queue of a packet at this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit {
    pub(crate) now: Instant,
    pub(crate) entered: Instant,
    pub(crate) hop_limit: u8,
    pub(crate) ingress: Option<PortId>,
    pub(crate) egress: PortId,
    pub(crate) class_octets: usize,
    pub(crate) buffered_octets: usize,
    pub(crate) load: LinkLoad,
}

/// A configuration made ready, and what came of it.
#[derive(Debug)]
pub(crate) struct Ioam {
    config: IoamConfig,
    /// By port.
    interfaces: Vec<Option<IoamInterface>>,
    pub(crate) counters: IoamCounters,
}

impl Ioam {
    /// Checks and takes up a configuration for so many ports; counts on from `counters`.
    pub(crate) fn new(config: IoamConfig, ports: usize, counters: IoamCounters) -> Result<Self, IoamError> {
        if let Some(id) = config.node_id.filter(|id| *id > MOST_NODE_ID) {
            return Err(IoamError::NodeId(id));
        }
        if let Some(id) = config.node_id_wide.filter(|id| *id > MOST_NODE_ID_WIDE) {
            return Err(IoamError::NodeIdWide(id));
        }
        for (index, IoamNamespace { id, opaque, .. }) in config.namespaces.iter().enumerate() {
            if config.namespaces[..index].iter().any(|other| other.id == *id) {
                return Err(IoamError::NamespaceTwice(*id));
            }
            match opaque {
                Some((_, octets)) if octets.len() > 1020 => {
                    return Err(IoamError::Opaque { namespace: *id, octets: octets.len() });
                }
                Some(_) | None => {}
            }
        }
        let mut interfaces = vec![None; ports];
        for interface in &config.interfaces {
            match interfaces.get_mut(interface.port.index()) {
                Some(place @ None) => *place = Some(*interface),
                Some(Some(_)) | None => return Err(IoamError::Interface(interface.port.0)),
            }
        }
        Ok(Ioam { config, interfaces, counters })
    }

    /// Whether traces of packets that leave by a port are filled.
    #[inline]
    pub(crate) fn fills_at(&self, port: PortId) -> bool {
        self.interface(port).is_some_and(|interface| interface.fills)
    }

    fn interface(&self, port: PortId) -> Option<&IoamInterface> {
        self.interfaces.get(port.index())?.as_ref()
    }

    /// Fills the traces in the octets of a Hop-by-Hop Options header.
    pub(crate) fn fill(&mut self, hop_by_hop_header: &mut [u8], transit: Transit) {
        let mut counters = self.counters;
        let node_data = |namespace| self.node_data(namespace, transit);
        srdma_wire::ioam::fill(hop_by_hop_header, node_data, |outcome| counters.count(outcome));
        self.counters = counters;
    }

    fn node_data(&self, namespace: u16, transit: Transit) -> Option<NodeData<'_>> {
        let namespace = self.config.namespaces.iter().find(|known| known.id == namespace)?;
        let ingress = transit.ingress.and_then(|port| self.interface(port));
        let egress = self.interface(transit.egress);
        let at_most = |octets: usize| Some(u32::try_from(octets).unwrap_or(u32::MAX - 1));
        let (seconds, nanoseconds) = (transit.now.as_ns() / NS_PER_S, transit.now.as_ns() % NS_PER_S);
        let fraction = match self.config.timestamps {
            TimestampFormat::Posix => nanoseconds / 1_000,
            TimestampFormat::Ptp => nanoseconds,
        };
        Some(NodeData {
            hop_limit: Some(transit.hop_limit),
            node_id: self.config.node_id,
            ingress: ingress.and_then(|interface| interface.id),
            egress: egress.and_then(|interface| interface.id),
            timestamp_seconds: Some(seconds as u32),
            timestamp_fraction: Some(fraction as u32),
            transit_delay: Some(transit_delay(transit)),
            namespace_data: namespace.data,
            queue_depth: at_most(transit.class_octets),
            checksum_complement: None,
            node_id_wide: self.config.node_id_wide,
            ingress_wide: ingress.and_then(|interface| interface.id_wide),
            egress_wide: egress.and_then(|interface| interface.id_wide),
            namespace_data_wide: namespace.data_wide.map(|data| match data {
                WideData::Fixed(data) => data,
                WideData::LinkLoad => transit.load.to_data(),
            }),
            buffer_occupancy: at_most(transit.buffered_octets).filter(|_| self.config.tells_buffer_occupancy),
            opaque: namespace.opaque.as_ref().map(|(schema_id, octets)| (*schema_id, octets.as_slice())),
        })
    }
}

/// Nanoseconds in 31 bits; the highest bit marks an overflow (RFC 9197 section 4.4.2.5).
fn transit_delay(transit: Transit) -> u32 {
    const OVERFLOW: u64 = 1 << 31;
    let ns = transit.now.as_ns().saturating_sub(transit.entered.as_ns());
    if ns < OVERFLOW { ns as u32 } else { OVERFLOW as u32 }
}
