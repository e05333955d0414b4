//! The control packet (RFC 5880 section 4.1), and those checks of its reception that need no session (section 6.8.6).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |Vers |  Diag   |Sta|P|F|C|A|D|M|  Detect Mult  |    Length     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                       My Discriminator                        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      Your Discriminator                       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                    Desired Min TX Interval                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                   Required Min RX Interval                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                 Required Min Echo RX Interval                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! :              Authentication section, if A is set              :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Intervals are in microseconds. What follows the packet's length is ignored.

use crate::authentication::Authentication;
use crate::diagnostic::Diagnostic;
use crate::refusal::Refusal;
use crate::state::State;
use srdma_wire::View;
use std::fmt;
use std::num::{NonZeroU8, NonZeroU32};
use zerocopy::byteorder::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The mandatory section as it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ControlView {
    version_diagnostic: u8,
    state_flags: u8,
    detect_mult: u8,
    length: u8,
    my_discriminator: U32,
    your_discriminator: U32,
    desired_min_tx: U32,
    required_min_rx: U32,
    required_min_echo_rx: U32,
}

impl View for ControlView {
    const NAME: &'static str = "BFD";
    const LEN: usize = 1 + 1 + 1 + 1 + 4 + 4 + 4 + 4 + 4;
}

impl ControlView {
    const VERSION: u8 = 1;
    const POLL: u8 = 0x20;
    const FINAL: u8 = 0x10;
    const CONTROL_PLANE_INDEPENDENT: u8 = 0x08;
    const AUTHENTICATION: u8 = 0x04;
    const DEMAND: u8 = 0x02;
    const MULTIPOINT: u8 = 0x01;

    /// The protocol's version.
    pub fn version(&self) -> u8 {
        self.version_diagnostic >> 5
    }

    /// Octets of the packet, the authentication section included.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether an authentication section follows.
    pub fn is_authenticated(&self) -> bool {
        self.has(Self::AUTHENTICATION)
    }

    /// Whether the packet is one of a point-to-multipoint session.
    pub fn is_multipoint(&self) -> bool {
        self.has(Self::MULTIPOINT)
    }

    fn has(&self, flag: u8) -> bool {
        self.state_flags & flag != 0
    }

    /// The fields, of which some may not be 0.
    fn value(&self) -> Result<Control, Refusal> {
        let detect_mult = NonZeroU8::new(self.detect_mult).ok_or(Refusal::DetectMultZero)?;
        if self.is_multipoint() {
            return Err(Refusal::Multipoint);
        }
        let my_discriminator = Discriminator::new(self.my_discriminator.get()).ok_or(Refusal::MyDiscriminatorZero)?;
        let your_discriminator = Discriminator::new(self.your_discriminator.get());
        let state = State::from_bits(self.state_flags >> 6);
        let is_receiving_us = match state {
            State::AdminDown | State::Down => false,
            State::Init | State::Up => true,
        };
        if is_receiving_us && your_discriminator.is_none() {
            return Err(Refusal::YourDiscriminatorZero);
        }
        Ok(Control {
            diagnostic: Diagnostic::from_code(self.version_diagnostic),
            state,
            is_poll: self.has(Self::POLL),
            is_final: self.has(Self::FINAL),
            is_control_plane_independent: self.has(Self::CONTROL_PLANE_INDEPENDENT),
            is_demand: self.has(Self::DEMAND),
            detect_mult,
            my_discriminator,
            your_discriminator,
            desired_min_tx_us: self.desired_min_tx.get(),
            required_min_rx_us: self.required_min_rx.get(),
            required_min_echo_rx_us: self.required_min_echo_rx.get(),
        })
    }
}

/// A system's number for a session, unique among its sessions; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Discriminator(NonZeroU32);

impl Discriminator {
    /// The discriminator of this number; `None` for 0.
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Discriminator(number)),
            None => None,
        }
    }

    /// Its number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Discriminator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.get())
    }
}

/// The mandatory section as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Why the sender changed its state last.
    pub diagnostic: Diagnostic,
    /// The sender's state.
    pub state: State,
    /// The sender wants a Final.
    pub is_poll: bool,
    /// The packet answers a Poll.
    pub is_final: bool,
    /// The sender's BFD survives a restart of its control plane.
    pub is_control_plane_independent: bool,
    /// The sender is in Demand mode: it wants no periodic packets.
    pub is_demand: bool,
    /// Number of the sender's intervals that are the receiver's detection time.
    pub detect_mult: NonZeroU8,
    /// The sender's number for the session.
    pub my_discriminator: Discriminator,
    /// The receiver's number for it, once the sender knows it.
    pub your_discriminator: Option<Discriminator>,
    /// The least interval at which the sender wants to send, in microseconds.
    pub desired_min_tx_us: u32,
    /// The least interval at which the sender is able to receive, in microseconds; 0: it wants no periodic packets.
    pub required_min_rx_us: u32,
    /// The least interval at which the sender is able to return Echo packets, in microseconds; 0: it does not.
    pub required_min_echo_rx_us: u32,
}

impl Control {
    /// Octets of a packet without an authentication section.
    pub const LEN: usize = ControlView::LEN;

    /// The octets of the packet without an authentication section.
    pub fn emit(&self) -> ControlView {
        let flags = [
            (self.is_poll, ControlView::POLL),
            (self.is_final, ControlView::FINAL),
            (self.is_control_plane_independent, ControlView::CONTROL_PLANE_INDEPENDENT),
            (self.is_demand, ControlView::DEMAND),
        ];
        let flags = flags.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
        ControlView {
            version_diagnostic: ControlView::VERSION << 5 | self.diagnostic.code(),
            state_flags: self.state.bits() << 6 | flags,
            detect_mult: self.detect_mult.get(),
            length: Self::LEN as u8,
            my_discriminator: U32::new(self.my_discriminator.get()),
            your_discriminator: U32::new(self.your_discriminator.map_or(0, Discriminator::get)),
            desired_min_tx: U32::new(self.desired_min_tx_us),
            required_min_rx: U32::new(self.required_min_rx_us),
            required_min_echo_rx: U32::new(self.required_min_echo_rx_us),
        }
    }
}

/// A control packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPacket<'a> {
    /// The mandatory section.
    pub control: Control,
    /// The authentication section, not verified.
    pub authentication: Option<Authentication<'a>>,
}

impl<'a> ControlPacket<'a> {
    /// The packet at the front of `octets`, a payload of UDP. The checks are in the order of RFC 5880 section 6.8.6.
    ///
    /// # Errors
    ///
    /// If a check fails.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Refusal> {
        let (view, _) = ControlView::split(octets).map_err(|_| Refusal::Truncated)?;
        if view.version() != ControlView::VERSION {
            return Err(Refusal::Version);
        }
        let least = if view.is_authenticated() { Control::LEN + Authentication::HEAD_LEN } else { Control::LEN };
        if usize::from(view.length()) < least {
            return Err(Refusal::LengthTooShort);
        }
        let section = octets.get(Control::LEN..usize::from(view.length())).ok_or(Refusal::LengthBeyondPayload)?;
        let control = view.value()?;
        let authentication = view.is_authenticated().then(|| Authentication::parse(section)).transpose()?;
        Ok(ControlPacket { control, authentication })
    }
}
