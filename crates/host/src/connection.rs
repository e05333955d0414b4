//! A queue pair and its endpoint.

use crate::congestion::Congestion;
use srdma_rc::{ConfigError, Endpoint, EndpointConfig, Habits, Memory, QueuePairConfig};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;

/// Receives that are posted at once.
pub(crate) const RECEIVES: usize = 4096;

/// A queue pair toward its peer. The peer of a group is its Proxy Address and its Designated QPN (MT-5.1-1).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    pub address: Ipv6Addr,
    /// Queue pair of this host.
    pub qpn: Qpn,
    pub peer_address: Ipv6Addr,
    /// The peer's queue pair.
    pub peer_qpn: Qpn,
    /// The sender's first PSN (D28).
    pub psn: Psn,
    /// Payload of a full packet.
    pub path_mtu: PathMtu,
    /// Packets that may be outstanding.
    pub window: u32,
    /// Local ACK timeout t: 4.096 µs · 2^t.
    pub ack_timeout: u8,
    /// Maximum number of retransmissions of a packet without progress; 7 means unlimited.
    pub retries: u8,
}

impl Connection {
    /// An endpoint with this queue pair.
    ///
    /// # Errors
    ///
    /// If a value is outside its range.
    pub fn endpoint<M: Memory>(&self, congestion: &Congestion) -> Result<Endpoint<M>, ConfigError> {
        let mut endpoint = Endpoint::new(self.endpoint_config(congestion));
        endpoint.add_queue_pair(self.queue_pair(congestion))?;
        Ok(endpoint)
    }

    /// The endpoint alone, for one that gets its queue pair later.
    pub fn endpoint_config(&self, congestion: &Congestion) -> EndpointConfig {
        EndpointConfig {
            fast_cnp: congestion.fast_cnp.clone(),
            answers_trimmed: congestion.answers_trimmed,
            ..EndpointConfig::new(self.address)
        }
    }

    /// The queue pair alone.
    pub fn queue_pair(&self, congestion: &Congestion) -> QueuePairConfig {
        QueuePairConfig {
            sq_psn: self.psn,
            rq_psn: self.psn,
            path_mtu: self.path_mtu,
            udp_source_port: Some(ROCEV2_PORT),
            ack_timeout: self.ack_timeout,
            retry_count: self.retries,
            rnr_retry: self.retries,
            receive_queue_depth: RECEIVES,
            traffic_class: congestion.traffic_class(),
            rate: congestion.rate.clone(),
            trace: congestion.trace,
            cnp_interval_ns: congestion.cnp_interval_ns,
            trace_return_interval_ns: congestion.trace_return_interval_ns,
            detour_interval_ns: congestion.detour_interval_ns,
            habits: Habits {
                max_outstanding_psns: self.window,
                // Often enough that the window does not run empty while an acknowledgement is in flight.
                ack_request_interval: (self.window / 4).clamp(1, 64),
                retry_count_7_is_unlimited: true,
                // D204.
                sends_one_message_until_ready: true,
                ..Habits::strict()
            },
            ..QueuePairConfig::new(self.qpn, self.peer_address, self.peer_qpn)
        }
    }
}
