//! Why packets are dropped: one name and one counter each, nothing silent.

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[$doc])* $variant,)*
        }

        impl DropReason {
            /// Every reason, in the order of the counters.
            pub const ALL: &[DropReason] = &[$(DropReason::$variant),*];

            /// The reason as metrics and JSON write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(DropReason::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// The frame ends before its headers or its IPv6 payload do.
    Truncated = "truncated",
    /// The destination MAC address is not the port's.
    NotForThisPort = "not_for_this_port",
    /// The EtherType is not IPv6, nor, at a node with IPv4 routes in its main table, IPv4.
    NotIpv6 = "not_ipv6",
    /// An 802.1Q tag of a VLAN that has no port, or a second tag.
    VlanTagged = "vlan_tagged",
    /// The IPv6 version is not 6.
    BadVersion = "bad_version",
    /// An IPv4 header whose lengths or checksum are wrong (RFC 1812 section 5.2.2).
    BadIpv4Header = "bad_ipv4_header",
    /// To an IPv4 multicast group or to all of a link, which the node does not forward.
    Ipv4Multicast = "ipv4_multicast",
    /// A multicast or unspecified address as source.
    BadSource = "bad_source",
    /// A link-local or loopback address in a packet to be forwarded (RFC 4291 sections 2.5.3 and 2.5.6).
    Scope = "scope",
    /// The header chain is longer than the first segment's span.
    HeaderTooLong = "header_too_long",
    /// No route to the destination.
    NoRoute = "no_route",
    /// A blackhole route.
    Blackhole = "blackhole",
    /// The destination has no path that may be taken.
    NoPath = "no_path",
    /// The next hop's MAC address is not known.
    NoNeighbour = "no_neighbour",
    /// Hop limit exceeded.
    HopLimitExceeded = "hop_limit_exceeded",
    /// Longer than the next link's MTU.
    PacketTooBig = "packet_too_big",
    /// The egress queue is full.
    QueueFull = "queue_full",
    /// Data received in a class with PFC exceed XOFF and headroom.
    HeadroomExceeded = "headroom_exceeded",
    /// For a class whose neighbour has paused it for too long.
    PauseStorm = "pause_storm",
    /// A MAC control frame that is no PFC, or at a port whose classes have none.
    MacControl = "mac_control",
    /// It waited to be sent at this port, which has lost its link.
    PortDown = "port_down",
    /// No chunk was left in the pool.
    NoBuffer = "no_buffer",
    /// Not enough headroom to push a header.
    NoHeadroom = "no_headroom",
    /// For the node itself, which takes no such packet.
    LocalDelivery = "local_delivery",
    /// A BFD packet whose lengths, version or fields RFC 5880 section 6.8.6 refuses.
    BfdMalformed = "bfd_malformed",
    /// A BFD packet whose UDP checksum is wrong or missing.
    BfdChecksum = "bfd_checksum",
    /// A BFD packet of a single hop that has passed a router, or any that has left a tunnel (RFC 5881 section 5, D109).
    BfdHopLimit = "bfd_hop_limit",
    /// A BFD packet of no session: sessions are configured (D92).
    BfdUnknownSession = "bfd_unknown_session",
    /// A BFD packet with a session's discriminator from another address or port than its peer's (D92).
    BfdOtherPeer = "bfd_other_peer",
    /// An authenticated BFD packet: sessions have no keys (D91).
    BfdAuthenticated = "bfd_authenticated",
    /// A BFD packet for a disabled session.
    BfdDisabled = "bfd_disabled",
    /// The packet met this node's own SIDs too often.
    SegmentLoop = "segment_loop",
    /// Segments Left, Last Entry or Hdr Ext Len contradict each other (RFC 8754 section 4.3.1.1).
    BadSrh = "bad_srh",
    /// A routing header that is no SRH.
    UnknownRoutingType = "unknown_routing_type",
    /// An option at a SID that the node must not skip (RFC 8200 section 4.2), or that reaches beyond its header.
    BadOption = "bad_option",
    /// An echo request to a SID beyond the rate of ICMPv6 errors.
    EchoRateLimited = "echo_rate_limited",
    /// A fragment to a SID whose length or offset no fragment has (RFC 8200 section 4.5).
    FragmentMalformed = "fragment_malformed",
    /// A fragment to a SID that overlaps another, or one of the same packet (RFC 5722).
    FragmentOverlap = "fragment_overlap",
    /// A fragment to a SID that has come before.
    FragmentDuplicate = "fragment_duplicate",
    /// A fragment to a SID, of a packet that is too long, in too many fragments, or one of too many at once.
    FragmentLimit = "fragment_limit",
    /// A fragment to a SID that has waited 60 s for others of its packet.
    FragmentTimeout = "fragment_timeout",
    /// A Hop-by-Hop Options header that is not right behind the IPv6 header (RFC 8200 section 4.1).
    MisplacedHeader = "misplaced_header",
    /// End.DT6 with segments left.
    SegmentsLeft = "segments_left",
    /// An upper-layer header that a SID does not take (RFC 8986 section 4.1.1).
    UpperLayer = "upper_layer",
    /// The outer header is marked CE and the inner packet is not ECN-capable (RFC 6040).
    CongestionExperienced = "congestion_experienced",
    /// End.MT without an SRH, or with Segments Left 0 (MT-6.2-1).
    EndMtNoSegment = "end_mt_no_segment",
    /// A TLV reaches beyond the SRH, or its Length contradicts its content (D8).
    MalformedTlv = "malformed_tlv",
    /// The inner packet is not for the Proxy Address that the Segment List ends with (D4).
    WrongProxy = "wrong_proxy",
    /// A receiver that cannot be one: multicast, unspecified or loopback address, reserved QPN, or twice (D8).
    BadReceiver = "bad_receiver",
    /// No End.MT TLV for this node and no provisioned list, or an empty list (D6).
    NoReceiverList = "no_receiver_list",
    /// The list names a receiver that the edge's record does not have (D96).
    ReceiverNotInRecord = "receiver_not_in_record",
    /// For End.MT, of a group to whose receivers here the node copies what it replicates (D246).
    BudAsEdge = "bud_as_edge",
    /// Data of a group that the edge would have to learn, which has learnt as many as it may (D17).
    TooManyLearntGroups = "too_many_learnt_groups",
    /// Data to more receivers than a group that is learnt may have (D17).
    TooManyLearntReceivers = "too_many_learnt_receivers",
    /// Data to another queue pair of a receiver that a group was learnt with: on the way back the two could not be
    /// distinguished (D8, D17).
    OtherReceiver = "other_receiver",
    /// Data of a group that the edge would have to learn, whose Proxy Address is a SID or has its own route (D17).
    ProxyInUse = "proxy_in_use",
    /// A WRITE outside the region that its key names, to a key of none, or to receivers whose regions are not known
    /// (D27, D191).
    OutsideRegion = "outside_region",
    /// The SRH has no HMAC TLV, but the SID demands one.
    HmacMissing = "hmac_missing",
    /// The HMAC's key id is not known.
    HmacUnknownKey = "hmac_unknown_key",
    /// The HMAC does not match.
    HmacMismatch = "hmac_mismatch",
    /// The HMAC's key does not cover the receiver lists, as End.MT demands (D9).
    HmacCover = "hmac_cover",
    /// In by a border port with a source address of the SR domain (BCP 38, RFC 8754 section 5.1).
    ForgedSource = "forged_source",
    /// In by a border port with a source address that its hosts do not have (BCP 38).
    SourceNotAssigned = "source_not_assigned",
    /// In by a border port to a SID (RFC 8754 section 5.1).
    SidFromOutside = "sid_from_outside",
    /// In by a border port to an address of a node (RFC 8754 section 5.1).
    NodeFromOutside = "node_from_outside",
    /// To a SID of this node from a source address that is no node's (RFC 8754 section 5.1).
    ForeignSource = "foreign_source",
    /// To a SID of the domain, or with an SRH that names one, about to leave by a border port (RFC 8754 section 7.2).
    LeavesDomain = "leaves_domain",
    /// No multicast route for this source and group.
    NoMulticastRoute = "no_multicast_route",
    /// A multicast packet from the wrong side.
    WrongIncomingPort = "wrong_incoming_port",
    /// No group of this node has the packet's Proxy Address.
    UnknownGroup = "unknown_group",
    /// Not a RoCEv2 packet, or damaged before its BTH ends.
    NotRocev2 = "not_rocev2",
    /// Extension headers before UDP in a group's data packet, which no receiver's host would take.
    ExtensionHeaders = "extension_headers",
    /// From the source, but not a SEND or WRITE request (D26).
    NotMulticastable = "not_multicastable",
    /// From a receiver, but neither ACK, NAK nor CNP (D12).
    NotAResponse = "not_a_response",
    /// A response from an address or port where the group has no branch (D14, MT-9-2).
    UnexpectedResponder = "unexpected_responder",
    /// Passed on by the peer of shared hosts, and of no host that this node serves (D281, D290).
    NotServedHere = "not_served_here",
    /// A response to another queue pair than the Designated QPN.
    WrongQpn = "wrong_qpn",
    /// The ICRC does not match.
    BadIcrc = "bad_icrc",
    /// A response before any data were sent (rule R1).
    NothingSent = "nothing_sent",
    /// A response that no receiver can have meant (rule R1, D15).
    ImplausiblePsn = "implausible_psn",
    /// A response behind what its branch has confirmed before (rule R1).
    StaleResponse = "stale_response",
    /// A child's response of an epoch in which it did not cover all receivers below it now (re-homing).
    OldEpoch = "old_epoch",
    /// For another worker of the node, whose queue for handed-over packets is full (D208).
    HandoverFull = "handover_full",
    /// For a group of the controller, whose lease for this node is over (D122).
    LeaseOver = "lease_over",
    /// A reserved AETH syndrome.
    ReservedSyndrome = "reserved_syndrome",
    /// More CNPs from one branch than it may send (MT-9-3).
    CnpRateLimited = "cnp_rate_limited",
    /// A Fast CNP about to cross a border of its domain, in or out (FC-5-1).
    FastCnpAtBorder = "fast_cnp_at_border",
    /// A Fast CNP option that is too short for what it carries.
    FastCnpTooShort = "fast_cnp_too_short",
    /// A Fast CNP option that is too long for what it carries, or reaches beyond its header.
    FastCnpTooLong = "fast_cnp_too_long",
    /// Two Fast CNP options.
    FastCnpTwice = "fast_cnp_twice",
    /// A Fast CNP option that is not in the Destination Options header before UDP (D40).
    FastCnpWrongPlace = "fast_cnp_wrong_place",
    /// A Fast CNP with an invalid trace, or one whose length exceeds the option.
    FastCnpBadTrace = "fast_cnp_bad_trace",
    /// A Fast CNP with another option that must not be passed over.
    FastCnpUnknownOption = "fast_cnp_unknown_option",
    /// A Fast CNP option in a packet that is no CNP.
    FastCnpNotACnp = "fast_cnp_not_a_cnp",
    /// A Fast CNP from an address that no switch of the configuration has (FC-5-3).
    FastCnpForeignSource = "fast_cnp_foreign_source",
    /// A trace that a receiver returns, to an edge or to a host without Fast CNP support: it reports no congestion, and
    /// is not forwarded.
    FastCnpReturnedTrace = "fast_cnp_returned_trace",
    /// A Fast CNP for a host without support, of an unknown connection (D48).
    FastCnpNoConnection = "fast_cnp_no_connection",
    /// The same, where several queue pairs of the host could be meant (D48).
    FastCnpAmbiguous = "fast_cnp_ambiguous",
    /// To an END.C of a node without a configuration of backpressure.
    BackpressureOff = "backpressure_off",
    /// To an END.C, but not a notification (D60).
    BackpressureMalformed = "backpressure_malformed",
    /// A notification whose checksum does not match.
    BackpressureChecksum = "backpressure_checksum",
    /// A notification of another version.
    BackpressureVersion = "backpressure_version",
    /// A notification from another node than the congested one that it names, or for another SID (D66).
    BackpressureForeignOrigin = "backpressure_foreign_origin",
    /// A notification about a traffic class for which no port with PFC is to be paused (D61).
    BackpressureUnmapped = "backpressure_unmapped",
    /// A notification that is not newer than the last one of its origin (D62).
    BackpressureStale = "backpressure_stale",
    /// A pause whose hold time is zero.
    BackpressureNoHold = "backpressure_no_hold",
    /// Above the rate limit of an origin that sends to an END.C or END.E (D66).
    BackpressureRateLimited = "backpressure_rate_limited",
    /// From an origin that sends to an END.C or END.E, while the table of origins is full (D66).
    BackpressureTooManyOrigins = "backpressure_too_many_origins",
    /// A pause of a priority that the watchdog has released (D62).
    BackpressureStorm = "backpressure_storm",
    /// A copy withheld because its receiver has confirmed it (D22).
    Pruned = "pruned",
    /// A copy withheld because its PSN is from before its receiver joined (D30).
    BeforeJoin = "before_join",
    /// Data behind a gap for which the retransmission buffer has no room (D150).
    RepairBufferFull = "repair_buffer_full",
    /// A request for data from a neighbour that is no child with repair, or for more than a window (D153).
    RepairRequestRefused = "repair_request_refused",
    /// Data at the headend of a new group whose first PSN has not come (D137).
    BeforeFirstPsn = "before_first_psn",
}

impl DropReason {
    /// How many reasons there are.
    pub const COUNT: usize = Self::ALL.len();
}

/// A counter for each reason. Boxed, so that what is counted for every packet lies close together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropCounters(Box<[u64; DropReason::COUNT]>);

impl Default for DropCounters {
    fn default() -> Self {
        DropCounters(Box::new([0; DropReason::COUNT]))
    }
}

impl DropCounters {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// How many so far.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason))).filter(|(_, count)| *count > 0)
    }
}
