/// Counters of Fast CNP, besides drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastCnpCounters {
    /// Fast CNPs sent, by this node for a packet that met congestion.
    pub sent: u64,
    /// Of these, with the packet's IOAM trace (option 2).
    pub sent_with_trace: u64,
    /// Of these, with a rate (D240).
    pub sent_with_rate: u64,
    /// Of these, put into an outer header to the END.E of the packet's ingress PE (CN-4.2-2).
    pub sent_by_end_e: u64,
    /// Packets whose trace was too long for option 2, so that option 1 was sent (D41).
    pub trace_too_long: u64,
    /// Notifications of packets of a group's copies, counted at this edge without a packet (D46).
    pub counted_here: u64,
    /// Packets whose sender was notified within the interval (D45).
    pub refused_by_flow: u64,
    /// Packets for which there was no token (D45).
    pub refused_by_node: u64,
    /// Packets in a tunnel from a PE whose END.E is not known (D63).
    pub unknown_ingress: u64,
    /// Packets for which there was no frame, no way or no room in the queue.
    pub not_sent: u64,
    /// Packets of data that met congestion and whose source is not to be notified (D45).
    pub not_a_sender: u64,
    /// Packets whose sender has reported that it does not support Fast CNP (D47).
    pub incapable: u64,
    /// ICMPv6 errors by which a host reported it (D47).
    pub refusals: u64,
    /// ICMPv6 errors that quote no Fast CNP which this node has sent (D47).
    pub foreign_refusals: u64,
    /// Fast CNPs turned into standard CNPs (D48).
    pub translated: u64,
    /// Fast CNPs taken for the branch of a group (D46).
    pub aggregated: u64,
    /// Connections learnt from RDMA CM messages (D48).
    pub connections_learnt: u64,
    /// Connections whose end was learnt.
    pub connections_ended: u64,
}

impl FastCnpCounters {
    /// The counters with their names, as metrics and JSON write them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("sent", self.sent),
            ("sent_with_trace", self.sent_with_trace),
            ("sent_with_rate", self.sent_with_rate),
            ("sent_by_end_e", self.sent_by_end_e),
            ("trace_too_long", self.trace_too_long),
            ("counted_here", self.counted_here),
            ("refused_by_flow", self.refused_by_flow),
            ("refused_by_node", self.refused_by_node),
            ("unknown_ingress", self.unknown_ingress),
            ("not_sent", self.not_sent),
            ("not_a_sender", self.not_a_sender),
            ("incapable", self.incapable),
            ("refusals", self.refusals),
            ("foreign_refusals", self.foreign_refusals),
            ("translated", self.translated),
            ("aggregated", self.aggregated),
            ("connections_learnt", self.connections_learnt),
            ("connections_ended", self.connections_ended),
        ]
        .into_iter()
    }
}
