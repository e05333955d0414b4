//! A sender's state of the links on its path, and its comparison with the next trace (MeasureInflight of the
//! paper's algorithm 1).

use srdma_wire::Instant;
use srdma_wire::ioam::{LinkLoad, NodeData, Trace};

/// Links remembered. A trace that fits into a Fast CNP has at most nine; paths change.
const MAX_LINKS: usize = 16;

/// The fraction of a timestamp begins again after so many nanoseconds (PTP, RFC 9197 section 5.1).
const FRACTION_MODULUS: u32 = 1_000_000_000;

/// Two samples of a link may be half of that apart. A longer time cannot be distinguished from an older sample.
const MAX_INTERVAL_NS: u32 = FRACTION_MODULUS / 2;

/// The last sample of a link.
#[derive(Clone, Copy, Debug)]
struct Link {
    node_id: u32,
    egress: Option<u16>,
    fraction_ns: u32,
    queue_octets: u32,
    load: LinkLoad,
    heard_at: Instant,
}

impl Link {
    /// The sample in a node's data; `None` when a field is missing, or makes no sense.
    fn from_node(now: Instant, node: &NodeData<'_>) -> Option<Self> {
        let load = LinkLoad::from_data(node.namespace_data_wide?);
        let fraction_ns = node.timestamp_fraction.filter(|fraction| *fraction < FRACTION_MODULUS)?;
        (load.rate_mbit_per_s > 0).then_some(Link {
            node_id: node.node_id?,
            egress: node.egress,
            fraction_ns,
            queue_octets: node.queue_depth?,
            load,
            heard_at: now,
        })
    }

    fn bits_per_ns(&self) -> f64 {
        f64::from(self.load.rate_mbit_per_s) / 1000.0
    }

    fn queueing_ns(&self) -> u64 {
        u64::from(self.queue_octets) * 8000 / u64::from(self.load.rate_mbit_per_s)
    }

    /// u' of algorithm 1: utilisation since an `earlier` statement.
    fn utilisation_since(&self, earlier: &Link, interval_ns: u32, base_rtt_ns: u64) -> f64 {
        let waits_bits = f64::from(self.queue_octets.min(earlier.queue_octets)) * 8.0;
        let sent_bits = self.load.octets_since(earlier.load) as f64 * 8.0;
        (waits_bits / base_rtt_ns as f64 + sent_bits / f64::from(interval_ns)) / self.bits_per_ns()
    }
}

/// The result of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// Utilisation of the fullest link, and over how many nanoseconds; `None` when no link was known.
    pub(super) fullest: Option<(f64, u64)>,
    /// Time in all queues.
    pub(super) queueing_ns: u64,
}

/// The links seen in traces.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    links: [Option<Link>; MAX_LINKS],
}

impl Links {
    /// Compares a trace with what is known, and remembers it.
    pub(super) fn measure(&mut self, now: Instant, trace: &Trace<'_>, base_rtt_ns: u64) -> Measured {
        let mut measured = Measured::default();
        for node in trace.nodes().flatten() {
            let Some(link) = Link::from_node(now, &node) else { continue };
            measured.queueing_ns = measured.queueing_ns.saturating_add(link.queueing_ns());
            let place = self.place_of(&link);
            let Some(earlier) = place.filter(|earlier| earlier.is_same(&link)) else {
                *place = Some(link);
                continue;
            };
            let interval_ns = (link.fraction_ns + FRACTION_MODULUS - earlier.fraction_ns) % FRACTION_MODULUS;
            if now.since(earlier.heard_at).as_nanos() > u128::from(MAX_INTERVAL_NS) {
                *place = Some(link);
            } else if interval_ns > 0 && interval_ns <= MAX_INTERVAL_NS {
                let utilisation = link.utilisation_since(&earlier, interval_ns, base_rtt_ns);
                if measured.fullest.is_none_or(|(most, _)| utilisation > most) {
                    measured.fullest = Some((utilisation, interval_ns.into()));
                }
                *place = Some(link);
            }
        }
        measured
    }

    /// The place of this link, or a free one, or the least recently updated.
    fn place_of(&mut self, link: &Link) -> &mut Option<Link> {
        let known = self.links.iter().position(|known| known.is_some_and(|known| known.is_same(link)));
        let place = known.unwrap_or_else(|| {
            let heard_at = |place: &usize| self.links[*place].map(|link| link.heard_at);
            (0..MAX_LINKS).min_by_key(heard_at).unwrap_or(0)
        });
        &mut self.links[place]
    }
}

impl Link {
    fn is_same(&self, other: &Link) -> bool {
        (self.node_id, self.egress) == (other.node_id, other.egress)
    }
}
