//! Choices that are made once for a group.

use std::time::Duration;

/// Which reading of the draft a group's nodes follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// The forwarding rule R1–R7.
    #[default]
    Default,
    /// The draft's words, to be measured beside it: forward an ACK for each ACK (D19), a NAK at once (D20).
    Literal,
}

/// When a node sends CNPs upstream (D29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CnpMode {
    /// The first CNP at once, then one each time the window expires while counts come.
    #[default]
    Leading,
    /// One each time the window expires.
    Trailing,
}

/// How an edge learns its receivers (D6, D7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListMode {
    /// From the End.MT TLVs of each data packet.
    Tlv,
    /// From the group's record, at set-up.
    Provisioned,
    /// TLV while a packet of full RDMA path MTU fits the link MTU, else provisioned.
    #[default]
    Auto,
}

/// A group's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Default or literal.
    pub rules: Rules,
    /// TLV, provisioned, or what fits.
    pub lists: ListMode,
    /// An edge withholds copies of what a receiver has confirmed (D22).
    pub prune_retransmit: bool,
    /// How long a NAK above the minimum waits for the other branches (rule R5, D20).
    pub t_hold: Duration,
    /// Leading or trailing CNPs.
    pub cnp_mode: CnpMode,
    /// The window T of MT-5.3.3-1.
    pub cnp_window: Duration,
    /// The headend signs the SRH with this key (MT-9-1).
    pub hmac_key_id: Option<u32>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            rules: Rules::Default,
            lists: ListMode::Auto,
            prune_retransmit: false,
            t_hold: Duration::from_micros(20),
            cnp_mode: CnpMode::Leading,
            cnp_window: Duration::from_micros(50),
            hmac_key_id: None,
        }
    }
}
