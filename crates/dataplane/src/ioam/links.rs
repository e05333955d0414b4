//! Traces of groups: the node writes to them for links toward branches, as the reports of their loads pass upstream
//! (D242).

use super::{Ioam, IoamNamespace, IoamTraces, Transit, WideData};
use crate::egress::Egress;
use srdma_aggregation::{LinkMeasurement, LinkSample};
use srdma_frame::PortId;
use srdma_wire::fast_cnp::can_carry;
use srdma_wire::ioam::{LinkLoad, TraceHeader, TraceType, TraceView, fill_trace};
use srdma_wire::units::MBIT_PER_S;
use srdma_wire::{Instant, View};
use std::time::Duration;

/// Places of a trace: two samples of each of four links, which a Fast CNP can carry.
const SAMPLES: usize = 8;

/// Octets of such a trace, from its option's Reserved octet on.
pub(crate) const GROUP_TRACE_LEN: usize = TraceView::LEN + SAMPLES * TraceType::LINK_LOAD.node_len_words() * 4;

const _: () = assert!(can_carry(GROUP_TRACE_LEN));

/// Hop limit in the data: no packet has passed.
const HOP_LIMIT: u8 = 64;

impl IoamTraces {
    /// Interval of the traces of groups, if they are on.
    #[inline]
    pub(crate) fn group_interval(&self) -> Option<Duration> {
        self.ioam.as_ref()?.config.group_interval
    }

    /// A trace of one link.
    pub(crate) fn trace_of_link(
        &mut self,
        port: PortId,
        measurement: &LinkMeasurement,
    ) -> Option<[u8; GROUP_TRACE_LEN]> {
        let ioam = self.ioam.as_deref_mut()?;
        let of_loads = |namespace: &&IoamNamespace| namespace.data_wide == Some(WideData::LinkLoad);
        let namespace = ioam.config.namespaces.iter().find(of_loads)?.id;
        let mut trace = [0; GROUP_TRACE_LEN];
        *TraceView::split_mut(&mut trace).ok()?.0 =
            TraceHeader::for_nodes(namespace, TraceType::LINK_LOAD, SAMPLES)?.emit();
        ioam.add_link(port, measurement, &mut trace);
        Some(trace)
    }

    /// Adds a link to the trace of a path.
    pub(crate) fn add_link(&mut self, port: PortId, measurement: &LinkMeasurement, trace: &mut [u8]) {
        if let Some(ioam) = self.ioam.as_deref_mut() {
            ioam.add_link(port, measurement, trace);
        }
    }
}

impl Ioam {
    /// Both samples, so that the link's utilisation follows from this trace alone, whichever path the one before was
    /// of. What is written last is read first.
    fn add_link(&mut self, port: PortId, measurement: &LinkMeasurement, trace: &mut [u8]) {
        for sample in [Some(measurement.later), measurement.earlier].into_iter().flatten() {
            let outcome = fill_trace(trace, |namespace| self.node_data(namespace, transit_of(port, &sample)));
            match outcome.transpose() {
                Some(outcome) => self.counters.count(outcome),
                // A namespace that the node is not part of.
                None => return,
            }
        }
    }
}

/// Counters of a port as a link of a group; `None` for one without traffic classes, which does not count so.
pub(crate) fn sample_of(now: Instant, port: PortId, egress: &Egress) -> Option<LinkSample> {
    Some(LinkSample {
        at: now,
        sent_octets: egress.sent_octets(port),
        queued_octets: egress.waiting(port).octets,
        rate_bits_per_s: egress.config(port)?.rate_bits_per_s,
    })
}

fn transit_of(port: PortId, sample: &LinkSample) -> Transit {
    let queued_octets = sample.queued_octets as usize;
    Transit {
        now: sample.at,
        entered: sample.at,
        hop_limit: HOP_LIMIT,
        ingress: None,
        egress: port,
        class_octets: queued_octets,
        buffered_octets: queued_octets,
        load: LinkLoad {
            rate_mbit_per_s: (sample.rate_bits_per_s / MBIT_PER_S).min(u64::from(u32::MAX)) as u32,
            sent_octets: sample.sent_octets,
        },
    }
}
