//! Diagnostic codes (RFC 5880 section 4.1).

use std::fmt;

/// Why a system changed its session's state last: five bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic(u8);

impl Diagnostic {
    /// No diagnostic.
    pub const NONE: Diagnostic = Diagnostic(0);
    /// No packet was received for the detection time.
    pub const DETECTION_TIME_EXPIRED: Diagnostic = Diagnostic(1);
    /// The Echo function failed.
    pub const ECHO_FAILED: Diagnostic = Diagnostic(2);
    /// The peer left Up, or disabled the session.
    pub const NEIGHBOR_SIGNALED_DOWN: Diagnostic = Diagnostic(3);
    /// The forwarding plane was reset.
    pub const FORWARDING_PLANE_RESET: Diagnostic = Diagnostic(4);
    /// The path is known to have failed from elsewhere.
    pub const PATH_DOWN: Diagnostic = Diagnostic(5);
    /// A path behind this one failed.
    pub const CONCATENATED_PATH_DOWN: Diagnostic = Diagnostic(6);
    /// The session is disabled.
    pub const ADMINISTRATIVELY_DOWN: Diagnostic = Diagnostic(7);
    /// A path behind this one failed, on the way back.
    pub const REVERSE_CONCATENATED_PATH_DOWN: Diagnostic = Diagnostic(8);

    /// The diagnostic in the five low bits of `code`.
    pub const fn from_code(code: u8) -> Self {
        Diagnostic(code & 0x1F)
    }

    /// Its number, 31 at most.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Its name, for metrics; `unassigned` from 9 on.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "none",
            1 => "detection_time_expired",
            2 => "echo_failed",
            3 => "neighbor_signaled_down",
            4 => "forwarding_plane_reset",
            5 => "path_down",
            6 => "concatenated_path_down",
            7 => "administratively_down",
            8 => "reverse_concatenated_path_down",
            _ => "unassigned",
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.name())
    }
}
