//! Fetching ahead what forwarding will need.

use super::Node;
use super::state::Target;
use crate::entropy;
use crate::headers::{AFTER_IPV6, IPV6};
use srdma_frame::{Frame, Pool};

impl Node {
    /// Reads what it will take to forward frames: headers, routes, neighbours, all ports. So it comes into the caches
    /// side by side, where forwarding would wait for one piece after the other. It is worth it for callers with more
    /// nodes than stay in the caches until their turns come again, and changes nothing.
    pub fn fetch<'f>(&self, frames: impl Iterator<Item = &'f Frame>, pool: &Pool) {
        let sent: u64 = self.port_counters.iter().map(|counters| counters.sent.frames).sum();
        let ports = sent as usize + self.egress.fetch();
        std::hint::black_box(frames.fold(ports, |sum, frame| sum + self.fetch_route(frame.head(pool))));
    }

    /// Reads the route of a packet; the number means nothing.
    fn fetch_route(&self, head: &[u8]) -> usize {
        let Some(destination) = head.first_chunk::<AFTER_IPV6>().and_then(|headers| headers[IPV6 + 24..].first_chunk())
        else {
            return 0;
        };
        let adjacency = match self.main.lookup(destination) {
            Some(Target::Adjacency(adjacency)) => adjacency,
            Some(Target::Ecmp(set)) => self.ecmp[set as usize].choose(entropy::of_packet(head), self.ecmp_salt),
            Some(
                Target::Sid(_)
                | Target::Group(_)
                | Target::Encaps(_)
                | Target::Placed(_)
                | Target::Local
                | Target::Blackhole,
            )
            | None => {
                return 0;
            }
        };
        self.adjacencies[adjacency as usize].port.index()
    }
}
