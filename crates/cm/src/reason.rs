//! Reasons of rejections (IBTA volume 1, section 12.6.7.2).

use std::fmt;

/// A reason; others than the constants occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(pub u16);

#[allow(missing_docs, reason = "the names are those of the specification")]
impl Reason {
    pub const NO_RESOURCES: Reason = Reason(3);
    pub const TIMEOUT: Reason = Reason(4);
    pub const UNSUPPORTED_REQUEST: Reason = Reason(5);
    pub const INVALID_SERVICE_ID: Reason = Reason(8);
    pub const INVALID_TRANSPORT_SERVICE: Reason = Reason(9);
    pub const STALE_CONNECTION: Reason = Reason(10);
    pub const INVALID_GID: Reason = Reason(12);
    pub const INVALID_PATH_MTU: Reason = Reason(26);
    pub const CONSUMER: Reason = Reason(28);
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            1 => "no queue pair is left",
            3 => "no resources are left",
            4 => "timeout",
            5 => "unsupported request",
            6 => "invalid Comm. ID",
            8 => "no program listens at this port",
            9 => "invalid transport service",
            10 => "stale connection",
            12 => "invalid GID",
            26 => "invalid path MTU",
            28 => "the program has rejected it",
            30 => "Comm. ID in use",
            _ => return write!(f, "reason {}", self.0),
        };
        write!(f, "{name} (reason {})", self.0)
    }
}
