//! IPv6 multicast: static routes, and edges that instantiate a group as their End.MT SID (MT-3-2, MT-5.2-2, D3).

use super::forward::decrement;
use super::{Arrival, Node};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6};
use srdma_frame::{Body, Frame, Pool};

impl Node {
    /// A packet to a multicast destination.
    pub(super) fn multicast(&mut self, mut arrival: Arrival, mut frame: Frame, pool: &mut Pool) {
        arrival.replicated = true;
        let Some(head) = frame.head(pool).first_chunk::<AFTER_IPV6>() else {
            return self.drop_frame(arrival, frame, pool, DropReason::Truncated);
        };
        let key = (
            *head[IPV6 + 8..].first_chunk().expect("an IPv6 header has 40 octets"),
            *head[IPV6 + 24..].first_chunk().expect("an IPv6 header has 40 octets"),
        );
        let Some(entry) = self.multicast_routes.get_mut(&key) else {
            return self.drop_frame(arrival, frame, pool, DropReason::NoMulticastRoute);
        };
        if entry.incoming.is_some() && entry.incoming != arrival.port {
            return self.drop_frame(arrival, frame, pool, DropReason::WrongIncomingPort);
        }
        let (end_mt, require_hmac, copies) = (entry.end_mt, entry.require_hmac, entry.adjacencies.len());
        if end_mt && copies > 0 {
            // End.MT edits the inner header, which the copies below share.
            match frame.duplicate(pool) {
                Some(own) => self.end_mt(arrival, own, pool, require_hmac),
                None => self.count_drop(arrival, DropReason::NoBuffer),
            }
        } else if end_mt {
            return self.end_mt(arrival, frame, pool, require_hmac);
        } else if copies == 0 {
            return self.drop_frame(arrival, frame, pool, DropReason::Blackhole);
        }
        match decrement(&mut frame, pool) {
            Ok(()) => {
                self.observe_tunnelled(arrival.now, &frame, pool);
                self.multicast_copies(arrival, &frame, pool, &key);
            }
            Err(reason) => self.count_drop(arrival, reason),
        }
        frame.release(pool);
    }

    fn multicast_copies(&mut self, arrival: Arrival, frame: &Frame, pool: &mut Pool, key: &([u8; 16], [u8; 16])) {
        let (Some(head), Some(body)) = (frame.head(pool).first_chunk(), Body::behind(frame, AFTER_IPV6)) else {
            return self.count_drop(arrival, DropReason::NoBuffer);
        };
        let head: [u8; AFTER_IPV6] = *head;
        let adjacencies = self.multicast_routes.get_mut(key).map(|entry| std::mem::take(&mut entry.adjacencies));
        let adjacencies = adjacencies.unwrap_or_default();
        body.share(adjacencies.len(), pool);
        for adjacency in &adjacencies {
            self.send_copy(&arrival, &head, body, Some(*adjacency), pool);
        }
        if let Some(entry) = self.multicast_routes.get_mut(key) {
            entry.adjacencies = adjacencies;
        }
    }
}
