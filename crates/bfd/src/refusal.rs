//! Why a received packet is refused: one name and one counter each.

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a received packet has no effect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
        #[repr(u8)]
        pub enum Refusal {
            $($(#[$doc])* #[error($name)] $variant,)*
        }

        impl Refusal {
            /// Every reason, in the order of the counters.
            pub const ALL: &[Refusal] = &[$(Refusal::$variant),*];

            /// The reason's name, for metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Refusal::$variant => $name,)*
                }
            }
        }
    };
}

refusals! {
    /// Not an IPv6 packet with all its octets.
    NotIpv6 = "not_ipv6",
    /// The next header is not UDP.
    NotUdp = "not_udp",
    /// The UDP port is neither 3784 nor 4784.
    OtherPort = "other_port",
    /// UDP and IPv6 disagree about the length.
    DatagramLength = "datagram_length",
    /// The UDP checksum is wrong, or missing.
    Checksum = "checksum",
    /// Fewer octets than the mandatory section has.
    Truncated = "truncated",
    /// The version is not 1.
    Version = "version",
    /// The length is less than that of the mandatory section, and of the head of the authentication section if there
    /// is one.
    LengthTooShort = "length_too_short",
    /// The length exceeds the payload.
    LengthBeyondPayload = "length_beyond_payload",
    /// The detection multiplier is 0.
    DetectMultZero = "detect_mult_zero",
    /// The Multipoint bit is set.
    Multipoint = "multipoint",
    /// My Discriminator is 0.
    MyDiscriminatorZero = "my_discriminator_zero",
    /// Your Discriminator is 0 in a state that only a peer of known discriminator can be in.
    YourDiscriminatorZero = "your_discriminator_zero",
    /// The authentication section does not fit into the length.
    AuthenticationMalformed = "authentication_malformed",
    /// The packet is authenticated, and the session is not (D91).
    Authenticated = "authenticated",
    /// The packet of a single hop has passed a router (RFC 5881 section 5).
    HopLimit = "hop_limit",
    /// No session has this discriminator.
    UnknownDiscriminator = "unknown_discriminator",
    /// No session is with this peer.
    UnknownPeer = "unknown_peer",
    /// The session of this discriminator is with another peer (D92).
    OtherPeer = "other_peer",
    /// The session is disabled.
    AdministrativelyDown = "administratively_down",
}

/// A counter for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// Counts one.
    pub(crate) fn count(&mut self, reason: Refusal) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// How many so far.
    pub fn get(&self, reason: Refusal) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.iter().map(|reason| (*reason, self.get(*reason))).filter(|(_, count)| *count > 0)
    }
}
