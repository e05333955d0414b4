//! Router capability (RFC 7981) with SRv6 Capabilities (RFC 9352 section 2) and the C-flag of the WAN draft.
//!
//! ```text
//! | Router ID 4 | reserved, D, S 1 | sub-TLVs … |
//!
//! sub-TLV 25: | Flags 2 |        0 O C …: O = 0x4000, C = 0x2000
//! sub-TLV 19: | algorithm 1 | …
//! sub-TLV 23: | MSD type 1 | value 1 | …
//! ```

use super::{Tlvs, kind, put};
use crate::reader::{Malformed, Reader};

const SUB_ALGORITHMS: u8 = 19;
const SUB_NODE_MSD: u8 = 23;
const SUB_SRV6_CAPABILITIES: u8 = 25;

/// The flags of the SRv6 Capabilities sub-TLV.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct CapabilityFlags(pub u16);

impl CapabilityFlags {
    /// O: the node supports marking for OAM (RFC 9259).
    pub const OAM: CapabilityFlags = CapabilityFlags(0x4000);

    /// C: the node handles congestion notifications (CN-5.1-1).
    pub const CONGESTION_NOTIFICATION: CapabilityFlags = CapabilityFlags(0x2000);

    /// Whether all of these are set.
    pub const fn contains(self, other: CapabilityFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: CapabilityFlags) -> Self {
        CapabilityFlags(self.0 | other.0)
    }
}

impl std::fmt::Debug for CapabilityFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// Number of SIDs that a node supports (RFC 9352 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaximumSidDepths {
    /// Greatest Segments Left of a packet that it receives.
    pub segments_left: u8,
    /// Most SIDs of an SRH that it pops.
    pub end_pop: u8,
    /// Most SIDs that it writes by H.Encaps.
    pub h_encaps: u8,
    /// Most SIDs of an SRH that it decapsulates.
    pub end_d: u8,
}

/// The TLV's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterCapability {
    /// The system's router id, or zero.
    pub router_id: u32,
    /// S: to be flooded across the whole domain.
    pub is_flooded_across_levels: bool,
    /// D: leaked from level 2 down.
    pub is_down: bool,
    /// SRv6 Capabilities; `None` if the sub-TLV is missing: a node without SRv6.
    pub srv6: Option<CapabilityFlags>,
    /// By which algorithms it computes paths (RFC 8667 section 3.2): 0 for shortest ones.
    pub algorithms: Vec<u8>,
    /// The node's limits, if advertised.
    pub depths: Option<MaximumSidDepths>,
}

impl RouterCapability {
    /// Reads the TLV's value. A malformed sub-TLV is as one that is missing.
    ///
    /// # Errors
    ///
    /// A value too short for router id and flags.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("router capability", value);
        let (router_id, flags) = (reader.u32()?, reader.u8()?);
        let subs = Tlvs::new(reader.rest());
        let srv6 = subs.of_kind(SUB_SRV6_CAPABILITIES).find_map(|value| value.first_chunk::<2>());
        let depths = subs.of_kind(SUB_NODE_MSD).next().map(parse_depths);
        Ok(RouterCapability {
            router_id,
            is_flooded_across_levels: flags & 0x01 != 0,
            is_down: flags & 0x02 != 0,
            srv6: srv6.map(|flags| CapabilityFlags(u16::from_be_bytes(*flags))),
            algorithms: subs.of_kind(SUB_ALGORITHMS).next().unwrap_or_default().to_vec(),
            depths,
        })
    }

    /// Appends the TLV.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut value = self.router_id.to_be_bytes().to_vec();
        value.push(u8::from(self.is_flooded_across_levels) | u8::from(self.is_down) << 1);
        if let Some(flags) = self.srv6 {
            put(&mut value, SUB_SRV6_CAPABILITIES, &flags.0.to_be_bytes());
        }
        if !self.algorithms.is_empty() {
            put(&mut value, SUB_ALGORITHMS, &self.algorithms);
        }
        if let Some(depths) = self.depths {
            let MaximumSidDepths { segments_left, end_pop, h_encaps, end_d } = depths;
            let pairs =
                [MSD_SEGMENTS_LEFT, segments_left, MSD_END_POP, end_pop, MSD_H_ENCAPS, h_encaps, MSD_END_D, end_d];
            put(&mut value, SUB_NODE_MSD, &pairs);
        }
        put(out, kind::ROUTER_CAPABILITY, &value);
    }
}

/// IANA, IGP MSD-Types.
const MSD_SEGMENTS_LEFT: u8 = 41;
const MSD_END_POP: u8 = 42;
const MSD_H_ENCAPS: u8 = 44;
const MSD_END_D: u8 = 45;

fn parse_depths(value: &[u8]) -> MaximumSidDepths {
    let mut depths = MaximumSidDepths::default();
    for pair in value.as_chunks::<2>().0 {
        match *pair {
            [MSD_SEGMENTS_LEFT, depth] => depths.segments_left = depth,
            [MSD_END_POP, depth] => depths.end_pop = depth,
            [MSD_H_ENCAPS, depth] => depths.h_encaps = depth,
            [MSD_END_D, depth] => depths.end_d = depth,
            _ => {}
        }
    }
    depths
}
