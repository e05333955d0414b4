//! Every number that a registry assigns or, for the drafts, has not assigned yet: the draft's name, our default and the
//! range it was taken from (MT-10-1, CN-7-1, D32).

/// SRv6 endpoint behaviors (RFC 8986, RFC 9524, RFC 9800; 0x8000–0x87FF is private use).
#[allow(missing_docs, reason = "the names say it")]
pub mod behavior {
    pub const END: u16 = 1;
    pub const END_X: u16 = 5;
    pub const END_DX6: u16 = 16;
    pub const END_DX4: u16 = 17;
    pub const END_DT6: u16 = 18;
    pub const END_DT4: u16 = 19;
    pub const END_DT46: u16 = 20;
    /// End with NEXT-CSID, PSP, USD: uN.
    pub const UN: u16 = 48;
    /// End.X with NEXT-CSID, PSP, USD: uA.
    pub const UA: u16 = 57;
    /// End.Replicate (RFC 9524).
    pub const END_REPLICATE: u16 = 75;
    /// End.MT, "TBD1" of the multicast draft.
    pub const END_MT: u16 = 0x8000;
    /// END.C of the congestion notification draft (CN-7-1).
    pub const END_C: u16 = 0x8001;
    /// END.E of the same draft.
    pub const END_E: u16 = 0x8002;
}

/// SRH TLV types (RFC 8754 section 8.2; 124–126 are experimental, immutable en route).
#[allow(missing_docs, reason = "the names say it")]
pub mod srh_tlv {
    pub const PAD1: u8 = 0;
    pub const PADN: u8 = 4;
    pub const HMAC: u8 = 5;
    /// End.MT TLV, "TBD2" of the multicast draft.
    pub const END_MT: u8 = 124;
    /// MR TLV: the memory regions of a group's receivers (D27).
    pub const MR: u8 = 125;
}

/// IPv6 option types (RFC 8200 section 4.2; 0x9E is the one experimental value of RFC 4727 with act 10 and chg 0, D42).
pub mod option {
    /// "TBD1" of the Fast CNP draft: the original destination.
    pub const FAST_CNP_ADDRESS: u8 = 0x9E;
    /// "TBD2" of the Fast CNP draft: an IOAM trace and the original destination.
    pub const FAST_CNP_TRACE: u8 = 0x9E;
    /// IOAM in Hop-by-Hop Options, whose data change on the way (RFC 9486 section 4).
    pub const IOAM: u8 = 0x31;
}

/// IOAM option types (RFC 9197 section 7.1).
pub mod ioam {
    /// Pre-allocated trace.
    pub const PREALLOCATED_TRACE: u8 = 0;
}

/// ICMPv6 types (RFC 4443 section 2.1; 100, 101, 200 and 201 are for private experimentation).
pub mod icmpv6 {
    /// A congestion notification, whose format the draft leaves open (CN-7-1, D60).
    pub const NOTIFICATION: u8 = 200;
}

/// UDP port of RoCEv2.
pub const ROCEV2_PORT: u16 = 4791;

/// UDP port of path probes: the first of the two for experiments (RFC 4727 section 6, D87).
pub const PROBE_PORT: u16 = 1021;

/// The default partition key.
pub const DEFAULT_PKEY: u16 = 0xFFFF;

#[cfg(test)]
mod tests {
    use super::*;

    /// MT-10-1, CN-7-1, D32: private use for the behaviors (RFC 8986 section 10.2), experimental and immutable en route for
    /// the TLVs (RFC 8754 section 8.2).
    #[test]
    fn unassigned_numbers_are_from_ranges_for_private_use() {
        let behaviors = [behavior::END_MT, behavior::END_C, behavior::END_E];
        assert!(behaviors.iter().all(|behavior| (0x8000..=0x87FF).contains(behavior)));
        assert!(behaviors.windows(2).all(|pair| pair[0] < pair[1]), "each has its own");
        assert!([srh_tlv::END_MT, srh_tlv::MR].iter().all(|kind| (124..=126).contains(kind)));
        assert_ne!(srh_tlv::END_MT, srh_tlv::MR);
    }
}
